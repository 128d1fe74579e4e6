//! Whether a requirement applies to the chosen interpreter. Pure.

use pep508_rs::{ExtraName, MarkerEnvironment, MarkerEnvironmentBuilder, Requirement, VerbatimUrl};

use super::python::Interpreter;

/// Whether the marker of a requirement holds; so it counts where nobody can say. With `extras` as asked for, or, where
/// none are given, whatever the extra.
pub(in crate::environment) fn applies(
    requirement: &Requirement<VerbatimUrl>,
    python: &Interpreter,
    extras: Option<&[ExtraName]>,
) -> bool {
    let marker = requirement.marker.clone().simplify_extras_with(|_| extras.is_none());
    let text = marker.try_to_string().unwrap_or_default();
    // The machine that runs it need not have the kernel of this one.
    if text.contains("platform_release") || text.contains("platform_version") {
        return true;
    }
    environment(python).is_none_or(|environment| marker.evaluate(&environment, extras.unwrap_or_default()))
}

fn environment(python: &Interpreter) -> Option<MarkerEnvironment> {
    let builder = MarkerEnvironmentBuilder {
        implementation_name: &python.implementation,
        implementation_version: &python.version,
        os_name: "posix",
        platform_machine: std::env::consts::ARCH,
        platform_python_implementation: match python.implementation.as_str() {
            "pypy" => "PyPy",
            "graalpy" => "GraalVM",
            _ => "CPython",
        },
        platform_release: "",
        platform_system: "Linux",
        platform_version: "",
        python_full_version: &python.version,
        python_version: &python.minor(),
        sys_platform: "linux",
    };
    builder.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::parse;

    #[test]
    fn only_what_surely_does_not_apply_is_left_out() {
        let python = Interpreter {
            executable: "/usr/bin/python3".into(),
            version: "3.12.1".to_owned(),
            prefix: "/usr".into(),
            implementation: "cpython".to_owned(),
            free_threaded: false,
        };
        let holds = |marker: &str, extras: Option<&[ExtraName]>| {
            applies(&parse(&format!("w @ http://h.example/w.whl ; {marker}")).unwrap(), &python, extras)
        };
        for (marker, expected) in [
            ("sys_platform == 'win32'", false),
            ("sys_platform == 'linux' and python_version >= '3.12'", true),
            ("python_full_version < '3.12.1'", false),
            ("platform_python_implementation == 'PyPy'", false),
            ("extra == 'x'", true),
            ("extra == 'x' and os_name == 'nt'", false),
            ("platform_release >= '9'", true),
        ] {
            assert_eq!(holds(marker, None), expected, "{marker}");
        }
        let asked = ["x".parse().unwrap()];
        assert!(holds("extra == 'x'", Some(&asked)) && !holds("extra == 'x'", Some(&[])));
        assert!(!holds("extra == 'x' and os_name == 'nt'", Some(&asked)));
        assert!(applies(&parse("w @ http://h.example/w.whl").unwrap(), &python, Some(&[])));
    }
}
