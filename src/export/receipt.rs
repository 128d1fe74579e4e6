//! What is handed in to see what the judge of an export pays in its images: the solution, nothing, and files that want the
//! reward and not the task. Pure: tasks in, files out.

use std::fmt::Write as _;

use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

use super::{Collection, Files, harbor, refactoring};
use crate::error::{Error, Result};
use crate::record::task::Task;
use crate::score::text;

/// The file in an export that says what its judge paid.
pub(crate) const RECEIPT: &str = "receipt.json";
/// Where a container has the judge's files, and those of the solution; a task with several steps has the latter in its last one.
const TESTS: &str = "tests/";
const SOLUTION: &str = "solution/";
const LAST_STEP: &str = "steps/carry-out/";

const EXITS: &str = include_str!("receipt/exits.py");
const EQUAL_TO_ALL: &str = include_str!("receipt/equal_to_all.py");
const OWN_PLUGIN: &str = include_str!("receipt/own_plugin.py");
const PATCHED_PYTEST: &str = include_str!("receipt/patched_pytest.py");
const WRITTEN_REWARD: &str = include_str!("receipt/written_reward.py");
const NOT_PYTHON: &str = "def (\n";
const NOT_A_PATCH: &str = "this is not a patch\n";

/// Something that is handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handed {
    /// What kind of file it is: `gold`, `nothing`, or the name of a cheat.
    pub(crate) kind: &'static str,
    /// Whether the judge has to pay for it, 1; otherwise 0.
    pub(crate) is_right: bool,
    /// What the container has before the script runs, by the path from `/`: the judge's files among them.
    pub(crate) files: Files,
}

/// All that is handed in for one task, and where it is judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hearing<'a> {
    pub(crate) task: &'a Task,
    pub(crate) image: &'a str,
    /// Hash of the task's files.
    pub(crate) content: String,
    /// Longest run of the judge, in seconds.
    pub(crate) seconds: u64,
    pub(crate) handed: Vec<Handed>,
}

/// Shell that unpacks what standard input has, runs the solution where there is one, then the judge; its reward is the last line
/// of standard output, all else goes to standard error.
pub(crate) fn script(task: &Task) -> String {
    format!(
        "exec 3>&1 >&2\n\
         python3 -I -c 'import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode=\"r|\").extractall(\"/\")' || exit 90\n\
         mkdir -p /logs/verifier && cd {} || exit 90\n\
         if [ -f /solution/solve.sh ]; then bash /solution/solve.sh || exit 91; fi\n\
         bash /tests/test.sh || exit\n\
         tr -d '\\n' < /logs/verifier/reward.json >&3\n",
        crate::text::shell_quote(&task.workdir)
    )
}

/// What is handed in for each task.
///
/// # Errors
/// When something cannot be encoded, which is a bug.
pub(crate) fn hearings(collection: &Collection) -> Result<Vec<Hearing<'_>>> {
    collection.tasks.iter().map(|task| of_task(collection, task)).collect()
}

fn of_task<'a>(collection: &'a Collection, task: &'a Task) -> Result<Hearing<'a>> {
    let all = harbor::of_task(collection, task)?;
    let of = |folder: &str| -> Files {
        let inner = |path: &String| {
            let path = path.strip_prefix(LAST_STEP).unwrap_or(path);
            path.starts_with(folder).then(|| path.to_owned())
        };
        all.iter().filter_map(|(path, file)| Some((inner(path)?, file.clone()))).collect()
    };
    let with = |kind, is_right, more: Files| {
        let mut files = of(TESTS);
        files.extend(more);
        Handed { kind, is_right, files }
    };
    let gold = of(SOLUTION);
    let mut handed = vec![with("nothing", false, Files::new())];
    if !gold.is_empty() {
        handed.insert(0, with("gold", true, gold));
    } else if task.has_solution() {
        return Err(Error::internal(format!("the solution of {} is not among its files", task.id)));
    }
    let place = match task.judging.suite {
        Some(_) => refactoring::PATCH.to_owned(),
        None => format!("{}/{}", task.workdir, task.judging.submission),
    };
    let place = place.trim_start_matches('/').to_owned();
    for (kind, text) in cheats(collection, task) {
        handed.push(with(kind, false, Files::from([(place.clone(), super::text(text))])));
    }
    let (image, content) = (collection.image(task), harbor::content_but_for_settings(&all));
    Ok(Hearing { task, image, content, seconds: harbor::verifier_seconds(task), handed })
}

