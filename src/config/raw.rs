//! `repos.toml` as typed: every key with its type and place, unknown ones refused. What values mean is for
//! [`super::check`].

use toml::de::DeTable;

use crate::document::Problems;
use crate::document::section::{Bytes, Field, Located, Section};
use crate::subset::Measure;

const DATASET: [&str; 8] =
    ["family", "name", "version", "seed", "per_repo", "hard_per_axis", "sample_unsolvable", "kinds"];
const SCREEN: [&str; 7] =
    ["attempts", "cold_runs", "parity_groups", "case_timeout", "group_timeout", "partial_groups", "compare"];
const WITNESS: [&str; 2] = ["make", "required"];
const RECUBE: [&str; 9] = [
    "min_groups",
    "max_groups",
    "min_functions",
    "min_exercised",
    "max_target_tokens",
    "require_noticed",
    "large",
    "mutants",
    "context_exclude",
];
const CODETASTE: [&str; 7] =
    ["runs", "min_tests", "min_pass_rate", "suite_timeout", "min_patterns", "min_coverage", "mine"];
/// Keys of a pair: its own, and those that it may set in the place of its repository's.
const PAIR: [&str; 19] = [
    "repo",
    "golden",
    "patch",
    "commit",
    "description",
    "descriptions",
    "patterns",
    "run_tests",
    "subdirectory",
    "python",
    "groups",
    "extras",
    "requirements",
    "tests",
    "env",
    "backend",
    "exclude_newer",
    "base",
    "system_packages",
];
const TIER: [&str; 2] = ["medium", "hard"];
const PROMPT: [&str; 3] = ["execution", "strategy", "test_in_prompt"];
const LIMITS: [&str; 4] = ["memory", "processes", "file_size", "output"];
const DOCKER: [&str; 4] = ["base", "memory", "cpus", "disk_budget"];
const REPO: [&str; 28] = [
    "slug",
    "git",
    "path",
    "pypi",
    "commit",
    "branch",
    "sha256",
    "submodules",
    "subdirectory",
    "allow_uncommitted",
    "python",
    "groups",
    "extras",
    "requirements",
    "tests",
    "env",
    "backend",
    "exclude_newer",
    "base",
    "system_packages",
    "domain",
    "target",
    "scope",
    "large",
    "tests_from",
    "tests_at",
    "entries",
    "entry",
];
const ENTRY: [&str; 8] = ["name", "command", "stdin", "stdin_file", "env", "cwd", "exit", "files"];
/// Keys of a subset; further ones are the measurements, each with `min` and `max`.
const SUBSET: [&str; 8] = ["repos", "tiers", "kinds", "top", "hard", "per_repo", "size", "seed"];
/// Sections, as written in the file, with their keys.
const SECTIONS: [(&str, &str, &[&str]); 12] = [
    ("dataset", "[dataset]", &DATASET),
    ("screen", "[screen]", &SCREEN),
    ("witness", "[witness]", &WITNESS),
    ("recube", "[recube]", &RECUBE),
    ("codetaste", "[codetaste]", &CODETASTE),
    ("tier", "[tier]", &TIER),
    ("prompt", "[prompt]", &PROMPT),
    ("limits", "[limits]", &LIMITS),
    ("docker", "[docker]", &DOCKER),
    ("repo", "[[repo]]", &REPO),
    ("pair", "[[pair]]", &PAIR),
    ("subset", "[subset.<name>]", &SUBSET),
];

pub(super) type Text<'a> = Field<&'a str>;
pub(super) type Texts<'a> = Field<Vec<Located<&'a str>>>;
pub(super) type Pairs<'a> = Field<Vec<(Located<&'a str>, Located<&'a str>)>>;

/// The whole file.
pub(super) struct Raw<'a> {
    pub dataset: RawDataset<'a>,
    pub screen: RawScreen<'a>,
    pub witness: RawWitness,
    pub recube: RawRecube<'a>,
    pub codetaste: RawCodetaste<'a>,
    pub tier: RawTier,
    pub prompt: RawPrompt<'a>,
    pub limits: RawLimits<'a>,
    pub docker: RawDocker<'a>,
    pub repos: Vec<RawRepo<'a>>,
    pub pairs: Vec<RawPair<'a>>,
    pub subsets: Vec<RawSubset<'a>>,
    /// Whether `dataset` exists, in whatever form.
    pub has_dataset: bool,
    /// Whether a `repo` exists, in whatever form.
    pub has_repos: bool,
}

