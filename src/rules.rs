//! Rules of `filters/`: what a maintainer says about tests, in words and patterns.
//!
//! A rule flags, drops or keeps. Rules never stand in for running: a pattern in a source text is a suspicion, so the
//! shipped rules only flag, and a `keep` overrides a verdict for the causes that it names and no others.
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
//! min_cases = 2                        # bounds: cases, duration, trace_length, unique_files
//! max_duration = "10s"
//! ```

mod conditions;
mod load;
mod matching;

use std::path::Path;

use serde::Serialize;

use crate::document;
use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::verdict::Cause;
pub use load::Misplaced;
use matching::Match;
pub use matching::Subject;

/// Rule files that are part of the program.
const SHIPPED: [(&str, &str); 5] = [
    ("location.toml", include_str!("../filters/location.toml")),
    ("network.toml", include_str!("../filters/network.toml")),
    ("processes.toml", include_str!("../filters/processes.toml")),
    ("size.toml", include_str!("../filters/size.toml")),
    ("time.toml", include_str!("../filters/time.toml")),
];

/// What happens to a group that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Flag,
    Drop,
    /// Overrides a verdict that has one of these causes.
    Keep(Vec<Cause>),
}

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
}

/// A `keep` rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    pub id: String,
    pub reason: String,
    pub causes: Vec<Cause>,
}

/// What the rules say about one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Id and reason of the first rule that drops it, unless a `keep` names that very rule.
    pub drop: Option<(String, String)>,
    /// Ids of the rules that flag it.
    pub flags: Vec<String>,
    pub keeps: Vec<Keep>,
}

impl Applied {
    /// The rule that overrides a verdict with this cause, if one does.
    pub fn keeps_despite(&self, cause: &Cause) -> Option<&Keep> {
        self.keeps.iter().find(|keep| keep.causes.contains(cause))
    }
}

impl RuleSet {
    /// The rules that come with the program.
    ///
    /// # Panics
    /// Never in a tested build: the texts are constants.
    pub fn shipped() -> Self {
        RuleSet::parse(&SHIPPED).expect("the shipped rules are tested")
    }

    /// Reads every `*.toml` of a folder, in the order of the names.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, and one usage error that lists the problems of all files.
    pub fn load_dir(folder: &Path) -> Result<Self> {
        let entries = fs_err::read_dir(folder).map_err(|error| {
            Error::usage(error.to_string()).with_source(error).with_hint("name a folder with rule files")
        })?;
        let mut paths =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let read = |path: &std::path::PathBuf| Ok((path.display().to_string(), document::read_text(path)?));
        let files = paths.iter().map(read).collect::<Result<Vec<(String, String)>>>()?;
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        RuleSet::parse(&files).map_err(|misplaced| {
            let rendered: Vec<String> = misplaced.iter().map(Misplaced::render).collect();
            Error::usage(rendered.join("\n"))
        })
    }

    /// Checks rule files, given as name and text.
    ///
    /// # Errors
    /// All problems of all files, each with its file.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, Vec<Misplaced>> {
        load::load(files).map(|rules| RuleSet { rules })
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What the rules say about a group. Conditions on something that was not measured do not hold.
    pub fn apply(&self, subject: &Subject<'_>) -> Applied {
        let matching: Vec<&Rule> = self.rules.iter().filter(|rule| rule.matches.holds(subject)).collect();
        let keeps: Vec<Keep> = matching.iter().filter_map(|rule| rule.keep()).collect();
        let applied = Applied { keeps, ..Applied::default() };
        let is_dropped = |rule: &&&Rule| {
            rule.action == Action::Drop && applied.keeps_despite(&Cause::Rule(rule.id.clone())).is_none()
        };
        let drop = matching.iter().find(is_dropped).map(|rule| (rule.id.clone(), rule.reason.clone()));
        let flagging = matching.iter().filter(|rule| rule.action == Action::Flag);
        let flags = flagging.map(|rule| rule.id.clone()).collect();
        Applied { drop, flags, ..applied }
    }

    /// SHA-256 over what the rules say; comments and layout of the files do not count.
    ///
    /// # Panics
    /// Never: rules are plain data.
    pub fn sha256(&self) -> String {
        sha256_hex(&serde_json::to_vec(&self.rules).expect("rules are plain data"))
    }
}

impl Rule {
    fn keep(&self) -> Option<Keep> {
        match &self.action {
            Action::Keep(causes) => {
                Some(Keep { id: self.id.clone(), reason: self.reason.clone(), causes: causes.clone() })
            }
            Action::Flag | Action::Drop => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> RuleSet {
        RuleSet::parse(&[("a.toml", text)]).unwrap()
    }

    fn subject<'a>() -> Subject<'a> {
        Subject { repository: "a/b", path: "tests/test_a.py", name: "TestA::test_b", ..Subject::default() }
    }

    const DROP: &str = "[[rule]]\nid = 'out'\nreason = 'r'\naction = 'drop'\nmatch = {name = 'test_b'}\n";

    #[test]
    fn shipped_rules_flag_and_never_drop() {
        let shipped = RuleSet::shipped();
        assert!(!shipped.rules().is_empty());
        assert!(shipped.rules().iter().all(|rule| rule.action == Action::Flag));
    }

    #[test]
    fn every_file_of_filters_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filters");
        let mut names: Vec<String> = fs_err::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".toml"))
            .collect();
        names.sort();
        assert_eq!(names, SHIPPED.map(|(name, _)| name));
        assert_eq!(RuleSet::load_dir(&folder).unwrap().sha256(), RuleSet::shipped().sha256());
    }

    #[test]
    fn shipped_rules_see_what_they_are_for() {
        let flags =
            |source: &str| RuleSet::shipped().apply(&Subject { source: Some(source), ..subject() }).flags;
        assert_eq!(flags("def test():\n    time.sleep(1)\n"), ["sleeps"]);
        assert_eq!(flags("with urlopen('http://x'):\n"), ["opens-connections"]);
        assert_eq!(flags("path = '/tmp/x'\n"), ["absolute-temporary-path"]);
        assert_eq!(flags("here = Path(__file__).parent\n"), ["reads-own-location"]);
        assert_eq!(flags("subprocess.run(['ls'])\n"), ["starts-processes"]);
        assert_eq!(flags("assert datetime.now().year > 2000\n"), ["reads-wall-clock"]);
        assert!(flags("def test():\n    assert 1 + 1 == 2\n").is_empty());
    }

    #[test]
    fn a_keep_overrides_only_the_causes_that_it_names() {
        let keep = "[[rule]]\nid = 'in'\nreason = 'r'\naction = 'keep'\ncauses = ['fails', 'rule:out']\n\
                    match = {path = 'tests/**'}\n";
        let applied = rules(&format!("{DROP}{keep}")).apply(&subject());
        assert_eq!(applied.drop, None);
        assert!(applied.keeps_despite(&Cause::Fails).is_some());
        assert!(applied.keeps_despite(&Cause::Errors).is_none());
    }

    #[test]
    fn the_first_dropping_rule_is_the_cause() {
        let applied = rules(&format!("{DROP}{}", DROP.replace("out", "other"))).apply(&subject());
        assert_eq!(applied.drop, Some(("out".to_owned(), "r".to_owned())));
    }

    #[test]
    fn the_hash_follows_meaning_and_not_layout() {
        let commented = format!("# a comment\n{DROP}");
        assert_eq!(rules(DROP).sha256(), rules(&commented).sha256());
        assert_ne!(rules(DROP).sha256(), rules(&DROP.replace("test_b", "test_c")).sha256());
    }
}
