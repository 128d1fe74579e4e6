//! Edited texts of tests.

use super::twins::{Answer, other_value, twins};
use super::*;

fn of(file: &str, test: &str) -> Vec<Proposal> {
    variants(file, &test.parse().unwrap(), "7 owner__name.test-1").unwrap()
}

/// The lines of a proposal that the file does not have, as they are with an assertion where it is asked without one.
fn new_lines(file: &str, one: &Proposal) -> Vec<String> {
    let known: BTreeSet<&str> = file.lines().map(str::trim).collect();
    let why = if file.contains(", 'why'") { ", 'why'" } else { "" };
    let asserted = |line: &str| {
        let test = line.strip_prefix("if not (")?.strip_suffix("): raise AssertionError")?;
        Some(format!("assert {test}{why}"))
    };
    let lines =
        one.source.lines().map(str::trim).map(|line| asserted(line).unwrap_or_else(|| line.to_owned()));
    lines.filter(|line| !known.contains(line.as_str())).collect()
}

/// The lines that a kind of edit leads to, each without what the line is moved by.
fn edited(file: &str, test: &str, kind: VariantKind) -> Vec<String> {
    let all = of(file, test).into_iter().filter(|one| one.kind == kind);
    let mut lines: Vec<String> = all.map(|one| new_lines(file, &one).join(" | ")).collect();
    lines.sort();
    lines
}

fn has(lines: &[String], line: &str) -> bool {
    lines.iter().any(|one| one == line)
}

const PLAIN: &str = "import pytest\n\n\ndef test_a(box):\n    \"\"\"Text.\"\"\"\n    box.put('x', 3)\n    \
                     assert box.get('x') == 3, 'why'\n    with pytest.raises(KeyError):\n        box.get('y')\n";

#[test]
fn an_assertion_asks_for_the_contrary() {
    let lines = edited(PLAIN, "test_a", VariantKind::NegatedAssert);
    assert!(has(&lines, "assert not (box.get('x') == 3), 'why'"), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("if (box.get('x') == 3): raise AssertionError('not this, "))
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
    let unit = "class TestA(Base):\n    def test_a(self):\n        self.assertEqual(f(1), 'a')\n        self.assertNotIn(1, x)\n";
    let lines = edited(unit, "TestA::test_a", VariantKind::NegatedAssert);
    assert_eq!(lines, ["self.assertIn(1, x)", "self.assertNotEqual(f(1), 'a')"]);
}

#[test]
fn where_no_constant_is_compared_with_nothing_is_equal_to_what_is_asked_for() {
    let asked = |lines: &str| {
        let file = format!("def test_a():\n    {lines}\n");
        let all = edited(&file, "test_a", VariantKind::OtherExpected);
        // Numbers are the seed's.
        let plain =
            |line: String| line.chars().map(|one| if one.is_ascii_digit() { '0' } else { one }).collect();
        all.into_iter().map(plain).map(|line: String| line.replace("00000", "N")).collect::<Vec<_>>()
    };
    let raises = |test: &str| format!("if not ({test}): raise AssertionError('not this, N')");
    assert_eq!(
        asked("assert f(x) == len(x)"),
        [raises("(f(x), N) == len(x)"), raises("f(x) == (len(x), N)")]
    );
    assert_eq!(asked("assert f(x) == []"), [raises("(f(x), N) == []"), raises("f(x) == ([], N)")]);
    assert_eq!(asked("assert f(x) in g(x)"), [raises("(f(x), N) in g(x)")]);
    assert_eq!(asked("assert f(x)"), [raises("(f(x)) == 'other N'")]);
    assert_eq!(asked("assert f(x) < g(x)"), [] as [&str; 0]);
    assert_eq!(
        asked("self.assertEqual(f(x), g(x))"),
        ["self.assertEqual((f(x), N), g(x))", "self.assertEqual(f(x), (g(x), N))"]
    );
    assert_eq!(asked("self.assertTrue(f(x))"), [] as [&str; 0]);
    let constant = asked("assert f(x) == [b'a']");
    assert!(!constant.is_empty() && !constant.iter().any(|line| line.contains("N)")), "{constant:?}");
}

