//! The tables of `ReCUBE`: masked files, candidates, the cases that judge, and calls into what is masked.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::assemble::{Assembled, Repository, head};
use super::dictionary::Entry;
use super::manifest::Manifest;
use super::opened::Dataset;
use super::rated::{Rate, rate};
use super::schema::{
    ColumnOf, InstanceRow, borrowed, flag, number, numbers, properties, real, text, texts, with_head,
};
use super::write::{table, text as write_text};
use super::{DatasetInput, own};
use crate::error::{Error, Result};
use crate::family::WORKDIR;
use crate::family::recube::prompt;
use crate::family::tier::{Difficulty, flake_bound};
use crate::record::entry::pytest_line;
use crate::record::id::{RepoSlug, sha256_hex};
use crate::record::instance::{Axis, Contribution, Head, Tier};
use crate::record::recube::{InstanceCase, Kind, PublishedTarget, TargetCause, TargetRow, Way};
use crate::record::trace::FunctionCalls;

/// Tables of this family alone.
const TABLES: [&str; 2] = ["targets", "instance_cases"];
/// What prompts show of repositories; where code is passed on.
const CONTEXTS: &str = "contexts";
/// Rows of it that are read at once: each is long.
const PART: usize = 16;

/// Cases by instance ID.
pub(crate) type InstanceCases = BTreeMap<String, Vec<InstanceCase>>;

/// A row of `instances`, in the order of the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecubeInstance {
    #[serde(flatten)]
    pub head: Head,
    /// The masked file, from the root of the tree.
    pub target: String,
    pub scope: String,
    #[serde(default)]
    pub large: bool,
    pub domain: Option<String>,
    pub entry_command: String,
    pub prompt: String,
    #[serde(rename = "FAIL_TO_PASS")]
    pub fail_to_pass: Vec<String>,
    #[serde(rename = "PASS_TO_PASS")]
    pub pass_to_pass: Vec<String>,
    pub target_lines: u64,
    pub target_statements: u64,
    pub functions: u64,
    pub masked_functions: u64,
    pub called_functions: u64,
    pub noticed_functions: u64,
    #[serde(default)]
    pub unnoticed: Vec<String>,
    #[serde(default)]
    pub mutation_score: Option<f64>,
    pub docstring_none: u64,
    pub docstring_line: u64,
    pub docstring_sections: u64,
    pub docstring_full: u64,
    pub reached_by: u64,
    pub n_groups: u64,
    pub n_cases: u64,
    pub n_external: u64,
    pub n_internal: u64,
    pub n_direct: u64,
    pub n_through: u64,
    pub callers: Vec<String>,
    pub caller_files: u64,
    pub trace_calls: u64,
    pub imports_removed: u64,
    pub published_leak: Option<String>,
    /// None where code is not passed on.
    pub masked: Option<String>,
    pub masked_sha256: String,
    pub original_sha256: String,
    pub hidden_files: Vec<String>,
    pub leaks: Vec<String>,
    #[serde(default)]
    pub target_tokens: Option<u64>,
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// None where code is not passed on.
    #[serde(default)]
    pub context_sha256: Option<String>,
    pub tier: Tier,
    pub hard_axes: Vec<String>,
    pub attempts: u32,
    pub flake_bound: f64,
    pub environment: String,
    pub lock_sha256: String,
    pub image: Option<String>,
    pub image_id: Option<String>,
    pub flags: Vec<String>,
}

