//! Looking groups up in a dataset: what `gistmill show` and `gistmill list` print.

pub(crate) mod pairs;
pub(crate) mod targets;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::Dataset;
use crate::error::Result;
use crate::record::entry::{ENTRIES, pytest_line};
use crate::record::family::Unit;
use crate::record::flag;
use crate::record::verdict::Evidence;
use crate::terminal::one_line;
use crate::text::count;

/// A group of a dataset with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct FoundGroup {
    pub slug: String,
    pub group_id: String,
    pub instance_id: Option<String>,
    /// Whether it judges an instance of a family whose instances are not groups.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judges: bool,
    pub kept: bool,
    pub cause: Option<String>,
    pub flags: Vec<String>,
    pub evidence: Option<Evidence>,
    pub cases: i64,
    pub attempts: i64,
    /// Worlds in which it was run, `base` first.
    pub worlds: Vec<String>,
    pub trace_length: Option<i64>,
    pub unique_files: Option<i64>,
    /// Of a published one.
    pub tier: Option<String>,
    /// The case that was asked for, where that led here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
}

/// What a dataset has a list of: groups, files that could be masked, or pairs of commits.
pub(crate) trait Found {
    fn slug(&self) -> &str;
    /// The name that it is shown by.
    fn name(&self) -> &str;
    fn instance_id(&self) -> Option<&str>;
    fn cause(&self) -> Option<&str>;
    fn flags(&self) -> &[String];
    /// Of a published one.
    fn tier(&self) -> Option<&str>;
    /// The state of what has neither a cause nor an instance.
    fn remaining_state(&self) -> &'static str;
    fn lines(&self) -> Vec<String>;

    /// Whether it belongs to a repository.
    fn is_of(&self, slug: &str) -> bool {
        self.slug() == slug
    }

    /// `published`, `dropped`, or what remains.
    fn state(&self) -> &'static str {
        match (self.cause(), self.instance_id()) {
            (Some(_), _) => "dropped",
            (None, Some(_)) => "published",
            (None, None) => self.remaining_state(),
        }
    }

    /// The cause, or else the state.
    fn verdict(&self) -> Cow<'_, str> {
        self.cause().unwrap_or(self.state()).into()
    }

    /// All that is known, for people; a line of it stays a line, whatever the dataset says.
    fn describe(&self) -> String {
        self.lines().iter().map(|line| one_line(line).into_owned() + "\n").collect()
    }
}

/// What a query came to.
#[derive(Debug)]
pub struct Answer<T> {
    pub found: Vec<T>,
    /// Names that were probably meant, where nothing was found.
    pub nearest: Vec<String>,
}

impl<T> Answer<T> {
    /// Of what was not asked for.
    pub(crate) fn none() -> Self {
        Answer { found: Vec::new(), nearest: Vec::new() }
    }
}

/// Groups whose instance ID, group ID or case ID is `query`, or all of the repository of that name; when there is none,
/// those whose IDs contain it.
///
/// # Errors
/// When the directory is not a dataset.
pub fn find(directory: &Path, query: &str) -> Result<Answer<FoundGroup>> {
    find_in(&Dataset::open_any(directory)?, query)
}

/// What [`find`] finds, of a dataset that is open.
///
/// # Errors
/// Usage errors: its tables are not as gistmill writes them.
pub(crate) fn find_in(dataset: &Dataset, query: &str) -> Result<Answer<FoundGroup>> {
    let all = all(dataset)?;
    let exact = |group: &FoundGroup| {
        group.group_id == query || group.slug == query || group.instance_id.as_deref() == Some(query)
    };
    let part = |group: &FoundGroup| {
        group.group_id.contains(query) || group.instance_id.as_deref().is_some_and(|id| id.contains(query))
    };
    let mut found: Vec<FoundGroup> = all.iter().filter(|group| exact(group)).cloned().collect();
    if found.is_empty() {
        found = of_case(dataset, &all, query)?;
    }
    if found.is_empty() {
        found = all.iter().filter(|group| part(group)).cloned().collect();
    }
    let nearest = if found.is_empty() { nearest(&all, query) } else { Vec::new() };
    Ok(Answer { found, nearest })
}

