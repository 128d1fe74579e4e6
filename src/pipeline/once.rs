//! The groups of a repository once in the base world: what becomes of them, and why. Nothing of it goes into the journal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::prepare::{Preparation, Prepared};
use super::trial::PATIENCE;
use super::{Pipeline, RepositoryFacts};
use crate::attempt::lab::{Made, Wanted};
use crate::attempt::pool::NOT_RUN;
use crate::config::Repo;
use crate::error::Result;
use crate::record::outcome::{Attempt, Compare, Exit};
use crate::record::verdict::{Cause, Verdict};
use crate::screen::verdict;

/// Longest that a case may take here: the answer is wanted soon.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Longest reason, in characters.
const LONGEST: usize = 200;
/// What is shown for a verdict without a cause.
const PASSES: &str = "passes";

/// What became of the groups of a repository.
#[derive(Debug, Serialize)]
pub struct Once {
    #[serde(flatten)]
    pub found: RepositoryFacts,
    /// Groups that were run, and files among them that cannot be collected.
    pub tried: usize,
    /// Groups by what became of them: `passes` first, then causes, the commonest first.
    pub verdicts: Vec<(String, usize)>,
    /// Why those that do not pass do not, the commonest first.
    pub reasons: Vec<Reason>,
}

/// What groups of one cause have in common.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub cause: String,
    /// The first line of what pytest says of the error.
    pub text: String,
    pub groups: usize,
    /// The first of the groups.
    pub first: String,
}

/// What became of one group: none where it passes, else cause and reason.
type Came = (String, Option<(Cause, String)>);

/// Prepares a repository as a build does and runs its groups, of more than `most` so many, evenly spread over pytest's order
/// and with it over the files.
///
/// # Errors
/// Those of the stages up to `collect`; the harness's trouble; an interruption.
pub fn run(pipeline: &Pipeline<'_>, repo: &Repo, most: usize) -> Result<Once> {
    let preparation = Preparation::new(pipeline, repo);
    let pinned = preparation.source()?;
    let mut found = RepositoryFacts { source: Some(pinned.origin.describe()), ..RepositoryFacts::default() };
    let built = preparation.environment(&pinned)?;
    found.add_environment(&built);
    let mut prepared = preparation.collect(pinned, built)?;
    found.add_collected(&prepared.collected);
    prepared.lab.timeouts = prepared.lab.timeouts.at_most(LIMIT);
    let came = attempts(pipeline, &prepared, most)?;
    Ok(Once { found, tried: came.len(), verdicts: verdicts(&came), reasons: reasons(came) })
}

/// So many of all, evenly spread.
fn spread(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let some = all.min(most);
    (0..some).map(move |at| at * all / some)
}

/// Files that cannot be collected are known without running anything.
fn attempts(pipeline: &Pipeline<'_>, prepared: &Prepared, most: usize) -> Result<Vec<Came>> {
    let Prepared { collected, lab, pinned, tried, late, .. } = prepared;
    let (groups, uncollected) = (&collected.groups, &collected.uncollected);
    let (to_run, known): (Vec<usize>, Vec<usize>) =
        spread(groups.len() + uncollected.len(), most).partition(|at| *at < groups.len());
    let known = known.into_iter().map(|at| &uncollected[at - groups.len()]);
    let mut came: Vec<Came> = known
        .map(|row| (row.group.group_id.clone(), Some((row.cause.clone(), error_line(&row.text)))))
        .collect();
    let judged = |at: usize, attempt: &Attempt| {
        let verdict = verdict::judge(&groups[at], &[attempt], false, Compare::Outcome);
        (groups[at].group_id.clone(), why(verdict, attempt))
    };
    // What the environment was tried with need not be run again.
    let known = |at: &usize| Some((*at, tried.get(at).or_else(|| late.get(at))?));
    came.extend(to_run.iter().filter_map(known).map(|(at, attempt)| judged(at, attempt)));
    let to_run: Vec<usize> = to_run.into_iter().filter(|at| known(at).is_none()).collect();
    let stage = pipeline.progress.stage(&format!("{} groups once", pinned.slug), to_run.len() as u64);
    let wanted: Vec<(usize, u32)> = to_run.into_iter().map(|at| (at, 1)).collect();
    let (world, durations) = (lab.base(), BTreeMap::new());
    let wanted =
        Wanted { world: &world, round: 0, groups: &wanted, durations: &durations, patience: Some(PATIENCE) };
    lab.make(groups, &[wanted], |_, at, made| {
        let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = made;
        came.push(judged(at, &attempt));
        stage.step();
        Ok(())
    })?;
    came.sort();
    Ok(came)
}

/// Cause and reason of what does not pass.
fn why(verdict: Verdict, attempt: &Attempt) -> Option<(Cause, String)> {
    let Verdict::Dropped { cause, evidence } = verdict else { return None };
    let worst = attempt.cases.iter().max_by_key(|case| case.outcome);
    let line = match (&cause, worst) {
        (Cause::TimesOut, _) if attempt.raw_output == NOT_RUN => NOT_RUN.to_owned(),
        (Cause::TimesOut, _) => format!("over {} s", LIMIT.as_secs()),
        (Cause::Fails | Cause::Errors | Cause::Skipped | Cause::XFails, Some(case)) => {
            error_line(&case.message)
        }
        (Cause::CollectionError, _) if attempt.exit == Exit::NotCollected => error_line(&attempt.raw_output),
        _ => String::new(),
    };
    Some((cause, if line.is_empty() { evidence.summary } else { line }))
}

