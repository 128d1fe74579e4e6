//! Mounts whose folders foreign code wrote in.

use std::os::unix::fs::symlink;
use std::path::Path;

use gistmill::backend::{Backend, Job, Mount};
use gistmill::error::Fault;

use super::{LIMIT, backend, job};

/// A folder `victim` with `secret` beside a folder `work` with `home`.
fn place() -> tempfile::TempDir {
    let temp = tempfile::tempdir().expect("temp dir");
    for folder in ["victim", "work", "work/home"] {
        std::fs::create_dir(temp.path().join(folder)).expect("made");
    }
    std::fs::write(temp.path().join("victim/secret"), "secret").expect("written");
    temp
}

fn writable(host: &Path, inside: &str) -> Mount {
    Mount::Writable { host: host.to_owned(), inside: inside.into() }
}

#[track_caller]
fn refused(job: &Job, words: [&str; 2]) {
    let error = backend().run(job, LIMIT).expect_err("is refused");
    assert_eq!(error.fault(), Fault::Harness);
    assert_eq!(error.to_string(), "the sandbox could not be set up");
    let detail = error.detail().unwrap_or_default();
    assert!(words.iter().all(|one| detail.contains(one)), "{words:?} not in {detail}");
}

#[test]
fn a_source_that_is_a_link_is_not_mounted() {
    let temp = place();
    let home = temp.path().join("work/home");
    std::fs::remove_dir(&home).expect("removed");
    symlink(temp.path().join("victim"), &home).expect("linked");
    let mounts = [
        writable(&home, "/home/x"),
        Mount::ReadOnly { host: home.clone(), inside: "/home/x".into() },
        Mount::Overlay { host: home.clone(), inside: "/home/x".into(), bytes: 1 << 20 },
    ];
    for mount in mounts {
        let mut job = job("cat /home/x/secret; touch /home/x/written");
        job.mounts.push(mount);
        refused(&job, [home.to_str().expect("text"), "symbolic link"]);
    }
    assert!(!temp.path().join("victim/written").exists());
}

#[test]
fn what_one_job_turns_into_a_link_is_not_mounted_for_the_next() {
    let temp = place();
    let work = temp.path().join("work");
    let mounts = [writable(&work, "/work"), writable(&work.join("home"), "/home/x")];
    let victim = temp.path().join("victim");
    let mut first = job(&format!("mv /work/home /work/away && ln -s /old{} /work/home", victim.display()));
    first.mounts.push(mounts[0].clone());
    let finished = backend().run(&first, LIMIT).expect("the job runs");
    assert!(finished.success(), "{finished:?}");
    let mut second = job("ls /home/x; touch /home/x/written");
    second.mounts.extend(mounts);
    refused(&second, ["home", "symbolic link"]);
    assert!(!victim.join("written").exists());
}

#[test]
fn no_mount_point_is_made_through_a_link_of_an_earlier_mount() {
    let temp = place();
    let (work, victim) = (temp.path().join("work"), temp.path().join("victim"));
    symlink(format!("/old{}", victim.display()), work.join("way")).expect("linked");
    let below = [
        writable(&work.join("home"), "/work/way/made"),
        Mount::Tmpfs { inside: "/work/way/made".into(), bytes: 1 << 20 },
        Mount::ReadOnly { host: victim.join("secret"), inside: "/work/way/made/file".into() },
        Mount::Overlay { host: work.join("home"), inside: "/work/way/made".into(), bytes: 1 << 20 },
        writable(&work.join("home"), "/work/way"),
    ];
    for mount in below {
        let mut job = job("true");
        job.mounts.extend([writable(&work, "/work"), mount]);
        refused(&job, ["the mount point /work/way", "symbolic link"]);
    }
    let left: Vec<_> = std::fs::read_dir(&victim).expect("is there").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn mounts_lie_within_each_other_and_links_of_the_user_lead_to_them() {
    let temp = place();
    symlink(temp.path().join("work"), temp.path().join("of-the-user")).expect("linked");
    std::fs::write(temp.path().join("work/file"), "below\n").expect("written");
    let home = temp.path().join("of-the-user/home");
    let mut job = job("cat /a/b/file /a/c/file; echo over > /a/c/file && cat /a/c/file; touch /a/d/new; \
         echo kept > /a/d/e/f && ls /a/d");
    job.mounts.extend([
        writable(&temp.path().join("victim"), "/a"),
        Mount::ReadOnly { host: temp.path().join("of-the-user/file"), inside: "/a/b/file".into() },
        Mount::Overlay { host: temp.path().join("work"), inside: "/a/c".into(), bytes: 1 << 20 },
        Mount::Tmpfs { inside: "/a/d".into(), bytes: 1 << 20 },
        writable(&home, "/a/d/e"),
    ]);
    let finished = backend().run(&job, LIMIT).expect("the job runs");
    assert_eq!(finished.stdout, "below\nbelow\nover\ne\nnew\n", "{finished:?}");
    assert_eq!(std::fs::read_to_string(home.join("f")).expect("written"), "kept\n");
    assert_eq!(std::fs::read_to_string(temp.path().join("work/file")).expect("there"), "below\n");
    assert!(!temp.path().join("victim/d/new").exists());
}

#[test]
fn what_has_come_to_lie_elsewhere_since_it_was_looked_up_is_not_mounted() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let temp = place();
    let home = temp.path().join("work/home");
    // The plan as the driver writes it, with the identity of another folder.
    let plan = serde_json::json!({
        "argv": ["/bin/true"], "env": {}, "cwd": "/",
        "mounts": [{
            "mount": {"Writable": {"host": home.canonicalize().expect("is there"), "inside": "/home/x"}},
            "source": {"device": 1, "inode": 1},
        }],
        "may_mount": false, "limits": {"memory": 0, "processes": 0, "file_size": 0},
        "channel": false, "service": null, "without": [],
    });
    let text = plan.to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_gistmill"))
        .arg("__sandbox")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&u32::try_from(text.len()).expect("short").to_be_bytes()).expect("written");
    stdin.write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ends");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{words}");
    assert!(words.contains("something else has been put there"), "{words}");
}

#[test]
fn what_is_mounted_lends_no_rights_and_has_no_devices() {
    let temp = place();
    let work = temp.path().join("work");
    let mut job = job("cut -d' ' -f 2,4 /proc/mounts | grep ^/a/");
    job.mounts.extend([
        writable(&work, "/a/writable"),
        Mount::Scratch { host: work.clone(), inside: "/a/scratch".into() },
        Mount::ReadOnly { host: work.clone(), inside: "/a/read-only".into() },
        Mount::Overlay { host: work.clone(), inside: "/a/overlay".into(), bytes: 1 << 20 },
        Mount::Tmpfs { inside: "/a/memory".into(), bytes: 1 << 20 },
    ]);
    let finished = backend().run(&job, LIMIT).expect("the job runs");
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{finished:?}");
    for line in lines {
        let options: Vec<&str> = line.split([' ', ',']).collect();
        assert!(options.contains(&"nosuid") && options.contains(&"nodev"), "{line}");
        assert_eq!(options.contains(&"ro"), line.starts_with("/a/read-only"), "{line}");
    }
}
