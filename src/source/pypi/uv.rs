//! The index as uv sees it: with the user's environment variables and user-level configuration.

use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::IndexTool;
use crate::backend::retry;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::redact::redact;

/// How long uv may look, and bytes of its answer that are read.
const LONGEST: Duration = Duration::from_mins(15);
const LARGEST_ANSWER: u64 = 16 << 20;

/// Asks uv.
#[derive(Debug, Clone)]
pub struct UvIndex {
    /// The program.
    pub uv: PathBuf,
}

impl IndexTool for UvIndex {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        let (project, version) = parts(requirement)?;
        let directory = crate::store::scratch()?;
        fs_err::write(directory.path().join("uv.toml"), static_metadata(project, version))?;
        let ask = || self.run(directory.path(), requirement);
        let answer = retry::until(ask, |answer| answer.status.code().is_some(), retry::nothing)?;
        let messages = redact(&String::from_utf8_lossy(&answer.stderr));
        if !answer.status.success() {
            return Err(refused(requirement, &messages));
        }
        if let Some(warning) = messages.lines().find(|line| line.contains("is yanked")) {
            return Err(Error::repository(format!("{requirement} is yanked"))
                .with_detail(warning.to_owned())
                .with_hint("choose another version, or name the project's repository with `git`"));
        }
        String::from_utf8(answer.stdout)
            .map_err(|error| Error::harness("uv's answer is not UTF-8").with_source(error))
    }
}

impl UvIndex {
    fn run(&self, directory: &std::path::Path, requirement: &str) -> Result<std::process::Output> {
        let failed = |error: std::io::Error| {
            Error::machine(format!("cannot run {}", self.uv.display()))
                .with_source(error)
                .with_hint("install uv, or check that it is executable")
        };
        // Files: what nobody reads from a pipe would make it wait.
        let (mut said, mut told) = (tempfile::tempfile_in(directory)?, tempfile::tempfile_in(directory)?);
        let mut child = Command::new(&self.uv)
            .args(["pip", "compile", "-", "--no-deps", "--no-header", "--format", "pylock.toml"])
            .current_dir(directory)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(said.try_clone()?)
            .stderr(told.try_clone()?)
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One line fits into the pipe; if uv has already gone, its exit code and messages tell more than this.
            let _ = writeln!(stdin, "{requirement}");
        }
        let status = ended(&mut child, requirement)?;
        let read = |file: &mut std::fs::File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.take(LARGEST_ANSWER).read_to_end(&mut bytes)).map_err(failed)?;
            Ok::<_, Error>(bytes)
        };
        Ok(std::process::Output { status, stdout: read(&mut said)?, stderr: read(&mut told)? })
    }
}

/// Waits for uv, as long as nobody asks to stop.
fn ended(child: &mut Child, requirement: &str) -> Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt::requested() || start.elapsed() > LONGEST {
            let _ = child.kill();
            let _ = child.wait();
            interrupt::check()?;
            return Err(Error::repository(format!(
                "the package index takes too long to answer {requirement}"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Name and version of `name==version` or `name`, which go into a configuration file: nothing but plain characters.
fn parts(requirement: &str) -> Result<(&str, Option<&str>)> {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '!'))
    };
    let (project, version) = match requirement.split_once("==") {
        Some((project, version)) => (project, Some(version)),
        None => (requirement, None),
    };
    Some((project, version))
        .filter(|(project, version)| is_plain(project) && version.is_none_or(is_plain))
        .ok_or_else(|| Error::usage(format!("`{requirement}` is not of the form `name==version` or `name`")))
}

/// Told what the release depends on, uv need not find out: where there is no wheel it would build the source
/// distribution for that, which runs the project's code outside any sandbox.
///
/// Without a version only releases with a source distribution are considered.
fn static_metadata(project: &str, version: Option<&str>) -> String {
    let version = match version {
        Some(version) => format!("version = \"{version}\"\n"),
        None => String::new(),
    };
    let sources =
        if version.is_empty() { format!("no-binary-package = [\"{project}\"]\n") } else { String::new() };
    format!("{sources}[[dependency-metadata]]\nname = \"{project}\"\n{version}requires-dist = []\n")
}

fn refused(requirement: &str, messages: &str) -> Error {
    let hint = if messages.contains("no version of") || messages.contains("was not found") {
        "check the name and the version, and which package index is configured for uv"
    } else {
        "check the network, the proxy, and which package index is configured for uv"
    };
    Error::repository(format!("the package index in use cannot give {requirement}"))
        .with_detail(messages.trim().to_owned())
        .with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_plain_requirements_are_asked_for() {
        assert_eq!(parts("flask==3.1.3").unwrap(), ("flask", Some("3.1.3")));
        assert_eq!(parts("flask").unwrap(), ("flask", None));
        for bad in ["", "flask>3", "flask==", "flask==1\"\n[x]", "flask @ x==1"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_missing_program_is_the_machines_trouble() {
        let error = UvIndex { uv: PathBuf::from("/nowhere/uv") }.lock_entry("flask==3.1.3").unwrap_err();
        assert_eq!(error.fault(), crate::error::Fault::Machine);
        assert!(error.hint().unwrap().contains("install uv"));
    }
}