impl InstanceRow for RecubeInstance {
    fn columns() -> Vec<ColumnOf<Self>> {
        instances()
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn rating(&self) -> (Tier, bool) {
        (self.tier, !self.hard_axes.is_empty())
    }
}

/// The columns of `instances`.
pub fn instances() -> Vec<ColumnOf<RecubeInstance>> {
    with_head(vec![
        text("target", |row| Some(&row.target)),
        text("scope", |row| Some(&row.scope)),
        flag("large", |row| Some(row.large)),
        text("domain", |row| row.domain.as_deref()),
        text("entry_command", |row| Some(&row.entry_command)),
        text("prompt", |row| Some(&row.prompt)),
        texts("FAIL_TO_PASS", |row| Some(borrowed(&row.fail_to_pass))),
        texts("PASS_TO_PASS", |row| Some(borrowed(&row.pass_to_pass))),
        number("target_lines", |row| Some(row.target_lines)),
        number("target_statements", |row| Some(row.target_statements)),
        number("functions", |row| Some(row.functions)),
        number("masked_functions", |row| Some(row.masked_functions)),
        number("called_functions", |row| Some(row.called_functions)),
        number("noticed_functions", |row| Some(row.noticed_functions)),
        texts("unnoticed", |row| Some(borrowed(&row.unnoticed))),
        real("mutation_score", |row| row.mutation_score),
        number("docstring_none", |row| Some(row.docstring_none)),
        number("docstring_line", |row| Some(row.docstring_line)),
        number("docstring_sections", |row| Some(row.docstring_sections)),
        number("docstring_full", |row| Some(row.docstring_full)),
        number("reached_by", |row| Some(row.reached_by)),
        number("n_groups", |row| Some(row.n_groups)),
        number("n_cases", |row| Some(row.n_cases)),
        number("n_external", |row| Some(row.n_external)),
        number("n_internal", |row| Some(row.n_internal)),
        number("n_direct", |row| Some(row.n_direct)),
        number("n_through", |row| Some(row.n_through)),
        texts("callers", |row| Some(borrowed(&row.callers))),
        number("caller_files", |row| Some(row.caller_files)),
        number("trace_calls", |row| Some(row.trace_calls)),
        number("imports_removed", |row| Some(row.imports_removed)),
        text("published_leak", |row| row.published_leak.as_deref()),
        text("masked", |row| row.masked.as_deref()),
        text("masked_sha256", |row| Some(&row.masked_sha256)),
        text("original_sha256", |row| Some(&row.original_sha256)),
        texts("hidden_files", |row| Some(borrowed(&row.hidden_files))),
        texts("leaks", |row| Some(borrowed(&row.leaks))),
        number("target_tokens", |row| row.target_tokens),
        number("context_tokens", |row| row.context_tokens),
        text("context_sha256", |row| row.context_sha256.as_deref()),
        text("tier", |row| Some(row.tier.as_str())),
        texts("hard_axes", |row| Some(borrowed(&row.hard_axes))),
        number("attempts", |row| Some(row.attempts.into())),
        real("flake_bound", |row| Some(row.flake_bound)),
        text("environment", |row| Some(&row.environment)),
        text("lock_sha256", |row| Some(&row.lock_sha256)),
        text("image", |row| row.image.as_deref()),
        text("image_id", |row| row.image_id.as_deref()),
        texts("flags", |row| Some(borrowed(&row.flags))),
    ])
}

/// A row of a repository.
struct Of<'a, T> {
    slug: &'a RepoSlug,
    row: &'a T,
}

fn targets<'a>() -> Vec<ColumnOf<Of<'a, TargetRow>>> {
    vec![
        text("slug", |of| Some(of.slug.as_str())),
        text("target", |of| Some(&of.row.file)),
        flag("kept", |of| Some(of.row.cause.is_none())),
        flag("published", |of| Some(of.row.published)),
        text("cause", |of| of.row.cause.map(TargetCause::as_str)),
        text("evidence", |of| of.row.evidence.as_deref()),
        number("rank", |of| of.row.rank),
        number("target_lines", |of| Some(of.row.measured.target_lines)),
        number("target_statements", |of| Some(of.row.measured.target_statements)),
        number("functions", |of| Some(of.row.measured.functions)),
        number("masked_functions", |of| Some(of.row.measured.masked_functions)),
        number("called_functions", |of| Some(of.row.measured.called_functions)),
        number("reached_by", |of| Some(of.row.measured.reached_by)),
        number("caller_files", |of| Some(of.row.measured.callers.len() as u64)),
        number("trace_calls", |of| Some(of.row.measured.trace_calls)),
        number("imports_removed", |of| Some(of.row.measured.imports_removed)),
        text("published_leak", |of| of.row.measured.published_leak.as_deref()),
    ]
}

