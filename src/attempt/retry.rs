//! What follows from trouble with a task: whether it is tried again, and how, or believed. Pure.
//!
//! Trouble of the harness is met with a fresh runner, then with one group at a time, and only then given up. A kill
//! (SIGKILL) may come from the kernel or from a person as well as from the test, and load and memory pressure can end
//! an import, so either is believed only when it repeats. What takes others down with it is believed of a group only
//! when it repeats while that group is alone.

use crate::backend::retry;
use crate::runner::protocol::{ProcessExit, SIGKILL};

/// How often something is tried before it is believed.
const TRIES: u32 = retry::TRIES;

/// How often a text that is judged is tried: once more, alone in a fresh runner.
const TRIES_OF_JUDGED: u32 = 2;

/// The trouble that a task has met, as far as it still counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Whether the task runs a text that is judged: what happens while it runs is its own.
    is_judged: bool,
    /// Runners that broke in a row, without an attempt made.
    broken: u32,
    /// Runners among them that were killed while the last group of the task ran.
    killed: u32,
    /// How often in a row importing ended the process or took too long.
    unopened: u32,
    /// How often the only group was killed, took the process above it down, or left a report that cannot be used.
    fallen: u32,
}

/// What to do with a task whose runner broke, or did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRunner {
    /// No group is left in it.
    Done,
    /// The task again, with a fresh runner.
    Again,
    /// Every group in a task of its own, as if nothing had happened.
    OneByOne,
    /// That is how the attempts of its only group end.
    Believe,
    /// The harness, or what it was given, does not work.
    GiveUp,
}

/// What to do with a task when importing ended the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterImport {
    /// The task again, with a fresh runner.
    Again,
    /// Its groups cannot be run.
    Refuse,
}

/// What to do with a group that took the process above it down, or left a report that cannot be used. The others of its
/// task go on without it, with a fresh runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterGroup {
    /// Again, in a task of its own that has met this trouble.
    Alone(Trouble),
    /// That is how its attempts end.
    Believe,
}

impl Trouble {
    /// That of a task that runs a text that is judged.
    pub fn of_judged() -> Self {
        Trouble { is_judged: true, ..Trouble::default() }
    }

    /// None so far, for a task of the same kind.
    #[must_use]
    pub fn none(self) -> Self {
        Trouble { is_judged: self.is_judged, ..Trouble::default() }
    }

    fn tries(self) -> u32 {
        if self.is_judged { TRIES_OF_JUDGED } else { TRIES }
    }

    /// The runner broke, or did not start. `harness` says whether that is the harness's trouble, `killed` whether the
    /// runner was killed while a group ran; so many `groups` are left in the task.
    pub fn runner_broke(&mut self, harness: bool, killed: bool, groups: usize) -> AfterRunner {
        self.killed += u32::from(killed);
        self.broken += 1;
        match groups {
            0 => AfterRunner::Done,
            _ if !harness => AfterRunner::GiveUp,
            _ if self.broken < TRIES => AfterRunner::Again,
            1 if self.killed >= TRIES => AfterRunner::Believe,
            1 => AfterRunner::GiveUp,
            _ => AfterRunner::OneByOne,
        }
    }

    /// Importing ended the process or took too long.
    pub fn import_ended(&mut self) -> AfterImport {
        self.unopened += 1;
        if self.unopened < self.tries() { AfterImport::Again } else { AfterImport::Refuse }
    }

    /// The file is open. What is judged may still not let go of it.
    pub fn opened(&mut self) {
        if !self.is_judged {
            self.unopened = 0;
        }
    }

    /// Whether it is to be met by a runner that has done nothing else.
    pub fn wants_a_fresh_runner(self) -> bool {
        self.is_judged && self != Trouble::of_judged()
    }

    /// Whether an attempt that ended like this counts. Otherwise it was killed, and is to be made again.
    pub fn counts(&self, exit: &ProcessExit) -> bool {
        self.believes_the_next() || *exit != (ProcessExit::Signaled { signal: SIGKILL })
    }

    /// So many attempts of a group were made that count, whatever came after them.
    pub fn made(&mut self, attempts: u32) {
        if attempts > 0 {
            (self.broken, self.killed) = (0, 0);
        }
    }

    /// All attempts of a group were reported, and so many were killed: those are made again, in a task of their own that
    /// has met the trouble that this gives.
    pub fn attempts_killed(&mut self, attempts: u32) -> Option<Trouble> {
        if attempts == 0 {
            return None;
        }
        self.killed = 0;
        Some(self.fallen_once_more())
    }

    /// After so many attempts that count, a group took the process above it down, or left a report that cannot be used.
    /// What remains here is the trouble of the others of its task.
    pub fn group_broke(&mut self, made: u32) -> AfterGroup {
        if made > 0 {
            self.fallen = 0;
        }
        (self.broken, self.killed) = (0, 0);
        if self.believes_the_next() {
            AfterGroup::Believe
        } else {
            AfterGroup::Alone(self.fallen_once_more())
        }
    }

    fn believes_the_next(self) -> bool {
        self.fallen + 1 >= self.tries()
    }

