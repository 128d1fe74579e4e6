//! The log of a run: a file below the cache with what was done, for the day after. Stages, jobs, retries, what was
//! reused and errors with their sources go to it as events of `tracing`; nothing of it goes to a dataset.
//!
//! Many events quote what others wrote. So every line, wherever it comes from, passes one writer, which takes out
//! credentials and makes it printable.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tracing::Subscriber;

use crate::error::{Error, Result};
use crate::redact::redact;
use crate::store::Cache;
use crate::terminal::{self, Volume, one_line};

/// Files that are kept: the newest ones.
const KEPT: usize = 20;

static STARTED: OnceLock<PathBuf> = OnceLock::new();

/// Logs this process from now on to `<cache>/logs/<UTC time>-<process>.log`; one log for a command with several jobs.
///
/// # Errors
/// IO errors with action and path.
pub(crate) fn start(cache: &Cache) -> Result<()> {
    if path().is_some() {
        return Ok(());
    }
    let folder = cache.dir("logs")?;
    start_at(&folder.join(name(jiff::Timestamp::now(), std::process::id())))?;
    forget_old(&folder)
}

/// Logs this process from now on to the end of a file.
///
/// # Errors
/// IO errors with action and path.
pub(crate) fn start_at(path: &Path) -> Result<()> {
    tracing::subscriber::set_global_default(subscriber(path)?)
        .map_err(|error| Error::internal("the log was started twice").with_source(error))?;
    let _ = STARTED.set(path.to_owned());
    tracing::info!("gistmill {} in process {}", env!("CARGO_PKG_VERSION"), std::process::id());
    Ok(())
}

/// The file of this process, once [`start`] was called.
pub(crate) fn path() -> Option<&'static Path> {
    STARTED.get().map(PathBuf::as_path)
}

/// Names sort by time.
fn name(now: jiff::Timestamp, process: u32) -> String {
    format!("{}-{process}.log", now.strftime("%Y%m%dT%H%M%SZ"))
}

/// What writes events to a file. A full disk costs lines of the log, never the run.
fn subscriber(path: &Path) -> Result<impl Subscriber + Send + Sync + use<>> {
    let (file, _) = fs_err::OpenOptions::new().create(true).append(true).open(path)?.into_parts();
    let file = Arc::new(file);
    Ok(tracing_subscriber::fmt()
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false)
        .with_writer(move || Line(Arc::clone(&file)))
        .finish())
}

/// Removes all logs but the newest.
fn forget_old(folder: &Path) -> Result<()> {
    let mut logs = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "log") {
            logs.push(path);
        }
    }
    logs.sort_unstable();
    for old in logs.iter().rev().skip(KEPT) {
        match fs_err::remove_file(old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            // Another run that starts now removes the same ones.
            _ => {}
        }
    }
    Ok(())
}

/// One event on its way to the file: it is written with a single call, so that threads do not mix their lines.
struct Line(Arc<File>);

impl Write for Line {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = redact(text.trim_end_matches('\n'));
        let line = one_line(&text);
        if terminal::volume() == Volume::Verbose {
            terminal::note(&line);
        }
        (&*self.0).write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Finished, Isolation, Job, Places, Process, logged, retry};
    use crate::progress::Progress;
    use std::io::Read;
    use std::time::Duration;

    /// A machine on which every job is killed.
    struct Kills(Places, Isolation);

    impl Kills {
        fn new() -> Self {
            Kills(Places::in_sandbox(), Isolation::default())
        }
    }

    impl Backend for Kills {
        fn places(&self) -> &Places {
            &self.0
        }

        fn isolation(&self) -> &Isolation {
            &self.1
        }

        fn start(&self, job: &Job) -> Result<Box<dyn Process>> {
            Ok(logged::followed(job, Box::new(Killed)))
        }
    }

    #[derive(Debug)]
    struct Killed;

    impl Process for Killed {
        fn take_answers(&mut self) -> Option<Box<dyn Read + Send>> {
            None
        }

        fn requests(&mut self) -> Option<&mut dyn Write> {
            None
        }

        fn log(&self) -> String {
            String::new()
        }

        fn code_inside(&mut self) -> Option<i32> {
            None
        }

        fn wait(self: Box<Self>, _: Duration) -> Result<Finished> {
            let (stdout, stderr) = (String::new(), String::new());
            Ok(Finished { code: None, timed_out: false, stdout, stderr })
        }

        fn end(&mut self) {}
    }

    fn logged(events: impl FnOnce()) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        tracing::subscriber::with_default(subscriber(&path).unwrap(), events);
        fs_err::read_to_string(path).unwrap()
    }

    #[test]
    fn a_line_holds_no_login_and_is_one_line() {
        let log = logged(|| {
            tracing::info!(
                argv = "uv --index https://me:s3cret@host/simple",
                "bad\u{1b}]0;t\u{7}\n9999 INFO forged \u{202e}"
            );
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(!log.trim_end().chars().any(crate::terminal::is_obeyed), "{log:?}");
        assert!(!log.contains("s3cret"), "{log}");
        assert!(log.contains("INFO") && log.contains("https://<redacted>@host/simple"), "{log}");
    }

    #[test]
    fn a_log_of_a_run_has_stages_jobs_retries_and_errors() {
        let log = logged(|| {
            let stage = Progress::for_terminal().stage("me/project environment", 0);
            let job = Job::small(["/bin/uv", "install", "a @ https://me:s3cret@host/a.whl"]);
            let error = retry::run(&Kills::new(), &job, Duration::from_secs(9)).unwrap_err();
            let source = io::Error::other("proxy http://me:s3cret@proxy refused");
            error.with_source(source).with_detail("one\n\u{9b}two").with_hint("mend it").log("me/project");
            drop(stage);
        });
        assert!(!log.contains("s3cret"), "{log}");
        for line in [
            "INFO stage me/project environment started",
            "started: /bin/uv install 'a @ https://<redacted>@host/a.whl'",
            "ended after ",
            " s: killed",
            "WARN tried again after try 2 of 3: it did not come to its own end",
            "ERROR me/project: /bin/uv was killed 3 times: proxy http://<redacted>@proxy refused (Harness)",
            "ERROR me/project:   \\u{9b}two",
            "ERROR me/project: hint: mend it",
            "INFO stage me/project environment ended after ",
        ] {
            assert!(log.contains(line), "{line}\n{log}");
        }
        assert_eq!(log.matches(" started: /bin/uv").count(), 3, "{log}");
    }

    #[test]
    fn the_newest_logs_are_kept_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..)
            .take(KEPT + 3)
            .map(|day| name(jiff::Timestamp::from_second(day * 86_400).unwrap(), 7))
            .collect();
        for name in names.iter().rev() {
            fs_err::write(folder.path().join(name), "").unwrap();
        }
        fs_err::write(folder.path().join("notes.txt"), "").unwrap();
        forget_old(folder.path()).unwrap();
        let left = |name: &&String| folder.path().join(name.as_str()).exists();
        assert_eq!(names.iter().filter(left).collect::<Vec<_>>(), names[3..].iter().collect::<Vec<_>>());
        assert!(folder.path().join("notes.txt").exists());
        assert_eq!(names[0], "19700101T000000Z-7.log");
    }
}
