//! What was handed in: a folder with a file for each instance, or predictions as the common harnesses write them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::beneath::Folder;
use crate::error::{Error, Fault, OrWhy, Result};
use crate::family::codetaste::SUBMISSION as REFACTORING;
use crate::family::recube::SUBMISSION as RECUBE;
use crate::family::recube::answer::code_of_answer;
use crate::record::id::{Name, hash_parts, sha256_hex};

/// Files beside the folders of the runs: no run is called so.
pub(super) const FILES: [&str; 2] = ["tables.json", "report.html"];
/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;
/// Largest list of predictions that is read, in bytes.
const LARGEST_LIST: u64 = 2 << 30;
/// Largest `run.json` and `meta.json` that is read, in bytes.
const LARGEST_META: u64 = 4 << 20;
/// Names of lists that say nothing: agents and harnesses give them to every run.
const ALIKE: [&str; 4] = ["preds", "predictions", "all_preds", "submissions"];
/// In what is said of a row of another shape.
const NOT_ACCEPTED: &str = "is not accepted";
/// How many unknown instances a message names.
const NAMED: usize = 20;

/// The submissions of one run of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunOf {
    pub(crate) name: Name,
    /// `run.json`, as it is.
    pub(crate) meta: Value,
    /// Why `run.json` says nothing.
    pub(crate) trouble: Option<String>,
    /// By instance id.
    pub(crate) submissions: BTreeMap<String, Submission>,
    /// What the dataset has no instance for, beside what it has: nothing is judged of it.
    pub(crate) unknown: Option<String>,
}

/// One submission.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Submission {
    /// None: there is no file.
    pub(crate) text: Option<Vec<u8>>,
    /// What its author says about it; never scored.
    pub(crate) meta: Value,
    /// A patch that does not add the file: it may change one that exists.
    pub(crate) patch: Option<String>,
    /// Files of a patch beside the submission: not looked at.
    pub(crate) other_files: usize,
    /// Whether it is an answer that has another form than the one that was asked for.
    pub(crate) is_wrong_form: bool,
    /// Why there is no text, or nothing that its author says, although there is something in its place: whoever hands it in
    /// has made that, and no other submission waits for it.
    pub(crate) troubles: Vec<String>,
}

impl RunOf {
    /// SHA-256 over what was handed in for each instance.
    pub(crate) fn sha256(&self) -> String {
        let of_one = |(id, one): (&String, &Submission)| {
            [
                id.clone(),
                one.text
                    .as_deref()
                    .or(one.patch.as_deref().map(str::as_bytes))
                    .map_or_else(|| "nothing".to_owned(), sha256_hex),
            ]
        };
        hash_parts(&self.submissions.iter().flat_map(of_one).collect::<Vec<_>>())
    }
}

/// What can be handed in, for a message.
fn shapes(file: &str) -> String {
    let (key, ending) = (key(file), ending(file));
    format!(
        "give a folder with <instance id>/{file} or <instance id>.{ending} for each instance, or a .json or .jsonl file with rows \
         {{\"instance_id\": \"…\", \"{key}\": \"<text of {file}>\"}} or {{\"instance_id\": \"…\", \"model_patch\": \"<diff that \
         adds {file}>\"}}, or a dictionary of such rows by instance id"
    )
}

/// What a run is called that says nothing of itself: as its folder or file is, or as the folder is in which a list lies that
/// every agent calls alike.
fn name_of(path: &Path) -> String {
    let real = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let own = if real.is_dir() {
        real.file_name().map(|name| name.to_string_lossy().into_owned())
    } else {
        stem(&real)
    };
    let is_alike = |name: &String| !real.is_dir() && ALIKE.contains(&name.to_ascii_lowercase().as_str());
    let above = || real.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
    own.filter(|name| !is_alike(name)).or_else(above).unwrap_or_default()
}

/// What is said of instances that a dataset does not have.
fn named_unknown(unknown: &[String]) -> Option<String> {
    let more = unknown.len().saturating_sub(NAMED);
    let names = unknown.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!unknown.is_empty()).then(|| format!("the dataset has no instance {names}{more}"))
}

