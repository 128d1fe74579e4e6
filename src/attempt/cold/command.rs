//! A cold run of a command: a shell leads its streams into files, and the tree is looked at before and after.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Cold, REPORT};
use crate::attempt::attempt_of;
use crate::attempt::world::WorldSetting;
use crate::backend::{Job, Mount};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::collected::Group;
use crate::record::entry::{Entry, Stdin};
use crate::record::id::sha256_hex;
use crate::record::outcome::{Attempt, FileChange, Method, Outcome, TimeScope};
use crate::record::world::World;
use crate::runner::protocol::{ProcessExit, Reached};
use crate::runner::report::{CaseReport, GroupDone};

/// Largest list of changes that is read, in bytes.
const LARGEST_CHANGES: u64 = 128 << 20;
/// Largest stream that is read, in bytes.
const LARGEST_STREAM: u64 = 256 << 20;
/// What surrounds the command: `$1` is the interpreter, `$2` what looks at the tree, `$3` the root, `$4` standard input;
/// the command is the rest. The inner shell becomes the command.
const AROUND: &str = r#"
look="$1 -I -S $2"; root=$3; input=$4; shift 4
(cd / && $look before "$root" /run/report/before) || exit 97
sh -c 'echo $$ >/run/report/process; exec "$@"' sh "$@" <"$input" >/run/report/stdout 2>/run/report/stderr
echo $? >/run/report/status
(cd / && $look after "$root" /run/report/before) >/run/report/files || exit 97
"#;

/// One cold run of an entry.
///
/// # Errors
/// The harness's trouble.
pub(super) fn attempt(cold: &Cold<'_>, (group, entry): (&Group, &Entry), limit: Duration) -> Result<Attempt> {
    let report = tempfile::tempdir().map_err(|error| Error::from(error).at("a place for the report"))?;
    if let Some(Stdin::Text(text)) = &entry.stdin {
        fs_err::write(report.path().join("stdin"), text)?;
    }
    let started = Instant::now();
    let finished = cold.backend.run(&job(cold, entry, report.path()), limit)?;
    let duration_ms = started.elapsed().as_secs_f64() * 1000.0;
    let folder = Folder::open(report.path())?;
    let read = |name: &str, most| folder.read(Path::new(name), most).unwrap_or_default();
    let status = String::from_utf8_lossy(&read("status", 64)).trim().parse::<i32>().ok();
    let exit = match (finished.timed_out, status) {
        (true, _) => ProcessExit::TimedOut { scope: TimeScope::Case, index: Some(0) },
        // What a shell says of a command that a signal ended.
        (false, Some(status @ 129..=192)) if status != i32::from(entry.exit) => {
            ProcessExit::Signaled { signal: status - 128 }
        }
        (false, Some(_)) => ProcessExit::Finished,
        (false, None) => {
            finished.code.map_or(ProcessExit::Signaled { signal: 9 }, |code| ProcessExit::Exited { code })
        }
    };
    let mut case = CaseReport { status, ..shown(entry, status, cold.setting.output_bytes, &read) };
    let changes = read("files", LARGEST_CHANGES);
    // What the command made of its own report is its own trouble.
    let files = serde_json::from_slice::<Vec<FileChange>>(&changes);
    let exit = match (exit, files) {
        (ProcessExit::Finished, Ok(files)) => {
            case.files = files;
            ProcessExit::Finished
        }
        (ProcessExit::Finished, Err(_)) => ProcessExit::Exited { code: finished.code.unwrap_or_default() },
        (other, _) => other,
    };
    let is_whole = exit == ProcessExit::Finished;
    let done = GroupDone {
        cases: if is_whole { vec![case] } else { Vec::new() },
        exit,
        leftover: 0,
        connections: Vec::new(),
        raw_output: if is_whole { String::new() } else { crate::text::tail(&finished.stdout, 30) },
        pytest_error: None,
        duration_ms,
        processor_ms: 0.0,
        memory_bytes: None,
        trace: None,
        reached: Reached::default(),
        execution: None,
    };
    let name = |_: i64| entry.id();
    let normalizer = WorldSetting::base(cold.setting).normalizer;
    let made = attempt_of(group, &done, name, &normalizer, (&World::Base, 0));
    Ok(Attempt { method: Method::Cold, ..made })
}

