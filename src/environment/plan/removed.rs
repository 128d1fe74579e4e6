//! What newer versions of Python do not have any more. Pure.

use super::missing;

/// Modules that a minor version of Python took away.
const REMOVED_MODULES: [(u64, &[&str]); 4] = [
    (10, &["formatter", "parser", "symbol"]),
    (11, &["binhex"]),
    (12, &["asynchat", "asyncore", "distutils", "imp", "smtpd"]),
    (
        13,
        &[
            "aifc",
            "audioop",
            "cgi",
            "cgitb",
            "chunk",
            "crypt",
            "imghdr",
            "lib2to3",
            "mailcap",
            "nntplib",
            "pipes",
            "sndhdr",
            "spwd",
            "sunau",
            "telnetlib",
            "uu",
            "xdrlib",
        ],
    ),
];
/// Words of an error about a name that a minor version of Python took out of a module.
const REMOVED_NAMES: [(u64, &str); 11] = [
    (9, "cannot import name 'gcd' from 'fractions'"),
    (10, "from 'collections' ("),
    (10, "module 'collections' has no attribute"),
    (11, "cannot import name 'getargspec' from 'inspect'"),
    (11, "module 'inspect' has no attribute 'getargspec'"),
    (11, "module 'asyncio' has no attribute 'coroutine'"),
    (12, "cannot import name 'SafeConfigParser' from 'configparser'"),
    (12, "module 'configparser' has no attribute 'SafeConfigParser'"),
    (12, "module 'pkgutil' has no attribute 'ImpImporter'"),
    (12, "cannot import name 'find_module' from 'pkgutil'"),
    (13, "module 'unittest' has no attribute 'makeSuite'"),
];

/// The minor version that took away what this error of a collection asks for.
pub fn removed(text: &str) -> Option<u64> {
    let of_module = missing::modules(text).find_map(|module| {
        let top = module.split('.').next().unwrap_or(module);
        REMOVED_MODULES.iter().find(|(_, names)| names.contains(&top)).map(|(minor, _)| *minor)
    });
    let of_name = || REMOVED_NAMES.iter().find(|(_, words)| text.contains(words)).map(|(minor, _)| *minor);
    of_module.or_else(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_version_took_away_is_known_by_module_and_by_name() {
        for (text, expected) in [
            ("ModuleNotFoundError: No module named 'imp'", Some(12)),
            ("No module named 'distutils.version'", Some(12)),
            ("No module named 'telnetlib'", Some(13)),
            ("cannot import name 'Mapping' from 'collections' (/usr/lib/collections/__init__.py)", Some(10)),
            ("module 'collections' has no attribute 'Callable'", Some(10)),
            ("No module named 'numpy'", None),
            ("cannot import name 'x' from 'collections.abc' (y)", None),
        ] {
            assert_eq!(removed(text), expected, "{text}");
        }
    }
}
