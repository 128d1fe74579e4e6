//! What comes from the processes of a repository: answers on the runner's pipe, node IDs, output, JUnit files.

use std::collections::BTreeMap;

use gistmill::attempt::{cold, normalize::Normalizer};
use gistmill::backend::Places;
use gistmill::collect::group;
use gistmill::runner::frame::{self, Frame};
use gistmill::runner::protocol::{Answer, CollectError, Item};
use gistmill::runner::report::Attempted;
use proptest::prelude::*;

use super::{bytes, fuzz, text};

const GROUP_DONE: &str = r#"{"attempt":0,"report":"[\"case\",{\"index\":0,\"outcome\":\"passed\",\"stdout\":\"x\",\"duration_ms\":1.5,\"process_ids\":[7]}]\n[\"trace\",{\"functions\":[{\"file\":\"a.py\",\"function\":\"f\",\"line\":1,\"calls\":2,\"order\":0,\"lines\":[1,2]}],\"total_calls\":3,\"starts_threads\":true,\"complete\":true}]\n[\"connections\",[\"1.2.3.4:5\"]]\n[\"deselected\",[null,1]]\n[\"end\",{\"pytest_exit\":0,\"pytest_error\":null}]\n","exit":{"kind":"timed_out","scope":"case","index":null},"leftover":1,"raw_output":"","running":-1,"duration_ms":3.25}"#;
const REPORT: &str = concat!(
    r#"["case",{"index":0,"outcome":"passed","stdout":"x","duration_ms":1.5,"process_ids":[7]}]"#,
    "\n",
    r#"["trace",{"functions":[{"file":"a.py","function":"f","line":1,"calls":2,"order":0,"lines":[1,2]}],"total_calls":3,"starts_threads":true,"complete":true}]"#,
    "\n",
    r#"["connections",["1.2.3.4:5"]]"#,
    "\n",
    r#"["deselected",[null,1]]"#,
    "\n",
    r#"["end",{"pytest_exit":0,"pytest_error":null}]"#,
    "\n",
);
const DISCOVERED: &str = r#"{"items":[{"index":0,"node_id":"tests/test_a.py::test_b[x]","file":"tests/test_a.py","classes":["A"],"function":"test_b","parameters":"x","kind":"function","markers":[],"fixtures":["f"],"line":3}],"errors":[{"file":"a.py","kind":"error","text":"t","missing_module":"m"}],"config":{"x":[1]},"neutralise":[{"plugin":"p","options":["-p","no:x"],"reason":"r"}]}"#;
const FAILED: &str = r#"{"stage":"collect","error":{"exception":null,"text":"\ud800"}}"#;
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "null",
    "true",
    "-1",
    "1e400",
    "18446744073709551616",
    "\n",
    " ",
    "\0",
    "\"id\"",
    "\"type\"",
    "\"group_done\"",
    "\"kind\"",
    "\"cases\"",
    "@gistmill t ",
    "\n@gistmill t 12 closed 2 ",
    "@gistmill wrong 3 closed 3 ",
    "999999999999 ",
    "é",
];

fn frame((kind, json): (&str, &str)) -> Vec<u8> {
    format!("noise\n@gistmill t 2 {kind} {} {json}\n\n@gistmill u 3 closed 2 {{}}", json.len()).into_bytes()
}

