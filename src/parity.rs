//! Do both backends give the same verdicts? Every group of a repository is screened on both, and what differs is looked
//! into.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::Repo;
use crate::error::Result;
use crate::pipeline::Pipeline;
use crate::pipeline::prepare::Prepared;
use crate::pipeline::replay::Replay;
use crate::pipeline::repository::Repository;
use crate::record::outcome::Attempt;
use crate::record::verdict::{Cause, Dimension, Verdict};
use crate::record::world::World;
use crate::screen::verdict;

/// Attempts that show whether a group varies by itself.
const REPEATS: u32 = 5;

/// Attempts on the side that did not see a group vary, where the other one did: what is rare takes long to be seen.
const MANY_REPEATS: u32 = 100;

/// One backend's view of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Side {
    pub python: String,
    pub pytest: String,
    pub lock_sha256: String,
    pub groups: usize,
    pub kept: usize,
}

/// A group whose verdict differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub group_id: String,
    pub local: String,
    pub docker: String,
    /// What was found out about it.
    pub reason: String,
    /// Whether that accounts for the difference.
    pub explained: bool,
}

/// What comparing came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Parity {
    pub local: Side,
    pub docker: Side,
    /// Groups that both have.
    pub compared: usize,
    pub differing: Vec<Difference>,
}

/// A repository on one backend, screened.
struct Screened {
    replay: Replay,
    verdicts: BTreeMap<String, Verdict>,
}

/// Screens a repository on both backends and compares.
///
/// # Errors
/// Those of the stages, on either backend.
pub(crate) fn compare<'a>(
    local: (&'a Pipeline<'a>, &'a Repo),
    docker: (&'a Pipeline<'a>, &'a Repo),
) -> Result<Parity> {
    let screened = |(pipeline, repo): (&'a Pipeline<'a>, &'a Repo)| -> Result<Screened> {
        let (prepared, verdicts) = Repository::new(pipeline, repo).first_verdicts()?;
        Ok(Screened { replay: Replay::of(prepared, pipeline), verdicts })
    };
    let (local, docker) = (screened(local)?, screened(docker)?);
    let mut differing = Vec::new();
    let mut compared = 0;
    let all: std::collections::BTreeSet<&String> =
        local.verdicts.keys().chain(docker.verdicts.keys()).collect();
    for group_id in all {
        let sides = (local.verdicts.get(group_id), docker.verdicts.get(group_id));
        if let (Some(one), Some(other)) = sides {
            compared += 1;
            if one.cause() == other.cause() {
                continue;
            }
        }
        let (reason, explained) = match sides {
            (Some(one), Some(other)) => reason(group_id, (&local, one), (&docker, other))?,
            _ => ("only one backend collects it".to_owned(), false),
        };
        let words = |verdict: Option<&Verdict>| verdict.map_or_else(|| "not collected".to_owned(), in_words);
        let (local, docker) = (words(sides.0), words(sides.1));
        differing.push(Difference { group_id: group_id.clone(), local, docker, reason, explained });
    }
    Ok(Parity { local: side(&local), docker: side(&docker), compared, differing })
}

fn side(screened: &Screened) -> Side {
    let Prepared { lab, collected, .. } = screened.replay.prepared();
    let built = &lab.built;
    Side {
        python: built.python.clone(),
        pytest: collected.pytest.clone(),
        lock_sha256: built.lock_sha256.clone(),
        groups: screened.verdicts.len(),
        kept: screened.verdicts.values().filter(|verdict| verdict.is_kept()).count(),
    }
}

fn in_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Kept => "kept".to_owned(),
        Verdict::Dropped { cause, evidence } => format!("{cause}: {}", evidence.summary),
    }
}

/// What the difference comes from, and whether that settles it.
type Reason = (String, bool);

/// A backend's name, its view, and its verdict on a group.
type OneSide<'a> = (&'static str, &'a Screened, &'a Verdict);

