//! The dataset card: `README.md` with the front matter that Hugging Face `datasets` reads.
//!
//! `instances.jsonl` stays outside the front matter: two formats in one repository's configs break the loader. There
//! are no `dataset_info` numbers either: the loader ignores splits without byte sizes and refuses wrong ones; the
//! numbers are in the text.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value, context};

use super::dictionary;
use super::manifest::Manifest;
use super::rated::Rated;
use crate::error::{Error, Result};
use crate::record::entry::PYTEST;
use crate::record::environment;
use crate::record::flag;
use crate::record::instance::Instance;
use crate::record::verdict::Cause;
use crate::terminal::one_line;

/// The card's file.
pub const FILE: &str = "README.md";

const CARD: &str = include_str!("card.md");

/// Characters of a text, and members of a list, that the example shows.
const LONGEST_TEXT: usize = 160;
const MOST_ITEMS: usize = 4;

/// The tables that can be loaded, the default first. A table without rows is left out: the loader refuses empty splits.
const CONFIGS: [&str; 5] = ["instances", "groups", "cases", "attempts", "traces"];

/// Licenses that the hub knows by the SPDX identifier in lower case.
const KNOWN_LICENSES: [&str; 16] = [
    "0bsd",
    "agpl-3.0",
    "apache-2.0",
    "bsd-2-clause",
    "bsd-3-clause",
    "bsl-1.0",
    "cc0-1.0",
    "epl-2.0",
    "gpl-2.0",
    "gpl-3.0",
    "isc",
    "lgpl-2.1",
    "lgpl-3.0",
    "mit",
    "mpl-2.0",
    "unlicense",
];

/// Renders `README.md`; `first` is the first of the instances with all of its columns.
///
/// # Errors
/// When the template does not fit, which is a bug.
pub fn render(manifest: &Manifest, instances: &[Rated], first: Option<&Instance>) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Custom("markdown".into()));
    environment.set_formatter(write_escaped);
    environment.add_filter("code", |text: String| Value::from_safe_string(code(&text)));
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    let (license, license_name) = license(instances);
    let context = context! {
        manifest => Value::from(Serde(manifest)),
        pretty_name => Value::from_safe_string(yaml_text(&format!("{} {}", manifest.name, manifest.version))),
        license => license.map(Value::from_safe_string),
        license_name => license_name.map(Value::from_safe_string),
        size_category => Value::from_safe_string(size_category(instances.len()).to_owned()),
        subsets => subset_names(manifest).into_iter().map(Value::from_safe_string).collect::<Vec<_>>(),
        warnings => warnings(manifest),
        causes => causes(manifest),
        flags => flags(instances),
        example => first.map(example).transpose()?.map(Value::from_safe_string),
        has_commands => instances.iter().any(|one| one.kind != PYTEST),
        dictionary => dictionary(),
        configs => CONFIGS.into_iter().filter(|table| manifest.counts.rows.get(*table).is_some_and(|rows| *rows > 0)).collect::<Vec<_>>(),
    };
    let rendered = environment.render_str(CARD, context);
    rendered
        .map(|text| text + "\n")
        .map_err(|error| Error::internal("cannot render the dataset card").with_source(error))
}

/// The tables with their columns and what they mean.
fn dictionary() -> Vec<(&'static str, Vec<(Value, Value)>)> {
    let safe = |text: &str| Value::from_safe_string(text.to_owned());
    let entries =
        |all: &[dictionary::Entry]| all.iter().map(|(name, meaning)| (safe(name), safe(meaning))).collect();
    dictionary::TABLES.into_iter().map(|(table, all)| (table, entries(all))).collect()
}

/// An instance as JSON between fences, in lines that a terminal can show, long texts and lists cut.
fn example(instance: &Instance) -> Result<String> {
    let broken = |error| Error::internal("cannot encode an instance").with_source(error);
    let mut row = serde_json::to_value(instance).map_err(broken)?;
    for value in row.as_object_mut().into_iter().flat_map(|row| row.values_mut()) {
        shorten(value);
    }
    let text = serde_json::to_string_pretty(&row).map_err(broken)?;
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let lines: Vec<String> = text.lines().map(|line| one_line(line).into_owned()).collect();
    Ok(format!("{fence}json\n{}\n{fence}", lines.join("\n")))
}

fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.chars().count() > LONGEST_TEXT => {
            *text = text.chars().take(LONGEST_TEXT).chain(['…']).collect();
        }
        serde_json::Value::Array(items) => {
            if items.len() > MOST_ITEMS {
                items.truncate(MOST_ITEMS);
                items.push("…".into());
            }
            items.iter_mut().for_each(shorten);
        }
        _ => {}
    }
}

/// The subsets that have members.
fn subset_names(manifest: &Manifest) -> Vec<String> {
    let filled = manifest.subsets.iter().filter(|(_, one)| one.size > 0);
    filled.map(|(name, _)| name.to_string()).collect()
}

/// Causes with what they mean and how many groups have them.
fn causes(manifest: &Manifest) -> Vec<(String, String, usize)> {
    let meaning =
        |cause: &str| Cause::try_from(cause.to_owned()).map(|cause| cause.meaning()).unwrap_or_default();
    let all = manifest.counts.total.dropped.iter();
    all.map(|(cause, count)| (cause.clone(), meaning(cause), *count)).collect()
}

/// Flags of the instances with what they mean and how many have them.
fn flags(instances: &[Rated]) -> Vec<(String, String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in instances.iter().flat_map(|one| &one.flags) {
        *counts.entry(name).or_default() += 1;
    }
    let meaning = |name: &str| match flag::meaning(name) {
        "" if name.starts_with(flag::KEPT_BY) => "a rule keeps it against its verdict",
        "" => "given by a rule",
        known => known,
    };
    counts.into_iter().map(|(name, count)| (name.to_owned(), meaning(name).to_owned(), count)).collect()
}

/// Slug → what to know about its environment.
fn warnings(manifest: &Manifest) -> BTreeMap<String, Vec<String>> {
    let all = manifest.environments.iter();
    let told =
        all.map(|(slug, one)| (slug.to_string(), environment::warnings(&one.guesses, &one.undeclared)));
    told.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Every text that the template puts in comes through here: what others wrote is text in the card, not Markdown.
fn write_escaped(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if value.is_safe() || matches!(value.kind(), ValueKind::Number | ValueKind::Bool | ValueKind::Undefined) {
        write!(out, "{value}")?;
    } else {
        out.write_str(&markdown_text(&value.to_string()))?;
    }
    Ok(())
}

/// Text that Markdown shows as it is, on one line.
fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '#' | '$' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Text between backticks, where even addresses stay text.
fn code(text: &str) -> String {
    let text = one_line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A blank on both sides is taken off again; without it a backtick at an edge would join the fence.
    format!("{fence} {text} {fence}")
}

/// JSON text is YAML text.
fn yaml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The license of the dataset: where its instances share one the hub's own name for it, or `other` with the SPDX expression
/// as name; `unknown` where none is known.
fn license(instances: &[Rated]) -> (Option<String>, Option<String>) {
    let licenses: BTreeSet<Option<&str>> = instances.iter().map(|one| one.license.as_deref()).collect();
    let other = |name: &str| (Some("other".to_owned()), Some(yaml_text(name)));
    match licenses.into_iter().collect::<Vec<_>>()[..] {
        [] => (None, None),
        [None] => (Some("unknown".to_owned()), None),
        [Some(only)] => {
            let name = only.to_ascii_lowercase();
            let plain = name.strip_suffix("-only").unwrap_or(&name);
            if KNOWN_LICENSES.contains(&plain) { (Some(plain.to_owned()), None) } else { other(&name) }
        }
        _ => other("one for each repository"),
    }
}

/// The hub's size category of a number of rows.
fn size_category(rows: usize) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        _ => "n>1M",
    }
}

#[cfg(test)]
mod tests {
    use super::super::assemble::Assembled;
    use super::*;
    use crate::record::environment::{Guess, Undeclared};
    use crate::testing::made_up::MadeUp;