/// Reads a folder or a list. Instances that are not among `known` are named, and have to have others beside them. `name` is what the run is called, whatever it says.
///
/// # Errors
/// Usage errors: nothing there, what is not a list of submissions, no known instance, several submissions for one, all at
/// once.
pub(crate) fn read(path: &Path, name: Option<&str>, file: &str, known: &BTreeSet<String>) -> Result<RunOf> {
    if !path.exists() {
        return Err(
            Error::usage(format!("there are no submissions at {}", path.display())).with_hint(shapes(file))
        );
    }
    let mut problems = Vec::new();
    let (meta, trouble, found) = if path.is_dir() {
        of_folder(path, (file, known))?
    } else {
        (Value::Null, None, of_list(path, file, &mut problems)?)
    };
    let mut submissions: BTreeMap<String, Submission> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (id, submission) in found {
        if !known.contains(&id) {
            unknown.push(id);
        } else if submissions.insert(id.clone(), submission).is_some() {
            problems.push(format!("two submissions for {id}"));
        }
    }
    let unknown = named_unknown(&unknown);
    if submissions.is_empty() || !problems.is_empty() {
        problems.extend(unknown.clone());
    }
    if !problems.is_empty() {
        let hint = if problems.iter().any(|problem| problem.contains(NOT_ACCEPTED)) {
            shapes(file)
        } else {
            "name the dataset that these submissions were made for; its instance ids are in instances.jsonl"
                .to_owned()
        };
        let more = problems.len().saturating_sub(NAMED);
        problems.truncate(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        return Err(
            Error::usage(format!("{}: {}{more}", path.display(), problems.join("; "))).with_hint(hint)
        );
    }
    if submissions.is_empty() {
        return Err(
            Error::usage(format!("there are no submissions in {}", path.display())).with_hint(shapes(file))
        );
    }
    let run = RunOf { name: Name::fixed("run"), meta, trouble, submissions, unknown };
    with_name(run, path, name)
}

/// A run of submissions that were read otherwise. `name` is what the run is called, whatever its place is.
///
/// # Errors
/// A usage error: its place has no name that a run can have.
pub(crate) fn named(
    path: &Path,
    name: Option<&str>,
    submissions: BTreeMap<String, Submission>,
) -> Result<RunOf> {
    let run =
        RunOf { name: Name::fixed("run"), meta: Value::Null, trouble: None, submissions, unknown: None };
    with_name(run, path, name)
}

fn with_name(run: RunOf, path: &Path, name: Option<&str>) -> Result<RunOf> {
    let said = || run.meta["name"].as_str().map_or_else(|| name_of(path), str::to_owned);
    let name = name.map_or_else(said, str::to_owned);
    // It becomes a folder of the output, beside files.
    let is_taken = FILES.iter().any(|file| name.eq_ignore_ascii_case(file));
    match Name::new(&name) {
        Ok(name) if !is_taken => Ok(RunOf { name, ..run }),
        _ => Err(Error::usage(format!("{}: the run is called {name:?}", path.display())).with_hint(format!(
            "use letters, digits, `.`, `_` and `-`, a letter or digit first, and not {}: rename it, or set `name` in its \
             run.json",
            FILES.join(" or ")
        ))),
    }
}

type Named = Vec<(String, Submission)>;

/// A file of a submission, if it is there. What cannot be read is its author's, as long as it is not the machine's.
fn given(folder: &Folder, place: &Path, most: u64) -> Result<OrWhy<Option<Vec<u8>>>> {
    match folder.read_if_there(place, most) {
        Ok(bytes) => Ok(Ok(bytes)),
        Err(error) if error.fault() == Fault::Repository => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

fn json(folder: &Folder, place: &Path) -> Result<OrWhy<Value>> {
    let parse = |bytes: &[u8]| {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("{} is not JSON: {error}", folder.path().join(place).display()))
    };
    Ok(given(folder, place, LARGEST_META)?
        .and_then(|bytes| bytes.map_or(Ok(Value::Null), |bytes| parse(&bytes))))
}

fn of_one(folder: &Folder, place: &Path, file: &str) -> Result<Submission> {
    let mut text = given(folder, &place.join(file), LARGEST)?;
    if text == Ok(None) {
        text = given(folder, &place.join(Path::new(file).with_extension("txt")), LARGEST)?;
    }
    let meta = json(folder, &place.join("meta.json"))?;
    let troubles = text.as_ref().err().into_iter().chain(meta.as_ref().err()).cloned().collect();
    Ok(Submission {
        text: text.unwrap_or_default(),
        meta: meta.unwrap_or_default(),
        troubles,
        ..Submission::default()
    })
}

/// What the name of the file ends with.
fn ending(file: &str) -> &str {
    file.rsplit_once('.').map_or(file, |(_, ending)| ending)
}

/// `<instance>/concise.py` or `.txt`, `<instance>/meta.json`, `run.json`; or `<instance>.py`, as a dataset has its witnesses.
fn of_folder(
    path: &Path,
    (file, known): (&str, &BTreeSet<String>),
) -> Result<(Value, Option<String>, Named)> {
    let folder = Folder::named(path)?;
    let run = json(&folder, Path::new("run.json"))?;
    let trouble = run.as_ref().err().cloned();
    let suffix = format!(".{}", ending(file));
    let repository = |id: &str| id.split_once('.').map(|(repository, _)| repository.to_owned());
    let repositories: BTreeSet<Option<String>> = known.iter().map(|id| repository(id)).collect();
    let mut found = Vec::new();
    for entry in fs_err::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            let submission = of_one(&folder, Path::new(&name), file)?;
            found.push((name, submission));
        } else if known.contains(&name) {
            let trouble = format!("{} is not a folder", entry.path().display());
            found.push((name, Submission { troubles: vec![trouble], ..Submission::default() }));
        } else if let Some(id) = name
            .strip_suffix(&suffix)
            .filter(|id| known.contains(*id) || id.contains('.') && repositories.contains(&repository(id)))
        {
            let text = given(&folder, Path::new(&name), LARGEST)?;
            let troubles = text.as_ref().err().into_iter().cloned().collect();
            let text = text.unwrap_or_default();
            found.push((id.to_owned(), Submission { text, troubles, ..Submission::default() }));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok((run.unwrap_or_default(), trouble, found))
}

/// `preds.json` (a dictionary by instance, or a list) or JSON lines.
fn of_list(path: &Path, file: &str, problems: &mut Vec<String>) -> Result<Named> {
    let about = fs_err::metadata(path)?;
    if !about.is_file() {
        return Err(Error::usage(format!("{} is neither a folder nor a file", path.display())));
    }
    if about.len() > LARGEST_LIST {
        return Err(Error::usage(format!("{} has {} bytes", path.display(), about.len())));
    }
    let text = fs_err::read_to_string(path)?;
    let bad = |line: usize, error: serde_json::Error| {
        Error::usage(format!("{}:{line} is not JSON", path.display())).with_source(error)
    };
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let rows: Vec<Value> = if is_lines {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| serde_json::from_str(line).map_err(|error| bad(at + 1, error)))
            .collect::<Result<_>>()?
    } else {
        match serde_json::from_str(&text).map_err(|error| bad(error.line(), error))? {
            Value::Array(rows) => rows,
            Value::Object(rows) => rows.into_iter().map(|(id, row)| with_id(id, row, key(file))).collect(),
            _ => {
                let wrong = Error::usage(format!("{} is not a list of submissions", path.display()));
                return Err(wrong.with_hint(shapes(file)));
            }
        }
    };
    let mut found = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        let row = of_batch(row, key(file));
        match (row["instance_id"].as_str().map(str::to_owned), unknown_shape(&row, key(file))) {
            (Some(id), None) => found.push((id, of_row(row, file))),
            (Some(id), Some(why)) => problems.push(format!("{id}: {why}")),
            (None, Some(why)) if !row.is_object() => problems.push(format!("row {}: {why}", at + 1)),
            (None, _) => problems.push(format!("row {} without `instance_id` {NOT_ACCEPTED}", at + 1)),
        }
    }
    Ok(found)
}

