//! Made-up trees, from code to patterns.

use std::collections::BTreeMap;

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    Tree { files, ..Tree::default() }
}

fn changed(lines: &[(&str, u64)], added: &[(&str, u64)]) -> Changed {
    Changed { removed: lines.iter().copied().collect(), added: added.iter().copied().collect() }
}

fn patterns(text: &str) -> Patterns {
    Patterns::built_in(&[("p.yml".to_owned(), text.to_owned())]).unwrap_or_else(|error| panic!("{error}"))
}

const OLD: &str = "
id: old-call
language: python
rule: {pattern: old($A)}
";

#[test]
fn matches_are_counted_and_no_comment_hides_one() {
    let base = tree(&[
        ("a.py", "old(1)  # ast-grep-ignore\nif old(old(2)):\n    pass\n"),
        ("b.txt", "old(3)\n"),
        ("c.py", "# ast-grep-ignore\n\nx = old(\n    4\n)\n"),
    ]);
    let found = &patterns(OLD).scan(&base).unwrap()["old-call"];
    assert_eq!(found.matches, 4);
    assert_eq!(found.lines.ranges().collect::<Vec<_>>(), [("a.py", 1, 2), ("c.py", 3, 5)]);
}

#[test]
fn patterns_are_taken_by_their_matches_on_both_trees() {
    let base = tree(&[("a.py", "old(1)\nold(2)\nboth(1)\n")]);
    let golden = tree(&[("a.py", "new(1)\nnew(2)\nboth(1)\n")]);
    let text = format!(
        "{OLD}---\nid: new-call\nlanguage: python\nmetadata: {{side: additive}}\nrule: {{pattern: new($A)}}\n---\nid: \
         both\nlanguage: python\nrule: {{pattern: both($$$A)}}\n---\nid: none\nlanguage: python\nrule: {{pattern: none()}}\n\
         ---\nid: old-name\nlanguage: python\nrule: {{kind: identifier, regex: ^old$}}\n"
    );
    let changed = changed(&[("a.py", 1), ("a.py", 2)], &[("a.py", 1), ("a.py", 2)]);
    let report = check(&patterns(&text), &base, &golden, &changed).unwrap();
    let seen: Vec<(&str, Side, String)> = report
        .patterns
        .iter()
        .map(|one| {
            let refusal = one.decision.refusal.as_ref().map(ToString::to_string);
            (one.id.as_str(), one.side, refusal.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("old-call", Side::Reductive, String::new()),
            ("new-call", Side::Additive, String::new()),
            ("both", Side::Reductive, "matches-both".to_owned()),
            ("none", Side::Reductive, "matches-nothing".to_owned()),
            ("old-name", Side::Reductive, "too-near:old-call".to_owned()),
        ]
    );
    assert_eq!(report.precision.all().rate(), Some(1.0));
}

#[test]
fn what_is_wrong_in_a_file_of_patterns_is_named() {
    let message = |text: &str| {
        let error = Patterns::built_in(&[("p.yml".to_owned(), text.to_owned())]).err().expect("is wrong");
        error.to_string()
    };
    for (text, expected) in [
        ("rules: []\n", "p.yml: `rules` is not a list of patterns"),
        ("rules: [{languages: [go]}]\n", "p.yml: a pattern has no `id`"),
        ("rules: [{id: a.b}, {id: c.b}]\n", "p.yml: the id `b` is given twice"),
        ("rules: [{id: a}]\n---\nid: b\n", "p.yml: `rules` is in one of several documents"),
        ("rules: [{id: a}]\n", "these patterns are not ast-grep's"),
        ("id: a\nlanguage: ruby\nrule: {pattern: x}\n", "the language `ruby` is not built in"),
        ("id: a\nlanguage: python\nrule: {kind: no_such_kind}\n", "p.yml: `a`: "),
        ("language: python\nrule: {pattern: x}\n", "p.yml: a pattern has no `id`"),
        ("id: [\n", "p.yml: "),
    ] {
        assert!(message(text).contains(expected), "{text}: {}", message(text));
    }
    let twice = format!("{OLD}---{OLD}");
    assert!(message(&twice).contains("p.yml: the id `old-call` is given twice"), "{}", message(&twice));
}

#[test]
fn what_vanishes_and_what_appears_becomes_patterns_that_hold() {
    let code = |name: &str, module: &str| {
        format!(
            "from {module} import {name}\nimport os.path\n\n\nclass A(Base):\n    def {name}_it(self, x):\n        return \
             self.{name}_field + {name}(x, {name}_key=1)\n\n\ndef b():\n    return {name}(2, {name}_key='{name}.text')\n"
        )
    };
    let trees = |name: &str, module: &str| {
        tree(&[("a.py", &code(name, module)), ("b.py", &code(name, module)), ("same.py", "import os\n")])
    };
    let (base, golden) = (trees("legacy", "old.place"), trees("modern", "new.place"));
    let lines: Vec<(&str, u64)> =
        ["a.py", "b.py"].iter().flat_map(|path| [1, 6, 7, 11].map(|line| (*path, line))).collect();
    let changed = changed(&lines, &lines);
    let mined = mine(&base, &golden, &changed).unwrap();
    let ids: Vec<&str> = mined.iter().map(|one| one.id.as_str()).collect();
    assert!(ids.contains(&"new-ident-modern") && ids.contains(&"old-ident-legacy"), "{ids:?}");
    assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
    let report = check(&patterns(&documents(&mined)), &base, &golden, &changed).unwrap();
    assert_eq!(report.precision.all().rate(), Some(1.0), "{ids:?}");
    let counts: BTreeMap<&str, u64> =
        report.patterns.iter().map(|one| (one.id.as_str(), one.right().matches)).collect();
    for one in &mined {
        assert_eq!(counts[one.id.as_str()], one.matches as u64, "{}", one.id);
    }
    for one in &report.patterns {
        assert_eq!(one.wrong().matches, 0, "{}", one.id);
    }
}

#[test]
fn every_kind_of_feature_is_what_its_pattern_matches() {
    let text = "import aa.bb as cc\nfrom .pkg import thing, other as more\nfrom dd.ee import *\n\n\n@deco.rate(1)\n@plain\ndef \
                func(first=1):\n    '''doc'''\n    return cc.attr_name(first, key_word=f'{first}') + '%s' % first\n\n\nclass \
                Thing(base.Kind, object):\n    @other_deco\n    def meth(self):\n        super(Thing, self).meth()\n        return \
                self.field_name, 'a {}'.format(1), 'some.text'\n";
    let tree = tree(&[("pkg/a.py", text), ("pkg/b.py", text)]);
    let changed = Changed {
        removed: Lines::default(),
        added: (1..=20).flat_map(|line| [("pkg/a.py", line), ("pkg/b.py", line)]).collect(),
    };
    let mut paths = features::Paths::default();
    let features = features::Features::of(&tree, &mut paths).unwrap();
    let nothing = Tree::default();
    let mined = mine(&nothing, &tree, &changed).unwrap();
    assert!(features.found.len() > 40, "{}", features.found.len());
    let all = choose::each_of(&features, &paths);
    let found = patterns(&documents(&all)).scan(&tree).unwrap();
    for one in &all {
        let matches = found.get(&one.id).map_or(0, |found| found.matches);
        assert_eq!(matches, one.matches as u64, "{} {}", one.kind.as_str(), one.name);
    }
    assert!(!mined.is_empty());
}

#[test]
fn what_is_taken_is_registered_with_its_matches_and_what_it_said_of_itself() {
    let base = tree(&[("a.py", "old(1)\nold(2)\nboth(1)\n")]);
    let golden = tree(&[("a.py", "both(1)\n")]);
    let text = format!(
        "{OLD}metadata: {{category: rename}}\n---\nid: both\nlanguage: python\nrule: {{pattern: both($A)}}\n"
    );
    let all = patterns(&text);
    let report = check(&all, &base, &golden, &changed(&[("a.py", 1), ("a.py", 2)], &[])).unwrap();
    let written = registered(&all, &report).unwrap();
    let document: serde_json::Value = serde_json::from_str(written.trim()).unwrap();
    assert_eq!(document["id"], "old-call", "what matches both trees is not taken");
    assert_eq!(
        document["metadata"],
        serde_json::json!({
            "category": "rename", "side": "reductive", "nr_legacy_patterns": 2, "nr_refactored_patterns": 0,
        })
    );
    let again = check(&patterns(&written), &base, &golden, &Changed::default()).unwrap();
    assert!(again.patterns.iter().all(|one| one.decision.refusal.is_none()), "it is a file of patterns");
}
