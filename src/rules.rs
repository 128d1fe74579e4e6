//! Rules of `filters/`: what a maintainer says about tests, in words and patterns.
//!
//! A rule flags, drops or keeps. Rules never replace running: a pattern in a source text is a suspicion, so the
//! shipped rules of that kind only flag, and a `keep` overrides a verdict for the causes that it names and no others.
//!
//! ```toml
//! [[rule]]
//! id = "sleeps"                        # unique; the cause of a drop is `rule:<id>`
//! reason = "…"                         # why, for the person who asks
//! action = "flag"                      # or "drop", or "keep" with causes = ["fails", …]
//!
//! [rule.match]                         # all of these must hold; a list holds when one of its entries does
//! path = "tests/**/test_*.py"          # globs: path, marker, fixture, repository
//! source = 'time\.sleep\('             # regular expressions: name (`Class::function`), source
//! calls = ["socket.*", "time.sleep"]   # globs over dotted names: what the test calls (`calls`) or reads (`uses`),
//! node = ["AsyncWith", "Lambda"]       # and kinds of syntax nodes, in the test and what it uses in its own file
//! min_cases = 2                        # bounds: cases, duration, trace_length, unique_files
//! max_duration = "10s"
//! ```
//!
//! How names are resolved is said in [`crate::python_source`]. A user's own rules join those that come with the
//! program; one with the id of a shipped rule takes its place.

mod conditions;
mod load;
mod matching;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::document;
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::rule::RuleUse;
use crate::record::verdict::Cause;
pub use load::Misplaced;
use matching::Match;
pub use matching::{Pattern, Subject};

/// Rule files that are part of the program.
const SHIPPED: [(&str, &str); 5] = [
    ("location.toml", include_str!("../filters/location.toml")),
    ("network.toml", include_str!("../filters/network.toml")),
    ("processes.toml", include_str!("../filters/processes.toml")),
    ("size.toml", include_str!("../filters/size.toml")),
    ("time.toml", include_str!("../filters/time.toml")),
];

/// A file of the same folder that has no rules: words for the search for commits.
const WORDS: &str = "commits.toml";

/// What happens to a group that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Flag,
    Drop,
    /// Overrides a verdict that has one of these causes.
    Keep(Vec<Cause>),
}

/// The JSON schema of a rule file.
pub(crate) const SCHEMA: &str = include_str!("rules/schema.json");

/// One rule.
#[derive(Debug, Clone, Serialize)]
pub struct Rule {
    pub id: String,
    pub reason: String,
    pub action: Action,
    #[serde(rename = "match")]
    matches: Match,
}

/// Rules in the order of their files and of their places in them.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// SHA-256 of every rule file by its name: `built-in/…`, or `<folder>/…`.
    files: BTreeMap<String, String>,
}

/// A `keep` rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    pub id: String,
    pub causes: Vec<Cause>,
}

/// What the rules say about one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Ids of all rules that match it.
    pub matched: Vec<String>,
    /// Id and reason of the rules that drop it.
    pub drops: Vec<(String, String)>,
    /// Ids of the rules that flag it.
    pub flags: Vec<String>,
    pub keeps: Vec<Keep>,
}

/// What becomes of a measured verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Unchanged,
    Drop {
        id: String,
        reason: String,
    },
    /// Ids of the `keep` rules without which it would be dropped.
    Keep {
        by: Vec<String>,
    },
}

impl Applied {
    /// What the rules make of a verdict with this cause; None: what was measured keeps it.
    ///
    /// A measured cause stays unless a `keep` names it. What is kept then can be dropped by the first rule that drops
    /// it and that no `keep` names.
    pub fn decide(&self, cause: Option<&Cause>) -> Decision {
        let mut by = Vec::new();
        if let Some(cause) = cause {
            match self.keeps_despite(cause) {
                Some(keep) => by.push(keep.id.clone()),
                None => return Decision::Unchanged,
            }
        }
        for (id, reason) in &self.drops {
            match self.keeps_despite(&Cause::Rule(id.clone())) {
                Some(keep) if by.contains(&keep.id) => {}
                Some(keep) => by.push(keep.id.clone()),
                None => return Decision::Drop { id: id.clone(), reason: reason.clone() },
            }
        }
        if by.is_empty() { Decision::Unchanged } else { Decision::Keep { by } }
    }

