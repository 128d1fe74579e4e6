//! The referee on trial: the original tests as submissions, in the whole tree, from the place that a submission takes.
//!
//! Whatever an original cannot do there, no submission can be asked to do: an instance whose original fails gets a flag.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agreement::{messages, normalized_again, sabotage_of};
use super::given::{from_root, is_code, is_place};
use super::ground::{Code, needed_by_pytest};
use super::original::{LARGEST_TEST, Original};
use crate::attempt::lab::Lab;
use crate::attempt::pool::Terms;
use crate::attempt::world::WorldSetting;
use crate::beneath::Folder;
use crate::error::Result;
use crate::family::gistify::{Evaluated, Reach, Sabotage, first_line, inject, reaches, sabotage};
use crate::python_source::decoded;
use crate::record::collected::Group;
use crate::record::entry::Stdin;
use crate::record::evidence::OnTrial;
use crate::record::flag::{
    DEPENDENCY_IMPORTS_REPOSITORY, NAMES_REPOSITORY_MODULE, PROBE_INSENSITIVE, READS_HIDDEN_CODE,
    READS_TREE_DATA, REFEREE_DIFFERS,
};
use crate::record::id::{InstanceId, hash_parts};
use crate::record::outcome::Compare;
use crate::record::task::pytest_settings;
use crate::referee::run::{Import, Lost, PLAIN, Seen, TextLab, failing};
use crate::runner::protocol::{ImportAttempt, Manner, TraceMode};
use crate::score::{Comparison, File, Masks, compare};
use crate::store::Cache;
use crate::store::memo::Memo;

/// Flags of instances that cannot be solved without breaking a rule.
pub(crate) const UNSOLVABLE: [&str; 4] =
    [NAMES_REPOSITORY_MODULE, DEPENDENCY_IMPORTS_REPOSITORY, REFEREE_DIFFERS, READS_HIDDEN_CODE];

/// Packages through which pytest itself imports tests and plugins.
const OF_PYTEST: [&str; 3] = ["_pytest", "pytest", "pluggy"];

/// What was found out about an instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checked {
    /// The original as a submission against what it showed in the build.
    /// None where the referee cannot read its file.
    pub(crate) comparison: Option<Comparison>,
    /// What the first cases say that differ.
    pub(crate) messages: Vec<String>,
    pub(crate) sabotage: Sabotage,
    pub(crate) reaches: Vec<Reach>,
    /// Imports of the repository by installed libraries.
    pub(crate) dependency_imports: Vec<ImportAttempt>,
    /// Why pytest cannot run without the code of the repository, of which it needs some itself.
    #[serde(default)]
    pub(crate) needed_by_pytest: Option<String>,
    /// Files of the tree that were opened, code and configuration of pytest aside.
    pub(crate) data_files: Vec<String>,
    /// `file::Class::function` of the definition, where that is another file.
    pub(crate) defined_in: Option<String>,
    /// Code of the tree that a command is given, or changes.
    #[serde(default)]
    pub(crate) hidden_code: Vec<String>,
    /// Whether it is a command, which has no test to plant a failure in.
    #[serde(default)]
    pub(crate) is_command: bool,
}

impl Checked {
    /// What the dataset says about the instance.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let all = [
            (NAMES_REPOSITORY_MODULE, !self.reaches.is_empty()),
            (
                DEPENDENCY_IMPORTS_REPOSITORY,
                !self.dependency_imports.is_empty() || self.needed_by_pytest.is_some(),
            ),
            (REFEREE_DIFFERS, !self.agrees()),
            (READS_TREE_DATA, !self.data_files.is_empty()),
            (READS_HIDDEN_CODE, !self.hidden_code.is_empty()),
            (PROBE_INSENSITIVE, self.sabotage != Sabotage::Fails && !self.is_command),
        ];
        all.into_iter().filter(|(_, holds)| *holds).map(|(flag, _)| flag).collect()
    }

    /// Whether the original shows what it showed in the build.
    pub(crate) fn agrees(&self) -> bool {
        self.comparison.as_ref().is_some_and(Comparison::agrees)
    }

    /// Why it has its flags, a line each.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for Reach { file, line, name, .. } in &self.reaches {
            lines.push(format!("{file}:{line} names {name}"));
        }
        for ImportAttempt { module, file, line, .. } in &self.dependency_imports {
            lines.push(format!("{file}:{line} imports {module}"));
        }
        lines.extend(self.needed_by_pytest.iter().map(|why| format!("without the repository, {why}")));
        lines.extend(self.hidden_code.iter().map(|path| format!("is given {path}, which is code")));
        lines.extend(self.messages.iter().cloned());
        if !self.data_files.is_empty() {
            lines.push(format!("opens {}", self.data_files.join(", ")));
        }
        lines
    }

    /// Whether a submission can be right without breaking a rule.
    pub(crate) fn is_solvable(&self) -> bool {
        !self.flags().iter().any(|flag| UNSOLVABLE.contains(flag))
    }
}

