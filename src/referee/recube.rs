//! How `ReCUBE` judges: a text takes the place of the target in the whole tree, and the groups of the instance run there.

pub(crate) mod gates;
pub(crate) mod judge;
pub(crate) mod outputs;
pub(crate) mod tables;
pub(crate) mod trajectories;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::attempt::lab::{Lab, Made, Wanted};
use crate::attempt::overlay::History;
use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::family::gistify::{TestName, failing};
use crate::family::recube::exchanged;
use crate::family::recube::mask::{Cut, Masked, mask, text_of_target};
use crate::record::collected::Group;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::outcome::{Attempt, Exit, Outcome};
use crate::record::patch::PathProblem;
use crate::record::trace::check_path;
use crate::score::LONGEST;
use crate::store::journal::Journal;
use crate::store::{Cache, discard};

/// Raised when the same text may show something else.
const VERSION: &str = "recube-1";

/// What groups showed with a text in the place of the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// By case; what did not run is missing.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    /// Groups over a limit of time.
    pub(crate) timed_out: BTreeSet<String>,
    /// Groups whose process died.
    pub(crate) crashed: BTreeSet<String>,
    /// Why no group could be run at all.
    pub(crate) broken: Option<String>,
}

impl Shown {
    /// Whether a case passed.
    pub(crate) fn passes(&self, case_id: &str) -> bool {
        self.outcomes.get(case_id) == Some(&Outcome::Passed)
    }

    fn add(&mut self, attempt: &Attempt) {
        self.outcomes.extend(attempt.cases.iter().map(|case| (case.case_id.clone(), case.outcome)));
        match attempt.exit {
            Exit::TimedOut { .. } => drop(self.timed_out.insert(attempt.group_id.clone())),
            Exit::Exited { .. } | Exit::Signaled { .. } | Exit::Unusable => {
                self.crashed.insert(attempt.group_id.clone());
            }
            Exit::Finished | Exit::NotCollected => {}
        }
    }
}

/// The file of an instance as the tree has it.
pub(crate) struct Ground {
    pub(crate) original: String,
    pub(crate) masked: Masked,
    /// Files with its byte code.
    pub(crate) byte_code: Vec<String>,
    /// Python files of the tree.
    pub(crate) python: BTreeSet<String>,
}

impl Ground {
    /// Reads the file of an instance, which the dataset names.
    ///
    /// # Errors
    /// A usage error: the tree does not have it, or it cannot be masked.
    pub(crate) fn of(lab: &Lab, target: &str) -> Result<Self> {
        let folder = Folder::open(&lab.built.tree)?;
        let not_a_target = |why: &str| Error::usage(format!("{target} is not a target: {why}"));
        check_path(target).map_err(|why| not_a_target(&why))?;
        let bytes = folder.read_through_links(Path::new(target), LONGEST as u64 + 1)?;
        let text = text_of_target(&bytes).map_err(|why| not_a_target(why.reason()))?;
        let masked = mask(text, Cut::All).map_err(|why| not_a_target(why.reason()))?;
        let entries = folder.walk()?;
        let paths = entries.iter().filter_map(|entry| entry.path.to_str());
        let python = paths.clone().filter(|path| path.ends_with(".py")).map(str::to_owned).collect();
        Ok(Ground { original: text.to_owned(), masked, byte_code: byte_code_of(target, paths), python })
    }

    /// Whether these are the original and the mask that the dataset was made of.
    ///
    /// # Errors
    /// A usage error: one of them is another.
    pub(crate) fn check(&self, original: &str, masked: &str) -> Result<()> {
        if sha256_hex(self.original.as_bytes()) == original
            && sha256_hex(self.masked.text.as_bytes()) == masked
        {
            return Ok(());
        }
        Err(Error::usage("the mask of a target is not the one that the dataset says")
            .with_hint("use the gistmill that wrote the dataset, or build it again"))
    }
}

/// The byte code of a file, among the paths of its tree.
pub(crate) fn byte_code_of<'a>(target: &str, paths: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let (folder, name) = target.rsplit_once('/').map_or(("", target), |(folder, name)| (folder, name));
    let separator = if folder.is_empty() { "" } else { "/" };
    let start = format!("{folder}{separator}__pycache__/{}.", name.strip_suffix(".py").unwrap_or(name));
    let is_its = |path: &&str| path.starts_with(&start) && path.ends_with(".pyc");
    paths.into_iter().filter(is_its).map(str::to_owned).collect()
}

/// A target in its tree.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cache: &'a Cache,
    pub(crate) target: &'a str,
    /// Files with byte code of the original.
    pub(crate) byte_code: &'a [String],
}

/// Runs with texts in the place of targets, kept in a journal.
pub(crate) struct Runs {
    journal: Journal,
    known: BTreeMap<String, Shown>,
}

