//! Facts about runs: how an attempt ended and what it showed. Meaning is in [`super::verdict`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::hash_parts;
use super::spelling::spelling;
use super::world::World;

spelling! {
    /// Outcome of one case, in pytest's words.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Outcome {
        Passed "passed",
        Skipped "skipped",
        XFailed "xfailed",
        XPassed "xpassed",
        Failed "failed",
        Error "error",
    }
}

spelling! {
    /// How much of what attempts show must agree.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Compare, ALL {
        /// The outcome of every case.
        Outcome "outcome",
        /// And the type of every exception.
        Exception "exception",
        /// And everything that is printed.
        #[default]
        Output "output",
    }
}

/// What one case showed in one attempt; texts are normalized.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    pub case_id: String,
    pub outcome: Outcome,
    /// Qualified exception type for anything that raised.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exception: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub stdout: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub stderr: String,
    /// Excerpt of pytest's explanation: evidence, not part of the observation.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
    /// What normalization replaced in stdout and stderr: kind and count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub replaced: BTreeMap<String, u32>,
    pub duration_ms: f64,
    /// What a command showed beside that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<CommandResult>,
}

impl CaseResult {
    /// Whether a command ended as it should without a word, and without anything in a file: a folder, or a file without text, is all
    /// that it may have made. What it deletes is shown.
    pub fn shows_nothing(&self) -> bool {
        let is_empty = |file: &FileChange| {
            let has_nothing = file.text.as_deref().is_none_or(str::is_empty) && file.sha256.is_none();
            file.change == Change::Created && (file.kind == "folder" || (file.kind == "file" && has_nothing))
        };
        let speaks =
            !self.stdout.trim().is_empty() || !self.stderr.trim().is_empty() || self.exception.is_some();
        !speaks && self.command.as_ref().is_some_and(|command| command.files.iter().all(is_empty))
    }
}

/// What an entry showed, beside its output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandResult {
    pub status: i32,
    /// What it changed in the tree, as far as that counts, by path; texts are normalized.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileChange>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wants: Option<Wants>,
}

/// What a command asked for and did not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wants {
    Input,
    Terminal,
}

/// One path of the tree that a command made, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    pub path: String,
    /// `created`, `changed` or `deleted`.
    pub change: Change,
    /// `file`, `folder`, `link` or another.
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub executable: Option<bool>,
    /// What a text has, or where a link leads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Of what is long, or not text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256: Option<String>,
}

spelling! {
    /// What became of a path.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Change {
        Created "created",
        Changed "changed",
        Deleted "deleted",
    }
}

impl FileChange {
    /// All of it in one text.
    pub fn line(&self) -> String {
        let executable = if self.executable == Some(true) { ", executable" } else { "" };
        let content = self.text.as_deref().or(self.sha256.as_deref()).unwrap_or_default();
        format!("{} {} ({}{executable}): {content}", self.change.as_str(), self.path, self.kind)
    }
}

/// How the process of an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Exit {
    /// All cases ran (or pytest stopped by itself) and the report is whole.
    Finished,
    /// The process left before the report was whole.
    Exited { code: i32 },
    /// The process was killed by a signal.
    Signaled { signal: i32 },
    /// The file could not be collected in this attempt; what pytest said is in the raw output.
    NotCollected,
    /// What it reported cannot be used; the raw output says why.
    Unusable,
    /// Over a limit; `case` is the case that was running.
    TimedOut { scope: TimeScope, case: Option<String> },
}

/// Which limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeScope {
    Case,
    Group,
}

/// How an attempt was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A fork of the fork tree.
    Fork,
    /// The literal entry command in a fresh process.
    Cold,
}

/// One isolated run of one group in one world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub group_id: String,
    /// Name of the world, `base` for the reference conditions.
    pub world: World,
    /// 0-based number of this attempt among those of the group.
    pub number: u32,
    pub method: Method,
    /// Which fresh interpreter made it (attempts of one round share imports).
    pub round: u32,
    pub exit: Exit,
    pub cases: Vec<CaseResult>,
    /// Attempted connections outside the loopback, `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub connections: Vec<String>,
    /// Processes that were still there when the attempt ended, and were killed.
    pub leftover: u32,
    /// Output that bypassed pytest's capture, normalized.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub raw_output: String,
    pub duration_ms: f64,
    /// Processor time of its processes, in milliseconds, as far as it is known.
    pub processor_ms: f64,
    /// The most memory that one of its processes had at a time, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
    /// When it was written down, in milliseconds since 1970; 0 until it is.
    pub noted_at: u64,
}

impl Attempt {
    /// Says that it ended at `now`, in milliseconds since 1970, where that was not said before.
    pub fn note(&mut self, now: i64) {
        if self.noted_at == 0 {
            self.noted_at = u64::try_from(now).unwrap_or(0);
        }
    }

    /// Whether it was made in the reference conditions.
    pub fn is_base(&self) -> bool {
        self.world == World::Base
    }

    /// Whether the fork tree made it in the reference conditions.
    pub fn is_reference(&self) -> bool {
        self.method == Method::Fork && self.is_base()
    }

    /// SHA-256 over what must agree between attempts: exit, outcomes, exception types, normalized output.
    pub fn observation_hash(&self) -> String {
        self.shown(Compare::Output)
    }

