//! Which kept groups are published: at most so many per repository, spread over the tiers. Pure.
//!
//! Each repository is sampled by itself, so adding one never changes what another contributes:
//!
//! 1. *Strata.* Every candidate of the repository gets a tier by its percentile ranks among the repository's candidates
//!    ([`super::tier`]). These tiers only steer the sample; the published `tier` is computed afterwards over the
//!    published instances of the whole dataset.
//! 2. *Order within a stratum.* By hash of seed and instance id ([`InstanceId::sample_order`]); those whose trace can
//!    differ from run to run come after all others, so that they are published only where the others do not suffice.
//! 3. *Allocation.* As equal as possible: the strata take turns, hard, medium, easy, one slot a turn, until the slots
//!    are used up; a stratum without candidates is passed over, so the slots it cannot fill go to the others. The
//!    remainder of an uneven division thus falls to the harder strata.
//!
//! A candidate that turns out to be unfit (a cold run disagrees, a later attempt diverges) is *marked* as excluded, not
//! taken out of the list: it still counts for the ranks, so the strata stay what they were. Marking one chosen
//! candidate then changes exactly one slot, and every other chosen candidate stays chosen.

use std::collections::{BTreeMap, BTreeSet};

use super::tier::{Difficulty, tiers};
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Tier;
use crate::record::limits::TierBounds;

/// A kept group that could be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub slug: RepoSlug,
    pub instance_id: InstanceId,
    pub difficulty: Difficulty,
    /// Whether its trace can differ from run to run: traced attempts disagree, or threads were started.
    pub unsteady: bool,
    /// Proved unfit after all: counts for the strata, but is never chosen.
    pub excluded: bool,
}

/// The order in which strata take their turns.
const TURNS: [Tier; 3] = [Tier::Hard, Tier::Medium, Tier::Easy];

/// The instances to publish: at most `per_repo` of each repository, all that are not excluded when it is 0.
pub fn choose(
    candidates: &[Candidate],
    per_repo: u32,
    bounds: &TierBounds,
    seed: u64,
) -> BTreeSet<InstanceId> {
    let limit = if per_repo == 0 { usize::MAX } else { per_repo as usize };
    let sequences = sequences(candidates, bounds, seed);
    sequences.into_values().flat_map(|sequence| sequence.into_iter().take(limit)).collect()
}

/// Per repository, every candidate that is not excluded in the order in which slots are filled. The first `per_repo`
/// are the sample; the ones after them are the likeliest to move up when one of those turns out to be unfit.
pub fn sequences(
    candidates: &[Candidate],
    bounds: &TierBounds,
    seed: u64,
) -> BTreeMap<RepoSlug, Vec<InstanceId>> {
    let mut repositories: BTreeMap<&RepoSlug, Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates {
        repositories.entry(&candidate.slug).or_default().push(candidate);
    }
    let of_one =
        |(slug, members): (&RepoSlug, Vec<_>)| (slug.clone(), take_turns(strata(&members, bounds, seed)));
    repositories.into_iter().map(of_one).collect()
}

/// The eligible members of each stratum in sampling order, strata in the order of their turns.
fn strata(members: &[&Candidate], bounds: &TierBounds, seed: u64) -> [Vec<InstanceId>; 3] {
    let difficulties: Vec<Difficulty> = members.iter().map(|member| member.difficulty).collect();
    let tiers = tiers(&difficulties, bounds);
    TURNS.map(|turn| {
        let eligible = members.iter().zip(&tiers).filter(|(member, tier)| **tier == turn && !member.excluded);
        let mut stratum: Vec<&Candidate> = eligible.map(|(member, _)| *member).collect();
        stratum.sort_by_cached_key(|one| {
            (one.unsteady, one.instance_id.sample_order(&one.slug, seed), one.instance_id.clone())
        });
        stratum.into_iter().map(|one| one.instance_id.clone()).collect()
    })
}

fn take_turns(strata: [Vec<InstanceId>; 3]) -> Vec<InstanceId> {
    let longest = strata.iter().map(Vec::len).max().unwrap_or(0);
    let round = |at: usize| strata.iter().filter_map(move |stratum| stratum.get(at).cloned());
    (0..longest).flat_map(round).collect()
}

