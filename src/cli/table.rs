//! The closing table. Pure: results in, text out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use console::{Alignment, Style, pad_str};

use super::newest;
use crate::dataset::Summary;
use crate::dataset::counts::Counts;
use crate::error::Result;
use crate::pipeline::{Built, Finished, RepositoryFacts};
use crate::record::evidence::{GroupEvidence, RepositoryEvidence};
use crate::record::flag;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Contribution;
use crate::record::verdict::Verdict;
use crate::report;
use crate::source;
use crate::terminal::Text;
use crate::text::count;
use crate::text::shell_quote;

const HEADINGS: [&str; 6] = ["repository", "cases", "groups", "kept", "published", "main causes"];
/// How many causes a line names.
const CAUSES: usize = 4;

/// What cannot be collected is named up to here.
const NAMED: usize = 5;

/// One line a repository, then what is wrong, what failed, where the dataset is, and what can be done with it.
pub(super) fn closing(built: &Built) -> Result<Text> {
    let mut rows: Vec<[String; 6]> = vec![HEADINGS.map(str::to_owned)];
    let (mut noted, mut warned) = (Vec::new(), Vec::new());
    for record in built.finished.iter().filter_map(|finished| finished.record.as_ref()) {
        let groups = Groups::of(&record.published, record.evidence.groups.iter())?;
        rows.push(row(record, &groups));
        let slug = &record.evidence.pinned.slug;
        noted.extend(groups.not_solvable().map(|line| format!("{slug}: {line}")));
        warned.extend(warnings(&record.evidence, &groups).into_iter().map(|line| format!("{slug}: {line}")));
    }
    let mut text = Text::default();
    if rows.len() > 1 {
        aligned(&rows, &mut text);
    } else if built.summary.is_none() && built.kept.is_none() {
        for finished in &built.finished {
            as_far_as_asked(finished, &mut text);
        }
    }
    for line in noted {
        text.line(&line);
    }
    for line in warned {
        warning(&line, &mut text);
    }
    for failed in &built.failed {
        text.styled(&Style::new().red().bold(), "failed");
        text.line(&format!(" {} ({}): {}", failed.slug, failed.stage, failed.message));
        for line in failed.detail.iter().flat_map(|detail| detail.lines()) {
            text.line(&format!("    {line}"));
        }
        if let Some(hint) = &failed.hint {
            text.line(&format!("    hint: {hint}"));
        }
    }
    if let Some(summary) = &built.summary {
        place(summary, &mut text);
    }
    if let Some(kept) = &built.kept {
        warning(&format!("{kept} (--replace writes what there is)"), &mut text);
    }
    Ok(text)
}

fn warning(line: &str, text: &mut Text) {
    text.styled(&Style::new().yellow().bold(), "warning");
    text.line(&format!(" {line}"));
}

/// What a user should know about a repository that went through.
fn warnings(record: &RepositoryEvidence, groups: &Groups) -> Vec<String> {
    let mut lines = record.built.warnings();
    lines.extend(source::secrets_warning(&record.pinned).ok().flatten());
    // Scripts that run a suite name no test.
    let has_names = !record.collected.pytest.is_empty();
    lines.extend(groups.nothing_kept().filter(|_| has_names));
    lines.extend(groups.not_traced());
    if !record.parity.differing.is_empty() {
        lines.push(format!(
            "of {} run cold as well, {} show something else than in the fork tree",
            count(record.parity.compared, "group"),
            record.parity.differing.len()
        ));
    }
    lines
}

/// What is said of the groups of a repository.
#[derive(Default)]
struct Groups {
    counts: Counts,
    /// The first group of each cause, and what it shows.
    first: BTreeMap<String, String>,
    /// Those that are kept and could not be traced to the end, and the first of them.
    lost: (usize, Option<String>),
    /// Those that are kept and that no sample takes, by the flag that says why.
    barred: BTreeMap<&'static str, usize>,
}

impl Groups {
    fn of(
        published: &BTreeSet<InstanceId>,
        groups: impl Iterator<Item = Result<GroupEvidence>>,
    ) -> Result<Self> {
        let mut said = Groups::default();
        for group in groups {
            let group = group?;
            let is_out = group.verdict.is_kept() && !published.contains(&group.instance_id);
            if let Some(flag) = flag::barrier(&group.flags()).filter(|_| is_out) {
                *said.barred.entry(flag).or_default() += 1;
            }
            said.add(group);
        }
        Ok(said)
    }

    fn add(&mut self, group: GroupEvidence) {
        self.counts.add(&group);
        let id = group.group.group_id;
        match group.verdict {
            Verdict::Kept => {
                if group.traced.is_some_and(|traced| !traced.complete) {
                    self.lost.0 += 1;
                    self.lost.1.get_or_insert(id);
                }
            }
            Verdict::Dropped { cause, evidence } => {
                let first = || format!("{id}: {}", evidence.summary);
                self.first.entry(cause.to_string()).or_insert_with(first);
            }
        }
    }

