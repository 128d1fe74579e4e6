//! What an instance has to pass before it is published: with the original its cases pass, with the mask they do not, and
//! they notice most bodies.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, OrWhy, Result};
use crate::family::recube::candidates::{JudgingGroup, Target};
use crate::family::recube::mask::{Cut, Function, mask};
use crate::record::collected::Group;
use crate::record::recube::{Bounds, InstanceCase, TargetCause};
use crate::referee::texts::{Runs, Shown, TargetLab};
use crate::score::mutants::{REMOVED, mutants};

/// Groups that are tried first where they call the function whose body is masked.
const TRIED_FIRST: usize = 2;

/// A target that is put to its gates.
pub(crate) struct Candidate<'a> {
    pub(crate) place: TargetLab<'a>,
    pub(crate) original: &'a str,
    pub(crate) target: &'a Target,
    /// Chosen groups by ID, and those of their cases that passed.
    pub(crate) groups: &'a BTreeMap<String, (Group, Vec<String>)>,
    pub(crate) bounds: &'a Bounds,
    /// By which small mutants are chosen.
    pub(crate) seed: u64,
}

/// What is known after the gates.
pub(crate) struct Gated {
    pub(crate) cases: Vec<InstanceCase>,
    pub(crate) noticed_functions: u64,
    /// Functions with a body that all cases pass without.
    pub(crate) unnoticed: Vec<String>,
    /// Small mutants that the cases notice, of all that were made.
    pub(crate) mutants: (u64, u64),
}

/// Why it is not published, with its evidence.
pub(crate) type Refused = (TargetCause, String);