/// `[dataset]`
pub(super) struct RawDataset<'a> {
    /// Where the section starts; none when it is missing.
    pub at: Option<usize>,
    pub family: Text<'a>,
    pub name: Text<'a>,
    pub version: Text<'a>,
    pub seed: Field<i128>,
    pub per_repo: Field<i128>,
    pub hard_per_axis: Field<i128>,
    pub sample_unsolvable: Field<bool>,
    pub kinds: Texts<'a>,
}

/// `[screen]`
pub(super) struct RawScreen<'a> {
    pub attempts: Field<i128>,
    pub cold_runs: Field<i128>,
    pub parity_groups: Field<i128>,
    pub case_timeout: Text<'a>,
    pub group_timeout: Text<'a>,
    pub partial_groups: Field<bool>,
    pub compare: Text<'a>,
}

/// `[witness]`
pub(super) struct RawWitness {
    pub make: Field<bool>,
    pub required: Field<bool>,
}

/// `[recube]`
pub(super) struct RawRecube<'a> {
    /// Where the section starts; none when it is missing.
    pub at: Option<usize>,
    pub min_groups: Field<i128>,
    pub max_groups: Field<i128>,
    pub min_functions: Field<i128>,
    pub min_exercised: Field<f64>,
    pub max_target_tokens: Field<i128>,
    pub require_noticed: Field<bool>,
    pub large: Field<bool>,
    pub mutants: Field<i128>,
    pub context_exclude: Texts<'a>,
}

/// `[codetaste]`
pub(super) struct RawCodetaste<'a> {
    /// Where the section starts; none when it is missing.
    pub at: Option<usize>,
    pub runs: Field<i128>,
    pub min_tests: Field<i128>,
    pub min_pass_rate: Field<f64>,
    pub suite_timeout: Text<'a>,
    pub min_patterns: Field<i128>,
    pub min_coverage: Field<f64>,
    pub mine: Field<bool>,
}

/// One `[[pair]]`.
pub(super) struct RawPair<'a> {
    pub at: usize,
    /// Its repository by slug.
    pub repo: Text<'a>,
    pub golden: Text<'a>,
    /// A file in its place.
    pub patch: Text<'a>,
    pub description: Text<'a>,
    pub descriptions: Text<'a>,
    pub patterns: Texts<'a>,
    /// A folder of scripts.
    pub run_tests: Text<'a>,
    /// What it sets in the place of its repository, its `commit` among it.
    pub own: RawRepo<'a>,
}

/// `[tier]`
pub(super) struct RawTier {
    pub medium: Field<f64>,
    pub hard: Field<f64>,
}

/// `[prompt]`
pub(super) struct RawPrompt<'a> {
    pub execution: Text<'a>,
    pub strategy: Text<'a>,
    pub test_in_prompt: Field<bool>,
}

/// `[limits]`
pub(super) struct RawLimits<'a> {
    pub memory: Field<Bytes<'a>>,
    pub processes: Field<i128>,
    pub file_size: Field<Bytes<'a>>,
    pub output: Field<Bytes<'a>>,
}

/// `[docker]`
pub(super) struct RawDocker<'a> {
    pub base: Text<'a>,
    pub memory: Field<Bytes<'a>>,
    pub cpus: Field<f64>,
    pub disk_budget: Field<Bytes<'a>>,
}

/// One `[[repo]]`.
#[derive(Clone)]
pub(super) struct RawRepo<'a> {
    pub at: usize,
    pub slug: Text<'a>,
    pub git: Text<'a>,
    pub path: Text<'a>,
    pub pypi: Text<'a>,
    pub commit: Text<'a>,
    /// Read again by `refresh`; a build does not need it.
    pub branch: Text<'a>,
    pub sha256: Text<'a>,
    pub submodules: Field<bool>,
    pub subdirectory: Text<'a>,
    pub allow_uncommitted: Field<bool>,
    pub python: Text<'a>,
    pub groups: Texts<'a>,
    pub extras: Texts<'a>,
    pub requirements: Texts<'a>,
    pub tests: Texts<'a>,
    pub env: Pairs<'a>,
    pub backend: Text<'a>,
    pub exclude_newer: Field<String>,
    pub base: Text<'a>,
    pub system_packages: Texts<'a>,
    pub domain: Text<'a>,
    /// Where each `[[repo.target]]` starts, and its file.
    pub targets: Vec<(usize, Text<'a>)>,
    /// Where each `[[repo.scope]]` starts, its name and its globs.
    pub scopes: Vec<(usize, Text<'a>, Texts<'a>)>,
    pub large: Field<bool>,
    pub tests_from: Text<'a>,
    pub tests_at: Text<'a>,
    pub entries: Text<'a>,
    pub entry: Vec<RawEntry<'a>>,
}