/// Every group of a dataset, in its order.
///
/// # Errors
/// Usage errors: its tables are not as gistmill writes them.
pub fn all(dataset: &Dataset) -> Result<Vec<FoundGroup>> {
    let (published, judging) = match dataset.manifest.family.unit() {
        Unit::Group => (instances_by_group(dataset)?, BTreeSet::new()),
        Unit::File => (BTreeMap::new(), judging(dataset)?),
        Unit::Pair => (BTreeMap::new(), kept(dataset)?),
    };
    let groups = dataset.table("groups", &[])?;
    let (slugs, group_ids) = (groups.whole_texts("slug")?, groups.whole_texts("group_id")?);
    let (kept, causes, evidence) = (groups.flags("kept")?, groups.texts("cause")?, groups.texts("evidence")?);
    let (flags, cases, attempts) =
        (groups.lists("flags")?, groups.whole_numbers("n_cases")?, groups.whole_numbers("attempts")?);
    let (worlds, tiers) = (groups.lists("worlds")?, groups.texts("tier")?);
    let (lengths, files) = (groups.numbers("trace_length")?, groups.numbers("unique_files")?);
    let row = |row: usize| FoundGroup {
        slug: slugs[row].to_owned(),
        group_id: group_ids[row].to_owned(),
        instance_id: published.get(&(slugs[row].to_owned(), group_ids[row].to_owned())).cloned(),
        judges: judging.contains(&(slugs[row].to_owned(), group_ids[row].to_owned())),
        kept: kept[row],
        cause: causes[row].filter(|cause| !cause.is_empty()).map(str::to_owned),
        flags: flags[row].clone(),
        evidence: evidence[row].and_then(|text| serde_json::from_str(text).ok()),
        cases: cases[row],
        attempts: attempts[row],
        worlds: worlds[row].clone(),
        trace_length: lengths[row],
        unique_files: files[row],
        tier: tiers[row].filter(|tier| !tier.is_empty()).map(str::to_owned),
        case: None,
    };
    Ok((0..groups.rows()).map(row).collect())
}

/// Instances by slug and group.
fn instances_by_group(dataset: &Dataset) -> Result<BTreeMap<(String, String), String>> {
    let instances = dataset.table("instances", &["slug", "group_id", "instance_id"])?;
    let (slugs, groups) = (instances.whole_texts("slug")?, instances.whole_texts("group_id")?);
    let places = slugs.into_iter().zip(groups).map(|(slug, group)| (slug.to_owned(), group.to_owned()));
    Ok(places.zip(instances.whole_texts("instance_id")?.into_iter().map(str::to_owned)).collect())
}

/// Groups that judge an instance, by slug and ID.
fn judging(dataset: &Dataset) -> Result<BTreeSet<(String, String)>> {
    let groups = dataset.table("groups", &["slug", "group_id", "published"])?;
    let (slugs, ids) = (groups.whole_texts("slug")?, groups.whole_texts("group_id")?);
    let published = groups.flags("published")?;
    let judging = (0..groups.rows()).filter(|at| published[*at]);
    Ok(judging.map(|at| (slugs[at].to_owned(), ids[at].to_owned())).collect())
}

/// Groups that are kept, by slug and ID: of a pair of commits the whole suite judges.
fn kept(dataset: &Dataset) -> Result<BTreeSet<(String, String)>> {
    let groups = dataset.table("groups", &["slug", "group_id", "kept"])?;
    let (slugs, ids) = (groups.whole_texts("slug")?, groups.whole_texts("group_id")?);
    let kept = groups.flags("kept")?;
    let judging = (0..groups.rows()).filter(|at| kept[*at]);
    Ok(judging.map(|at| (slugs[at].to_owned(), ids[at].to_owned())).collect())
}