#[test]
fn other_values_are_asked_for_and_given() {
    let lines = edited(PLAIN, "test_a", VariantKind::OtherExpected);
    assert!(has(&lines, "assert box.get('x') == 4, 'why'"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("if not (box.get('x') == 4): raise AssertionError(")));
    let lines = edited(PLAIN, "test_a", VariantKind::OtherInput);
    assert!(has(&lines, "box.put('xq', 3) | assert box.get('xq') == 3, 'why'"), "wherever it is: {lines:?}");
    assert!(has(&lines, "box.put('x', 4) | assert box.get('x') == 4, 'why'"), "{lines:?}");
    assert!(has(&lines, "box.put('xq', 3)") && has(&lines, "box.get('yq')"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("whyq")), "{lines:?}");
    let unit = "def test_a():\n    self.assertEqual(f(1, b=True), [b'a', None, 1.5, -2])\n";
    let lines = edited(unit, "test_a", VariantKind::OtherExpected);
    for one in [
        "[b'aq', None, 1.5, -2]",
        "[b'a', 0, 1.5, -2]",
        "[b'a', None, (1.5 + 1), -2]",
        "[b'a', None, 1.5, -3]",
    ] {
        assert!(has(&lines, &format!("self.assertEqual(f(1, b=True), {one})")), "{one}: {lines:?}");
    }
    assert!(has(
        &edited(unit, "test_a", VariantKind::OtherInput),
        "self.assertEqual(f(1, b=False), [b'a', None, 1.5, -2])"
    ));
}

#[test]
fn parameters_are_others_and_their_names_are_not() {
    let file = "@mark('a')\n@pytest.mark.parametrize('text, size', [('ab', 2), pytest.param('', 0, id='none')])\n\
                def test_a(text, size):\n    assert len(text) == size\n";
    let has = |kind: VariantKind, all: &[&str]| {
        let lines = edited(file, "test_a", kind);
        assert!(all.iter().all(|one| lines.iter().any(|line| line.contains(one))), "{lines:?}");
        lines.len()
    };
    let asked = has(VariantKind::OtherExpected, &["('ab', 3)", "pytest.param('', 1, id='none')"]);
    assert_eq!(asked, 2 + 2, "`size` is only compared with, and two are equal to nothing");
    has(VariantKind::OtherInput, &["('abq', 2)", "pytest.param('q', 0, id='none')"]);
    assert!(of(file, "test_a").iter().all(|one| one.source.starts_with("@mark('a')\n")));
}

/// Lines of those other inputs that refute so.
fn refuting(file: &str, refutes: Refutes) -> Vec<String> {
    let wanted = of(file, "test_a").into_iter();
    let wanted = wanted.filter(|one| one.kind == VariantKind::OtherInput && one.refutes == refutes);
    wanted.map(|one| new_lines(file, &one).join(" | ")).collect()
}

#[test]
fn what_is_asked_for_is_no_input_and_what_changes_with_it_refutes_where_the_test_still_passes() {
    let differs = |file: &str| refuting(file, Refutes::WhereItDiffers);
    let agrees = |file: &str| refuting(file, Refutes::WhereItAgrees);
    let plain = "def test_a():\n    x = 3\n    assert f(x) == 9\n";
    assert!(has(&differs(plain), "x = 4") && agrees(plain).is_empty(), "{:?}", differs(plain));
    let expected = "def test_a():\n    x = 9\n    assert f(3) == x\n";
    assert!(!has(&differs(expected), "x = 10") && has(&differs(expected), "assert f(4) == x"));
    let same = "def test_a():\n    f('a')\n    assert g() == 'a'\n";
    assert!(has(&agrees(same), "f('aq') | assert g() == 'aq'"), "{:?}", agrees(same));
    let both = "def test_a():\n    x = 'a'\n    f(x)\n    assert g() == x\n";
    assert!(has(&agrees(both), "x = 'aq'") && differs(both).is_empty());
    for doubtful in [
        "def test_a():\n    assert f(3) == Point(4)\n",
        "def test_a():\n    assert round(f(), 3) == 9\n",
        "def test_a():\n    assert f() == approx(3)\n",
        "def check(a, b):\n    assert f(a) == b\ndef test_a():\n    check(3, 4)\n",
        "def test_a(self):\n    self.check(3, 4)\n",
        "def test_a():\n    x = 3\n    assert f(x) == g(x)\n",
        "def test_a():\n    x = 3\n    assert f(x) != x\n",
        "def test_a():\n    assert np.allclose(f(), 5)\n",
        "def test_a():\n    assert f().startswith('ab')\n",
        "def test_a(self):\n    self.assertTrue(isclose(f(), 5))\n",
        "def check(a, b):\n    assert f(a) == b\ndef test_a():\n    check(3, 4)\ndef test_b():\n    check(5, 6)\n",
    ] {
        assert_eq!((differs(doubtful), agrees(doubtful)), (vec![], vec![]), "{doubtful}");
    }
    assert_eq!(of(same, "test_a")[0].refutes, Refutes::WhereItAgrees, "these come first");
}

