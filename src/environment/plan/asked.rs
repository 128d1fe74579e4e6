//! What tests ask for that is not installed: names in the words of skips and failures. Pure.
//!
//! Such words are a repository's, or a dependency's, to choose. Nothing is installed because of them but what the tree
//! declares somewhere: they only lead to one of its own extras, groups or requirements files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::missing::{self, distribution};
use crate::environment::GateReport;
use crate::environment::declared::requirements_files::pattern;
use crate::requirement::normalize;

/// More words of one text are not looked at.
const MOST: usize = 400;

/// Normalized names that could be meant, and who asks for each: groups, or files that skip themselves.
pub(in crate::environment) type Asked = BTreeMap<String, BTreeSet<String>>;

/// What collecting, and running, showed.
pub(in crate::environment) fn find(report: &GateReport) -> Asked {
    let mut asked = Asked::new();
    let mut add = |names: BTreeSet<String>, who: &str| {
        for name in names {
            asked.entry(name).or_default().insert(who.to_owned());
        }
    };
    for module in &report.missing_modules {
        add(of_missing(module), "");
    }
    if let Some(text) = &report.failure {
        add(missing::modules(text).take(MOST).flat_map(of_missing).collect(), "");
    }
    for complaint in &report.complaints {
        let names = if complaint.is_skip { words(&complaint.text) } else { told(&complaint.text) };
        add(names, &complaint.who);
        add(missing::modules(&complaint.text).take(MOST).flat_map(of_missing).collect(), &complaint.who);
    }
    asked
}

/// Before the name of a module that was not found: distributions may have it whose names have it as a part.
const PART: char = '~';

fn of_missing(module: &str) -> BTreeSet<String> {
    let top = normalize(module.split('.').next().unwrap_or(module));
    let mut names = of_module(module);
    names.insert(format!("{PART}{top}"));
    names
}

/// Those of some distributions, by their normalized names, that are what is asked for: the one of that name, else, for a
/// module, those that may have it: `railroad-diagrams` has `railroad`, and `python-dateutil` or `pydateutil` `dateutil`.
pub(super) fn meant<'a>(asked: &str, all: &BTreeSet<&'a String>) -> Vec<&'a String> {
    let module = asked.trim_start_matches(PART);
    if let Some(same) = all.get(&module.to_owned()) {
        return vec![same];
    }
    let may_have = |name: &&&String| {
        let is_before = name.strip_prefix(module).is_some_and(|rest| rest.starts_with('-'));
        is_before || name.split('-').any(|part| part == module || part.strip_prefix("py") == Some(module))
    };
    all.iter().filter(|_| asked.starts_with(PART)).filter(may_have).copied().collect()
}

/// The names of a module and of what everybody knows to have it.
fn of_module(module: &str) -> BTreeSet<String> {
    let top = module.split('.').next().unwrap_or(module);
    let known = distribution(module).map(normalize);
    [normalize(top), normalize(module)].into_iter().chain(known).collect()
}

/// Every word of a text that could be a name.
fn words(text: &str) -> BTreeSet<String> {
    static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*"));
    WORD.find_iter(text).take(MOST).flat_map(|word| of_module(word.as_str())).collect()
}

/// The words of lines that speak of something which has to be there.
fn told(text: &str) -> BTreeSet<String> {
    static SPEAKS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)install|requir|No module named|could not import|cannot import|missing|unavailable|not available|not found|needs? ",
        )
    });
    text.lines().filter(|line| SPEAKS.is_match(line)).flat_map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Complaint;

    fn names(text: &str, is_skip: bool) -> BTreeSet<String> {
        let complaint = Complaint { who: "t.py::test".to_owned(), text: text.to_owned(), is_skip };
        let report = GateReport { complaints: vec![complaint], ..GateReport::default() };
        find(&report).into_keys().collect()
    }

    #[test]
    fn skips_and_failures_name_what_they_miss() {
        for (text, is_skip, name) in [
            ("Test requires scipy", true, "scipy"),
            ("could not import 'yaml': No module named 'yaml'", true, "pyyaml"),
            ("no statsmodels", true, "statsmodels"),
            (
                "E   AssertionError: The `python-multipart` library must be installed to use form parsing.",
                false,
                "python-multipart",
            ),
            ("E   ModuleNotFoundError: No module named 'bs4.element'", false, "beautifulsoup4"),
            ("ImportError: pip install acme.tools", false, "acme-tools"),
        ] {
            assert!(names(text, is_skip).contains(name), "{text}: {:?}", names(text, is_skip));
        }
    }

    #[test]
    fn a_missing_module_may_be_in_a_distribution_of_another_name() {
        let all = ["railroad-diagrams", "python-railroad", "pyrailroad", "railroads", "jinja2", "pyyaml"];
        let all = all.map(str::to_owned);
        let all: BTreeSet<&String> = all.iter().collect();
        let found = |text: &str, is_skip: bool| -> BTreeSet<&String> {
            names(text, is_skip).iter().flat_map(|name| meant(name, &all)).collect()
        };
        let asked = found("E   ModuleNotFoundError: No module named 'railroad.parts'", false);
        assert_eq!(
            asked.into_iter().collect::<Vec<_>>(),
            ["pyrailroad", "python-railroad", "railroad-diagrams"]
        );
        assert_eq!(found("railroad diagrams are not wanted", true), BTreeSet::new(), "words are not modules");
        let same = names("No module named 'yaml'", true);
        assert!(same.iter().all(|name| meant(name, &all).iter().all(|one| *one == "pyyaml")), "{same:?}");
    }

    #[test]
    fn other_lines_of_a_failure_ask_for_nothing() {
        let text = "    import scipy\n>   assert scipy.version == 3\nE   assert False";
        assert!(!names(text, false).contains("scipy"));
    }

    #[test]
    fn modules_and_refusals_of_a_collection_ask_as_well() {
        let report = GateReport {
            missing_modules: vec!["cv2".to_owned()],
            failure: Some(
                "PytestConfigWarning: Failed to import filter module 'trio': ignore::trio.X".to_owned(),
            ),
            ..GateReport::default()
        };
        let asked = find(&report);
        assert!(
            asked.contains_key("opencv-python-headless") || asked.contains_key("opencv-python"),
            "{asked:?}"
        );
        assert!(asked.contains_key("trio"));
    }
}