/// What the streams show.
fn shown(entry: &Entry, status: Option<i32>, most: u64, read: &dyn Fn(&str, u64) -> Vec<u8>) -> CaseReport {
    let process = String::from_utf8_lossy(&read("process", 64)).trim().parse().ok();
    let [(stdout, stdout_sha256), (stderr, stderr_sha256)] =
        ["stdout", "stderr"].map(|name| stream(&read(name, LARGEST_STREAM), most));
    let passes = status == Some(i32::from(entry.exit));
    CaseReport {
        index: 0,
        outcome: if passes { Outcome::Passed } else { Outcome::Failed },
        exception: exception_of(status, &stderr),
        message: None,
        stdout,
        stderr,
        duration_ms: 0.0,
        process_ids: process.into_iter().collect(),
        stdout_sha256,
        stderr_sha256,
        status,
        files: Vec::new(),
        wants: None,
    }
}

/// A stream as text, and the hash of all its bytes where that is cut.
fn stream(bytes: &[u8], most: u64) -> (String, Option<String>) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut text = String::new();
    for part in bytes[..bytes.len().min(most)].utf8_chunks() {
        text.push_str(part.valid());
        for byte in part.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    (text, (bytes.len() > most).then(|| sha256_hex(bytes)))
}

/// The type of the exception that ended a command, as far as the traceback at the end of its errors says it: what
/// `exception_of` in `entries.py` says.
fn exception_of(status: Option<i32>, stderr: &str) -> Option<String> {
    let (_, after) =
        stderr.rsplit_once("Traceback (most recent call last):").filter(|_| status == Some(1))?;
    let mut lines = after.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with([' ', '\t']));
    let line = lines.next()?;
    let name = line.split(':').next()?;
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    (starts && plain).then(|| name.to_owned())
}

fn job(cold: &Cold<'_>, entry: &Entry, report: &Path) -> Job {
    let setting = cold.setting;
    let places = &setting.places;
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let mut job = setting.command(Vec::new());
    job.mounts.push(Mount::Writable { host: report.to_owned(), inside: REPORT.into() });
    job.mounts.push(Mount::ReadOnly { host: setting.runner.clone(), inside: places.runner.clone() });
    job.env.extend(entry.env.clone());
    let input = match &entry.stdin {
        None => "/dev/null".to_owned(),
        Some(Stdin::Text(_)) => format!("{REPORT}/stdin"),
        Some(Stdin::File(file)) => text(places.root.join(file)),
    };
    let surroundings = [
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        AROUND.to_owned(),
        "sh".to_owned(),
        text(places.venv.join("bin/python")),
        text(places.runner.join("gistmill_runner/tree_state.py")),
        text(places.root.clone()),
        input,
    ];
    job.argv = surroundings.into_iter().chain(places.in_environment(entry.command.words())).collect();
    job.cwd = places.root.join(&entry.cwd);
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exception_of_a_command_is_the_one_that_ends_its_errors() {
        let trace = "Traceback (most recent call last):\n  File \"a.py\", line 1\n    raise\n";
        for (status, stderr, expected) in [
            (Some(1), format!("{trace}KeyError: 'x'\n"), Some("KeyError")),
            (Some(1), format!("{trace}shop.errors.Broken\nnote\n"), Some("shop.errors.Broken")),
            (Some(2), format!("{trace}KeyError: 'x'\n"), None),
            (Some(1), "KeyError: 'x'\n".to_owned(), None),
            (None, format!("{trace}KeyError: 'x'\n"), None),
        ] {
            assert_eq!(exception_of(status, &stderr).as_deref(), expected, "{stderr}");
        }
    }

    #[test]
    fn a_stream_is_cut_with_the_hash_of_all_its_bytes() {
        assert_eq!(stream(b"a\xff\n", 10), ("a\\xff\n".to_owned(), None));
        assert_eq!(stream(b"abc", 2), ("ab".to_owned(), Some(sha256_hex(b"abc"))));
    }
}
