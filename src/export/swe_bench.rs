//! The columns that SWE-bench's evaluation reads, and mini-swe-agent with it. A solution is a patch that adds one file; the
//! evaluation's script runs the judge of Harbor's tasks, which says how each case ends.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Collection, File, Files, harbor, refactoring};
use crate::dataset::schema::{ColumnOf, text as column};
use crate::dataset::write::table_bytes;
use crate::error::{Error, Result};
use crate::record::entry::EntryCommand;
use crate::record::outcome::Outcome;
use crate::record::patch::Patch;
use crate::record::task::Task;
use crate::text::shell_quote;

/// A row, all of it text, as the readers expect it.
struct Row {
    instance_id: String,
    repo: String,
    base_commit: String,
    version: String,
    created_at: String,
    problem_statement: String,
    patch: String,
    fail_to_pass: String,
    pass_to_pass: String,
    image: String,
    eval_script: String,
    test: String,
}

pub(super) fn files(collection: &Collection) -> Result<Files> {
    let scripted = |task: &&Task| task.judging.suite.as_ref().is_some_and(|suite| !suite.scripts.is_empty());
    let unnamed: Vec<String> =
        collection.tasks.iter().filter(scripted).map(|task| task.id.to_string()).collect();
    if !unnamed.is_empty() {
        return Err(Error::usage("SWE-bench asks for cases by name, and scripts that run a suite name none")
            .with_detail(unnamed.join("\n"))
            .with_hint("name others with --instance; --to harbor takes these"));
    }
    let rows: Vec<Row> =
        collection.tasks.iter().map(|task| row(task, collection.image(task))).collect::<Result<_>>()?;
    let bytes = table_bytes(columns(), &rows)?;
    Ok(Files::from([("data/test-00000-of-00001.parquet".to_owned(), File { bytes, executable: false })]))
}

fn columns() -> Vec<ColumnOf<Row>> {
    vec![
        column("instance_id", |row| Some(&row.instance_id)),
        column("repo", |row| Some(&row.repo)),
        column("base_commit", |row| Some(&row.base_commit)),
        column("version", |row| Some(&row.version)),
        column("created_at", |row| Some(&row.created_at)),
        column("problem_statement", |row| Some(&row.problem_statement)),
        column("hints_text", |_| Some("")),
        column("patch", |row| Some(&row.patch)),
        column("test_patch", |_| Some("")),
        column("FAIL_TO_PASS", |row| Some(&row.fail_to_pass)),
        column("PASS_TO_PASS", |row| Some(&row.pass_to_pass)),
        column("environment_setup_commit", |row| Some(&row.base_commit)),
        column("image", |row| Some(&row.image)),
        column("image_name", |row| Some(&row.image)),
        column("eval_script", |row| Some(&row.eval_script)),
        column("eval_type", |_| Some("pass_and_fail")),
        column("log_parser", |_| Some("parse_log_pytest_v2")),
        column("test", |row| Some(&row.test)),
    ]
}

fn row(task: &Task, image: &str) -> Result<Row> {
    let names = expected_names(task);
    let list = |names: &[String]| {
        serde_json::to_string(names)
            .map_err(|error| Error::internal("cannot encode the names of cases").with_source(error))
    };
    // A refactoring changes nothing that tests see: what has to pass passes before.
    let (fail_to_pass, pass_to_pass) =
        if task.judging.suite.is_some() { (list(&[])?, list(&names)?) } else { (list(&names)?, list(&[])?) };
    let golden = task.judging.suite.as_ref().and_then(|suite| suite.golden.as_ref());
    let golden = golden.map(|patch| String::from_utf8_lossy(patch).into_owned());
    Ok(Row {
        instance_id: task.id.to_string(),
        repo: task.slug.to_string(),
        base_commit: task.commit.clone(),
        version: task.version.clone(),
        created_at: task.created_at.clone(),
        problem_statement: task.instruction.clone(),
        patch: golden.or_else(|| Some(diff(task.gold.as_ref()?, &task.mask))).unwrap_or_default(),
        fail_to_pass,
        pass_to_pass,
        image: image.to_owned(),
        eval_script: eval_script(task)?,
        test: if task.judging.is_of_command() {
            task.judging.run.iter().map(EntryCommand::line).collect::<Vec<_>>().join("; ")
        } else {
            task.judging.tests().join(" ")
        },
    })
}