/// A row of what a batch interface answers, as a row of a submission: `custom_id`, and the text of a model's message, whose file
/// is between fences. Any other row is as it is.
fn of_batch(mut row: Value, key: &str) -> Value {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let Some(id) = text(&row["custom_id"]).filter(|_| row.get("instance_id").is_none()) else { return row };
    let parts = |content: &Value| -> Option<String> {
        let parts = content.as_array()?.iter().filter_map(|part| part["text"].as_str());
        Some(parts.collect::<Vec<_>>().join(""))
    };
    let contents =
        [row.pointer("/response/body/choices/0/message/content"), row.pointer("/result/message/content")];
    let answer = contents.into_iter().flatten().find_map(|content| text(content).or_else(|| parts(content)));
    let Some(fields) = row.as_object_mut() else { return row };
    for name in ["custom_id", "response", "result"] {
        fields.remove(name);
    }
    fields.insert("instance_id".to_owned(), Value::String(id));
    // A request that failed is an instance without a submission.
    fields.insert(
        key.to_owned(),
        answer.map_or(Value::Null, |answer| Value::String(code_of_answer(&answer).0)),
    );
    row
}

/// The key of the text of a file in a row.
fn key(file: &str) -> &str {
    file.strip_suffix(".py").unwrap_or(file)
}