/// The groups that have a case of that ID.
fn of_case(dataset: &Dataset, all: &[FoundGroup], query: &str) -> Result<Vec<FoundGroup>> {
    let cases = dataset.table("cases", &["case_id", "slug", "group_id"])?;
    let (ids, slugs, groups) =
        (cases.whole_texts("case_id")?, cases.whole_texts("slug")?, cases.whole_texts("group_id")?);
    let places: Vec<(&str, &str)> =
        (0..cases.rows()).filter(|at| ids[*at] == query).map(|at| (slugs[at], groups[at])).collect();
    let asked = all.iter().filter(|group| places.contains(&(group.slug.as_str(), group.group_id.as_str())));
    Ok(asked.map(|group| FoundGroup { case: Some(query.to_owned()), ..group.clone() }).collect())
}

/// Names that are suggested at most.
const SUGGESTED: usize = 3;
/// Longest query for which names are compared: their number times its length is work.
const LONGEST: usize = 300;

/// The names that are most like what was asked for: whole IDs, repositories, and functions by their own names.
fn nearest(all: &[FoundGroup], query: &str) -> Vec<String> {
    let names = all.iter().flat_map(|group| [(group.group_id.as_str(), ':'), (group.slug.as_str(), '\0')]);
    nearest_names(names, query)
}

/// Of names, each with what separates its parts: its last part alone is what people type.
fn nearest_names<'a>(all: impl Iterator<Item = (&'a str, char)>, query: &str) -> Vec<String> {
    if query.len() > LONGEST {
        return Vec::new();
    }
    let last = |id: &str, separator: char| id.rsplit(separator).next().unwrap_or(id).to_owned();
    let wanted = query.to_lowercase();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, separator) in all.filter(|(name, _)| name.len() <= LONGEST) {
        let id = name.to_lowercase();
        let alone = strsim::osa_distance(&last(&wanted, separator), &last(&id, separator));
        names.insert(name, strsim::osa_distance(&wanted, &id).min(alone));
    }
    let allowed = (query.chars().count() / 3).clamp(1, 8);
    let mut near: Vec<(usize, &str)> =
        names.into_iter().filter(|(_, far)| *far <= allowed).map(|(name, far)| (far, name)).collect();
    near.sort_unstable();
    near.into_iter().take(SUGGESTED).map(|(_, name)| name.to_owned()).collect()
}

impl FoundGroup {
    /// The flag that keeps a kept group from being published.
    fn barrier(&self) -> Option<&'static str> {
        flag::barrier(&self.flags).filter(|_| self.state() == "unsolvable")
    }
}

impl Found for FoundGroup {
    fn slug(&self) -> &str {
        &self.slug
    }

    fn name(&self) -> &str {
        &self.group_id
    }

    fn instance_id(&self) -> Option<&str> {
        self.instance_id.as_deref()
    }

    fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    fn flags(&self) -> &[String] {
        &self.flags
    }

    fn tier(&self) -> Option<&str> {
        self.tier.as_deref()
    }

