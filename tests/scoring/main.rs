//! The rules of the score: every worked example of docs/scoring.md, and the metrics against an independent reference
//! (`oracle.py`) on files that were made up and on files of real repositories.
//!
//! The reference needs `GISTMILL_TEST_PYTHON`. Repositories are read where `GISTMILL_TEST_CHECKOUTS` names a folder
//! with one checkout in each of its folders; `GISTMILL_TEST_CASES` says how many submissions are made of each (100).
//! `GISTMILL_TEST_FIGURES` names a folder with `figure-9.py` and `figure-10.py`, the two submissions that the Gistify
//! paper prints, and `pylint`, the checkout that they were made from. What lacks something is ignored, by name.

mod examples;
mod figures;
mod reference;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = examples::trials();
    trials.extend(reference::trials());
    trials.extend(figures::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// Fails with both values where they differ.
fn agree<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), Failed> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?}, expected {expected:?}").into()) }
}

/// A trial that needs an environment variable.
fn needing(
    variable: &str,
    name: &str,
    run: impl FnOnce(String) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    let name = if value.is_some() { name.to_owned() } else { format!("{name} (needs {variable})") };
    let is_ignored = value.is_none();
    Trial::test(name, move || run(value.unwrap_or_default())).with_ignored_flag(is_ignored)
}