/// What was found out about the originals of one repository, kept in a journal.
pub(crate) struct SelfChecks {
    known: Memo<Checked>,
    /// How much had to agree decides too, and is no part of the folder's name.
    compare: Compare,
    /// Whether installed libraries import the repository in a way that no test can do without.
    is_set_up: bool,
    /// Whether pytest was tried without the code of the repository, and why it cannot run so.
    is_pytest_tried: bool,
    needed_by_pytest: Option<String>,
    /// Those that are commands, which run without pytest.
    commands: BTreeSet<InstanceId>,
}

/// What so many originals did without exception is of the set-up of the tests, and no property of one of them.
const ENOUGH: usize = 50;

/// Whether all of many originals have an import of the repository by an installed library in common: a plugin of pytest
/// that loads the project's settings, say. No other one can be solved either.
fn is_of_set_up<'a>(known: impl ExactSizeIterator<Item = &'a Checked>) -> bool {
    if known.len() < ENOUGH {
        return false;
    }
    let imports = known.map(|one| one.dependency_imports.iter().collect::<BTreeSet<_>>());
    imports.reduce(|all, one| &all & &one).is_some_and(|all| !all.is_empty())
}

/// Raised when the same original may be judged otherwise.
const VERSION: &str = "self-check-8";

impl SelfChecks {
    /// Opens the journal.
    ///
    /// # Errors
    /// IO errors.
    pub(crate) fn open(path: &Path, compare: Compare, commands: BTreeSet<InstanceId>) -> Result<Self> {
        let known: Memo<Checked> = Memo::open(path)?;
        let is_set_up = is_of_set_up(known.values());
        let needed_by_pytest = known.values().find_map(|one| one.needed_by_pytest.clone());
        Ok(SelfChecks { known, compare, is_set_up, is_pytest_tried: false, needed_by_pytest, commands })
    }

    fn get(&self, id: &InstanceId) -> Option<&Checked> {
        self.known.get(&self.key(id))
    }

    /// Whether an original was tried.
    pub(crate) fn has(&self, id: &InstanceId) -> bool {
        self.get(id).is_some()
    }

    /// Whether an instance can be solved without breaking a rule, as far as is known.
    pub(crate) fn is_solvable(&self, id: &InstanceId) -> bool {
        let is_refused = || self.needed_by_pytest.is_some() && !self.commands.contains(id);
        self.get(id).map_or_else(|| !self.is_set_up && !is_refused(), Checked::is_solvable)
    }

    /// What the dataset says about an instance.
    pub(crate) fn of(&self, id: &InstanceId) -> OnTrial {
        self.get(id).map_or_else(OnTrial::default, |checked| OnTrial {
            flags: checked.flags().into_iter().map(str::to_owned).collect(),
            data_files: checked.data_files.clone(),
            defined_in: checked.defined_in.clone(),
        })
    }

    /// Tries originals.
    ///
    /// # Errors
    /// Those of [`SelfCheck::check`].
    pub(crate) fn make(
        &mut self,
        (lab, cache): (&Lab, &Cache),
        file: &str,
        originals: &[Original<'_>],
        progress: &mut dyn FnMut(),
    ) -> Result<()> {
        if originals.is_empty() {
            return Ok(());
        }
        let code = Code::of(lab)?;
        if !self.is_pytest_tried {
            self.needed_by_pytest = needed_by_pytest(lab, cache, file)?;
            self.is_pytest_tried = true;
        }
        let needed_by_pytest = self.needed_by_pytest.as_deref();
        let found = SelfCheck { lab, needed_by_pytest, code: &code, file }.check(originals, progress)?;
        let keys: Vec<String> = originals.iter().map(|original| self.key(original.id)).collect();
        self.known.extend(keys.into_iter().zip(found))?;
        self.is_set_up = is_of_set_up(self.known.values());
        Ok(())
    }

    /// What the folder of attempts does not say.
    fn key(&self, id: &InstanceId) -> String {
        hash_parts(&[VERSION, id.as_str(), self.compare.as_str()])
    }
}

/// Tries originals of one repository.
pub(crate) struct SelfCheck<'a> {
    pub(crate) lab: &'a Lab,
    /// Why pytest cannot run without the code of the repository, which is nothing to a command.
    pub(crate) needed_by_pytest: Option<&'a str>,
    pub(crate) code: &'a Code,
    /// The place of a submission.
    pub(crate) file: &'a str,
}