/// A case with the target that it judges.
struct CaseOf<'a> {
    target: &'a PublishedTarget,
    case: &'a InstanceCase,
}

fn instance_cases<'a>() -> Vec<ColumnOf<CaseOf<'a>>> {
    vec![
        text("instance_id", |of| Some(of.target.instance_id.as_str())),
        text("group_id", |of| Some(&of.case.group_id)),
        text("case_id", |of| Some(&of.case.case_id)),
        text("kind", |of| Some(of.case.kind.as_str())),
        text("reason", |of| Some(of.case.reason.as_str())),
        text("entry", |of| Some(of.case.way.as_str())),
        text("left_out", |of| of.case.left_out.as_deref()),
    ]
}

fn contexts<'a>() -> Vec<ColumnOf<&'a PublishedTarget>> {
    vec![
        text("instance_id", |target| Some(target.instance_id.as_str())),
        text("context", |target| Some(&target.context)),
    ]
}

/// A function of a target that a group calls.
struct CallsOf<'a> {
    target: &'a PublishedTarget,
    group_id: &'a str,
    function: &'a FunctionCalls,
}

fn traces<'a>() -> Vec<ColumnOf<CallsOf<'a>>> {
    vec![
        text("instance_id", |of| Some(of.target.instance_id.as_str())),
        text("group_id", |of| Some(of.group_id)),
        text("file", |of| Some(&of.function.file)),
        text("function", |of| Some(&of.function.function)),
        number("line", |of| Some(of.function.line.into())),
        number("calls", |of| Some(of.function.calls)),
        number("order", |of| Some(of.function.order.into())),
        numbers("lines", |of| of.function.lines.as_deref()),
    ]
}

/// What every column means; a test holds it against the columns that are written.
pub const DICTIONARY: [(&str, &[Entry]); 5] = [
    ("instances", INSTANCES),
    ("targets", TARGETS),
    ("instance_cases", INSTANCE_CASES),
    ("traces", TRACES),
    (CONTEXTS, CONTEXT),
];

/// Columns of a table with their types and meanings, as of [`super::json_schema`].
pub(super) fn properties_of(table: &str) -> Option<Map<String, Value>> {
    Some(match table {
        "instances" => properties(&instances(), INSTANCES),
        "targets" => properties(&targets(), TARGETS),
        "instance_cases" => properties(&instance_cases(), INSTANCE_CASES),
        "traces" => properties(&traces(), TRACES),
        CONTEXTS => properties(&contexts(), CONTEXT),
        _ => return None,
    })
}

const CONTEXT: &[Entry] = &[
    ("instance_id", "the instance"),
    (
        "context",
        "all of the repository that a prompt shows: README, dependencies, files, with the mask in the place of the target",
    ),
];