/// A journal row.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    shown: Shown,
}

impl Runs {
    /// Opens what an earlier command left.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (journal, rows) = Journal::open::<Kept>(path)?;
        Ok(Runs { journal, known: rows.into_iter().map(|row| (row.key, row.shown)).collect() })
    }

    /// What these groups show with a text in the place of the target, in a tree without history: made once for each
    /// `number`.
    ///
    /// # Errors
    /// IO errors and an interruption. Where the harness cannot run anything in that tree, [`Shown::broken`] says why.
    pub(crate) fn shown(
        &mut self,
        place: Place<'_>,
        text: &[u8],
        groups: &[Group],
        number: u32,
    ) -> Result<Shown> {
        self.shown_with(place, text, &BTreeMap::new(), groups, number)
    }

    /// The same with other texts of files of tests, by path.
    ///
    /// # Errors
    /// As for [`Runs::shown`].
    pub(crate) fn shown_with(
        &mut self,
        place: Place<'_>,
        text: &[u8],
        tests: &BTreeMap<String, String>,
        groups: &[Group],
        number: u32,
    ) -> Result<Shown> {
        let mut parts = vec![VERSION.to_owned(), place.lab.built.key.clone(), place.target.to_owned()];
        parts.extend([sha256_hex(text), number.to_string(), format!("{:?}", place.lab.timeouts)]);
        parts.extend(groups.iter().map(|group| group.group_id.clone()));
        parts.extend(tests.iter().flat_map(|(path, text)| [path.clone(), sha256_hex(text.as_bytes())]));
        let key = hash_parts(&parts);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let shown = run(place, text, tests, groups)?;
        // What was broken is tried again the next time.
        if shown.broken.is_none() {
            self.journal.append(&Kept { key: key.clone(), shown: shown.clone() })?;
            self.journal.sync()?;
            self.known.insert(key, shown.clone());
        }
        Ok(shown)
    }
}

fn run(place: Place<'_>, text: &[u8], tests: &BTreeMap<String, String>, groups: &[Group]) -> Result<Shown> {
    let exchange = || {
        let mut patch = exchanged(place.target, text, place.byte_code)?;
        tests.iter().try_for_each(|(path, text)| patch.put(path, text.clone().into_bytes()))?;
        Ok(patch)
    };
    let patch = exchange()
        .map_err(|_: PathProblem| Error::internal(format!("{} is not a file of a tree", place.target)))?;
    let lab = place.lab.with(place.cache, &patch, History::Hidden)?;
    let wanted: Vec<(usize, u32)> = (0..groups.len()).map(|at| (at, 1)).collect();
    let (world, durations) = (lab.base(), BTreeMap::new());
    let wanted = Wanted { world: &world, round: 0, groups: &wanted, durations: &durations, patience: None };
    let mut shown = Shown::default();
    let made = lab.make(groups, &[wanted], |_, _, made| {
        let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = made;
        shown.add(&attempt);
        Ok(())
    });
    // The tree is that of one text: nobody asks for it again.
    if let Some(folder) = lab.built.tree.parent() {
        discard(folder)?;
    }
    match made {
        Err(error) if matches!(error.fault(), Fault::Harness | Fault::Repository) => {
            Ok(Shown { broken: Some(error.to_string()), ..Shown::default() })
        }
        other => other.map(|()| shown),
    }
}

/// Files of tests in which these groups fail as soon as they start. Those whose test is defined elsewhere are left as they are.
///
/// # Errors
/// IO errors.
pub(crate) fn planted(lab: &Lab, groups: &[Group]) -> Result<BTreeMap<String, String>> {
    let folder = Folder::open(&lab.built.tree)?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for group in groups {
        let text = match texts.get(&group.file) {
            Some(text) => Some(text.clone()),
            None => {
                String::from_utf8(folder.read_through_links(Path::new(&group.file), LONGEST as u64 + 1)?).ok()
            }
        };
        let test = TestName { classes: group.classes.clone(), function: group.function.clone() };
        let fails = text.and_then(|text| failing(&text, &test).ok()?.into_iter().next());
        texts.extend(fails.map(|text| (group.file.clone(), text)));
    }
    Ok(texts)
}

/// The group of an ID, with whatever cases its test function has.
pub(crate) fn group_of(group_id: &str) -> Group {
    let mut names: Vec<String> = group_id.split("::").map(str::to_owned).collect();
    let file = names.remove(0);
    let function = names.pop().unwrap_or_default();
    Group {
        group_id: group_id.to_owned(),
        file,
        classes: names,
        function,
        cases: Vec::new(),
        markers: Vec::new(),
        fixtures: Vec::new(),
        flags: Vec::new(),
        entry: None,
    }
}
