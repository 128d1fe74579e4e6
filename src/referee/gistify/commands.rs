//! Other input for the commands of one repository, each run in the original tree until it is known what it shows there.
//!
//! It is of use where every run, in another world too, shows the same, and something else than the command does, ends as the command does, and
//! runs nothing of the repository that does not run for the command: then a file that has what the command needs shows the
//! same, too. So an answer that was recorded differs from one that is worked out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::given::{from_root, group_with, is_code, is_place, named};
use super::ground::Code;
use super::original::Original;
use crate::attempt::lab::Lab;
use crate::attempt::pool::Terms;
use crate::attempt::world::WorldSetting;
use crate::beneath::Folder;
use crate::error::Result;
use crate::family::gistify::{Input, variations};
use crate::record::collected::Group;
use crate::record::entry::{Entry, Stdin};
use crate::record::outcome::{Attempt, CaseResult, Compare, Exit};
use crate::record::trace::check_path;
use crate::record::variant::{Given, Variant, VariantCase, VariantKind, Variation};
use crate::record::world::World;
use crate::referee::run::{Import, PLAIN, Seen, TextLab, WATCHED};
use crate::runner::protocol::{Manner, TraceMode};
use crate::score::{Masks, compare};

/// Variations of a command.
const MOST: usize = 4;
/// So many of them are enough where more were not tried yet.
const ENOUGH: usize = 2;
/// How many other files and standard inputs are tried at once, and how many other arguments.
const AT_ONCE: (usize, usize) = (5, 4);
/// How often more are tried.
const ROUNDS: usize = 2;
/// Largest input that is changed, in bytes.
const LARGEST: u64 = 64 << 10;
/// Files of one command that are changed.
const MOST_FILES: usize = 4;
/// How an input is run: once with the lines that run, and twice as it is.
const MANNERS: [Manner; 3] = [WATCHED, PLAIN, PLAIN];

/// What runs of the tree, by file.
type Lines = BTreeMap<String, BTreeSet<u32>>;

/// Looks for other input of commands.
pub(super) struct Inputs<'a> {
    pub(super) lab: &'a Lab,
    pub(super) code: &'a Code,
    /// The place of a submission.
    pub(super) file: &'a str,
    pub(super) seed: u64,
}

/// A command on its way.
struct Command<'a> {
    original: &'a Original<'a>,
    entry: &'a Entry,
    lines: Lines,
    opened: BTreeSet<String>,
    proposals: [Vec<(VariantKind, Given)>; 2],
    found: Vec<Variant>,
}

/// Other input on its way.
#[derive(Default)]
struct Pending {
    shown: Vec<Attempt>,
    lines: Option<Lines>,
}

