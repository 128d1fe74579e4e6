//! `gistmill import`: the data that a benchmark's authors publish, as repositories and a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{Arguments, Format};
use crate::beneath::{Folder, Kind};
use crate::error::{Error, Result};
use crate::family::recube::published::{self, PublishedPrompt};
use crate::record::id::RepoSlug;
use crate::record::recube::test_name;
use crate::record::trace::check_path;
use crate::terminal;
use crate::text::count;

/// Files that say what the targets are; the first one that exists counts.
const TARGETS: [&str; 3] = ["target.json", "target_test.json", "target_verified.json"];
/// Largest file that is read, in bytes.
const LARGEST: u64 = 256 << 20;
/// What is written beside the folders of repositories.
const RESERVED: [&str; 2] = ["tests", CONFIG];
const CONFIG: &str = "repos.toml";
/// The first number of a large repository.
const FIRST_LARGE: u64 = 55;

#[derive(Debug, clap::Args)]
pub(super) struct ImportArguments {
    /// Whose data it is
    #[arg(value_name = "FAMILY", value_parser = ["recube"])]
    family: String,
    /// The folder with target.json, prompts, tests and test_classifications
    #[arg(value_name = "DIR")]
    data: PathBuf,
    /// Where repositories and configuration are written: a folder that does not exist yet, or is empty
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

/// A repository as the published file lists it.
#[derive(Deserialize)]
struct Listed {
    repo_id: Value,
    #[serde(default, deserialize_with = "or_default")]
    selected_files: Vec<String>,
    #[serde(default)]
    repo_url: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    is_large_scale: bool,
    /// Repositories whose tests it takes, with the files that these are for.
    #[serde(default, deserialize_with = "or_default")]
    source_repo_ids: BTreeMap<String, Vec<String>>,
}

/// `null` is as good as a key that is missing.
fn or_default<'d, D: Deserializer<'d>, T: Deserialize<'d> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A repository as it is written.
struct Imported {
    id: String,
    slug: String,
    is_large: bool,
    targets: Vec<String>,
    prompt: PublishedPrompt,
    /// Bytes of files below its tests, by path.
    tests: BTreeMap<String, Vec<u8>>,
}

/// Reads the published data, and writes what `build` takes.
pub(super) fn run(arguments: &Arguments, asked: &ImportArguments) -> Result<u8> {
    if asked.output.exists() && Folder::named(&asked.output)?.names()?.iter().any(|_| true) {
        return Err(Error::usage(format!("{} is not empty", asked.output.display()))
            .with_hint("name another folder with --output"));
    }
    let data = Folder::named(&asked.data)?;
    let mut problems = Vec::new();
    let imported = read(&data, &mut problems)?;
    if !problems.is_empty() {
        return Err(Error::usage(format!("{} cannot be imported", asked.data.display()))
            .with_detail(problems.join("\n")));
    }
    fs_err::create_dir_all(&asked.output)?;
    let output = Folder::open(&asked.output)?;
    for one in &imported {
        one.write(&output)?;
    }
    write(&output, CONFIG, configuration(&imported)?.as_bytes())?;
    let place = asked.output.join(CONFIG).display().to_string();
    if arguments.format == Format::Json {
        let row = |one: &Imported| json!({ "slug": one.slug, "targets": one.targets, "large": one.is_large });
        terminal::json(&json!({ "config": place, "repos": imported.iter().map(row).collect::<Vec<_>>() }));
    } else {
        let targets = imported.iter().map(|one| one.targets.len()).sum();
        let (repositories, targets) = (count(imported.len(), "repository"), count(targets, "target"));
        terminal::say(&format!("{repositories}, {targets}: gistmill build {place}"));
    }
    Ok(0)
}

/// All repositories of the data. What is wrong with them is added to `problems`.
fn read(data: &Folder, problems: &mut Vec<String>) -> Result<Vec<Imported>> {
    let name = TARGETS.into_iter().find(|name| data.has_file(Path::new(name)));
    let name = name.ok_or_else(|| {
        Error::usage(format!("{} has no {}", data.path().display(), TARGETS[0])).with_hint(
            "name the folder that was downloaded: it has target.json, prompts/, tests/ and test_classifications/",
        )
    })?;
    let listed: Vec<Listed> =
        serde_json::from_slice(&data.read(Path::new(name), LARGEST)?).map_err(|error| {
            Error::usage(format!("{name} is not a list of repositories with `repo_id` and `selected_files`"))
                .with_source(error)
        })?;
    let (mut imported, mut known) = (Vec::new(), BTreeSet::new());
    for one in &listed {
        let id = one.id();
        if RepoSlug::new(&format!("recube/{id}")).is_err() || RESERVED.contains(&id.as_str()) {
            problems.push(format!("{name}: {id} cannot be the name of a folder"));
        } else if known.insert(id.clone()) {
            imported.extend(repository(data, one, &id, problems)?);
        } else {
            problems.push(format!("{name}: the repository {id} is listed twice"));
        }
    }
    Ok(imported)
}

impl Listed {
    fn id(&self) -> String {
        self.repo_id.as_str().map_or_else(|| self.repo_id.to_string(), str::to_owned)
    }

