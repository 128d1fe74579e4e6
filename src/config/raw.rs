//! `repos.toml` as typed. Every key is declared here, once: what it takes, its default, and the words that editors and the
//! book have for it. What values mean together is for [`super::check`].

use std::time::Duration;

use serde_json::{Map, Value, json};
use toml::de::DeTable;

use super::kind::{
    Choice, Choices, Count, Cpus, Date, Flag, Formed, Globs, Kind, Number, Pairs, Part, Size, Span, Status,
    Text, TextOrTexts, Texts, Whole,
};
use super::{EntriesMode, Mutation, Screen, Witness};
use crate::document::Problems;
use crate::document::section::{Field, Located, Section};
use crate::record::codetaste::Settings;
use crate::record::entry::KINDS;
use crate::record::family::Family;
use crate::record::instance::Tier;
use crate::record::limits::{BackendKind, Limits, TierBounds};
use crate::record::outcome::Compare;
use crate::record::prompt::{ExecutionSetting, PromptSettings, Strategy};
use crate::record::recube::Bounds;
use crate::subset::Measure;

const MEBIBYTE: u64 = 1 << 20;
pub(super) const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
const IMAGE: &str = "^[A-Za-z0-9]([A-Za-z0-9._/:@-]*[A-Za-z0-9])?$";
const KIND: Choice<&str> = Choice("unknown kind {}", &KINDS, |kind| kind);

/// A key with a default, which is its value unless the file has one that can be used.
#[derive(Debug, Clone)]
pub(super) struct Setting<T> {
    pub value: T,
    /// Where the file has the value.
    pub at: Option<usize>,
    pub is_refused: bool,
}

impl<T: Clone> Setting<T> {
    fn new(field: Field<T>, default: T) -> Self {
        let is_refused = matches!(field, Field::Refused);
        let (value, at) = field.given().map_or((default, None), |given| (given.value, Some(given.at)));
        Setting { value, at, is_refused }
    }

    fn or(&self, other: &Self) -> Self {
        if self.at.is_some() || self.is_refused { self.clone() } else { other.clone() }
    }
}