/// The cases that pass, as the log's parser names them. What has a place of the machine in its name is left out: there it has
/// another one.
fn expected_names(task: &Task) -> Vec<String> {
    let passing = task.judging.expect.iter().filter(|case| case.outcome == Outcome::Passed);
    let foreign = |name: &str| ["<root>", "<venv>", "<tmp>"].iter().any(|place| name.contains(place));
    let mut names: Vec<String> =
        passing.filter(|case| !foreign(&case.name)).map(|case| as_parsed(&case.name)).collect();
    names.sort();
    names.dedup();
    names
}

/// What `parse_log_pytest_v2` makes of a name: control characters go, and what looks like a colour; blanks are single.
fn as_parsed(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at);
        let digits = after[1..].len() - after[1..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
        plain.push_str(before);
        if digits > 0 && after[1 + digits..].starts_with('m') {
            rest = &after[digits + 2..];
        } else {
            plain.push('[');
            rest = &after[1..];
        }
    }
    plain.push_str(rest);
    let plain: String = plain.chars().filter(|c| !('\u{1}'..='\u{1f}').contains(c)).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A patch as git writes one: of files that are new, or that `mask` put into the tree.
fn diff(patch: &Patch, mask: &Patch) -> String {
    let mut text = String::new();
    for (path, bytes) in patch.files() {
        let Some(bytes) = bytes else { continue };
        let former = mask.files().find(|(other, _)| *other == path).and_then(|(_, bytes)| bytes);
        if former == Some(bytes) {
            continue;
        }
        let [before, after] = [former.unwrap_or_default(), bytes].map(String::from_utf8_lossy);
        let _ = writeln!(text, "diff --git a/{path} b/{path}");
        if former.is_none() {
            text.push_str("new file mode 100644\n");
        }
        if before.is_empty() && after.is_empty() {
            continue;
        }
        let from = former.map_or("/dev/null".to_owned(), |_| format!("a/{path}"));
        let range = |sign: char, lines: usize| format!("{sign}{},{lines}", usize::from(lines > 0));
        let (old, new) = (range('-', lines_of(&before)), range('+', lines_of(&after)));
        let _ = writeln!(text, "--- {from}\n+++ b/{path}\n@@ {old} {new} @@");
        signed(&mut text, '-', &before);
        signed(&mut text, '+', &after);
    }
    text
}

fn lines_of(content: &str) -> usize {
    content.split_inclusive('\n').count()
}

fn signed(text: &mut String, sign: char, content: &str) {
    for line in content.split_inclusive('\n') {
        text.push(sign);
        text.push_str(line);
    }
    if !content.is_empty() && !content.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// Gives the judge what it needs, and has it write into the log how each case ends.
fn eval_script(task: &Task) -> Result<String> {
    const FOLDER: &str = "/tmp/gistmill-judge";
    if let Some(suite) = &task.judging.suite {
        let patch = format!("{FOLDER}/prediction.diff");
        let files = refactoring::judging(task, suite)?;
        let files = files.iter().map(|(name, content)| ((*name).to_owned(), content.as_bytes()));
        let judge = format!("refactoring.py --container --log {FOLDER}/task.json {patch} {FOLDER}/out");
        let taking = refactoring::taking(&task.workdir, &patch) + "\n";
        return Ok(script(task, FOLDER, &(given(FOLDER, files) + &taking), &judge));
    }
    let before =
        task.judging.before.files().filter_map(|(path, bytes)| Some((format!("before/{path}"), bytes?)));
    let told = harbor::judged(task)?;
    let mut own =
        vec![("judge.py".to_owned(), harbor::JUDGE.as_bytes()), ("task.json".to_owned(), told.as_bytes())];
    if task.judging.is_of_command() {
        own.push(("tree_state.py".to_owned(), harbor::TREE_STATE.as_bytes()));
    }
    let given = given(FOLDER, own.into_iter().chain(before));
    let file = shell_quote(&format!("{}/{}", task.workdir, task.judging.submission));
    let judge = format!("judge.py --container --log {FOLDER}/task.json {file} {FOLDER}/out");
    Ok(script(task, FOLDER, &given, &judge))
}

/// Lines that write files into a folder.
fn given<'b>(folder: &str, files: impl Iterator<Item = (String, &'b [u8])>) -> String {
    let mut given = String::new();
    for (path, bytes) in files {
        let place = shell_quote(&format!("{folder}/{path}"));
        let _ = writeln!(
            given,
            "mkdir -p \"$(dirname {place})\" && base64 -d >{place} <<'END'\n{}\nEND",
            BASE64.encode(bytes)
        );
    }
    given
}

