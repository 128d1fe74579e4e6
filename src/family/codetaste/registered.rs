//! Which patterns are taken: those that match one tree alone, and are not too near to one that was taken before.

use super::lines::Lines;
use super::score::Side;

/// Two patterns that share more than this of their lines are one.
const MAX_JACCARD: (u64, u64) = (95, 100);
/// How many times more matches the right side has where the wrong one's witness is worth an exemption.
const WITNESS_RATIO: u64 = 10;

/// A pattern, and what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub id: String,
    pub base: u64,
    pub golden: u64,
    /// On the tree where it is to match.
    pub lines: Lines,
}

/// Why a pattern is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    IdTaken,
    MatchesNothing,
    MatchesBoth,
    /// With the ID of the pattern that it is too near to.
    TooNear(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::IdTaken => f.write_str("id-taken"),
            Refusal::MatchesNothing => f.write_str("matches-nothing"),
            Refusal::MatchesBoth => f.write_str("matches-both"),
            Refusal::TooNear(id) => write!(f, "too-near:{id}"),
        }
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub refusal: Option<Refusal>,
    /// Whether a place on the wrong side is shown, so that it can be exempted.
    pub shows_witness: bool,
}

fn is_above(jaccard: Option<(u64, u64)>) -> bool {
    let (part, whole) = MAX_JACCARD;
    jaccard.is_some_and(|(common, all)| {
        u128::from(common) * u128::from(whole) > u128::from(part) * u128::from(all)
    })
}

/// Patterns of one side that were taken, in their order.
#[derive(Debug, Clone, Default)]
pub struct Registered {
    taken: Vec<(String, Lines)>,
}

impl Registered {
    /// Takes a candidate, or says why not.
    pub fn decide(&mut self, side: Side, candidate: Candidate) -> Decision {
        let (good, bad) = match side {
            Side::Additive => (candidate.golden, candidate.base),
            Side::Reductive => (candidate.base, candidate.golden),
        };
        let refusal = if self.taken.iter().any(|(id, _)| *id == candidate.id) {
            Some(Refusal::IdTaken)
        } else if good == 0 {
            Some(Refusal::MatchesNothing)
        } else if bad > 0 {
            Some(Refusal::MatchesBoth)
        } else {
            self.nearest(&candidate.lines).map(Refusal::TooNear)
        };
        let shows_witness = refusal == Some(Refusal::MatchesBoth)
            && u128::from(good) > u128::from(WITNESS_RATIO) * u128::from(bad);
        if refusal.is_none() {
            self.taken.push((candidate.id, candidate.lines));
        }
        Decision { refusal, shows_witness }
    }

    /// The pattern that overlaps most, where that is too much; the earliest of equal ones.
    fn nearest(&self, lines: &Lines) -> Option<String> {
        let mut nearest: Option<((u64, u64), &str)> = None;
        for (id, other) in &self.taken {
            let Some((common, all)) = lines.jaccard(other) else { continue };
            let is_nearer = |((most, of), _): ((u64, u64), &str)| {
                u128::from(common) * u128::from(of) > u128::from(most) * u128::from(all)
            };
            if nearest.is_none_or(is_nearer) {
                nearest = Some(((common, all), id));
            }
        }
        nearest.filter(|(jaccard, _)| is_above(Some(*jaccard))).map(|(_, id)| id.to_owned())
    }
}
