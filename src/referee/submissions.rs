//! What was handed in: a folder with a file for each instance, or predictions as the common harnesses write them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::beneath::Folder;
use crate::error::{Error, Fault, Result};
use crate::record::id::Name;

/// Files beside the folders of the runs: no run is called so.
pub(super) const FILES: [&str; 2] = ["tables.json", "report.html"];
/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;
/// Largest list of predictions that is read, in bytes.
const LARGEST_LIST: u64 = 2 << 30;
/// Largest `run.json` and `meta.json` that is read, in bytes.
const LARGEST_META: u64 = 4 << 20;
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
}

/// One submission.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Submission {
    /// None: there is no file.
    pub(crate) text: Option<Vec<u8>>,
    /// What its author says about it; never scored.
    pub(crate) meta: Value,
    /// Files of a patch beside the submission: not looked at.
    pub(crate) other_files: usize,
    /// Why there is no text, or nothing that its author says, although there is something in its place: whoever hands it in
    /// has made that, and no other submission waits for it.
    pub(crate) troubles: Vec<String>,
}

/// Reads a folder or a list. All instances have to be among `known`.
///
/// # Errors
/// Usage errors: what is not a list of submissions, unknown instances, several submissions for one, all at once.
pub(crate) fn read(path: &Path, file: &str, known: &BTreeSet<String>) -> Result<RunOf> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
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
    if !unknown.is_empty() {
        let more = unknown.len().saturating_sub(NAMED);
        let names = unknown.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        problems.push(format!("the dataset has no instance {names}{more}"));
    }
    if !problems.is_empty() {
        return Err(Error::usage(format!("{}: {}", path.display(), problems.join("; "))).with_hint(
            "name the dataset that these submissions were made for; its instance ids are in instances.jsonl",
        ));
    }
    let name = meta["name"].as_str().map_or(stem, str::to_owned);
    // It becomes a folder of the output, beside files.
    let is_taken = FILES.iter().any(|file| name.eq_ignore_ascii_case(file));
    match Name::new(&name) {
        Ok(name) if !is_taken => Ok(RunOf { name, meta, trouble, submissions }),
        _ => Err(Error::usage(format!("{}: the run is called {name:?}", path.display())).with_hint(format!(
            "use letters, digits, `.`, `_` and `-`, a letter or digit first, and not {}: rename it, or set `name` in its \
             run.json",
            FILES.join(" or ")
        ))),
    }
}

type Found = Vec<(String, Submission)>;

/// What is read of a place that the author of a submission filled; the text says why it is not.
type Readable<T> = std::result::Result<T, String>;

/// A file of a submission, if it is there. What cannot be read is its author's, as long as it is not the machine's.
fn given(folder: &Folder, place: &Path, most: u64) -> Result<Readable<Option<Vec<u8>>>> {
    match folder.read_if_there(place, most) {
        Ok(bytes) => Ok(Ok(bytes)),
        Err(error) if error.fault() == Fault::Repository => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

fn json(folder: &Folder, place: &Path) -> Result<Readable<Value>> {
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

/// `<instance>/concise.py` or `.txt`, `<instance>/meta.json`, `run.json`.
fn of_folder(
    path: &Path,
    (file, known): (&str, &BTreeSet<String>),
) -> Result<(Value, Option<String>, Found)> {
    let folder = Folder::named(path)?;
    let run = json(&folder, Path::new("run.json"))?;
    let trouble = run.as_ref().err().cloned();
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
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok((run.unwrap_or_default(), trouble, found))
}

/// `preds.json` (a dictionary by instance, or a list) or JSON lines.
fn of_list(path: &Path, file: &str, problems: &mut Vec<String>) -> Result<Found> {
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
            Value::Object(rows) => rows.into_iter().map(|(id, row)| with_id(id, row)).collect(),
            _ => return Err(Error::usage(format!("{} is not a list of submissions", path.display()))),
        }
    };
    let mut found = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        match row["instance_id"].as_str().map(str::to_owned) {
            Some(id) => found.push((id, of_row(row, file))),
            None => problems.push(format!("row {} has no `instance_id`", at + 1)),
        }
    }
    Ok(found)
}

fn with_id(id: String, row: Value) -> Value {
    let mut row = match row {
        Value::Object(fields) => fields,
        other => serde_json::Map::from_iter([("concise".to_owned(), other)]),
    };
    row.insert("instance_id".to_owned(), Value::String(id));
    Value::Object(row)
}

fn of_row(mut row: Value, file: &str) -> Submission {
    let taken = |row: &mut Value, key: &str| row.as_object_mut().and_then(|row| row.remove(key));
    let whole =
        taken(&mut row, "concise").and_then(|text| text.as_str().map(|text| text.as_bytes().to_vec()));
    let patch = taken(&mut row, "model_patch").and_then(|text| text.as_str().map(str::to_owned));
    let (of_patch, other_files) = patch.map_or((None, 0), |patch| added_file(&patch, file));
    let text = whole.or(of_patch);
    let trouble = text.as_ref().filter(|text| text.len() as u64 > LARGEST);
    let troubles: Vec<String> =
        trouble.iter().map(|_| format!("it has more than the {LARGEST} bytes that are read of it")).collect();
    let text = text.filter(|_| troubles.is_empty());
    Submission { text, meta: row, other_files, troubles }
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
    fn folders_dictionaries_lists_and_lines_say_the_same() {
        let folder = tempfile::tempdir().unwrap();
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
            let run = read(&path, "concise.py", &known()).unwrap();
            assert_eq!(text(&run, "a__b-1").as_deref(), Some("x = 1\n"), "{}", path.display());
            assert_eq!(text(&run, "a__b-2"), None);
        }
        let run = read(&folder.path().join("run"), "concise.py", &known()).unwrap();
        assert_eq!(
            (run.name.as_str(), &run.submissions["a__b-2"].meta["steps"]),
            ("mine", &serde_json::json!(3))
        );
        let run = read(&folder.path().join("preds.json"), "concise.py", &known()).unwrap();
        assert_eq!((run.name.as_str(), run.submissions["a__b-1"].other_files), ("preds", 1));
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
        let said = read(&path, "concise.py", &known()).unwrap_err().to_string();
        for words in ["row 4 has no `instance_id`", "two submissions for a__b-1", "no instance z"] {
            assert!(said.contains(words), "{said}");
        }
        fs_err::write(&path, "{").unwrap();
        assert!(read(&path, "concise.py", &known()).unwrap_err().to_string().contains(":1 is not JSON"));
    }

    #[test]
    fn the_name_of_a_run_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["..", "../x", "/tmp/x", "a/b", "", ".x", "report.html", "tables.json", "Report.HTML"] {
            let run = serde_json::json!({ "name": name }).to_string();
            fs_err::write(folder.path().join("run.json"), run).unwrap();
            let error = read(folder.path(), "concise.py", &known()).unwrap_err();
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
            let run = read(&run, "concise.py", &known()).unwrap();
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
        let run = read(&place, "concise.py", &known()).unwrap();
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
        let run = read(folder.path(), "concise.py", &known()).unwrap();
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
