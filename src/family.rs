//! Families of tasks: what is made of the evidence about a repository.
//!
//! A family answers five questions. Each is a function with an exhaustive `match`, so that the compiler lists what a further
//! family has to answer; the answers are in a file of its own.
//!
//! | question | here | Gistify |
//! | --- | --- | --- |
//! | what could become an instance? | [`Family::candidate`] | a kept group with a whole trace |
//! | what must be proved about it? | [`Family::submission`] | the world in which the test is in `concise.py` |
//! | how hard is it? | [`Family::difficulty`] | trace length, unique files |
//! | what is an agent given? | [`Family::task`] | tree, entry command, one file to write |
//! | how is it judged? | [`Family::judging`], [`crate::score`] | code hidden, the test of the submission run |

pub mod codetaste;
pub mod gistify;
pub mod recube;
pub mod sample;
pub mod tier;
pub mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
pub use crate::record::family::Family;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Instance;
use crate::record::patch::Patch;
use crate::record::prompt::{PromptSettings, Tool};
use crate::record::task::{Demand, Judging, Measured, Task};
use crate::record::trace::Traced;
use crate::record::variant::Variant;
use crate::score::Modules;
use gistify::prompt::Template;
use sample::Candidate;
use tier::Difficulty;

/// Where the tree of a task is inside its image.
pub const WORKDIR: &str = "/testbed";

impl Family {
    /// The file that an agent hands in, by its path in the tree.
    pub fn submission(self) -> &'static str {
        match self {
            Family::Gistify => gistify::SUBMISSION,
            Family::Recube => recube::SUBMISSION,
            Family::Codetaste => codetaste::SUBMISSION,
        }
    }

    /// How hard an instance of a group is.
    pub fn difficulty(self, traced: &Traced) -> Difficulty {
        match self {
            // Targets and pairs have a difficulty of their own, their groups do not.
            Family::Gistify | Family::Recube | Family::Codetaste => gistify::difficulty(traced),
        }
    }

    /// A kept group as a candidate. None without a whole trace that has calls: its difficulty is not known.
    pub fn candidate(self, slug: &RepoSlug, instance_id: &InstanceId, traced: &Traced) -> Option<Candidate> {
        match self {
            Family::Gistify => gistify::candidate(slug, instance_id, traced),
            // A file is one, not a group: see [`recube::candidates`]; so is a pair of commits.
            Family::Recube | Family::Codetaste => None,
        }
    }

    /// A case's node ID in what is handed in.
    pub fn submitted_case(self, instance: &Instance, case_id: &str) -> String {
        match self {
            Family::Gistify => gistify::submitted_case(instance, case_id),
            Family::Recube | Family::Codetaste => case_id.to_owned(),
        }
    }

    /// What an agent is told about an instance, in an image that holds these tools.
    ///
    /// # Errors
    /// Those of [`Template::render`].
    pub fn prompt(
        self,
        template: &Template,
        settings: &PromptSettings,
        tools: &BTreeSet<Tool>,
        instance: &Instance,
    ) -> Result<String> {
        match self {
            Family::Gistify => gistify::prompt(template, *settings, tools, instance),
            Family::Recube | Family::Codetaste => Err(self.no_tasks()),
        }
    }

    /// What an agent is given.
    ///
    /// # Errors
    /// A usage error: the instance does not say what its cases must show.
    pub fn task(self, instance: &Instance, running: Running) -> Result<Task> {
        let mut gold = None;
        if let Some(solution) = &running.gold {
            let mut patch = Patch::default();
            patch
                .put(self.submission(), solution.clone())
                .map_err(|_| Error::internal("the submission is not a file of a tree"))?;
            gold = Some(patch);
        }
        Ok(Task {
            id: instance.instance_id.clone(),
            family: self.as_str(),
            slug: instance.slug.clone(),
            commit: instance.commit.clone(),
            version: instance.version.clone(),
            created_at: instance.created_at.clone(),
            title: format!("{} {}", instance.slug, instance.group_id),
            tier: instance.tier.as_str(),
            license: instance.license.clone(),
            image: instance.image.clone(),
            workdir: WORKDIR.to_owned(),
            instruction: instance.prompt.clone(),
            mask: self.mask(),
            gold,
            command: instance.entry_command.clone(),
            files: files_of(instance),
            measured: Measured {
                demand: running.demand,
                attempts: instance.attempts,
                flake_bound: instance.flake_bound,
                worlds: instance.worlds.clone(),
            },
            one_shot: Vec::new(),
            judging: self.judging(instance, running)?,
        })
    }

    /// What of the tree the agent does not see.
    pub fn mask(self) -> Patch {
        match self {
            Family::Gistify | Family::Recube | Family::Codetaste => Patch::default(),
        }
    }

    /// What an instance of Gistify's columns cannot say of a masked file, or of a pair of commits.
    fn no_tasks(self) -> Error {
        Error::usage(format!(
            "instances of the family {} are not made into tasks of harnesses yet",
            self.as_str()
        ))
        .with_hint("columns of `instances` say what an agent is given; `gistmill score` judges")
    }

    /// How what an agent hands in is judged.
    ///
    /// # Errors
    /// A usage error: the instance does not say what its cases must show.
    pub fn judging(self, instance: &Instance, running: Running) -> Result<Judging> {
        match self {
            Family::Gistify => gistify::judging(instance, running),
            Family::Recube | Family::Codetaste => Err(self.no_tasks()),
        }
    }
}

