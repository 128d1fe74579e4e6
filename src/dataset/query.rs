//! Looking a group up in a dataset: what `gistmill show` prints.

use std::path::Path;

use serde::Serialize;

use super::Dataset;
use crate::error::Result;
use crate::record::verdict::Evidence;
use crate::terminal::one_line;

/// A group of a dataset with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    pub slug: String,
    pub group_id: String,
    pub instance_id: Option<String>,
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
}

/// Groups whose instance id or group id is `query`; when there is none, those that contain it.
///
/// # Errors
/// When the directory is no dataset.
pub fn find(directory: &Path, query: &str) -> Result<Vec<Found>> {
    let all = read(directory)?;
    let exact = |group: &&Found| group.group_id == query || group.instance_id.as_deref() == Some(query);
    let found: Vec<Found> = all.iter().filter(exact).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let part = |group: &Found| {
        group.group_id.contains(query) || group.instance_id.as_deref().is_some_and(|id| id.contains(query))
    };
    Ok(all.into_iter().filter(part).collect())
}

fn read(directory: &Path) -> Result<Vec<Found>> {
    let dataset = Dataset::open(directory)?;
    let instances = dataset.table("instances", &["slug", "group_id", "instance_id"])?;
    let ids = instances.whole_texts("instance_id")?;
    let places = instances.whole_texts("slug")?.into_iter().zip(instances.whole_texts("group_id")?);
    let published: std::collections::BTreeMap<_, _> = places.zip(ids).collect();
    let groups = dataset.table("groups", &[])?;
    let (slugs, group_ids) = (groups.whole_texts("slug")?, groups.whole_texts("group_id")?);
    let (kept, causes, evidence) = (groups.flags("kept")?, groups.texts("cause")?, groups.texts("evidence")?);
    let (flags, cases, attempts) =
        (groups.lists("flags")?, groups.whole_numbers("n_cases")?, groups.whole_numbers("attempts")?);
    let worlds = groups.lists("worlds")?;
    let (lengths, files) = (groups.numbers("trace_length")?, groups.numbers("unique_files")?);
    let row = |row: usize| Found {
        slug: slugs[row].to_owned(),
        group_id: group_ids[row].to_owned(),
        instance_id: published.get(&(slugs[row], group_ids[row])).map(|id| (*id).to_owned()),
        kept: kept[row],
        cause: causes[row].filter(|cause| !cause.is_empty()).map(str::to_owned),
        flags: flags[row].clone(),
        evidence: evidence[row].and_then(|text| serde_json::from_str(text).ok()),
        cases: cases[row],
        attempts: attempts[row],
        worlds: worlds[row].clone(),
        trace_length: lengths[row],
        unique_files: files[row],
    };
    Ok((0..groups.rows()).map(row).collect())
}

impl Found {
    /// `published`, `kept`, or the cause.
    pub fn verdict(&self) -> &str {
        match (&self.cause, &self.instance_id) {
            (Some(cause), _) => cause,
            (None, Some(_)) => "published",
            (None, None) => "kept",
        }
    }

    /// All that is known, for people; a line of it stays a line, whatever the dataset says.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for line in self.lines() {
            text.push_str(&one_line(&line));
            text.push('\n');
        }
        text
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {}", self.slug, self.group_id)];
        lines.push(match (&self.cause, &self.instance_id) {
            (Some(cause), _) => format!("  out: {cause}"),
            (None, Some(id)) => format!("  in: published as {id}"),
            (None, None) => "  kept, but not in the sample".to_owned(),
        });
        lines.push(format!("  {} cases, {} attempts", self.cases, self.attempts));
        if !self.worlds.is_empty() {
            lines.push(format!("  worlds: {}", self.worlds.join(", ")));
        }
        if let (Some(length), Some(files)) = (self.trace_length, self.unique_files) {
            lines.push(format!("  trace length {length}, {files} files"));
        }
        if !self.flags.is_empty() {
            lines.push(format!("  flags: {}", self.flags.join(", ")));
        }
        if let Some(evidence) = &self.evidence {
            lines.push(format!("  {}", evidence.summary));
            if !evidence.seen.is_empty() {
                lines.push(format!("  seen in {}", evidence.seen.join(", ")));
            }
            lines.extend(evidence.excerpt.lines().map(|line| format!("    {line}")));
            lines.push(format!("  see it again: {}", evidence.command));
        }
        lines
    }
}
