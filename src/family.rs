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

use std::time::Duration;

use crate::attempt::world::PROBE;
use crate::error::Result;
use crate::record::collected::shell_quote;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Instance;
use crate::record::patch::Patch;
use crate::record::prompt::PromptSettings;
use crate::record::task::Task;
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
                unsteady: !traced.stable || traced.starts_threads,
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

    /// What an agent is told about an instance.
    ///
    /// # Errors
    /// Those of [`Template::render`].
    pub fn prompt(
        self,
        template: &Template,
        settings: &PromptSettings,
        instance: &Instance,
    ) -> Result<String> {
        template.render(settings, instance, self.submission(), &self.check_command(instance))
    }

    /// What an agent is given. `limit` is what a run of the entry command may take.
    pub fn task(self, instance: &Instance, limit: Duration) -> Task {
        Task {
            id: instance.instance_id.clone(),
            family: self.as_str(),
            slug: instance.slug.clone(),
            commit: instance.commit.clone(),
            image: instance.image.clone(),
            workdir: WORKDIR.to_owned(),
            instruction: instance.prompt.clone(),
            mask: Patch::default(),
            submission: self.submission().to_owned(),
            gold: None,
            command: instance.entry_command.clone(),
            cases: instance.case_ids.clone(),
            limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trace::Totals;

    fn traced(complete: bool, length: u64) -> Traced {
        let totals = Totals { trace_length: length, files: vec!["a.py".into()], ..Totals::default() };
        Traced { totals, complete, stable: true, ..Traced::default() }
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
        let threads = Traced { starts_threads: true, ..traced(true, 5) };
        assert!(candidate(&threads).expect("has a whole trace").unsteady);
    }

    #[test]
    fn a_task_names_its_command_and_its_file() {
        let made_up = crate::testing::made_up::MadeUp::new(&[12]);
        let input = made_up.input();
        let assembled = crate::dataset::assemble::Assembled::new(&input).unwrap();
        let instance = &assembled.instances[0];
        let task = Family::Gistify.task(instance, Duration::from_mins(1));
        assert!(task.instruction.contains(&instance.entry_command), "{}", task.instruction);
        assert!(task.instruction.contains("/testbed/concise.py"));
        assert_eq!((task.submission.as_str(), task.cases.len()), ("concise.py", instance.n_cases as usize));
        assert_eq!(task.instruction, instance.prompt);
        let case = Family::Gistify.submitted_case(instance, &instance.case_ids[0]);
        assert_eq!(instance.case_ids[0].replace(&instance.test_file, "concise.py"), case);
        assert!(case.starts_with(&Family::Gistify.submitted_test(instance)), "{case}");
        assert!(task.gold.is_none() && task.mask.files().next().is_none());
    }
}
