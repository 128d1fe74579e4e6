//! Interpreters: which ones the machine has, and which one a tree gets.
//!
//! [`discover`] asks every candidate for its version (in parallel, answers cached by path and modification time);
//! [`choose`] is pure. Only real executables count: a version manager's shims change their mind with the working
//! directory.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use pep440_rs::{Version, VersionSpecifiers};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Job, retry};
use crate::environment::declared::project::Project;
use crate::error::{Error, Result};
use crate::record::limits::EMPTIED;
use crate::record::moment::Moment;
use crate::store::{read_sealed, write_sealed};

/// The oldest interpreter that the runner works on.
const OLDEST: (u64, u64) = (3, 8);

/// Preferred minor versions: 3.12 has `sys.monitoring` and what most wheels are built for.
const PREFERRED: [u64; 8] = [12, 13, 11, 10, 9, 8, 14, 15];

/// When Python 3.8 and its successors came out (PEPs 569, 596, 619, 664, 693, 719, 745, 790).
const RELEASED: [&str; 8] = [
    "2019-10-14",
    "2020-10-05",
    "2021-10-04",
    "2022-10-24",
    "2023-10-02",
    "2024-10-07",
    "2025-10-07",
    "2026-10-01",
];

/// So long after a release most of what is installed works with it.
const YOUNG_SECONDS: i64 = 90 * 24 * 60 * 60;

/// One interpreter, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interpreter {
    /// The real executable below `prefix`.
    pub executable: PathBuf,
    /// Full version, e.g. `3.12.1`.
    pub version: String,
    /// Prefix of the installation, e.g. `/usr`.
    pub prefix: PathBuf,
    /// `cpython`, `pypy` …
    pub implementation: String,
    pub free_threaded: bool,
}

impl Interpreter {
    /// The parsed version; a version that does not parse counts as 0.
    fn parsed(&self) -> Version {
        Version::from_str(&self.version).unwrap_or_else(|_| Version::new([0]))
    }

    /// The `12` of `3.12`.
    pub(in crate::environment) fn minor_number(&self) -> u64 {
        self.parsed().release().get(1).copied().unwrap_or_default()
    }

    /// When it had been out for long enough; none for one that is not known yet.
    pub fn usable_from(&self) -> Option<Moment> {
        let at = usize::try_from(self.minor_number().checked_sub(OLDEST.1)?).ok()?;
        Some(Moment::of_seconds(Moment::parse_end(RELEASED.get(at)?)?.seconds() + YOUNG_SECONDS))
    }

    fn was_usable_at(&self, moment: Moment) -> bool {
        self.usable_from().is_some_and(|from| from.seconds() <= moment.seconds())
    }

    /// `3.12`.
    pub fn minor(&self) -> String {
        self.version.split('.').take(2).collect::<Vec<_>>().join(".")
    }

    /// Whether it is where attempts find nothing, so that nothing runs on it.
    pub fn is_emptied(&self) -> bool {
        EMPTIED.iter().any(|folder| self.prefix.starts_with(folder))
    }
}

/// The chosen interpreter, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub interpreter: Interpreter,
    pub reason: String,
}

