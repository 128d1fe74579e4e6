//! Judges what is not judged yet, several portions at the same time: what takes long holds up nobody else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use crate::attempt::pool::{Parking, Terms};
use crate::cli::session::Session;
use crate::error::Result;
use crate::pipeline::prepare::Prepared;
use crate::referee::gistify::evaluate::{Policy, Referee};
use crate::referee::gistify::ground::Ground;
use crate::referee::gistify::judged::Judged;
use crate::referee::gistify::original::Original;
use crate::referee::submissions::Submission;
use crate::store::memo::Memo;

/// Runners that wait for the next text, for each that may be at work: one for each way in which texts are run.
pub(crate) const PARKED_FOR_EACH: usize = 3;
/// Portions that are judged at the same time, for each job.
const PORTIONS_FOR_EACH: usize = 2;
/// Submissions of a portion at most: an interruption costs those that are under way.
const LARGEST_PORTION: usize = 20;

/// A submission that is to be judged, and its instance and run.
pub(super) type Wanted<'a> = (&'a Original<'a>, &'a Submission, (String, usize));

/// Judgements by instance and run.
pub(super) type AllJudged = BTreeMap<(String, usize), Judged>;

/// Judges what is not known, and adds all of it.
///
/// # Errors
/// IO errors, an interruption, and the harness's when it stays broken.
pub(super) fn judge_repository(
    job: &Session,
    (prepared, ground): (&Prepared, &Ground),
    policy: &Policy,
    wanted: &[Wanted<'_>],
    judged: &mut AllJudged,
) -> Result<()> {
    let jobs = prepared.lab.jobs();
    let parking = Parking::new(PARKED_FOR_EACH * PORTIONS_FOR_EACH * jobs);
    let mut known = Memo::<Judged>::open_beside(&prepared.lab.folder.join("scores"))?;
    let any = Terms::default();
    let referee = Referee { lab: &prepared.lab, ground, policy, terms: &any };
    let of_one = |(original, submission, _): &Wanted<'_>| referee.key(original, submission.text.as_deref());
    let keys: Vec<String> = wanted.iter().map(of_one).collect();
    let missing: Vec<usize> = (0..wanted.len()).filter(|at| known.get(&keys[*at]).is_none()).collect();
    let stage = job.progress.stage(&format!("{} score", prepared.pinned.slug), missing.len() as u64);
    let most = PORTIONS_FOR_EACH * jobs;
    let size = missing.len().div_ceil(most * 4).clamp(1, LARGEST_PORTION);
    let portions: Vec<&[usize]> = missing.chunks(size).collect();
    let at_once = portions.len().clamp(1, most);
    let terms = Terms { parking: Some(&parking), workers: Some((most / at_once).max(1)), waiting: None };
    let referee = Referee { terms: &terms, ..referee };
    let judge = |part: &[usize]| {
        let pairs: Vec<(&Original<'_>, &Submission)> =
            part.iter().map(|at| (wanted[*at].0, wanted[*at].1)).collect();
        referee.judge(&pairs, &mut || stage.step())
    };
    in_portions(&portions, at_once, judge, |part, made| {
        // What was lost is tried again the next time.
        let (lost, whole): (Vec<_>, Vec<_>) = part.iter().zip(made).partition(|(_, one)| one.lost.is_some());
        judged.extend(lost.into_iter().map(|(at, one)| (wanted[*at].2.clone(), one)));
        known.extend(whole.into_iter().map(|(at, one)| (keys[*at].clone(), one)))
    })?;
    for (at, (_, _, place)) in wanted.iter().enumerate() {
        if let Some(one) = known.get(&keys[at]) {
            judged.insert(place.clone(), one.clone());
        }
    }
    Ok(())
}

/// Makes portions, several at once, and hands on what came of each. After an error no further one is begun; what others make
/// meanwhile is handed on all the same.
///
/// # Errors
/// The first one.
fn in_portions<T: Send>(
    portions: &[&[usize]],
    at_once: usize,
    make: impl Fn(&[usize]) -> Result<T> + Sync,
    mut each: impl FnMut(&[usize], T) -> Result<()>,
) -> Result<()> {
    let (next, (sender, made)) = (AtomicUsize::new(0), sync_channel(at_once));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            let (sender, next, make) = (sender.clone(), &next, &make);
            scope.spawn(move || {
                while let Some(part) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let made = make(part);
                    if made.is_err() {
                        next.store(portions.len(), Ordering::Relaxed);
                    }
                    if sender.send((*part, made)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut first = None;
        for (part, made) in made {
            if let Err(error) = made.and_then(|made| each(part, made)) {
                next.store(portions.len(), Ordering::Relaxed);
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn what_others_judge_beside_a_failure_is_kept_and_nothing_further_is_begun() {
        let all: Vec<usize> = (0..20).collect();
        let portions: Vec<&[usize]> = all.chunks(1).collect();
        let (failed, mut kept) = (std::sync::Barrier::new(2), Vec::new());
        let make = |part: &[usize]| {
            failed.wait();
            if part == [0] {
                return Err(Error::machine("no memory"));
            }
            // The failure has come by then.
            std::thread::sleep(std::time::Duration::from_millis(200));
            Ok(part[0])
        };
        let ended = in_portions(&portions, 2, make, |_, made| {
            kept.push(made);
            Ok(())
        });
        assert_eq!((ended.unwrap_err().to_string().as_str(), kept), ("no memory", vec![1]));
    }
}