impl SelfCheck<'_> {
    /// Checks all of them.
    ///
    /// # Errors
    /// IO errors, an interruption, and the harness's when it stays broken.
    pub(crate) fn check(
        &self,
        originals: &[Original<'_>],
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<Checked>> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let mut setting = self.lab.setting.clone();
        setting.world.probe = Some(self.file.to_owned());
        setting.world.watched = self.code.packages();
        setting.world.notes_files = true;
        let world = WorldSetting::base(&setting);
        let groups: Vec<Group> = originals.iter().map(Original::group).collect();
        let terms = Terms::default();
        let place = TextLab { lab: self.lab, world: &world, groups: &groups, terms: &terms, preload: &[] };
        let mut evaluated = Vec::new();
        for original in originals {
            evaluated.push(match &original.entry {
                Some(_) => (None, Vec::new()),
                None => self.evaluated(&tree, original)?,
            });
        }
        let (mut seen, mut sabotaged) = (BTreeMap::new(), BTreeMap::new());
        let on_trial = |at: usize, manner: Manner, shown: Seen| {
            if manner == PLAIN {
                progress();
                seen.insert(at, shown);
            } else {
                sabotaged.insert(at, sabotage_of(originals[at].golden, &shown.attempt.cases));
            }
        };
        let commands = (0..originals.len()).filter(|at| originals[*at].entry.is_some());
        let mut all: Vec<Import> = commands.map(|at| Import::of_command(at, &[PLAIN])).collect();
        all.extend(imports(originals, &groups, &evaluated));
        none_lost(place.run(all, TraceMode::Off, on_trial)?)?;
        let survives = |at: &usize| sabotaged.get(at) == Some(&Sabotage::Survives);
        let again = (0..originals.len()).filter(survives).filter_map(|at| {
            let text = sabotage(evaluated[at].0.as_ref()?)?;
            Some(Import::new(at, Arc::from(text), &[PLAIN]))
        });
        none_lost(place.run(again.collect(), TraceMode::Off, |at, _, shown| {
            sabotaged.insert(at, sabotage_of(originals[at].golden, &shown.attempt.cases));
        })?)?;
        let mut checked = Vec::new();
        for (at, (original, (_, reaches))) in originals.iter().zip(&evaluated).enumerate() {
            let Code { modules, sources } = self.code;
            let test_module = modules.module_of(original.file);
            let masks = Masks { modules, files: sources, test_module: &test_module };
            let mut one = Checked {
                comparison: None,
                messages: Vec::new(),
                sabotage: sabotaged.remove(&at).unwrap_or(Sabotage::NotTried),
                reaches: reaches.clone(),
                dependency_imports: Vec::new(),
                needed_by_pytest: self
                    .needed_by_pytest
                    .filter(|_| original.entry.is_none())
                    .map(str::to_owned),
                data_files: Vec::new(),
                defined_in: None,
                hidden_code: hidden_code(&tree, original)?,
                is_command: original.entry.is_some(),
            };
            if let Some(shown) = seen.remove(&at) {
                let Seen { attempt, reached, defined_in, .. } = shown;
                let data = reached.opened.into_iter().filter(|path| self.is_data(&tree, path));
                let golden = normalized_again(original.golden, &world.normalizer);
                let comparison = compare(&golden, &attempt.exit, &attempt.cases, &masks, self.lab.compare);
                one.messages = messages(&comparison, &attempt);
                one.comparison = Some(comparison);
                one.data_files = data.collect::<BTreeSet<String>>().into_iter().collect();
                one.dependency_imports = reached.imports;
                one.dependency_imports.retain(|import| self.is_of_library(import));
                one.defined_in = defined_in.filter(|place| is_source(self.code, place));
            }
            checked.push(one);
        }
        Ok(checked)
    }

    /// The original's file as a submission, and the modules that its test needs. Nothing is run of a file that cannot be
    /// read.
    fn evaluated(&self, tree: &Folder, original: &Original<'_>) -> Result<(Option<Evaluated>, Vec<Reach>)> {
        let bytes = tree.read_through_links(Path::new(original.file), LARGEST_TEST)?;
        let text = decoded(&bytes);
        let file = File { path: original.file, text: &text };
        let evaluated = inject(&text, file, &original.test, &self.code.modules).ok();
        let mut conftests = Vec::new();
        for (at, _) in original.file.rmatch_indices('/') {
            let path = format!("{}/conftest.py", &original.file[..at]);
            conftests.extend(self.code.text(tree, &path).map(|text| (path, text)));
        }
        conftests.extend(self.code.text(tree, "conftest.py").map(|text| ("conftest.py".to_owned(), text)));
        let mut files = vec![file];
        files.extend(conftests.iter().map(|(path, text)| File { path, text }));
        let reaches = reaches(&files, &original.test, &self.code.modules).unwrap_or_default();
        Ok((evaluated, reaches))
    }

    fn is_data(&self, tree: &Folder, path: &str) -> bool {
        pytest_settings().all(|name| name != path)
            && !self.code.sources.contains(path)
            && tree.has_file(Path::new(path))
    }

    /// Whether an installed package asked for the repository, pytest aside, without code of the repository that had it
    /// asked: such code is the submission's to write.
    fn is_of_library(&self, import: &ImportAttempt) -> bool {
        if import.on_behalf_of.is_some() {
            return false;
        }
        let Ok(inside) = Path::new(&import.file).strip_prefix(&self.lab.setting.places.venv) else {
            return false;
        };
        !inside.components().any(|part| OF_PYTEST.iter().any(|name| part.as_os_str() == *name))
    }
}

