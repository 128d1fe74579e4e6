//! Flags of groups: what is special about a test that is kept all the same. Those that rules give bear the rules' ids.

use super::explanation::Explanation;

/// What a flag of the form `kept-by:<id>` begins with.
pub const KEPT_BY: &str = "kept-by:";

/// The flag that keeps a kept group from being published, if one does, unless `sample_unsolvable` says otherwise.
pub fn barrier(flags: &[String]) -> Option<&'static str> {
    const BARRIERS: [&str; 7] = [
        NAMES_REPOSITORY_MODULE,
        DEPENDENCY_IMPORTS_REPOSITORY,
        REFEREE_DIFFERS,
        READS_HIDDEN_CODE,
        NO_VARIANTS,
        CONSTANT,
        SHOWS_NOTHING,
    ];
    BARRIERS.into_iter().find(|barrier| flags.iter().any(|flag| flag == barrier))
}

/// What a flag means; empty for a rule's.
pub fn meaning(flag: &str) -> &'static str {
    ALL.iter().find(|row| row[0] == flag).map_or("", |row| row[1])
}

/// Every flag that is not a rule's: constant, spelling, meaning, what leads to it, what can be done.
macro_rules! flags {
    ($($name:ident $spelling:literal $meaning:literal $origin:literal $remedy:literal;)+) => {
        $(#[doc = $meaning] pub const $name: &str = $spelling;)+

        const ALL: &[[&str; 4]] = &[$([$spelling, $meaning, $origin, $remedy],)+];
    };
}

flags! {
    MACHINE_PATH "machine-path-in-id"
        "a node ID of the group holds a path of the machine"
        "The ID of a parameter is made from a path, such as that of the checkout or of a temporary directory. `<root>`, \
         `<venv>` and `<tmp>` replace them in the dataset."
        "Give the parameters IDs of their own (`pytest.param(…, id=\"…\")`).";
    STARTS_THREADS "starts-threads"
        "the traced run started threads"
        "What runs in threads, and when, is up to the scheduler: the counts of the trace can differ between builds, as \
         `trace_stable` says."
        "Nothing has to be done; whoever compares traces leaves such instances out.";
    EXCEPTION_DIFFERS "exception-differs"
        "attempts of the kept group raise exceptions of other types"
        "`compare = \"outcome\"` in `[screen]` lets them disagree."
        "Leave `compare` at \"output\" or \"exception\", and such groups are dropped.";
    OUTPUT_DIFFERS "output-differs"
        "attempts of the kept group print something else"
        "`compare = \"exception\"` or \"outcome\" in `[screen]` lets them disagree."
        "Leave `compare` at \"output\", and such groups are dropped.";
    NAMES_REPOSITORY_MODULE "names-repository-module"
        "the test needs a module of the repository by its name"
        "The test, or what it uses in its file and its conftests, has a module of the repository looked up by name \
         (`mock.patch(\"package.module.name\")`), or passes a module on as an object."
        "No submission can solve it by the rules, so it is not published unless `sample_unsolvable = true`.";
    DEPENDENCY_IMPORTS_REPOSITORY "dependency-imports-repository"
        "an installed library asks for the repository"
        "A plugin or another dependency imports the repository while the test runs, and no code of the repository has it \
         do so, or pytest itself needs it; with a submission it is missing."
        "No submission can solve it by the rules, so it is not published unless `sample_unsolvable = true`.";
    REFEREE_DIFFERS "referee-differs"
        "the original, judged as a submission, does not show what it showed in the build"
        "The referee runs the original test from `concise.py` in the whole tree, and sees something else."
        "No submission can solve it, so it is not published unless `sample_unsolvable = true`. `gistmill score DATASET \
         --self-check` shows what differs.";
    READS_TREE_DATA "reads-tree-data"
        "its cases open files of the tree other than code"
        "The column `data_files` names them. Files that are opened outside of Python are not seen."
        "Nothing has to be done: a submission sees the repository's data files, unless it is scored with `--files none`.";
    NO_VARIANTS "no-variants"
        "no edit of the test shows that a submission does not do the work"
        "Edited texts of the test are run in the original repository: none of them shows the same in every run without \
         running more of the repository than the test does, or the test is not defined in its own file."
        "It is judged by a planted failure alone, so it is not published unless `sample_unsolvable = true`.";
    NO_OTHER_INPUT "no-other-input"
        "no other input of the test shows something else"
        "Values that the test hands over were changed, there or together with what it asks for: each time a recorded answer \
         would be right as well, other lines of the repository ran, or not every run showed the same."
        "It is published; a submission that returns a constant is judged right. Filter by the flag, or look at \
         `enters-few-functions` in the flags of its scores: constants mostly enter at most half of the functions, and all where \
         the test enters one alone.";
    READS_HIDDEN_CODE "reads-hidden-code"
        "the command is given a file of code that a submission does not see"
        "An argument or the standard input names a file of the tree that counts as code, or the command changes one; code is \
         hidden from submissions."
        "No submission can solve it, so it is not published unless `sample_unsolvable = true`. Have the command read a file that is \
         not code.";
    CONSTANT "constant"
        "no other input of the command shows something else"
        "Its arguments, its standard input and the files that it reads were changed one at a time: each time it showed the same, \
         ended otherwise, ran other lines of the repository, or did not show the same twice."
        "A submission that prints a recorded answer cannot be distinguished from one that does the work, so it is not published unless \
         `sample_unsolvable = true`. Give the command input that its output depends on.";
    SHOWS_NOTHING "shows-nothing"
        "the command prints nothing, and leaves nothing in a file"
        "It works on something that does not exist, such as a database that an earlier command of the same document makes, \
         or what it does is not seen: that a folder or an empty file appears is all."
        "There is nothing to gather, so it is not published unless `sample_unsolvable = true`. Configure it with what it works on, or \
         with one that shows what was done.";
    PROBE_INSENSITIVE "probe-insensitive"
        "the original does not fail when its test is made to"
        "The referee plants a failure in the test to find submissions that neutralize it; here it does not show in the \
         original."
        "Nothing has to be done: variants of the test find neutralized tests; without any they are not looked for in this instance.";
}

/// Explanations of all flags that are not rules' ids, with the one of `kept-by:<id>`.
pub fn explanations() -> Vec<Explanation> {
    let text = |[name, meaning, origin, remedy]: [&str; 4]| Explanation {
        name: name.to_owned(),
        kind: "flag",
        meaning: meaning.to_owned(),
        origin: origin.to_owned(),
        remedy: remedy.to_owned(),
    };
    let kept_by = [
        "kept-by:<id>",
        "a rule keeps it against its verdict",
        "A rule with the action `keep` names the cause for which the group would be dropped. What else it depends on was \
         not looked for.",
        "Remove the rule, and the group is dropped.",
    ];
    ALL.iter().copied().chain([kept_by]).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_bars_from_publishing_exactly_where_its_remedy_says_so() {
        for [name, meaning_of, _, remedy] in ALL {
            let bars = barrier(&["starts-threads".to_owned(), (*name).to_owned()]).is_some();
            assert_eq!(
                bars,
                remedy.contains("it is not published") || remedy.contains("so it is not"),
                "{name}"
            );
            assert_eq!(meaning(name), *meaning_of);
        }
        assert_eq!(meaning("some-rule"), "");
    }

    #[test]
    fn every_flag_says_what_leads_to_it_and_what_can_be_done() {
        let all = explanations();
        assert!(all.iter().any(|one| one.name == format!("{KEPT_BY}<id>")));
        for one in &all {
            for text in [&one.origin, &one.remedy] {
                assert!(text.ends_with('.') && text.len() > 20 && !text.contains("  "), "{one:?}");
            }
        }
        let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len(), "each is there once");
    }
}
