//! Builds that compile Rust: the crates that the source's own `Cargo.lock` pins, fetched by the driver, and a toolchain. The
//! build itself stays offline, and cargo finds nothing but these crates.
//!
//! ```text
//! /opt/cargo/           CARGO_HOME, written to in memory
//!   config.toml         crates.io is the folder below; no network
//!   vendor/<name>-<version>/
//! /opt/cargo-target/    what is compiled: no part of the tree
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rayon::prelude::*;

use super::step::Step;
use super::toolchain::Toolchain;
use super::tooling::{RUST_HINT, Tooling};
use crate::backend::{Job, Mount, retry};
use crate::environment::declared::crates::{Crate, Locked};
use crate::environment::plan::failure::{StepError, StepResult};
use crate::error::{Error, Result};
use crate::source;

const CARGO_HOME: &str = "/opt/cargo";
const TARGET: &str = "/opt/cargo-target";
/// What a build may write to cargo's home, in bytes.
const LAYER: u64 = 1 << 30;

/// Where crates.io has the files of crates.
const CRATES: &str = "https://static.crates.io/crates";
/// Bytes of one crate, as it is downloaded and unpacked (crates.io takes 512 MiB), and of all of a build.
const LARGEST_CRATE: u64 = 256 << 20;
const LARGEST_UNPACKED: u64 = 512 << 20;
const ALL_UNPACKED: u64 = 8 << 30;
/// So many downloads at a time.
const DOWNLOADS: usize = 8;

const NO_LOCK: &str = "the build compiles Rust and has no network: commit a `Cargo.lock` (beside its `Cargo.toml`, or at the root \
                       of its workspace), whose crates are then fetched and checked by its hashes, or the crates themselves \
                       (`cargo vendor`)";
const NO_TOOLCHAIN: &str = "the build compiles Rust, and there is no toolchain: install one on this machine \
                            (https://rustup.rs), so that `rustc` and `cargo` are on PATH, or with `backend = \"docker\"` \
                            name its packages in `system_packages` (`[\"cargo\"]`)";
const LEFT_OUT: &str = "the build compiles Rust, and its output names crates that could not be fetched: only those of crates.io \
                        that `Cargo.lock` pins by a hash are; commit the others (`cargo vendor`)";
const OWN: &str = "the build's Rust code could not be compiled, with the crates of its `Cargo.lock`; see its output, and try \
                   another toolchain (RUSTUP_TOOLCHAIN)";

/// What a build gets.
#[derive(Debug)]
pub(in crate::environment) enum Rust {
    /// It compiles nothing from Rust.
    Nothing,
    /// What is missing, as a hint.
    Lacking(&'static str),
    Ready(Box<Ready>),
}

/// The crates and the toolchain of a build, for as long as this value lives.
#[derive(Debug)]
pub(in crate::environment) struct Ready {
    /// Holds the crates.
    _step: Step,
    home: PathBuf,
    toolchain: Toolchain,
    count: usize,
    locks: String,
    left_out: Vec<String>,
}

impl Rust {
    /// Fetches what a source pins.
    pub(in crate::environment) fn prepare(tooling: &Tooling, locked: Option<Locked>) -> StepResult<Self> {
        let Some(mut locked) = locked else { return Ok(Rust::Nothing) };
        if locked.locks.is_empty() {
            return Ok(Rust::Lacking(NO_LOCK));
        }
        let Some(toolchain) = toolchain(tooling)? else { return Ok(Rust::Lacking(NO_TOOLCHAIN)) };
        let fetched = fetch(tooling, &mut locked)?;
        let step = tooling.step()?;
        let home = step.folder("cargo")?;
        lay_out(&fetched, &home, ALL_UNPACKED)?;
        let count = fetched.len();
        let locks = locked.words();
        let left_out = locked.left_out.into_iter().collect();
        Ok(Rust::Ready(Box::new(Ready { _step: step, home, toolchain, count, locks, left_out })))
    }

