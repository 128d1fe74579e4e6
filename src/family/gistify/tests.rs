//! Whatever is handed in is read or refused, in bounded time, without a panic.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::score::*;

const PIECES: [&str; 48] = [
    "def ",
    "test_a",
    "(",
    ")",
    ":",
    "\n",
    "\n    ",
    "\n        ",
    "class ",
    "A",
    "if ",
    "else",
    "elif ",
    "try",
    "except ",
    "finally",
    "import ",
    "from ",
    ".",
    "tiny",
    "tiny.core",
    " as ",
    ",",
    "=",
    "1",
    "'''",
    "'",
    "\"",
    "f'{",
    "}'",
    "#",
    "\\",
    "\r\n",
    "\r",
    "\u{c}",
    "\0",
    "\u{feff}",
    "é",
    "lambda ",
    "[",
    "]",
    "{",
    "match x",
    "case _",
    "async ",
    "await ",
    "@",
    "\t",
];
const ORIGINAL: &str = "import tiny\nfrom tiny.core import join as glue\n\n\ndef test_a(x):\n    '''Doc\n    more'''\n    \
                        assert tiny.core.f(x) == glue('''\n  kept''')\n";

fn modules() -> Modules {
    ["tiny", "tiny.core"].into_iter().collect()
}

fn original() -> File<'static> {
    File { path: "tests/test_a.py", text: ORIGINAL }
}

fn test() -> TestName {
    let Ok(test) = "test_a".parse();
    test
}

/// What this thread has worked so far: other work on the machine is no part of it.
pub(super) fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.expect("every Linux has this clock").into()
}

/// Everything that a submission goes through. Gives whether it can be read.
fn all(text: &str) -> bool {
    let (modules, test) = (modules(), test());
    let corpus = Corpus::of(&[original()], modules.clone());
    let existence = corpus.line_existence(text);
    let execution = line_execution(text, &(1..50).step_by(2).collect());
    let overlap = test_overlap(text, original(), &test, &modules).unwrap().unwrap();
    let scenery = Scenery { modules: &modules, test: &test, root: "/testbed", hidden: &BTreeSet::new() };
    let found = findings(text, scenery);
    assert_eq!(existence.is_ok(), execution.is_ok());
    assert_eq!(existence.is_ok(), found.is_ok());
    if let (Ok(existence), Ok(execution)) = (&existence, &execution) {
        let lines = |line: &Line| (line.first, line.last, line.kind);
        assert!(
            existence
                .lines
                .iter()
                .map(lines)
                .eq(execution.lines.iter().map(|it| (it.first, it.last, it.kind)))
        );
        assert!(existence.lines.iter().all(|line| 1 <= line.first && line.first <= line.last));
    }
    match inject(text, original(), &test, &modules) {
        Ok(evaluated) => {
            assert!(overlap.submitted > 0);
            assert!(line_execution(&evaluated.text, &BTreeSet::new()).is_ok(), "{:?}", evaluated.text);
            let sabotaged = sabotage(&evaluated).unwrap();
            assert!(line_execution(&sabotaged, &BTreeSet::new()).is_ok(), "{sabotaged:?}");
            let again = inject(&evaluated.text, original(), &test, &modules).unwrap();
            assert_eq!(again.defined_as, evaluated.defined_as);
        }
        Err(NotInjected::Missing) => assert!(existence.is_ok()),
        Err(NotInjected::Unparsable { .. }) => assert!(existence.is_err()),
        Err(NotInjected::Original { reason }) => panic!("{reason:?}"),
    }
    existence.is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = text_of(&bytes) {
            all(text);
        }
    }

    #[test]
    fn arbitrary_pieces_of_python_are_read_or_refused(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40)) {
        all(&pieces.concat());
    }

    #[test]
    fn damaged_files_are_read_or_refused(at in 0..ORIGINAL.len(), piece in proptest::sample::select(&PIECES[..]), cut in 0..20usize) {
        let end = (at + cut).min(ORIGINAL.len());
        all(&format!("{}{piece}{}", &ORIGINAL[..at], &ORIGINAL[end..]));
    }
}

#[test]
fn a_test_moves_to_the_depth_of_the_one_that_it_replaces() {
    let submission = "if True:\r\n\tdef test_a(x): pass  # gone\r\nafter = 1\r\n";
    let evaluated = inject(submission, original(), &test(), &modules()).unwrap();
    let expected = "if True:\r\n\tdef test_a(x):\n\t    '''Doc\n    more'''\n\t    assert f(x) == glue('''\n  kept''')\r\nafter = 1\r\n";
    assert_eq!(evaluated.text, expected);
    assert_eq!(evaluated.replacement, Some(Replacement { first: 2, last: 2, lines: 5 }));
    let lines: Vec<_> = (1..=7).map(|line| evaluated.submitted_line(line)).collect();
    assert_eq!(lines, [Some(1), None, None, None, None, None, Some(3)]);
}