/// One `[[repo.entry]]`.
#[derive(Clone)]
pub(super) struct RawEntry<'a> {
    pub at: usize,
    pub name: Text<'a>,
    pub command: Text<'a>,
    pub stdin: Text<'a>,
    pub stdin_file: Text<'a>,
    pub env: Pairs<'a>,
    pub cwd: Text<'a>,
    pub exit: Field<i128>,
    pub files: Texts<'a>,
}

impl<'a> RawRepo<'a> {
    /// The repository with what a pair sets in its place.
    pub(super) fn with(&self, own: &RawRepo<'a>) -> Self {
        fn of<T: Clone>(own: &Field<T>, other: &Field<T>) -> Field<T> {
            if own.is_present() { own.clone() } else { other.clone() }
        }
        RawRepo {
            commit: own.commit.clone(),
            subdirectory: of(&own.subdirectory, &self.subdirectory),
            python: of(&own.python, &self.python),
            groups: of(&own.groups, &self.groups),
            extras: of(&own.extras, &self.extras),
            requirements: of(&own.requirements, &self.requirements),
            tests: of(&own.tests, &self.tests),
            env: of(&own.env, &self.env),
            backend: of(&own.backend, &self.backend),
            exclude_newer: of(&own.exclude_newer, &self.exclude_newer),
            base: of(&own.base, &self.base),
            system_packages: of(&own.system_packages, &self.system_packages),
            ..self.clone()
        }
    }
}

/// One `[subset.<name>]`.
pub(super) struct RawSubset<'a> {
    pub name: Located<&'a str>,
    pub repos: Texts<'a>,
    pub tiers: Texts<'a>,
    pub kinds: Texts<'a>,
    pub top: Field<bool>,
    /// What `top` was called before.
    pub hard: Field<bool>,
    pub per_repo: Field<i128>,
    pub size: Field<i128>,
    pub seed: Field<i128>,
    /// In the order of [`Measure::ALL`].
    pub ranges: Vec<RawRange>,
}

/// `<measurement> = { min = …, max = … }`
pub(super) struct RawRange {
    pub measure: Measure,
    pub at: usize,
    pub min: Field<f64>,
    pub max: Field<f64>,
}

/// Takes a parsed file apart.
pub(super) fn read<'a>(table: &'a DeTable<'a>, problems: &mut Problems<'_>) -> Raw<'a> {
    let root = Section::root(table);
    root.refuse_unknown(&SECTIONS.map(|(key, ..)| key), |key| home_of(key, ""), problems);
    let section = |key: &str, problems: &mut Problems<'_>| open(&root, key, problems);
    Raw {
        dataset: dataset(section("dataset", problems).as_ref(), problems),
        screen: screen(section("screen", problems).as_ref(), problems),
        witness: witness(section("witness", problems).as_ref(), problems),
        recube: recube(section("recube", problems).as_ref(), problems),
        codetaste: codetaste(section("codetaste", problems).as_ref(), problems),
        tier: tier(section("tier", problems).as_ref(), problems),
        prompt: prompt(section("prompt", problems).as_ref(), problems),
        limits: limits(section("limits", problems).as_ref(), problems),
        docker: docker(section("docker", problems).as_ref(), problems),
        repos: root.sections("repo", problems).iter().map(|section| repo(section, problems)).collect(),
        pairs: root.sections("pair", problems).iter().map(|section| pair(section, problems)).collect(),
        subsets: root
            .named_sections("subset", problems)
            .into_iter()
            .map(|(name, section)| subset(name, &section, problems))
            .collect(),
        has_dataset: root.has("dataset"),
        has_repos: root.has_some("repo"),
    }
}