#[test]
fn answers_on_the_pipe() {
    let samples = [("group_done", GROUP_DONE), ("discovered", DISCOVERED), ("failed", FAILED)];
    let samples = samples.map(frame).to_vec();
    fuzz(bytes(samples, JSON), |bytes| {
        let mut pipe = bytes.as_slice();
        for _ in 0..bytes.len() + 2 {
            match frame::read_answer(&mut pipe, "t") {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
        panic!("more answers than bytes");
    });
}

#[test]
fn reports_of_groups() {
    fuzz(bytes([REPORT, GROUP_DONE].map(|text| text.as_bytes().to_vec()).to_vec(), JSON), |bytes| {
        let report = Some(String::from_utf8_lossy(bytes).into_owned());
        let attempted: Attempted =
            serde_json::from_str(r#"{"report":null,"exit":{"kind":"exited","code":0},"duration_ms":1.0}"#)
                .expect("a frame");
        if let Ok(done) = (Attempted { report, ..attempted }).read() {
            assert!(done.cases.iter().all(|case| case.duration_ms >= 0.0));
            if let Some(Ok(trace)) = done.trace {
                assert!(trace.functions.iter().all(|function| !function.file.starts_with('/')));
            }
        }
    });
}

#[test]
fn answers_are_read_whole_between_any_noise() {
    let noise = || bytes(vec![b"plain output\n".to_vec(), b"\n@gistmill x 5 failed 2 {}".to_vec()], JSON);
    fuzz((noise(), noise()), |(before, after)| {
        let before = String::from_utf8_lossy(before).replace("@gistmill t ", "@gistmill v ");
        let mut all = before.into_bytes();
        all.extend_from_slice(format!("\n@gistmill t 2 failed {} {FAILED}\n", FAILED.len()).as_bytes());
        all.extend_from_slice(after);
        // A lone surrogate is no JSON for this reader: an error, and never another answer.
        let read = frame::read_answer(&mut all.as_slice(), "t").expect("the frame is whole");
        assert!(matches!(read, Some(Frame::Unreadable(_))), "{read:?}");
        let good = FAILED.replace("\\ud800", "x");
        let all =
            [all.split(|byte| *byte == b'@').next().unwrap_or_default(), &frame(("failed", &good))].concat();
        let read = frame::read_answer(&mut all.as_slice(), "t").expect("reads").expect("is there");
        let Frame::Answer(answer) = read else { panic!("{read:?}") };
        assert!(answer.id == 2 && matches!(answer.answer, Answer::Failed { .. }));
    });
}

fn item(index: usize, node_id: &str, parts: &[String]) -> Item {
    let part = |at: usize| parts.get(at).cloned().unwrap_or_default();
    Item {
        defined_in: None,
        index,
        node_id: node_id.to_owned(),
        file: part(0),
        classes: parts.iter().skip(3).cloned().collect(),
        function: part(1),
        parameters: parts.get(2).cloned(),
        kind: if index % 5 == 4 { "DoctestItem".to_owned().into() } else { "function".to_owned().into() },
        markers: Vec::new(),
        fixtures: Vec::new(),
        line: None,
    }
}

const IDS: &[&str] = &[
    "::",
    "/",
    "[",
    "]",
    ".py",
    "\n",
    " ",
    "\0",
    "\\",
    "..",
    "/testbed",
    "/testbed/",
    "/opt/venv",
    "/tmp",
    "/tmp/pytest-of-gistmill/pytest-0",
    "/home/gistmill",
    "<root>",
    "0x7f0011223344",
    "é",
    "😀",
    "\u{202e}",
    "'",
    "\"",
    "-k",
    "a",
    "::TestA",
    "12345",
    "in 0.01s",
    "pytest-0",
];

#[test]
fn node_ids() {
    let normalizer = Normalizer::new(&Places::in_sandbox(), "gistmill", std::path::Path::new("/usr"));
    let one = || text(&["tests/test_a.py::TestB::test_c[x-1]", "/testbed/tests/a.py"], IDS);
    let parts = prop::collection::vec(one(), 0..5);
    fuzz(prop::collection::vec((one(), parts), 0..8), |rows| {
        let items: Vec<Item> =
            rows.iter().enumerate().map(|(index, (id, parts))| item(index, id, parts)).collect();
        let (groups, unsupported) = group::group(&items, &normalizer);
        let cases: usize = groups.iter().map(|group| group.cases.len()).sum();
        assert_eq!(cases + unsupported.len(), items.len(), "each item is in one row");
        for group in &groups {
            assert!(!group.command().line().contains(|c: char| c.is_control()));
        }
        let errors: Vec<CollectError> = rows
            .iter()
            .map(|(id, parts)| CollectError {
                node_id: id.clone(),
                file: parts.first().cloned().unwrap_or_default(),
                kind: gistmill::runner::protocol::CollectErrorKind::Error,
                exception: None,
                text: id.clone(),
                missing_module: None,
            })
            .collect();
        let _ = group::uncollected(&errors, &normalizer);
    });
}

#[test]
fn output() {
    let normalizer = Normalizer::new(&Places::in_sandbox(), "gistmill", std::path::Path::new("/usr"));
    fuzz(text(&["at 0x7f0011223344 in /testbed/a.py: 12345", "1 passed in 0.01s"], IDS), |text| {
        let once = || {
            let mut replaced = BTreeMap::new();
            (normalizer.output(text, &[12_345], &mut replaced), replaced)
        };
        let (normal, replaced) = once();
        assert_eq!(once(), (normal.clone(), replaced.clone()));
        assert!(!replaced.is_empty() || &normal == text, "changed, and nothing was listed");
        // In the middle of a word it is no address.
        let address = |c: char| !c.is_alphanumeric() && c != '_';
        for (at, found) in normal.match_indices("0x7f0011223344 ") {
            assert!(!normal[..at].chars().next_back().is_none_or(address), "{found} is left in {normal}");
        }
        assert_eq!(normalizer.id(text), normalizer.id(text));
    });
}

const XML: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "<testcase",
    " name=\"a\"",
    "<failure/>",
    "<error>",
    "<skipped type=\"pytest.xfail\"/>",
    "&",
    "&#x0;",
    "&lt;",
    "&#xffffffff;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "&b;",
    "<?xml",
    "?>",
    "\"",
    "'",
    "\0",
    "é",
    "\n",
];

#[test]
fn junit_files() {
    let sample = "<?xml version=\"1.0\"?><testsuites><testsuite><testcase classname=\"t\" name=\"a[x &lt; y]\" time=\"0.1\" />\
                  <testcase name=\"b\"><failure message=\"m\">text</failure></testcase></testsuite></testsuites>";
    fuzz(text(&[sample], XML), |text| drop(cold::parse_report(text)));
}