#[test]
fn names_that_the_test_binds_itself_are_no_modules() {
    let original =
        File { path: "tests/test_a.py", text: "import tiny\ndef test_a(tiny):\n    assert tiny.core.x\n" };
    let evaluated = inject("def test_a(tiny):\n    pass\n", original, &test(), &modules()).unwrap();
    assert_eq!(evaluated.text, "def test_a(tiny):\n    assert tiny.core.x\n");
}

#[test]
fn a_name_that_the_submitted_test_uses_comes_before_one_that_the_file_binds() {
    let original =
        File { path: "tests/test_a.py", text: "import tiny\ndef test_a():\n    assert tiny.s(1)\n" };
    let put_in = |asked: &str| {
        let file = format!("def s(x): pass\ntiny = s\ndef test_a():\n    assert {asked}(2)\n");
        let evaluated = inject(&file, original, &test(), &modules()).unwrap();
        evaluated.text.lines().last().unwrap().trim().to_owned()
    };
    assert_eq!(put_in("s"), "assert s(1)");
    assert_eq!(put_in("tiny.s"), "assert tiny.s(1)");
    assert_eq!(put_in("other"), "assert tiny.s(1)");
}

#[test]
fn a_name_is_chosen_by_the_dotted_names_of_the_submitted_test() {
    let put_in = |original: &str, submitted: &str| {
        let text = format!("import tiny\ndef test_a():\n    {original}\n");
        let original = File { path: "tests/test_a.py", text: &text };
        let file = format!("class tiny:\n    s = 1\ndef total(): pass\ndef test_a():\n    {submitted}\n");
        let evaluated = inject(&file, original, &test(), &modules()).unwrap();
        evaluated.text.lines().last().unwrap().trim().to_owned()
    };
    let asks = "assert tiny.total(1)";
    assert_eq!(put_in(asks, "assert tiny.s == total(2)"), "assert total(1)", "`tiny` has no `total` there");
    assert_eq!(put_in(asks, "assert tiny.s == tiny.total(2)"), asks);
    assert_eq!(put_in(asks, "total = tiny.total; assert total(2)"), asks, "its own name is none of the file");
    let binds = "total = tiny.total(1); assert total";
    assert_eq!(put_in(binds, "assert total(2)"), "total = globals()['total'](1); assert total");
    assert_eq!(put_in(binds, "assert tiny.total(2)"), binds);
}

#[test]
fn imports_of_others_stay_when_a_statement_imports_both() {
    let original = File {
        path: "t.py",
        text: "def test_a():\n    import os, tiny, json as j\n    from tiny.core import (a,\n        b as c)\n    assert c\n",
    };
    let evaluated = inject("b = 1\ndef test_a():\n    pass\n", original, &test(), &modules()).unwrap();
    assert_eq!(
        evaluated.text,
        "b = 1\ndef test_a():\n    import os; import json as j\n    c = b\n    assert c\n"
    );
    assert_eq!(evaluated.replacement.map(|it| it.lines), Some(4));
}

#[test]
fn an_inherited_test_is_replaced_in_its_base() {
    let text = "class Base:\n    def test_a(self):\n        assert 1\nclass TestIt(Base): pass\n";
    let Ok(test) = "TestIt::test_a".parse();
    let original = File { path: "t.py", text };
    let submission = "class Base:\n    def test_a(self):\n        assert 2\nclass TestIt(Base):\n    x = 1\n";
    let evaluated = inject(submission, original, &test, &modules()).unwrap();
    assert!(evaluated.text.contains("assert 1") && !evaluated.text.contains("assert 2"));
    assert_eq!(evaluated.defined_as.unwrap().to_string(), "Base::test_a");
    let alone =
        inject("class TestIt:\n    def test_a(self):\n        assert 2\n", original, &test, &modules());
    assert_eq!(alone, Err(NotInjected::Missing));
}

#[test]
fn a_test_without_definition_is_left_as_it_is() {
    let original = File { path: "t.py", text: "test_a = make()\n" };
    let evaluated = inject("x = 1\n", original, &test(), &modules()).unwrap();
    assert_eq!((evaluated.injection, sabotage(&evaluated)), (Injection::None, None));
    assert_eq!(test_overlap("x = 1\n", original, &test(), &modules()), Ok(None));
}