/// A table of the file, or one of several.
pub(super) trait Keys<'a>: Sized {
    const ABOUT: &'static str;

    fn names() -> Vec<&'static str>;

    /// The keys with what a schema says of each.
    fn properties() -> Vec<(String, Value)>;

    /// The keys of a section that may be missing.
    fn read(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> Self;

    /// Each key of `other` where this one does not have it.
    #[must_use]
    fn or(&self, other: &Self) -> Self;

    fn object() -> Value {
        let properties: Map<String, Value> = Self::properties().into_iter().collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    fn schema() -> Value {
        described(Self::ABOUT, Self::object(), None)
    }

    /// The schema of several.
    fn list() -> Value {
        described(Self::ABOUT, json!({"type": "array", "items": Self::object()}), None)
    }
}

/// A schema with what comments say of it, and with a default.
fn described(comments: &str, mut schema: Value, default: Option<Value>) -> Value {
    schema["description"] = json!(comments.trim());
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

/// Declares a section. Comments are the words of the schema. `=> X` makes an X of keys that all have defaults; `with` takes
/// the keys of another declaration in, and `lists` tables below this one.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $raw:ident $(($at:ident))? $(=> $settings:ident)?
        $(with $part:ident: $within:ident)? $(lists $($list:ident: $item:ident),+)? {
            $(
                $(#[doc = $words:literal])+
                $key:ident: $kind:ident $(<$of:ty>)? $(($($rule:expr),+))? $(= $default:expr)?,
            )*
        }
    ) => {
        #[derive(Clone)]
        pub(super) struct $raw<'a> {
            $(pub $at: usize,)?
            $(pub $key: section!(@type 'a, $kind $(<$of>)? $(, $default)?),)*
            $(pub $part: $within<'a>,)?
            $($(pub $list: Vec<$item<'a>>,)+)?
        }

        impl<'a> Keys<'a> for $raw<'a> {
            const ABOUT: &'static str = concat!($($about),+);

            fn names() -> Vec<&'static str> {
                [
                    vec![$(stringify!($key)),*],
                    $($within::names(),)?
                    $(vec![$(stringify!($list)),+],)?
                ].concat()
            }

            fn properties() -> Vec<(String, Value)> {
                [
                    vec![$((
                        stringify!($key).to_owned(),
                        section!(@schema concat!($($words),+), $kind $(($($rule),+))? $(, $default)?),
                    )),*],
                    $($within::properties(),)?
                    $(vec![$((stringify!($list).to_owned(), $item::list())),+],)?
                ].concat()
            }

            fn read(section: Option<&Section<'a>>, problems: &mut Problems<'_>) -> Self {
                $raw {
                    $($at: section.map_or(0, |section| section.at),)?
                    $($key: section!(
                        @read field(section, stringify!($key), &$kind $(($($rule),+))?, problems) $(, $default)?
                    ),)*
                    $($part: $within::read(section, problems),)?
                    $($($list: list(section, stringify!($list), problems),)+)?
                }
            }

            fn or(&self, other: &Self) -> Self {
                $raw {
                    $($at: self.$at,)?
                    $($key: self.$key.or(&other.$key),)*
                    $($part: self.$part.or(&other.$part),)?
                    $($($list: [&self.$list[..], &other.$list].concat(),)+)?
                }
            }
        }

        section!(@into $raw ($($settings)?) $($key)*);
    };
    (@type $a:lifetime, $kind:ty) => { Field<<$kind as Kind>::Value<$a>> };
    (@type $a:lifetime, $kind:ty, $default:expr) => { Setting<<$kind as Kind>::Value<$a>> };
    (@read $field:expr) => { $field };
    (@read $field:expr, $default:expr) => { Setting::new($field, $default) };
    (@schema $words:expr, $kind:expr) => { described($words, $kind.schema(), None) };
    (@schema $words:expr, $kind:expr, $default:expr) => {
        described($words, $kind.schema(), Some($kind.typed(&$default)))
    };
    (@into $raw:ident () $($key:ident)*) => {};
    (@into $raw:ident ($settings:ident) $($key:ident)*) => {
        impl From<$raw<'_>> for $settings {
            fn from(raw: $raw<'_>) -> Self {
                $settings { $($key: raw.$key.value),* }
            }
        }
    };
}

section! {
    /// The dataset.
    RawDataset {
        /// The kind of its tasks.
        family: Choice<Family>("unknown family {}", &Family::ALL, Family::as_str) = Family::default(),
        /// Name of the dataset; a folder below the output.
        name: Formed(NAME),
        /// Its version; a folder below the name.
        version: Formed(NAME),
        /// Decides which instances are drawn.
        seed: Whole(u64::MAX) = 0,
        /// Most instances of each repository; 0 keeps all. 10 by default in the family recube.
        per_repo: Count(0) = 25,
        /// Instances of the subset `top` by trace length, and by unique files; by each at most a fifth of all.
        hard_per_axis: Count(1) = 30,
        /// Also publish instances that no submission can solve by the rules.
        sample_unsolvable: Flag = false,
        /// Only tests (`pytest`), or commands of these kinds; all by default.
        kinds: Choices<&'static str>(KIND),
    }
}

section! {
    /// How tests are proved. `compare` holds for screening and for the score.
    RawScreen => Screen {
        /// Agreeing attempts that a published instance needs.
        attempts: Count(2) = 10,
        /// Cold runs of the literal entry command for each published instance.
        cold_runs: Count(1) = 1,
        /// Further groups that are run cold, to measure agreement with the fork tree.
        parity_groups: Count(0) = 0,
        /// Longest run of a case.
        case_timeout: Span = Duration::from_mins(1),
        /// Longest run of a group; not below `case_timeout`.
        group_timeout: Span = Duration::from_mins(5),
        /// Keep groups of which some cases fail, where others pass.
        partial_groups: Flag = false,
        /// What must agree: "output" (outcomes, exception types and everything printed), "exception" (no output) or
        /// "outcome" (outcomes alone). Differences in what is not compared give the flag `output-differs` or
        /// `exception-differs`.
        compare: Choice<Compare>("nothing is compared by {}", &Compare::ALL, Compare::as_str) = Compare::default(),
    }
}

section! {
    /// Machine-made solutions.
    RawWitness => Witness {
        /// Make them in a build.
        make: Flag = false,
        /// Publish only instances that have one.
        required: Flag = false,
    }
}

section! {
    /// How strong the tests of what is published are.
    RawMutation => Mutation {
        /// Small changes of the code that an instance runs, to see which its test notices, at most so many; 0 makes none.
        mutants: Count(0) = 10,
        /// Publish only instances whose test notices at least this share of them, and no commands.
        min_score: Part("share", 1) = 0.0,
    }
}

section! {
    /// What is asked of targets, in the family recube.
    RawRecube => Bounds {
        /// Kept groups that reach a target; at least so many.
        min_groups: Count(1) = Bounds::default().min_groups,
        /// Groups that judge an instance; more only as long as each adds lines of the target. 0 sets no limit.
        max_groups: Count(0) = Bounds::default().max_groups,
        /// Functions of a target that have a body; at least so many.
        min_functions: Count(1) = Bounds::default().min_functions,
        /// Share of these functions that the groups call; at least so much.
        min_exercised: Part("share", 1) = Bounds::default().min_exercised,
        /// Tokens of a target, at most so many.
        max_target_tokens: Count(1) = Bounds::default().max_target_tokens,
        /// Whether the tests have to notice when a body is masked, of half of the bodies at least.
        require_noticed: Flag = Bounds::default().require_noticed,
        /// Whether each target of a `[[repo.scope]]` is an instance with the whole tree too.
        large: Flag = Bounds::default().large,
        /// Small changes of a target that the cases are asked to notice, at most so many: the column `mutation_score`.
        mutants: Count(0) = Bounds::default().mutants,
        /// Files that prompts do not show, by globs; documentation, examples and benchmarks of the root by default.
        context_exclude: Globs = Bounds::default().context_exclude,
    }
}

section! {
    /// What is asked of pairs of commits, in the family codetaste.
    RawCodetaste => Settings {
        /// Whole runs of the suite on each tree.
        runs: Count(1) = Settings::default().runs,
        /// Tests of a run; at least so many.
        min_tests: Count(1) = Settings::default().min_tests,
        /// Share of them that passes; at least so much.
        min_pass_rate: Part("share", 1) = Settings::default().min_pass_rate,
        /// What a whole run may take, for each of the attempts that are made at the same time.
        suite_timeout: Span = Settings::default().suite_timeout,
        /// Patterns of a pair that are taken; at least so many.
        min_patterns: Count(1) = Settings::default().min_patterns,
        /// Share of the lines which the golden patch changes that they match; at least so much.
        min_coverage: Part("share", 1) = Settings::default().min_coverage,
        /// Whether a pair without `patterns` gets those that a program finds.
        mine: Flag = Settings::default().mine,
    }
}

section! {
    /// Percentile ranks at which tiers begin.
    RawTier => TierBounds {
        /// Tier `medium` begins here.
        medium: Part("percentile", 100) = 50.0,
        /// Tier `hard` begins here.
        hard: Part("percentile", 100) = 80.0,
    }
}

section! {
    /// What the prompts of the instances are for.
    RawPrompt => PromptSettings {
        /// What the agent may run.
        execution: Choice<ExecutionSetting>("unknown execution {}", &ExecutionSetting::ALL, ExecutionSetting::as_str)
            = ExecutionSetting::default(),
        /// How the agent should go about it.
        strategy: Choice<Strategy>("unknown strategy {}", &Strategy::ALL, Strategy::as_str) = Strategy::default(),
        /// Put the source of the test into the prompt.
        test_in_prompt: Flag = false,
    }
}

// Memory is left to the machine (an address-space limit breaks numeric libraries that reserve much and use little); 1024
// processes and threads stop a fork bomb and leave room for thread pools.
section! {
    /// Limits of an attempt.
    RawLimits => Limits {
        /// Memory of each process and, with control groups, of all processes of a job together. By default no limit for a
        /// process, three quarters of the machine's for a job.
        memory: Size(64 * MEBIBYTE) = 0,
        /// Processes at the same time; 0 sets no limit.
        processes: Whole(u32::MAX.into()) = 1024,
        /// Size of a file that a test writes.
        file_size: Size(64 << 10) = 1 << 30,
        /// Output of an attempt that is kept.
        output: Size(1 << 10) = MEBIBYTE,
    }
}

section! {
    /// Containers, for repositories with `backend = "docker"`.
    RawDocker {
        /// Base image, best by digest. By default the official slim Python 3.12 image.
        base: Formed(IMAGE),
        /// Memory of a container, swap included. By default three quarters of what the engine's machine has.
        memory: Size(64 * MEBIBYTE) = 0,
        /// Processors of a container; 0 sets no limit.
        cpus: Cpus = 0,
        /// Disk that the layers of images may take; 0 sets no limit.
        disk_budget: Size(MEBIBYTE) = 20 << 30,
    }
}

section! {
    /// Repositories, one `[[repo]]` each.
    RawRepo(at) with own: RawOwn lists target: RawTarget, scope: RawScope, entry: RawEntry {
        /// Its name, `owner/name`.
        slug: Formed("^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$"),
        /// URL of a git repository; goes with `commit`.
        git: Text,
        /// A directory, with or without git, from the folder of this file.
        path: Text,
        /// A source distribution of the package index in use, `name==version`; goes with `sha256`.
        pypi: Formed("=="),
        /// Full hash of the commit.
        commit: Formed("^[0-9a-fA-F]{40}([0-9a-fA-F]{24})?$"),
        /// The branch that `gistmill refresh` follows; by default the repository's own.
        branch: Text,
        /// Hash of the source distribution.
        sha256: Formed("^[0-9a-fA-F]{64}$"),
        /// Fetch git submodules.
        submodules: Flag = true,
        /// Take a directory with changes that are not committed as it is.
        allow_uncommitted: Flag = false,
        /// What it is about, for tables by domain (family recube).
        domain: Text,
        /// Whether its instances count as the large set (family recube).
        large: Flag = false,
        /// A folder with tests in the place of the repository's own, a file `<target, / as _>_test.py` each (family recube).
        tests_from: Text,
        /// Where in the tree these tests are put.
        tests_at: Text = "tests",
        /// Commands that are entries: those of `[[repo.entry]]`, these and what is found in the tree, or none.
        entries: Choice<EntriesMode>("unknown value {} of `entries`", &EntriesMode::ALL, EntriesMode::as_str)
            = EntriesMode::default(),
    }
}

section! {
    /// What a repository has, and a pair may have in its place.
    RawOwn {
        /// The folder of a git repository that is the tree.
        subdirectory: Text,
        /// Interpreter; inferred by default.
        python: Formed(r"^3\.\d+(\.\d+)?$"),
        /// Dependency groups (PEP 735) to install; with `extras` and `requirements` they replace what the tree declares.
        groups: Texts,
        /// Extras of the project to install.
        extras: Texts,
        /// Requirements, requirements files of the tree, or folders of the tree (`./packages/core`).
        requirements: Texts,
        /// Arguments of the collection; by default what pytest's configuration says.
        tests: Texts,
        /// Environment variables of the tests. Values of those whose names look like secrets are not published.
        env: Pairs,
        /// Where its tests run.
        backend: Choice<BackendKind>("unknown backend {}", &BackendKind::ALL, BackendKind::as_str) = BackendKind::Local,
        /// Time or date; nothing that was uploaded later is installed. By default the time of the pin, or ninety days after
        /// the interpreter came out where that is later.
        exclude_newer: Date,
        /// Base image in place of the one in [docker].
        base: Formed(IMAGE),
        /// Packages of the base image's distribution to install.
        system_packages: Texts,
    }
}

section! {
    /// The only targets, `[[repo.target]]` with `file` each (family recube).
    RawTarget(at) {
        /// The Python file, from the root of the tree.
        file: Text,
    }
}

section! {
    /// Parts of the tree that agents and prompts are shown, `[[repo.scope]]` each; all of it by default (family recube).
    RawScope(at) {
        /// Unique in its repository.
        name: Formed("^[A-Za-z0-9._-]+$"),
        /// Files of it, by globs: `*` and `?` within a name, `**` also across folders.
        paths: Globs,
    }
}

section! {
    /// Commands whose behaviour becomes a task, `[[repo.entry]]` each.
    RawEntry(at) {
        /// Unique in its repository; by default made from the command.
        name: Text,
        /// `python PATH …`, `python -m NAME …`, `python -c TEXT …`, or a script that the project declares. No shell reads it.
        command: Text,
        /// What standard input has; by default nothing.
        stdin: Text,
        /// The file of the tree that standard input reads.
        stdin_file: Text,
        /// Further environment variables.
        env: Pairs,
        /// The folder of the tree that it runs in; by default the root.
        cwd: Text,
        /// The exit status that is expected.
        exit: Status = 0,
        /// Globs of the files whose changes count; by default all below the tree.
        files: Texts,
    }
}

section! {
    /// Pairs of commits, in the family codetaste: a tree, and a refactoring of it.
    RawPair(at) with own: RawOwn {
        /// The slug of its [[repo]], which then has no `commit`.
        repo: Text,
        /// The commit that is the refactoring, by its full hash; this or `patch`.
        golden: Text,
        /// A file with the refactoring as git's diff onto `commit`, relative to this file.
        patch: Text,
        /// The commit that an agent starts from; the first parent of `golden` when left out, which only a clone on this
        /// machine says.
        commit: Text,
        /// What an agent of the track `instructed` gets to read.
        description: Text,
        /// A folder with `description.md`, `open_description.md` or both, relative to this file.
        descriptions: Text,
        /// Files with patterns, relative to this file.
        patterns: TextOrTexts,
        /// A folder with an executable `run_tests`, relative to this file, which runs the suite in the place of pytest, in the
        /// image `base`; `setup_system.sh` and `setup_shell.sh` are run before it. With `backend = "docker"`.
        run_tests: Text,
    }
}

section! {
    /// Named subsets, one `[subset.<name>]` each. An instance must pass all conditions.
    RawSubset {
        /// Only of these repositories.
        repos: Texts,
        /// Only of these tiers.
        tiers: Choices<Tier>(Choice("unknown tier {}", &Tier::ALL, Tier::as_str)),
        /// Only tests (`pytest`), or commands of these kinds.
        kinds: Choices<&'static str>(KIND),
        /// Only what is, or is not, in the subset `top`.
        top: Flag,
        /// The former name of `top`.
        hard: Flag,
        /// Then at most so many of each repository; 0 sets no limit.
        per_repo: Count(0) = 0,
        /// Then at most so many in all; 0 sets no limit.
        size: Count(0) = 0,
        /// Decides which are drawn.
        seed: Whole(u64::MAX) = 0,
    }
}

section! {
    /// The range of a measurement, both ends included.
    RawRange(at) {
        /// Least.
        min: Number,
        /// Most.
        max: Number,
    }
}

/// Sections, as written in the file, with their keys and schemas.
type Sections = [(&'static str, &'static str, fn() -> Vec<&'static str>, fn() -> Value); 13];
pub(super) const SECTIONS: Sections = [
    ("dataset", "[dataset]", RawDataset::names, RawDataset::schema),
    ("screen", "[screen]", RawScreen::names, RawScreen::schema),
    ("witness", "[witness]", RawWitness::names, RawWitness::schema),
    ("mutation", "[mutation]", RawMutation::names, RawMutation::schema),
    ("recube", "[recube]", RawRecube::names, RawRecube::schema),
    ("codetaste", "[codetaste]", RawCodetaste::names, RawCodetaste::schema),
    ("tier", "[tier]", RawTier::names, RawTier::schema),
    ("prompt", "[prompt]", RawPrompt::names, RawPrompt::schema),
    ("limits", "[limits]", RawLimits::names, RawLimits::schema),
    ("docker", "[docker]", RawDocker::names, RawDocker::schema),
    ("repo", "[[repo]]", RawRepo::names, RawRepo::list),
    ("pair", "[[pair]]", RawPair::names, RawPair::list),
    ("subset", "[subset.<name>]", RawSubset::names, RawSubset::schema),
];

/// The whole file.
pub(super) struct Raw<'a> {
    pub dataset: RawDataset<'a>,
    pub screen: RawScreen<'a>,
    pub witness: RawWitness<'a>,
    pub mutation: RawMutation<'a>,
    pub recube: RawRecube<'a>,
    pub codetaste: RawCodetaste<'a>,
    pub tier: RawTier<'a>,
    pub prompt: RawPrompt<'a>,
    pub limits: RawLimits<'a>,
    pub docker: RawDocker<'a>,
    pub repos: Vec<RawRepo<'a>>,
    pub pairs: Vec<RawPair<'a>>,
    pub subsets: Vec<NamedSubset<'a>>,
    /// Where these sections start; none when they are missing.
    pub dataset_at: Option<usize>,
    pub mutation_at: Option<usize>,
    pub recube_at: Option<usize>,
    pub codetaste_at: Option<usize>,
    /// Whether `dataset` exists, in whatever form.
    pub has_dataset: bool,
    /// Whether a `repo` exists, in whatever form.
    pub has_repos: bool,
}

/// One `[subset.<name>]`.
pub(super) struct NamedSubset<'a> {
    pub name: Located<&'a str>,
    pub keys: RawSubset<'a>,
    pub ranges: Vec<(Measure, RawRange<'a>)>,
}

/// Takes a parsed file apart.
pub(super) fn read<'a>(table: &'a DeTable<'a>, problems: &mut Problems<'_>) -> Raw<'a> {
    let root = Section::root(table);
    refuse_unknown(&root, "", &SECTIONS.map(|(key, ..)| key), problems);
    let (dataset_at, dataset) = one(&root, "dataset", problems);
    let (mutation_at, mutation) = one(&root, "mutation", problems);
    let (recube_at, recube) = one(&root, "recube", problems);
    let (codetaste_at, codetaste) = one(&root, "codetaste", problems);
    let subsets = root.named_sections("subset", problems);
    Raw {
        dataset,
        screen: one(&root, "screen", problems).1,
        witness: one(&root, "witness", problems).1,
        mutation,
        recube,
        codetaste,
        tier: one(&root, "tier", problems).1,
        prompt: one(&root, "prompt", problems).1,
        limits: one(&root, "limits", problems).1,
        docker: one(&root, "docker", problems).1,
        repos: list(Some(&root), "repo", problems),
        pairs: list(Some(&root), "pair", problems),
        subsets: subsets.into_iter().map(|(name, section)| subset(name, &section, problems)).collect(),
        dataset_at,
        mutation_at,
        recube_at,
        codetaste_at,
        has_dataset: root.has("dataset"),
        has_repos: root.has_some("repo"),
    }
}

/// A section that may be missing, and where it starts.
fn one<'a, K: Keys<'a>>(root: &Section<'a>, name: &str, problems: &mut Problems<'_>) -> (Option<usize>, K) {
    let section = root.section(name, problems).given().map(|section| section.value);
    if let Some(section) = &section {
        refuse_unknown(section, name, &K::names(), problems);
    }
    (section.as_ref().map(|section| section.at), K::read(section.as_ref(), problems))
}

/// Tables of one name; none when they are missing.
fn list<'a, K: Keys<'a>>(within: Option<&Section<'a>>, name: &str, problems: &mut Problems<'_>) -> Vec<K> {
    let sections = within.map(|section| section.sections(name, problems)).unwrap_or_default();
    let mut read = |section: &Section<'a>| {
        refuse_unknown(section, name, &K::names(), problems);
        K::read(Some(section), problems)
    };
    sections.iter().map(&mut read).collect()
}

