//! Texts in the place of test files: what their runs showed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::attempt::lab::Lab;
use crate::attempt::pool::{Event, Run as PoolRun, Task};
use crate::attempt::world::WorldSetting;
use crate::attempt::{attempt_of, node_id, not_collected};
use crate::error::Result;
use crate::record::collected::Group;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::runner::protocol::{Reached, TraceMode};
use crate::runner::report::{GroupTrace, ImportTrace};

/// What one run showed.
pub(super) struct Seen {
    pub(super) attempt: Attempt,
    /// Where its test is defined, when that is another file of the tree.
    pub(super) defined_in: Option<String>,
    /// While the file was imported, and by its cases.
    pub(super) reached: Reached,
    /// Lines of the file that ran. None where they were not traced, or the test took the tracer away.
    pub(super) lines: Option<BTreeSet<u32>>,
}

/// A place where texts are run, and one group for each of them.
pub(super) struct Place<'a> {
    pub(super) lab: &'a Lab,
    pub(super) world: &'a WorldSetting,
    /// The file of each says where its text goes; a group has whatever cases its test function has.
    pub(super) groups: &'a [Group],
}

impl Place<'_> {
    /// Runs each of `texts`, given with the index of its group, `repeat` times, each time imported anew; `each` gets what
    /// was seen.
    ///
    /// # Errors
    /// An interruption, and the harness's when it stays broken.
    pub(super) fn run(
        &self,
        texts: &[(usize, Arc<str>)],
        repeat: u32,
        trace: TraceMode,
        mut each: impl FnMut(usize, Seen),
    ) -> Result<()> {
        let task = |(at, text): &(usize, Arc<str>)| {
            let mut task = Task::new(&self.groups[*at].file, 0, trace);
            task.text = Some(Arc::clone(text));
            task.runs.push(PoolRun { group: *at, repeat: 1 });
            task
        };
        let (groups, normalizer) = (self.groups, &self.world.normalizer);
        self.lab.busy_pool(groups, self.world).run(
            texts.iter().flat_map(|text| (0..repeat).map(|_| task(text))).collect(),
            |event| {
                match event {
                    Event::Attempt { group, done, items, import, reached, .. } => {
                        let name = |index: i64| node_id(&items, index);
                        let attempt = attempt_of(&groups[group], &done, name, normalizer, (&World::Base, 0));
                        let lines = lines_of(&groups[group].file, import.as_deref(), done.trace.as_ref());
                        let defined_in = items
                            .iter()
                            .filter(|item| {
                                done.cases.iter().any(|case| usize::try_from(case.index) == Ok(item.index))
                            })
                            .find_map(|item| item.defined_in.clone());
                        let reached = both(&reached, &done.reached);
                        each(group, Seen { attempt, defined_in, reached, lines });
                    }
                    Event::Unavailable { group, text, reached, .. } => {
                        let attempt = not_collected(&groups[group], &text, normalizer, (&World::Base, 0));
                        each(
                            group,
                            Seen { attempt, defined_in: None, reached: (*reached).clone(), lines: None },
                        );
                    }
                    Event::Broken(error) => return Err(error),
                }
                Ok(())
            },
        )
    }
}

fn both(first: &Reached, second: &Reached) -> Reached {
    Reached {
        imports: [&first.imports[..], &second.imports].concat(),
        opened: [&first.opened[..], &second.opened].concat(),
    }
}

/// Lines of the file that ran, while it was imported and while its cases ran.
fn lines_of(
    file: &str,
    import: Option<&ImportTrace>,
    trace: Option<&std::result::Result<GroupTrace, String>>,
) -> Option<BTreeSet<u32>> {
    let (import, Some(Ok(trace))) = (import?, trace) else { return None };
    if !trace.complete {
        return None;
    }
    let mut lines = BTreeSet::new();
    let functions = import.functions.iter().chain(&trace.functions);
    let of_functions = functions.map(|one| (&one.file, one.lines.as_ref()));
    let of_bodies = import.bodies.iter().chain(&trace.bodies).map(|one| (&one.file, one.lines.as_ref()));
    for (_, executed) in of_functions.chain(of_bodies).filter(|(of, _)| *of == file) {
        lines.extend(executed?.iter().copied());
    }
    Some(lines)
}