#[test]
fn sabotage_comes_before_everything_but_the_docstring() {
    for (body, sabotaged) in [
        (": pass\n", ": raise AssertionError('gistmill'); pass\n"),
        (":\n    '''d'''; x = 1\n", ":\n    '''d'''; raise AssertionError('gistmill'); x = 1\n"),
        (
            ":\n    'd'\n    if x:\n        y\n",
            ":\n    'd'\n    raise AssertionError('gistmill')\n    if x:\n        y\n",
        ),
        (
            ":\n    @d\n    def f(): pass\n",
            ":\n    raise AssertionError('gistmill')\n    @d\n    def f(): pass\n",
        ),
        (": 'd'\n", ": raise AssertionError('gistmill'); 'd'\n"),
    ] {
        let text = format!("def test_a(){body}");
        let original = File { path: "t.py", text: &text };
        let evaluated = inject(&text, original, &test(), &modules()).unwrap();
        assert_eq!(sabotage(&evaluated), Some(format!("def test_a(){sabotaged}")));
    }
}

#[test]
fn large_submissions_take_time_in_proportion() {
    let start = cpu_time();
    let test = "def test_a(x):\n    pass\n";
    for text in [
        format!("{test}x = [{}]\n", "1,".repeat(100_000)),
        format!("{test}{}", "import tiny; tiny.core.f(x)\n".repeat(4_000)),
        format!("{test}{}", "def test_a(x): tiny.core.f(x)\n".repeat(4_000)),
        format!("{test}x = '{}'\n", "y".repeat(5_000_000)),
        format!("{test}{}", "#\n".repeat(500_000)),
        format!("{test}if x: pass\n{}", "else_ = 1\n".repeat(10_000)),
        format!("{test}x = {}1{}\n", "f(".repeat(150), ")".repeat(150)),
    ] {
        assert!(all(&text));
    }
    for text in
        ["(".repeat(2_000_000), "x = ".to_owned() + &"not ".repeat(1_000_000), "a.b".repeat(1_000_000)]
    {
        assert!(!all(&text));
    }
    let taken = cpu_time().saturating_sub(start);
    assert!(taken < Duration::from_mins(1), "{taken:?}");
}

#[test]
fn an_original_is_equal_to_itself_though_a_module_is_called_like_one_of_its_names() {
    let modules: Modules = ["tiny", "tiny.app", "app", "shapes"].into_iter().collect();
    let text = "import tiny\nfrom tiny import shapes as s, core\n\n\n\
def test_a(x):\n    from tiny import app\n\n    assert app.run(tiny.app.run, s.side, core.x)\n\n\n\
def test_b(app):\n    import tiny.app as shapes\n\n    assert app.run(shapes.run)\n";
    let file = File { path: "tests/test_a.py", text };
    for name in ["test_a", "test_b"] {
        let test: TestName = name.parse().unwrap();
        let evaluated = inject(text, file, &test, &modules).unwrap();
        assert_eq!(evaluated.injection, Injection::Equal, "{name}: {}", evaluated.text);
        let overlap = test_overlap(text, file, &test, &modules).unwrap().unwrap();
        assert!((overlap.f1() - 1.0).abs() < f64::EPSILON, "{name}: {overlap:?}");
    }
}

#[test]
fn copies_beyond_those_of_a_file_are_missing() {
    let text =
        "import os\nimport os\n\n\ndef f(x):\n    if x:\n        g()\n        g()\n    else:\n        h()\n";
    let again = "import os\n";
    let files = [File { path: "a.py", text }, File { path: "b.py", text: again }];
    let corpus = Corpus::of(&files, Modules::default());
    let rate = |text: &str| {
        let found = corpus.line_existence(text).unwrap();
        let here =
            found.lines.iter().filter(|line| matches!(line.existence, Existence::Found { .. })).count();
        assert_eq!(here as u32, found.rate.part, "{text}");
        (found.rate.part, found.rate.whole)
    };
    assert_eq!(rate(text), (8, 8), "the file itself");
    assert_eq!(rate(&"import os\n".repeat(1_000)), (2, 1_000), "as often as the file that has it most often");
    assert_eq!(rate("def f(x):\n    g()\n    g()\n    g()\n"), (3, 4), "of a line in a block");
    assert_eq!(
        rate(&"def f(x):\n    g()\n".repeat(3)),
        (3, 6),
        "of a block: its header once, its line twice"
    );
    let other = "    if x:\n        pass\n    else:\n        h()\n";
    assert_eq!(rate(&format!("def f(x):\n{}", other.repeat(2))), (4, 9), "of conditions and their else");
}

#[test]
fn a_submission_of_too_many_statements_is_refused() {
    let corpus = Corpus::of(&[], Modules::default());
    let refused = |text: &str| corpus.line_existence(text).err();
    let many = Some(Unreadable::TooManyStatements { most: 50_000 });
    assert_eq!(refused(&"x\n".repeat(50_001)), many);
    assert_eq!(refused(&format!("def f():\n{}", " x; x\n".repeat(25_000))), many);
    assert_eq!(refused(&"x\n".repeat(50_000)), None);
}