    /// SHA-256 over exit and outcomes only.
    pub fn outcome_hash(&self) -> String {
        self.shown(Compare::Outcome)
    }

    /// SHA-256 over as much of the observation as must agree.
    ///
    /// In which order cases ran is not part of it: parameters may come out of a set, and the entry command promises the
    /// cases, not their order. What one case leaves for the next one shows in what they do.
    pub fn shown(&self, compare: Compare) -> String {
        let mut parts = vec![format!("{:?}", self.exit)];
        let mut cases: Vec<&CaseResult> = self.cases.iter().collect();
        cases.sort_by(|one, other| one.case_id.cmp(&other.case_id));
        for case in cases {
            parts.push(case.case_id.clone());
            parts.push(case.outcome.as_str().to_owned());
            if compare >= Compare::Exception {
                parts.push(case.exception.clone().unwrap_or_default());
            }
            if let Some(command) = &case.command {
                parts.push(format!("status {}", command.status));
            }
            if compare >= Compare::Output {
                parts.push(case.stdout.clone());
                parts.push(case.stderr.clone());
                parts.extend(case.command.iter().flat_map(|command| &command.files).map(FileChange::line));
            }
        }
        // Why a file cannot be collected is said by a traceback, which may show anything, and so may a malformed report.
        if compare >= Compare::Output && !matches!(self.exit, Exit::NotCollected | Exit::Unusable) {
            parts.push(self.raw_output.clone());
        }
        hash_parts(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempts::attempt;

    fn printed(stdout: &str) -> Attempt {
        attempt(&World::Base, Method::Fork, 0, Outcome::Passed, stdout)
    }

    #[test]
    fn each_setting_compares_what_it_names() {
        let base = printed("a");
        let differing = |change: &dyn Fn(&mut Attempt)| {
            let mut other = base.clone();
            change(&mut other);
            Compare::ALL.map(|compare| other.shown(compare) != base.shown(compare))
        };
        assert_eq!(differing(&|_| ()), [false, false, false]);
        assert_eq!(differing(&|other| other.cases[0].stderr = "b".into()), [false, false, true]);
        assert_eq!(differing(&|other| other.raw_output = "b".into()), [false, false, true]);
        assert_eq!(differing(&|other| other.cases[0].exception = Some("E".into())), [false, true, true]);
        assert_eq!(differing(&|other| other.cases[0].outcome = Outcome::XPassed), [true, true, true]);
        let left = |status: i32, files: Vec<FileChange>| CommandResult { status, files, wants: None };
        assert_eq!(
            differing(&|other| other.cases[0].command = Some(left(3, Vec::new()))),
            [true, true, true]
        );
        let file = FileChange {
            path: "a".into(),
            change: Change::Created,
            kind: "file".into(),
            executable: None,
            text: Some("b".into()),
            sha256: None,
        };
        let command = |files| Attempt {
            cases: vec![CaseResult { command: Some(left(0, files)), ..base.cases[0].clone() }],
            ..base.clone()
        };
        let [with, without] = [vec![file], Vec::new()].map(command);
        assert_eq!(with.outcome_hash(), without.outcome_hash());
        assert_ne!(with.observation_hash(), without.observation_hash());
        assert_eq!(differing(&|other| other.exit = Exit::Exited { code: 1 }), [true, true, true]);
    }

    #[test]
    fn what_shows_nothing_prints_nothing_and_leaves_at_most_what_is_empty() {
        let file = |kind: &str, change: Change, text: Option<&str>, sha256: Option<&str>| FileChange {
            path: "a".into(),
            change,
            kind: kind.into(),
            executable: None,
            text: text.map(str::to_owned),
            sha256: sha256.map(str::to_owned),
        };
        let shows = |stdout: &str, files: Vec<FileChange>| {
            let command = Some(CommandResult { status: 0, files, wants: None });
            !CaseResult { command, ..printed(stdout).cases.remove(0) }.shows_nothing()
        };
        assert!(!printed("").cases[0].shows_nothing(), "a test is no command");
        assert!(!shows(" \n", Vec::new()) && shows("a", Vec::new()));
        let empty = file("file", Change::Created, Some(""), None);
        assert!(!shows("", vec![file("folder", Change::Created, None, None), empty]));
        assert!(shows("", vec![file("file", Change::Created, Some("x"), None)]));
        assert!(shows("", vec![file("file", Change::Created, None, Some("00"))]));
        assert!(shows("", vec![file("link", Change::Created, Some("b"), None)]));
        assert!(shows("", vec![file("file", Change::Deleted, None, None)]));
    }

    #[test]
    fn the_order_of_cases_is_not_compared_and_what_each_one_shows_is() {
        let case =
            |id: &str, stdout: &str| CaseResult { case_id: id.to_owned(), ..printed(stdout).cases.remove(0) };
        let with = |cases: Vec<CaseResult>| Attempt { cases, ..printed("") }.observation_hash();
        let one = with(vec![case("t[a]", "1"), case("t[b]", "2")]);
        assert_eq!(with(vec![case("t[b]", "2"), case("t[a]", "1")]), one);
        assert_ne!(with(vec![case("t[b]", "1"), case("t[a]", "2")]), one);
    }
}