    /// Why nothing is kept: the most frequent cause, with what the first of its groups shows.
    fn nothing_kept(&self) -> Option<String> {
        if self.counts.kept > 0 {
            return None;
        }
        let Some((cause, _)) = self.causes().first().copied() else {
            return Some("it has no tests".to_owned());
        };
        let (all, first) = (count(self.counts.groups, "group"), self.first.get(cause)?);
        Some(format!("none of {all} is kept; the first of the main cause, {cause}: {first}"))
    }

    /// Kept groups that cannot be published, because how hard they are is not known.
    fn not_traced(&self) -> Option<String> {
        let (number, Some(first)) = &self.lost else { return None };
        Some(format!(
            "{} could not be traced to the end, and cannot be published; the first: {first}",
            count(*number, "kept group")
        ))
    }

    /// How many kept groups no sample takes, and why.
    fn not_solvable(&self) -> Option<String> {
        let all: usize = self.barred.values().sum();
        let flags: Vec<String> =
            self.barred.iter().map(|(flag, number)| format!("{flag} {number}")).collect();
        let all = count(all, "kept group");
        (!flags.is_empty()).then(|| {
            format!(
                "{all} not published: no submission can solve it by the rules, or none can be judged ({}); `gistmill list --state \
                 unsolvable` names each, `sample_unsolvable = true` publishes them",
                flags.join(", ")
            )
        })
    }

    /// Causes with their numbers, the most frequent first, and by name.
    fn causes(&self) -> Vec<(&String, &usize)> {
        let mut causes: Vec<_> = self.counts.dropped.iter().collect();
        causes.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
        causes
    }

    /// The most frequent causes, with their numbers.
    fn main_causes(&self) -> String {
        let counts = self.causes();
        let shown: Vec<String> =
            counts.iter().take(CAUSES).map(|(cause, count)| format!("{cause} {count}")).collect();
        let more = counts.len().saturating_sub(CAUSES);
        if more > 0 { format!("{}, {more} more", shown.join(", ")) } else { shown.join(", ") }
    }
}

/// What the stages found that were asked for.
fn as_far_as_asked(finished: &Finished, text: &mut Text) {
    text.line(&format!("{}: done up to the stage that was asked for", finished.slug));
    found(&finished.slug, &finished.found, text);
}

/// What is known of a repository before its tests are screened.
pub(super) fn found(slug: &RepoSlug, found: &RepositoryFacts, text: &mut Text) {
    let mut line = |words: String| text.line(&format!("  {words}"));
    if let Some(source) = &found.source {
        line(format!("source: {source}"));
    }
    if let Some([version, reason]) = &found.python {
        line(format!("Python {version}: {reason}"));
    }
    if let Some([name, reason]) = &found.plan {
        line(format!("installed: {name} ({reason})"));
    }
    if let (Some(cases), Some(groups)) = (found.cases, found.groups) {
        line(format!("collected: {} in {}", count(cases, "case"), count(groups, "group")));
    }
    for [id, cause] in found.uncollected.iter().take(NAMED) {
        line(format!("{cause}: {id}"));
    }
    let more = found.uncollected.len().saturating_sub(NAMED);
    if more > 0 {
        line(format!("and {more} more that cannot be collected"));
    }
    for words in &found.warnings {
        warning(&format!("{slug}: {words}"), text);
    }
}

/// Where the dataset and its page are, and what comes next.
fn place(summary: &Summary, text: &mut Text) {
    for subset in &summary.subsets {
        let _ = writeln!(text, "{}", super::subset::line(subset));
    }
    let directory = summary.directory.display();
    let _ = writeln!(text, "dataset: {directory}");
    let page = summary.directory.join(report::FILE);
    if !page.exists() {
        // Of a family without one.
        let place = shell_quote(&directory.to_string());
        let _ = writeln!(text, "next: gistmill score {place} <folder of solutions>");
        return;
    }
    let _ = writeln!(text, "page: {}", page.display());
    let named = newest::is_default(&summary.directory);
    let option =
        if named { String::new() } else { format!(" --dataset {}", shell_quote(&directory.to_string())) };
    let _ = writeln!(text, "next: gistmill report{option} --open, or gistmill list{option} --state dropped");
}

fn row(contribution: &Contribution, groups: &Groups) -> [String; 6] {
    [
        contribution.evidence.pinned.slug.to_string(),
        contribution.evidence.collected.cases.to_string(),
        groups.counts.groups.to_string(),
        groups.counts.kept.to_string(),
        contribution.size().to_string(),
        groups.main_causes(),
    ]
}

