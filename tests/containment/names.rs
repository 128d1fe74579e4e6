//! What others wrote is shown, not obeyed: on the terminal, in the card and on the page.

use crate::builds::runs;
use crate::caller::{Caller, finish};
use crate::evidence::{Built, controls};

use std::time::Duration;

/// What a command on the finished dataset prints.
#[track_caller]
fn shown(built: &Built, arguments: &[&str]) -> String {
    let ended = finish(built.place.gistmill(arguments), Duration::from_mins(3)).expect("ends");
    assert!(matches!(ended.code(), Some(0..=2)), "{ended:?}");
    format!("{}{}", ended.stdout, ended.stderr)
}

pub fn a_build_prints_no_control_characters(caller: Caller) {
    let built = runs(caller);
    let ended = built.ended();
    for text in [&ended.stdout, &ended.stderr] {
        let found = controls(text);
        assert!(found.is_empty(), "{found:?} in {text:?}");
    }
}

pub fn showing_evidence_prints_no_control_characters(caller: Caller) {
    let built = runs(caller);
    assert!(built.groups("names").len() > 5, "{:#?} {:?}", built.groups("names"), built.failure("names"));
    for test in
        ["test_evidence", "test_message", "test_exception_type", "test_escapes", "test_line", "raises"]
    {
        for format in ["human", "json"] {
            let text = shown(&built, &["show", test, "--format", format]);
            let found = controls(&text);
            assert!(found.is_empty(), "{test}, {format}: {found:?} in {text:?}");
        }
    }
}

pub fn the_card_holds_no_markup_of_a_repository(caller: Caller) {
    let built = runs(caller);
    let card = String::from_utf8(built.dataset().bytes("README.md")).expect("is text");
    for markup in ["<script>", "![x](", "](http://evil"] {
        assert!(!card.contains(markup), "{markup} in {card}");
    }
    assert!(controls(&card).is_empty(), "{card:?}");
    assert!(!card.lines().any(|line| line.starts_with("- forged") || line.starts_with("RUN ")), "{card}");
}

pub fn the_page_holds_no_markup_of_a_repository(caller: Caller) {
    let built = runs(caller);
    let page = String::from_utf8(built.dataset().bytes("report.html")).expect("is text");
    assert!(!page.contains("<script>alert(1)"), "the page runs what a repository wrote");
    assert!(!page.contains("src=\"http"), "the page asks the network");
}

pub fn a_name_with_a_new_line_is_one_row(caller: Caller) {
    let built = runs(caller);
    assert_eq!(built.failure("names"), None);
    let groups = built.groups("names");
    assert_eq!(
        groups.get("tests/test_names.py::test_beside_them").map(String::as_str),
        Some("kept"),
        "{groups:#?}"
    );
    for line in String::from_utf8(built.dataset().bytes("instances.jsonl")).expect("is text").lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("one row is one line");
        let command = crate::common::dataset::text(&row["entry_command"]);
        assert!(controls(command).is_empty() && !command.contains('\n'), "{command:?}");
    }
}

pub fn a_conftest_that_raises_costs_its_repository_alone(caller: Caller) {
    let built = runs(caller);
    built.assert_neighbour_is_complete();
    let said = format!("{:?} {:?}", built.failure("raises"), built.groups("raises"));
    assert!(
        built.failure("raises").is_some()
            || built.groups("raises").values().all(|one| one == "collection-error"),
        "{said}"
    );
}
