//! What a made-up repository does when its tests are run: files, groups, and the trouble that they make.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::Fault;
use crate::record::collected::{Case, Group};
use crate::testing::attempts::group_of;

/// What one attempt of a group does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Passes,
    /// Passes after a while.
    Waits(Duration),
    Fails,
    /// Passes and prints this.
    Prints(String),
    /// Passes and prints how many attempts of the group there were before: something else every time.
    PrintsCount,
    /// Is ended by this signal.
    Signaled(i32),
    /// Goes over the limit of its group.
    TimesOut,
    /// Takes the file process down, by this signal.
    TakesDown(i32),
    /// Leaves a report that cannot be used.
    Unreadable,
    /// Makes the file process fail in the runner's own code.
    FailsInternally,
    /// The whole runner ends; its interpreter has this exit code in the sandbox.
    EndsRunner(i32),
}

/// What opening a directory or file does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    Ready,
    /// pytest cannot, and says this.
    Refused(&'static str),
    /// This signal ends the process that imports.
    Dies(i32),
    TimesOut,
    /// The answer is none.
    Unreadable,
    /// The keeper itself is in trouble.
    FailsInternally,
    /// The process that imports cannot go on.
    Breaks,
    EndsRunner(i32),
}

/// What starting a runner does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    Ready,
    /// The backend cannot start it, and this is whose trouble it is.
    Fails(Fault),
    /// pytest cannot run, for this reason.
    Refused(&'static str),
    /// It ends before it says anything.
    Ends,
}

/// A sequence of what happens first, and what happens ever after.
#[derive(Debug, Clone)]
pub(super) struct Sequence<T> {
    first: VecDeque<T>,
    then: T,
}

impl<T: Clone> Sequence<T> {
    pub(super) fn always(then: T) -> Self {
        Sequence { first: VecDeque::new(), then }
    }

    pub(super) fn push(&mut self, times: usize, what: T) {
        self.first.extend(std::iter::repeat_n(what, times));
    }

    pub(super) fn next(&mut self) -> T {
        self.first.pop_front().unwrap_or_else(|| self.then.clone())
    }

    fn last(&self) -> T {
        self.then.clone()
    }
}

/// A test function and what its attempts do, one after the other, in whatever runner.
#[derive(Debug, Clone)]
pub(crate) struct FakeGroup {
    pub(super) function: String,
    /// Parameters of its cases; an empty one for a plain test.
    cases: Vec<&'static str>,
    /// Parameters of its cases when its file is collected alone.
    alone: Vec<&'static str>,
    acts: Sequence<Act>,
    elsewhere: Option<(&'static str, Act)>,
    cold: Option<Act>,
    attempts: u32,
}

impl FakeGroup {
    /// A group with one case that always does this.
    pub(crate) fn new(function: &str, act: Act) -> Self {
        let (cases, alone) = (vec![""], vec![""]);
        let (function, acts) = (function.to_owned(), Sequence::always(act));
        FakeGroup { function, cases, alone, acts, elsewhere: None, cold: None, attempts: 0 }
    }

    /// A group that passes.
    pub(crate) fn passing(function: &str) -> Self {
        FakeGroup::new(function, Act::Passes)
    }

    /// Its next attempts, so many, do this.
    #[must_use]
    pub(crate) fn first(mut self, times: usize, act: Act) -> Self {
        self.acts.push(times, act);
        self
    }

    /// Does this in every world where the variable is not that of the base world.
    #[must_use]
    pub(crate) fn where_differs(mut self, variable: &'static str, act: Act) -> Self {
        self.elsewhere = Some((variable, act));
        self
    }

    /// Does this in cold runs; otherwise what it does in the end.
    #[must_use]
    pub(crate) fn cold(mut self, act: Act) -> Self {
        self.cold = Some(act);
        self
    }

    /// Has cases with these parameters.
    #[must_use]
    pub(crate) fn cases(mut self, parameters: &[&'static str]) -> Self {
        (self.cases, self.alone) = (parameters.to_vec(), parameters.to_vec());
        self
    }

    /// Has these cases when its file is collected alone; none = it is not collected.
    #[must_use]
    pub(crate) fn cases_alone(mut self, parameters: &[&'static str]) -> Self {
        self.alone = parameters.to_vec();
        self
    }

    /// What the next attempt does, and how many there were before. `differs` tells the variables of another world.
    pub(super) fn next(&mut self, differs: impl Fn(&str) -> bool) -> (Act, u32) {
        let number = self.attempts;
        self.attempts += 1;
        match &self.elsewhere {
            Some((variable, act)) if differs(variable) => (act.clone(), number),
            _ => (self.acts.next(), number),
        }
    }

    pub(super) fn in_the_cold(&self) -> Act {
        self.cold.clone().unwrap_or_else(|| self.acts.last())
    }

    /// Names of its cases: `function[parameters]`.
    pub(super) fn names(&self, alone: bool) -> impl Iterator<Item = (String, Option<&'static str>)> + '_ {
        let cases = if alone { &self.alone } else { &self.cases };
        cases.iter().map(|parameters| match *parameters {
            "" => (self.function.clone(), None),
            parameters => (format!("{}[{parameters}]", self.function), Some(parameters)),
        })
    }

    pub(super) fn is_alike_alone(&self) -> bool {
        self.cases == self.alone
    }
}

/// A test file.
#[derive(Debug, Clone)]
pub(crate) struct FakeFile {
    pub(super) path: String,
    pub(super) groups: Vec<FakeGroup>,
    pub(super) directory: Sequence<Opening>,
    pub(super) opening: Sequence<Opening>,
    /// Exit codes of a runner that breaks when the file is closed.
    pub(super) closing: Sequence<Option<i32>>,
    pub(super) refused_where: Option<&'static str>,
}

impl FakeFile {
    /// A file that can be opened.
    pub(crate) fn new(path: &str, groups: impl IntoIterator<Item = FakeGroup>) -> Self {
        FakeFile {
            path: path.to_owned(),
            groups: groups.into_iter().collect(),
            directory: Sequence::always(Opening::Ready),
            opening: Sequence::always(Opening::Ready),
            closing: Sequence::always(None),
            refused_where: None,
        }
    }

    /// Opening its directory for it does this, so many times.
    #[must_use]
    pub(crate) fn directory(mut self, times: usize, opening: Opening) -> Self {
        self.directory.push(times, opening);
        self
    }

    /// Opening it does this, so many times.
    #[must_use]
    pub(crate) fn opening(mut self, times: usize, opening: Opening) -> Self {
        self.opening.push(times, opening);
        self
    }

    /// Closing it ends the runner, so many times, with this exit code.
    #[must_use]
    pub(crate) fn closing(mut self, times: usize, code: i32) -> Self {
        self.closing.push(times, Some(code));
        self
    }

    /// Cannot be imported where the variable is not that of the base world.
    #[must_use]
    pub(crate) fn refused_where(mut self, variable: &'static str) -> Self {
        self.refused_where = Some(variable);
        self
    }

    /// Its groups as a collection of everything finds them.
    pub(super) fn collected(&self) -> impl Iterator<Item = Group> + '_ {
        self.groups.iter().map(|group| {
            let case = |(name, parameters): (String, Option<&str>)| Case {
                case_id: format!("{}::{name}", self.path),
                parameters: parameters.map(str::to_owned),
                line: None,
            };
            let cases = group.names(false).map(case).collect();
            Group { cases, ..group_of(&self.path, &group.function) }
        })
    }
}