/// Chooses for a project: the config's request, else what the project allows, the machine has, and what is installed,
/// which is nothing newer than `newest`, knew of.
///
/// # Errors
/// Nothing on the machine fits; the message names what was asked for and what there is.
pub fn choose(
    request: Option<&str>,
    project: &Project,
    newest: Moment,
    machine: &[Interpreter],
) -> Result<Choice> {
    let usable = machine.iter().filter(|python| {
        python.implementation == "cpython"
            && !python.is_emptied()
            && !python.free_threaded
            && python.parsed().release().first() == Some(&OLDEST.0)
            && python.minor_number() >= OLDEST.1
    });
    let usable: Vec<&Interpreter> = usable.collect();
    if let Some(request) = request {
        let wanted = usable.iter().filter(|python| {
            python.version == request
                || python.version.strip_prefix(request).is_some_and(|rest| rest.starts_with('.'))
        });
        let best = wanted.max_by_key(|python| python.parsed());
        return best.map_or_else(
            || Err(none_fits(&format!("the configuration asks for Python {request}"), machine)),
            |python| {
                Ok(Choice {
                    interpreter: (*python).clone(),
                    reason: format!("the configuration asks for {request}"),
                })
            },
        );
    }
    let specifiers =
        project.requires_python.as_deref().and_then(|text| VersionSpecifiers::from_str(text).ok());
    let allowed: Vec<&Interpreter> = usable
        .into_iter()
        .filter(|python| !python.parsed().any_prerelease())
        .filter(|python| specifiers.as_ref().is_none_or(|specifiers| specifiers.contains(&python.parsed())))
        .collect();
    let classified: Vec<&Interpreter> =
        allowed.iter().copied().filter(|python| project.classifiers.contains(&python.minor())).collect();
    let (pool, by_classifier) = if classified.is_empty() { (allowed, false) } else { (classified, true) };
    let (pool, young) = of_their_time(pool, newest);
    let rank = |python: &Interpreter| {
        let minor = python.minor_number();
        let place = PREFERRED.iter().position(|preferred| *preferred == minor).unwrap_or(PREFERRED.len());
        (std::cmp::Reverse(place), python.parsed())
    };
    let asked = match (&specifiers, &project.requires_python) {
        (Some(_), Some(text)) => format!("requires-python {text}"),
        (None, Some(text)) => format!("requires-python `{text}`, which cannot be read"),
        _ => "no requires-python".to_owned(),
    };
    let asked = if by_classifier { format!("{asked}, the classifiers") } else { asked };
    pool.iter().max_by_key(|python| rank(python)).map_or_else(
        || Err(none_fits(&format!("the tree has {asked}"), machine)),
        |python| {
            let mut reason = format!(
                "{asked} and the machine allow it; 3.12 is preferred, then 3.13, 3.11, 3.10, 3.9, 3.8"
            );
            if let Some(young) = young {
                reason = format!("{reason}; {young} came out too late for what the tree is installed with");
            }
            Ok(Choice { interpreter: (*python).clone(), reason })
        },
    )
}

/// Those that had been out for a while at a moment, and the minor versions that had not; where none had, the oldest, which
/// is the nearest to what there was.
fn of_their_time(pool: Vec<&Interpreter>, newest: Moment) -> (Vec<&Interpreter>, Option<String>) {
    let (mut usable, mut young): (Vec<&Interpreter>, Vec<&Interpreter>) =
        pool.into_iter().partition(|python| python.was_usable_at(newest));
    if usable.is_empty() {
        let oldest = young.iter().map(|python| python.minor_number()).min();
        (usable, young) = young.into_iter().partition(|python| Some(python.minor_number()) == oldest);
    }
    let numbers: BTreeSet<u64> = young.iter().map(|python| python.minor_number()).collect();
    let names: Vec<String> = numbers.into_iter().map(|minor| format!("3.{minor}")).collect();
    (usable, Some(names.join(", ")).filter(|names| !names.is_empty()))
}

fn none_fits(asked: &str, machine: &[Interpreter]) -> Error {
    let usable = machine.iter().filter(|python| !python.is_emptied());
    let mut versions: Vec<(Version, String)> =
        usable.map(|python| (python.parsed(), python.version.clone())).collect();
    versions.sort();
    versions.dedup();
    let listed: Vec<String> = versions.into_iter().map(|(_, version)| version).collect();
    let has = if listed.is_empty() { "no Python that can be used".to_owned() } else { listed.join(", ") };
    // What the machine lacks altogether is not one repository's trouble.
    let trouble = if listed.is_empty() { Error::machine } else { Error::repository };
    let error = trouble(format!("no interpreter fits: {asked}; the machine has {has}"));
    match unused(machine) {
        Some(unused) => error.with_detail(unused).with_hint(ELSEWHERE),
        None => {
            error.with_hint("install one (`uv python install 3.12`), or set `python` to an installed version")
        }
    }
}

/// The way out where an interpreter is in a folder that attempts have empty.
pub const ELSEWHERE: &str = "install one elsewhere, such as below your home: `uv python install 3.12`, with UV_PYTHON_INSTALL_DIR outside of these folders";

