//! How much of what is changed in the code the tests of instances notice.

use serde_json::Value;

use crate::common::Bench;

const CODE: &str = "\
def total(prices, discount=0):
    result = 0
    for price in prices:
        result = result + price
    if discount > 0:
        result = result - discount
    remember(result)
    return result


def remember(result):
    SEEN.append(result)


SEEN = []
";

const TESTS: &str = "\
from shop.till import total


def test_notices_all():
    assert total([3, 4]) == 7
    assert total([5], 2) == 3


def test_notices_little():
    assert total([3, 4], 1) is not None

";

fn bench(settings: &str) -> Bench {
    let bench = Bench::new();
    for (path, text) in [
        ("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n"),
        ("shop/__init__.py", ""),
        ("shop/till.py", CODE),
        ("tests/test_till.py", TESTS),
    ] {
        let place = bench.path().join("trees/shop").join(path);
        std::fs::create_dir_all(place.parent().expect("has one")).expect("can be made");
        std::fs::write(place, text).expect("can be written");
    }
    let repo = "[[repo]]\nslug = \"trees/shop\"\npath = \"trees/shop\"\nexclude_newer = \"2026-06-01\"\n";
    bench.write_config(&format!(
        "[dataset]\nname = \"trees\"\nversion = \"1\"\n[screen]\nattempts = 2\n{settings}\n{repo}"
    ));
    bench.build(&[]).with_code(0);
    bench
}

fn row(bench: &Bench, function: &str) -> Option<Value> {
    bench.dataset().instances().into_iter().find(|row| row["test_function"] == function)
}

#[test]
fn what_a_test_does_not_notice_is_named_and_weak_tests_can_be_left_out() {
    let all = bench("[mutation]\nmutants = 40\n[subset.strong]\nmutation_score = { min = 0.6 }");
    let strong = row(&all, "test_notices_all").expect("is published");
    let weak = row(&all, "test_notices_little").expect("is published");
    // All but `remember`, which no test asks about, and the amount from which a discount counts.
    let survive = |row: &Value| -> Vec<String> {
        let names = row["surviving_mutants"].as_array().expect("are named").iter();
        names.map(|name| name.as_str().expect("is a text").to_owned()).collect()
    };
    assert_eq!(
        survive(&strong),
        [
            "shop/till.py:12:5 statement taken away",
            "shop/till.py:5:19 integer 0 → 1",
            "shop/till.py:7:5 statement taken away",
        ]
    );
    let score = |row: &Value| row["mutation_score"].as_f64().expect("is known");
    let mutants = strong["mutants"].as_u64().expect("is known");
    assert!((score(&strong) - (mutants - 3) as f64 / mutants as f64).abs() < 1e-9, "{strong}");
    assert!(score(&weak) < 0.5, "{weak}");
    assert!(survive(&weak).contains(&"shop/till.py:4:25 sum + → -".to_owned()), "{weak}");
    assert!(strong["needed_statements"].as_f64() > weak["needed_statements"].as_f64());
    all.run(&["verify", "output/trees/1"]).with_code(0);
    let subset = std::fs::read_to_string(all.path().join("output/trees/1/subsets/strong.jsonl"));
    let subset = subset.expect("is written");
    assert!(subset.contains("test_notices_all") && !subset.contains("test_notices_little"), "{subset}");

    let few = bench("[mutation]\nmutants = 40\nmin_score = 0.6");
    assert!(row(&few, "test_notices_all").is_some());
    assert!(row(&few, "test_notices_little").is_none());
    let none = bench("[mutation]\nmutants = 0");
    assert_eq!(row(&none, "test_notices_all").expect("is published")["mutation_score"], Value::Null);
}