/// A section that may be missing, whose keys are known.
fn open<'a>(root: &Section<'a>, key: &str, problems: &mut Problems<'_>) -> Option<Section<'a>> {
    let section = root.section(key, problems).given()?.value;
    refuse_unknown(&section, key, problems);
    Some(section)
}

/// The section that knows a key which another one was given.
fn home_of(key: &str, not: &str) -> Option<String> {
    let knows = |(name, _, keys): &&(&str, &str, &[&str])| *name != not && keys.contains(&key);
    SECTIONS.iter().find(knows).map(|(_, shown, _)| (*shown).to_owned())
}

fn refuse_unknown(section: &Section<'_>, name: &str, problems: &mut Problems<'_>) {
    if let Some((_, _, known)) = SECTIONS.iter().find(|(key, ..)| *key == name) {
        section.refuse_unknown(known, |key| home_of(key, name), problems);
    }
}

/// Reads one key of a section that may be missing.
fn field<'a, T>(section: Option<&Section<'a>>, read: impl FnOnce(&Section<'a>) -> Field<T>) -> Field<T> {
    section.map_or(Field::Missing, read)
}

fn dataset<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawDataset<'a> {
    RawDataset {
        at: section.map(|section| section.at),
        family: field(section, |section| section.text("family", problems)),
        name: field(section, |section| section.text("name", problems)),
        version: field(section, |section| section.text("version", problems)),
        seed: field(section, |section| section.integer("seed", problems)),
        per_repo: field(section, |section| section.integer("per_repo", problems)),
        hard_per_axis: field(section, |section| section.integer("hard_per_axis", problems)),
        sample_unsolvable: field(section, |section| section.flag("sample_unsolvable", problems)),
        kinds: field(section, |section| section.texts("kinds", problems)),
    }
}

fn screen<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawScreen<'a> {
    RawScreen {
        attempts: field(section, |section| section.integer("attempts", problems)),
        cold_runs: field(section, |section| section.integer("cold_runs", problems)),
        parity_groups: field(section, |section| section.integer("parity_groups", problems)),
        case_timeout: field(section, |section| section.duration("case_timeout", problems)),
        group_timeout: field(section, |section| section.duration("group_timeout", problems)),
        partial_groups: field(section, |section| section.flag("partial_groups", problems)),
        compare: field(section, |section| section.text("compare", problems)),
    }
}

fn witness(section: Option<&Section<'_>>, problems: &mut Problems<'_>) -> RawWitness {
    RawWitness {
        make: field(section, |section| section.flag("make", problems)),
        required: field(section, |section| section.flag("required", problems)),
    }
}

fn recube<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawRecube<'a> {
    RawRecube {
        at: section.map(|section| section.at),
        min_groups: field(section, |section| section.integer("min_groups", problems)),
        max_groups: field(section, |section| section.integer("max_groups", problems)),
        min_functions: field(section, |section| section.integer("min_functions", problems)),
        min_exercised: field(section, |section| section.number("min_exercised", problems)),
        max_target_tokens: field(section, |section| section.integer("max_target_tokens", problems)),
        require_noticed: field(section, |section| section.flag("require_noticed", problems)),
        large: field(section, |section| section.flag("large", problems)),
        mutants: field(section, |section| section.integer("mutants", problems)),
        context_exclude: field(section, |section| section.texts("context_exclude", problems)),
    }
}

fn codetaste<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawCodetaste<'a> {
    RawCodetaste {
        at: section.map(|section| section.at),
        runs: field(section, |section| section.integer("runs", problems)),
        min_tests: field(section, |section| section.integer("min_tests", problems)),
        min_pass_rate: field(section, |section| section.number("min_pass_rate", problems)),
        suite_timeout: field(section, |section| section.duration("suite_timeout", problems)),
        min_patterns: field(section, |section| section.integer("min_patterns", problems)),
        min_coverage: field(section, |section| section.number("min_coverage", problems)),
        mine: field(section, |section| section.flag("mine", problems)),
    }
}

fn tier(section: Option<&Section<'_>>, problems: &mut Problems<'_>) -> RawTier {
    RawTier {
        medium: field(section, |section| section.number("medium", problems)),
        hard: field(section, |section| section.number("hard", problems)),
    }
}

fn prompt<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawPrompt<'a> {
    RawPrompt {
        execution: field(section, |section| section.text("execution", problems)),
        strategy: field(section, |section| section.text("strategy", problems)),
        test_in_prompt: field(section, |section| section.flag("test_in_prompt", problems)),
    }
}