    fn card_of(input: &super::super::DatasetInput<'_>) -> String {
        let assembled = Assembled::new(input).unwrap();
        let manifest = super::super::describe::manifest(input, &assembled).unwrap();
        render(&manifest, &assembled.instances, assembled.all().unwrap().first()).unwrap()
    }

    fn card(made_up: &MadeUp) -> String {
        card_of(&made_up.input())
    }

    #[test]
    fn front_matter_names_every_table_and_no_json_lines() {
        let card = card(&MadeUp::new(&[30, 8]));
        let front = card.split("---\n").nth(1).unwrap();
        for table in CONFIGS {
            assert!(front.contains(&format!("path: {table}.parquet\n")), "{front}");
        }
        assert!(front.contains("\nlicense: mit\n") && front.contains("\n- n<1K\n"), "{front}");
        assert!(!front.contains("jsonl") && !front.contains("dataset_info"));
    }

    #[test]
    fn where_there_are_commands_the_card_says_what_they_are_given() {
        let made_up = MadeUp::new(&[30]);
        let input = made_up.input();
        let mut assembled = Assembled::new(&input).unwrap();
        let mut manifest = super::super::describe::manifest(&input, &assembled).unwrap();
        manifest.trees.insert(crate::record::id::RepoSlug::new("made/up0").unwrap(), String::new());
        let said =
            |instances: &[Rated]| render(&manifest, instances, None).unwrap().contains("`-e <name>=<value>`");
        assert!(!said(&assembled.instances));
        assembled.instances[0].kind = "script".to_owned();
        assert!(said(&assembled.instances));
    }

    #[test]
    fn what_others_wrote_is_text_and_no_markup() {
        let mut made_up = MadeUp::new(&[30, 8]);
        let hostile = "a | b <script>alert(1)</script> ![x](http://evil/x.png) `` [l](http://evil) www.evil.example\n# Heading\n\u{202e}";
        made_up.failed[0].message = hostile.to_owned();
        for repository in &mut made_up.repositories {
            repository.evidence.pinned.license = Some(hostile.to_owned());
        }
        let card = card(&made_up);
        let failed = card.lines().find(|line| line.contains("(stage")).unwrap();
        assert!(
            failed.contains("``` a | b <script>") && failed.contains("\\n# Heading\\n\\u{202e} ```"),
            "{failed}"
        );
        let row = card.lines().find(|line| line.starts_with("| ") && line.contains("alert")).unwrap();
        assert!(row.contains("a \\| b &lt;script&gt;alert(1)&lt;/script&gt; \\!\\[x\\](http"), "{row}");
        assert!(!card.contains("\n# Heading"));
    }

    #[test]
    fn a_table_or_subset_without_rows_is_no_config() {
        assert!(!card(&MadeUp::new(&[30])).contains("subsets/none.parquet"));
        assert!(card(&MadeUp::new(&[30])).contains("- config_name: few-short\n"));
        let card = card(&MadeUp::new(&[0]));
        assert!(!card.contains("instances.parquet\n") && card.contains("path: groups.parquet\n"), "{card}");
    }

    #[test]
    fn the_license_is_that_of_all_instances_or_says_that_there_are_several() {
        let mut made_up = MadeUp::new(&[30, 8]);
        made_up.repositories[0].evidence.pinned.license = None;
        assert!(card(&made_up).contains("\nlicense: other\nlicense_name: \"one for each repository\"\n"));
        for repository in &mut made_up.repositories {
            repository.evidence.pinned.license = None;
        }
        assert!(card(&made_up).contains("\nlicense: unknown\n"));
        for repository in &mut made_up.repositories {
            repository.evidence.pinned.license = Some("MIT OR Apache-2.0".into());
        }
        assert!(card(&made_up).contains("\nlicense: other\nlicense_name: \"mit or apache-2.0\"\n"));
    }