impl Candidate<'_> {
    /// Runs all gates.
    ///
    /// # Errors
    /// IO errors, an interruption; a mask that is not sound, which is a bug.
    pub(crate) fn gate(&self, runs: &Runs) -> Result<OrWhy<Gated, Refused>> {
        let all: Vec<Group> = self.chosen().map(|(_, group, _)| group.clone()).collect();
        let original = runs.shown(self.place, self.original, &all, 0)?;
        if let Some(case) = self.chosen().flat_map(|(.., cases)| cases).find(|case| !original.passes(case)) {
            let differs = || format!("{case} does not pass with the original, handed in");
            return Ok(Err((TargetCause::RefereeDiffers, original.broken.clone().unwrap_or_else(differs))));
        }
        let mut gates = Vec::new();
        for (gate, cut) in [("masked", Cut::All), ("imports-kept", Cut::Bodies)] {
            gates.push((gate, runs.shown(self.place, &self.masked(cut)?, &all, 0)?));
        }
        let cases = self.cases(&gates);
        let is_left =
            |group: &str| cases.iter().any(|case| case.group_id == group && case.left_out.is_none());
        let left = self.chosen().filter(|(judging, ..)| is_left(&judging.group_id));
        let left: Vec<(&JudgingGroup, &Group)> = left.map(|(judging, group, _)| (judging, group)).collect();
        if (left.len() as u64) < u64::from(self.bounds.min_groups) {
            let why = format!("{} of {} groups have a case that needs the bodies", left.len(), all.len());
            return Ok(Err((TargetCause::MaskSurvives, why)));
        }
        let missed = self.missed_together((&left, &cases), runs)?;
        let (mut noticed, mut unnoticed) = (0, Vec::new());
        for (at, function) in self.bodies() {
            let is_noticed = missed.contains(&at) || {
                let text = self.masked(Cut::These(&BTreeSet::from([at])))?;
                self.notices(&text, function.line, (&left, &cases), runs)?
            };
            if is_noticed {
                noticed += 1;
            } else if !unnoticed.contains(&function.name) {
                // The setter of a property has the name of its getter.
                unnoticed.push(function.name.clone());
            }
        }
        let bodies = self.bodies().count() as u64;
        if 2 * noticed < bodies && self.bounds.require_noticed {
            let why = format!("the cases notice {noticed} of {bodies} bodies");
            return Ok(Err((TargetCause::BodiesUnnoticed, why)));
        }
        let mutants = self.mutants((&left, &cases), runs)?;
        Ok(Ok(Gated { cases, noticed_functions: noticed, unnoticed, mutants }))
    }

    /// How many small mutants some case does not pass with, of all that were made.
    fn mutants(
        &self,
        (groups, cases): (&[(&JudgingGroup, &Group)], &[InstanceCase]),
        runs: &Runs,
    ) -> Result<(u64, u64)> {
        let lines: BTreeSet<u32> = groups.iter().flat_map(|(judging, _)| &judging.lines).copied().collect();
        let most = self.bounds.mutants as usize;
        let made = mutants(self.original, (self.seed, self.place.target), &lines);
        let small = made.iter().filter(|one| one.operator != REMOVED);
        let made: Vec<(String, u32)> =
            small.filter_map(|one| Some((one.text(self.original)?, one.function))).take(most).collect();
        let mut noticed = 0;
        for (text, function) in &made {
            noticed += u64::from(self.notices(text, *function, (groups, cases), runs)?);
        }
        Ok((noticed, made.len() as u64))
    }

    /// The functions with a body, by their places.
    fn bodies(&self) -> impl Iterator<Item = (usize, &Function)> {
        self.target.masked.functions.iter().enumerate().filter(|(_, function)| !function.is_trivial)
    }

    /// Bodies that are noticed when several are masked in one run, where a group calls one of them and none of the others. A run
    /// in which such a group is not collected says nothing: then a body is needed for an import.
    fn missed_together(
        &self,
        (groups, cases): (&[(&JudgingGroup, &Group)], &[InstanceCase]),
        runs: &Runs,
    ) -> Result<BTreeSet<usize>> {
        let bodies: Vec<(usize, u32)> = self.bodies().map(|(at, function)| (at, function.line)).collect();
        let called: Vec<&BTreeSet<u32>> = groups.iter().map(|(judging, _)| &judging.called).collect();
        let mut missed = BTreeSet::new();
        for part in apart(&bodies, &called).into_iter().filter(|part| part.len() > 1) {
            let text = self.masked(Cut::These(&part.keys().copied().collect()))?;
            let asked: BTreeSet<usize> = part.values().copied().collect();
            let asked: Vec<Group> = asked.into_iter().map(|at| groups[at].1.clone()).collect();
            let shown = runs.shown(self.place, &text, &asked, 0)?;
            let of_group = |at: usize| {
                let id = &groups[at].0.group_id;
                cases.iter().filter(move |case| case.left_out.is_none() && case.group_id == *id)
            };
            let is_collected =
                |at: &usize| of_group(*at).any(|case| shown.outcomes.contains_key(&case.case_id));
            if part.values().all(is_collected) {
                let fails = |at: usize| of_group(at).any(|case| !shown.passes(&case.case_id));
                missed.extend(part.into_iter().filter(|(_, at)| fails(*at)).map(|(body, _)| body));
            }
        }
        Ok(missed)
    }

    fn masked(&self, cut: Cut<'_>) -> Result<String> {
        mask(self.original, cut)
            .map(|masked| masked.text)
            .map_err(|why| Error::internal(format!("{} cannot be masked: {why:?}", self.place.target)))
    }

    /// The chosen groups with their cases, in the order in which they were chosen.
    fn chosen(&self) -> impl Iterator<Item = (&JudgingGroup, &Group, &[String])> {
        self.target.groups.iter().filter_map(|one| {
            let (group, cases) = self.groups.get(&one.group_id)?;
            Some((one, group, cases.as_slice()))
        })
    }

    /// Every case, with the first gate that it passed.
    fn cases(&self, gates: &[(&str, Shown)]) -> Vec<InstanceCase> {
        let gate = |case: &str| gates.iter().find(|(_, shown)| shown.passes(case)).map(|(gate, _)| *gate);
        let of_group = |(judging, _, cases): (&JudgingGroup, &Group, &[String])| {
            let case = |case_id: &String| InstanceCase {
                group_id: judging.group_id.clone(),
                case_id: case_id.clone(),
                kind: judging.kind,
                reason: judging.reason,
                way: judging.way,
                left_out: gate(case_id).map(str::to_owned),
            };
            cases.iter().map(case).collect::<Vec<_>>()
        };
        self.chosen().flat_map(of_group).collect()
    }

    /// Whether some case does not pass with a text in which the body of the function at a line is masked. Groups that call
    /// it are asked first.
    fn notices(
        &self,
        text: &str,
        line: u32,
        (groups, cases): (&[(&JudgingGroup, &Group)], &[InstanceCase]),
        runs: &Runs,
    ) -> Result<bool> {
        let mut order = groups.to_vec();
        order.sort_by_key(|(judging, _)| !judging.called.contains(&line));
        let (first, rest) = order.split_at(order.len().min(TRIED_FIRST));
        for part in [first, rest].into_iter().filter(|part| !part.is_empty()) {
            let part: Vec<Group> = part.iter().map(|(_, group)| (*group).clone()).collect();
            let shown = runs.shown(self.place, text, &part, 0)?;
            let is_asked = |case: &&InstanceCase| {
                case.left_out.is_none() && part.iter().any(|group| group.group_id == case.group_id)
            };
            if cases.iter().filter(is_asked).any(|case| !shown.passes(&case.case_id)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Parts of the bodies, given by number and line, each with a group that calls it and no other body of its part. Bodies that
/// no group calls are in none. `called` are the lines of the functions that each group calls.
fn apart(bodies: &[(usize, u32)], called: &[&BTreeSet<u32>]) -> Vec<BTreeMap<usize, usize>> {
    let calls = |group: usize| bodies.iter().filter(|(_, line)| called[group].contains(line)).count();
    let mut order: Vec<usize> = (0..called.len()).collect();
    order.sort_by_cached_key(|group| (calls(*group), *group));
    // Of each part: its bodies with their groups, the lines of these bodies, and all lines that these groups call.
    type Part = (BTreeMap<usize, usize>, BTreeSet<u32>, BTreeSet<u32>);
    let mut parts: Vec<Part> = Vec::new();
    for (body, line) in bodies {
        let mut groups = order.iter().copied().filter(|group| called[*group].contains(line)).peekable();
        let Some(first) = groups.peek().copied() else { continue };
        let groups: Vec<usize> = groups.collect();
        let place = parts.iter().enumerate().filter(|(_, (.., taken))| !taken.contains(line)).find_map(
            |(at, (_, lines, _))| {
                Some((at, groups.iter().copied().find(|group| called[*group].is_disjoint(lines))?))
            },
        );
        let (at, group) = place.unwrap_or((parts.len(), first));
        if at == parts.len() {
            parts.push(<_>::default());
        }
        let (part, lines, taken) = &mut parts[at];
        part.insert(*body, group);
        lines.insert(*line);
        taken.extend(called[group]);
    }
    parts.into_iter().map(|(part, ..)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_masked_together_where_a_group_calls_one_alone() {
        let calls = [[10, 20].into(), [20].into(), [10].into(), [30, 10].into(), [50].into()];
        let called: Vec<&BTreeSet<u32>> = calls.iter().collect();
        let bodies = [(0, 10), (1, 20), (2, 30), (3, 40), (4, 50)];
        let parts = apart(&bodies, &called);
        assert_eq!(parts, [BTreeMap::from([(0, 2), (1, 1), (4, 4)]), BTreeMap::from([(2, 3)])]);
        for part in parts {
            for (body, group) in &part {
                let others = part.keys().filter(|other| *other != body);
                let line = |body: &usize| bodies[*body].1;
                assert!(calls[*group].contains(&line(body)));
                assert!(others.map(line).all(|other| !calls[*group].contains(&other)));
            }
        }
        assert_eq!(apart(&[(0, 1)], &[]), []);
    }
}
