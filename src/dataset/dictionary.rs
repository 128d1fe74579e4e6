//! What every column means, for the card. A test holds it against the columns that are written.

/// A column and its meaning, in Markdown.
pub type Entry = (&'static str, &'static str);

/// Columns of `instances`, and of the subsets.
pub const INSTANCES: &[Entry] = &[
    ("instance_id", "`<owner>__<name>.<test>-<digits>`: a function of slug, commit and group"),
    ("family", "the kind of task; a dataset has one"),
    ("slug", "the repository, `owner/name`"),
    ("repo", "the same, by the name that SWE-bench's readers look for"),
    ("commit", "the pin: a commit, or `sha256:…` of an archive"),
    ("base_commit", "the commit; null for an archive"),
    ("version", "version of the release, or the first digits of the pin"),
    ("created_at", "time of the pin (RFC 3339), not of the build"),
    ("source", "where the repository comes from"),
    ("license", "SPDX expression of the repository's license; null when unsure"),
    ("python", "version of the interpreter"),
    ("group_id", "the test: `file::Class::function`"),
    ("test_file", "its file, from the root of the tree"),
    ("test_class", "its classes, joined by `::`; null for a plain function"),
    ("test_function", "its name"),
    (
        "test_source",
        "its definition with decorators; null where the file does not have it, or code is not passed on",
    ),
    ("test_line_start", "first line of that in `test_file`"),
    ("test_line_end", "last line"),
    ("entry_command", "the command whose behaviour is to be reproduced, run in the root of the tree"),
    ("prompt", "what an agent is asked to do; `manifest.json` has the template, its hash and the setting"),
    ("case_ids", "node IDs of the test's cases, in order"),
    (
        "expected",
        "for each of them a JSON object: `case_id`, `outcome`, `exception`, `stdout`, `stderr`, output normalized",
    ),
    ("FAIL_TO_PASS", "cases that pass, by their node IDs in `concise.py`"),
    ("PASS_TO_PASS", "empty: without a solution there is nothing that passes"),
    ("n_cases", "number of cases"),
    ("trace_length", "calls of Python functions of the tree while the cases run"),
    ("trace_length_package", "those of them outside the tests"),
    ("trace_length_total", "calls of all Python functions"),
    ("child_calls", "calls of the tree's functions in child interpreters; not part of the trace length"),
    ("unique_files", "files of the tree in which a function was called"),
    ("unique_functions", "functions of the tree that were called"),
    ("executed_lines", "lines of the tree that were executed; null where that was not measured"),
    ("import_calls", "calls while test file and conftests are imported"),
    ("import_files", "files of the tree whose module body runs meanwhile"),
    ("files", "the files that `unique_files` counts"),
    ("trace_stable", "whether a second traced run agreed"),
    ("tier", "`easy`, `medium` or `hard`, by rank within this dataset"),
    ("hard_axes", "axes on which the instance is in the subset `top`; says nothing about `tier`"),
    ("attempts", "runs that agreed"),
    ("flake_bound", "upper bound of the failure rate, with 95 % confidence"),
    ("worlds", "conditions under which it ran"),
    ("duration_ms", "null: durations vary, see `groups`"),
    ("environment", "folder with the lock and the Dockerfile"),
    ("lock_sha256", "SHA-256 of the lock"),
    ("image", "tag of its container image; null where none was made"),
    ("image_id", "the image's id"),
    ("code_sha256", "hash of the definitions that run: equal in two versions, the same code"),
    (
        "flags",
        "what is special: of its group, and what the referee found out on the original (docs/scoring.md)",
    ),
    ("data_files", "files of the tree, other than code, that its cases open"),
    ("test_defined_in", "`file::Class::function` of an inherited test; null where the test file defines it"),
    (
        "variants",
        "edited texts of its test, or other inputs of its command, in `hidden/`, by which submissions are judged (docs/scoring.md); null in older datasets",
    ),
    (
        "kind",
        "`pytest`, or `script`, `module`, `console` or `code`: a command that is not a test (docs/entries.md)",
    ),
    ("argv", "program and arguments of such a command; null for a test"),
    ("stdin", "what its standard input has; null where that is empty, or a file of the tree"),
    ("stdin_file", "the file of the tree that its standard input reads; null where there is none"),
    ("cwd", "the folder of the tree that it runs in, empty for the root; null for a test"),
    ("env", "further environment variables of such a command, `NAME=value` each; null for a test"),
    (
        "watched_files",
        "globs of the files whose changes count for such a command, empty for all of the tree; null for a test",
    ),
    ("origin", "what names it: `configured`, or where it was found; null for a test"),
    (
        "witness",
        "`made`, or why no machine-made solution was found (docs/witnesses.md); null where none was asked for",
    ),
    ("witness_sha256", "hash of `witnesses/<instance_id>.py`"),
    ("witness_lines", "its lines that are not blank"),
    ("witness_units", "its logical lines, as line existence counts them"),
    ("witness_files", "files of the tree that its lines come from"),
    ("witness_line_execution", "its line execution, from 0 to 1"),
    ("witness_line_existence", "its line existence, from 0 to 1"),
    (
        "mutants",
        "small changes of the code that it runs that were tried (docs/difficulty.md); null where that was not measured, as of commands",
    ),
    ("mutation_score", "share of them after which a case does not pass, from 0 to 1"),
    (
        "needed_statements",
        "of the statements that were taken away, the share without which a case does not pass, from 0 to 1",
    ),
    ("surviving_mutants", "those after which all cases pass: file, line and change"),
];