fn limits<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawLimits<'a> {
    RawLimits {
        memory: field(section, |section| section.bytes("memory", problems)),
        processes: field(section, |section| section.integer("processes", problems)),
        file_size: field(section, |section| section.bytes("file_size", problems)),
        output: field(section, |section| section.bytes("output", problems)),
    }
}

fn docker<'a>(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> RawDocker<'a> {
    RawDocker {
        base: field(section, |section| section.text("base", problems)),
        memory: field(section, |section| section.bytes("memory", problems)),
        cpus: field(section, |section| section.number("cpus", problems)),
        disk_budget: field(section, |section| section.bytes("disk_budget", problems)),
    }
}

fn repo<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> RawRepo<'a> {
    refuse_unknown(section, "repo", problems);
    keys_of_repo(section, problems)
}

fn pair<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> RawPair<'a> {
    refuse_unknown(section, "pair", problems);
    RawPair {
        at: section.at,
        repo: section.text("repo", problems),
        golden: section.text("golden", problems),
        patch: section.text("patch", problems),
        description: section.text("description", problems),
        descriptions: section.text("descriptions", problems),
        patterns: section.text_or_texts("patterns", problems),
        run_tests: section.text("run_tests", problems),
        own: keys_of_repo(section, problems),
    }
}

fn keys_of_repo<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> RawRepo<'a> {
    RawRepo {
        at: section.at,
        slug: section.text("slug", problems),
        git: section.text("git", problems),
        path: section.text("path", problems),
        pypi: section.text("pypi", problems),
        commit: section.text("commit", problems),
        branch: section.text("branch", problems),
        sha256: section.text("sha256", problems),
        submodules: section.flag("submodules", problems),
        subdirectory: section.text("subdirectory", problems),
        allow_uncommitted: section.flag("allow_uncommitted", problems),
        python: section.text("python", problems),
        groups: section.texts("groups", problems),
        extras: section.texts("extras", problems),
        requirements: section.texts("requirements", problems),
        tests: section.texts("tests", problems),
        env: section.pairs("env", problems),
        backend: section.text("backend", problems),
        exclude_newer: section.date("exclude_newer", problems),
        base: section.text("base", problems),
        system_packages: section.texts("system_packages", problems),
        domain: section.text("domain", problems),
        targets: section
            .sections("target", problems)
            .iter()
            .map(|target| one_target(target, problems))
            .collect(),
        scopes: section.sections("scope", problems).iter().map(|scope| one_scope(scope, problems)).collect(),
        large: section.flag("large", problems),
        tests_from: section.text("tests_from", problems),
        tests_at: section.text("tests_at", problems),
        entries: section.text("entries", problems),
        entry: section.sections("entry", problems).iter().map(|entry| one_entry(entry, problems)).collect(),
    }
}

fn one_entry<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> RawEntry<'a> {
    section.refuse_unknown(&ENTRY, |_| None, problems);
    RawEntry {
        at: section.at,
        name: section.text("name", problems),
        command: section.text("command", problems),
        stdin: section.text("stdin", problems),
        stdin_file: section.text("stdin_file", problems),
        env: section.pairs("env", problems),
        cwd: section.text("cwd", problems),
        exit: section.integer("exit", problems),
        files: section.texts("files", problems),
    }
}

fn one_scope<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> (usize, Text<'a>, Texts<'a>) {
    section.refuse_unknown(&["name", "paths"], |_| None, problems);
    (section.at, section.text("name", problems), section.texts("paths", problems))
}

fn one_target<'a>(section: &Section<'a>, problems: &mut Problems<'_>) -> (usize, Text<'a>) {
    section.refuse_unknown(&["file"], |_| None, problems);
    (section.at, section.text("file", problems))
}

fn subset<'a>(name: Located<&'a str>, section: &Section<'a>, problems: &mut Problems<'_>) -> RawSubset<'a> {
    let measures = Measure::ALL.map(|(_, name)| name);
    let known: Vec<&str> = SUBSET.into_iter().chain(measures).collect();
    section.refuse_unknown(&known, |key| home_of(key, "subset"), problems);
    RawSubset {
        name,
        repos: section.texts("repos", problems),
        tiers: section.texts("tiers", problems),
        kinds: section.texts("kinds", problems),
        top: section.flag("top", problems),
        hard: section.flag("hard", problems),
        per_repo: section.integer("per_repo", problems),
        size: section.integer("size", problems),
        seed: section.integer("seed", problems),
        ranges: Measure::ALL
            .into_iter()
            .filter_map(|(measure, name)| range(measure, name, section, problems))
            .collect(),
    }
}

