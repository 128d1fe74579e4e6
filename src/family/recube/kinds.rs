//! From where a group comes into a target, and what kind of test that makes it. An approximation: the paper splits tests by
//! their intent.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::recube::{Reason, Way};
use crate::record::trace::{FunctionCalls, is_test_path};

/// Functions of the target that are called from outside it, each with the files that call it; none for a caller that is not in
/// the tree.
pub type Entries = BTreeMap<String, BTreeSet<Option<String>>>;

/// How a group comes into a target. None where it calls nothing there.
pub fn entries(functions: &[FunctionCalls], target: &str) -> Option<Entries> {
    let mut found = None;
    for one in functions.iter().filter(|one| one.file == target && one.is_called()) {
        let entries: &mut Entries = found.get_or_insert_default();
        let callers = one.callers.iter().flatten();
        let files = callers.filter_map(|at| functions.get(*at as usize)).map(|caller| Some(&*caller.file));
        let mut files: BTreeSet<Option<&str>> = files.collect();
        if files.is_empty() {
            files.insert(None);
        }
        let mut outside = files.into_iter().filter(|file| *file != Some(target)).peekable();
        if outside.peek().is_some() {
            let known = entries.entry(one.function.clone()).or_default();
            known.extend(outside.map(|file| file.map(str::to_owned)));
        }
    }
    found
}

/// Names of an [`Entries`] that files call for which a condition holds.
fn called_by(entries: &Entries, holds: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let fits = entries.iter().filter(|(_, files)| files.iter().flatten().any(|file| holds(file)));
    fits.map(|(name, _)| name.as_str()).collect()
}

/// Functions of the target that files which are not tests call.
pub fn called_by_code<'a>(entries: &'a Entries, test_roots: &[String]) -> BTreeSet<&'a str> {
    called_by(entries, |file| !is_test_path(file, test_roots))
}

/// Why a group is of its kind; the first rule that holds decides.
///
/// `used`: functions that other files call in some group ([`called_by_code`]); `shared`: top-level names that other files
/// import.
pub fn classify(
    entries: &Entries,
    test_roots: &[String],
    used: &BTreeSet<&str>,
    shared: &BTreeSet<String>,
) -> Reason {
    let from_tests = called_by(entries, |file| is_test_path(file, test_roots));
    let is_shared = |name: &&str| used.contains(*name) || shared.contains(first_part(name));
    if from_tests.iter().any(|name| is_private(name)) {
        Reason::TestCallsPrivate
    } else if !called_by_code(entries, test_roots).is_empty() {
        Reason::OtherFileCalls
    } else if from_tests.is_empty() {
        Reason::NoCaller
    } else if from_tests.iter().all(is_shared) {
        Reason::TestCallsShared
    } else {
        Reason::TestCallsUnshared
    }
}

/// Who calls into the target.
pub fn way(entries: &Entries, test_roots: &[String]) -> Way {
    let files = || entries.values().flatten().flatten();
    let (tests, others) = (
        files().any(|file| is_test_path(file, test_roots)),
        files().any(|file| !is_test_path(file, test_roots)),
    );
    match (tests, others) {
        (true, false) => Way::Direct,
        (false, true) => Way::Through,
        (true, true) => Way::Both,
        (false, false) => Way::None,
    }
}

/// `Class.method` of `Class.method`, `outer` of `outer.<locals>.inner`: the name that a caller can write.
fn written_name(function: &str) -> &str {
    function.split(".<locals>").next().unwrap_or(function)
}

fn first_part(function: &str) -> &str {
    let name = written_name(function);
    name.split('.').next().unwrap_or(name)
}

/// Whether one part of a name begins with an underscore and is not a dunder.
pub fn is_private(function: &str) -> bool {
    let is_dunder = |part: &str| part.starts_with("__") && part.ends_with("__");
    written_name(function).split('.').any(|part| part.starts_with('_') && !is_dunder(part))
}