/// The line that says what an error is. pytest marks such lines with an `E`; of exceptions that were raised while others
/// were handled the last one counts, and of a mistake in the syntax the words behind the place.
fn error_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_marked = |line: &&str| line.starts_with("E ");
    let line = match lines.iter().rposition(&is_marked) {
        Some(end) => {
            let start = lines[..end].iter().rposition(|line| !is_marked(line)).map_or(0, |at| at + 1);
            let is_place = lines[start][1..].trim_start().starts_with("File \"");
            lines[if is_place { end } else { start }][1..].trim()
        }
        None => lines.iter().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or_default(),
    };
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn verdicts(came: &[Came]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, why) in came {
        let name = why.as_ref().map_or_else(|| PASSES.to_owned(), |(cause, _)| cause.to_string());
        *counts.entry(name).or_default() += 1;
    }
    let passing = counts.remove(PASSES).unwrap_or_default();
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.insert(0, (PASSES.to_owned(), passing));
    counts
}

/// The groups are in the order of their IDs.
fn reasons(came: Vec<Came>) -> Vec<Reason> {
    let mut found: BTreeMap<(Cause, String), Reason> = BTreeMap::new();
    for (group, why) in came {
        let Some((cause, text)) = why else { continue };
        let fresh = || Reason { cause: cause.to_string(), text: text.clone(), groups: 0, first: group };
        found.entry((cause.clone(), text.clone())).or_insert_with(fresh).groups += 1;
    }
    let mut found: Vec<Reason> = found.into_values().collect();
    found.sort_by_key(|reason| std::cmp::Reverse(reason.groups));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::{Method, Outcome, TimeScope};
    use crate::record::world::World;
    use crate::testing::attempts::{attempt, group};

    #[test]
    fn some_of_many_are_spread_over_all() {
        let some = |all, most| spread(all, most).collect::<Vec<_>>();
        assert_eq!(some(3, 200), [0, 1, 2]);
        assert_eq!(some(10, 4), [0, 2, 5, 7]);
        assert_eq!(some(0, 4), [0; 0]);
    }

    #[test]
    fn the_line_of_an_error_is_the_one_that_pytest_marks() {
        for (text, expected) in [
            (
                "    assert 1 == x\nE   assert 1 == 2\nE    +  where 2 = f()\n\na.py:3: AssertionError",
                "assert 1 == 2",
            ),
            ("E   KeyError: 'a'\n\nDuring handling of it:\n\nE   ValueError: no a", "ValueError: no a"),
            (
                "E     File \"a.py\", line 1\nE       def (\nE           ^\nE   SyntaxError: bad",
                "SyntaxError: bad",
            ),
            ("\n  Skipped: no display \nmore", "Skipped: no display"),
            ("Exception in a plugin", "Exception in a plugin"),
            ("", ""),
        ] {
            assert_eq!(error_line(text), expected, "{text}");
        }
        assert_eq!(error_line(&"é".repeat(LONGEST + 1)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn what_does_not_pass_says_why() {
        let base = attempt(&World::Base, Method::Fork, 0, Outcome::Failed, "");
        let why = |attempt: Attempt| {
            why(verdict::judge(&group(), &[&attempt], false, Compare::Outcome), &attempt)
                .map(|(_, text)| text)
        };
        let mut fails = base.clone();
        fails.cases[0].message = "E   assert 1 == 2".to_owned();
        assert_eq!(why(fails).as_deref(), Some("assert 1 == 2"));
        let ended = |exit: Exit| Attempt { exit, raw_output: "E   KeyError: 1".to_owned(), ..base.clone() };
        assert_eq!(why(ended(Exit::NotCollected)).as_deref(), Some("KeyError: 1"));
        assert_eq!(
            why(ended(Exit::Signaled { signal: 11 })).as_deref(),
            Some("the process was killed by signal 11")
        );
        let late = ended(Exit::TimedOut { scope: TimeScope::Case, case: None });
        assert_eq!(why(late).as_deref(), Some("over 10 s"));
        assert_eq!(why(attempt(&World::Base, Method::Fork, 0, Outcome::Passed, "")), None);
    }

    #[test]
    fn the_commonest_comes_first_and_what_passes_before_all() {
        let fails = |text: &str| Some((Cause::Fails, text.to_owned()));
        let came: Vec<Came> = [fails("a"), fails("b"), None, fails("b"), Some((Cause::Skipped, "b".into()))]
            .into_iter()
            .enumerate()
            .map(|(at, why)| (format!("t{at}"), why))
            .collect();
        let expected = [("passes", 1), ("fails", 3), ("skipped", 1)];
        assert_eq!(verdicts(&came), expected.map(|(name, count)| (name.to_owned(), count)));
        let said = reasons(came);
        let said: Vec<_> =
            said.iter().map(|one| (one.text.as_str(), one.groups, one.first.as_str())).collect();
        assert_eq!(said, [("b", 2, "t1"), ("a", 1, "t0"), ("b", 1, "t4")]);
    }
}
