//! The worked examples of `tests/data/codetaste.json`, all of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::diff::{Changed, changed};
use super::funnel::{self, Changes, DiffScores, MessageScores};
use super::lines::Lines;
use super::matches::{self, Match};
use super::message::{Lists, Unlikely, WordCounts, count_of};
use super::registered::{Candidate, Registered};
use super::score::{Average, Following, Measured, Precision, Side, cost, graded};
use super::submission::{SubmissionPath, agent_folder, authors_id};
use super::suite::{self, Bounds, Counts};
use super::{leaks, message};
use crate::score::Ratio;

fn read<T: for<'a> Deserialize<'a>>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

#[test]
fn every_worked_example_holds() {
    let examples: Vec<Value> =
        serde_json::from_str(include_str!("../../../tests/data/codetaste.json")).unwrap();
    assert_eq!(examples.len(), 125);
    hold(&examples);
}

#[test]
#[ignore = "needs further examples: a file of the same form, named by GISTMILL_TEST_EXAMPLES"]
fn every_further_example_holds() {
    let path = std::env::var_os("GISTMILL_TEST_EXAMPLES").expect("GISTMILL_TEST_EXAMPLES names no file");
    let examples: Vec<Value> = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    assert!(!examples.is_empty());
    hold(&examples);
}

