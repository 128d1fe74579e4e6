//! Texts in the place of test files: what their runs showed.
//!
//! A text is imported once for several runs of it: as it is, watched, and with a test that fails. Each run is a fork of
//! the process that imported it, so none sees what another one did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attempt::lab::Lab;
use crate::attempt::pool::{Event, Run, Task, Terms};
use crate::attempt::world::WorldSetting;
use crate::attempt::{attempt_of, node_id, not_collected};
use crate::error::{Error, Result};
use crate::record::collected::Group;
use crate::record::execution::Execution;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::runner::protocol::{Manner, Reached, TraceMode};

/// A run that nobody watches.
pub(super) const PLAIN: Manner = Manner::PLAIN;
/// A run whose lines are noted, where its import was watched.
pub(super) const WATCHED: Manner = Manner { untraced: false, failing: None, late_writes: false };

/// A run whose test fails whenever it is called: its definition begins at this line.
pub(super) fn failing(line: u32) -> Manner {
    Manner { failing: Some(line), ..PLAIN }
}

/// What one run showed.
pub(super) struct Seen {
    pub(super) attempt: Attempt,
    /// Where its test is defined, when that is another file of the tree.
    pub(super) defined_in: Option<String>,
    /// While the file was imported, and by its cases.
    pub(super) reached: Reached,
    /// Lines of the file that ran. None where they were not watched, or the test took the watch away.
    pub(super) lines: Option<BTreeSet<u32>>,
    /// Everything of the tree that ran, under the same conditions.
    pub(super) execution: Option<Execution>,
}

/// A text, and the runs that are made of one import of it.
pub(super) struct Import {
    /// None where commands are run as they are.
    text: Option<Arc<str>>,
    /// Indices of their groups, all of one file, with how they run; the last one comes first. Where one worker makes them
    /// all, what did not come to its end is not run in other manners.
    runs: Vec<(usize, Manner)>,
    plain_decides: bool,
    /// Milliseconds that the runs probably take, where that is known.
    cost_ms: Option<f64>,
}

impl Import {
    /// Runs of a group in these manners, in this order.
    pub(super) fn new(group: usize, text: Arc<str>, manners: &[Manner]) -> Self {
        Import {
            text: Some(text),
            runs: manners.iter().rev().map(|manner| (group, *manner)).collect(),
            plain_decides: false,
            cost_ms: None,
        }
    }

    /// Runs of a command as it is, in these manners, in this order.
    pub(super) fn of_command(group: usize, manners: &[Manner]) -> Self {
        Import { text: None, ..Import::new(group, Arc::from(""), manners) }
    }

    /// Says how many milliseconds each run probably takes.
    pub(super) fn each_takes(self, milliseconds: f64) -> Self {
        Import { cost_ms: Some(milliseconds * self.runs.len() as f64), ..self }
    }

    /// Says that other manners are of no use where a case of the plain run fails: mostly they are then not made.
    pub(super) fn plain_decides(self, plain_decides: bool) -> Self {
        Import { plain_decides, ..self }
    }

    /// Has more runs made of the same import.
    pub(super) fn join(&mut self, other: Import) {
        self.cost_ms = self.cost_ms.zip(other.cost_ms).map(|(one, other)| one + other);
        self.runs.extend(other.runs);
    }
}

/// Groups with runs that the machine lost.
pub(super) type Lost = BTreeMap<usize, Error>;

/// A place where texts are run, and one group for each of them.
pub(super) struct TextLab<'a> {
    pub(super) lab: &'a Lab,
    pub(super) world: &'a WorldSetting,
    /// The file of each says where its text goes; a group has whatever cases its test function has.
    pub(super) groups: &'a [Group],
    pub(super) terms: &'a Terms<'a>,
    /// What is imported ahead of them.
    pub(super) preload: &'a [String],
}

