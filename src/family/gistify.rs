//! Gistify: one self-contained file that reproduces what a test does.

mod alone;
mod average;
mod commands;
mod donors;
mod execution;
mod existence;
mod findings;
mod inject;
mod judged;
mod keys;
mod locate;
pub mod prompt;
mod reaches;
mod recall;
mod strict;
mod test_lines;
mod units;
mod uses;
mod variants;
mod variations;
mod verdict;
mod words;

use std::collections::BTreeSet;

use super::Running;
use super::sample::Candidate;
use super::tier::Difficulty;
use crate::error::{Error, Result};
use crate::record::entry::{EntryCommand, GroupKey};
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Expected, Instance};
use crate::record::prompt::{PromptSettings, Tool};
use crate::record::task::{CODE_ENDINGS, JudgedCase, Judging, Reward};
use crate::record::trace::Traced;
use crate::record::world::PROBE;

use prompt::Template;

pub use alone::alone;
pub use average::{Cases, ClassShare, Row, Submitted, Summary, summarize, summarize_by, weighted_baseline};
pub use execution::{ExecutedLine, LineExecution, LineRun, line_execution};
pub use existence::{Corpus, Existence, Line, LineExistence, RepositoryLine};
pub use findings::{Effect, Finding, FindingKind, Scenery, findings};
pub use inject::{
    Evaluated, Injection, NotInjected, Replacement, first_line, inject, inject_inherited, sabotage,
};
pub use locate::TestName;
pub use reaches::{Reach, ReachKind, reaches};
pub use recall::{TracedFunction, trace_recall};
pub use strict::{Against, counts_for_commands, strict_findings};
pub use test_lines::{Overlap, test_overlap};
pub use units::{LineKind, LineType};
pub use variants::twins::{Answer, Twin, twins};
pub use variants::{Proposal, Refutes, failing, in_file, variants};
pub use variations::{Input, variations};
pub use verdict::{Detail, ErrorClass, Facts, Run, Sabotage, Verdict, Violation, judge, judge_command};

/// The file that an agent hands in, by its path in the tree. Tests are screened in a file of that name as well.
pub const SUBMISSION: &str = PROBE;

/// How hard an instance of a group is.
pub(super) fn difficulty(traced: &Traced) -> Difficulty {
    Difficulty { trace_length: traced.totals.trace_length, unique_files: traced.totals.files.len() as u64 }
}

/// A kept group as a candidate. None without a whole trace that has calls, also of the repository where that decided nothing
/// about the verdict.
pub(super) fn candidate(slug: &RepoSlug, instance_id: &InstanceId, traced: &Traced) -> Option<Candidate> {
    let runs_nothing = traced.has_other_outcome() && traced.totals.package_calls == 0;
    (traced.complete && traced.totals.trace_length > 0 && !runs_nothing).then(|| Candidate {
        slug: slug.clone(),
        instance_id: instance_id.clone(),
        difficulty: difficulty(traced),
        unsteady: traced.stable() == Some(false) || traced.has_other_outcome() || traced.starts_threads(),
        excluded: false,
    })
}

/// The command that runs what an agent hands in, in the root of the tree, or in the folder of the entry.
fn command(instance: &Instance) -> EntryCommand {
    if let Some(entry) = instance.entry() {
        return entry.submitted(SUBMISSION);
    }
    let classes = instance.test_class.iter().flat_map(|chain| chain.split("::"));
    let key = GroupKey {
        file: SUBMISSION.to_owned(),
        classes: classes.map(str::to_owned).collect(),
        function: instance.test_function.clone(),
    };
    EntryCommand::Pytest { node: key.group_id() }
}

/// `Class::function` of the test.
fn test_name(instance: &Instance) -> String {
    let class = instance.test_class.iter().map(|chain| format!("{chain}::"));
    class.chain([instance.test_function.clone()]).collect()
}

/// A case's node ID in what is handed in.
pub(super) fn submitted_case(instance: &Instance, case_id: &str) -> String {
    if !instance.is_test() {
        return case_id.to_owned();
    }
    let test = case_id.strip_prefix(instance.test_file.as_str()).unwrap_or(case_id);
    format!("{SUBMISSION}{test}")
}

/// What an agent is told about an instance, in an image that holds these tools.
pub(super) fn prompt(
    template: &Template,
    settings: PromptSettings,
    tools: &BTreeSet<Tool>,
    instance: &Instance,
) -> Result<String> {
    template.render(&settings, tools, instance, SUBMISSION, &command(instance).line())
}

/// The repository's code is hidden, and the test of the submission is run.
pub(super) fn judging(instance: &Instance, running: Running) -> Result<Judging> {
    instance
        .check_command()
        .map_err(|why| Error::usage(why).with_hint("build the dataset again with this gistmill"))?;
    let (originals, given) = match instance.entry() {
        Some(entry) => (Vec::new(), commands::runs(instance, &entry, &running)?),
        None => (vec![judged::original(instance, &running)], Vec::new()),
    };
    Ok(Judging {
        submission: SUBMISSION.to_owned(),
        hidden: &CODE_ENDINGS,
        before: judged::settings(running.sources.as_deref())?,
        run: vec![command(instance)],
        originals,
        given,
        code: judged::code(running.sources.as_deref()),
        expect: expected(instance)?,
        is_exact: true,
        reward: Reward::All,
        options: running.options,
        variables: running.variables,
        limit: running.limit,
        suite: None,
    })
}

/// The cases whose outcome is known.
fn expected(instance: &Instance) -> Result<Vec<JudgedCase>> {
    let unknown = |words: &str| {
        Error::usage(format!("{}: {words}", instance.instance_id))
            .with_hint("build the dataset again: what is in the cache is not run again")
    };
    let mut cases = Vec::new();
    for text in &instance.expected {
        let expected: Expected = serde_json::from_str(text)
            .map_err(|error| unknown("`expected` is not what gistmill wrote").with_source(error))?;
        let name = submitted_case(instance, &expected.case_id);
        cases.extend(expected.outcome.map(|outcome| JudgedCase { name, outcome }));
    }
    if cases.is_empty() {
        return Err(unknown("the dataset does not say what its cases must show"));
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
