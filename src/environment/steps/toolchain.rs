//! The Rust toolchain of this machine: cargo and rustc themselves, never rustup's stand-ins, which would choose by files of
//! the tree and download.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::backend::{Job, Mount};

/// How long a toolchain may take to answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Folders of programs that every job sees.
const SHOWN: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// A compiler and its cargo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::environment) struct Toolchain {
    /// As `rustc` says it, e.g. `rustc 1.95.0 (…)`.
    pub version: String,
    /// The folder of its programs; none for those of an image, which are on the path there.
    programs: Option<PathBuf>,
    /// What a job has to be shown for them; none for what lies in the system.
    folder: Option<PathBuf>,
}

impl Toolchain {
    /// What is on PATH; where that is rustup's, the toolchain that rustup takes outside of any repository.
    pub(in crate::environment) fn find() -> Option<Toolchain> {
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|one| one.is_absolute()).collect();
        let found = folders.iter().find(|folder| folder.join("rustc").is_file())?;
        let sysroot = answer(&found.join("rustc"), &["--print", "sysroot"])?;
        let toolchain = Toolchain::at(Path::new(&sysroot), std::env::home_dir().as_deref())?;
        tracing::info!("the Rust toolchain is {} in {sysroot}", toolchain.version);
        Some(toolchain)
    }

    fn at(sysroot: &Path, home: Option<&Path>) -> Option<Toolchain> {
        let sysroot = sysroot.canonicalize().ok()?;
        let is_shown = sysroot.starts_with("/usr");
        // Showing it must not show more than a toolchain.
        let holds_home = home.is_some_and(|home| home.starts_with(&sysroot));
        if !is_shown && (holds_home || sysroot.parent().is_none()) {
            return None;
        }
        let own = std::iter::once(sysroot.join("bin"));
        let system = SHOWN.iter().map(PathBuf::from).filter(|_| is_shown);
        let is_whole =
            |programs: &PathBuf| ["cargo", "rustc"].iter().all(|name| programs.join(name).is_file());
        let programs = own.chain(system).find(is_whole)?;
        let version = answer(&programs.join("rustc"), &["--version"])?;
        Some(Toolchain { version, programs: Some(programs), folder: (!is_shown).then_some(sysroot) })
    }

    /// That of an image, by what its compiler says.
    pub(in crate::environment) fn in_image(said: &str) -> Toolchain {
        let version = said.lines().next().unwrap_or_default().chars().take(100).collect();
        Toolchain { version, programs: None, folder: None }
    }

    /// Shows it to a job, its programs first on the path.
    pub(in crate::environment) fn add_to(&self, job: &mut Job) {
        job.mounts.extend(
            self.folder.iter().map(|folder| Mount::ReadOnly { host: folder.clone(), inside: folder.clone() }),
        );
        if let Some(programs) = &self.programs {
            let path = job.env.entry("PATH".to_owned()).or_default();
            *path = format!("{}:{path}", programs.display());
        }
    }
}

/// The toolchain of this machine, looked for when it is first needed.
#[derive(Debug, Clone, Default)]
pub struct Toolchains(Arc<OnceLock<Option<Toolchain>>>);

impl Toolchains {
    /// One of this version, or none, whatever the machine has.
    #[cfg(test)]
    pub(in crate::environment) fn scripted(version: Option<&str>) -> Self {
        Toolchains(Arc::new(OnceLock::from(version.map(Toolchain::in_image))))
    }

    /// None where there is none.
    pub(in crate::environment) fn of_this_machine(&self) -> Option<&Toolchain> {
        self.0.get_or_init(Toolchain::find).as_ref()
    }

    /// The version of its compiler, or that there is none, as part of a key.
    pub(in crate::environment) fn key(&self) -> &str {
        self.of_this_machine().map_or("none", |toolchain| &toolchain.version)
    }
}

/// What a program of the user's says, on one line. It is asked in a folder that no repository has a file in, so that only
/// the user's own settings choose the toolchain.
fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    const KEPT: [&str; 5] = ["HOME", "PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").env_clear();
    command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.env("RUSTUP_AUTO_INSTALL", "0");
    let text = output_within(command, LIMIT)?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// What a program prints that ends well and in time; a little, which a pipe holds.
fn output_within(mut command: Command, limit: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                tracing::warn!("{command:?} did not answer in time");
                // It has ended if it cannot be killed.
                let _ = child.kill();
                child.wait().ok()?;
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.take(64 << 10).read_to_string(&mut text).ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(folder: &Path, name: &str, text: &str) {
        fs_err::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs_err::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_toolchain_is_shown_at_its_own_place_and_first_on_the_path() {
        let scratch = tempfile::tempdir().unwrap();
        let sysroot = scratch.path().canonicalize().unwrap();
        let programs = sysroot.join("bin");
        program(&programs, "rustc", "echo rustc 1.2.3; echo more");
        assert_eq!(Toolchain::at(&sysroot, None), None, "without its cargo it builds nothing");
        program(&programs, "cargo", "");
        let toolchain = Toolchain::at(&sysroot, None).unwrap();
        assert_eq!(toolchain.version, "rustc 1.2.3");
        let mut job = Job::small(["true"]);
        let before = job.env["PATH"].clone();
        toolchain.add_to(&mut job);
        assert_eq!(job.env["PATH"], format!("{}:{before}", programs.display()));
        assert_eq!(
            job.mounts.last(),
            Some(&Mount::ReadOnly { host: sysroot.clone(), inside: sysroot.clone() })
        );
        assert_eq!(Toolchain::at(&sysroot, Some(&sysroot.join("me"))), None, "nobody's home is shown");
        assert_eq!(Toolchain::at(Path::new("/"), None), None);
    }

    #[test]
    fn that_of_an_image_needs_nothing_but_the_images_path() {
        let toolchain = Toolchain::in_image("rustc 1.85.0 (4d91de4e4 2025-02-17)\nx\n");
        let mut job = Job::small(["true"]);
        let (mounts, path) = (job.mounts.clone(), job.env["PATH"].clone());
        toolchain.add_to(&mut job);
        assert_eq!((&job.mounts, &job.env["PATH"]), (&mounts, &path));
        assert_eq!(toolchain.version, "rustc 1.85.0 (4d91de4e4 2025-02-17)");
    }

    #[test]
    fn a_program_that_fails_or_hangs_says_nothing() {
        let shell = |text: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", text]);
            output_within(command, Duration::from_millis(300))
        };
        assert_eq!(shell("echo a").as_deref(), Some("a\n"));
        assert_eq!(shell("echo a; exit 1"), None);
        let start = Instant::now();
        assert_eq!(shell("exec sleep 60"), None);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
