//! A whole run by scripts of the configuration, in a container of the image that holds the environment.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::attempt::lab::Lab;
use crate::backend::{Finished, Job, Mount};
use crate::beneath::Folder;
use crate::error::Result;
use crate::family::codetaste::suite::{RUN, SET_UP, counts_of};
use crate::record::codetaste::{Counts, Scripts};
use crate::store::scratch;

/// Where jobs have the scripts.
const SCRIPTS: &str = "/scripts";
/// Characters of an output that are kept as evidence.
const TOLD: usize = 2000;
/// The tree with its patch is committed, so that what set-up changes is all that git sees.
const COMMIT: &str = "\
git() { command git -c safe.directory='*' -c core.hooksPath=/dev/null -c user.name=tree -c user.email=tree@localhost \"$@\"; }
{ git add -A && git commit -q --allow-empty -m tree; } >&2 || { echo 'git cannot commit the tree' >&2; exit 1; }
";
/// Printed between set-up and what git sees.
const MARK: &str = "gistmill: git status after set-up";

/// What a run showed.
pub(super) struct Shown {
    pub(super) counts: Option<Counts>,
    /// Why there are none.
    pub(super) why: Option<String>,
    pub(super) duration_ms: f64,
    /// Whether it was stopped because it took too long.
    pub(super) is_late: bool,
}

/// One run of the suite on the tree of a lab.
///
/// # Errors
/// IO errors, an interruption, and the harness's trouble.
pub(super) fn run(lab: &Lab, (scripts, limit): (&Scripts, Duration)) -> Result<Shown> {
    let started = Instant::now();
    let done = done(lab, scripts, &format!("{SET_UP}{RUN}"), limit)?;
    let duration_ms = started.elapsed().as_secs_f64() * 1000.0;
    let counts = counts_of(&done.stdout).filter(|counts| !done.timed_out && counts.nonsense().is_none());
    let why = counts.is_none().then(|| said(&done, limit));
    Ok(Shown { counts, why, duration_ms, is_late: done.timed_out })
}

/// What git sees that the set-up of a tree changed; none where it changes nothing.
///
/// # Errors
/// IO errors, an interruption, and the harness's trouble.
pub(super) fn set_up_changes(lab: &Lab, (scripts, limit): (&Scripts, Duration)) -> Result<Option<String>> {
    let script = format!("{COMMIT}{SET_UP}echo '{MARK}'\ngit status --porcelain\n");
    let done = done(lab, scripts, &script, limit)?;
    match done.stdout.rsplit_once(&format!("{MARK}\n")) {
        Some((_, "")) if done.success() => Ok(None),
        Some((_, changed)) if done.success() => Ok(Some(end(changed))),
        _ => Ok(Some(said(&done, limit))),
    }
}

/// Runs a script of bash in a fresh copy of the tree.
fn done(lab: &Lab, scripts: &Scripts, script: &str, limit: Duration) -> Result<Finished> {
    let folder = scratch()?;
    lay(scripts, folder.path())?;
    let job = job(lab, folder.path(), script);
    // One that is killed is an answer: what it runs may end itself so.
    lab.backend.run(&job, limit)
}

/// What the image has installed is the environment here.
fn job(lab: &Lab, scripts: &Path, script: &str) -> Job {
    let mut job = lab.setting.command(["bash", "-c", script].map(str::to_owned).into());
    job.mounts.retain(|mount| !matches!(mount, Mount::NoPackages { .. }));
    job.mounts.push(Mount::ReadOnly { host: scripts.to_owned(), inside: SCRIPTS.into() });
    job
}

/// Writes the scripts into a new folder; all of them can be executed.
fn lay(scripts: &Scripts, to: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::open(to)?;
    for (path, bytes) in scripts {
        let mut file = folder.create_new(Path::new(path))?;
        std::io::Write::write_all(&mut file, bytes)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Why there are no counts: how it ended, and the end of what it printed.
fn said(done: &Finished, limit: Duration) -> String {
    let ending = match done.code {
        _ if done.timed_out => format!("it takes more than {} s", limit.as_secs()),
        Some(code) => format!("it exits with {code}"),
        None => "it is killed".to_owned(),
    };
    let parts = [format!("no counts; {ending}"), end(&done.stdout), end(&done.stderr)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn end(text: &str) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(TOLD);
    text.chars().skip(skipped).collect()
}