    fn slug(&self, id: &str) -> String {
        let url = self.repo_url.as_deref().unwrap_or_default();
        let mut parts = url.trim_end_matches('/').trim_end_matches(".git").rsplit('/');
        let (name, owner) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let slug = format!("{owner}/{name}-{id}");
        RepoSlug::new(&slug).map_or_else(|_| format!("recube/{id}"), |slug| slug.to_string())
    }

    /// The repositories whose tests are taken, with the files that they are for.
    fn sources(&self, id: &str) -> BTreeMap<String, Vec<String>> {
        if self.source_repo_ids.is_empty() {
            return BTreeMap::from([(id.to_owned(), self.selected_files.clone())]);
        }
        self.source_repo_ids.clone()
    }
}

fn repository(
    data: &Folder,
    listed: &Listed,
    id: &str,
    problems: &mut Vec<String>,
) -> Result<Option<Imported>> {
    let place = format!("prompts/{id}.txt");
    let before = problems.len();
    let Some(bytes) = bytes_of(data, &place, problems) else {
        if problems.len() == before {
            problems.push(format!("{place} is missing"));
        }
        return Ok(None);
    };
    let prompt = match published::read(&String::from_utf8_lossy(&bytes)) {
        Ok(prompt) => prompt,
        Err(why) => {
            problems.push(format!("{place}: {why}"));
            return Ok(None);
        }
    };
    let paths = || prompt.files.iter().chain(&prompt.readme).map(|(path, _)| path.as_str());
    for path in paths().filter(|path| check_path(path).is_err()) {
        problems.push(format!("{place}: `{path}` leads out of the repository"));
    }
    let files: BTreeSet<&Path> = paths().map(Path::new).collect();
    for path in paths() {
        if path.split('/').any(|part| part == ".git") {
            problems.push(format!("{place}: `{path}` belongs to git"));
        } else if Path::new(path).ancestors().skip(1).any(|above| files.contains(above)) {
            problems.push(format!("{place}: `{path}` is below another file"));
        }
    }
    for requirement in &prompt.requirements {
        if let Err(why) = crate::requirement::check(requirement) {
            problems.push(format!("{place}: `{requirement}` is not a requirement: {why}"));
        }
    }
    let sources = listed.sources(id);
    let mut targets: Vec<String> = sources.values().flatten().cloned().collect();
    targets.sort();
    targets.dedup();
    if targets.is_empty() {
        problems.push(format!("{id} has no `selected_files`, so that nothing of it would be masked"));
    }
    for target in targets.iter().filter(|target| !prompt.files.iter().any(|(path, _)| path == *target)) {
        problems.push(format!(
            "{place} does not have {target}, which is one of the repository's `selected_files`"
        ));
    }
    let mut tests = Tests::default();
    for (source, targets) in &sources {
        let below = if listed.source_repo_ids.is_empty() { String::new() } else { format!("{source}/") };
        tests.add(data, (source, &below), targets, problems)?;
    }
    let first = id.parse().is_ok_and(|number: u64| number >= FIRST_LARGE);
    let is_large = listed.is_large_scale || first || !listed.source_repo_ids.is_empty();
    let slug = listed.slug(id);
    Ok(Some(Imported { id: id.to_owned(), slug, is_large, targets, prompt, tests: tests.into_files() }))
}

/// Tests on their way into the folder of a repository.
#[derive(Default)]
struct Tests {
    files: BTreeMap<String, Vec<u8>>,
    /// By target: its test file.
    named: BTreeMap<String, String>,
    classified: serde_json::Map<String, Value>,
}

impl Tests {
    /// Takes the tests of these targets from the folder of one repository, with its helpers, to `below`.
    fn add(
        &mut self,
        data: &Folder,
        (source, below): (&str, &str),
        targets: &[String],
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let place = format!("tests/{source}");
        let names = names_below(data, &place, problems)?;
        let metadata = json_of(data, &format!("{place}/test_metadata.json"), problems);
        for target in targets {
            let said =
                metadata["instances"].as_array().into_iter().flatten().find(|one| one["file"] == **target);
            let said = said.and_then(|one| one["test_file"].as_str());
            let plain = said.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
            let name = [said.map(str::to_owned), plain, Some(test_name(target))];
            let name = name.into_iter().flatten().find(|name| names.contains(name));
            let Some(name) = name else {
                problems.push(format!("{place} has no tests of {target}"));
                continue;
            };
            if self.named.contains_key(target) {
                continue;
            }
            let bytes = bytes_of(data, &format!("{place}/{name}"), problems);
            self.files.extend(bytes.map(|bytes| (format!("{below}{name}"), bytes)));
            self.named.insert(target.clone(), format!("{below}{name}"));
        }
        let is_helper = |name: &&String| {
            !name.ends_with("_test.py") && !name.ends_with(".pyc") && *name != "test_metadata.json"
        };
        for name in names.iter().filter(is_helper) {
            let bytes = bytes_of(data, &format!("{place}/{name}"), problems);
            self.files.extend(bytes.map(|bytes| (format!("{below}{name}"), bytes)));
        }
        let classified = json_of(data, &format!("test_classifications/{source}.json"), problems);
        for (target, one) in classified["files"].as_object().into_iter().flatten() {
            if targets.contains(target) {
                self.classified
                    .insert(target.clone(), json!({ "test_classifications": one["test_classifications"] }));
            }
        }
        Ok(())
    }