    /// `published` of one that judges, `kept` (and not in the sample), or `unsolvable` (kept, and no sample takes it).
    fn remaining_state(&self) -> &'static str {
        match flag::barrier(&self.flags) {
            _ if self.judges => "published",
            Some(_) => "unsolvable",
            None => "kept",
        }
    }

    /// The cause, or else the state; with the flag that keeps it from being published, where one does.
    fn verdict(&self) -> Cow<'_, str> {
        match (&self.cause, self.barrier()) {
            (Some(cause), _) => cause.into(),
            (None, Some(flag)) => format!("{} ({flag})", self.state()).into(),
            (None, None) => self.state().into(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {}", self.slug, self.group_id)];
        lines.extend(self.case.iter().map(|case| format!("  has the case {case}")));
        lines.push(match (&self.cause, &self.instance_id) {
            (Some(cause), _) => format!("  out: {cause}"),
            (None, Some(id)) => format!("  in: published as {id}"),
            (None, None) if self.judges => "  in: it is among the tests that judge".to_owned(),
            (None, None) => match flag::barrier(&self.flags) {
                Some(flag) => format!(
                    "  kept, and not published: {} ({flag}); `sample_unsolvable = true` in [dataset] publishes such tests",
                    flag::meaning(flag)
                ),
                None => "  kept, but not in the sample".to_owned(),
            },
        });
        let number = |number: i64| usize::try_from(number).unwrap_or_default();
        lines.push(format!(
            "  {}, {}",
            count(number(self.cases), "case"),
            count(number(self.attempts), "attempt")
        ));
        if !self.worlds.is_empty() {
            lines.push(format!("  worlds: {}", self.worlds.join(", ")));
        }
        if let (Some(length), Some(files)) = (self.trace_length, self.unique_files) {
            lines.push(format!("  trace length {length}, {}", count(number(files), "file")));
        }
        lines.extend(self.tier.iter().map(|tier| format!("  tier: {tier}")));
        if !self.flags.is_empty() {
            lines.push(format!("  flags: {}", self.flags.join(", ")));
        }
        if let Some(evidence) = &self.evidence {
            lines.push(format!("  {}", evidence.summary));
            if !evidence.seen.is_empty() {
                lines.push(format!("  seen in {}", evidence.seen.join(", ")));
            }
            lines.extend(evidence.excerpt.lines().map(|line| format!("    {line}")));
            if !evidence.command.is_empty() {
                lines.push(format!("  see it again: {}", evidence.command));
            }
            let is_test = !self.group_id.starts_with(&format!("{ENTRIES}::"));
            if is_test
                && evidence.command.starts_with("gistmill replay ")
                && evidence.command.contains(" --world base ")
            {
                lines.push(format!("  without gistmill: {}", pytest_line(&[&self.group_id])));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::made_up::MadeUp;

    fn dataset() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        crate::testing::write(&directory, &MadeUp::new(&[40]).input()).unwrap();
        (folder, directory)
    }

    #[test]
    fn a_group_is_found_by_each_of_its_names() {
        let (_folder, directory) = dataset();
        let all = all(&Dataset::open(&directory).unwrap()).unwrap();
        let one = all.iter().find(|group| group.instance_id.is_some()).unwrap();
        let cases = Dataset::open(&directory).unwrap().table("cases", &["case_id", "group_id"]).unwrap();
        let (ids, groups) = (cases.whole_texts("case_id").unwrap(), cases.whole_texts("group_id").unwrap());
        let case = (0..cases.rows()).find(|at| groups[*at] == one.group_id).map(|at| ids[at]).unwrap();
        for name in [one.group_id.as_str(), one.instance_id.as_deref().unwrap(), case] {
            let answer = find(&directory, name).unwrap();
            assert!(answer.found.iter().any(|found| found.group_id == one.group_id), "{name}");
        }
        let by_slug = find(&directory, &one.slug).unwrap().found;
        assert_eq!(by_slug.len(), all.iter().filter(|group| group.slug == one.slug).count());
    }

    #[test]
    fn a_kept_group_that_no_sample_takes_says_which_flag_keeps_it_out() {
        let (_folder, directory) = dataset();
        let all = all(&Dataset::open(&directory).unwrap()).unwrap();
        let mut one = all.into_iter().find(|group| group.state() == "kept").unwrap();
        assert!(one.describe().contains("  kept, but not in the sample\n"));
        one.flags.push("names-repository-module".to_owned());
        assert_eq!(one.state(), "unsolvable");
        assert_eq!(one.verdict(), "unsolvable (names-repository-module)");
        let words = "kept, and not published: the test needs a module of the repository by its name (names-repository-module)";
        assert!(one.describe().contains(words), "{}", one.describe());
        one.instance_id = Some("a__b.test-1".to_owned());
        assert_eq!(one.state(), "published");
    }

    #[test]
    fn what_is_not_found_brings_the_nearest_names() {
        let (_folder, directory) = dataset();
        let all = all(&Dataset::open(&directory).unwrap()).unwrap();
        let id = &all[0].group_id;
        let function = id.rsplit("::").next().unwrap();
        let slip = format!("{}x{}", &function[..3], &function[3..]);
        let answer = find(&directory, &slip).unwrap();
        assert!(answer.found.is_empty());
        assert!(answer.nearest.contains(id) && answer.nearest.len() <= SUGGESTED, "{slip}: {answer:?}");
        assert!(find(&directory, "nothing_like_it_at_all").unwrap().nearest.is_empty());
    }
}
