//! What was found is judged as any submission is, and shown to hold: three times, once under load.

use super::cause::{Cause, NotMade};
use super::search::Searched;
use super::{Made, Witnessed};
use crate::attempt::contention;
use crate::error::Result;
use crate::family::gistify::{Detail, Existence, Finding, FindingKind, Line};
use crate::referee::gistify::evaluate::{Policy, Referee};
use crate::referee::gistify::judged::Judged;
use crate::referee::gistify::original::Original;
use crate::referee::scored::spelled;
use crate::referee::submissions::Submission;
use crate::runner::protocol::Generated;
use crate::score::Ratio;

/// Further runs of what chance has a part in.
const VARYING_RUNS: u32 = 8;

/// Judges what was found; what has no witness keeps its cause.
///
/// # Errors
/// IO errors, an interruption, and the harness's when it stays broken.
pub(super) fn confirmed(
    referee: &Referee<'_>,
    originals: &[&Original<'_>],
    searched: Vec<Searched>,
) -> Result<Vec<Witnessed>> {
    let submission =
        |text: &str| Submission { text: Some(text.as_bytes().to_vec()), ..Submission::default() };
    let submissions: Vec<(usize, Submission)> = searched
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some((at, submission(one.found.as_ref().ok()?.text.as_ref()?))))
        .collect();
    let pairs: Vec<(&Original<'_>, &Submission)> =
        submissions.iter().map(|(at, submission)| (originals[*at], submission)).collect();
    let judged = referee.judge(&pairs, &mut || {})?;
    let mut again = referee.agree_again(&pairs)?;
    let varying: Vec<usize> = (0..pairs.len()).filter(|pair| searched[submissions[*pair].0].varies).collect();
    let of_varying: Vec<_> = varying.iter().map(|pair| pairs[*pair]).collect();
    let policy = Policy { attempts: VARYING_RUNS, ..referee.policy.clone() };
    let more = Referee { policy: &policy, ..*referee }.agree_again(&of_varying)?;
    for (pair, difference) in varying.into_iter().zip(more) {
        again[pair] = again[pair].take().or(difference);
    }
    let under_load = {
        let _contention = contention::start()?;
        referee.agree_again(&pairs)?
    };
    let mut verdicts = judged.into_iter().zip(again).zip(under_load);
    let conclude = |one: Searched| {
        let mut dropped_variants = Vec::new();
        let result = match one.found {
            Err(cause) => Err(cause),
            Ok(generated) => match verdicts.next() {
                Some(((judged, again), under_load)) => {
                    dropped_variants = judged.differing_variants();
                    conclusion(*generated, &judged, again, under_load)
                }
                None => Err(NotMade::new(Cause::NotConfirmed, "it was not judged")),
            },
        };
        Witnessed { result, trials: one.trials, dropped_variants }
    };
    Ok(searched.into_iter().map(conclude).collect())
}

fn conclusion(
    generated: Generated,
    judged: &Judged,
    again: Option<String>,
    under_load: Option<String>,
) -> std::result::Result<Made, NotMade> {
    let verdict = &judged.verdict;
    if verdict.fidelity != Some(true) {
        let detail = judged.comparison.as_ref().and_then(|compared| {
            let case = compared.cases.iter().find(|case| case.difference.is_some())?;
            Some(format!("{}: expected {}, seen {}", case.case, case.expected, case.seen))
        });
        let detail = detail.unwrap_or_else(|| judged.output.clone());
        let violations = verdict.violations.iter().filter_map(spelled);
        let classes = spelled(&verdict.class).into_iter().chain(verdict.detail.as_ref().and_then(spelled));
        let named = classes.chain(violations).collect::<Vec<_>>().join(", ");
        let lines = if verdict.violations.is_empty() { Vec::new() } else { made_up_findings(judged) };
        let evidence = [named, detail].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
        let cause = match verdict.detail {
            // The test itself does.
            Some(Detail::ImportStatement) => Cause::ImportsRepository,
            _ if verdict.behaves == Some(true) => Cause::NotFair,
            _ => Cause::NotConfirmed,
        };
        return Err(NotMade::new(cause, &evidence));
    }
    let made_up = made_up_findings(judged);
    if !made_up.is_empty() {
        return Err(NotMade::new(Cause::NotFair, &made_up.join("\n")));
    }
    for (difference, when) in [(again, "once more"), (under_load, "under load")] {
        if let Some(difference) = difference {
            let evidence = format!("it agrees at first and not {when}: {difference}");
            return Err(NotMade::new(Cause::NotConfirmed, &evidence));
        }
    }
    let rate = |ratio: Option<Ratio>| ratio.and_then(Ratio::rate);
    let text = generated.text.unwrap_or_default();
    Ok(Made {
        lines: text.lines().filter(|line| !line.trim().is_empty()).count() as u64,
        units: judged.row.existence.map_or(0, |ratio| u64::from(ratio.whole)),
        files: generated.files,
        line_execution: rate(judged.row.execution),
        line_existence: rate(judged.row.existence),
        level: generated.level.unwrap_or_default(),
        text,
    })
}

/// Findings on lines that are not the repository's own: what it does itself (start a process, import by name) a witness
/// may do in the same words. What it takes over under the name of a test, its body left out, does not count.
fn made_up_findings(judged: &Judged) -> Vec<String> {
    let is_made_up = |finding: &&Finding| {
        if finding.kind == FindingKind::LeftoverTest {
            return false;
        }
        let covers = |line: &&Line| (line.first..=line.last).contains(&finding.line);
        judged.submitted_lines().iter().filter(covers).any(|line| line.existence == Existence::Missing)
    };
    let found = judged.findings.iter().filter(is_made_up);
    found
        .map(|finding| {
            format!(
                "line {}: {}: {}",
                finding.line,
                spelled(&finding.kind).unwrap_or_default(),
                finding.evidence
            )
        })
        .collect()
}