    #[test]
    fn an_example_a_dictionary_and_how_to_judge_and_cite_are_there() {
        let made_up = MadeUp::new(&[30, 8]);
        let card = card(&made_up);
        let example =
            card.split("\n````json\n").nth(1).and_then(|rest| rest.split("\n````\n").next()).unwrap();
        let row: serde_json::Value = serde_json::from_str(example).unwrap();
        let first = &Assembled::new(&made_up.input()).unwrap().instances[0];
        assert_eq!(row["instance_id"], first.instance_id.as_str());
        assert!(row["prompt"].as_str().unwrap().ends_with('…'), "{example}");
        assert!(
            card.contains("\n| `flake_bound` | upper bound of the failure rate, with 95 % confidence |\n")
        );
        let sections = ["How a solution is judged", "What it does not cover", "Columns", "Citing"];
        assert!(sections.iter().all(|title| card.contains(&format!("\n## {title}\n"))), "{card}");
        assert!(card.contains("\n- Not varied between runs: locale (no locale).\n"));
        assert!(!card.contains("\n\n\n"), "{card}");
    }

    #[test]
    fn a_card_explains_causes_flags_and_worlds_and_how_to_run_an_instance_without_the_tool() {
        let made_up = MadeUp::new(&[30, 8]);
        let input = made_up.input();
        let assembled = Assembled::new(&input).unwrap();
        let card = card(&made_up);
        for (cause, meaning, count) in causes(&super::super::describe::manifest(&input, &assembled).unwrap())
        {
            assert!(!meaning.is_empty(), "{cause}");
            assert!(
                card.contains(&format!("| ` {cause} ` | {count} | {} |", markdown_text(&meaning))),
                "{cause}: {card}"
            );
        }
        let mut one = assembled.instances[0].clone();
        one.flags = ["own-rule", "starts-threads"].map(str::to_owned).into();
        let expected = [("own-rule", "given by a rule"), ("starts-threads", flag::meaning("starts-threads"))];
        let expected = expected.map(|(name, meaning)| (name.to_owned(), meaning.to_owned(), 1));
        assert_eq!(flags(&[one]), expected);
        assert!(card.contains("\n| condition | usual | otherwise |\n| --- | --- | --- |\n| "), "{card}");
        for words in [
            "tar -C tree -xf ../../trees/",
            "docker run --rm --network none",
            "`table[\"flags\"]`",
            "written in Rust",
        ] {
            assert!(card.contains(words), "{words}");
        }
    }

    #[test]
    fn code_that_stays_at_home_is_not_announced() {
        let made_up = MadeUp::new(&[30]);
        let input = super::super::DatasetInput { passes_code_on: false, ..made_up.input() };
        let text = card_of(&input);
        assert!(text.contains("is not part of the dataset") && !text.contains("`trees/`"), "{text}");
    }

    #[test]
    fn guesses_and_what_is_missing_are_told() {
        let mut made_up = MadeUp::new(&[30, 8]);
        assert!(!card(&made_up).contains("## Environments"));
        let built = &mut made_up.repositories[1].evidence.built;
        built.guesses = vec![Guess { distribution: "PyYAML".into(), wanted: "import yaml".into() }];
        built.undeclared = vec![Undeclared { wanted: "import acme".into(), place: None }];
        let slug = made_up.repositories[1].evidence.pinned.slug.to_string();
        let card = card(&made_up);
        let section = card.split("## Environments").nth(1).expect("has the section");
        assert!(section.contains(&format!(r"- {slug}: guessed: PyYAML for \`import yaml\`")), "{section}");
        assert!(section.contains(&format!(r"- {slug}: the tests ask for \`import acme\`")), "{section}");
    }

    #[test]
    fn numbers_come_from_the_build() {
        let made_up = MadeUp::new(&[30, 8]);
        let input = made_up.input();
        let assembled = Assembled::new(&input).unwrap();
        let published = assembled.instances.len();
        assert!(
            card(&made_up).contains(&format!("{published} Gistify instances from 2 Python repositories"))
        );
    }

    #[test]
    fn size_categories_are_those_of_the_hub() {
        assert_eq!([0, 999, 1_000, 99_999].map(size_category), ["n<1K", "n<1K", "1K<n<10K", "10K<n<100K"]);
    }
}
