//! A [`Job`] as the program inside the container understands it: what the image has already is shown from there, the
//! rest is sent. Pure, but for packing what is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::backend::sandbox::seccomp::{self, Architecture, Sockets};
use crate::backend::{Job, Mount, SERVICE_PORT, sandbox};
use crate::error::{Error, Result};

/// Bytes of what a job leaves.
pub(super) const MOST_LEFT: u64 = 32 << 30;

/// A folder of the host that lies in the image as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub host: PathBuf,
    pub inside: PathBuf,
}

/// A file or folder of the host that a job is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub host: PathBuf,
    /// Whether it comes back when the job is done.
    pub back: bool,
}

/// What a container is told, and what goes in with it; the number of an entry is its name in the archive.
#[derive(Debug)]
pub(super) struct Plan {
    pub text: Value,
    pub sent: Vec<Sent>,
}

impl Plan {
    /// `on_disk` keeps what is sent on the container's disk instead of in memory.
    pub(super) fn new(job: &Job, shown: &[Shown], on_disk: bool, own_processes: bool) -> Self {
        let in_image = |host: &Path| {
            let place = shown.iter().find(|place| host.starts_with(&place.host))?;
            Some((place, join(&place.inside, host.strip_prefix(&place.host).unwrap_or(host))))
        };
        let sent = sent(job, |host| in_image(host).is_some());
        let mounts: Vec<Value> = job
            .mounts
            .iter()
            .map(|mount| match mount {
                Mount::Tmpfs { inside, bytes } => json!({"kind": "tmpfs", "inside": inside, "bytes": bytes}),
                Mount::NoPackages { prefix } => json!({"kind": "no-packages", "prefix": prefix}),
                Mount::Scratch { inside, .. } => json!({"kind": "scratch", "inside": inside}),
                Mount::ReadOnly { host, inside } => entry("read-only", host, inside, &in_image, &sent),
                Mount::Overlay { host, inside, bytes } => {
                    let mut entry = entry("overlay", host, inside, &in_image, &sent);
                    entry["bytes"] = json!(bytes);
                    entry
                }
                Mount::Writable { host, inside } => {
                    // What the image has is never written to; a layer of the job's own takes the writes.
                    let kind = if in_image(host).is_some() { "overlay" } else { "writable" };
                    entry(kind, host, inside, &in_image, &sent)
                }
            })
            .collect();
        let back: Vec<String> = sent
            .iter()
            .enumerate()
            .filter(|(_, one)| one.back)
            .map(|(number, _)| number.to_string())
            .collect();
        let text = json!({
            "argv": job.argv,
            "env": job.env,
            "cwd": job.cwd,
            "channel": job.channel,
            "service": job.service.as_ref().map(|_| SERVICE_PORT),
            "may_mount": job.may_mount,
            "limits": {
                "memory": job.limits.memory, "processes": job.limits.processes, "file_size": job.limits.file_size,
            },
            "user": sandbox::USER,
            // The engine may run on another architecture.
            "filters": filters(),
            "on_disk": on_disk,
            "own_processes": own_processes,
            "mounts": mounts,
            "send_back": back,
            "most_left": MOST_LEFT,
        });
        Plan { text, sent }
    }

    /// Writes the archive of what is sent.
    ///
    /// # Errors
    /// IO errors.
    pub(super) fn pack(&self, to: impl Write) -> Result<()> {
        let mut archive = tar::Builder::new(to);
        archive.follow_symlinks(false);
        for (number, one) in self.sent.iter().enumerate() {
            let name = number.to_string();
            let result = if one.host.is_dir() {
                archive.append_dir_all(&name, &one.host)
            } else {
                archive.append_path_with_name(&one.host, &name)
            };
            result.map_err(|error| sending(&one.host, error))?;
        }
        archive
            .into_inner()
            .and_then(|mut to| to.flush())
            .map_err(|error| sending(Path::new("the job"), error))
    }
}

/// The filters of system calls in hex, by the name of the architecture.
fn filters() -> BTreeMap<&'static str, String> {
    let filter = |one| hex::encode(seccomp::encoded(one, Sockets::Covered));
    Architecture::ALL.into_iter().map(|one| (one.as_str(), filter(one))).collect()
}

fn sending(what: &Path, error: std::io::Error) -> Error {
    Error::harness(format!("cannot send {} to the container", what.display())).with_source(error)
}