fn subset<'a>(name: Located<&'a str>, section: &Section<'a>, problems: &mut Problems<'_>) -> NamedSubset<'a> {
    let known = [RawSubset::names(), Measure::ALL.map(Measure::as_str).into()].concat();
    refuse_unknown(section, "subset", &known, problems);
    let mut ranges = Vec::new();
    for measure in Measure::ALL {
        let (at, range) = one(section, measure.as_str(), problems);
        ranges.extend(at.map(|_| (measure, range)));
    }
    NamedSubset { name, keys: RawSubset::read(Some(section), problems), ranges }
}

/// Reads one key of a section that may be missing.
fn field<'a, K: Kind>(
    section: Option<&Section<'a>>,
    key: &str,
    kind: &K,
    problems: &mut Problems<'_>,
) -> Field<K::Value<'a>> {
    section.map_or(Field::Missing, |section| kind.read(section, key, problems))
}

/// Refuses other keys than these, and names the section that knows them where this one is a section too.
fn refuse_unknown(section: &Section<'_>, name: &str, known: &[&str], problems: &mut Problems<'_>) {
    let is_section = name.is_empty() || SECTIONS.iter().any(|(other, ..)| *other == name);
    let knows = |key: &str| {
        let home = SECTIONS.iter().find(|(other, _, keys, _)| *other != name && keys().contains(&key));
        home.filter(|_| is_section).map(|(_, shown, ..)| (*shown).to_owned())
    };
    section.refuse_unknown(known, knows, problems);
}