/// Interpreters that are not used because of where they are, in words.
pub fn unused(machine: &[Interpreter]) -> Option<String> {
    let unused = machine.iter().filter(|python| python.is_emptied());
    let named: Vec<String> =
        unused.map(|python| format!("{} in {}", python.version, python.prefix.display())).collect();
    (!named.is_empty()).then(|| {
        format!("not used, because attempts have {} empty: {}", EMPTIED.join(", "), named.join(", "))
    })
}

/// What an answer was cached for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    modified: (i64, i64),
    size: u64,
    answer: Option<Interpreter>,
}

/// All interpreters of the machine, newest first, each installation once. `memory` is the file that keeps the answers.
///
/// # Errors
/// Only when the answers cannot be written; an interpreter that does not answer is left out.
pub fn discover(memory: &Path) -> Result<Vec<Interpreter>> {
    let remembered: BTreeMap<PathBuf, Asked> = read_sealed(memory)?.unwrap_or_default();
    let answers: BTreeMap<PathBuf, Asked> = candidates()
        .into_par_iter()
        .filter_map(|path| {
            let metadata = path.metadata().ok()?;
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let known =
                remembered.get(&path).filter(|old| old.modified == modified && old.size == metadata.len());
            let asked = match known {
                Some(known) => known.clone(),
                None => Asked { modified, size: metadata.len(), answer: ask(&path)? },
            };
            Some((path, asked))
        })
        .collect();
    if answers != remembered {
        write_sealed(memory, &answers)?;
    }
    let mut found: Vec<Interpreter> = Vec::new();
    for python in answers.into_values().filter_map(|asked| asked.answer) {
        if !found.iter().any(|other| other.prefix == python.prefix && other.version == python.version) {
            found.push(python);
        }
    }
    found.sort_by_key(|python| std::cmp::Reverse((python.parsed(), python.prefix.clone())));
    Ok(found)
}

/// Real executables that may be interpreters: of PATH, pyenv, uv and the system.
fn candidates() -> BTreeSet<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    for root in pyenv.into_iter().chain([home.join(".pyenv")]) {
        folders.extend(children(&root.join("versions")).into_iter().map(|version| version.join("bin")));
    }
    let managed = std::env::var_os("UV_PYTHON_INSTALL_DIR").map(PathBuf::from);
    let data = std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    for root in managed.into_iter().chain([data.join("uv/python")]) {
        folders.extend(children(&root).into_iter().map(|version| version.join("bin")));
    }
    folders.extend(["/usr/bin", "/usr/local/bin"].map(PathBuf::from));
    let executables =
        folders.iter().filter(|folder| !folder.ends_with("shims")).flat_map(|folder| children(folder));
    executables.filter(|path| is_interpreter_name(path)).filter_map(|path| path.canonicalize().ok()).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// `python3` or `python3.<number>`.
fn is_interpreter_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(rest) = name.strip_prefix("python3") else { return false };
    rest.is_empty() || rest.strip_prefix('.').is_some_and(|minor| minor.chars().all(|c| c.is_ascii_digit()))
}

const QUESTION: &str = "import sys, platform, sysconfig, os; print('\\n'.join([\
    '.'.join(map(str, sys.version_info[:3])) + {'final': ''}.get(sys.version_info[3], sys.version_info[3][:1] + str(sys.version_info[4])), \
    sys.base_prefix, sys.implementation.name, str(sysconfig.get_config_var('Py_GIL_DISABLED') or 0), \
    os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable)]))";

