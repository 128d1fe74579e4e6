//! Pytest items → groups. Pure: identity comes from what pytest knows (file, class chain, original function).

use std::collections::BTreeMap;

use crate::attempt::normalize::Normalizer;
use crate::record::collected::{Case, Group, Uncollected};
use crate::record::entry::GroupKey;
use crate::record::flag::MACHINE_PATH;
use crate::record::verdict::Cause;
use crate::runner::protocol::{CollectError, CollectErrorKind, Item, ItemKind};
use crate::terminal::is_obeyed;

/// Groups in the order in which pytest first names them, and what is not a Python test function.
pub fn group(items: &[Item], normalizer: &Normalizer) -> (Vec<Group>, Vec<Uncollected>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<GroupKey, usize> = BTreeMap::new();
    let mut unsupported = Vec::new();
    for item in items {
        if let ItemKind::Other(kind) = &item.kind {
            let words = format!("pytest item of kind {kind}");
            unsupported.push(left_out(item, normalizer, Cause::UnsupportedItem, words));
            continue;
        }
        let key = item.key();
        if key.group_id().chars().any(is_obeyed) {
            let words = "its name has control characters: no entry command can be written for it".to_owned();
            unsupported.push(left_out(item, normalizer, Cause::CollectionError, words));
            continue;
        }
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push(Group::of(key.clone()));
            groups.len() - 1
        });
        add_case(&mut groups[place], item, normalizer);
    }
    (groups, unsupported)
}

fn add_case(group: &mut Group, item: &Item, normalizer: &Normalizer) {
    let (case_id, machine_path) = normalizer.id(&item.node_id);
    let parameters = item.parameters.as_deref().map(|text| normalizer.id(text).0);
    if machine_path && !group.flags.iter().any(|flag| flag == MACHINE_PATH) {
        group.flags.push(MACHINE_PATH.to_owned());
    }
    merge(&mut group.markers, &item.markers);
    merge(&mut group.fixtures, &item.fixtures);
    group.cases.push(Case { case_id, parameters, line: item.line });
}

fn merge(into: &mut Vec<String>, more: &[String]) {
    for name in more {
        if !into.contains(name) {
            into.push(name.clone());
        }
    }
}

fn left_out(item: &Item, normalizer: &Normalizer, cause: Cause, text: String) -> Uncollected {
    let (case_id, _) = normalizer.id(&item.node_id);
    let mut group = Group::of(item.key());
    group.group_id.clone_from(&case_id);
    group.cases.push(Case { case_id, parameters: None, line: item.line });
    Uncollected { group, cause, text }
}

/// Files that could not be collected, or were skipped whole: one row each.
pub fn uncollected(errors: &[CollectError], normalizer: &Normalizer) -> Vec<Uncollected> {
    let mut rows: BTreeMap<String, Uncollected> = BTreeMap::new();
    for error in errors {
        let cause = match error.kind {
            CollectErrorKind::Skipped => Cause::Skipped,
            CollectErrorKind::TimedOut => Cause::TimesOut,
            CollectErrorKind::Error => Cause::CollectionError,
        };
        let file = if error.file.is_empty() { error.node_id.clone() } else { error.file.clone() };
        let file = normalizer.id(&file).0;
        let text = normalizer.output(&error.text, &[], &mut BTreeMap::new());
        let key = GroupKey { file: file.clone(), classes: Vec::new(), function: String::new() };
        let mut group = Group::of(key);
        group.group_id.clone_from(&file);
        rows.entry(file).or_insert(Uncollected { group, cause, text });
    }
    rows.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(node_id: &str, file: &str, classes: &[&str], function: &str, parameters: Option<&str>) -> Item {
        Item {
            defined_in: None,
            index: 0,
            node_id: node_id.into(),
            file: file.into(),
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            function: function.into(),
            parameters: parameters.map(str::to_owned),
            kind: ItemKind::Function,
            markers: vec!["parametrize".into()],
            fixtures: Vec::new(),
            line: Some(3),
        }
    }

    fn normalizer() -> Normalizer {
        Normalizer::new(&crate::backend::Places::in_sandbox(), "x", std::path::Path::new("/usr"))
    }

    #[test]
    fn a_name_that_no_command_line_shows_is_a_row_of_its_own() {
        let items = [
            item("t.py::test_a\u{1b}[2J", "t.py", &[], "test_a\u{1b}[2J", None),
            item("t.py::test_b", "t.py", &[], "test_b", None),
        ];
        let (groups, left_out) = group(&items, &normalizer());
        assert_eq!(groups.len(), 1);
        assert_eq!((left_out.len(), left_out[0].cause.clone()), (1, Cause::CollectionError));
    }

    #[test]
    fn ids_with_brackets_colons_and_spaces_stay_whole_and_interleaved_groups_are_joined() {
        let items = [
            item("t.py::test_a[x::y z[1]]", "t.py", &[], "test_a", Some("x::y z[1]")),
            item("t.py::test_b", "t.py", &[], "test_b", None),
            item("t.py::test_a[\n]", "t.py", &[], "test_a", Some("\n")),
            item("t.py::T::test_a", "t.py", &["T"], "test_a", None),
        ];
        let (groups, unsupported) = group(&items, &normalizer());
        let ids: Vec<_> = groups.iter().map(|group| (group.group_id.as_str(), group.cases.len())).collect();
        assert_eq!(ids, [("t.py::test_a", 2), ("t.py::test_b", 1), ("t.py::T::test_a", 1)]);
        assert_eq!(groups[0].cases[0].case_id, "t.py::test_a[x::y z[1]]");
        assert!(unsupported.is_empty());
    }

    #[test]
    fn a_function_whose_name_holds_a_bracket_is_not_cut() {
        let items = [item("t.py::test_[odd]", "t.py", &[], "test_[odd]", None)];
        assert_eq!(group(&items, &normalizer()).0[0].group_id, "t.py::test_[odd]");
    }

    #[test]
    fn machine_paths_are_replaced_and_flagged() {
        let items = [item("t.py::test_p[/testbed/x]", "t.py", &[], "test_p", Some("/testbed/x"))];
        let (groups, _) = group(&items, &normalizer());
        assert_eq!(groups[0].cases[0].parameters.as_deref(), Some("<root>/x"));
        assert_eq!(groups[0].flags, [MACHINE_PATH]);
    }

    #[test]
    fn a_file_that_hangs_when_it_is_imported_times_out_and_others_cannot_be_collected() {
        let error = |file: &str, kind: &str| -> CollectError {
            serde_json::from_value(serde_json::json!({"file": file, "kind": kind, "text": "why"})).unwrap()
        };
        let errors = [error("a.py", "error"), error("b.py", "timed_out"), error("c.py", "skipped")];
        let rows = uncollected(&errors, &normalizer());
        let causes: Vec<_> =
            rows.iter().map(|row| (row.group.group_id.as_str(), row.cause.clone())).collect();
        let expected =
            [("a.py", Cause::CollectionError), ("b.py", Cause::TimesOut), ("c.py", Cause::Skipped)];
        assert_eq!(causes, expected);
    }

    #[test]
    fn doctests_are_unsupported_items() {
        let mut doctest = item("a.py::a.f", "a.py", &[], "a.f", None);
        doctest.kind = ItemKind::Other("DoctestItem".into());
        let (groups, unsupported) = group(&[doctest], &normalizer());
        assert!(groups.is_empty());
        assert_eq!(
            (unsupported[0].cause.clone(), unsupported[0].group.group_id.as_str()),
            (Cause::UnsupportedItem, "a.py::a.f")
        );
    }
}