/// Files that want the reward and not the task, by their kind.
fn cheats(collection: &Collection, task: &Task) -> Vec<(&'static str, String)> {
    if task.judging.suite.is_some() {
        return vec![("not-a-patch", NOT_A_PATCH.to_owned())];
    }
    let sources = collection.sources.get(&task.slug);
    let test_file = match task.judging.originals.first() {
        Some(_) => task.files.first().and_then(|path| sources?.files.get(path)),
        None => None,
    };
    // What ends or claims all does so on the way to the original test, where its file is known.
    let before =
        |text: &str| test_file.and_then(|file| after_future(file, text)).unwrap_or_else(|| text.to_owned());
    let mut cheats = vec![
        ("not-python", NOT_PYTHON.to_owned()),
        ("exits", before(EXITS)),
        ("written-reward", before(WRITTEN_REWARD)),
    ];
    // A recorded answer is right where no other input is known; the export's README counts these.
    if let [own, _, ..] = task.judging.given.as_slice() {
        cheats.push(("recorded", recorded(&own.shows)));
    }
    let Some(test) = task.judging.originals.first() else { return cheats };
    let stub = |body: &str| stub(&test.name, body);
    cheats.push(("empty-test", stub("pass")));
    cheats.push(("skips", format!("import pytest\n\n\n{}", stub("pytest.skip('done')"))));
    cheats.push(("own-plugin", format!("{OWN_PLUGIN}{}", stub("raise AssertionError"))));
    cheats.push(("patched-pytest", format!("{PATCHED_PYTEST}{}", stub("raise AssertionError"))));
    if let Some(text) = test_file {
        cheats.push(("test-file", text.clone()));
        cheats.push(("equal-to-all", before(EQUAL_TO_ALL)));
    }
    cheats
}

/// A program that shows what the repository showed, whatever it is given.
fn recorded(shows: &crate::record::task::Shown) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "import sys\n\nsys.stdout.write({})\nsys.stderr.write({})\nsys.exit({})\n",
        text(&shows.stdout),
        text(&shows.stderr),
        shows.status
    )
}

/// A test of this name, with its classes, that takes everything and does this.
fn stub(name: &str, body: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0);
    let mut names = name.split("::").peekable();
    while let Some(name) = names.next() {
        let blanks = " ".repeat(4 * depth);
        let _ = match names.peek() {
            Some(_) => writeln!(text, "{blanks}class {name}:"),
            None => writeln!(text, "{blanks}def {name}(*given, **named):\n{blanks}    {body}"),
        };
        depth += 1;
    }
    text
}

/// A file with lines put before its own, and behind what has to stay first; none where it is not Python.
fn after_future(file: &str, before: &str) -> Option<String> {
    let place = text::parse(file, |parsed| {
        let is_future = |one: &&Stmt| {
            one.as_import_from_stmt().is_some_and(|it| it.module.as_deref() == Some("__future__"))
        };
        let last = parsed.body.iter().filter(is_future).last()?;
        let line = parsed.lines.line(last.end());
        Some(parsed.lines.start(line + 1).unwrap_or(file.len()))
    });
    let place = place.ok()?.unwrap_or_default();
    Some(format!("{}{before}{}", &file[..place], &file[place..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_has_the_classes_of_its_test() {
        assert_eq!(stub("test_a", "pass"), "def test_a(*given, **named):\n    pass\n");
        assert_eq!(
            stub("TestB::test_a", "pass"),
            "class TestB:\n    def test_a(*given, **named):\n        pass\n"
        );
    }

    #[test]
    fn imports_of_the_future_stay_first() {
        assert_eq!(
            after_future("'doc'\nfrom __future__ import (\n    annotations,\n)\nimport a\n", "c\n")
                .as_deref(),
            Some("'doc'\nfrom __future__ import (\n    annotations,\n)\nc\nimport a\n")
        );
        assert_eq!(after_future("import a\n", "c\n").as_deref(), Some("c\nimport a\n"));
        assert_eq!(after_future("def (", "c\n"), None);
    }

    #[test]
    fn a_recorded_answer_is_a_string_of_python() {
        let shows = crate::record::task::Shown {
            status: 3,
            stdout: "a \"b\"\n\u{e4}".into(),
            stderr: String::new(),
            files: Vec::new(),
        };
        assert_eq!(
            recorded(&shows),
            "import sys\n\nsys.stdout.write(\"a \\\"b\\\"\\n\u{e4}\")\nsys.stderr.write(\"\")\nsys.exit(3)\n"
        );
    }
}
