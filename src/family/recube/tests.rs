//! The worked examples of `tests/data/recube.json`, all of them, and properties of masks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::choose::{Exercise, choose};
use super::kinds::{self, Entries};
use super::mask::{self, Cut, Function, NotMaskable};
use super::score::{self, Class, Scored, ScoredCase};
use super::surface::{FileNames, surface};
use super::{answer, docstring, pack, similar, viewed};
use crate::record::recube::{Kind, Way};
use crate::record::trace::FunctionCalls;
use crate::score::spearman;

fn examples() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../tests/data/recube.json")).unwrap()
}

fn read<T: for<'a> Deserialize<'a>>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Numbers to two digits, integers as numbers with a point.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!((number.as_f64().unwrap() * 100.0).round() / 100.0 + 0.0),
        Value::Array(values) => values.iter().map(rounded).collect(),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| (key.clone(), rounded(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// What of a value is asked for.
fn part(seen: &Value, asked: &Value) -> Value {
    let Value::Object(keys) = asked else { return seen.clone() };
    keys.iter()
        .map(|(key, asked)| (key.clone(), part(&seen[key], asked)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn every_worked_example_holds() {
    let examples = examples();
    assert_eq!(examples.len(), 189);
    let mut wrong = Vec::new();
    for example in &examples {
        let expected =
            if example["kind"] == "not-maskable" { &example["reason"] } else { &example["output"] };
        let seen = seen(example);
        if rounded(&seen) != rounded(expected) {
            wrong.push(format!("{}:\n  expected {expected}\n  seen     {seen}", example["id"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), examples.len(), wrong.join("\n"));
}

fn seen(example: &Value) -> Value {
    let input = example["input"].as_str().unwrap_or_default();
    match example["kind"].as_str().unwrap() {
        "mask" => json!(masked(example)),
        "not-maskable" => {
            let refused = text(example).and_then(|text| mask::mask(&text, Cut::All).map(|_| ()));
            json!(refused.map_or_else(|why| why.reason(), |()| "maskable"))
        }
        "docstring" => json!(mask::mask(input, Cut::All).unwrap().functions[0].docstring),
        "published-leak" => json!(mask::published_leak(input)),
        "classify" => classified(example),
        "surface" => {
            let texts: BTreeMap<String, String> = read(&example["texts"]);
            let paths: BTreeSet<&str> = texts.keys().map(String::as_str).collect();
            let files =
                texts.iter().map(|(path, text)| (&**path, FileNames::of(path, text, &paths))).collect();
            json!(surface(
                example["target"].as_str().unwrap(),
                &files,
                &read::<Vec<String>>(&example["test_roots"])
            ))
        }
        "score" => {
            let instances: Vec<Value> = read(&example["instances"]);
            let summary = score::score(&instances.iter().map(scored).collect::<Vec<_>>());
            part(&json!(summary), &example["output"])
        }
        "value" => value(example["op"].as_str().unwrap(), &read::<Vec<Value>>(&example["args"])),
        other => panic!("no test knows examples of the kind {other}"),
    }
}

fn text(example: &Value) -> Result<String, NotMaskable> {
    let bytes = match example["hex"].as_str() {
        Some(bytes) => hex::decode(bytes).unwrap(),
        None => example["input"].as_str().unwrap().as_bytes().to_vec(),
    };
    mask::text_of_target(&bytes).map(str::to_owned)
}

fn masked(example: &Value) -> String {
    let cut = if example["keep_imports"] == true { Cut::Bodies } else { Cut::All };
    let made = mask::mask(&text(example).unwrap(), cut).unwrap_or_else(|why| panic!("{why:?}: {example}"));
    if let Some(expected) = example.get("functions") {
        let functions: Vec<_> = made.functions.iter().map(|one| json!([one.name, one.is_trivial])).collect();
        assert_eq!(&json!(functions), expected, "{example}");
    }
    made.text
}

#[derive(Deserialize)]
struct Call {
    file: String,
    function: String,
    line: u32,
    calls: u64,
    callers: Vec<u32>,
}

fn classified(example: &Value) -> Value {
    let target = example["target"].as_str().unwrap();
    let roots: Vec<String> = read(&example["test_roots"]);
    let shared: BTreeSet<String> = read(&example["shared"]);
    let groups: BTreeMap<String, Vec<Call>> = read(&example["groups"]);
    let call = |(order, one): (usize, Call)| FunctionCalls {
        file: one.file,
        function: one.function,
        line: one.line,
        calls: one.calls,
        order: order as u32,
        lines: None,
        callers: Some(one.callers),
    };
    let groups: BTreeMap<String, Vec<FunctionCalls>> = groups
        .into_iter()
        .map(|(id, calls)| (id, calls.into_iter().enumerate().map(call).collect()))
        .collect();
    let entries: BTreeMap<&String, Option<Entries>> =
        groups.iter().map(|(id, calls)| (id, kinds::entries(calls, target))).collect();
    let used = entries.values().flatten().flat_map(|one| kinds::called_by_code(one, &roots)).collect();
    let of_group = |(id, entries): (&&String, &Option<Entries>)| {
        let Some(entries) = entries else { return ((*id).clone(), json!([null, "does-not-reach"])) };
        let reason = kinds::classify(entries, &roots, &used, &shared);
        ((*id).clone(), json!([reason.kind(), reason]))
    };
    entries.iter().map(of_group).collect::<serde_json::Map<_, _>>().into()
}

fn scored(instance: &Value) -> Scored {
    let case = |case: &Value| ScoredCase {
        id: read(&case["id"]),
        kind: read::<Kind>(&case["kind"]),
        way: Way::None,
        outcome: Some(&case["outcome"]).filter(|outcome| **outcome != "missing").map(read),
    };
    Scored {
        class: instance.get("class").map_or(Class::Ran, read),
        has_folder: instance.get("folder") != Some(&json!(false)),
        cases: instance["cases"].as_array().unwrap().iter().map(case).collect(),
    }
}

fn value(op: &str, args: &[Value]) -> Value {
    let word = |at: usize| args[at].as_str().unwrap_or_default();
    let number = |at: usize| args[at].as_f64().unwrap();
    let texts = |at: usize| read::<Vec<String>>(&args[at]);
    fn all(texts: &[String]) -> Vec<&str> {
        texts.iter().map(String::as_str).collect()
    }
    match op {
        "choose" => chosen(args),
        "viewed" => {
            let (commands, files) = (texts(0), texts(1));
            json!(viewed::viewed(&all(&commands), &all(&files).into_iter().collect(), word(2)))
        }
        "per_cost" => json!(score::per_cost(number(0), number(1))),
        "code_of_answer" => json!(answer::code_of_answer(word(0))),
        "is_private" => json!(kinds::is_private(word(0))),
        "bm25" => json!(similar::bm25(&texts(0), &read::<Vec<Vec<String>>>(&args[1]))),
        "coverage" => json!(score::coverage(&all(&texts(0)), &all(&texts(1)))),
        "quartiles" => {
            let rows = args[0].as_array().unwrap().iter();
            let rows = rows.map(|row| (row["id"].as_str().unwrap(), row["pass_rate"].as_f64().unwrap()));
            json!(score::quartiles(&rows.collect::<Vec<_>>()))
        }
        "spearman" => json!(spearman(&read::<Vec<(f64, f64)>>(&args[0])).map(|found| found.r)),
        "kendall" => json!(score::kendall(&read::<Vec<(f64, f64)>>(&args[0]))),
        "similarity" => json!(similar::similarity(number(0), number(1), number(2))),
        "shape_similarity" => {
            let shape = |at: usize| {
                let [classes, functions, nesting] = read(&args[at]);
                similar::Shape { classes, functions, nesting }
            };
            json!(shape(0).similarity(shape(1)))
        }
        "left_masked" => {
            let function = |one: &Value| Function {
                name: read(&one["name"]),
                is_trivial: read(&one["trivial"]),
                line: 1,
                end_line: 1,
                docstring: docstring::DocstringKind::None,
                statements: 1,
            };
            let functions: Vec<Function> = args[1].as_array().unwrap().iter().map(function).collect();
            json!(mask::left_masked(word(0), &functions))
        }
        "fence_of" => json!(pack::fence_of(word(0))),
        "overlap_words" => {
            json!(similar::overlap(&similar::file_words(word(0)), &similar::file_words(word(1))))
        }
        "output_name" => json!(answer::output_name(word(0))),
        "test_name" => json!(crate::record::recube::test_name(word(0))),
        "output_names" => match answer::output_names(all(&texts(0))) {
            Ok(names) => json!(names),
            Err(twice) => json!(format!("two targets share {}", Vec::from_iter(twice).join(", "))),
        },
        "pack" => packed(args),
        "similar" => {
            let texts: BTreeMap<String, String> = read(&args[1]);
            json!(similar::similar(word(0), &texts.iter().map(|(path, text)| (&**path, &**text)).collect()))
        }
        other => panic!("no test knows the function {other}"),
    }
}

fn chosen(args: &[Value]) -> Value {
    let exercise = |one: &Value| Exercise {
        lines: read(&one["lines"]),
        into: read(&one["into"]),
        package: read(&one["package"]),
        cases: read(&one["cases"]),
        is_unsteady: one.get("unsteady").is_some_and(|unsteady| *unsteady == true),
    };
    let groups = args[0].as_object().unwrap().iter().map(|(id, one)| (&**id, exercise(one))).collect();
    json!(choose(&groups, read(&args[1])))
}

fn packed(args: &[Value]) -> Value {
    let pairs = |at: usize| read::<Vec<(String, String)>>(&args[at]);
    let (readme, files) = (pairs(0), pairs(2));
    let dependencies: Vec<[String; 4]> = read(&args[1]);
    let dependency = |[name, version, summary, description]: &[String; 4]| {
        (name.clone(), version.clone(), summary.clone(), description.clone())
    };
    let dependencies: Vec<_> = dependencies.iter().map(dependency).collect();
    let dependencies: Vec<pack::Dependency<'_>> = dependencies
        .iter()
        .map(|(name, version, summary, description)| pack::Dependency { name, version, summary, description })
        .collect();
    fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
        pairs.iter().map(|(path, text)| (&**path, &**text)).collect()
    }
    json!(pack::pack(&borrowed(&readme), &dependencies, &borrowed(&files)))
}

/// Statements of a made-up file: pieces that meet every rule of the mask, put together at random depth.
fn block(depth: u32) -> BoxedStrategy<Vec<String>> {
    let simple = prop::sample::select(vec![
        "import a",
        "from . import b; X = 1",
        "X = 1; import c; Y = 2  # both",
        "from d import (\n  e,  # f\n)",
        "X = '''\nimport a\n'''",
        "def f(): return 1",
        "def g(a, b={}): 'doc'; return a",
        "def h(): ...",
        "# comment",
        "",
        "'text'",
        "X = [lambda: 1]",
        "if X: import a",
        "async def i(): await j",
        "class E: import re",
        "import k; import l",
        "raise NotImplementedError()",
    ]);
    let simple = simple.prop_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>());
    if depth == 0 {
        return prop::collection::vec(simple, 1..4).prop_map(|lines| lines.concat()).boxed();
    }
    let heads = prop::sample::select(vec![
        "def f(a):",
        "@d(1)\ndef f(\n  a,\n):  # why",
        "class C(B):",
        "if TYPE_CHECKING:",
        "for x in y:",
        "while x:",
        "with x as y:",
        "async def f():",
        "def f[T](a: T):",
    ]);
    let docs = prop::sample::select(vec![
        "",
        "\"\"\"Doc.\n\n  more\n  \"\"\"",
        "r'doc'  # noqa",
        "f'no {1}'",
        "b'no'",
        "import z",
    ]);
    let tails = prop::sample::select(vec!["", "# deeper"]);
    let compound =
        (heads, docs, block(depth - 1), tails, prop::bool::ANY).prop_map(|(head, doc, inner, tail, tabs)| {
            let indent = if tabs { "\t" } else { "    " };
            let mut lines: Vec<String> = head.split('\n').map(str::to_owned).collect();
            let mut texts: Vec<String> = doc.split('\n').map(str::to_owned).collect();
            texts.extend(inner);
            texts.extend(["Z = 1".to_owned(), tail.to_owned()]);
            let mut in_text = false;
            for text in texts {
                lines.push(if text.is_empty() || in_text { text.clone() } else { format!("{indent}{text}") });
                in_text ^= text.matches("'''").count() % 2 == 1 || text.matches("\"\"\"").count() % 2 == 1;
            }
            lines
        });
    prop::collection::vec(prop_oneof![simple, compound], 1..5).prop_map(|blocks| blocks.concat()).boxed()
}

proptest! {
    #[test]
    fn a_mask_is_sound_and_keeps_what_it_does_not_cut(
        lines in block(3), end in prop::sample::select(vec!["\n", "\r\n", "\r"]), mark in prop::bool::ANY, ended in prop::bool::ANY,
    ) {
        let mut text = lines.join(end);
        if ended { text.push_str(end) }
        if mark { text.insert(0, '\u{feff}') }
        // `mask` proves that the result parses, has the tree that it must have and masks to itself.
        match mask::mask(&text, Cut::All) {
            Ok(masked) => {
                let is_marked = masked.text.starts_with('\u{feff}');
                prop_assert_eq!(is_marked, mark);
                prop_assert!(masked.functions.len() >= mask::left_masked(&masked.text, &masked.functions).len());
                for cut in [Cut::Bodies, Cut::These(&BTreeSet::from([0]))] {
                    mask::mask(&text, cut).map_err(|why| TestCaseError::fail(format!("{cut:?} {why:?}: {text:?}")))?;
                }
            }
            Err(NotMaskable::Unreadable(_)) => {}
            Err(why) => prop_assert!(false, "{why:?}: {text:?}"),
        }
    }

    #[test]
    fn any_text_is_masked_or_refused(text in ".{0,200}") {
        prop_assert!(!matches!(mask::mask(&text, Cut::All), Err(NotMaskable::Unsound(_))));
    }
}

#[test]
fn deep_texts_are_refused_and_do_not_overflow_the_stack() {
    for text in [
        "(".repeat(1 << 20),
        "1+".repeat(1 << 20),
        (0..200).map(|depth| " ".repeat(depth) + "if 1:\n").collect::<String>(),
    ] {
        assert_eq!(mask::mask(&text, Cut::All).unwrap_err().reason(), "too-deep");
        assert_eq!(mask::published_leak(&text), None);
        assert!(mask::left_masked(&text, &[]).is_empty());
    }
}

#[test]
#[ignore = "needs in GISTMILL_TEST_PYTHON a Python, whose standard library is masked: minutes"]
fn the_standard_library_is_masked_soundly() {
    let python = std::env::var_os("GISTMILL_TEST_PYTHON").expect("GISTMILL_TEST_PYTHON names a Python");
    let code = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    let output = std::process::Command::new(python).args(["-c", code]).output().unwrap();
    let folder = String::from_utf8(output.stdout).unwrap();
    let (mut masked, mut refused) = (0, Vec::new());
    for entry in walkdir::WalkDir::new(folder.trim()).sort_by_file_name() {
        let entry = entry.unwrap();
        let is_python = entry.path().extension().is_some_and(|ending| ending == "py");
        if !is_python || entry.path().components().any(|part| part.as_os_str() == "site-packages") {
            continue;
        }
        let bytes = fs_err::read(entry.path()).unwrap();
        // `mask` proves of each that it parses, has no import, has the tree that it must have and masks to itself.
        for cut in [Cut::All, Cut::Bodies] {
            match mask::text_of_target(&bytes).and_then(|text| mask::mask(text, cut)) {
                Ok(made) => masked += usize::from(!made.text.is_empty() || bytes.is_empty()),
                Err(why) => refused.push((entry.path().to_owned(), why)),
            }
        }
    }
    let unsound: Vec<_> = refused.iter().filter(|(_, why)| why.reason() == "unsound").collect();
    assert!(masked > 1000 && refused.len() < 60 && unsound.is_empty(), "{masked} {refused:?}");
}
