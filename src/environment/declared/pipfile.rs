//! What a `Pipfile` declares. Pure.

use toml::{Table, Value};

use super::declarations::Files;
use super::pyproject::{strings, text};
use super::requirements_files::Lines;
use super::tox::Automation;

/// Keys of an entry that are markers of their own.
const MARKERS: [&str; 6] = [
    "sys_platform",
    "platform_system",
    "platform_machine",
    "os_name",
    "python_version",
    "python_full_version",
];

/// What the project runs with, and what it is developed with.
pub(super) fn read(files: &Files) -> Option<Automation> {
    let table: Table = files.get("Pipfile")?.parse().ok()?;
    let mut lines = Lines::default();
    for section in ["packages", "dev-packages"] {
        for (name, value) in table.get(section).and_then(Value::as_table).into_iter().flatten() {
            match requirement(name, value) {
                Some(requirement) => lines.push(&requirement),
                None => lines.left_out.push(format!("{name}, whose entry is not known here")),
            }
        }
    }
    Some(Automation { place: "Pipfile".to_owned(), lines, ..Automation::default() })
}

fn requirement(name: &str, value: &Value) -> Option<String> {
    if let Some(version) = value.as_str() {
        return Some(format!("{name}{}", pinned(version)));
    }
    let table = value.as_table()?;
    let extras = strings(table.get("extras"));
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    if let Some(path) = text(table.get("path")) {
        return Some(if path.trim_end_matches('/') == "." {
            format!(".{extras}")
        } else {
            format!("./{path}{extras}")
        });
    }
    let mut requirement = if let Some(url) = text(table.get("git")) {
        let at = text(table.get("ref")).map(|at| format!("@{at}")).unwrap_or_default();
        format!("{name}{extras} @ git+{url}{at}")
    } else if let Some(url) = text(table.get("file")) {
        format!("{name}{extras} @ {url}")
    } else {
        format!("{name}{extras}{}", pinned(&text(table.get("version")).unwrap_or_default()))
    };
    let given = text(table.get("markers"));
    let own = MARKERS.iter().filter_map(|key| Some(format!("{key} {}", text(table.get(*key))?)));
    let markers: Vec<String> = given.into_iter().chain(own).collect();
    match markers.as_slice() {
        [] => {}
        [one] => requirement = format!("{requirement} ; {one}"),
        several => requirement = format!("{requirement} ; ({})", several.join(") and (")),
    }
    Some(requirement)
}

/// A version as it is behind a name: `*` is any, `1.0` that one.
fn pinned(version: &str) -> String {
    match version.trim() {
        "*" | "" => String::new(),
        version if version.starts_with(|c: char| c.is_ascii_digit()) => format!("=={version}"),
        version => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_form_become_requirements() {
        let text = "[packages]\nzict = { version = '>=2.0', markers = \"python_version >= '3.6'\" }\nheapdict = '*'\n\
                    six = '1.16'\n[dev-packages]\npytest = { version = '*', extras = ['dev'] }\nbasket = { path = '.', editable = true }\n\
                    w = { version = '*', sys_platform = \"== 'win32'\", python_version = \"< '3.9'\" }\nodd = 3\n";
        let found = read(&Files::from_texts([("Pipfile", text)])).unwrap();
        assert_eq!(
            found.lines.requirements.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
            [
                "heapdict",
                "pytest[dev]",
                "six==1.16",
                "w ; (sys_platform == 'win32') and (python_version < '3.9')",
                "zict>=2.0 ; python_version >= '3.6'",
            ]
            .into()
        );
        assert_eq!(found.lines.left_out, ["odd, whose entry is not known here"]);
    }
}