    /// The rule that overrides a verdict with this cause, if one does.
    fn keeps_despite(&self, cause: &Cause) -> Option<&Keep> {
        self.keeps.iter().find(|keep| keep.causes.contains(cause))
    }
}

impl RuleSet {
    /// The rules that come with the program.
    ///
    /// # Panics
    /// Never in a tested build: the texts are constants.
    pub fn shipped() -> Self {
        let named = SHIPPED.map(|(name, text)| (format!("built-in/{name}"), text));
        let files = named.each_ref().map(|(name, text)| (name.as_str(), *text));
        RuleSet::parse(&files).expect("the shipped rules are tested")
    }

    /// These rules with those of every `*.toml` of a folder, in the order of the names. A rule of the folder takes the
    /// place of the one that has its id.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or has no rule file, and one usage error that lists the problems of
    /// all files.
    pub fn with_folder(self, folder: &Path) -> Result<Self> {
        let paths = rule_files(folder)?;
        if paths.is_empty() {
            return Err(Error::usage(format!("{} has no rule file", folder.display()))
                .with_hint("rules are in files that end in `.toml`"));
        }
        let read = |path: &PathBuf| Ok((path.display().to_string(), document::read_text(path)?));
        let files = paths.iter().map(read).collect::<Result<Vec<(String, String)>>>()?;
        let borrowed: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let own = load::load(&borrowed, &self.rules).map_err(|misplaced| {
            let rendered: Vec<String> = misplaced.iter().map(Misplaced::render).collect();
            Error::usage(document::first_ones(rendered))
        })?;
        let mut joined = self;
        for rule in own {
            match joined.rules.iter_mut().find(|known| known.id == rule.id) {
                Some(known) => *known = rule,
                None => joined.rules.push(rule),
            }
        }
        let place = folder.file_name().map_or_else(|| "rules".into(), |name| name.to_string_lossy());
        for (path, (_, text)) in paths.iter().zip(&files) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            joined.files.insert(format!("{place}/{name}"), sha256_hex(text.as_bytes()));
        }
        Ok(joined)
    }

    /// These rules but one.
    #[must_use]
    pub(crate) fn without(mut self, id: &str) -> Self {
        self.rules.retain(|rule| rule.id != id);
        self
    }

    /// Checks rule files, given as name and text.
    ///
    /// # Errors
    /// All problems of all files, each with its file.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, Vec<Misplaced>> {
        let rules = load::load(files, &[])?;
        let hashed = files.iter().map(|(name, text)| ((*name).to_owned(), sha256_hex(text.as_bytes())));
        Ok(RuleSet { rules, files: hashed.collect() })
    }

    /// Every rule by its id, before anything matched it.
    pub fn unused(&self) -> BTreeMap<String, RuleUse> {
        let unused = |rule: &Rule| (rule.id.clone(), RuleUse::unused(rule.action.as_str()));
        self.rules.iter().map(unused).collect()
    }

    /// SHA-256 of every rule file by its name.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Whether a rule asks for what only a test's source text can show.
    pub fn read_code(&self) -> bool {
        self.rules.iter().any(|rule| rule.matches.reads_code())
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What the rules say about a group. Conditions on something that was not measured do not hold.
    pub fn apply(&self, subject: &Subject<'_>) -> Applied {
        let mut applied = Applied::default();
        for rule in self.rules.iter().filter(|rule| rule.matches.holds(subject)) {
            applied.matched.push(rule.id.clone());
            match &rule.action {
                Action::Flag => applied.flags.push(rule.id.clone()),
                Action::Drop => applied.drops.push((rule.id.clone(), rule.reason.clone())),
                Action::Keep(causes) => {
                    applied.keeps.push(Keep { id: rule.id.clone(), causes: causes.clone() });
                }
            }
        }
        applied
    }

    /// SHA-256 over what the rules say; comments and layout of the files do not count.
    ///
    /// # Panics
    /// Never: rules are plain data.
    pub fn sha256(&self) -> String {
        sha256_hex(&serde_json::to_vec(&self.rules).expect("rules are plain data"))
    }
}

impl Action {
    /// As it is written in a rule file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Action::Flag => "flag",
            Action::Drop => "drop",
            Action::Keep(_) => "keep",
        }
    }
}