fn with_id(id: String, row: Value, key: &str) -> Value {
    let mut row = match row {
        Value::Object(fields) => fields,
        other => serde_json::Map::from_iter([(key.to_owned(), other)]),
    };
    row.insert("instance_id".to_owned(), Value::String(id));
    Value::Object(row)
}

/// Why a row is not one of a submission: what it holds is of another kind, or under another name.
fn unknown_shape(row: &Value, own: &str) -> Option<String> {
    let Some(fields) = row.as_object() else {
        return Some(format!("{} {NOT_ACCEPTED}", kind(row)));
    };
    // An answer of a model holds its file between fences, and goes with whole files alone.
    let keys = [own, "model_patch", if own == key(RECUBE) { "answer" } else { own }];
    for key in keys {
        if let Some(value) = fields.get(key).filter(|value| !value.is_string() && !value.is_null()) {
            return Some(format!("{} under `{key}` {NOT_ACCEPTED}", kind(value)));
        }
    }
    let has_one = keys.iter().any(|key| fields.contains_key(*key));
    let others: Vec<&str> =
        fields.keys().map(String::as_str).filter(|key| *key != "instance_id").take(5).collect();
    (!has_one && !others.is_empty()).then(|| {
        format!("a row with {} and without `{own}` or `model_patch` {NOT_ACCEPTED}", others.join(", "))
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a dictionary",
    }
}

/// Why a patch gives no text of the file, for who made it.
fn without_file(patch: &str, file: &str) -> Option<String> {
    let paths =
        patch.lines().filter_map(|line| line.strip_prefix("+++ ")).map(|path| path.trim_start_matches("b/"));
    let paths: Vec<&str> = paths.filter(|path| *path != "/dev/null").take(3).collect();
    match (patch.trim().is_empty(), paths.is_empty()) {
        (true, _) => None,
        (false, true) => Some("its patch is not a unified diff".to_owned()),
        (false, false) => Some(format!("its patch adds no {file}; it changes {}", paths.join(", "))),
    }
}

fn of_row(mut row: Value, file: &str) -> Submission {
    let taken = |row: &mut Value, key: &str| row.as_object_mut().and_then(|row| row.remove(key));
    let whole =
        taken(&mut row, key(file)).and_then(|text| text.as_str().map(|text| text.as_bytes().to_vec()));
    let patch = taken(&mut row, "model_patch").and_then(|text| text.as_str().map(str::to_owned));
    if file == RECUBE {
        let answer = taken(&mut row, "answer").and_then(|text| text.as_str().map(code_of_answer));
        let is_wrong_form = whole.is_none() && answer.as_ref().is_some_and(|(_, is_right)| !is_right);
        let text = whole.or_else(|| answer.map(|(code, _)| code.into_bytes()));
        let text = text.filter(|text| text.len() as u64 <= LARGEST);
        return Submission { text, patch, meta: row, is_wrong_form, ..Submission::default() };
    }
    if file == REFACTORING {
        // The patch is what is handed in, and no file of it.
        let text = whole.or_else(|| patch.map(String::into_bytes));
        return Submission { text, meta: row, ..Submission::default() };
    }
    let (of_patch, other_files) = patch.as_deref().map_or((None, 0), |patch| added_file(patch, file));
    let text = whole.or(of_patch);
    let is_large = text.as_ref().is_some_and(|text| text.len() as u64 > LARGEST);
    let too_large = is_large.then(|| format!("it has more than the {LARGEST} bytes that are read of it"));
    let lacks = patch.filter(|_| text.is_none()).and_then(|patch| without_file(&patch, file));
    let troubles: Vec<String> = too_large.into_iter().chain(lacks).collect();
    let text = text.filter(|_| troubles.is_empty());
    Submission { text, meta: row, other_files, troubles, ..Submission::default() }
}

/// The text of a file that a unified diff adds, and how many other files it names.
fn added_file(patch: &str, file: &str) -> (Option<Vec<u8>>, usize) {
    let (mut text, mut others, mut inside, mut is_hunk) = (None::<Vec<u8>>, 0, false, false);
    let mut is_new = false;
    for line in patch.split_inclusive('\n') {
        let plain = line.trim_end_matches(['\n', '\r']);
        if let Some(old) = plain.strip_prefix("--- ") {
            (is_new, is_hunk, inside) = (old == "/dev/null", false, false);
        } else if let Some(new) = plain.strip_prefix("+++ ").filter(|_| !is_hunk) {
            let path = new.split('\t').next().unwrap_or(new);
            inside = is_new && path.strip_prefix("b/").unwrap_or(path) == file;
            others += usize::from(!inside);
            if inside {
                text = Some(Vec::new());
            }
        } else if plain.starts_with("@@ ") {
            is_hunk = true;
        } else if plain.starts_with("diff --git ") {
            (is_hunk, inside) = (false, false);
        } else if let (true, true, Some(text)) = (inside, is_hunk, text.as_mut()) {
            if let Some(added) = line.strip_prefix('+') {
                text.extend_from_slice(added.as_bytes());
            } else if plain.starts_with("\\ No newline") && text.last() == Some(&b'\n') {
                text.pop();
            }
        }
    }
    (text, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeSet<String> {
        ["a__b-1", "a__b-2"].map(str::to_owned).into()
    }

    fn text(run: &RunOf, id: &str) -> Option<String> {
        run.submissions[id].text.as_ref().map(|bytes| String::from_utf8(bytes.clone()).unwrap())
    }

    #[test]
    fn what_batch_interfaces_answer_is_a_submission() {
        let answer = "Here it is:\n```python\nx = 1\n```\n";
        let rows = [
            serde_json::json!({"custom_id": "a__b-1", "error": null,
                "response": {"body": {"choices": [{"message": {"content": answer}}]}}}),
            serde_json::json!({"custom_id": "a__b-1",
                "result": {"message": {"content": [{"type": "text", "text": answer}]}}}),
            serde_json::json!({"instance_id": "a__b-1", "concise": "x = 1\n"}),
        ];
        for row in rows {
            let row = of_batch(row, "concise");
            assert_eq!(
                (&row["instance_id"], &row["concise"]),
                (&"a__b-1".into(), &"x = 1\n".into()),
                "{row}"
            );
            assert_eq!(unknown_shape(&row, "concise"), None);
        }
        let failed = of_batch(serde_json::json!({"custom_id": "a__b-1", "error": {"code": "x"}}), "concise");
        assert!(failed["concise"].is_null() && unknown_shape(&failed, "concise").is_none(), "{failed}");
    }

    #[test]
    fn folders_dictionaries_lists_and_lines_say_the_same() {
        let outer = tempfile::tempdir().unwrap();
        let folder =
            tempfile::Builder::new().prefix("agent-1").rand_bytes(0).tempdir_in(outer.path()).unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, text).unwrap();
            path
        };
        write("run/a__b-1/concise.py", "x = 1\n");
        write("run/a__b-2/meta.json", "{\"steps\": 3}");
        write("run/run.json", "{\"name\": \"mine\", \"model\": \"m\"}");
        let patch = "diff --git a/concise.py b/concise.py\nnew file mode 100644\n--- /dev/null\n+++ b/concise.py\n@@ -0,0 +1 @@\n+x = 1\ndiff --git a/o.py b/o.py\n--- a/o.py\n+++ b/o.py\n@@ -1 +1 @@\n-a\n+b\n";
        let dictionary = serde_json::json!({"a__b-1": {"model_patch": patch}, "a__b-2": {"concise": null}});
        let rows = [
            write("preds.json", &dictionary.to_string()),
            write("list.json", &serde_json::json!([{"instance_id": "a__b-1", "concise": "x = 1\n"}, {"instance_id": "a__b-2"}]).to_string()),
            write("lines.jsonl", "{\"instance_id\": \"a__b-1\", \"concise\": \"x = 1\\n\"}\n\n{\"instance_id\": \"a__b-2\"}\n"),
            folder.path().join("run"),
        ];
        for path in rows {
            let run = read(&path, None, "concise.py", &known()).unwrap();
            assert_eq!(text(&run, "a__b-1").as_deref(), Some("x = 1\n"), "{}", path.display());
            assert_eq!(text(&run, "a__b-2"), None);
        }
        let run = read(&folder.path().join("run"), None, "concise.py", &known()).unwrap();
        assert_eq!(
            (run.name.as_str(), &run.submissions["a__b-2"].meta["steps"]),
            ("mine", &serde_json::json!(3))
        );
        let run = read(&folder.path().join("preds.json"), None, "concise.py", &known()).unwrap();
        assert_eq!((run.name.as_str(), run.submissions["a__b-1"].other_files), ("agent-1", 1));
        let run = read(&folder.path().join("list.json"), None, "concise.py", &known()).unwrap();
        assert_eq!(run.name.as_str(), "list");
        let run = read(&folder.path().join("run"), Some("other"), "concise.py", &known()).unwrap();
        assert_eq!(run.name.as_str(), "other");
    }

    #[test]
    fn a_folder_of_files_that_are_called_as_the_instances_is_one_of_submissions() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("witnesses");
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("a__b-1.py"), "x = 1\n").unwrap();
        fs_err::write(folder.join("helper.py"), "y = 2\n").unwrap();
        std::os::unix::fs::symlink("helper.py", folder.join("a__b-2.py")).unwrap();
        let run = read(&folder, None, "concise.py", &known()).unwrap();
        assert_eq!((run.name.as_str(), &run.unknown), ("witnesses", &None));
        assert_eq!(text(&run, "a__b-1").as_deref(), Some("x = 1\n"));
        let linked = &run.submissions["a__b-2"];
        assert!(linked.text.is_none() && linked.troubles.len() == 1, "no link is followed: {linked:?}");
        fs_err::create_dir(folder.join("a__b-1")).unwrap();
        let twice = read(&folder, None, "concise.py", &known()).unwrap_err().to_string();
        assert!(twice.contains("two submissions for a__b-1"), "{twice}");
        fs_err::remove_file(folder.join("a__b-1.py")).unwrap();
        fs_err::remove_dir(folder.join("a__b-1")).unwrap();
        fs_err::remove_file(folder.join("a__b-2.py")).unwrap();
        let strange = read(&folder, None, "concise.py", &known()).unwrap_err().to_string();
        assert!(strange.starts_with("there are no submissions in "), "{strange}");
        // One of the same repository that the dataset does not have is named, as elsewhere.
        let known: BTreeSet<String> = ["a__b.t-1".to_owned()].into();
        fs_err::write(folder.join("a__b.t-1.py"), "x = 1\n").unwrap();
        fs_err::write(folder.join("a__b.t-2.py"), "x = 1\n").unwrap();
        let run = read(&folder, None, "concise.py", &known).unwrap();
        assert!(run.unknown.is_some_and(|said| said.contains("a__b.t-2")) && run.submissions.len() == 1);
    }

    #[test]
    fn what_is_not_a_submission_is_not_the_failure_of_whoever_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.json");
        let refused = |text: &str| {
            fs_err::write(&path, text).unwrap();
            let error = read(&path, None, "concise.py", &known()).unwrap_err();
            assert_eq!(error.fault(), Fault::Usage);
            assert!(error.hint().is_some_and(|hint| hint.contains("model_patch")), "{text}: {error}");
            error.to_string()
        };
        for (text, words) in [
            (r#"[{"instance_id": "a__b-1", "code": "x"}]"#, "a row with code and without"),
            (r#"[{"instance_id": "a__b-1", "concise": 5}]"#, "a number under `concise`"),
            (r#"[{"instance_id": "a__b-1", "model_patch": ["x"]}]"#, "a list under `model_patch`"),
            (r#"{"a__b-1": 7}"#, "a number under `concise`"),
            ("[null, 3]", "null is not accepted"),
            ("[]", "there are no submissions in"),
            ("{}", "there are no submissions in"),
        ] {
            let said = refused(text);
            assert!(said.contains(words), "{text}: {said}");
        }
        fs_err::write(&path, r#"{"predictions": [{"instance_id": "a__b-1"}]}"#).unwrap();
        let said = read(&path, None, "concise.py", &known()).unwrap_err().to_string();
        assert!(said.contains("a list under `concise` is not accepted"), "{said}");
        let nowhere = read(&folder.path().join("nowhere"), None, "concise.py", &known()).unwrap_err();
        assert!(
            nowhere.to_string().contains("there are no submissions at") && nowhere.fault() == Fault::Usage
        );
        let empty = folder.path().join("empty");
        fs_err::create_dir(&empty).unwrap();
        assert!(read(&empty, None, "concise.py", &known()).is_err());
    }

    #[test]
    fn the_patch_of_a_refactoring_is_taken_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let patch = "--- a/pkg/__init__.py\n+++ b/pkg/__init__.py\n@@ -1 +1 @@\n-a\n+b\n";
        let row = serde_json::json!({"instance_id": "a__b-1", "model_patch": patch, "cost": 1});
        fs_err::write(&path, format!("{row}\n")).unwrap();
        let run = read(&path, None, REFACTORING, &known()).unwrap();
        let one = &run.submissions["a__b-1"];
        assert_eq!(one.text.as_deref(), Some(patch.as_bytes()));
        assert!(one.troubles.is_empty() && one.meta["cost"] == 1, "{:?}", one.troubles);
    }

    #[test]
    fn a_patch_that_adds_no_file_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.json");
        let other = "--- a/pkg/__init__.py\n+++ b/pkg/__init__.py\n@@ -1 +1 @@\n-a\n+b\n";
        let rows = serde_json::json!({"a__b-1": {"model_patch": "hello"}, "a__b-2": {"model_patch": other}});
        fs_err::write(&path, rows.to_string()).unwrap();
        let run = read(&path, None, "concise.py", &known()).unwrap();
        let troubles = |id: &str| run.submissions[id].troubles.join("; ");
        assert_eq!(troubles("a__b-1"), "its patch is not a unified diff");
        assert_eq!(troubles("a__b-2"), "its patch adds no concise.py; it changes pkg/__init__.py");
        assert!(run.submissions.values().all(|one| one.text.is_none()));
        let none = serde_json::json!({"a__b-1": {"model_patch": ""}, "a__b-2": {"model_patch": null}});
        fs_err::write(&path, none.to_string()).unwrap();
        let run = read(&path, None, "concise.py", &known()).unwrap();
        assert!(run.submissions.values().all(|one| one.troubles.is_empty()), "nothing was handed in");
    }

    #[test]
    fn the_hash_of_a_run_is_that_of_what_was_handed_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.json");
        let hash = |text: &str| {
            fs_err::write(&path, text).unwrap();
            read(&path, None, "concise.py", &known()).unwrap().sha256()
        };
        let one = hash(r#"{"a__b-1": {"concise": "x"}}"#);
        assert_eq!(one, hash(r#"[{"instance_id": "a__b-1", "concise": "x", "steps": 3}]"#));
        assert_ne!(one, hash(r#"{"a__b-1": {"concise": "y"}}"#));
        assert_ne!(one, hash(r#"{"a__b-2": {"concise": "x"}}"#));
    }

    #[test]
    fn what_the_dataset_does_not_know_is_named_and_the_others_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let row = |id: &str| format!("{{\"instance_id\": \"{id}\", \"concise\": \"x\"}}\n");
        fs_err::write(&path, [row("a__b-1"), row("y"), row("z")].concat()).unwrap();
        let run = read(&path, None, "concise.py", &known()).unwrap();
        assert_eq!(run.submissions.keys().collect::<Vec<_>>(), ["a__b-1"]);
        assert_eq!(run.unknown.as_deref(), Some("the dataset has no instance y, z"));
        fs_err::write(&path, row("z")).unwrap();
        let error = read(&path, None, "concise.py", &known()).unwrap_err();
        assert!(error.to_string().ends_with("the dataset has no instance z"), "{error}");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        fs_err::write(
            &path,
            "{\"instance_id\": \"z\"}\n{\"instance_id\": \"a__b-1\"}\n{\"instance_id\": \"a__b-1\"}\n{}\n",
        )
        .unwrap();
        let said = read(&path, None, "concise.py", &known()).unwrap_err().to_string();
        for words in
            ["row 4 without `instance_id` is not accepted", "two submissions for a__b-1", "no instance z"]
        {
            assert!(said.contains(words), "{said}");
        }
        fs_err::write(&path, "{").unwrap();
        assert!(
            read(&path, None, "concise.py", &known()).unwrap_err().to_string().contains(":1 is not JSON")
        );
    }

    #[test]
    fn the_name_of_a_run_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join("a__b-1")).unwrap();
        for name in ["..", "../x", "/tmp/x", "a/b", "", ".x", "report.html", "tables.json", "Report.HTML"] {
            let run = serde_json::json!({ "name": name }).to_string();
            fs_err::write(folder.path().join("run.json"), run).unwrap();
            let error = read(folder.path(), None, "concise.py", &known()).unwrap_err();
            assert!(error.to_string().contains("the run is called"), "{name}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_read_costs_its_own_submission_and_says_why() {
        use std::os::unix::fs::symlink;
        let pipe = |place: &Path| nix::unistd::mkfifo(place, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let sparse = |place: &Path, size| std::fs::File::create(place).unwrap().set_len(size).unwrap();
        type Prepare<'a> = &'a dyn Fn(&Path);
        let attacks: [(&str, Prepare<'_>, &str); 12] = [
            ("a link", &|one| symlink("/etc/passwd", one.join("concise.py")).unwrap(), "symbolic link"),
            (
                "a link to nothing",
                &|one| symlink("nowhere", one.join("concise.py")).unwrap(),
                "symbolic link",
            ),
            ("a pipe", &|one| pipe(&one.join("concise.py")), "regular file"),
            ("a folder", &|one| fs_err::create_dir(one.join("concise.py")).unwrap(), "regular file"),
            (
                "a socket",
                &|one| drop(std::os::unix::net::UnixListener::bind(one.join("concise.py")).unwrap()),
                "concise.py",
            ),
            ("too long", &|one| sparse(&one.join("concise.py"), LARGEST + 1), "bytes that are read"),
            (
                "a link as text",
                &|one| symlink("/etc/passwd", one.join("concise.txt")).unwrap(),
                "symbolic link",
            ),
            ("no JSON", &|one| fs_err::write(one.join("meta.json"), "{").unwrap(), "is not JSON"),
            (
                "too deep",
                &|one| fs_err::write(one.join("meta.json"), "[".repeat(100_000)).unwrap(),
                "is not JSON",
            ),
            ("a pipe beside", &|one| pipe(&one.join("meta.json")), "regular file"),
            (
                "the folder a link",
                &|one| {
                    fs_err::remove_dir(one).unwrap();
                    symlink("/etc", one).unwrap();
                },
                "not a folder",
            ),
            (
                "the folder a pipe",
                &|one| {
                    fs_err::remove_dir(one).unwrap();
                    pipe(one);
                },
                "not a folder",
            ),
        ];
        for (title, prepare, reason) in attacks {
            let folder = tempfile::tempdir().unwrap();
            let run = folder.path().join("run");
            for id in known() {
                fs_err::create_dir_all(run.join(id)).unwrap();
            }
            fs_err::write(run.join("a__b-2/concise.py"), "x = 1\n").unwrap();
            prepare(&run.join("a__b-1"));
            let run = read(&run, None, "concise.py", &known()).unwrap();
            assert_eq!(text(&run, "a__b-2").as_deref(), Some("x = 1\n"), "{title}");
            let one = &run.submissions["a__b-1"];
            assert!(one.text.is_none() && one.troubles.len() == 1, "{title}: {one:?}");
            assert!(one.troubles[0].contains(reason), "{title}: {:?}", one.troubles);
        }
    }

    #[test]
    fn a_broken_run_json_is_told_and_the_submissions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("mine");
        fs_err::create_dir_all(place.join("a__b-1")).unwrap();
        fs_err::write(place.join("a__b-1/concise.py"), "x = 1\n").unwrap();
        fs_err::write(place.join("run.json"), "{").unwrap();
        let run = read(&place, None, "concise.py", &known()).unwrap();
        assert_eq!((run.name.as_str(), text(&run, "a__b-1").as_deref()), ("mine", Some("x = 1\n")));
        assert!(run.trouble.unwrap().contains("run.json is not JSON"));
    }

    #[test]
    fn a_meta_json_that_is_broken_leaves_the_text_to_be_scored() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("a__b-1")).unwrap();
        fs_err::write(folder.path().join("a__b-1/concise.py"), "x = 1\n").unwrap();
        fs_err::write(folder.path().join("a__b-1/meta.json"), "nonsense").unwrap();
        fs_err::write(folder.path().join("run.json"), "{\"name\": \"mine\"}").unwrap();
        let run = read(folder.path(), None, "concise.py", &known()).unwrap();
        assert_eq!(text(&run, "a__b-1").as_deref(), Some("x = 1\n"));
        assert!(run.submissions["a__b-1"].troubles[0].contains("meta.json is not JSON"));
    }

    #[test]
    fn a_patch_that_changes_the_file_adds_none() {
        let patch = "--- a/concise.py\n+++ b/concise.py\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(added_file(patch, "concise.py"), (None, 1));
        let cut = "--- /dev/null\n+++ b/concise.py\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n";
        assert_eq!(added_file(cut, "concise.py"), (Some(b"a".to_vec()), 0));
    }
}