    fn into_files(mut self) -> BTreeMap<String, Vec<u8>> {
        let row = |(file, test): (&String, &String)| json!({ "file": file, "test_file": test });
        let metadata = json!({ "instances": self.named.iter().map(row).collect::<Vec<_>>() });
        self.files.insert("test_metadata.json".to_owned(), metadata.to_string().into_bytes());
        if !self.classified.is_empty() {
            let classified = json!({ "files": self.classified });
            self.files.insert("classification.json".to_owned(), classified.to_string().into_bytes());
        }
        self.files
    }
}

/// Files below a folder of the data, by path from there; none where it is not. A link among them is a problem: it is not followed.
fn names_below(data: &Folder, place: &str, problems: &mut Vec<String>) -> Result<BTreeSet<String>> {
    let is_link = |kind: &Kind| matches!(kind, Kind::Link(_));
    let found = data.look(Path::new(place))?;
    if found.as_ref().is_some_and(|found| is_link(&found.kind)) {
        problems.push(format!("{place} is a link, which is not followed"));
    }
    if found.is_none_or(|found| found.kind != Kind::Folder) {
        return Ok(BTreeSet::new());
    }
    let entries = Folder::open(&data.path().join(place))?.walk()?;
    for entry in entries.iter().filter(|entry| is_link(&entry.kind)) {
        problems.push(format!("{place}/{} is a link, which is not followed", entry.path.display()));
    }
    let files = entries.into_iter().filter(|entry| entry.kind == Kind::File);
    Ok(files.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect())
}

/// A file of the data; none where it is missing, or cannot be read, which is a problem.
fn bytes_of(data: &Folder, place: &str, problems: &mut Vec<String>) -> Option<Vec<u8>> {
    data.read_if_there(Path::new(place), LARGEST).unwrap_or_else(|error| {
        problems.push(error.to_string());
        None
    })
}

/// A file of JSON; null where it is missing.
fn json_of(data: &Folder, place: &str, problems: &mut Vec<String>) -> Value {
    let Some(bytes) = bytes_of(data, place, problems) else { return Value::Null };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        problems.push(format!("{place} is not JSON: {error}"));
        Value::Null
    })
}