#[test]
fn parameters_that_are_handed_over_are_inputs() {
    let file = "@pytest.mark.parametrize('text, size', [('ab', 2)])\ndef test_a(text, size):\n    assert f(text) == size\n";
    let lines = refuting(file, Refutes::WhereItDiffers);
    assert!(lines.iter().any(|line| line.contains("('abq', 2)")), "{lines:?}");
    assert!(!lines.iter().any(|line| !line.contains(", 2)")), "{lines:?}");
    let file = format!("CASES = [('ab', 2), ('c', 1)]\n{}", file.replace("[('ab', 2)]", "CASES"));
    let lines = refuting(&file, Refutes::WhereItDiffers);
    let wanted = "@pytest.mark.parametrize('text, size', [('abq', 2), ('c', 1)])";
    assert!(has(&lines, wanted), "{lines:?}");
}

#[test]
fn constants_and_fixtures_of_the_file_are_others_in_the_test() {
    let file = "import pytest\nSIZE, LIST = 1, [Item(2)]\nPRICES = {'a': 3}\nTWICE = 1\nTWICE = 2\n@pytest.fixture\n\
                def amount():\n    'Text.'\n    return 7\ndef test_a(amount):\n    'Text.'\n    assert f(PRICES, amount, TWICE, LIST) == 9\n";
    let lines = refuting(file, Refutes::WhereItDiffers);
    for one in ["PRICES = {'a': 4}", "PRICES = {'aq': 3}", "amount = 8"] {
        assert!(has(&lines, one), "{one}: {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains("TWICE =") || line.contains("LIST =")), "{lines:?}");
    let asked = "SIZE = 9\ndef test_a():\n    assert f(3) == SIZE\n";
    assert!(!refuting(asked, Refutes::WhereItDiffers).iter().any(|line| line.contains("SIZE =")));
    let own = "SIZE = 9\ndef test_a():\n    SIZE = f()\n    assert g(SIZE)\n";
    assert!(!refuting(own, Refutes::WhereItDiffers).iter().any(|line| line.starts_with("SIZE = 1")));
}

#[test]
fn a_text_or_a_number_is_another_one_of_the_same_length() {
    for text in ["'2024-01-05'", "b\"word\"", "'x'", "17", "'a b c'"] {
        let other = unlike(text, "7").unwrap();
        assert!(other != text && other.len() == text.len(), "{text} {other}");
        assert_eq!(unlike(text, "7").unwrap(), other);
    }
    for text in ["'a\\n'", "r'a'", "f'a'", "1.5", "0x1", "''", "'''a'''", "'-'", "\"it's\""] {
        assert_eq!(unlike(text, "7"), None, "{text}");
    }
}

#[test]
fn another_exception_is_asked_for() {
    let lines = edited(PLAIN, "test_a", VariantKind::OtherRaises);
    assert_eq!(lines.len(), 1);
    assert!(RARE.iter().any(|rare| has(&lines, &format!("with pytest.raises({rare}):"))), "{lines:?}");
    let file = "def test_a(self):\n    with self.assertRaises(EOFError):\n        f()\n";
    let lines = edited(file, "test_a", VariantKind::OtherRaises);
    assert!(lines.len() == 1 && !lines[0].contains("EOFError"), "{lines:?}");
}

#[test]
fn a_raise_stands_before_each_statement_and_says_what_missing_code_would() {
    let all = of(PLAIN, "test_a");
    let raises: Vec<&Proposal> = all.iter().filter(|one| one.kind == VariantKind::RaiseAt).collect();
    let lines: BTreeSet<u32> = raises.iter().map(|one| one.line).collect();
    assert_eq!(lines, BTreeSet::from([6, 7, 8, 9]), "not before the docstring");
    for one in raises {
        let says = one.says.as_deref().unwrap();
        assert!(one.source.contains(&format!("(\"{says}\")\n")), "{one:?}");
    }
    let file = "class T:\n    async def test_a(self):\n        if x: await f(); assert y\n        @d\n        def g():\n            return 1\n        g()\n";
    let lines = edited(file, "T::test_a", VariantKind::RaiseAt);
    assert_eq!(lines.len(), 5, "within a line as well, and not in a function of its own: {lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("if x: raise ") && line.ends_with("; await f(); assert y"))
    );
}

#[test]
fn a_test_that_asserts_nothing_is_edited_as_well() {
    let kinds: BTreeSet<VariantKind> =
        of("def test_a():\n    f()\n", "test_a").iter().map(|one| one.kind).collect();
    assert_eq!(kinds, BTreeSet::from([VariantKind::RaiseAt, VariantKind::Rephrased]));
}

#[test]
fn every_edited_file_is_python_and_differs_in_the_test_alone() {
    let crlf = PLAIN.replace('\n', "\r\n");
    let latin = format!("# -*- coding: latin-1 -*-\n{PLAIN}");
    let file = "x = 1\nclass A:\n\tclass B:\n\t\tdef test_a(self):\n\t\t\tassert (\n\t\t\t\tf('''a\nb''')\n\t\t\t\t== 2)\n\t\t\tassert g(\"\") is None\n\n\ty = 2\n";
    for (file, test) in [(PLAIN, "test_a"), (&crlf, "test_a"), (&latin, "test_a"), (file, "A::B::test_a")] {
        let test: TestName = test.parse().unwrap();
        let all = variants(file, &test, "7").unwrap();
        assert!(all.len() > 8, "{all:?}");
        for one in &all {
            let whole = in_file(file, &test, &one.source).unwrap().unwrap();
            assert!(text::parse(&whole, |_| ()).is_ok() && whole != file, "{whole}");
            let (start, end) = whole.split_once(&one.source).unwrap();
            assert!(file.starts_with(start) && file.ends_with(end), "{whole}");
        }
    }
    let inputs = edited(file, "A::B::test_a", VariantKind::OtherInput);
    assert!(inputs.iter().any(|lines| lines.ends_with("assert g(\"q\") is None")), "{inputs:?}");
    let with_mark = format!("\u{feff}{PLAIN}");
    assert_eq!(
        variants(&with_mark, &"test_a".parse().unwrap(), "7"),
        variants(PLAIN, &"test_a".parse().unwrap(), "7")
    );
}

#[test]
fn the_seed_decides_the_order_and_what_the_edits_say() {
    // No other letter is what the other call hands over.
    let plain = PLAIN.replace("'y'", "'other'");
    let with = |seed: &str| variants(&plain, &"test_a".parse().unwrap(), seed).unwrap();
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
    assert_eq!(with("7").len(), with("8").len());
}

#[test]
fn a_test_fails_at_its_beginning_and_at_its_end() {
    let fails = |file: &str| failing(file, &"test_a".parse().unwrap()).unwrap();
    let begins = PLAIN.replace("    box.put('x', 3)\n", "    raise AssertionError\n    box.put('x', 3)\n");
    assert_eq!(fails(PLAIN), [begins, format!("{PLAIN}    raise AssertionError\n")]);
    let file = "def test_a(): f(); g()\nx = 1\n";
    assert_eq!(fails(file), ["def test_a(): raise AssertionError; f(); g()\nx = 1\n"]);
    let file = "def test_a():\n  if x:\n    f()  # why";
    assert_eq!(fails(file)[1], "def test_a():\n  if x:\n    f()  # why\n  raise AssertionError\n");
    assert_eq!(fails("test_a = make()\n"), [""; 0]);
}

#[test]
fn a_test_that_the_file_does_not_define_has_no_variants() {
    assert_eq!(of("test_a = make()\n", "test_a"), []);
    assert_eq!(in_file("test_a = make()\n", &"test_a".parse().unwrap(), ""), Ok(None));
    assert!(variants("def f(:\n", &"f".parse().unwrap(), "7").is_err());
}

#[test]
fn other_calls_of_the_file_lend_what_they_hand_over() {
    let file = "def test_a():\n    assert not is_in('172.16.0.1', net='192.168.1.0/24')\n\n\
                def test_b():\n    assert is_in('192.168.1.1', net='192.168.1.0/24')\n    is_in(*x)\n    is_in('x')\n\
                class T:\n    def test_c(self):\n        m.is_in(y, net=['z', -1])\n";
    let first: Vec<Proposal> =
        of(file, "test_a").into_iter().filter(|one| one.kind == VariantKind::OtherInput).take(2).collect();
    let lent: Vec<String> = first.iter().map(|one| new_lines(file, one).join(" | ")).collect();
    let lent = lent.iter().map(String::as_str);
    assert_eq!(
        lent.collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "assert not is_in('192.168.1.1', net='192.168.1.0/24')",
            "assert not is_in('172.16.0.1', net=['z', -1])",
        ])
    );
    assert!(first.iter().all(|one| one.refutes == Refutes::WhereItDiffers));
    assert!(!of(file, "test_a").iter().any(|one| one.source.contains("is_in('x')")), "another form");
    let asked = "def test_a():\n    assert f(1) == g(2, 5)\n    g(9, 9)\n\ndef test_b():\n    g(3, 6)\n";
    assert!(!of(asked, "test_a").iter().any(|one| one.source.contains("== g(9, 9)")), "it is the test's own");
    let lent = of(asked, "test_a").into_iter().find(|one| one.source.contains("== g(3, 6)")).unwrap();
    assert_eq!(lent.refutes, Refutes::Never, "it may be what is asked for");
}