/// Compares what the code says with what examples expect.
fn hold(examples: &[Value]) {
    let mut wrong = Vec::new();
    for example in examples {
        let expected = number(&example["expect"]);
        let seen = number(&seen(example["function"].as_str().unwrap(), &example["given"], &expected));
        if !is_same(&seen, &expected) {
            wrong.push(format!("{}:\n  expected {expected}\n  seen     {seen}", example["id"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), examples.len(), wrong.join("\n"));
}

/// Fractions, which examples have as texts, as numbers; truth values of rates as 1 and 0.
fn number(value: &Value) -> Value {
    let fraction = |text: &str| {
        let (part, whole) = text.split_once('/')?;
        Some(part.parse::<f64>().ok()? / whole.parse::<f64>().ok()?)
    };
    match value {
        Value::String(text) => fraction(text).map_or_else(|| value.clone(), |rate| json!(rate)),
        Value::Array(values) => values.iter().map(number).collect(),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| (key.clone(), number(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            (one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-9
        }
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(ones), Value::Object(others)) => {
            ones.len() == others.len()
                && ones.iter().all(|(key, one)| others.get(key).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

fn seen(function: &str, given: &Value, expected: &Value) -> Value {
    match function {
        "parse_run_tests" | "gate" | "sensible" | "bounds" | "passes" | "set_passes" => {
            of_suite(function, given)
        }
        "sarif" => of_matches(&matches::of_sarif(&given["document"])),
        "engine_json" => of_matches(&matches::of_engine_json(&given["document"]).unwrap()),
        "ast_grep" => {
            let lines: Vec<String> = read(&given["lines"]);
            of_matches(&matches::of_ast_grep(lines.iter().map(String::as_str)).unwrap())
        }
        "kind" => json!(Side::of(read(&given["base"]), read(&given["golden"]))),
        "jaccard" => {
            let (common, all) = lines(&given["one"]).jaccard(&lines(&given["other"])).unwrap_or((0, 1));
            json!(common as f64 / all as f64)
        }
        "register" => registered(given),
        "ifr" => {
            let following = Following::of(&read(&given["additive"]), &read(&given["reductive"]));
            rates(&[following.all(), following.additive, following.reductive])
        }
        "graded" => json!(graded(
            &read(&given["additive"]),
            &read(&given["reductive"]),
            &read(&given["golden"]),
            &read(&given["base"])
        )),
        "parse_diff" => {
            let found = changed(given["text"].as_str().unwrap().as_bytes());
            json!({"removed": single(&found.removed), "added": single(&found.added)})
        }
        "precision" => {
            let changed = Changed { removed: lines(&given["removed"]), added: lines(&given["added"]) };
            let precision = Precision::of(&changed, &lines(&given["reductive"]), &lines(&given["additive"]));
            let all = [precision.all(), precision.added, precision.removed];
            json!(all.map(|ratio| ratio.rate().unwrap_or_default()))
        }
        "judge" => judged(given, expected),
        "average" => {
            let average = Average::of(read::<Vec<Option<f64>>>(&given["values"]));
            let percent = |value: Option<f64>| value.map(|value| (value * 1000.0).round() / 10.0);
            json!({"n": average.n, "percent": percent(average.mean), "plus_minus": percent(average.plus_minus)})
        }
        "cost" => json!(cost(["inference", "plan", "generation", "judge"].map(|key| given[key].as_f64()))),
        _ => of_funnel(function, given),
    }
}

fn of_funnel(function: &str, given: &Value) -> Value {
    let values = || read::<Vec<f64>>(&given["values"]);
    match function {
        "keyword_count" => {
            json!(count_of(given["message"].as_str().unwrap(), &read::<Vec<String>>(&given["keywords"])))
        }
        "message_verdict" => {
            let keywords =
                |key: &str| message::Keywords::new(&read::<Vec<String>>(&given["lists"][key])).unwrap();
            let lists = Lists {
                plus_strong: keywords("plus_strong"),
                plus_weak: keywords("plus_weak"),
                minus_strong: keywords("minus_strong"),
                minus_weak: keywords("minus_weak"),
            };
            let counts: WordCounts = lists.count(given["message"].as_str().unwrap());
            json!(counts.unlikely().map(|unlikely| match unlikely {
                Unlikely::StrongNegative => "strong-negative",
                Unlikely::NoKeyword => "no-keyword",
                Unlikely::WeakNegative => "weak-negative",
            }))
        }
        "percentile" => json!(funnel::percentile(&values(), read(&given["share"]))),
        "within_percentiles" => {
            let pool: Vec<Value> = read(&given["pool"]);
            let changes: Vec<Changes> = pool.iter().map(read).collect();
            let found = pool.iter().zip(funnel::outliers(&changes));
            found
                .filter_map(|(one, outlier)| Some((one["commit"].as_str()?.to_owned(), json!(outlier?))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        "s_msg" => {
            let [large, refactor, cohesion, length, trivial, uncertain] = values().try_into().unwrap();
            json!(MessageScores { large, refactor, cohesion, length, trivial, uncertain }.total())
        }
        "s_diff" => {
            let [refactor, complexity, mixed, risky, uncertain, trivial, auto] = values().try_into().unwrap();
            json!(DiffScores { refactor, complexity, mixed, risky, uncertain, trivial, auto }.total())
        }
        "s_total" => json!(funnel::total(values()[0], values()[1])),
        "leaks" => {
            let (base, added): (Vec<String>, Vec<String>) = (read(&given["base"]), read(&given["added"]));
            let description = given["description"].as_str().unwrap();
            json!(leaks::leaks(description, base.iter().map(|w| &**w), added.iter().map(|w| &**w)))
        }
        "submission_of" => json!(SubmissionPath::of(given["path"].as_str().unwrap())),
        "agent_folder" => json!(agent_folder(given["agent"].as_str().unwrap())),
        "authors_id" => {
            let text = |key: &str| given[key].as_str().unwrap();
            json!(authors_id(text("owner"), text("repo"), text("base")))
        }
        other => panic!("no test knows examples of the function {other}"),
    }
}

fn of_suite(function: &str, given: &Value) -> Value {
    let counts = || read::<Option<Counts>>(&given["counts"]);
    match function {
        "parse_run_tests" => {
            let counts = suite::counts_of(given["stdout"].as_str().unwrap());
            json!(counts.map(|counts| [counts.passed, counts.failed, counts.skipped, counts.total]))
        }
        "gate" => json!(suite::gate(counts()).map(suite::NotEnough::as_str)),
        "sensible" => json!(counts().unwrap().nonsense().map(suite::Nonsense::as_str)),
        "bounds" => {
            let runs = |key: &str| read::<Vec<Option<Counts>>>(&given[key]);
            let bounds = Bounds::of(runs("base").into_iter().chain(runs("golden")));
            json!(bounds.map(|bounds| [bounds.passed, bounds.failed]))
        }
        "passes" => json!(bounds(&given["bounds"]).map(|bounds| u8::from(bounds.pass(counts())))),
        _ => json!(u8::from(suite::set_passes(&read(&given["outcomes"]), &read(&given["must_pass"])))),
    }
}

fn bounds(given: &Value) -> Option<Bounds> {
    read::<Option<(i64, i64)>>(given).map(|(passed, failed)| Bounds { passed, failed })
}

fn lines(given: &Value) -> Lines {
    let single: Vec<(String, u64)> = read(given);
    single.iter().map(|(path, line)| (path.as_str(), *line)).collect()
}

fn single(lines: &Lines) -> Vec<(&str, u64)> {
    lines.ranges().flat_map(|(path, first, last)| (first..=last).map(move |line| (path, line))).collect()
}

fn rates(ratios: &[Ratio]) -> Value {
    ratios.iter().map(|ratio| json!(ratio.rate())).collect()
}

fn of_matches(found: &[Match]) -> Value {
    let patterns = found.iter().filter_map(|one| one.pattern.clone());
    let counts: BTreeMap<String, u64> =
        patterns.map(|one| (one.clone(), matches::count(found, &one))).collect();
    json!({"matches": counts, "lines": single(&matches::covered(found))})
}

fn registered(given: &Value) -> Value {
    let side = if given["side"] == "additive" { Side::Additive } else { Side::Reductive };
    let candidates: Vec<(String, u64, u64, Value)> = read(&given["candidates"]);
    let mut registered = Registered::default();
    let each = candidates.into_iter().map(|(id, base, golden, covered)| {
        let decision =
            registered.decide(side, Candidate { id: id.clone(), base, golden, lines: lines(&covered) });
        let refusal = decision.refusal.map(|refusal| refusal.to_string());
        json!([id, refusal.is_none(), refusal, decision.shows_witness])
    });
    each.collect()
}

fn judged(given: &Value, expected: &Value) -> Value {
    let changed = changed(given["diff"].as_str().unwrap().as_bytes());
    let measured = Measured {
        bounds: bounds(&given["bounds"]),
        counts: read(&given["counts"]),
        additive: &read(&given["additive"]),
        reductive: &read(&given["reductive"]),
        changed: (given["applied"] != false).then_some(&changed),
        additive_on_submission: &lines(&given["additive_lines"]),
        reductive_on_base: &lines(&given["reductive_lines"]),
    };
    let numbers = json!(measured.numbers());
    let of = |key: &String| match &numbers[key] {
        Value::Bool(truth) => json!(u8::from(*truth)),
        other => other.clone(),
    };
    expected
        .as_object()
        .unwrap()
        .keys()
        .map(|key| (key.clone(), of(key)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
