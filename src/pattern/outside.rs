//! The outside engine: OpenGrep or Semgrep, for patterns that are a mapping with `rules`. It runs offline in the sandbox, over
//! a copy of the tree in which nothing says what is left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::found::{Keys, LONGEST_ERROR, Matches};
use super::pair::Tree;
use crate::backend::{Backend, Job, Mount, retry};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::family::codetaste::matches::{self, own_name};
use crate::family::codetaste::score::Side;
use crate::redact::quote;
use crate::store::{scratch, sha256_of_file};
use crate::text;

/// Makes the sandbox that the engine runs in, where one is needed.
pub(crate) type Sandbox<'a> = &'a dyn Fn() -> Result<Arc<dyn Backend>>;

// Where things are as the engine sees them.
const ENGINE: &str = "/opt/engine";
const TREE: &str = "/testbed";
const IN: &str = "/opt/in";
const OUT: &str = "/opt/out";
/// Programs that are looked for on the path, the first one first.
const NAMES: [&str; 2] = ["opengrep", "semgrep"];
/// Files that engines obey.
const OBEYED: [&str; 5] = [".semgrepignore", ".gitignore", ".ignore", ".git", "sgconfig.yml"];
/// Nothing is passed over for its size, its time or its comments, and nobody is called.
const ARGUMENTS: [&str; 15] = [
    "scan",
    "--metrics=off",
    "--disable-version-check",
    "--no-git-ignore",
    "--disable-nosem",
    "--max-target-bytes",
    "0",
    "--timeout",
    "0",
    "--timeout-threshold",
    "0",
    "--max-memory",
    "0",
    "--quiet",
    "--json",
];
const LIMIT: Duration = Duration::from_mins(20);
/// Most bytes that it may report.
const LONGEST_REPORT: u64 = 1 << 30;
/// Characters of a version.
const LONGEST_VERSION: usize = 50;
const HINT: &str = "`pip install semgrep`, or OpenGrep from its release page; what package registries have by the name of \
                    opengrep is something else";

/// Patterns with the engine that runs them.
pub(super) struct Outside {
    /// All patterns as one document.
    document: String,
    program: Program,
    backend: Arc<dyn Backend>,
    /// The program's name, version and SHA-256.
    engine: String,
}

/// What is run, and what of this machine it needs to see.
struct Program {
    /// As people call it.
    name: &'static str,
    /// What is run, on this machine and as the job sees it.
    file: PathBuf,
    path: String,
    mounts: Vec<Mount>,
    /// What this program needs as a further option.
    option: Option<&'static str>,
}

/// The patterns of a document of this form; none of one that has another.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn rules(documents: &[Keys]) -> std::result::Result<Option<Vec<Keys>>, String> {
    let [document] = documents else {
        let has_rules = documents.iter().any(|one| one.contains_key("rules"));
        return if has_rules { Err("`rules` is in one of several documents".to_owned()) } else { Ok(None) };
    };
    let Some(rules) = document.get("rules") else { return Ok(None) };
    let rules: Option<Vec<Keys>> = serde_json::from_value(rules.clone()).ok();
    let rules = rules.filter(|rules| !rules.is_empty());
    rules.map(Some).ok_or_else(|| "`rules` is not a list of patterns".to_owned())
}

/// The name by which the engine reports a pattern.
pub(super) fn id(rule: &Keys) -> String {
    own_name(rule.get("id").and_then(Value::as_str).unwrap_or_default()).to_owned()
}

/// The side that a pattern says it is for, or its file by the name that the authors give it.
pub(super) fn side(file: &str, rule: &Keys) -> Option<Side> {
    let said = rule.get("metadata").map(|metadata| &metadata["side"]);
    let said = said.and_then(|side| serde_json::from_value(side.clone()).ok());
    said.or_else(|| match file.rsplit('/').next() {
        Some("rules_positive.yml") => Some(Side::Additive),
        Some("rules_negative.yml") => Some(Side::Reductive),
        _ => None,
    })
}

impl Outside {
    /// Looks for the engine, and has it read the patterns.
    ///
    /// # Errors
    /// The machine's trouble: no engine, no sandbox; a usage error with every pattern that it cannot read.
    pub(super) fn new(rules: &[&Keys], sandbox: Sandbox<'_>) -> Result<Self> {
        let backend = sandbox()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = Program::find(std::env::split_paths(&path))?;
        let document = json!({ "rules": rules }).to_string();
        let mut outside = Outside { document, program, backend, engine: String::new() };
        let report = outside.report(&Tree::default())?;
        let version = report["version"].as_str().unwrap_or("of unknown version");
        let version: String = version.chars().take(LONGEST_VERSION).collect();
        let (name, hash) = (outside.program.name, sha256_of_file(&outside.program.file)?);
        outside.engine = format!("{name} {version}, SHA-256 {hash}");
        Ok(outside)
    }