/// The rule files of a folder, in the order of their names.
///
/// # Errors
/// When the folder cannot be read.
pub fn rule_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(folder).map_err(|error| {
        Error::usage(error.to_string()).with_source(error).with_hint(
            "name a folder with rule files; a folder `filters` beside the configuration counts as one",
        )
    })?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| {
        path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with(WORDS)
    });
    paths.sort();
    match paths.iter().find(|path| !path.is_file()) {
        Some(odd) => Err(Error::usage(format!("{} is not a file with rules", odd.display()))
            .with_hint("make it one, or take it away")),
        None => Ok(paths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python_source::SourceFile;
    use crate::testing::attempts::group_of;

    fn rules(text: &str) -> RuleSet {
        RuleSet::parse(&[("a.toml", text)]).unwrap()
    }

    fn subject<'a>() -> Subject<'a> {
        Subject { repository: "a/b", path: "tests/test_a.py", name: "TestA::test_b", ..Subject::default() }
    }

    const DROP: &str = "[[rule]]\nid = 'out'\nreason = 'r'\naction = 'drop'\nmatch = {name = 'test_b'}\n";

    #[test]
    fn shipped_rules_flag_and_drop_only_what_is_too_small_for_a_task() {
        let shipped = RuleSet::shipped();
        assert!(shipped.rules().len() > 5);
        let drops = shipped.rules().iter().filter(|rule| rule.action != Action::Flag);
        assert_eq!(
            drops.map(|rule| rule.id.as_str()).collect::<Vec<_>>(),
            ["trivial-trace", "trivial-command"]
        );
        let decided = |length: Option<u64>| {
            let subject = Subject { trace_length: length, ..subject() };
            matches!(shipped.apply(&subject).decide(None), Decision::Drop { .. })
        };
        assert_eq!([Some(1), Some(2), Some(3), None].map(decided), [true, true, false, false]);
    }

    #[test]
    fn every_file_of_filters_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filters");
        let names: Vec<String> = rule_files(&folder)
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, SHIPPED.map(|(name, _)| name));
        let (shipped, loaded) = (RuleSet::shipped(), RuleSet::default().with_folder(&folder).unwrap());
        assert_eq!(loaded.sha256(), shipped.sha256());
        assert!(loaded.files().values().eq(shipped.files().values()));
        assert!(loaded.files().keys().all(|name| name.starts_with("filters/")));
        // Next to the program's own, they change nothing.
        assert_eq!(RuleSet::shipped().with_folder(&folder).unwrap().sha256(), shipped.sha256());
    }

    /// Flags of the shipped rules for a test in this text.
    fn flags(text: &str) -> Vec<String> {
        let file = SourceFile::parse("tests/test_a.py", text).unwrap();
        let group = group_of("tests/test_a.py", "test");
        let code = file.code(&group).unwrap();
        RuleSet::shipped().apply(&Subject { code: Some(&code), ..Subject::of("a/b", &group) }).flags
    }

    #[test]
    fn shipped_rules_see_what_they_are_for() {
        let test = |imports: &str, body: &str| flags(&format!("{imports}\ndef test():\n    {body}\n"));
        assert_eq!(test("import time", "time.sleep(1)"), ["sleeps"]);
        assert_eq!(test("from time import sleep as nap", "nap(1)"), ["sleeps"]);
        assert_eq!(test("from urllib.request import urlopen", "urlopen('http://x')"), ["opens-connections"]);
        assert_eq!(test("import socket", "s = socket.socket(); s.connect('x')"), ["opens-connections"]);
        assert_eq!(test("import requests", "requests.get('http://x')"), ["opens-connections"]);
        assert_eq!(test("", "path = '/tmp/x'"), ["absolute-temporary-path"]);
        assert_eq!(
            test("from pathlib import Path\nHERE = Path(__file__)", "HERE.parent"),
            ["reads-own-location"]
        );
        assert_eq!(test("import subprocess as sp", "sp.run(['ls'])"), ["starts-processes"]);
        assert_eq!(test("import os", "os.fork()"), ["starts-processes"]);
        assert_eq!(test("from datetime import datetime", "datetime.now()"), ["reads-wall-clock"]);
    }

    #[test]
    fn shipped_rules_see_what_helpers_do_and_not_what_is_only_written_alike() {
        let helper = "import time\ndef helper():\n    time.sleep(1)\ndef test():\n    helper()\n";
        assert_eq!(flags(helper), ["sleeps"]);
        assert_eq!(flags(&helper.replace("    helper()", "    pass")), [""; 0]);
        let innocent = "\
def test(subprocess):
    time = [1]
    # time.sleep(1)
    assert 'subprocess.run(' not in 'datetime.now()'
    requests = {}
    requests.get(1)
";
        assert_eq!(flags(innocent), [""; 0]);
    }

    #[test]
    fn a_keep_overrides_only_the_causes_that_it_names() {
        let keep = "[[rule]]\nid = 'in'\nreason = 'r'\naction = 'keep'\ncauses = ['fails', 'rule:out']\n\
                    match = {path = 'tests/**'}\n";
        let applied = rules(&format!("{DROP}{keep}")).apply(&subject());
        let kept = Decision::Keep { by: vec!["in".to_owned()] };
        assert_eq!(applied.decide(None), kept);
        assert_eq!(applied.decide(Some(&Cause::Fails)), kept);
        assert_eq!(applied.decide(Some(&Cause::Errors)), Decision::Unchanged);
        assert_eq!(applied.matched, ["out", "in"]);
        // Without the drop there is nothing to override in a group that is kept.
        assert_eq!(
            rules(&keep.replace(", 'rule:out'", "")).apply(&subject()).decide(None),
            Decision::Unchanged
        );
    }

    #[test]
    fn what_a_keep_brings_back_another_rule_can_still_drop() {
        let keep =
            "[[rule]]\nid = 'in'\nreason = 'r'\naction = 'keep'\ncauses = ['fails']\nmatch = {name = 'b'}\n";
        let applied = rules(&format!("{DROP}{keep}")).apply(&subject());
        let dropped = Decision::Drop { id: "out".to_owned(), reason: "r".to_owned() };
        assert_eq!(applied.decide(Some(&Cause::Fails)), dropped);
    }

    #[test]
    fn the_first_dropping_rule_is_the_cause() {
        let applied = rules(&format!("{DROP}{}", DROP.replace("out", "other"))).apply(&subject());
        let dropped = Decision::Drop { id: "out".to_owned(), reason: "r".to_owned() };
        assert_eq!(applied.decide(None), dropped);
        assert_eq!(applied.matched, ["out", "other"]);
    }

    #[test]
    fn the_hash_follows_meaning_and_not_layout() {
        let commented = format!("# a comment\n{DROP}");
        assert_eq!(rules(DROP).sha256(), rules(&commented).sha256());
        assert_ne!(rules(DROP).sha256(), rules(&DROP.replace("test_b", "test_c")).sha256());
        assert_ne!(rules(DROP).files(), rules(&commented).files());
    }

    #[test]
    fn own_rules_join_the_shipped_ones_and_replace_those_with_their_id() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("mine");
        fs_err::create_dir(&own).unwrap();
        let text = DROP.replace("'out'", "'many-cases'");
        fs_err::write(own.join("b.toml"), &text).unwrap();
        fs_err::write(own.join("a.toml"), DROP).unwrap();
        fs_err::write(own.join(WORDS), "plus_weak = []").unwrap();
        fs_err::write(own.join("notes.txt"), "no rule").unwrap();
        let joined = RuleSet::shipped().with_folder(&own).unwrap();
        assert_eq!(joined.rules().len(), RuleSet::shipped().rules().len() + 1);
        let uses = joined.unused();
        assert_eq!(uses["many-cases"], RuleUse::unused("drop"));
        assert_eq!(uses["sleeps"], RuleUse::unused("flag"));
        assert_eq!(joined.files()["mine/b.toml"], sha256_hex(text.as_bytes()));
        assert!(joined.files().contains_key("built-in/size.toml"));
    }

    #[test]
    fn a_folder_without_rules_and_a_bad_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let load = || RuleSet::shipped().with_folder(folder.path()).unwrap_err().to_string();
        assert!(load().ends_with("has no rule file"), "{}", load());
        fs_err::write(folder.path().join("a.toml"), DROP.replace("drop", "dorp")).unwrap();
        assert!(load().contains("a.toml:4: unknown action `dorp`"), "{}", load());
        assert!(RuleSet::shipped().with_folder(Path::new("/nowhere")).is_err());
    }
}