fn script(task: &Task, folder: &str, given: &str, judge: &str) -> String {
    let workdir = shell_quote(&task.workdir);
    format!(
        "\
#!/bin/bash
set -uxo pipefail
cd {workdir}
{{ set +x; }} 2>/dev/null
umask 077
chmod 700 \"$0\"
rm -rf {folder}
{given}set -x
: '>>>>> Start Test Output'
python -I {folder}/{judge}
: '>>>>> End Test Output'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_parser_finds_in_the_log() {
        for (name, parsed) in [
            ("concise.py::test[1-2]", "concise.py::test[1-2]"),
            ("concise.py::test[a  b\tc]", "concise.py::test[a bc]"),
            ("concise.py::test[[31mred]", "concise.py::test[red]"),
            ("concise.py::test[31]", "concise.py::test[31]"),
            ("concise.py::test[é ☕]", "concise.py::test[é ☕]"),
        ] {
            assert_eq!(as_parsed(name), parsed);
        }
    }

    #[test]
    fn a_patch_adds_the_file_with_or_without_a_last_newline() {
        let diff_of = |text: &str| {
            let mut patch = Patch::default();
            patch.put("concise.py", text.as_bytes().to_vec()).unwrap();
            diff(&patch, &Patch::default())
        };
        let head =
            "diff --git a/concise.py b/concise.py\nnew file mode 100644\n--- /dev/null\n+++ b/concise.py\n";
        assert_eq!(diff_of("a\n\nb\n"), format!("{head}@@ -0,0 +1,3 @@\n+a\n+\n+b\n"));
        assert_eq!(diff_of("a"), format!("{head}@@ -0,0 +1,1 @@\n+a\n\\ No newline at end of file\n"));
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let done = std::process::Command::new("git").args(arguments).current_dir(folder.path()).output();
            assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{done:?}");
        };
        git(&["init", "-q"]);
        for text in ["a\n\nb\n", "x = '\\ No newline'", "--- a\n+++ b\n@@ -1 +1 @@\n"] {
            fs_err::write(folder.path().join("p"), diff_of(text)).unwrap();
            git(&["apply", "p"]);
            assert_eq!(fs_err::read_to_string(folder.path().join("concise.py")).unwrap(), text);
            fs_err::remove_file(folder.path().join("concise.py")).unwrap();
        }
        for (before, after) in [("a\nb\n", "b\nc"), ("a", "a\n"), ("a\n", ""), ("é\r\n", "x\r\n")] {
            let of = |text: &str| {
                let mut patch = Patch::default();
                patch.put("a.py", text.as_bytes().to_vec()).unwrap();
                patch
            };
            fs_err::write(folder.path().join("a.py"), before).unwrap();
            fs_err::write(folder.path().join("p"), diff(&of(after), &of(before))).unwrap();
            git(&["apply", "p"]);
            assert_eq!(fs_err::read_to_string(folder.path().join("a.py")).unwrap(), after);
        }
    }
}