    /// The program, with version and SHA-256.
    pub(super) fn engine(&self) -> &str {
        &self.engine
    }

    /// What each pattern matches on a tree; what matches nothing is missing.
    ///
    /// # Errors
    /// The harness's trouble, and a file that the engine gives up on.
    pub(super) fn scan(&self, tree: &Tree) -> Result<BTreeMap<String, Matches>> {
        found(&self.report(tree)?)
    }

    fn report(&self, tree: &Tree) -> Result<Value> {
        let scratch = scratch()?;
        let host = |name: &str| scratch.path().join(name);
        for name in ["tree", "in", "out"] {
            fs_err::create_dir(host(name))?;
        }
        copy(tree, &host("tree"))?;
        fs_err::write(host("in").join("patterns.json"), &self.document)?;
        let finished = retry::run(&*self.backend, &self.job(&host), LIMIT)?;
        if finished.timed_out && !tree.is_empty() {
            let minutes = LIMIT.as_secs() / 60;
            return Err(Error::usage(format!(
                "no engine of patterns gets through the tree in {minutes} minutes"
            )));
        }
        let file = Folder::open(&host("out"))?.read(Path::new("found.json"), LONGEST_REPORT)?;
        let report: Option<Value> = serde_json::from_slice(&file).ok();
        let problems = report.as_ref().map(problems).unwrap_or_default();
        if !problems.is_empty() {
            return Err(Error::usage(problems.join("\n")));
        }
        report.filter(|_| finished.success()).ok_or_else(|| {
            let said = format!("exit code {:?}\n{}", finished.code, text::tail(&finished.stderr, 20));
            Error::harness("the engine of patterns failed").with_detail(said).with_hint(HINT)
        })
    }

    fn job(&self, host: &dyn Fn(&str) -> PathBuf) -> Job {
        let read_only =
            |name: &str, inside: &str| Mount::ReadOnly { host: host(name), inside: inside.into() };
        let mut mounts = vec![
            read_only("tree", TREE),
            read_only("in", IN),
            Mount::Writable { host: host("out"), inside: OUT.into() },
            Mount::Tmpfs { inside: "/tmp".into(), bytes: 1 << 30 },
        ];
        mounts.extend(self.program.mounts.iter().cloned());
        let to_file = format!("exec \"$0\" \"$@\" > {OUT}/found.json");
        let mut argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), to_file, self.program.path.clone()];
        argv.extend(ARGUMENTS.map(str::to_owned));
        argv.extend(self.program.option.map(str::to_owned));
        argv.extend(["-f".to_owned(), format!("{IN}/patterns.json"), ".".to_owned()]);
        let env = [("HOME", "/tmp"), ("LC_ALL", "C.UTF-8"), ("SEMGREP_SEND_METRICS", "off")];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut job = Job { cwd: TREE.into(), mounts, ..Job::small(argv) };
        job.env.extend(env);
        job
    }
}

/// Writes what is looked through, and a list of ours that leaves nothing out: without one, engines pass over tests.
fn copy(tree: &Tree, folder: &Path) -> Result<()> {
    fs_err::write(folder.join(OBEYED[0]), "")?;
    let folder = Folder::open(folder)?;
    for (path, text) in tree.files.iter().chain(&tree.others) {
        if path.rsplit('/').next().is_some_and(|name| OBEYED.contains(&name)) {
            continue;
        }
        if path.split('/').next() == Some(OBEYED[0]) {
            return Err(Error::usage(format!(
                "{path} is below what engines of patterns take for a file of theirs"
            )));
        }
        std::io::Write::write_all(&mut folder.create_new(Path::new(path))?, text.as_bytes())?;
    }
    Ok(())
}

/// What the engine says is wrong: warnings of files that it reads in part do not count.
fn problems(report: &Value) -> Vec<String> {
    let errors = report["errors"].as_array().into_iter().flatten();
    let errors = errors.filter(|error| error["level"] == "error");
    let said = errors.map(|error| {
        let place = error["rule_id"].as_str().map(own_name).or(error["path"].as_str()).unwrap_or("patterns");
        let why = error["message"].as_str().unwrap_or("it says nothing more");
        format!("{}: {}", quote(place), why.chars().take(LONGEST_ERROR).collect::<String>().trim())
    });
    said.collect()
}

fn found(report: &Value) -> Result<BTreeMap<String, Matches>> {
    let all = matches::of_engine_json(report).map_err(|error| {
        Error::harness("what the engine of patterns reports cannot be read").with_source(error)
    })?;
    let mut found: BTreeMap<String, Matches> = BTreeMap::new();
    for one in all {
        let of = found.entry(one.pattern.unwrap_or_default()).or_default();
        of.matches += 1;
        of.lines.insert(&one.path, one.first, one.last);
    }
    Ok(found)
}