/// Why the verdicts on a group differ.
fn reason(
    group_id: &str,
    (local, at_local): (&Screened, &Verdict),
    (docker, at_docker): (&Screened, &Verdict),
) -> Result<Reason> {
    let sides = [("local", local, at_local), ("docker", docker, at_docker)];
    if let Some(reason) = not_varied(sides) {
        return Ok(reason);
    }
    if let Some(reason) = seen_on_one(group_id, sides)? {
        return Ok(reason);
    }
    repeated(group_id, sides)
}

/// One side cannot vary what the other one blames.
fn not_varied(sides: [OneSide<'_>; 2]) -> Option<Reason> {
    [(sides[0], sides[1]), (sides[1], sides[0])].into_iter().find_map(|((name, side, _), (_, _, other))| {
        let not_covered = &side.replay.prepared().lab.capabilities.not_covered;
        let blamed = blamed(other.cause());
        let (dimension, why) = blamed.iter().find_map(|one| not_covered.get_key_value(one))?;
        Some((format!("{} does not vary on {name}: {why}", dimension.as_str()), true))
    })
}

/// One side saw the group vary by itself: the other one is given many attempts to see it, too.
fn seen_on_one(group_id: &str, sides: [OneSide<'_>; 2]) -> Result<Option<Reason>> {
    for ((name, side, verdict), (other_name, _, other)) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        let Verdict::Dropped { evidence, .. } = other else { continue };
        if !varies(other) || varies(verdict) {
            continue;
        }
        let Some(group) = side.replay.exact(group_id) else { continue };
        let made = side.replay.run(group, &World::Base, MANY_REPEATS)?;
        let differ = made.iter().filter(|one| !side.replay.agree(&made[0], one)).count();
        let excerpt = &evidence.excerpt;
        let seen = format!("on {other_name} attempts in the base world differ:\n{excerpt}\n");
        return Ok(Some(match differ {
            0 => (format!("{seen}{MANY_REPEATS} runs on {name} agree"), false),
            _ => {
                (format!("{seen}so do {differ} of {MANY_REPEATS} runs on {name}: it varies by itself"), true)
            }
        }));
    }
    Ok(None)
}

/// What some more attempts on both sides show.
fn repeated(group_id: &str, sides: [OneSide<'_>; 2]) -> Result<Reason> {
    let mut first: Vec<Attempt> = Vec::new();
    for (name, side, _) in sides {
        let Some(group) = side.replay.exact(group_id) else {
            return Ok((format!("it cannot be run on {name}"), false));
        };
        for world in [World::Base, World::Everything] {
            let made = side.replay.run(group, &world, REPEATS)?;
            let Some(one) = made.first() else { continue };
            if let Some(other) = made.iter().find(|other| !side.replay.agree(one, other)) {
                let what = format!("{} and {}", verdict::describe(one), verdict::describe(other));
                return Ok((
                    format!("it varies by itself: {REPEATS} runs in the world {world} on {name} show {what}"),
                    true,
                ));
            }
            if world == World::Base {
                first.push(one.clone());
            }
        }
    }
    Ok(match first.as_slice() {
        [one, other] if sides[0].1.replay.agree(one, other) => {
            ("both show the same in the base world, and each is steady".to_owned(), false)
        }
        [one, other] => (
            format!("the base world shows something else:\n{}", verdict::observation_diff(one, other)),
            false,
        ),
        _ => ("an attempt gave no result".to_owned(), false),
    })
}

/// Whether a verdict says that attempts in one world differ.
fn varies(verdict: &Verdict) -> bool {
    matches!(verdict.cause(), Some(Cause::NondeterministicOutcome | Cause::NondeterministicOutput))
}

/// The dimension that a verdict blames.
fn blamed(cause: Option<&Cause>) -> Vec<Dimension> {
    match cause {
        Some(Cause::DependsOn(dimension)) => vec![*dimension],
        _ => Vec::new(),
    }
}