    fn fallen_once_more(self) -> Self {
        Trouble { fallen: self.fallen + 1, ..self.none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::TimeScope;

    fn met(broken: u32, killed: u32, unopened: u32, fallen: u32) -> Trouble {
        Trouble { is_judged: false, broken, killed, unopened, fallen }
    }

    #[test]
    fn a_runner_that_breaks_is_replaced_then_groups_go_one_by_one_then_it_is_given_up() {
        use AfterRunner::{Again, Believe, Done, GiveUp, OneByOne};
        // Trouble before; whether it is the harness's, and a kill while a group ran; groups left; what to do.
        let rows = [
            (met(0, 0, 0, 0), (true, false), 0, Done),
            (met(2, 2, 0, 0), (true, true), 0, Done),
            (met(0, 0, 0, 0), (false, false), 0, Done),
            (met(0, 0, 0, 0), (true, false), 1, Again),
            (met(1, 1, 0, 0), (true, true), 1, Again),
            (met(1, 0, 0, 0), (true, false), 5, Again),
            (met(2, 0, 0, 0), (true, false), 2, OneByOne),
            (met(2, 2, 0, 0), (true, true), 2, OneByOne),
            (met(2, 2, 0, 0), (true, true), 1, Believe),
            (met(2, 2, 0, 0), (true, false), 1, GiveUp),
            (met(2, 1, 0, 0), (true, true), 1, GiveUp),
            (met(2, 0, 2, 2), (true, false), 1, GiveUp),
            (met(0, 0, 0, 0), (false, false), 1, GiveUp),
            (met(0, 0, 0, 0), (false, false), 5, GiveUp),
            (met(2, 2, 0, 0), (false, true), 1, GiveUp),
        ];
        for (before, (harness, killed), groups, expected) in rows {
            let mut trouble = before;
            let step = trouble.runner_broke(harness, killed, groups);
            assert_eq!(step, expected, "{before:?} {harness} {killed} {groups}");
            let Trouble { broken, killed: kills, unopened, fallen, .. } = before;
            assert_eq!(trouble, met(broken + 1, kills + u32::from(killed), unopened, fallen));
        }
    }

    #[test]
    fn an_import_that_ends_the_process_is_believed_the_third_time_in_a_row() {
        let mut trouble = met(1, 1, 0, 2);
        let steps = [(); 3].map(|()| trouble.import_ended());
        assert_eq!(steps, [AfterImport::Again, AfterImport::Again, AfterImport::Refuse]);
        assert_eq!((trouble.broken, trouble.killed, trouble.fallen), (1, 1, 2), "it is no other trouble");
        let mut trouble = met(1, 1, 2, 2);
        trouble.opened();
        assert_eq!(trouble, met(1, 1, 0, 2));
        assert_eq!(trouble.import_ended(), AfterImport::Again);
    }

    #[test]
    fn what_a_judged_text_does_is_believed_the_second_time() {
        let mut trouble = Trouble::of_judged();
        assert_eq!([(); 2].map(|()| trouble.import_ended()), [AfterImport::Again, AfterImport::Refuse]);
        let mut trouble = Trouble::of_judged();
        let AfterGroup::Alone(mut alone) = trouble.group_broke(0) else { panic!("is believed at once") };
        assert!(alone.counts(&ProcessExit::Signaled { signal: SIGKILL }));
        assert_eq!(alone.group_broke(0), AfterGroup::Believe);
        assert_eq!(alone.none(), Trouble::of_judged());
    }

    #[test]
    fn a_killed_attempt_counts_the_third_time_and_any_other_at_once() {
        let killed = ProcessExit::Signaled { signal: SIGKILL };
        for (fallen, counts) in [(0, false), (1, false), (2, true)] {
            assert_eq!(met(0, 0, 0, fallen).counts(&killed), counts, "{fallen}");
        }
        for exit in [
            ProcessExit::Finished,
            ProcessExit::Exited { code: 137 },
            ProcessExit::Signaled { signal: 11 },
            ProcessExit::TimedOut { scope: TimeScope::Case, index: None },
        ] {
            assert!(Trouble::default().counts(&exit), "{exit:?}");
        }
    }

    #[test]
    fn an_attempt_that_counts_shows_that_runners_work() {
        let mut trouble = met(2, 2, 0, 1);
        trouble.made(0);
        assert_eq!(trouble, met(2, 2, 0, 1));
        trouble.made(1);
        assert_eq!(trouble, met(0, 0, 0, 1));
    }

    #[test]
    fn killed_attempts_are_made_again_alone() {
        let mut trouble = met(1, 1, 0, 1);
        assert_eq!((trouble.attempts_killed(0), trouble), (None, met(1, 1, 0, 1)));
        assert_eq!(trouble.attempts_killed(2), Some(met(0, 0, 0, 2)));
        assert_eq!(trouble, met(1, 0, 0, 1), "the others of the task");
    }

    #[test]
    fn a_group_that_takes_others_down_is_believed_the_third_time_in_a_row() {
        let rows = [
            (0, 0, AfterGroup::Alone(met(0, 0, 0, 1))),
            (1, 0, AfterGroup::Alone(met(0, 0, 0, 2))),
            (2, 0, AfterGroup::Believe),
            (1, 1, AfterGroup::Alone(met(0, 0, 0, 1))),
            (2, 4, AfterGroup::Alone(met(0, 0, 0, 1))),
        ];
        for (fallen, made, expected) in rows {
            let mut trouble = met(2, 2, 0, fallen);
            assert_eq!(trouble.group_broke(made), expected, "{fallen} {made}");
            let left = if made > 0 { 0 } else { fallen };
            assert_eq!(trouble, met(0, 0, 0, left), "the others of the task: {fallen} {made}");
        }
    }
}
