//! Families of tasks: what is made of the evidence about a repository.
//!
//! A family answers five questions. Each is a function with an exhaustive `match`, so that a further family has to
//! answer all of them:
//!
//! | question | here | Gistify |
//! | --- | --- | --- |
//! | what could become an instance? | [`Family::candidate`] | a kept group with a whole trace |
//! | what must be proved about it? | [`Family::submission`] | the world in which the test stands in `concise.py` |
//! | how hard is it? | [`Family::difficulty`] | trace length, unique files |
//! | what is an agent given? | [`Family::task`] | tree, entry command, one file to write |
//! | how is it judged? | [`crate::score`] | fidelity, line execution, line existence, test F1 |

pub mod prompt;
pub mod sample;
pub mod tier;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::attempt::world::PROBE;
use crate::error::{Error, Result};
use crate::record::collected::shell_quote;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Expected, Instance};
use crate::record::patch::Patch;
use crate::record::prompt::{PromptSettings, Tool};
use crate::record::task::{CODE_ENDINGS, JudgedCase, Task};
use crate::record::trace::Traced;
use prompt::Template;
use sample::Candidate;
use tier::Difficulty;

/// Where the tree of a task is inside its image.
pub const WORKDIR: &str = "/testbed";

/// A kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// One self-contained file that reproduces what a test does.
    Gistify,
}

impl Family {
    /// The one spelling of this family.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Gistify => "gistify",
        }
    }

    /// The file that an agent hands in, by its path in the tree. Tests are screened in a file of that name as well.
    pub fn submission(self) -> &'static str {
        match self {
            Family::Gistify => PROBE,
        }
    }

    /// How hard an instance of a group is.
    pub fn difficulty(self, traced: &Traced) -> Difficulty {
        match self {
            Family::Gistify => Difficulty {
                trace_length: traced.totals.trace_length,
                unique_files: traced.totals.files.len() as u64,
            },
        }
    }

    /// A kept group as a candidate. None without a whole trace that has calls: its difficulty is not known.
    pub fn candidate(self, slug: &RepoSlug, instance_id: &InstanceId, traced: &Traced) -> Option<Candidate> {
        match self {
            Family::Gistify if !traced.complete || traced.totals.trace_length == 0 => None,
            Family::Gistify => Some(Candidate {
                slug: slug.clone(),
                instance_id: instance_id.clone(),
                difficulty: self.difficulty(traced),
                unsteady: traced.stable() == Some(false) || traced.starts_threads(),
                excluded: false,
            }),
        }
    }

    /// The command that runs what an agent hands in, in the root of the tree.
    pub fn check_command(self, instance: &Instance) -> String {
        match self {
            Family::Gistify => format!("python -m pytest {}", shell_quote(&self.submitted_test(instance))),
        }
    }

    /// The test's node ID in what is handed in.
    pub fn submitted_test(self, instance: &Instance) -> String {
        let class = instance.test_class.as_ref().map(|class| format!("{class}::")).unwrap_or_default();
        format!("{}::{class}{}", self.submission(), instance.test_function)
    }

    /// A case's node ID in what is handed in.
    pub fn submitted_case(self, instance: &Instance, case_id: &str) -> String {
        let test = case_id.strip_prefix(instance.test_file.as_str()).unwrap_or(case_id);
        format!("{}{test}", self.submission())
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
        template.render(settings, tools, instance, self.submission(), &self.check_command(instance))
    }

    /// What an agent is given.
    ///
    /// # Errors
    /// A usage error: the instance does not say what its cases must show.
    pub fn task(self, instance: &Instance, running: Running) -> Result<Task> {
        let mut gold = None;
        if let Some(solution) = running.gold {
            let mut patch = Patch::default();
            patch
                .put(self.submission(), solution)
                .map_err(|_| Error::internal("the submission is no file of a tree"))?;
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
            mask: Patch::default(),
            submission: self.submission().to_owned(),
            gold,
            command: instance.entry_command.clone(),
            test: self.submitted_test(instance),
            cases: self.judged(instance)?,
            hidden: &CODE_ENDINGS,
            options: running.options,
            variables: running.variables,
            limit: running.limit,
        })
    }

    /// The cases whose outcome is known.
    fn judged(self, instance: &Instance) -> Result<Vec<JudgedCase>> {
        let unknown = |words: &str| {
            Error::usage(format!("{}: {words}", instance.instance_id))
                .with_hint("build the dataset again: what is in the cache is not run again")
        };
        let mut cases = Vec::new();
        for text in &instance.expected {
            let expected: Expected = serde_json::from_str(text)
                .map_err(|error| unknown("`expected` is not what gistmill wrote").with_source(error))?;
            let name = self.submitted_case(instance, &expected.case_id);
            cases.extend(expected.outcome.map(|outcome| JudgedCase { name, outcome }));
        }
        if cases.is_empty() {
            return Err(unknown("the dataset does not say what its cases must show"));
        }
        Ok(cases)
    }
}

/// What is known about running an instance, beside the instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    pub options: Vec<String>,
    pub variables: BTreeMap<String, String>,
    pub limit: Duration,
    /// A solution that is known to be judged right.
    pub gold: Option<Vec<u8>>,
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
        let instance = &assembled.whole(0).unwrap();
        let gold = Some(b"x = 1\n".to_vec());
        let task = Family::Gistify.task(instance, Running { gold, ..Running::default() }).unwrap();
        assert!(task.instruction.contains(&instance.entry_command), "{}", task.instruction);
        assert!(task.instruction.contains("/testbed/concise.py"));
        assert_eq!((task.submission.as_str(), task.cases.len()), ("concise.py", instance.n_cases as usize));
        assert_eq!(task.instruction, instance.prompt);
        let case = Family::Gistify.submitted_case(instance, &instance.case_ids[0]);
        assert_eq!(instance.case_ids[0].replace(&instance.test_file, "concise.py"), case);
        assert!(case.starts_with(&Family::Gistify.submitted_test(instance)), "{case}");
        let gold = task.gold.as_ref().unwrap();
        assert_eq!(gold.files().collect::<Vec<_>>(), [("concise.py", Some(&b"x = 1\n"[..]))]);
        let older = Instance { expected: Vec::new(), ..instance.clone() };
        assert!(
            Family::Gistify.task(&older, Running::default()).is_err(),
            "format 1 does not say how cases end"
        );
    }
}