/// Columns of `groups`.
pub const GROUPS: &[Entry] = &[
    ("slug", "the repository"),
    ("group_id", "the test: `file::Class::function`, or a file that cannot be collected"),
    ("instance_id", "the id that it has as an instance"),
    ("kept", "whether it could be published"),
    ("published", "whether it is in `instances`"),
    ("cause", "why it was dropped; null when kept"),
    ("flags", "what else to know; ids of rules that flag it"),
    ("evidence", "JSON object of a dropped group: `summary`, `seen`, `excerpt`, `command`"),
    ("test_file", "its file"),
    ("test_class", "its classes"),
    ("test_function", "its name"),
    ("markers", "pytest's markers"),
    ("fixtures", "pytest's fixtures"),
    ("n_cases", "number of cases"),
    ("attempts", "runs that were made"),
    ("agreeing", "runs that agreed; 0 when dropped"),
    ("worlds", "conditions under which it ran"),
    ("trace_length", "as in `instances`; this and what follows is null where no trace was taken"),
    ("trace_length_package", "as in `instances`"),
    (
        "trace_length_total",
        "as in `instances`; null where no second trace was taken: it is of what was to be published",
    ),
    ("child_calls", "as in `instances`"),
    ("unique_files", "as in `instances`"),
    ("unique_functions", "as in `instances`"),
    ("executed_lines", "as in `instances`"),
    ("import_calls", "as in `instances`"),
    ("import_files", "as in `instances`"),
    ("files", "as in `instances`"),
    ("trace_stable", "as in `instances`; null like `trace_length_total`"),
    ("unstable_functions", "functions whose calls differed between traced runs"),
    ("code_sha256", "as in `instances`"),
    ("tier", "of a published one"),
    ("hard_axes", "of a published one"),
    ("duration_ms", "median of its runs in the fork tree, in milliseconds"),
    ("cold_ms", "median of its cold runs, in milliseconds"),
    ("kind", "`pytest`, or the kind of a command that is not a test"),
    ("argv", "program and arguments of such a command; null for a test"),
    ("origin", "what names it; null for a test"),
];

/// Columns of `cases`.
pub const CASES: &[Entry] = &[
    ("case_id", "pytest's node ID; `<root>`, `<venv>` and `<tmp>` replace places of the machine"),
    ("slug", "the repository"),
    ("group_id", "its test"),
    ("instance_id", "where the test is published"),
    ("parameters", "ID of its parameters; null without"),
    ("line", "line of the definition"),
    ("outcome", "what every run in the base world showed; null where they differ"),
    ("exception", "type of the exception that was raised"),
    ("stdout", "normalized output of a kept test"),
    ("stderr", "normalized output of a kept test"),
    (
        "command",
        "JSON of what a kept command showed beside its output: `status`, and `files` that it changed; null for a test",
    ),
];

/// Columns of `attempts`.
pub const ATTEMPTS: &[Entry] = &[
    ("slug", "the repository"),
    ("group_id", "the test"),
    ("world", "conditions under which it ran"),
    (
        "number",
        "from 0: first rounds, other worlds, what confirms them, further rounds, hash seeds, cold runs",
    ),
    ("method", "`fork`, or `cold`: the literal entry command"),
    ("round", "attempts of one round share their interpreter"),
    ("outcome", "the worst outcome of a case"),
    ("exit", "how the process ended"),
    ("observation", "hash over outcomes, exceptions and normalized output"),
    ("leftover", "processes that it left running"),
    ("connections", "addresses outside the machine that it tried to reach"),
    ("duration_ms", "in milliseconds"),
    (
        "memory_bytes",
        "the most memory that one of its processes had at a time; null for cold runs, what was ended, and before it was measured",
    ),
];

/// Columns of `traces`.
pub const TRACES: &[Entry] = &[
    ("instance_id", "the instance"),
    ("file", "file of the tree"),
    ("function", "qualified name of a function in it"),
    ("line", "line where it is defined"),
    ("calls", "how often it was called"),
    ("order", "its place in the order of first calls"),
    ("lines", "lines of it that were executed; null where that was not measured"),
    (
        "callers",
        "functions of the tree that called it, directly or through other code, by their `order`; empty where only modules and pytest did, null in older traces",
    ),
];

/// All tables, in the order of the card.
pub const TABLES: [(&str, &[Entry]); 5] = [
    ("instances", INSTANCES),
    ("groups", GROUPS),
    ("cases", CASES),
    ("attempts", ATTEMPTS),
    ("traces", TRACES),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::schema;

    fn names(entries: &[Entry]) -> Vec<&'static str> {
        entries.iter().map(|entry| entry.0).collect()
    }

    fn written<R>(columns: &[schema::ColumnOf<R>]) -> Vec<&'static str> {
        columns.iter().map(|column| column.name).collect()
    }

    #[test]
    fn every_column_is_explained_in_its_place_and_no_other() {
        assert_eq!(names(INSTANCES), written(&schema::instances()));
        assert_eq!(names(GROUPS), written(&schema::groups()));
        assert_eq!(names(CASES), written(&schema::cases()));
        assert_eq!(names(ATTEMPTS), written(&schema::attempts()));
        assert_eq!(names(TRACES), written(&schema::traces()));
        let entries = TABLES.iter().flat_map(|(_, entries)| *entries);
        assert!(entries.into_iter().all(|(_, meaning)| !meaning.is_empty() && !meaning.contains('|')));
    }
}
