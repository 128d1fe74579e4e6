//! What a command is given: its group with other input, and the places of the tree that it names.

use std::path::Path;

use crate::beneath::Folder;
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::id::{Name, hash_parts};
use crate::record::outcome::Attempt;
use crate::record::task::CODE_ENDINGS;
use crate::record::trace::check_path;
use crate::record::variant::Given;

/// The group of a command with other input, under a name of its own.
pub(super) fn group_with(entry: &Entry, given: &Given) -> Group {
    let said = serde_json::to_string(given).unwrap_or_default();
    let name = format!("v-{}", &hash_parts(&[entry.name.as_str(), &said])[..32]);
    let name = Name::new(&name).unwrap_or_else(|_| entry.name.clone());
    Group::of_entry(Entry { name, ..given.to(entry) })
}

/// An attempt under the name of the command that it is one of.
pub(super) fn named(mut attempt: Attempt, entry: &Entry) -> Attempt {
    for case in &mut attempt.cases {
        case.case_id = entry.id();
    }
    attempt
}

/// What a path of the tree that a command names is, from the root; none where it leaves the tree.
pub(super) fn from_root(entry: &Entry, named: &str) -> Option<String> {
    let mut parts: Vec<&str> = entry.cwd.split('/').filter(|part| !part.is_empty()).collect();
    if named.starts_with('/') {
        return None;
    }
    for part in named.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// Whether the tree has a file or a folder there; its root is one.
pub(super) fn is_place(tree: &Folder, path: &str) -> bool {
    path.is_empty() || check_path(path).is_ok() && matches!(tree.look(Path::new(path)), Ok(Some(_)))
}

/// Whether a path counts as code, which submissions do not see.
pub(super) fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    CODE_ENDINGS.contains(&ending.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempts::{attempt, entry};

    #[test]
    fn places_are_those_of_the_tree_from_the_folder_of_the_command() {
        let in_data = Entry { cwd: "data/deep".to_owned(), ..entry("shop sum") };
        let named = |path: &str| from_root(&in_data, path);
        assert_eq!(named("a.csv").as_deref(), Some("data/deep/a.csv"));
        assert_eq!(named("../a.csv").as_deref(), Some("data/a.csv"));
        assert_eq!(named("../..").as_deref(), Some(""));
        for outside in ["../../../a", "/etc/passwd"] {
            assert_eq!(named(outside), None, "{outside}");
        }
        assert!(is_code("src/a.PY") && is_code("x.tar.gz") && !is_code("py") && !is_code("a.csv"));
    }

    #[test]
    fn other_input_has_a_name_of_its_own_and_its_attempts_that_of_the_command() {
        let own = Entry { name: Name::new("sum").unwrap(), ..entry("shop sum 1") };
        let given = |argument: &str| Given {
            arguments: vec!["sum".to_owned(), argument.to_owned()],
            ..Given::default()
        };
        let [one, same, other] = ["2", "2", "3"].map(|argument| group_with(&own, &given(argument)));
        assert_eq!(one.function, same.function);
        assert!(one.function != other.function && one.function != "sum", "{}", one.function);
        assert_eq!(other.entry.unwrap().command.line(), "shop sum 3");
        let made = attempt(
            &crate::record::world::World::Base,
            crate::record::outcome::Method::Fork,
            0,
            crate::record::outcome::Outcome::Passed,
            "",
        );
        assert_eq!(named(made, &own).cases[0].case_id, "entry::sum");
    }
}