impl TextLab<'_> {
    /// The file that has the text of a group.
    fn file_of<'g>(&'g self, group: &'g Group) -> &'g str {
        let submission = self.world.setting.world.submission.as_deref();
        submission.filter(|_| group.entry.is_some()).unwrap_or(&group.file)
    }

    /// Imports each text once, watched where `trace` says so, and makes its runs; `each` gets what was seen of a group
    /// in a manner. Returns which groups the machine lost, and how.
    ///
    /// # Errors
    /// An interruption, and what keeps every text from being run.
    pub(super) fn run(
        &self,
        imports: Vec<Import>,
        trace: TraceMode,
        mut each: impl FnMut(usize, Manner, Seen),
    ) -> Result<Lost> {
        let mut lost = Lost::new();
        let tasks = imports.into_iter().filter_map(|import| {
            let file = &self.groups[import.runs.first()?.0].file;
            let runs = import.runs.into_iter().map(|(at, manner)| Run { manner, ..Run::new(at, 1) });
            let mut task = Task::new(file, 0, trace);
            if let Some(text) = import.text {
                task = task.judging(text);
            }
            task.plain_decides = import.plain_decides;
            (task.cost_ms, task.is_new) = (import.cost_ms.unwrap_or_default(), import.cost_ms.is_none());
            task.runs.extend(runs);
            Some(task)
        });
        let (groups, normalizer) = (self.groups, &self.world.normalizer);
        let mut pool = self.lab.busy_pool(groups, self.world);
        pool.terms = self.terms.clone();
        pool.passes.iter_mut().for_each(|pass| pass.preload = self.preload);
        pool.run(tasks.collect(), |event| {
            match event {
                Event::Attempt { group, manner, mut done, items, reached, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    let attempt = attempt_of(&groups[group], &done, name, normalizer, (&World::Base, 0));
                    let file = self.file_of(&groups[group]);
                    let lines = done.execution.as_ref().and_then(|it| lines_of(file, it));
                    let ran = |index: i64| done.cases.iter().any(|case| case.index == index);
                    let of_group = items.iter().filter(|item| i64::try_from(item.index).is_ok_and(ran));
                    let defined_in = of_group.into_iter().find_map(|item| item.defined_in.clone());
                    let reached = both(&reached, &done.reached);
                    let execution = done.execution.take().filter(|it| it.complete);
                    each(group, manner, Seen { attempt, defined_in, reached, lines, execution });
                }
                Event::Unavailable { group, manner, text, reached, .. } => {
                    let attempt = not_collected(&groups[group], &text, normalizer, (&World::Base, 0));
                    let reached = (*reached).clone();
                    let (lines, execution) = (None, None);
                    each(group, manner, Seen { attempt, defined_in: None, reached, lines, execution });
                }
                Event::Lost { group, error } => {
                    lost.insert(group, error);
                }
                Event::Broken(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(lost)
    }
}

fn both(first: &Reached, second: &Reached) -> Reached {
    Reached {
        imports: [&first.imports[..], &second.imports].concat(),
        opened: [&first.opened[..], &second.opened].concat(),
    }
}

/// Lines of the file that ran, while it was imported and while its cases ran.
fn lines_of(file: &str, execution: &Execution) -> Option<BTreeSet<u32>> {
    let of_file = execution.complete.then(|| execution.files.get(file))?;
    Some(of_file.into_iter().flat_map(|file| file.lines.iter().map(|(line, _)| *line)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::backend::FakeBackend;
    use crate::testing::lab::lab;
    use crate::testing::script::{FakeFile, FakeGroup, Opening};

    /// What is seen of a text, and whether it was lost.
    fn judged(opening: Opening) -> (usize, Vec<usize>) {
        let folder = tempfile::tempdir().unwrap();
        let file = FakeFile::new("concise.py", [FakeGroup::passing("test_1")]).opening(9, opening);
        let backend = FakeBackend::new([file]);
        let (groups, lab) = (backend.groups(), lab(&backend, folder.path()));
        let world = lab.base();
        let terms = Terms::default();
        let place = TextLab { lab: &lab, world: &world, groups: &groups, terms: &terms, preload: &[] };
        let mut seen = 0;
        let imports = vec![Import::new(0, Arc::from("a submission"), &[PLAIN])];
        let lost = place.run(imports, TraceMode::Off, |_, _, _| seen += 1).unwrap();
        (seen, lost.into_keys().collect())
    }

    #[test]
    fn what_the_machine_loses_is_seen_of_nobody_and_what_a_text_does_is_its_own() {
        assert_eq!(judged(Opening::Ready), (1, vec![]));
        assert_eq!(judged(Opening::EndsRunner(1)), (1, vec![]));
        assert_eq!(judged(Opening::FailsInternally), (0, vec![0]));
    }
}