const INSTANCES: &[Entry] = &[
    ("instance_id", "`<owner>__<name>.<target>-<digits>`: a function of slug, commit, scope and target"),
    ("family", "`recube`"),
    ("slug", "the repository, `owner/name`"),
    ("repo", "the same, by the name that SWE-bench's readers look for"),
    ("commit", "the pin: a commit, or `sha256:…` of an archive"),
    ("base_commit", "the commit; null for an archive"),
    ("version", "version of the release, or the first digits of the pin"),
    ("created_at", "time of the pin (RFC 3339), not of the build"),
    ("source", "where the repository comes from"),
    ("license", "SPDX expression of the repository's license; null when unsure"),
    ("python", "version of the interpreter"),
    ("target", "the file that is masked, from the root of the tree"),
    ("scope", "the part of the tree that is shown; `*` is all of it"),
    ("large", "whether it is one of the large set, whose instances are shown whole repositories"),
    ("domain", "what the repository is about, as the configuration says; null where it does not"),
    ("entry_command", "the command that runs the groups that judge"),
    ("prompt", "what an agent is asked to do"),
    ("FAIL_TO_PASS", "node IDs of the cases that judge: they pass with the original, and not with the mask"),
    ("PASS_TO_PASS", "empty"),
    ("target_lines", "lines of the original"),
    ("target_statements", "statements of the masked bodies at whatever depth, docstrings aside"),
    ("functions", "functions that are not inside another one, stubs included"),
    ("masked_functions", "those with a body: more than `...`, `pass` or `raise NotImplementedError`"),
    ("called_functions", "functions with a body that a group which reaches the target calls"),
    ("noticed_functions", "functions with a body without which a case does not pass"),
    ("unnoticed", "the other functions with a body, by qualified name: no case misses them"),
    (
        "mutation_score",
        "share of small mutants after which a case does not pass; null where none were made (`mutants` in [recube])",
    ),
    ("docstring_none", "functions with a body that have no docstring"),
    ("docstring_line", "those whose docstring names neither arguments nor results"),
    ("docstring_sections", "those whose docstring names arguments or results"),
    ("docstring_full", "those whose docstring has arguments, results and examples"),
    ("reached_by", "kept groups that call a function of the target"),
    ("n_groups", "groups that judge"),
    ("n_cases", "cases that judge"),
    ("n_external", "those of them that see the target as other files do"),
    ("n_internal", "those that know what is inside"),
    ("n_direct", "those whose calls into the target come from tests alone"),
    ("n_through", "those whose calls come from other files alone"),
    ("callers", "files that call into the target in some kept group, tests aside"),
    ("caller_files", "their number"),
    ("trace_calls", "calls into the target by all kept groups"),
    ("imports_removed", "import statements that the mask lacks"),
    (
        "published_leak",
        "`empty-block` or `fence` where the published full-context prompt would show the bodies; null where not",
    ),
    ("masked", "the mask; null where code is not passed on"),
    ("masked_sha256", "SHA-256 of the mask"),
    ("original_sha256", "SHA-256 of the original"),
    (
        "hidden_files",
        "other files of the tree that an agent does not see: tests, byte code and copies of the target, Python files outside of the scope",
    ),
    (
        "leaks",
        "files that have a fifth of the bodies of three statements or more, and two of them or all: of the tree by path, of the environment as `venv/…`",
    ),
    ("target_tokens", "tokens of the original, by cl100k_base"),
    ("context_tokens", "tokens of the context in `contexts`, by cl100k_base"),
    ("context_sha256", "SHA-256 of that context; null where code is not passed on"),
    ("tier", "`easy`, `medium` or `hard`, by rank within this dataset"),
    ("hard_axes", "axes on which the instance is among the hardest: `target_statements`, `caller_files`"),
    ("attempts", "runs that agreed, of the group that has fewest"),
    ("flake_bound", "upper bound of the failure rate of that group, with 95 % confidence"),
    ("environment", "folder with the lock and the Dockerfile"),
    ("lock_sha256", "SHA-256 of the lock"),
    (
        "image",
        "tag of the container image of the environment, which has the original; null where none was made",
    ),
    ("image_id", "the image's id"),
    (
        "flags",
        "`bodies-unnoticed`: the cases notice fewer than half of the bodies; `long-answer`: the original has more than 8,192 tokens",
    ),
];
const TARGETS: &[Entry] = &[
    ("slug", "the repository"),
    ("target", "a Python file that kept groups call, tests aside, from the root of the tree"),
    ("kept", "whether it can be an instance"),
    ("published", "whether it is one"),
    ("cause", "why it cannot; null when kept"),
    ("evidence", "what proves the cause, in words"),
    ("rank", "its place among what was kept before the gates; the first ones are published"),
    ("target_lines", "lines of the original"),
    ("target_statements", "statements of the masked bodies, docstrings aside"),
    ("functions", "functions that are not inside another one, stubs included"),
    ("masked_functions", "those with a body"),
    ("called_functions", "those with a body that groups call"),
    ("reached_by", "kept groups that call a function of it"),
    ("caller_files", "files that call into it, tests aside"),
    ("trace_calls", "calls into it by all kept groups"),
    ("imports_removed", "import statements that the mask lacks"),
    ("published_leak", "as in `instances`"),
];
const INSTANCE_CASES: &[Entry] = &[
    ("instance_id", "the instance"),
    ("group_id", "a group that was chosen for it"),
    ("case_id", "node ID of a case of that group"),
    ("kind", "`external` or `internal`"),
    ("reason", "why the group is of that kind; `given` where tests from outside say so"),
    (
        "entry",
        "who calls into the target: `direct` (tests alone), `through` (other files alone), `both`, `none`",
    ),
    ("left_out", "the gate that the case passed and should not have; null for a case that judges"),
];
const TRACES: &[Entry] = &[
    ("instance_id", "the instance"),
    ("group_id", "a group that was chosen for it"),
    ("file", "the target"),
    ("function", "a function of the target that the group calls, by its qualified name"),
    ("line", "first line of its definition, decorators included"),
    ("calls", "how often it is called while the cases run"),
    ("order", "its place in the order of first calls of the group, from 0"),
    ("lines", "its lines that ran; null where the interpreter does not show them"),
];

