//! Which groups judge an instance.

use std::collections::{BTreeMap, BTreeSet};

/// How a group exercises a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exercise {
    /// Lines of the target that ran in functions while the cases of the group ran; functions where lines are not known.
    pub lines: BTreeSet<u32>,
    /// Calls into the target.
    pub into: u64,
    /// Calls into the tree, tests aside.
    pub package: u64,
    pub cases: u32,
    /// Whether the group starts threads, or its traces disagree about the target.
    pub is_unsteady: bool,
}

impl Exercise {
    /// Orders by what share of the calls go into the target, the larger share first.
    fn by_focus(&self, other: &Self) -> std::cmp::Ordering {
        let parts = |one: &Self| (u128::from(one.into), u128::from(one.package.max(1)));
        let ((own, own_whole), (others, others_whole)) = (parts(self), parts(other));
        (others * own_whole).cmp(&(own * others_whole))
    }
}

/// The IDs of the groups of an instance, in the order in which they are chosen.
///
/// First, as long as one adds lines of the target: the one that adds most. Then by focus, up to `most` in all (0: no limit).
/// Groups that are not steady come last in both.
pub fn choose<'a>(groups: &BTreeMap<&'a str, Exercise>, most: usize) -> Vec<&'a str> {
    let mut left: Vec<(&'a str, &Exercise)> = groups.iter().map(|(id, one)| (*id, one)).collect();
    left.sort_by(|(id, one), (other_id, other)| {
        let steadiness = one.is_unsteady.cmp(&other.is_unsteady);
        steadiness.then(one.by_focus(other)).then(one.cases.cmp(&other.cases)).then(id.cmp(other_id))
    });
    // What a group adds never grows: what it added before says whether it has to be counted again.
    let mut left: Vec<(&'a str, &Exercise, usize)> =
        left.into_iter().map(|(id, one)| (id, one, one.lines.len())).collect();
    let (mut covered, mut chosen) = (BTreeSet::new(), Vec::new());
    while let Some(best) = best(&mut left, &covered) {
        let (id, exercise, _) = left.remove(best);
        covered.extend(exercise.lines.iter().copied());
        chosen.push(id);
    }
    let room = if most == 0 { left.len() } else { most.saturating_sub(chosen.len()) };
    chosen.extend(left.into_iter().take(room).map(|(id, ..)| id));
    chosen
}

/// The place of the group that adds most lines, the first of equal ones; none where no group adds any. Groups that are not
/// steady are asked where no steady one adds a line. The numbers are the most that each can add.
fn best(left: &mut [(&str, &Exercise, usize)], covered: &BTreeSet<u32>) -> Option<usize> {
    let steady = left.partition_point(|(_, one, _)| !one.is_unsteady);
    let (steady_ones, others) = left.split_at_mut(steady);
    most(steady_ones, covered).or_else(|| most(others, covered).map(|at| steady + at))
}

fn most(groups: &mut [(&str, &Exercise, usize)], covered: &BTreeSet<u32>) -> Option<usize> {
    let (mut best, mut highest) = (None, 0);
    for (at, (_, one, adds)) in groups.iter_mut().enumerate() {
        if *adds > highest {
            *adds = one.lines.difference(covered).count();
            if *adds > highest {
                (best, highest) = (Some(at), *adds);
            }
        }
    }
    best
}