impl Program {
    /// The first engine in some folders.
    fn find(folders: impl Iterator<Item = PathBuf>) -> Result<Self> {
        let folders: Vec<PathBuf> = folders.collect();
        let there = NAMES.iter().find_map(|name| {
            let file = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())?;
            Some((*name, file))
        });
        let Some((name, file)) = there else {
            return Err(Error::machine(
                "neither `opengrep` nor `semgrep` is on the path, and patterns need one",
            )
            .with_hint(HINT));
        };
        Program::native(name, &file.canonicalize()?).ok_or_else(|| {
            Error::machine(format!("{} is neither a program nor Semgrep's script", file.display()))
                .with_hint(HINT)
        })
    }

    /// A program as it is; in the place of Semgrep's script the program that this would start.
    fn native(name: &'static str, file: &Path) -> Option<Self> {
        let mount =
            |host: PathBuf, name: &str| Mount::ReadOnly { host, inside: format!("{ENGINE}/{name}").into() };
        let path = |name: &str| format!("{ENGINE}/{name}");
        if is_native(file) {
            return Some(Program {
                name,
                file: file.to_owned(),
                path: path(name),
                mounts: vec![mount(file.to_owned(), name)],
                option: None,
            });
        }
        // Which command the program is hangs on its name.
        let core = core_of(file)?;
        let libraries = core.parent()?.join("libs");
        let mut mounts = vec![mount(core.clone(), "osemgrep")];
        mounts.extend(libraries.is_dir().then(|| mount(libraries, "libs")));
        // Else it would call the script again.
        Some(Program { name, file: core, path: path("osemgrep"), mounts, option: Some("--experimental") })
    }
}

fn is_native(file: &Path) -> bool {
    let mut first = [0; 4];
    let read = fs_err::File::open(file).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && first == *b"\x7fELF"
}

/// The program of Semgrep's distribution, whose script is in `bin` of an environment or of a system.
fn core_of(script: &Path) -> Option<PathBuf> {
    let versions = script.parent()?.parent()?.join("lib").read_dir().ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .flat_map(|folder| ["site-packages", "dist-packages"].map(|name| folder.join(name)))
        .map(|packages| packages.join("semgrep/bin/semgrep-core"))
        .filter(|core| is_native(core))
        .collect();
    found.sort();
    found.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_with_what_is_wrong_in_them() {
        let report = json!({
            "results": [
                {"check_id": "a.b.old", "path": "x.go", "start": {"line": 2, "col": 1}, "end": {"line": 3, "col": 4}},
                {"check_id": "old", "path": "./x.go", "start": {"line": 3, "col": 1}, "end": {"line": 3, "col": 4}},
            ],
            "errors": [
                {"level": "warn", "path": "y.go", "message": "read in part"},
                {"level": "error", "rule_id": "a.broken", "message": "invalid pattern\n"},
                {"level": "error", "path": "z.go", "message": "the stack is full"},
            ],
        });
        assert_eq!(problems(&report), ["`broken`: invalid pattern", "`z.go`: the stack is full"]);
        let found = found(&report).unwrap();
        assert_eq!((found["old"].matches, found["old"].lines.count()), (2, 2));
    }

    #[test]
    fn the_program_behind_the_script_is_run_and_trees_are_copied_without_what_engines_obey() {
        let place = tempfile::tempdir().unwrap();
        let packages = place.path().join("lib/python3.11/site-packages/semgrep/bin");
        fs_err::create_dir_all(packages.join("libs")).unwrap();
        let bin = place.path().join("bin");
        fs_err::create_dir(&bin).unwrap();
        let find = || Program::find([bin.clone()].into_iter());
        assert!(find().err().unwrap().to_string().contains("neither `opengrep` nor `semgrep`"));
        fs_err::write(bin.join("semgrep"), "#!/bin/python\n").unwrap();
        assert!(find().err().unwrap().to_string().contains("is neither a program nor"));
        fs_err::write(packages.join("semgrep-core"), "\x7fELF…").unwrap();
        let program = find().unwrap();
        assert_eq!((program.path.as_str(), program.mounts.len()), ("/opt/engine/osemgrep", 2));
        fs_err::write(bin.join("opengrep"), "\x7fELF…").unwrap();
        assert_eq!(find().unwrap().path, "/opt/engine/opengrep");

        let tree = Tree {
            files: [("a/b.py".to_owned(), "x".to_owned())].into(),
            others: [("a/.semgrepignore".to_owned(), "b.py".to_owned()), ("c.go".to_owned(), "y".to_owned())]
                .into(),
            ..Tree::default()
        };
        let folder = place.path().join("tree");
        fs_err::create_dir(&folder).unwrap();
        copy(&tree, &folder).unwrap();
        assert_eq!(fs_err::read_to_string(folder.join("a/b.py")).unwrap(), "x");
        assert!(folder.join("c.go").is_file() && !folder.join("a/.semgrepignore").exists());
        assert_eq!(fs_err::read_to_string(folder.join(".semgrepignore")).unwrap(), "");
    }
}
