//! How strong tests are: the code that they run is changed in one place at a time, and their cases are run.
//!
//! A mutant that no case notices is a wrong solution that the test accepts. docs/difficulty.md has the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rayon::prelude::*;

use super::variants::Count;
use crate::attempt::lab::Lab;
use crate::beneath::Folder;
use crate::error::{Fault, Result};
use crate::record::collected::Group;
use crate::record::id::InstanceId;
use crate::record::strength::Strength;
use crate::record::trace::FunctionCalls;
use crate::referee::texts::{Runs, Shown, TargetLab, byte_code_of};
use crate::score::mutants::{Mutant, REMOVED, mutants};
use crate::score::text_of;
use crate::store::Cache;

/// Longest run of a group with the original: a test that takes longer is not measured.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// Longest run of a group with a mutant: what takes longer is noticed. So much more than the original may take, that a busy machine
/// makes no difference.
const LONGEST_WITH_MUTANT: Duration = Duration::from_secs(30);
/// Longest file that is changed, in bytes.
const LONGEST_CHANGED: u64 = 1 << 20;

/// An instance whose strength is asked for.
pub(crate) struct Tested<'a> {
    pub(crate) id: &'a InstanceId,
    pub(crate) group: &'a Group,
    /// Cases that pass on the original.
    pub(crate) passing: Vec<String>,
    /// Functions of the tree that they call.
    pub(crate) functions: Vec<&'a FunctionCalls>,
}

/// Where mutants run, and how they are chosen.
pub(crate) struct Mutations<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) cache: &'a Cache,
    pub(crate) runs: &'a Runs,
    pub(crate) seed: u64,
    /// Mutants of an instance at most.
    pub(crate) most: u32,
}

/// A mutant and the instances that are asked about it, by their place.
struct Asked<'a> {
    mutant: &'a Mutant,
    by: Vec<usize>,
}

/// What one instance shows with a mutant.
struct Noticed {
    instance: usize,
    operator: &'static str,
    words: String,
    survives: bool,
}