/// Asks every interpreter of an image.
const SEARCH: &str = "import glob, os, re, subprocess, sys
seen = set()
for pattern in ('/usr/local/bin/python3*', '/usr/bin/python3*', '/opt/*/bin/python3*'):
    for path in sorted(glob.glob(pattern)):
        real = os.path.realpath(path)
        if re.fullmatch(r'python3([.][0-9]+)?', os.path.basename(path)) and real not in seen:
            seen.add(real)
            done = subprocess.run([real, '-I', '-c', sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                sys.stdout.write(done.stdout.decode() + chr(0))
";
const SEARCH_LIMIT: Duration = Duration::from_mins(2);

/// The interpreters of the system that a backend's jobs see, newest first.
///
/// # Errors
/// The backend's; a search that does not work.
pub fn in_backend(backend: &dyn Backend) -> Result<Vec<Interpreter>> {
    let job = Job::small(["python3", "-I", "-c", SEARCH, QUESTION]);
    let done = retry::run(backend, &job, SEARCH_LIMIT)?;
    if !done.success() {
        return Err(
            Error::machine("the interpreters of the base image do not answer").with_detail(done.stderr)
        );
    }
    let mut found: Vec<Interpreter> = done.stdout.split('\0').filter_map(parse_answer).collect();
    found.sort_by_key(|python| std::cmp::Reverse((python.parsed(), python.prefix.clone())));
    Ok(found)
}

/// None when it does not come to its own end, which is no answer to remember; none inside when it is no interpreter.
#[expect(clippy::option_option, reason = "no answer, and the answer that it is not an interpreter")]
fn ask(path: &Path) -> Option<Option<Interpreter>> {
    let question = || {
        let mut command = Command::new(path);
        command.args(["-I", "-c", QUESTION]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    match retry::output(question) {
        Ok(output) if output.status.code().is_none() => None,
        Ok(output) => Some(output.status.success().then(|| answer_here(output.stdout)).flatten()),
        Err(_) => Some(None),
    }
}

/// What an interpreter of this machine says of its own build, and of the C library under it.
pub fn build_of(prefix: &Path) -> Option<String> {
    const BUILD: &str = "import platform, sys; print(*sys.version.split(), *platform.libc_ver())";
    let question = || {
        let mut command = Command::new(prefix.join("bin/python3"));
        // Nothing that was installed beside it has a say.
        command.args(["-I", "-S", "-c", BUILD]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let output = retry::output(question).ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The answer of an interpreter of this machine.
fn answer_here(output: Vec<u8>) -> Option<Interpreter> {
    let python = parse_answer(&String::from_utf8(output).ok()?)?;
    Some(Interpreter { prefix: python.prefix.canonicalize().ok()?, ..python })
}

/// What an interpreter answered.
fn parse_answer(text: &str) -> Option<Interpreter> {
    let mut lines = text.lines();
    let mut next = || lines.next().map(str::to_owned);
    let (version, prefix, implementation, free_threaded, executable) =
        (next()?, next()?, next()?, next()?, next()?);
    Some(Interpreter {
        executable: PathBuf::from(executable),
        version,
        prefix: PathBuf::from(prefix),
        implementation,
        free_threaded: free_threaded == "1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(versions: &[&str]) -> Vec<Interpreter> {
        let python = |version: &&str| Interpreter {
            executable: PathBuf::from(format!("/opt/{version}/bin/python3")),
            version: (*version).to_owned(),
            prefix: PathBuf::from(format!("/opt/{version}")),
            implementation: "cpython".to_owned(),
            free_threaded: false,
        };
        versions.iter().map(python).collect()
    }

    fn project(requires: Option<&str>, classifiers: &[&str]) -> Project {
        Project {
            requires_python: requires.map(str::to_owned),
            classifiers: classifiers.iter().map(|text| (*text).to_owned()).collect(),
            ..Project::default()
        }
    }

    fn at(moment: &str) -> Moment {
        Moment::parse_end(moment).unwrap()
    }

    fn chosen(request: Option<&str>, project: &Project, versions: &[&str]) -> String {
        choose(request, project, at("2026-11-01"), &machine(versions)).unwrap().interpreter.version
    }

    const ALL: [&str; 8] = ["3.7.16", "3.8.18", "3.10.13", "3.11.7", "3.12.1", "3.12.3", "3.13.0", "3.14.0"];

    #[test]
    fn newest_preferred_minor_is_chosen_among_those_allowed() {
        assert_eq!(chosen(None, &project(None, &[]), &ALL), "3.12.3");
        assert_eq!(chosen(None, &project(Some(">=3.8,<3.12"), &[]), &ALL), "3.11.7");
        assert_eq!(chosen(None, &project(Some(">=3.13"), &[]), &ALL), "3.13.0");
        assert_eq!(chosen(None, &project(Some(">=3.6"), &["3.6", "3.8"]), &ALL), "3.8.18");
        assert_eq!(chosen(None, &project(Some(">=3.12"), &["3.6"]), &ALL), "3.12.3");
    }

    #[test]
    fn what_came_out_after_the_tree_is_not_chosen_where_anything_else_is_allowed() {
        let chosen = |moment: &str, project: &Project, versions: &[&str]| {
            choose(None, project, at(moment), &machine(versions)).unwrap()
        };
        let free = project(None, &[]);
        let choice = chosen("2020-08-04", &free, &ALL);
        assert_eq!(choice.interpreter.version, "3.8.18");
        assert!(
            choice.reason.contains("3.10, 3.11, 3.12, 3.13, 3.14 came out too late"),
            "{}",
            choice.reason
        );
        // Out for two months, and for four.
        assert_eq!(chosen("2023-12-01", &free, &ALL).interpreter.version, "3.11.7");
        assert_eq!(chosen("2024-02-01", &free, &ALL).interpreter.version, "3.12.3");
        assert_eq!(chosen("2017-01-01", &free, &ALL).interpreter.version, "3.8.18");
        assert_eq!(chosen("2017-01-01", &project(Some(">=3.11"), &[]), &ALL).interpreter.version, "3.11.7");
        assert_eq!(
            chosen("2021-01-01", &project(None, &["3.6", "3.10"]), &ALL).interpreter.version,
            "3.10.13"
        );
        assert!(!chosen("2026-11-01", &free, &["3.12.1"]).reason.contains("too late"));
    }

    #[test]
    fn an_interpreter_is_usable_ninety_days_after_it_came_out() {
        let from = |version: &str| machine(&[version])[0].usable_from().map(|from| from.to_string());
        assert_eq!(from("3.8.18").as_deref(), Some("2020-01-12T23:59:59Z"));
        assert_eq!(from("3.99.0"), None);
    }

    #[test]
    fn the_configuration_wins_and_a_patch_version_is_exact() {
        assert_eq!(chosen(Some("3.12.1"), &project(Some(">=3.13"), &[]), &ALL), "3.12.1");
        assert_eq!(chosen(Some("3.12"), &project(None, &[]), &ALL), "3.12.3");
        assert!(choose(Some("3.1"), &project(None, &[]), at("2026-11-01"), &machine(&ALL)).is_err());
    }

    #[test]
    fn refusal_names_what_was_asked_and_what_there_is() {
        let nothing =
            choose(None, &project(Some(">=3.15"), &[]), at("2026-11-01"), &machine(&["3.12.1", "3.9.18"]));
        let error = nothing.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(">=3.15") && text.contains("3.9.18, 3.12.1"), "{text}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn an_interpreter_where_tests_write_is_not_used_and_named() {
        let choice = |prefix: &str| {
            let machine = [Interpreter { prefix: prefix.into(), ..machine(&["3.12.1"]).remove(0) }];
            choose(None, &project(None, &[]), at("2026-11-01"), &machine)
        };
        for prefix in ["/tmpfs/python", "/opt/p"] {
            assert!(choice(prefix).is_ok(), "{prefix}");
        }
        for prefix in ["/tmp/python", "/dev/shm/a/b"] {
            let error = choice(prefix).unwrap_err();
            let detail = error.detail().unwrap_or_default();
            assert!(detail.contains(&format!("3.12.1 in {prefix}")), "{error}: {detail}");
            assert!(error.hint().is_some_and(|hint| hint.contains("elsewhere")), "{error:?}");
        }
        assert_eq!(unused(&machine(&ALL)), None);
    }

    #[test]
    fn shims_and_configs_are_no_interpreters() {
        for (name, is) in
            [("python3", true), ("python3.12", true), ("python3-config", false), ("python3.12t", false)]
        {
            assert_eq!(is_interpreter_name(Path::new(name)), is, "{name}");
        }
    }
}