impl Imported {
    fn write(&self, output: &Folder) -> Result<()> {
        // The README of the prompt comes second: a file of that path is the same text as it was.
        let files = self.prompt.files.iter().chain(&self.prompt.readme);
        let texts: BTreeMap<&str, &str> =
            files.rev().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        for (path, text) in texts {
            write(output, &format!("{}/{path}", self.id), text.as_bytes())?;
        }
        self.tests
            .iter()
            .try_for_each(|(path, bytes)| write(output, &format!("tests/{}/{path}", self.id), bytes))
    }
}

fn write(output: &Folder, path: &str, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let path = Path::new(path);
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(output.path().join(parent))?;
    }
    output.create_new(path)?.write_all(bytes).map_err(|error| Error::from(error).at(path.display()))
}

/// The configuration that builds them.
fn configuration(imported: &[Imported]) -> Result<String> {
    let repo = |one: &Imported| {
        let mut repo = json!({
            "slug": one.slug,
            "path": one.id,
            "tests_from": format!("tests/{}", one.id),
            "requirements": one.prompt.requirements,
            "target": one.targets.iter().map(|file| json!({ "file": file })).collect::<Vec<_>>(),
        });
        if one.is_large {
            repo["large"] = json!(true);
        }
        repo
    };
    let document = json!({
        "dataset": { "family": "recube", "name": "recube-imported", "version": "1", "per_repo": 0 },
        // Every test counts, as it does for those who wrote them.
        "recube": {
            "min_groups": 1, "max_groups": 0, "min_functions": 1, "min_exercised": 0.0, "max_target_tokens": u32::MAX,
        },
        "repo": imported.iter().map(repo).collect::<Vec<_>>(),
    });
    toml::to_string(&document)
        .map_err(|error| Error::internal("cannot write a configuration").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = home.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let mut problems = Vec::new();
        let data = Folder::named(home.path()).unwrap();
        match read(&data, &mut problems) {
            Ok(_) => problems,
            Err(error) => vec![error.to_string()],
        }
    }

    const PROMPT: &str = "<readme>\n</readme>\n<dependencies>\n## click\nVersion: >=8 --index-url http://a\n</dependencies>\n<implementations>\n## a.py\n\n```python\n```\n\n\
                          ## ../b.py\n\n```python\n```\n</implementations>\n";

    #[test]
    fn all_that_a_download_lacks_is_said_at_once() {
        assert!(problems(&[])[0].contains("has no target.json"));
        let listed = r#"[{"repo_id": 1, "selected_files": ["a.py", "c.py"]}, {"repo_id": "1"}, {"repo_id": 2}, {"repo_id": "../3"}, {"repo_id": "tests"},
                         {"repo_id": 4, "selected_files": []}]"#;
        let said = problems(&[
            ("target_test.json", listed),
            ("prompts/1.txt", PROMPT),
            ("tests/1/a_test.py", ""),
            ("prompts/4.txt", "<readme>\n</readme>\n"),
        ]);
        let expected = [
            "prompts/1.txt: `../b.py` leads out of the repository",
            "prompts/1.txt: `click>=8 --index-url http://a` is not a requirement: Trailing `--index-url http://a` is not allowed",
            "prompts/1.txt does not have c.py, which is one of the repository's `selected_files`",
            "tests/1 has no tests of c.py",
            "target_test.json: the repository 1 is listed twice",
            "prompts/2.txt is missing",
            "target_test.json: ../3 cannot be the name of a folder",
            "target_test.json: tests cannot be the name of a folder",
            "prompts/4.txt: the prompt has no section <dependencies>",
        ];
        assert_eq!(said, expected);
        assert!(problems(&[("target.json", "{}")])[0].contains("is not a list"));
    }
}
