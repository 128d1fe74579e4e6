//! What causes and flags of pairs mean, what leads to them, and what can be done.

use super::PairCause;
use crate::record::explanation::Explanation;

/// Flags of instances: name, meaning, what leads to it, what can be done.
const FLAGS: [[&str; 4]; 3] = [
    [
        "tests-only",
        "all code that the golden patch changes is tests",
        "No file but tests changes, so that no other code is what is refactored.",
        "Nothing has to be done; leave such pairs out where only product code is of interest.",
    ],
    [
        "flaky-suite",
        "whole runs of one tree differ",
        "Of the `runs` on base, or on golden, not all have the same counts: the bounds of PASS are the worst of them.",
        "`suite_runs` has each run. More `runs` in [codetaste] make bounds that more submissions stay within.",
    ],
    [
        "open-description-leaks",
        "the open description has words that only the golden patch adds",
        "A word of four letters or more is in the open description and in lines that the golden patch adds, and nowhere in the base.",
        "Say it in other words: the open track asks what is to be done, and not what it is called afterwards.",
    ],
];

/// Flags of submissions.
const SUBMISSION_FLAGS: [[&str; 4]; 8] = [
    [
        "adds-shim",
        "an added line keeps an old name alive by a shim",
        "It assigns to `sys.modules[…]`, or defines `__getattr__` in a module.",
        "Read the patch: reductive patterns still match what is left.",
    ],
    [
        "comments-only",
        "all added lines are comments or blank",
        "A patch that does nothing can satisfy patterns that look at text.",
        "Read the patch.",
    ],
    [
        "deletes-failing-tests",
        "a case that fails on both trees is not collected any more",
        "Fewer failures leave room under the most that may fail, so that other tests can break unseen by PASS. Where nothing could be \
         collected, the file of such a case is gone.",
        "Look at `pass_set`: it asks for each case by name.",
    ],
    [
        "skips-failing-tests",
        "a case that fails on both trees is skipped, or expected to fail",
        "As for `deletes-failing-tests`: it leaves room for other tests to break.",
        "Look at `pass_set`: it asks for each case by name.",
    ],
    [
        "weakens-tests",
        "the patch makes tests say less than they did",
        "A case that must pass is skipped or expected to fail in the run of the patch, or a test file that it changes has a test \
         that asserted something, is still there under its name, is no longer than before, and asserts nothing.",
        "Read what the patch does to test files: a test that asserts nothing passes on any tree.",
    ],
    [
        "hides-code",
        "code is put where engines do not look",
        "An added line has a comment that engines obey (`nosem`, `ast-grep-ignore`), or a letter that Python reads as another one; \
         a Python file is in an encoding other than UTF-8, Latin-1 and ASCII, or below a folder of what is built or installed; \
         or a file without a source is new that Python imports (`.pyc`, `.so`, `.pth`, `.egg`, `.zip`).",
        "Read the patch. gistmill looks below these folders and passes over no comment; names that are written otherwise, and code \
         without a source, it does not see.",
    ],
    [
        "test-config-changed",
        "what configures the tests is changed",
        "A conftest or a file in which pytest is configured changes or goes, or an added line has `pytest_plugins`.",
        "Compare the number of tests with that of the base.",
    ],
    [
        "unreached-additive",
        "an additive pattern matches in new Python files alone that nothing imports",
        "Code that only satisfies a pattern is not a refactoring.",
        "Read the new files.",
    ],
];

/// Everything that has a name in this family.
pub fn explanations() -> Vec<Explanation> {
    let of = |kind: &'static str| {
        move |[name, meaning, origin, remedy]: [&str; 4]| Explanation {
            name: name.to_owned(),
            kind,
            meaning: meaning.to_owned(),
            origin: origin.to_owned(),
            remedy: remedy.to_owned(),
        }
    };
    let causes = PairCause::ALL.into_iter().map(PairCause::explained);
    causes.chain(FLAGS.map(of("pair flag"))).chain(SUBMISSION_FLAGS.map(of("submission flag"))).collect()
}

impl PairCause {
    /// What it means, what leads to it, what can be done.
    pub fn explained(self) -> Explanation {
        let (meaning, origin, remedy) = self.words();
        Explanation {
            name: self.as_str().to_owned(),
            kind: "pair cause",
            meaning: meaning.to_owned(),
            origin: origin.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            PairCause::PatchDiffers => (
                "the golden patch does not make the golden tree of the base",
                "A patch has no links and no submodules, so that a commit which changes those cannot be handed in.",
                "Name another pair.",
            ),
            PairCause::NoCode => (
                "the golden patch changes no code",
                "No file with a code ending changes, outside folders of what is built or installed.",
                "Name another pair.",
            ),
            PairCause::FewPatterns => (
                "fewer patterns than asked for are on one tree alone",
                "Patterns that match both trees, nothing, or the lines of another one are not taken: `gistmill pattern check` says why.",
                "Give patterns of your own (`patterns` in [[pair]]), or set `min_patterns` in [codetaste].",
            ),
            PairCause::LowCoverage => (
                "the patterns say too little about the patch",
                "They match less than `min_coverage` of the lines that the golden patch changes. Where features are mixed into a \
                 refactoring, that is so.",
                "Give patterns of your own, set `min_coverage` in [codetaste], or name another pair.",
            ),
            PairCause::NeedsTwoEnvironments => (
                "no one environment serves both trees",
                "It cannot be made, or those that can fail for different reasons.",
                "Say what is installed with `requirements`, `extras`, `groups`, `python` in [[pair]].",
            ),
            PairCause::SuiteCrashes => (
                "the suite gives no counts",
                "Nothing can be collected on one of the trees.",
                "Read the evidence; where a module is missing, declare it with `requirements` in [[pair]].",
            ),
            PairCause::SuiteTooLong => (
                "a whole run takes too long",
                "The tests of a run take more than `suite_timeout` for each attempt that is made at the same time.",
                "Set `suite_timeout` in [codetaste], or name a part of the tests with `tests` in [[pair]].",
            ),
            PairCause::FewTests => (
                "a run has fewer tests than asked for",
                "Too few tests say little about behaviour.",
                "Set `min_tests` in [codetaste], or look whether `tests` in [[pair]] names all of them.",
            ),
            PairCause::FewPassing => (
                "too small a share of the tests passes",
                "Mostly something is missing from the environment.",
                "Read `gistmill replay` of one of them; declare what is missing with `requirements` in [[pair]].",
            ),
            PairCause::ChangesTree => (
                "the set-up of the suite changes the tree",
                "After `setup_system.sh` and `setup_shell.sh` of `run_tests`, `git status` is not clean: what they write would be part of each \
                 submission's tree.",
                "Let them write elsewhere, to $HOME or /tmp, or put what they make into the image.",
            ),
            PairCause::GoldenFails => (
                "the golden patch, handed in, is not judged right",
                "It is not within the bounds of PASS, a case that must pass does not, or a pattern is not satisfied: the suite is \
                 not steady enough to judge.",
                "Leave unsteady files out with `tests` in [[pair]], or build again with more `runs`.",
            ),
            PairCause::NullPasses => (
                "the empty patch, handed in, is not judged as doing nothing",
                "The suite does not pass on the base, or patterns are satisfied there.",
                "As for `golden-fails`.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_explained_once_in_sentences() {
        let all = explanations();
        let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for one in &all {
            for text in [&one.origin, &one.remedy] {
                assert!(text.ends_with('.'), "{}: {text}", one.name);
            }
            assert!(!one.meaning.ends_with('.'), "{}", one.name);
        }
    }
}