/// Names of the axes, in the order of [`crate::family::tier::AXES`].
fn axis_name(axis: Axis) -> &'static str {
    match axis {
        Axis::TraceLength => "target_statements",
        Axis::UniqueFiles => "caller_files",
    }
}

/// The instances of a dataset, by slug, then target.
///
/// # Errors
/// A dataset with a contribution of another family, which is a bug.
fn rows<'a>(
    dataset: &DatasetInput<'_>,
    repositories: impl Iterator<Item = (&'a Repository<'a>, &'a Contribution)>,
) -> Vec<RecubeInstance> {
    let mut rows = Vec::new();
    for (repository, contribution) in repositories {
        let recube = contribution.recube.iter();
        rows.extend(recube.flat_map(|recube| {
            recube.published.iter().map(|target| {
                let domain = recube.domain.clone();
                RecubeInstance { domain, ..instance(repository, target, dataset.passes_code_on) }
            })
        }));
    }
    rate(&mut rows, &dataset.config.tier, dataset.config.dataset.hard_per_axis);
    rows
}

impl Rate for RecubeInstance {
    fn difficulty(&self) -> Difficulty {
        Difficulty { trace_length: self.target_statements, unique_files: self.caller_files }
    }

    fn set(&mut self, tier: Tier, hard_axes: Vec<Axis>) {
        self.tier = tier;
        self.hard_axes = hard_axes.into_iter().map(|axis| axis_name(axis).to_owned()).collect();
    }
}

fn instance(repository: &Repository<'_>, target: &PublishedTarget, passes_code_on: bool) -> RecubeInstance {
    let record = repository.record;
    let head = head(repository.family, record, target.instance_id.clone());
    let count =
        |counts: &dyn Fn(&InstanceCase) -> bool| target.judging().filter(|case| counts(case)).count() as u64;
    let mut groups: Vec<&str> = target.judging().map(|case| case.group_id.as_str()).collect();
    groups.dedup();
    let measured = target.measured.clone();
    RecubeInstance {
        entry_command: pytest_line(&groups),
        prompt: prompt(head.slug.as_str(), &target.file, WORKDIR),
        environment: format!("environments/{}", head.slug.file_name()),
        head,
        target: target.file.clone(),
        scope: target.scope.clone(),
        large: target.large,
        domain: None,
        fail_to_pass: target.judging().map(|case| case.case_id.clone()).collect(),
        pass_to_pass: Vec::new(),
        target_lines: measured.target_lines,
        target_statements: measured.target_statements,
        functions: measured.functions,
        masked_functions: measured.masked_functions,
        called_functions: measured.called_functions,
        noticed_functions: target.noticed_functions,
        unnoticed: target.unnoticed.clone(),
        mutation_score: (target.mutants.1 > 0).then(|| target.mutants.0 as f64 / target.mutants.1 as f64),
        docstring_none: measured.docstring_none,
        docstring_line: measured.docstring_line,
        docstring_sections: measured.docstring_sections,
        docstring_full: measured.docstring_full,
        reached_by: measured.reached_by,
        n_groups: groups.len() as u64,
        n_cases: count(&|_| true),
        n_external: count(&|case| case.kind == Kind::External),
        n_internal: count(&|case| case.kind == Kind::Internal),
        n_direct: count(&|case| case.way == Way::Direct),
        n_through: count(&|case| case.way == Way::Through),
        caller_files: measured.callers.len() as u64,
        callers: measured.callers,
        trace_calls: measured.trace_calls,
        imports_removed: measured.imports_removed,
        published_leak: measured.published_leak,
        masked: passes_code_on.then(|| target.masked.clone()),
        masked_sha256: target.masked_sha256.clone(),
        original_sha256: target.original_sha256.clone(),
        hidden_files: target.hidden_files.clone(),
        leaks: target.leaks.clone(),
        target_tokens: target.target_tokens,
        context_tokens: target.context_tokens,
        context_sha256: passes_code_on.then(|| sha256_hex(target.context.as_bytes())),
        tier: Tier::Easy,
        hard_axes: Vec::new(),
        attempts: target.attempts,
        flake_bound: flake_bound(target.attempts),
        lock_sha256: record.built.lock_sha256.clone(),
        image: record.image.as_ref().map(|image| image.tag.clone()),
        image_id: record.image.as_ref().map(|image| image.id.clone()),
        flags: target.flags.clone(),
    }
}