impl Inputs<'_> {
    /// Variations of each of these commands.
    ///
    /// # Errors
    /// IO errors, an interruption, and what the machine lost.
    pub(super) fn make(&self, originals: &[(&Original<'_>, &Entry)]) -> Result<Vec<Vec<Variant>>> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let new = |(original, entry)| Command {
            original,
            entry,
            lines: Lines::new(),
            opened: BTreeSet::new(),
            proposals: [Vec::new(), Vec::new()],
            found: Vec::new(),
        };
        let mut commands: Vec<Command<'_>> = originals.iter().copied().map(new).collect();
        self.look(&mut commands)?;
        for command in &mut commands {
            command.propose(&tree, &format!("{} {}", self.seed, command.original.id));
        }
        for _ in 0..ROUNDS {
            self.round(&mut commands)?;
        }
        Ok(commands.into_iter().map(|command| chosen(command.found)).collect())
    }

    /// What runs for the commands as they are, and which files they open.
    fn look(&self, commands: &mut [Command<'_>]) -> Result<()> {
        let groups: Vec<Group> = commands.iter().map(|one| Group::of_entry(one.entry.clone())).collect();
        let imports = (0..groups.len()).map(|at| Import::of_command(at, &[WATCHED, WATCHED])).collect();
        self.each(&self.base(), &groups, imports, |at, _, seen| {
            if let Some(execution) = seen.execution {
                let command = &mut commands[at];
                command.opened.extend(execution.opened);
                for (file, ran) in execution.files {
                    let lines = command.lines.entry(file).or_default();
                    lines.extend(ran.lines.into_iter().map(|(line, _)| line));
                }
            }
        })
    }

    /// Tries the next proposals of commands that do not have enough.
    fn round(&self, commands: &mut [Command<'_>]) -> Result<()> {
        let mut wanted: Vec<(usize, VariantKind, Given)> = Vec::new();
        for (at, command) in commands.iter_mut().enumerate().filter(|(_, one)| one.found.len() < ENOUGH) {
            for (proposals, most) in command.proposals.iter_mut().zip([AT_ONCE.0, AT_ONCE.1]) {
                let some = proposals.drain(..most.min(proposals.len()));
                wanted.extend(some.map(|(kind, given)| (at, kind, given)));
            }
        }
        let groups: Vec<Group> =
            wanted.iter().map(|(at, _, given)| group_with(commands[*at].entry, given)).collect();
        let imports = (0..groups.len()).map(|at| Import::of_command(at, &MANNERS)).collect();
        let mut trials: Vec<Pending> = wanted.iter().map(|_| Pending::default()).collect();
        self.each(&self.base(), &groups, imports, |at, manner, seen| {
            let trial = &mut trials[at];
            trial.shown.push(named(seen.attempt, commands[wanted[at].0].entry));
            if manner == WATCHED {
                trial.lines = seen.execution.map(|execution| {
                    let lines = |ran: Vec<(u32, u64)>| ran.into_iter().map(|(line, _)| line).collect();
                    execution.files.into_iter().map(|(file, ran)| (file, lines(ran.lines))).collect()
                });
            }
        })?;
        let masks = Masks { modules: &self.code.modules, files: &self.code.sources, test_module: "" };
        let mut found = Vec::new();
        for ((at, kind, given), trial) in wanted.into_iter().zip(trials) {
            if let Some(shows) = commands[at].shows(&given, &trial, &masks, self.lab.compare) {
                let hash = trial.shown.first().map(|first| first.shown(self.lab.compare));
                found.push((at, kind, given, shows, hash));
            }
        }
        let elsewhere = self.elsewhere(commands, found.iter().map(|(at, _, given, ..)| (*at, given)))?;
        for ((at, kind, given, shows, hash), seen) in found.into_iter().zip(elsewhere) {
            let command = &mut commands[at];
            if seen == hash {
                let case = VariantCase {
                    case: command.entry.name.to_string(),
                    outcome: shows.outcome,
                    exception: shows.exception.clone(),
                    message: None,
                };
                let variation = Some(Variation { given, shows });
                let (source, cases) = (String::new(), vec![case]);
                command.found.push(Variant {
                    kind,
                    line: 0,
                    source,
                    cases,
                    variation,
                    refutes_constant: false,
                });
            }
        }
        Ok(())
    }

    /// What input shows in the world in which everything differs, each once.
    fn elsewhere<'g>(
        &self,
        commands: &[Command<'_>],
        inputs: impl Iterator<Item = (usize, &'g Given)>,
    ) -> Result<Vec<Option<String>>> {
        let (owners, groups): (Vec<usize>, Vec<Group>) =
            inputs.map(|(at, given)| (at, group_with(commands[at].entry, given))).unzip();
        let imports = (0..groups.len()).map(|at| Import::of_command(at, &[PLAIN])).collect();
        let mut shown = vec![None; groups.len()];
        let mut world = self.lab.world(&World::Everything)?;
        world.setting.world.probe = Some(self.file.to_owned());
        self.each(&world, &groups, imports, |at, _, seen| {
            let attempt = named(seen.attempt, commands[owners[at]].entry);
            shown[at] = Some(attempt.shown(self.lab.compare));
        })?;
        Ok(shown)
    }

    fn base(&self) -> WorldSetting {
        let mut setting = self.lab.setting.clone();
        setting.world.probe = Some(self.file.to_owned());
        WorldSetting::base(&setting)
    }

    fn each(
        &self,
        world: &WorldSetting,
        groups: &[Group],
        imports: Vec<Import>,
        each: impl FnMut(usize, Manner, Seen),
    ) -> Result<()> {
        if imports.is_empty() {
            return Ok(());
        }
        let terms = Terms::default();
        let place = TextLab { lab: self.lab, world, groups, terms: &terms, preload: &[] };
        let lost = place.run(imports, TraceMode::Lines, each)?;
        // A dataset says nothing about a command that was lost.
        lost.into_values().next().map_or(Ok(()), Err)
    }
}

impl Command<'_> {
    /// What may be changed of its input.
    fn propose(&mut self, tree: &Folder, seed: &str) {
        let entry = self.entry;
        let text = |path: &str| {
            check_path(path).ok().filter(|()| !is_code(path))?;
            String::from_utf8(tree.read(Path::new(path), LARGEST).ok()?).ok()
        };
        let (mut places, mut files) = (BTreeSet::new(), BTreeSet::new());
        for (at, argument) in entry.command.arguments().iter().enumerate() {
            let value = argument.split_once('=').map_or(argument.as_str(), |(_, value)| value);
            let Some(path) = from_root(entry, value) else { continue };
            if is_place(tree, &path) {
                places.insert(at);
                files.insert(path);
            }
        }
        let stdin = match &entry.stdin {
            Some(Stdin::Text(given)) => Some(given.clone()),
            Some(Stdin::File(path)) => text(path),
            None => None,
        };
        files.extend(self.opened.iter().cloned());
        if let Some(Stdin::File(path)) = &entry.stdin {
            files.remove(path);
        }
        let files = files.into_iter().filter_map(|path| Some((text(&path)?, path)));
        let files = files.map(|(text, path)| (path, text)).take(MOST_FILES).collect();
        let input = Input {
            arguments: entry.command.arguments(),
            places: &places,
            stdin: stdin.as_deref(),
            files: &files,
        };
        let (arguments, others) =
            variations(input, seed).into_iter().partition(|(kind, _)| *kind == VariantKind::OtherArgument);
        self.proposals = [others, arguments];
    }

    /// What other input shows, where that is of use.
    fn shows(
        &self,
        given: &Given,
        trial: &Pending,
        masks: &Masks<'_>,
        compare: Compare,
    ) -> Option<CaseResult> {
        let [first, ..] = &trial.shown[..] else { return None };
        let hash = first.shown(compare);
        let agree =
            trial.shown.len() == MANNERS.len() && trial.shown.iter().all(|one| one.shown(compare) == hash);
        let (Exit::Finished, [shown]) = (&first.exit, &first.cases[..]) else { return None };
        let [golden] = self.original.golden else { return None };
        let status = |case: &CaseResult| case.command.as_ref().map(|command| command.status);
        let ends_alike = (shown.outcome, status(shown), &shown.exception)
            == (golden.outcome, status(golden), &golden.exception);
        let does_no_more = trial.lines.as_ref().is_some_and(|lines| {
            let known = |(file, ran): (&String, &BTreeSet<u32>)| {
                ran.is_empty() || self.lines.get(file).is_some_and(|all| ran.is_subset(all))
            };
            lines.iter().all(known)
        });
        let is_of_use = agree && ends_alike && does_no_more && is_other(golden, shown, given, masks, compare);
        is_of_use.then(|| CaseResult {
            message: String::new(),
            replaced: BTreeMap::new(),
            duration_ms: 0.0,
            ..shown.clone()
        })
    }
}

/// Whether the referee notices that something else is shown than that the input is another one.
fn is_other(
    golden: &CaseResult,
    shown: &CaseResult,
    given: &Given,
    masks: &Masks<'_>,
    held_to: Compare,
) -> bool {
    let without = |case: &CaseResult| {
        let mut case = case.clone();
        if let Some(command) = &mut case.command {
            command.files.retain(|file| !given.files.contains_key(&file.path));
        }
        case
    };
    !compare(&[without(golden)], &Exit::Finished, &[without(shown)], masks, held_to).agrees()
}

/// Those that are kept: another argument is among them, where that shows.
fn chosen(found: Vec<Variant>) -> Vec<Variant> {
    let (arguments, mut kept): (Vec<Variant>, Vec<Variant>) =
        found.into_iter().partition(|one| one.kind == VariantKind::OtherArgument);
    kept.truncate(MOST - arguments.len().min(1));
    kept.extend(arguments);
    kept.truncate(MOST);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::{Method, Outcome};
    use crate::score::Modules;
    use crate::testing::attempts::attempt;

    #[test]
    fn what_the_referee_does_not_see_is_not_another_thing_that_is_shown() {
        let shown =
            |text: &str| attempt(&World::Base, Method::Fork, 0, Outcome::Passed, text).cases.remove(0);
        let modules: Modules = ["shop", "shop.one", "shop.two"].into_iter().collect();
        let files = BTreeSet::new();
        let masks = Masks { modules: &modules, files: &files, test_module: "" };
        let is = |one: &str, other: &str, held_to| {
            is_other(&shown(one), &shown(other), &Given::default(), &masks, held_to)
        };
        assert!(is("1", "2", Compare::Output));
        assert!(!is("1", "2", Compare::Exception), "output is not compared");
        assert!(!is("shop.one: 1", "shop.two: 1", Compare::Output), "places of code are masked");
    }
}
