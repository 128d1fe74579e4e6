//! The originals once more, with the lines that run in the order of their first execution.

use std::collections::BTreeMap;

use crate::attempt::lab::Lab;
use crate::attempt::pool::Event;
use crate::attempt::{attempt_of, node_id, tasks};
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::execution::Execution;
use crate::record::world::World;
use crate::referee::evaluate::Original;
use crate::referee::ground::Ground;
use crate::runner::protocol::TraceMode;
use crate::score::{Masks, compare};

/// What ran of an original, or why that is not known.
pub(super) type Traced = std::result::Result<Execution, String>;

/// Traces the groups; one result each, in their order.
///
/// # Errors
/// An interruption, and the harness's when it stays broken.
pub(super) fn traces(
    lab: &Lab,
    groups: &[Group],
    originals: &[&Original<'_>],
    ground: &Ground,
) -> Result<Vec<Traced>> {
    let world = lab.base();
    let pool = lab.pool(groups, &world);
    let wanted: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, 1)).collect();
    let tasks = tasks(groups, &wanted, &BTreeMap::new(), 0, TraceMode::Lines, pool.jobs);
    let mut traced: Vec<Traced> = vec![Err("nothing was reported".to_owned()); groups.len()];
    pool.run(tasks, |event| {
        match event {
            Event::Attempt { group, mut done, items, .. } => {
                let execution = done.execution.take();
                let name = |index: i64| node_id(&items, index);
                let attempt = attempt_of(&groups[group], &done, name, &world.normalizer, (&World::Base, 0));
                let masks =
                    Masks { modules: &ground.code.modules, files: &ground.code.sources, test_module: "" };
                let compared =
                    compare(originals[group].golden, &attempt.exit, &attempt.cases, &masks, lab.compare);
                traced[group] = match (compared.difference, execution) {
                    (Some(difference), _) => Err(format!("{difference:?} while lines are traced")),
                    (None, None) => Err("the test took the tracer away".to_owned()),
                    (None, Some(execution)) => Ok(execution),
                };
            }
            Event::Unavailable { group, text, .. } => traced[group] = Err(text),
            Event::Broken(error) => return Err(error),
        }
        Ok(())
    })?;
    Ok(traced)
}