/// Writes the tables of this family, and what the manifest says of them.
///
/// # Errors
/// IO errors with the path; rows that cannot be encoded, which is a bug.
pub(super) fn tables(
    folder: &Path,
    dataset: &DatasetInput<'_>,
    assembled: &mut Assembled<'_>,
) -> Result<Vec<RecubeInstance>> {
    let contributions = own::contributions(dataset);
    let rows = rows(dataset, assembled.repositories.iter().zip(contributions.iter().copied()));
    own::write_instances(folder, dataset, assembled, &rows)?;
    let records =
        || contributions.iter().filter_map(|one| Some((&one.evidence.pinned.slug, one.recube.as_ref()?)));
    let published = || records().flat_map(|(_, recube)| &recube.published);
    let all = records().flat_map(|(slug, recube)| recube.targets.iter().map(move |row| Of { slug, row }));
    table(folder, "targets", targets(), all)?;
    let cases = published().flat_map(|target| target.cases.iter().map(move |case| CaseOf { target, case }));
    table(folder, "instance_cases", instance_cases(), cases)?;
    let calls = published().flat_map(|target| {
        target.traces.iter().map(move |(group_id, function)| CallsOf { target, group_id, function })
    });
    table(folder, "traces", traces(), calls)?;
    if dataset.passes_code_on {
        table(folder, CONTEXTS, contexts(), published())?;
    }
    Ok(rows)
}

/// What the manifest says of these tables in place of Gistify's.
pub(super) fn describe(manifest: &mut Manifest, dataset: &DatasetInput<'_>, rows: &[RecubeInstance]) {
    let records = || dataset.repositories.iter().filter_map(|one| one.recube.as_ref());
    let published = || records().flat_map(|recube| &recube.published);
    let tables = [
        ("targets", records().map(|recube| recube.targets.len()).sum()),
        ("instance_cases", published().map(|target| target.cases.len()).sum()),
        ("traces", published().map(|target| target.traces.len()).sum()),
    ];
    own::describe(manifest, dataset, rows, &tables);
    if dataset.passes_code_on {
        manifest.counts.rows.insert(CONTEXTS.to_owned(), rows.len());
        manifest.reproducible.push(format!("{CONTEXTS}.parquet"));
    }
    manifest.flake_bound.worst = rows.iter().map(|row| row.flake_bound).max_by(f64::total_cmp);
    manifest.reproducible.extend(reproducible());
}

/// Files of this family alone that the same inputs make again to the byte.
pub(crate) fn reproducible() -> impl Iterator<Item = String> {
    TABLES.into_iter().map(|table| format!("{table}.parquet"))
}

/// Writes the card.
///
/// # Errors
/// IO errors with the path.
pub(super) fn card(folder: &Path, manifest: &Manifest, rows: &[RecubeInstance]) -> Result<()> {
    write_text(&folder.join(super::card::FILE), &card_of(manifest, rows.len()))
}