/// Files of the tree that run, the test's own first.
fn files_of(instance: &Instance) -> Vec<String> {
    let others: BTreeSet<&String> = instance.files.iter().chain(&instance.import_files).collect();
    if !instance.is_test() {
        return others.into_iter().cloned().collect();
    }
    let others = others.into_iter().filter(|file| **file != instance.test_file).cloned();
    [instance.test_file.clone()].into_iter().chain(others).collect()
}

/// What is known about running an instance, beside the instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Running {
    pub options: Vec<String>,
    pub variables: BTreeMap<String, String>,
    pub limit: Duration,
    /// The most that its attempts took.
    pub demand: Demand,
    /// A solution that is known to be judged right.
    pub gold: Option<Vec<u8>>,
    /// Edited texts of its test; none where they are not known.
    pub variants: Vec<Variant>,
    /// The repository's Python files and settings of pytest; none where they are not known.
    pub sources: Option<Arc<Sources>>,
}

/// Files of a repository.
#[derive(Debug, PartialEq, Eq)]
pub struct Sources {
    /// By path.
    pub files: BTreeMap<String, String>,
    pub modules: Modules,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trace::{SecondTrace, Totals};

    fn traced(complete: bool, length: u64) -> Traced {
        let totals = Totals { trace_length: length, files: vec!["a.py".into()], ..Totals::default() };
        Traced { totals, complete, ..Traced::default() }
    }

    #[test]
    fn what_could_not_be_measured_is_no_candidate() {
        let slug = RepoSlug::new("made/up").unwrap();
        let id = InstanceId::derive(&slug, "c0", "t.py::test_a");
        let candidate = |traced: &Traced| Family::Gistify.candidate(&slug, &id, traced);
        assert!(candidate(&traced(false, 5)).is_none());
        assert!(candidate(&traced(true, 0)).is_none());
        let one = candidate(&traced(true, 5)).expect("has a whole trace");
        assert_eq!(one.difficulty, Difficulty { trace_length: 5, unique_files: 1 });
        assert!(!one.unsteady && !one.excluded);
        let threads = Traced { threads_seen: true, ..traced(true, 5) };
        assert!(candidate(&threads).expect("has a whole trace").unsteady);
        let second = |differing: &[&str]| {
            let differing = differing.iter().map(|&name| name.to_owned()).collect();
            let second = SecondTrace { differing, complete: true, ..SecondTrace::default() };
            Traced { second: Some(second), ..traced(true, 5) }
        };
        assert!(!candidate(&second(&[])).expect("has a whole trace").unsteady);
        assert!(candidate(&second(&["a.py::f"])).expect("has a whole trace").unsteady);
    }

    #[test]
    fn a_task_names_its_command_and_its_file() {
        let made_up = crate::testing::made_up::MadeUp::new(&[12]);
        let input = made_up.input();
        let assembled = crate::dataset::assemble::Assembled::new(&input).unwrap();
        let instance = &assembled.all().unwrap()[0];
        let gold = Some(b"x = 1\n".to_vec());
        let task = Family::Gistify.task(instance, Running { gold, ..Running::default() }).unwrap();
        assert!(task.instruction.contains(&instance.entry_command), "{}", task.instruction);
        assert!(task.instruction.contains("/testbed/concise.py"));
        let judging = &task.judging;
        assert_eq!((&*judging.submission, judging.expect.len()), ("concise.py", instance.n_cases as usize));
        assert_eq!(task.instruction, instance.prompt);
        let case = Family::Gistify.submitted_case(instance, &instance.case_ids[0]);
        assert_eq!(instance.case_ids[0].replace(&instance.test_file, "concise.py"), case);
        assert!(case.starts_with(judging.tests()[0]), "{case}");
        let gold = task.gold.as_ref().unwrap();
        assert_eq!(gold.files().collect::<Vec<_>>(), [("concise.py", Some(&b"x = 1\n"[..]))]);
        let older = Instance { expected: Vec::new(), ..instance.clone() };
        assert!(
            Family::Gistify.task(&older, Running::default()).is_err(),
            "format 1 does not say how cases end"
        );
    }
}