    /// Shows a job the crates and the toolchain. What is compiled lies in a folder of its step.
    pub(in crate::environment) fn add_to(&self, job: &mut Job, step: &Step) -> Result<()> {
        let Rust::Ready(ready) = self else { return Ok(()) };
        job.mounts.push(Mount::Overlay { host: ready.home.clone(), inside: CARGO_HOME.into(), bytes: LAYER });
        job.mounts.push(Mount::Scratch { host: step.folder("cargo-target")?, inside: TARGET.into() });
        ready.toolchain.add_to(job);
        for (name, value) in [
            ("CARGO_HOME", CARGO_HOME),
            ("CARGO_TARGET_DIR", TARGET),
            ("CARGO_NET_OFFLINE", "true"),
            ("CARGO_INCREMENTAL", "0"),
            ("CARGO_TERM_COLOR", "never"),
        ] {
            job.env.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// A failure of the build, with the way out where it has to do with this.
    pub(in crate::environment) fn explain(&self, trouble: StepError) -> StepError {
        let StepError::Recoverable(mut failure) = trouble else { return trouble };
        let speaks_of_rust = failure.hint == RUST_HINT;
        match self {
            Rust::Lacking(hint) if speaks_of_rust => failure.hint = hint,
            Rust::Nothing | Rust::Lacking(_) => {}
            Rust::Ready(ready) => {
                if speaks_of_rust {
                    failure.hint = if ready.left_out.is_empty() { OWN } else { LEFT_OUT };
                }
                failure.output = [ready.notes().join("\n"), failure.output].join("\n");
            }
        }
        StepError::Recoverable(failure)
    }

    /// The version of the compiler.
    pub(in crate::environment) fn version(&self) -> Option<&str> {
        match self {
            Rust::Ready(ready) => Some(&ready.toolchain.version),
            Rust::Nothing | Rust::Lacking(_) => None,
        }
    }

    /// What a person should know of it.
    pub(in crate::environment) fn notes(&self) -> Vec<String> {
        match self {
            Rust::Ready(ready) => ready.notes(),
            Rust::Nothing | Rust::Lacking(_) => Vec::new(),
        }
    }
}

impl Ready {
    fn notes(&self) -> Vec<String> {
        let Ready { count, locks, toolchain, left_out, .. } = self;
        let crates = if *count == 1 { "1 crate".to_owned() } else { format!("{count} crates") };
        let done = format!(
            "{crates} of {locks} fetched and checked by its hashes; built with {}",
            toolchain.version
        );
        let missing = format!("{locks} names what is not fetched: {}", left_out.join("; "));
        std::iter::once(done).chain((!left_out.is_empty()).then_some(missing)).collect()
    }
}

/// The toolchain of this machine, or of the image.
fn toolchain(tooling: &Tooling) -> Result<Option<Toolchain>> {
    const LIMIT: Duration = Duration::from_mins(2);
    if tooling.backend.shows_host_system() {
        return Ok(tooling.toolchains.of_this_machine().cloned());
    }
    let step = tooling.step()?;
    let asked = |program: &str| {
        let job = tooling.job(vec![program.to_owned(), "--version".to_owned()], &step, Vec::new());
        retry::run(&*tooling.backend, &job, LIMIT)
    };
    // What is not there is told by the sandbox, in words of its own.
    if !asked("cargo")?.success() {
        return Ok(None);
    }
    let said = asked("rustc")?;
    Ok(said.success().then(|| Toolchain::in_image(&said.stdout)))
}

/// Downloads the crates; those that crates.io does not have are left out.
///
/// # Errors
/// No other plan could do better where crates.io cannot be asked, or gives something else than what is pinned.
fn fetch(tooling: &Tooling, locked: &mut Locked) -> StepResult<Vec<(Crate, PathBuf)>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(DOWNLOADS).build();
    let pool = pool.map_err(|error| Error::machine("cannot start threads").with_source(error))?;
    let is_over = AtomicBool::new(false);
    let download = |one: Crate| {
        crate::interrupt::check()?;
        // The first trouble is enough.
        if is_over.load(Ordering::Relaxed) {
            return Ok((one, None));
        }
        match tooling.index.fetch_pinned(&address(&one), &one.sha256, LARGEST_CRATE) {
            Ok(path) => Ok((one, path)),
            Err(reason) => {
                is_over.store(true, Ordering::Relaxed);
                Err(cannot_fetch(tooling, &one, &reason))
            }
        }
    };
    let crates: Vec<Crate> = std::mem::take(&mut locked.crates).into_iter().collect();
    let fetched: Vec<_> = pool.install(|| crates.into_par_iter().map(download).collect::<Result<_>>())?;
    let mut found = Vec::new();
    for (one, path) in fetched {
        match path {
            Some(path) => found.push((one, path)),
            None => drop(locked.left_out.insert(format!("{one}, which crates.io does not have"))),
        }
    }
    Ok(found)
}

fn address(one: &Crate) -> String {
    let version = one.version.replace('+', "%2B");
    format!("{CRATES}/{}/{}-{version}.crate", one.name, one.name)
}

fn cannot_fetch(tooling: &Tooling, one: &Crate, reason: &str) -> Error {
    let stage = "fetching the crates of Cargo.lock";
    tooling.disk_trouble(stage, reason, false).unwrap_or_else(|| {
        let message = format!("the environment cannot be built: {stage}: {one} cannot be had from crates.io");
        Error::repository(message)
            .with_detail(reason)
            .with_hint("check the network, proxy and certificate settings, then run the same command again")
    })
}

/// Writes cargo's home: each crate in a folder of its own, and where they are. Crates are hostile archives.
fn lay_out(crates: &[(Crate, PathBuf)], home: &Path, mut limit: u64) -> Result<()> {
    let vendor = home.join("vendor");
    fs_err::create_dir_all(&vendor)?;
    for (one, file) in crates {
        crate::interrupt::check()?;
        let name = format!("{}-{}", one.name, one.version);
        let folder = vendor.join(&name);
        fs_err::create_dir(&folder)?;
        let allowed = limit.min(LARGEST_UNPACKED);
        let unpacked = source::unpack(file, &format!("{name}.crate"), &folder, allowed)?;
        limit -= allowed - unpacked.left;
        // One that came in the archive says nothing. Never through a link.
        let says = serde_json::json!({"files": {}, "package": one.sha256});
        crate::store::write_atomic(&folder.join(".cargo-checksum.json"), says.to_string().as_bytes())?;
    }
    let config = format!(
        "[source.crates-io]\nreplace-with = \"pinned\"\n\n[source.pinned]\ndirectory = \"{CARGO_HOME}/vendor\"\n\n\
         [net]\noffline = true\n"
    );
    Ok(fs_err::write(home.join("config.toml"), config)?)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::taken::refused;
    use super::*;
    use crate::environment::plan::failure::Failure;

    /// A crate whose archive holds these files.
    fn packed(folder: &Path, name: &str, version: &str, files: &[(&str, &str)]) -> (Crate, PathBuf) {
        let path = folder.join(format!("{name}-{version}"));
        let mut archive =
            tar::Builder::new(GzEncoder::new(fs_err::File::create(&path).unwrap(), Compression::fast()));
        for (file, text) in files {
            let mut header = tar::Header::new_gnu();
            let inside = format!("{name}-{version}/{file}");
            // Not `set_path`, which refuses what leads out.
            header.as_old_mut().name[..inside.len()].copy_from_slice(inside.as_bytes());
            header.set_mode(0o644);
            header.set_size(text.len() as u64);
            header.set_cksum();
            archive.append(&header, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();
        let sha256 = "0".repeat(64);
        (Crate { name: name.to_owned(), version: version.to_owned(), sha256 }, path)
    }

    #[test]
    fn crates_lie_beside_each_other_with_the_hash_of_the_lock() {
        let scratch = tempfile::tempdir().unwrap();
        let own = r#"{"files":{},"package":"its own"}"#;
        let crates = [
            packed(scratch.path(), "syn", "1.0.0", &[("Cargo.toml", "one"), (".cargo-checksum.json", own)]),
            packed(scratch.path(), "syn", "2.0.0", &[("Cargo.toml", "two"), ("src/lib.rs", "")]),
        ];
        let home = scratch.path().join("home");
        lay_out(&crates, &home, 1 << 20).unwrap();
        let read = |path: &str| fs_err::read_to_string(home.join(path)).unwrap();
        assert_eq!(read("vendor/syn-1.0.0/Cargo.toml"), "one");
        assert_eq!(read("vendor/syn-2.0.0/Cargo.toml"), "two");
        for version in ["1.0.0", "2.0.0"] {
            let says = read(&format!("vendor/syn-{version}/.cargo-checksum.json"));
            assert_eq!(says, format!(r#"{{"files":{{}},"package":"{}"}}"#, "0".repeat(64)));
        }
        let config: toml::Table = read("config.toml").parse().unwrap();
        assert_eq!(config["source"]["crates-io"]["replace-with"].as_str(), Some("pinned"));
        assert_eq!(config["source"]["pinned"]["directory"].as_str(), Some("/opt/cargo/vendor"));
        assert_eq!(config["net"]["offline"].as_bool(), Some(true));
    }

    #[test]
    fn hostile_archives_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let large = "x".repeat(5000);
        let cases: [(&[(&str, &str)], &str); 2] = [
            (&[("../../escaped", "")], "leaves the archive"),
            (&[("a", &large), ("b", &large)], "unpacks to too much"),
        ];
        for (number, (files, expected)) in cases.into_iter().enumerate() {
            let crates = [packed(scratch.path(), "a", "1.0.0", files)];
            let error = lay_out(&crates, &scratch.path().join(number.to_string()), 8000).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        // All crates together have one limit.
        let crates = ["1.0.0", "2.0.0"].map(|version| packed(scratch.path(), "a", version, &[("a", &large)]));
        assert!(lay_out(&crates, &scratch.path().join("all"), 8000).is_err());
        assert!(lay_out(&crates, &scratch.path().join("more"), 16000).is_ok());
        assert!(!scratch.path().join("escaped").exists());
    }

    #[test]
    fn versions_stand_in_addresses_as_one_part() {
        let one = Crate { name: "libz-sys".into(), version: "1.1.0+1.3".into(), sha256: String::new() };
        assert_eq!(address(&one), "https://static.crates.io/crates/libz-sys/libz-sys-1.1.0%2B1.3.crate");
    }

    fn failed(hint: &'static str) -> StepError {
        match refused("building", "words") {
            StepError::Recoverable(failure) => StepError::Recoverable(Failure { hint, ..failure }),
            StepError::Fatal(error) => panic!("{error}"),
        }
    }

    fn explained(rust: &Rust, hint: &'static str) -> (String, &'static str) {
        match rust.explain(failed(hint)) {
            StepError::Recoverable(failure) => (failure.output, failure.hint),
            StepError::Fatal(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_failure_says_what_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let ready = |left_out: &[&str]| {
            Rust::Ready(Box::new(Ready {
                _step: Step::new(scratch.path()).unwrap(),
                home: PathBuf::new(),
                toolchain: Toolchain::in_image("rustc 1.85.0"),
                count: 1,
                locks: "Cargo.lock".to_owned(),
                left_out: left_out.iter().map(|one| (*one).to_owned()).collect(),
            }))
        };
        assert_eq!(explained(&Rust::Lacking(NO_LOCK), RUST_HINT).1, NO_LOCK);
        assert_eq!(explained(&Rust::Lacking(NO_TOOLCHAIN), RUST_HINT).1, NO_TOOLCHAIN);
        assert_eq!(explained(&Rust::Lacking(NO_LOCK), "other").1, "other", "it failed for another reason");
        assert_eq!(explained(&Rust::Nothing, RUST_HINT), ("words".to_owned(), RUST_HINT));
        let (output, hint) = explained(&ready(&["a 1.0.0, which is not from crates.io"]), RUST_HINT);
        assert_eq!(hint, LEFT_OUT);
        assert!(output.contains("not fetched: a 1.0.0, which is not from crates.io\nwords"), "{output}");
        let (output, hint) = explained(&ready(&[]), RUST_HINT);
        assert_eq!(hint, OWN);
        let note = "1 crate of Cargo.lock fetched and checked by its hashes; built with rustc 1.85.0";
        assert_eq!(output, format!("{note}\nwords"));
    }
}