fn aligned(rows: &[[String; 6]], text: &mut Text) {
    let width =
        |column: usize| rows.iter().map(|row| console::measure_text_width(&row[column])).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let side = if matches!(column, 1..=4) { Alignment::Right } else { Alignment::Left };
            pad_str(cell, widths[column], side, None).into_owned()
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        if number == 0 {
            text.styled(&Style::new().bold(), line);
            text.line("");
        } else {
            text.line(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::environment::{Guess, Undeclared};
    use crate::testing::made_up::{self, MadeUp};

    #[test]
    fn guesses_and_what_is_missing_are_warnings() {
        let mut record = MadeUp::new(&[3]).repositories.remove(0);
        record.evidence.built.guesses =
            vec![Guess { distribution: "PyYAML".into(), wanted: "import yaml".into() }];
        record.evidence.built.undeclared = vec![Undeclared { wanted: "import acme".into(), place: None }];
        let slug = record.evidence.pinned.slug.clone();
        let finished =
            vec![Finished { slug: slug.clone(), record: Some(record), found: RepositoryFacts::default() }];
        let text = closing(&Built { summary: None, kept: None, failed: Vec::new(), finished }).unwrap();
        let text = console::strip_ansi_codes(text.as_str());
        for words in
            ["guessed: PyYAML for `import yaml`", "the tests ask for `import acme`, which nothing declares"]
        {
            assert!(text.contains(&format!("warning {slug}: {words}")), "{text}");
        }
    }

    #[test]
    fn a_repository_of_which_nothing_is_kept_says_why() {
        let groups = made_up::groups(40);
        let why = |groups: &[GroupEvidence]| {
            Groups::of(&BTreeSet::new(), groups.iter().cloned().map(Ok)).unwrap().nothing_kept()
        };
        assert_eq!(why(&groups), None, "some are kept");
        let dropped: Vec<_> = groups.into_iter().filter(|group| !group.verdict.is_kept()).collect();
        let said = why(&dropped).unwrap();
        assert!(said.starts_with("none of ") && said.contains("the first of the main cause, "), "{said}");
        let first = dropped.iter().any(|group| said.contains(&group.group.group_id));
        assert!(first, "{said}");
        let one = dropped.first().unwrap();
        let other = dropped.iter().find(|group| group.verdict.cause() != one.verdict.cause()).unwrap();
        let as_often = [one.clone(), other.clone()];
        let main = Groups::of(&BTreeSet::new(), as_often.iter().cloned().map(Ok)).unwrap().main_causes();
        let main = main.split(' ').next().unwrap();
        let said = why(&as_often).unwrap();
        assert!(said.contains(&format!("the first of the main cause, {main}: ")), "{said}");
        assert_eq!(why(&[]).as_deref(), Some("it has no tests"));
    }

    #[test]
    fn kept_groups_that_no_sample_takes_are_counted_by_what_keeps_them_out() {
        let mut groups = made_up::groups(10);
        let kept: Vec<usize> = (0..groups.len()).filter(|at| groups[*at].verdict.is_kept()).collect();
        for at in &kept[..2] {
            groups[*at].group.flags.push("names-repository-module".to_owned());
        }
        let said = |published: &[InstanceId]| {
            let published = published.iter().cloned().collect();
            Groups::of(&published, groups.iter().cloned().map(Ok)).unwrap().not_solvable()
        };
        let ids: Vec<InstanceId> = kept.iter().map(|at| groups[*at].instance_id.clone()).collect();
        let words = said(&[]).unwrap();
        assert!(
            words.starts_with("2 kept groups not published: ")
                && words.contains("(names-repository-module 2)"),
            "{words}"
        );
        assert!(said(&ids[..1]).unwrap().starts_with("1 kept group not published: "));
        assert_eq!(said(&ids), None, "`sample_unsolvable` publishes them");
    }

    #[test]
    fn what_is_kept_and_cannot_be_traced_is_a_warning() {
        let record = MadeUp::new(&[10]).repositories.remove(0);
        let mut groups = made_up::groups(10);
        let said = |groups: &[GroupEvidence]| {
            warnings(&record.evidence, &Groups::of(&BTreeSet::new(), groups.iter().cloned().map(Ok)).unwrap())
                .join("\n")
        };
        assert!(!said(&groups).contains("could not be traced"));
        let traced = groups.iter_mut().find(|one| one.verdict.is_kept()).unwrap();
        traced.traced.as_mut().unwrap().complete = false;
        let id = traced.group.group_id.clone();
        let said = said(&groups);
        let words =
            format!("1 kept group could not be traced to the end, and cannot be published; the first: {id}");
        assert!(said.contains(&words), "{said}");
    }

    #[test]
    fn an_early_end_says_what_was_found() {
        let found = RepositoryFacts {
            python: Some(["3.12.1".into(), "requires-python".into()]),
            plan: Some([". + group dev".into(), "pyproject.toml".into()]),
            cases: Some(1),
            groups: Some(7),
            uncollected: (0..6).map(|at| [format!("t{at}.py"), "collection-error".into()]).collect(),
            ..RepositoryFacts::default()
        };
        let slug = crate::record::id::RepoSlug::new("a/b").unwrap();
        let built = Built {
            summary: None,
            kept: None,
            failed: Vec::new(),
            finished: vec![Finished { slug, record: None, found }],
        };
        let text = closing(&built).unwrap();
        let lines: Vec<&str> = text.as_str().lines().collect();
        assert_eq!(
            lines[..5],
            [
                "a/b: done up to the stage that was asked for",
                "  Python 3.12.1: requires-python",
                "  installed: . + group dev (pyproject.toml)",
                "  collected: 1 case in 7 groups",
                "  collection-error: t0.py",
            ]
        );
        assert_eq!(lines.last(), Some(&"  and 1 more that cannot be collected"));
    }
}
