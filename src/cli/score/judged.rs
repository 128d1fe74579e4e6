//! Judges what is not judged yet, several portions at the same time: what takes long holds up nobody else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use crate::attempt::pool::{Parking, Terms};
use crate::cli::session::Session;
use crate::error::Result;
use crate::pipeline::prepare::Prepared;
use crate::referee::gistify::evaluate::{Judged, Original, Policy, Referee};
use crate::referee::gistify::ground::Ground;
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
    let (next, (sender, made)) = (AtomicUsize::new(0), sync_channel(at_once));
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..at_once {
            let (sender, next, portions, stage, referee) =
                (sender.clone(), &next, &portions, &stage, &referee);
            scope.spawn(move || {
                while let Some(part) = portions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let pairs: Vec<(&Original<'_>, &Submission)> =
                        part.iter().map(|at| (wanted[*at].0, wanted[*at].1)).collect();
                    let made = referee.judge(&pairs, &mut || stage.step());
                    let failed = made.is_err();
                    if sender.send((*part, made)).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (part, made) in made {
            // What was lost is tried again the next time.
            let (lost, whole): (Vec<_>, Vec<_>) =
                part.iter().zip(made?).partition(|(_, one)| one.lost.is_some());
            judged.extend(lost.into_iter().map(|(at, one)| (wanted[*at].2.clone(), one)));
            known.extend(whole.into_iter().map(|(at, one)| (keys[*at].clone(), one)))?;
        }
        Ok(())
    })?;
    for (at, (_, _, place)) in wanted.iter().enumerate() {
        if let Some(one) = known.get(&keys[at]) {
            judged.insert(place.clone(), one.clone());
        }
    }
    Ok(())
}