/// The outermost hosts that the image does not have; those below come along.
fn sent(job: &Job, has: impl Fn(&Path) -> bool) -> Vec<Sent> {
    let hosts = job.mounts.iter().filter_map(|mount| match mount {
        Mount::ReadOnly { host, .. } | Mount::Overlay { host, .. } => Some((host, false)),
        Mount::Writable { host, .. } => Some((host, true)),
        Mount::Tmpfs { .. } | Mount::Scratch { .. } | Mount::NoPackages { .. } => None,
    });
    let hosts: Vec<(&PathBuf, bool)> = hosts.filter(|(host, _)| !has(host)).collect();
    let all: BTreeSet<&PathBuf> = hosts.iter().map(|(host, _)| *host).collect();
    let outermost =
        all.iter().filter(|host| !all.iter().any(|other| other != *host && host.starts_with(other)));
    outermost
        .map(|host| Sent {
            host: (*host).clone(),
            back: hosts.iter().any(|(other, writable)| *writable && other.starts_with(host)),
        })
        .collect()
}

fn entry<'s>(
    kind: &str,
    host: &Path,
    inside: &Path,
    in_image: &dyn Fn(&Path) -> Option<(&'s Shown, PathBuf)>,
    sent: &[Sent],
) -> Value {
    if let Some((_, place)) = in_image(host) {
        return json!({"kind": kind, "inside": inside, "image": place});
    }
    let found = sent.iter().enumerate().find(|(_, one)| host.starts_with(&one.host));
    let (number, rest) = found.map_or((0, Path::new("")), |(number, one)| {
        (number, host.strip_prefix(&one.host).unwrap_or(Path::new("")))
    });
    json!({"kind": kind, "inside": inside, "sent": join(Path::new(&number.to_string()), rest)})
}

/// Without the slash that joining nothing leaves at the end.
fn join(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { base.to_owned() } else { base.join(rest) }
}

/// The requests of a container: first the plan, then its archive in chunks, then what the job reads.
pub(super) fn chunks(to: &mut dyn Write) -> impl Write {
    std::io::BufWriter::with_capacity(256 << 10, Chunks(to))
}

struct Chunks<'a>(&'a mut dyn Write);

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !bytes.is_empty() {
            let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
            self.0.write_all(&length.to_be_bytes())?;
            self.0.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn job(mounts: Vec<Mount>) -> Job {
        Job { mounts, ..Job::small(["true"]) }
    }

    #[test]
    fn what_the_image_has_is_not_sent_and_folders_within_each_other_are_sent_once() {
        let writable =
            |host: &str, inside: &str| Mount::Writable { host: host.into(), inside: inside.into() };
        let job = job(vec![
            writable("/h/work/tmp", "/tmp"),
            writable("/h/work", "/opt/work"),
            Mount::ReadOnly { host: "/h/env/venv/lib/a.pth".into(), inside: "/opt/venv/lib/a.pth".into() },
            Mount::Overlay { host: "/h/env/tree".into(), inside: "/testbed".into(), bytes: 1 << 20 },
            Mount::ReadOnly { host: "/h/workshop".into(), inside: "/opt/x".into() },
        ]);
        let place = |host: &str, inside: &str| Shown { host: host.into(), inside: inside.into() };
        let shown = [place("/h/env/venv", "/opt/venv"), place("/h/env/tree", "/testbed")];
        let plan = Plan::new(&job, &shown, false, true);
        let sent = |host: &str, back| Sent { host: host.into(), back };
        assert_eq!(plan.sent, [sent("/h/work", true), sent("/h/workshop", false)]);
        let mounts = plan.text["mounts"].as_array().unwrap();
        assert_eq!(mounts[0]["sent"], "0/tmp");
        assert_eq!(mounts[1]["sent"], "0");
        assert_eq!(mounts[2]["image"], "/opt/venv/lib/a.pth");
        assert_eq!((&mounts[3]["kind"], &mounts[3]["image"]), (&json!("overlay"), &json!("/testbed")));
        assert_eq!(plan.text["send_back"], json!(["0"]));
    }

    #[test]
    fn the_image_is_never_written_to() {
        let shown = [Shown { host: "/h".into(), inside: "/i".into() }];
        let job = job(vec![Mount::Writable { host: "/h/a".into(), inside: "/x".into() }]);
        assert_eq!(Plan::new(&job, &shown, true, true).text["mounts"][0]["kind"], json!("overlay"));
    }

    #[test]
    fn an_archive_goes_in_chunks_behind_their_lengths() {
        let mut out = Vec::new();
        {
            let mut to = chunks(&mut out);
            to.write_all(b"abc").unwrap();
            to.flush().unwrap();
        }
        assert_eq!(out, b"\0\0\0\x03abc");
    }
}
