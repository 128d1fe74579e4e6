//! From what pytest could not find to the distribution that has it. Pure.
//!
//! A repository, or what it depends on, decides which names appear here. So nothing is ever asked of an index because
//! something bears that name: only the names of [`crate::environment::declared::known_names`] are. All else is told to the user.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::environment::GateReport;
use crate::environment::declared::known_names::{Kind, names};
use crate::environment::declared::requirements_files::pattern;
use crate::environment::declared::survey::Survey;
use crate::error::{Error, Result};
use crate::record::environment::{Guess, Undeclared, missed};
use crate::requirement::{normalize, parse};

/// The note of an environment whose tree is larger than what is looked at.
pub const CUT: &str =
    "the tree is too large to look through all of it for what it provides itself: nothing was guessed";

/// More findings than these are nobody's to read.
const MOST: usize = 200;

/// What collection could not find: what to try, and what only the user can say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub guesses: BTreeSet<Guess>,
    pub undeclared: BTreeSet<Undeclared>,
}

/// Looks at what collecting showed. What the tree itself provides is never guessed, nor is anything when not all of the
/// tree could be looked at.
pub fn find(report: &GateReport, survey: &Survey) -> Findings {
    let mut findings = Findings::default();
    for module in &report.missing_modules {
        add_import(module, survey, &mut findings);
    }
    if let Some(text) = &report.failure {
        add_refusal(text, survey, &mut findings);
    }
    for guess in report.implied.iter().filter(|_| !survey.is_cut) {
        findings.guess(&guess.distribution, guess.wanted.clone());
    }
    findings
}

/// What errors of collection mean that do not name what is missing: the words of an error, the distribution to try, and
/// why. A project whose tests are run by `manage.py test` has Django set up by that; for pytest, pytest-django does it.
const IMPLIED: [(&str, &str, &str); 3] = [
    ("django.core.exceptions.AppRegistryNotReady: ", "pytest-django", "tests of Django that nothing sets up"),
    (
        "django.core.exceptions.ImproperlyConfigured: ",
        "pytest-django",
        "tests of Django that nothing sets up",
    ),
    ("numpy.core.multiarray failed to import", "numpy", "an extension that is compiled against numpy"),
];

/// What to try because of the text of an error of collection.
pub fn implied(text: &str) -> impl Iterator<Item = Guess> {
    IMPLIED.iter().filter(move |(words, _, _)| text.contains(words)).map(|(_, distribution, wanted)| Guess {
        distribution: (*distribution).to_owned(),
        wanted: (*wanted).to_owned(),
    })
}

/// What is still missing after a collection, guessed at or not.
pub fn undeclared(report: &GateReport, survey: &Survey) -> Vec<Undeclared> {
    let Findings { guesses, mut undeclared } = find(report, survey);
    undeclared.extend(guesses.into_iter().map(|guess| Undeclared { wanted: guess.wanted, place: None }));
    undeclared.into_iter().collect()
}

/// The trouble of a repository of which nothing can be collected because of this.
///
/// # Errors
/// When anything is missing.
pub fn refuse(undeclared: &[Undeclared]) -> Result<()> {
    let words = missed(undeclared);
    if words.is_empty() {
        Ok(())
    } else {
        Err(Error::repository("nothing can be collected").with_hint(words.join("; ")))
    }
}

/// The distribution to try for a missing module; none for a name that not everybody knows.
pub fn distribution(module: &str) -> Option<&'static str> {
    let known = |name: &str| names(Kind::Import).find(|(import, _)| *import == name).map(|(_, found)| found);
    let mut parts = module.split('.');
    let top = parts.next().unwrap_or_default();
    let two = parts.next().map(|second| format!("{top}.{second}"));
    two.as_deref().and_then(known).or_else(|| known(top))
}

fn add_import(module: &str, survey: &Survey, into: &mut Findings) {
    // A name is a repository's to choose, and is shown.
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if module.len() > 100 || !module.split('.').all(is_name) {
        return;
    }
    let place = survey.modules.get(module.split('.').next().unwrap_or(module));
    match distribution(module).filter(|_| place.is_none() && !survey.is_cut) {
        Some(found) => into.guess(found, format!("import {module}")),
        None => into.tell(format!("import {module}"), place.cloned()),
    }
}

/// Adds what pytest's refusal to start asks for.
fn add_refusal(text: &str, survey: &Survey, into: &mut Findings) {
    static UNRECOGNIZED: LazyLock<Regex> = LazyLock::new(|| pattern(r"unrecognized arguments?: ([^\n]+)"));
    static REQUIRED: LazyLock<Regex> = LazyLock::new(|| pattern(r"Missing required plugins: ([^\n]+)"));
    for arguments in UNRECOGNIZED.captures_iter(text) {
        for word in arguments[1].split_whitespace() {
            add_option(word, survey, into);
        }
    }
    for required in REQUIRED.captures_iter(text) {
        for plugin in required[1].split(',') {
            add_plugin(plugin, survey, into);
        }
    }
    for module in modules(text) {
        add_import(module, survey, into);
    }
}

/// Modules that a text says are not there. pytest has words of its own for those that a filter of warnings names.
pub(in crate::environment) fn modules(text: &str) -> impl Iterator<Item = &str> {
    static MODULE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(?:No module named|Failed to import filter module) ["']([\w.]+)["']"#));
    MODULE.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str()))
}

/// An option that pytest does not know: its plugin, or a word for the user. What is no option is the value of one.
fn add_option(word: &str, survey: &Survey, into: &mut Findings) {
    static OPTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:--[a-z][a-z0-9-]{0,60}|-[A-Za-z])"));
    let Some(option) = OPTION.find(word) else { return };
    // The longest option that fits: `--cov-report` is `--cov`'s.
    let fits = names(Kind::Option).filter(|(known, _)| {
        word.starts_with(known)
            && (known.starts_with("--") || word[known.len()..].chars().all(|c| c.is_ascii_digit()))
    });
    match fits.max_by_key(|(known, _)| known.len()).filter(|_| !survey.is_cut) {
        Some((_, plugin)) => into.guess(plugin, option.as_str().to_owned()),
        None => into.tell(option.as_str().to_owned(), None),
    }
}

/// A plugin that pytest's `required_plugins` names, perhaps with a version.
fn add_plugin(text: &str, survey: &Survey, into: &mut Findings) {
    let Some(requirement) = parse(text) else { return };
    let name = normalize(requirement.name.as_ref());
    let is_plugin = names(Kind::Option).chain(names(Kind::Plugin)).any(|(_, plugin)| plugin == name);
    let wanted = format!("required plugin {name}");
    let versions = match &requirement.version_or_url {
        Some(pep508_rs::VersionOrUrl::VersionSpecifier(versions)) => versions.to_string(),
        Some(pep508_rs::VersionOrUrl::Url(_)) => return into.tell(wanted, None),
        None => String::new(),
    };
    if is_plugin && !survey.is_cut {
        into.guess(&format!("{name}{versions}"), wanted);
    } else {
        into.tell(wanted, None);
    }
}

impl Findings {
    fn guess(&mut self, distribution: &str, wanted: String) {
        if self.guesses.len() < MOST {
            self.guesses.insert(Guess { distribution: distribution.to_owned(), wanted });
        }
    }

    fn tell(&mut self, wanted: String, place: Option<String>) {
        if self.undeclared.len() < MOST {
            self.undeclared.insert(Undeclared { wanted, place });
        }
    }
}

#[cfg(test)]
#[path = "missing_tests.rs"]
mod tests;
