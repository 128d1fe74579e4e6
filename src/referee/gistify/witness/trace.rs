//! The originals once more, with the lines that run in the order of their first execution.

use std::collections::BTreeMap;

use crate::attempt::lab::Lab;
use crate::attempt::pool::Event;
use crate::attempt::{attempt_of, node_id, tasks};
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::execution::Execution;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::referee::gistify::ground::Ground;
use crate::referee::gistify::original::Original;
use crate::runner::protocol::TraceMode;
use crate::score::{Masks, compare};

/// What ran of an original, or why that is not known.
pub(super) type Traced = std::result::Result<Execution, String>;

/// Runs of every group: a second and third one show whether chance decides which lines run.
const RUNS: u32 = 3;
/// Further runs of a group for which it does: they see a branch that is taken in a tenth of the runs in 9 of 10 cases.
const FURTHER_RUNS: u32 = 20;

/// Traces the groups, those whose lines vary more often; one result each, in their order.
///
/// # Errors
/// An interruption, and the harness's when it stays broken.
pub(super) fn traces(
    lab: &Lab,
    groups: &[Group],
    originals: &[&Original<'_>],
    ground: &Ground,
) -> Result<Vec<Traced>> {
    let mut traced: Vec<Option<Traced>> = vec![None; groups.len()];
    let every: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, RUNS)).collect();
    let mut tracing = Tracing { lab, groups, originals, ground, traced: &mut traced };
    tracing.run(&every)?;
    let varies = |at: usize, traced: &[Option<Traced>]| matches!(&traced[at], Some(Ok(one)) if one.varies());
    let varying: Vec<(usize, u32)> =
        (0..groups.len()).filter(|at| varies(*at, tracing.traced)).map(|at| (at, FURTHER_RUNS)).collect();
    tracing.run(&varying)?;
    let none = || Err("nothing was reported".to_owned());
    Ok(traced.into_iter().map(|one| one.unwrap_or_else(none)).collect())
}

/// Runs with a tracer, and what they showed of each group.
struct Tracing<'a, 'b> {
    lab: &'a Lab,
    groups: &'a [Group],
    originals: &'a [&'a Original<'b>],
    ground: &'a Ground,
    traced: &'a mut Vec<Option<Traced>>,
}

impl Tracing<'_, '_> {
    fn run(&mut self, wanted: &[(usize, u32)]) -> Result<()> {
        let world = self.lab.base();
        let pool = self.lab.pool(self.groups, &world);
        let tasks = tasks(self.groups, wanted, &BTreeMap::new(), 0, TraceMode::Lines, pool.expected());
        pool.run(tasks, |event| {
            match event {
                Event::Attempt { group, mut done, items, .. } => {
                    let execution = done.execution.take();
                    let name = |index: i64| node_id(&items, index);
                    let place = (&World::Base, 0);
                    let attempt = attempt_of(&self.groups[group], &done, name, &world.normalizer, place);
                    let one = self.read(group, &attempt, execution);
                    self.add(group, one);
                }
                Event::Unavailable { group, text, .. } => self.add(group, Err(text)),
                Event::Broken(error) | Event::Lost { error, .. } => return Err(error),
            }
            Ok(())
        })
    }

    /// What one run says.
    fn read(&self, group: usize, attempt: &Attempt, execution: Option<Execution>) -> Traced {
        let code = &self.ground.code;
        let masks = Masks { modules: &code.modules, files: &code.sources, test_module: "" };
        let golden = self.originals[group].golden;
        let compared = compare(golden, &attempt.exit, &attempt.cases, &masks, self.lab.compare);
        match (compared.difference, execution) {
            (Some(difference), _) => Err(format!("{difference:?} while lines are traced")),
            (None, None) => Err("the test took the tracer away".to_owned()),
            (None, Some(execution)) => Ok(execution),
        }
    }

    /// Joins what one run says with what others said. A run that shows something else than the original says nothing.
    fn add(&mut self, group: usize, one: Traced) {
        match (&mut self.traced[group], one) {
            (Some(Ok(known)), Ok(one)) => known.join(one),
            (Some(_), Err(_)) => {}
            (place, one) => *place = Some(one),
        }
    }
}
