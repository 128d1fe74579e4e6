//! Tables of attempts of one group, in the order in which they were made.

use crate::record::collected::{Case, Group};
use crate::record::entry::{Entry, EntryCommand, GroupKey, Origin, Source, name_of};
use crate::record::outcome::{Attempt, CaseResult, Exit, Method, Outcome};
use crate::record::world::World;

/// A group with one case.
pub(crate) fn group() -> Group {
    group_of("t.py", "test_a")
}

/// A group with one case, in a file.
pub(crate) fn group_of(file: &str, function: &str) -> Group {
    let key = GroupKey { file: file.to_owned(), classes: Vec::new(), function: function.to_owned() };
    let case = Case { case_id: key.group_id(), parameters: None, line: None };
    Group { cases: vec![case], ..Group::of(key) }
}

/// An entry that a configuration names.
pub(crate) fn entry(line: &str) -> Entry {
    let command = EntryCommand::of_line(line).expect("is one plain command");
    Entry {
        name: name_of(&command),
        command,
        stdin: None,
        env: std::collections::BTreeMap::new(),
        cwd: String::new(),
        exit: 0,
        files: Vec::new(),
        origin: Origin { source: Source::Configured, file: None, line: Some(9) },
        given: std::collections::BTreeMap::new(),
        help: Vec::new(),
    }
}

/// An attempt of [`group`] that printed `stdout`.
pub(crate) fn attempt(world: &World, method: Method, round: u32, outcome: Outcome, stdout: &str) -> Attempt {
    let case = CaseResult {
        case_id: group().group_id,
        outcome,
        exception: None,
        stdout: stdout.to_owned(),
        stderr: String::new(),
        message: String::new(),
        replaced: std::collections::BTreeMap::new(),
        duration_ms: 1.0,
        command: None,
    };
    Attempt {
        group_id: group().group_id,
        world: world.clone(),
        number: 0,
        method,
        round,
        exit: Exit::Finished,
        cases: vec![case],
        connections: Vec::new(),
        leftover: 0,
        raw_output: String::new(),
        duration_ms: 1.0,
        processor_ms: 0.0,
        memory_bytes: None,
        noted_at: 0,
    }
}

/// Attempts, numbered as a journal numbers them.
#[must_use]
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Vec<Attempt>);

impl Table {
    /// No attempt yet.
    pub(crate) fn new() -> Self {
        Table::default()
    }

    fn and(mut self, attempt: Attempt) -> Self {
        let number = u32::try_from(self.0.len()).unwrap();
        self.0.push(Attempt { number, ..attempt });
        self
    }

    /// Passes in the base world, in this round, and prints this.
    pub(crate) fn base(self, round: u32, stdout: &str) -> Self {
        self.and(attempt(&World::Base, Method::Fork, round, Outcome::Passed, stdout))
    }

    /// Fails in the base world, in this round.
    pub(crate) fn failing(self, round: u32) -> Self {
        self.and(attempt(&World::Base, Method::Fork, round, Outcome::Failed, ""))
    }

    /// Passes in another world and prints this.
    pub(crate) fn world(self, world: &World, stdout: &str) -> Self {
        self.and(attempt(world, Method::Fork, 0, Outcome::Passed, stdout))
    }

    /// A cold run that passes.
    pub(crate) fn cold(self, stdout: &str) -> Self {
        self.and(attempt(&World::Base, Method::Cold, 0, Outcome::Passed, stdout))
    }

    /// A cold run that fails.
    pub(crate) fn cold_failing(self) -> Self {
        self.and(attempt(&World::Base, Method::Cold, 0, Outcome::Failed, ""))
    }

    /// A cold run whose case passes, and whose process ends in this way.
    pub(crate) fn cold_ending(self, exit: Exit) -> Self {
        self.and(Attempt { exit, ..attempt(&World::Base, Method::Cold, 0, Outcome::Passed, "") })
    }

    /// All of them.
    pub(crate) fn made(self) -> Vec<Attempt> {
        self.0
    }
}