/// The changed lines of twins, with their question as `Q`.
fn asked(file: &str, test: &str) -> Vec<String> {
    let all = twins(file, &test.parse().unwrap(), "7 owner__name.test-1").unwrap();
    let known: BTreeSet<&str> = file.lines().collect();
    let lines = all.iter().map(|one| {
        let answer = Answer { expected: "2".into(), value: "1".into() };
        let digest = crate::record::id::sha256_hex(b"2=1");
        let question = format!(
            "__import__('hashlib').sha256((__import__('pprint').saferepr(other) + '=' + __import__('pprint').saferepr(it)).encode()).hexdigest() == '{digest}'"
        );
        let text = one.asks_for(&[answer]).replace(&question, "Q");
        text.lines().filter(|line| !known.contains(line)).map(str::trim).collect::<Vec<_>>().join(" | ")
    });
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

#[test]
fn a_value_is_asked_for_in_the_place_of_what_it_is_compared_with() {
    let has_all = |file: &str, test: &str, wanted: &[&str]| {
        let lines = asked(file, test);
        assert!(wanted.iter().all(|line| has(&lines, line)), "{lines:#?}");
    };
    let plain =
        "def test_a():\n    assert (f(3)) == (9), 'why'\n    made = f('x')\n    assert 'a' == made  # then\n";
    has_all(
        plain,
        "test_a",
        &[
            "assert (lambda it, other: it == other or Q)((f(4)) ,  (9)), 'why'; return",
            "made = f('xq') | assert (lambda other, it: it == other or Q)('a' ,  made); return  # then",
        ],
    );
    let unit =
        "class TestA(Base):\n    def test_a(self):\n        self.assertEqual(f(1), 'a')\n        print()\n";
    has_all(
        unit,
        "TestA::test_a",
        &["self.assertTrue((lambda it, other: it == other or Q)(f(2), 'a')); return"],
    );
    let rows = "@pytest.mark.parametrize('n, text', [(1, 'I'), (4, 'IV')])\ndef test_a(n, text):\n    assert f(n) == text\n";
    let asks = "assert (lambda it, other: it == other or Q)(f(n) ,  text); return";
    let row = format!("@pytest.mark.parametrize('n, text', [(2, 'I'), (4, 'IV')]) | {asks}");
    has_all(rows, "test_a", &[&row]);
    assert!(asked(rows, "test_a").iter().all(|line| line.contains("'I'), (") && line.contains("'IV')")));
}

#[test]
fn twins_need_one_side_that_is_computed_and_another_one_that_no_edit_reaches() {
    for body in [
        "assert f(3) == g(3)",
        "assert f(3) != 4",
        "assert f(3) == approx(4.5)",
        "assert f() == 4",
        "assert 3 == 4",
        "n = 3\n    assert f(n) == n",
        "assert f() == 4\n    f(3)",
    ] {
        let lines = asked(&format!("def test_a():\n    {body}\n"), "test_a");
        assert!(lines.is_empty(), "{body}: {lines:#?}");
    }
    let two = asked("def test_a():\n    assert f(3) == 4\n    assert g() == 5\n", "test_a");
    assert!(
        !two.is_empty() && two.iter().all(|line| line.contains("f(") && !line.contains("g()")),
        "{two:#?}"
    );
}

#[test]
fn a_value_comes_out_of_a_message_if_it_is_written_out() {
    let all = twins("def test_a():\n    assert f(3) == 4\n", &"test_a".parse().unwrap(), "7").unwrap();
    let twin = &all[0];
    let says = twin.probe().split('\'').find(|part| part.starts_with("twin")).unwrap().to_owned();
    let answer = |expected: &str, value: &str| {
        let (expected, value) = (hex::encode(expected), hex::encode(value));
        twin.answer(&format!(">   assert f('{says}' + text)\nE   KeyError: '{says}{expected}x{value}'\n"))
    };
    let value = |text: &str| answer("4", text).map(|one| one.value);
    for text in ["'a'", "b'a'", "-1", "[(1, None), {'a': 2}]"] {
        assert_eq!(value(text).as_deref(), Some(text));
    }
    for text in [
        "1.5",
        "True",
        "{(1, None): 2}",
        "{1}",
        "<A>",
        "[]",
        "A(1)",
        "1 +",
        "",
        &format!("'{}'", "a".repeat(2000)),
    ] {
        assert_eq!(value(text), None, "{text}");
    }
    for expected in ["4.5", "<A>", ""] {
        assert_eq!(answer(expected, "1"), None, "{expected}");
    }
    assert_eq!(twin.answer(&format!("E   KeyError: '{says}27'")), None);
    let asked = |expected: &str, value: &str| twin.asks_for(&[answer(expected, value).unwrap()]);
    assert_ne!(asked("4", "'a'"), asked("4", "'b'"));
    assert_ne!(asked("4", "'a'"), asked("5", "'a'"), "an answer belongs to its case");
    assert_eq!(asked("4", "'a'").len(), asked("4", "'bc'").len());
}

#[test]
fn another_value_is_of_the_same_type() {
    let of = |text: &str| other_value(text).unwrap();
    assert_eq!(of("'a'"), "'aq'");
    assert_eq!(of("[1, -2]"), "[1, -3]");
    assert_eq!(of("{'a': (1.5,)}"), "{'a': (11.5,)}");
    assert_eq!(of("True"), "False");
}

#[test]
fn what_follows_an_assertion_on_its_line_is_not_taken_into_an_if() {
    let test = TestName { classes: Vec::new(), function: "test_a".into() };
    let found = variants("def test_a():\n    assert f(1) == 2; g(3)\n", &test, "7").unwrap();
    assert!(found.iter().any(|one| one.kind == VariantKind::NegatedAssert));
    let taken =
        found.iter().filter(|one| one.source.contains("AssertionError") && one.source.contains("if "));
    assert_eq!(taken.map(|one| &one.source).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn other_input_is_asked_about_without_an_explanation() {
    let file = "def test_a():\n    it = f(1)\n    assert it.name == 'b', 'because'\n    assert (\n        it.size\n        == 2  # two\n    )\n    if it: assert it\n";
    let test = TestName { classes: Vec::new(), function: "test_a".into() };
    let of = |file: &str| {
        let found = variants(file, &test, "7").unwrap();
        let inputs = found.into_iter().filter(|one| one.refutes == Refutes::WhereItDiffers);
        inputs.map(|one| one.source).collect::<Vec<_>>()
    };
    let loud = of(file);
    assert!(!loud.is_empty());
    assert!(loud.iter().all(|source| source.contains("assert it.name == 'b', 'because'")), "{loud:?}");
    let quiet = of(&file.replace("if it: assert it", "assert it"));
    assert!(!quiet.is_empty());
    for source in quiet {
        assert!(!source.contains("assert "), "{source}");
        assert!(source.contains("    if not (it.name == 'b'): raise AssertionError\n"), "{source}");
        assert!(source.contains("    if not (it.size\n        == 2): raise AssertionError\n"), "{source}");
    }
}