/// The card of a dataset with so many instances.
pub(crate) fn card_of(manifest: &Manifest, instances: usize) -> String {
    let (name, version) = (&manifest.name, &manifest.version);
    let tables =
        ["instances", "targets", "instance_cases", "contexts", "groups", "cases", "attempts", "traces"];
    let (configs, columns) = own::card_parts(manifest, tables, &DICTIONARY);
    format!(
        "---\npretty_name: {name} {version}\ntags:\n- recube\n- code\n- python\n- pytest\nconfigs:\n{configs}---\n\n\
         # {name} {version}\n\n{instances} ReCUBE instances. An instance is a Python file of a repository at a pinned commit in which imports and \
         bodies of functions are masked: given the rest of the repository, the task is to write the file again. Tests that reach it \
         judge; `gistmill score <this directory> <folder of solutions>` runs them.\n{columns}"
    )
}

impl Dataset {
    /// The instances of a dataset of this family.
    ///
    /// # Errors
    /// The file is missing, or is not as gistmill writes it.
    pub(crate) fn recube_instances(&self) -> Result<Vec<RecubeInstance>> {
        self.lines("instances")
    }

    /// The contexts by instance ID; none where code was not passed on, or the dataset is older than they are.
    ///
    /// # Errors
    /// The table is not as gistmill writes it.
    pub(crate) fn recube_contexts(&self) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        if !self.manifest.counts.rows.contains_key(CONTEXTS) {
            return Ok(found);
        }
        let mut from = 0;
        while let Some(part) = self.table_part(CONTEXTS, &["instance_id", "context"], (from, PART))? {
            let (ids, contexts) = (part.whole_texts("instance_id")?, part.whole_texts("context")?);
            found.extend(ids.into_iter().map(str::to_owned).zip(contexts.into_iter().map(str::to_owned)));
            from += part.rows();
        }
        Ok(found)
    }

    /// The cases that judge, by instance ID.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn judging_cases(&self) -> Result<InstanceCases> {
        let mut cases = self.recube_cases()?;
        for cases in cases.values_mut() {
            cases.retain(|case| case.left_out.is_none());
        }
        Ok(cases)
    }

    /// The cases that judge, or that a gate took, by instance ID.
    ///
    /// # Errors
    /// The table is missing, or is not as gistmill writes it.
    pub(crate) fn recube_cases(&self) -> Result<InstanceCases> {
        let columns = ["instance_id", "group_id", "case_id", "kind", "reason", "entry", "left_out"];
        let table = self.table("instance_cases", &columns)?;
        let column = |name: &str| table.whole_texts(name);
        let (ids, groups, cases) = (column("instance_id")?, column("group_id")?, column("case_id")?);
        let (kinds, reasons, ways) = (column("kind")?, column("reason")?, column("entry")?);
        let left_out = table.texts("left_out")?;
        let known = |at: usize| -> serde_json::Result<InstanceCase> {
            Ok(InstanceCase {
                group_id: groups[at].to_owned(),
                case_id: cases[at].to_owned(),
                kind: serde_json::from_value(kinds[at].into())?,
                reason: serde_json::from_value(reasons[at].into())?,
                way: serde_json::from_value(ways[at].into())?,
                left_out: left_out[at].map(str::to_owned),
            })
        };
        let mut found = InstanceCases::new();
        for (at, id) in ids.into_iter().enumerate() {
            let case = known(at).map_err(|error| {
                Error::usage(format!("instance_cases.parquet: {} is not what gistmill wrote", cases[at]))
                    .with_source(error)
            })?;
            found.entry(id.to_owned()).or_default().push(case);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::kinds;
    use super::*;

    #[test]
    fn the_dictionary_has_the_columns_that_are_written() {
        let names = |table: &str| -> Vec<&str> {
            let entries = DICTIONARY.iter().find(|(name, _)| *name == table).unwrap().1;
            entries.iter().map(|(name, _)| *name).collect()
        };
        fn written<R>(columns: &[ColumnOf<R>]) -> Vec<&'static str> {
            kinds(columns).unwrap().into_iter().map(|(name, _)| name).collect()
        }
        assert_eq!(names("instances"), written(&instances()));
        assert_eq!(names("targets"), written(&targets()));
        assert_eq!(names("instance_cases"), written(&instance_cases()));
        assert_eq!(names("traces"), written(&traces()));
        assert_eq!(names("contexts"), written(&contexts()));
    }
}