fn range(
    measure: Measure,
    name: &str,
    section: &Section<'_>,
    problems: &mut Problems<'_>,
) -> Option<RawRange> {
    let Located { value: section, at } = section.section(name, problems).given()?;
    section.refuse_unknown(&["min", "max"], |_| None, problems);
    Some(RawRange { measure, at, min: section.number("min", problems), max: section.number("max", problems) })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::Value;

    use super::*;
    use crate::config::{self, SCHEMA};

    fn schema() -> Value {
        serde_json::from_str(SCHEMA).unwrap()
    }

    /// The keys of each section, as the schema has them.
    fn properties(name: &str) -> Value {
        let section = &schema()["properties"][name];
        match name {
            "repo" | "pair" => section["items"]["properties"].clone(),
            "subset" => section["additionalProperties"]["properties"].clone(),
            _ => section["properties"].clone(),
        }
    }

    #[test]
    fn the_schema_knows_the_sections_and_keys_that_are_read_and_no_other() {
        let names = |value: &Value| -> Vec<String> {
            let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            names.sort_unstable();
            names
        };
        let sorted = |names: &[&str]| -> Vec<String> {
            let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(&schema()["properties"]), sorted(&SECTIONS.map(|(name, ..)| name)));
        for (name, _, keys) in SECTIONS {
            let measures: &[&str] = if name == "subset" { &Measure::ALL.map(|(_, name)| name) } else { &[] };
            assert_eq!(names(&properties(name)), sorted(&[keys, measures].concat()), "{name}");
        }
    }

    #[test]
    fn the_defaults_of_the_schema_are_those_that_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let parse = |text: &str| {
            config::parse(text, folder.path(), &|_, _| None)
                .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
        };
        let mut written = String::new();
        for (name, ..) in SECTIONS
            .into_iter()
            .filter(|(name, ..)| !matches!(*name, "repo" | "subset" | "recube" | "pair" | "codetaste"))
        {
            let _ = writeln!(written, "[{name}]");
            if name == "dataset" {
                written.push_str("name = 'd'\nversion = '1'\n");
            }
            for (key, property) in properties(name).as_object().unwrap() {
                if let Some(default) = property.get("default") {
                    let _ = writeln!(written, "{key} = {default}");
                }
            }
        }
        let repo = "[[repo]]\nslug = 'a/b'\npath = '.'\n";
        let plain = format!("[dataset]\nname = 'd'\nversion = '1'\n{repo}");
        assert_eq!(parse(&format!("{written}{repo}")), parse(&plain));
        assert!(written.matches(" = ").count() > 20, "{written}");
        // They go with a family that is not the default.
        let recube = "[dataset]\nfamily = 'recube'\nname = 'd'\nversion = '1'\n";
        let mut written = format!("{recube}[recube]\n");
        for (key, property) in properties("recube").as_object().unwrap() {
            let _ = writeln!(written, "{key} = {}", property["default"]);
        }
        assert_eq!(parse(&format!("{written}{repo}")), parse(&format!("{recube}{repo}")));
    }

    #[test]
    fn the_schema_lists_the_values_that_are_known() {
        use crate::record::outcome::Compare;
        use crate::record::prompt::{ExecutionSetting, Strategy};
        let values = |section: &str, key: &str| -> Vec<String> {
            let mut values: Vec<String> =
                serde_json::from_value(properties(section)[key]["enum"].clone()).unwrap();
            values.sort_unstable();
            values
        };
        let known = |mut names: Vec<&str>| -> Vec<String> {
            names.sort_unstable();
            names.into_iter().map(str::to_owned).collect()
        };
        assert_eq!(values("screen", "compare"), known(Compare::ALL.map(Compare::as_str).to_vec()));
        assert_eq!(
            values("prompt", "execution"),
            known(ExecutionSetting::ALL.map(ExecutionSetting::as_str).to_vec())
        );
        assert_eq!(values("prompt", "strategy"), known(Strategy::ALL.map(Strategy::as_str).to_vec()));
    }
}