/// What is to be published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    pub chosen: BTreeSet<InstanceId>,
    /// Those that were chosen at some point, and may have been dropped since.
    pub reached: BTreeSet<InstanceId>,
}

/// Chooses until all that is chosen is `fit`. What is dropped makes room for the next one. Only those that got so far
/// are asked for: what an earlier build left in the cache for others decides nothing.
pub fn settle(
    mut candidates: Vec<Candidate>,
    per_repo: u32,
    bounds: &TierBounds,
    seed: u64,
    fit: impl Fn(&InstanceId) -> bool,
) -> Choice {
    let mut reached = BTreeSet::new();
    loop {
        let chosen = choose(&candidates, per_repo, bounds, seed);
        reached.extend(chosen.iter().cloned());
        let dropped: BTreeSet<&InstanceId> = chosen.iter().filter(|id| !fit(id)).collect();
        if dropped.is_empty() {
            return Choice { chosen, reached };
        }
        for candidate in &mut candidates {
            candidate.excluded |= dropped.contains(&candidate.instance_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: TierBounds = TierBounds { medium: 50.0, hard: 80.0 };

    fn repository(name: &str, size: usize, random: &mut fastrand::Rng) -> Vec<Candidate> {
        let slug = RepoSlug::new(&format!("made/{name}")).unwrap();
        let candidate = |number: usize, random: &mut fastrand::Rng| Candidate {
            instance_id: InstanceId::derive(&slug, "c0", &format!("t.py::test_{number}")),
            slug: slug.clone(),
            difficulty: Difficulty { trace_length: random.u64(1..500), unique_files: random.u64(1..6) },
            unsteady: false,
            excluded: false,
        };
        (0..size).map(|number| candidate(number, random)).collect()
    }

    fn random_repository(random: &mut fastrand::Rng) -> Vec<Candidate> {
        let size = random.usize(1..80);
        repository("one", size, random)
    }

    #[test]
    fn at_most_so_many_and_as_many_as_there_are() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            let candidates = random_repository(&mut random);
            let per_repo = random.u32(1..40);
            let chosen = choose(&candidates, per_repo, &BOUNDS, 0);
            assert_eq!(chosen.len(), candidates.len().min(per_repo as usize));
        }
    }

    #[test]
    fn zero_keeps_all() {
        let candidates = repository("one", 77, &mut fastrand::Rng::with_seed(2));
        assert_eq!(choose(&candidates, 0, &BOUNDS, 5).len(), 77);
    }

    #[test]
    fn strata_share_the_slots_evenly_and_the_remainder_goes_to_the_harder() {
        let slug = RepoSlug::new("made/even").unwrap();
        let candidate = |number: u64| Candidate {
            instance_id: InstanceId::derive(&slug, "c0", &number.to_string()),
            slug: slug.clone(),
            difficulty: Difficulty { trace_length: number, unique_files: number },
            unsteady: false,
            excluded: false,
        };
        let candidates: Vec<_> = (0..100).map(candidate).collect();
        let count = |per_repo| {
            let chosen = choose(&candidates, per_repo, &BOUNDS, 0);
            let tiers = tiers(&candidates.iter().map(|one| one.difficulty).collect::<Vec<_>>(), &BOUNDS);
            TURNS.map(|turn| {
                let of_turn =
                    |(one, tier): &(&Candidate, &Tier)| **tier == turn && chosen.contains(&one.instance_id);
                candidates.iter().zip(&tiers).filter(of_turn).count()
            })
        };
        assert_eq!(count(25), [9, 8, 8]);
        assert_eq!(count(80), [20, 30, 30], "the hard stratum has 20 members");
    }

    #[test]
    fn unsteady_ones_are_chosen_only_where_the_others_do_not_suffice() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut candidates = repository("one", 90, &mut random);
        for candidate in &mut candidates {
            candidate.unsteady = random.bool();
        }
        let unsteady: BTreeSet<_> =
            candidates.iter().filter(|one| one.unsteady).map(|one| one.instance_id.clone()).collect();
        assert!(choose(&candidates, 9, &BOUNDS, 0).is_disjoint(&unsteady));
        assert_eq!(choose(&candidates, 90, &BOUNDS, 0).len(), 90);
    }

    #[test]
    fn order_of_input_never_matters() {
        let mut random = fastrand::Rng::with_seed(3);
        for seed in 0..100 {
            let candidates = random_repository(&mut random);
            let mut shuffled = candidates.clone();
            random.shuffle(&mut shuffled);
            assert_eq!(choose(&candidates, 12, &BOUNDS, seed), choose(&shuffled, 12, &BOUNDS, seed));
        }
    }

    #[test]
    fn adding_a_repository_changes_nothing_for_another() {
        let mut random = fastrand::Rng::with_seed(4);
        for seed in 0..100 {
            let one = random_repository(&mut random);
            let other = repository("other", random.usize(1..50), &mut random);
            let alone = choose(&one, 9, &BOUNDS, seed);
            let both = choose(&[one.clone(), other].concat(), 9, &BOUNDS, seed);
            let of_one: BTreeSet<_> = one.iter().map(|candidate| candidate.instance_id.clone()).collect();
            assert_eq!(alone, both.intersection(&of_one).cloned().collect());
        }
    }

    #[test]
    fn excluding_one_refills_one_slot_and_moves_no_other() {
        let mut random = fastrand::Rng::with_seed(5);
        for seed in 0..300 {
            let mut candidates = random_repository(&mut random);
            let per_repo = random.u32(1..30);
            loop {
                let before = choose(&candidates, per_repo, &BOUNDS, seed);
                let eligible: Vec<usize> =
                    (0..candidates.len()).filter(|at| !candidates[*at].excluded).collect();
                let Some(at) = random.choice(eligible) else { break };
                candidates[at].excluded = true;
                let gone = candidates[at].instance_id.clone();
                let after = choose(&candidates, per_repo, &BOUNDS, seed);
                let mut stayed = before.clone();
                stayed.remove(&gone);
                assert!(stayed.is_subset(&after), "a chosen candidate was lost");
                assert!(!after.contains(&gone));
                assert!(after.len() <= stayed.len() + 1);
            }
        }
    }

    #[test]
    fn another_seed_gives_another_sample() {
        let candidates = repository("one", 200, &mut fastrand::Rng::with_seed(6));
        assert_ne!(choose(&candidates, 10, &BOUNDS, 0), choose(&candidates, 10, &BOUNDS, 1));
    }

    #[test]
    fn what_is_chosen_in_the_end_is_fit_and_only_those_in_the_way_were_asked_for() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..50 {
            let candidates = random_repository(&mut random);
            let per_repo = random.u32(1..20);
            let first = choose(&candidates, per_repo, &BOUNDS, 3);
            let unfit: BTreeSet<InstanceId> =
                candidates.iter().map(|one| one.instance_id.clone()).filter(|_| random.bool()).collect();
            let choice = settle(candidates.clone(), per_repo, &BOUNDS, 3, |id| !unfit.contains(id));
            assert!(choice.chosen.is_disjoint(&unfit));
            let fit = candidates.len() - unfit.len();
            assert_eq!(choice.chosen.len(), fit.min(per_repo as usize));
            assert!(first.is_subset(&choice.reached) && choice.chosen.is_subset(&choice.reached));
            let dropped = choice.reached.difference(&choice.chosen).count();
            assert!(choice.reached.difference(&choice.chosen).all(|id| unfit.contains(id)));
            assert!(choice.reached.len() <= choice.chosen.len() + dropped);
        }
    }

    #[test]
    fn where_all_are_fit_the_choice_is_the_first_one() {
        let candidates = repository("one", 30, &mut fastrand::Rng::with_seed(8));
        let choice = settle(candidates.clone(), 5, &BOUNDS, 0, |_| true);
        assert_eq!(choice.chosen, choose(&candidates, 5, &BOUNDS, 0));
        assert_eq!(choice.reached, choice.chosen);
    }
}
