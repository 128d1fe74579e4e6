//! What an instance has to pass before it is published: with the original its cases pass, with the mask they do not, and
//! they notice most bodies.

use std::collections::BTreeMap;

use super::{Place, Runs, Shown};
use crate::error::{Error, Result};
use crate::family::recube::candidates::{JudgingGroup, Target};
use crate::family::recube::mask::{Cut, mask};
use crate::record::collected::Group;
use crate::record::recube::{Bounds, InstanceCase, TargetCause};

/// Flag: the cases notice fewer than half of the bodies.
const BODIES_UNNOTICED: &str = "bodies-unnoticed";
/// Groups that are tried first where they call the function whose body is masked.
const TRIED_FIRST: usize = 2;

/// A target that is put to its gates.
pub(crate) struct Candidate<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) original: &'a str,
    pub(crate) target: &'a Target,
    /// Chosen groups by ID, and those of their cases that passed.
    pub(crate) groups: &'a BTreeMap<String, (Group, Vec<String>)>,
    pub(crate) bounds: &'a Bounds,
}

/// What is known after the gates.
pub(crate) struct Gated {
    pub(crate) cases: Vec<InstanceCase>,
    pub(crate) noticed_functions: u64,
    /// Functions with a body that all cases pass without.
    pub(crate) unnoticed: Vec<String>,
    pub(crate) flags: Vec<String>,
}

/// Why it is not published, with its evidence.
pub(crate) type Refused = (TargetCause, String);

impl Candidate<'_> {
    /// Runs all gates.
    ///
    /// # Errors
    /// IO errors, an interruption; a mask that is not sound, which is a bug.
    pub(crate) fn gate(&self, runs: &mut Runs) -> Result<std::result::Result<Gated, Refused>> {
        let all: Vec<Group> = self.chosen().map(|(_, group, _)| group.clone()).collect();
        let original = runs.shown(self.place, self.original.as_bytes(), &all, 0)?;
        if let Some(case) = self.chosen().flat_map(|(.., cases)| cases).find(|case| !original.passes(case)) {
            let differs = || format!("{case} does not pass with the original, handed in");
            return Ok(Err((TargetCause::RefereeDiffers, original.broken.clone().unwrap_or_else(differs))));
        }
        let mut gates = Vec::new();
        for (gate, cut) in [("masked", Cut::All), ("imports-kept", Cut::Bodies)] {
            gates.push((gate, runs.shown(self.place, self.masked(cut)?.as_bytes(), &all, 0)?));
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
        let (mut noticed, mut unnoticed) = (0, Vec::new());
        for (at, function) in self.target.masked.functions.iter().enumerate() {
            if function.is_trivial {
                continue;
            }
            let text = self.masked(Cut::Body(at))?;
            if self.notices(&text, function.line, (&left, &cases), runs)? {
                noticed += 1;
            } else {
                unnoticed.push(function.name.clone());
            }
        }
        let bodies = noticed + unnoticed.len() as u64;
        let is_unnoticed = 2 * noticed < bodies;
        if is_unnoticed && self.bounds.require_noticed {
            let why = format!("the cases notice {noticed} of {bodies} bodies");
            return Ok(Err((TargetCause::BodiesUnnoticed, why)));
        }
        let flags = is_unnoticed.then(|| BODIES_UNNOTICED.to_owned()).into_iter().collect();
        Ok(Ok(Gated { cases, noticed_functions: noticed, unnoticed, flags }))
    }

    fn masked(&self, cut: Cut) -> Result<String> {
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
                kind: judging.reason.kind(),
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
        runs: &mut Runs,
    ) -> Result<bool> {
        let mut order = groups.to_vec();
        order.sort_by_key(|(judging, _)| !judging.called.contains(&line));
        let (first, rest) = order.split_at(order.len().min(TRIED_FIRST));
        for part in [first, rest].into_iter().filter(|part| !part.is_empty()) {
            let part: Vec<Group> = part.iter().map(|(_, group)| (*group).clone()).collect();
            let shown = runs.shown(self.place, text.as_bytes(), &part, 0)?;
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