/// Each text once, with all of its originals: as they are, and with a test that fails.
fn imports(
    originals: &[Original<'_>],
    groups: &[Group],
    evaluated: &[(Option<Evaluated>, Vec<Reach>)],
) -> Vec<Import> {
    let mut by_text: BTreeMap<(&str, &str), Import> = BTreeMap::new();
    for (at, (evaluated, _)) in evaluated.iter().enumerate() {
        let Some(evaluated) = evaluated else { continue };
        let manners: Vec<Manner> = [PLAIN].into_iter().chain(first_line(evaluated).map(failing)).collect();
        let took: f64 = originals[at].golden.iter().map(|case| case.duration_ms).sum();
        let import = Import::new(at, Arc::from(evaluated.text.as_str()), &manners).each_takes(took);
        match by_text.entry((&groups[at].file, &evaluated.text)) {
            Entry::Vacant(place) => drop(place.insert(import)),
            Entry::Occupied(mut known) => known.get_mut().join(import),
        }
    }
    by_text.into_values().collect()
}

/// Code of the tree that a command is given by its name, by that of its folder, or as standard input, or that it changes.
fn hidden_code(tree: &Folder, original: &Original<'_>) -> Result<Vec<String>> {
    let Some(entry) = &original.entry else { return Ok(Vec::new()) };
    let is_there = |path: &String| tree.has_file(Path::new(path));
    let files = tree.walk()?;
    let code: BTreeSet<String> = files
        .iter()
        .filter_map(|one| one.path.to_str())
        .filter(|path| !path.starts_with(".git/") && is_code(path))
        .map(str::to_owned)
        .collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    for argument in entry.command.arguments() {
        let value = argument.split_once('=').map_or(argument.as_str(), |(_, value)| value);
        // What the command says of itself, and no place, unless it names the tree as a whole.
        if value.is_empty() {
            continue;
        }
        let Some(path) = from_root(entry, value).filter(|path| is_place(tree, path)) else { continue };
        let below = format!("{path}/");
        let is_within = |one: &&String| **one == path || path.is_empty() || one.starts_with(&below);
        found.extend(code.iter().find(is_within).cloned());
    }
    if let Some(Stdin::File(path)) = &entry.stdin {
        found.extend(Some(path.clone()).filter(|path| is_code(path)));
    }
    let changed = original.golden.iter().filter_map(|case| case.command.as_ref()).flat_map(|it| &it.files);
    found.extend(changed.map(|file| file.path.clone()).filter(|path| is_code(path) && is_there(path)));
    Ok(found.into_iter().collect())
}

fn is_source(code: &Code, place: &str) -> bool {
    place.split_once("::").is_some_and(|(file, _)| code.sources.contains(file))
}

/// A dataset says nothing about an original that was lost.
fn none_lost(lost: Lost) -> Result<()> {
    lost.into_values().next().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn importing(lines: &[u32]) -> Checked {
        let import = |line: &u32| ImportAttempt {
            module: "shop.settings".to_owned(),
            file: "/opt/venv/plugin.py".to_owned(),
            line: *line,
            on_behalf_of: None,
        };
        Checked {
            comparison: None,
            messages: Vec::new(),
            sabotage: Sabotage::NotTried,
            reaches: Vec::new(),
            dependency_imports: lines.iter().map(import).collect(),
            needed_by_pytest: None,
            data_files: Vec::new(),
            defined_in: None,
            hidden_code: Vec::new(),
            is_command: false,
        }
    }

    #[test]
    fn an_import_that_every_one_of_many_originals_makes_is_of_the_set_up() {
        let mut known = vec![importing(&[7, 9]); ENOUGH - 1];
        assert!(!is_of_set_up(known.iter()), "too few");
        known.push(importing(&[9]));
        assert!(is_of_set_up(known.iter()));
        known.push(importing(&[7]));
        assert!(!is_of_set_up(known.iter()), "none in common");
        known[0] = importing(&[]);
        known[0].needed_by_pytest = Some("pytest cannot run: no shop".to_owned());
        assert!(!known[0].is_solvable() && known[0].evidence()[0].contains("no shop"));
        assert!(!is_of_set_up(std::iter::empty::<&Checked>().collect::<Vec<_>>().into_iter()));
    }
}