impl Mutations<'_> {
    /// The strength of each instance that can be measured: whose cases pass as well with the original put in the places of
    /// its own files. `step` is called for each mutant.
    ///
    /// # Errors
    /// IO errors and an interruption.
    pub(crate) fn strength_of(
        &self,
        tested: &[Tested<'_>],
        step: &(dyn Fn(Count) + Sync),
    ) -> Result<BTreeMap<InstanceId, Strength>> {
        let folder = Folder::open(&self.lab.built.tree)?;
        let entries = folder.walk()?;
        let paths: Vec<&str> = entries.iter().filter_map(|entry| entry.path.to_str()).collect();
        let files = self.files(&folder, tested)?;
        let plan = plan(&files, tested, self.most as usize);
        step(Count::More(plan.values().map(Vec::len).sum::<usize>() as u64));
        let hurried = |most| Lab { timeouts: self.lab.timeouts.at_most(most), ..self.lab.clone() };
        let (with_original, with_mutants) = (hurried(LONGEST_RUN), hurried(LONGEST_WITH_MUTANT));
        let of_file = |(file, asked): (&&str, &Vec<Asked<'_>>)| {
            let byte_code = byte_code_of(file, paths.iter().copied());
            let place = TargetLab {
                lab: &with_mutants,
                cache: self.cache,
                target: file,
                byte_code: &byte_code,
                waiting: None,
            };
            let control = TargetLab { lab: &with_original, ..place };
            let done = self.of_file((control, place), (&files[*file].text, asked), tested, step);
            let left = self.runs.leave(place);
            done.and_then(|done| left.map(|()| done))
        };
        let mut found: Vec<Noticed> = Vec::new();
        let mut unable = BTreeSet::new();
        for (noticed, not) in plan.par_iter().map(of_file).collect::<Result<Vec<_>>>()? {
            found.extend(noticed);
            unable.extend(not);
        }
        let able = (0..tested.len()).filter(|at| !unable.contains(at));
        let strength = able.filter_map(|at| {
            Some((tested[at].id.clone(), summed(found.iter().filter(|one| one.instance == at))?))
        });
        Ok(strength.collect())
    }

    /// The files that instances call functions of, with what can be changed in them.
    fn files<'a>(&self, folder: &Folder, tested: &'a [Tested<'_>]) -> Result<BTreeMap<&'a str, Changeable>> {
        let lines = ran(tested.iter().flat_map(|one| &one.functions));
        let read = |(file, lines): (&'a str, BTreeSet<u32>)| {
            let bytes = match folder.read_through_links(Path::new(file), LONGEST_CHANGED) {
                Ok(bytes) => bytes,
                // Too long, a link that leaves the tree, or gone meanwhile.
                Err(error) if error.fault() == Fault::Repository => return Ok(None),
                Err(error) => return Err(error),
            };
            let Ok(text) = text_of(&bytes).map(str::to_owned) else { return Ok(None) };
            let mutants = mutants(&text, (self.seed, file), &lines);
            Ok(Some((file, Changeable { text, mutants })))
        };
        lines.into_iter().filter_map(|one| read(one).transpose()).collect()
    }

    /// What instances show with the mutants of one file, and those that are not what they are with the original in its place.
    fn of_file(
        &self,
        (control, place): (TargetLab<'_>, TargetLab<'_>),
        (original, asked): (&str, &[Asked<'_>]),
        tested: &[Tested<'_>],
        step: &(dyn Fn(Count) + Sync),
    ) -> Result<(Vec<Noticed>, BTreeSet<usize>)> {
        let everybody: BTreeSet<usize> = asked.iter().flat_map(|one| one.by.iter().copied()).collect();
        let shown = |place: TargetLab<'_>, text: &str, by: &[usize]| {
            let groups: Vec<Group> = by.iter().map(|at| tested[*at].group.clone()).collect();
            self.runs.shown(place, text, &groups, 0)
        };
        let passes =
            |shown: &Shown, at: usize| tested[at].passing.iter().all(|case_id| shown.passes(case_id));
        let all: Vec<usize> = everybody.iter().copied().collect();
        let control = shown(control, original, &all)?;
        let (able, unable): (BTreeSet<usize>, BTreeSet<usize>) =
            everybody.into_iter().partition(|at| passes(&control, *at));
        let mut found = Vec::new();
        for Asked { mutant, by } in asked {
            step(Count::Done);
            let by: Vec<usize> = by.iter().copied().filter(|at| able.contains(at)).collect();
            let Some(text) = mutant.text(original).filter(|_| !by.is_empty()) else { continue };
            let shown = shown(place, &text, &by)?;
            // With the original pytest begins: where it does not with a mutant, everybody notices. A fault of the machine says nothing.
            if shown.broken.is_some() && !shown.refused {
                continue;
            }
            let words = format!("{}:{}", place.target, mutant.words(original));
            found.extend(by.into_iter().map(|instance| Noticed {
                instance,
                operator: mutant.operator,
                words: words.clone(),
                survives: passes(&shown, instance),
            }));
        }
        Ok((found, unable))
    }
}

/// A file and its mutants, by rank.
struct Changeable {
    text: String,
    mutants: Vec<Mutant>,
}

/// Lines of functions that ran, by file; the first line of a function where they are not known.
fn ran<'a>(functions: impl Iterator<Item = &'a &'a FunctionCalls>) -> BTreeMap<&'a str, BTreeSet<u32>> {
    let mut ran: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for function in functions {
        let of_file = ran.entry(&function.file).or_default();
        match &function.lines {
            Some(lines) => of_file.extend(lines),
            None => drop(of_file.insert(function.line)),
        }
    }
    ran
}

/// The mutants of each file with the instances that are asked about them: of each instance the first ones by rank, half of
/// them statements that are taken away, as far as there are so many of both.
fn plan<'a>(
    files: &'a BTreeMap<&'a str, Changeable>,
    tested: &[Tested<'a>],
    most: usize,
) -> BTreeMap<&'a str, Vec<Asked<'a>>> {
    let mut by_rank: BTreeMap<&str, (&str, Asked<'_>)> = BTreeMap::new();
    for (at, one) in tested.iter().enumerate() {
        let mut all: Vec<(&'a str, &'a Mutant)> = Vec::new();
        for (file, lines) in ran(one.functions.iter()) {
            let Some((name, file)) = files.get_key_value(file) else { continue };
            let runs = |one: &&Mutant| lines.contains(&one.at) || lines.contains(&one.function);
            all.extend(file.mutants.iter().filter(runs).map(|mutant| (*name, mutant)));
        }
        all.sort_by(|(_, one), (_, other)| one.rank.cmp(&other.rank));
        let (removed, small): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, one)| one.operator == REMOVED);
        let is_python = |(file, one): &(&'a str, &'a Mutant)| one.text(&files[file].text).is_some();
        let small: Vec<_> = small.into_iter().filter(is_python).take(most).collect();
        let of_removed = removed.len().min((most / 2).max(most.saturating_sub(small.len())));
        let chosen = removed.into_iter().take(of_removed).chain(small.into_iter().take(most - of_removed));
        for (file, mutant) in chosen {
            let asked = || (file, Asked { mutant, by: Vec::new() });
            by_rank.entry(&mutant.rank).or_insert_with(asked).1.by.push(at);
        }
    }
    let mut plan: BTreeMap<&str, Vec<Asked<'_>>> = BTreeMap::new();
    for (file, asked) in by_rank.into_values() {
        plan.entry(file).or_default().push(asked);
    }
    plan
}

/// The columns of an instance; none where no mutant of it could be run.
fn summed<'a>(found: impl Iterator<Item = &'a Noticed>) -> Option<Strength> {
    let found: Vec<&Noticed> = found.collect();
    let share = |is_asked: &dyn Fn(&Noticed) -> bool| {
        let asked: Vec<&&Noticed> = found.iter().filter(|one| is_asked(one)).collect();
        let noticed = asked.iter().filter(|one| !one.survives).count();
        (!asked.is_empty()).then(|| noticed as f64 / asked.len() as f64)
    };
    let mutation_score = share(&|_| true)?;
    let mut surviving: Vec<String> =
        found.iter().filter(|one| one.survives).map(|one| one.words.clone()).collect();
    surviving.sort();
    Some(Strength {
        mutants: u32::try_from(found.len()).ok(),
        mutation_score: Some(mutation_score),
        needed_statements: share(&|one| one.operator == REMOVED),
        surviving_mutants: Some(surviving),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::id::RepoSlug;

    const TEXT: &str = "def f(a):\n    b = a + 1\n    g(b)\n    return b\n\n\ndef g(a):\n    return a == 2\n";

    fn function(file: &str, line: u32, lines: Option<&[u32]>) -> FunctionCalls {
        FunctionCalls {
            file: file.into(),
            function: "f".into(),
            line,
            calls: 1,
            order: 0,
            lines: lines.map(<[u32]>::to_vec),
            callers: None,
        }
    }

    /// Places of instances by the words of the mutants that they are asked about.
    fn planned(functions: &[&[FunctionCalls]], most: usize) -> BTreeMap<String, Vec<usize>> {
        let id = InstanceId::derive(&RepoSlug::new("a/b").unwrap(), "c", "t.py::t");
        let group = crate::referee::recube::group_of("t.py::t");
        let tested: Vec<Tested<'_>> = functions
            .iter()
            .map(|functions| Tested {
                id: &id,
                group: &group,
                passing: Vec::new(),
                functions: functions.iter().collect(),
            })
            .collect();
        let all: BTreeSet<u32> = (1..10).collect();
        let file = |file| (file, Changeable { text: TEXT.into(), mutants: mutants(TEXT, (0, file), &all) });
        let files = BTreeMap::from(["a.py", "b.py"].map(file));
        let plan = plan(&files, &tested, most);
        let words = |(file, all): (&str, Vec<Asked<'_>>)| {
            all.into_iter()
                .map(|asked| (format!("{file}:{}", asked.mutant.words(TEXT)), asked.by))
                .collect::<Vec<_>>()
        };
        plan.into_iter().flat_map(words).collect()
    }

    #[test]
    fn instances_are_asked_about_what_they_run_and_share_what_is_the_same() {
        let [f, g] = [function("a.py", 1, Some(&[2, 3, 4])), function("b.py", 7, None)];
        let found = planned(&[std::slice::from_ref(&f), &[f.clone(), g], &[]], 99);
        let of = |at: usize| {
            let asked = found.iter().filter(|(_, by)| by.contains(&at));
            asked.map(|(words, _)| words.as_str()).collect::<Vec<_>>()
        };
        let of_f = [
            "a.py:2:11 sum + → -",
            "a.py:2:13 integer 1 → 2",
            "a.py:2:5 statement taken away",
            "a.py:3:5 statement taken away",
            "a.py:4:12 return None",
        ];
        let of_g = ["b.py:8:12 return None", "b.py:8:14 comparison == → !=", "b.py:8:17 integer 2 → 3"];
        assert_eq!(of(0), of_f);
        assert_eq!(of(1), [&of_f[..], &of_g].concat());
        assert_eq!(of(2), [""; 0]);
    }

    #[test]
    fn half_are_statements_as_far_as_there_are_so_many() {
        let f = function("a.py", 1, Some(&[2, 3, 4]));
        for (most, statements) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (9, 2)] {
            let found = planned(&[std::slice::from_ref(&f)], most);
            let taken = found.keys().filter(|words| words.contains("statement")).count();
            assert_eq!((found.len(), taken), (most.min(5), statements), "{most}");
        }
        let two = function("a.py", 1, Some(&[3, 4]));
        let found = planned(&[&[two]], 2);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn columns_count_what_survives() {
        let noticed = |operator, noticed: bool, words: &str| Noticed {
            instance: 0,
            operator,
            words: words.into(),
            survives: !noticed,
        };
        let all = [
            noticed(REMOVED, true, "a"),
            noticed(REMOVED, false, "c"),
            noticed("sum", false, "b"),
            noticed("sum", true, "d"),
            noticed("sum", true, "e"),
        ];
        let strength = summed(all.iter()).unwrap();
        assert_eq!((strength.mutants, strength.mutation_score), (Some(5), Some(0.6)));
        assert_eq!(strength.needed_statements, Some(0.5));
        assert_eq!(strength.surviving_mutants, Some(vec!["b".into(), "c".into()]));
        assert_eq!(summed([].iter()), None);
        assert_eq!(summed(all[2..].iter()).unwrap().needed_statements, None);
    }
}
