//! The local sandbox, tried with real processes.

mod mounts;
mod service;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gistmill::backend::local::LocalBackend;
use gistmill::backend::{Backend, Finished, Job, JobLimits, Mount};

/// No job that ends by itself takes as long, however busy the machine is.
const LIMIT: Duration = Duration::from_mins(2);

fn backend() -> LocalBackend {
    LocalBackend::new(Path::new(env!("CARGO_BIN_EXE_gistmill"))).expect("this machine allows the sandbox")
}

fn job(script: &str) -> Job {
    Job::small(["/bin/sh", "-c", script])
}

fn run(script: &str) -> Finished {
    backend().run(&job(script), LIMIT).expect("the job runs")
}

#[test]
fn exit_code_stdout_and_stderr_arrive() {
    let finished = run("echo out; echo err >&2; exit 7");
    assert_eq!(
        (finished.code, finished.stdout.as_str(), finished.stderr.as_str()),
        (Some(7), "out\n", "err\n")
    );
}

#[test]
fn an_ordinary_user_without_capabilities() {
    let finished = run("id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status");
    assert_eq!(
        finished.stdout.split_whitespace().collect::<Vec<_>>(),
        ["1000", "CapEff:", "0000000000000000", "CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
    );
}

#[test]
fn nothing_of_the_user_is_visible_and_the_system_is_read_only() {
    let home = std::env::var("HOME").expect("HOME is set");
    let finished = run(&format!("ls {home} /etc/shadow /var/log; touch /usr/x /x /etc/x"));
    assert_eq!(finished.stderr.matches("Read-only file system").count(), 3, "{}", finished.stderr);
    assert_eq!(finished.stderr.matches("No such file").count(), 3, "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
}

#[test]
fn even_with_the_right_to_mount_nothing_read_only_becomes_writable() {
    let folder = tempfile::tempdir().expect("temp dir");
    let mut job = job("id -u; for place in /fixed /usr / /proc/sys; do \
             mount -o remount,bind,rw none $place && echo \"$place can be remounted\"; \
             umount -l $place && echo \"$place can be uncovered\"; \
         done; touch /fixed/new && echo written; \
         echo x > /proc/sys/kernel/core_pattern && echo set; \
         mount -t tmpfs none /tmp && echo mounted");
    job.may_mount = true;
    job.mounts.push(Mount::ReadOnly { host: folder.path().to_owned(), inside: "/fixed".into() });
    let finished = backend().run(&job, LIMIT).expect("the job runs");
    assert_eq!(finished.stdout, "1000\nmounted\n", "{}", finished.stderr);
    assert!(!folder.path().join("new").exists());
}

#[test]
fn kernel_settings_are_read_only_for_tests() {
    let finished =
        run("for file in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger; do \
             (: > $file) 2>/dev/null && echo \"$file opens\"; done; echo done");
    assert_eq!(finished.stdout, "done\n");
}

/// Settings of a session, such as its share of the processors, can be changed by whoever has its user ID.
#[test]
fn no_process_inside_belongs_to_the_session_of_the_user() {
    let finished = run("cut -d' ' -f 6 /proc/[0-9]*/stat | sort -u");
    let sessions: Vec<&str> = finished.stdout.lines().collect();
    assert!(sessions.contains(&"1") && !sessions.contains(&"0"), "{finished:?}");
}

#[test]
fn process_ids_are_no_small_numbers() {
    let finished = run("echo $$");
    let process_id: u32 = finished.stdout.trim().parse().expect("a number");
    assert!(process_id >= 10_000, "{process_id}");
}

#[test]
fn only_the_loopback_is_there_and_it_is_up() {
    let finished = run("grep -c : /proc/net/dev; grep -m1 -o '127.0.0.1' /proc/net/fib_trie");
    assert_eq!(finished.stdout, "1\n127.0.0.1\n", "{finished:?}");
}

#[test]
fn a_job_over_its_time_is_ended_with_all_its_children() {
    let marker = format!("31{:03}", std::process::id() % 1000);
    let script = format!("setsid sleep {marker} & sleep {marker}");
    let backend = backend();
    let started = Instant::now();
    let finished = backend.run(&job(&script), Duration::from_millis(400)).expect("the job runs");
    assert!(finished.timed_out && finished.code.is_none(), "{finished:?}");
    assert!(started.elapsed() < LIMIT);
    assert_ends(&marker);
}

#[test]
fn daemons_end_with_the_command() {
    let marker = format!("32{:03}", std::process::id() % 1000);
    let finished = run(&format!("setsid sleep {marker} >/dev/null 2>&1 & echo started"));
    assert_eq!(finished.stdout, "started\n");
    assert_ends(&marker);
}

#[test]
fn writable_mounts_are_written_and_read_only_ones_are_not() {
    let folder = tempfile::tempdir().expect("temp dir");
    let mount = |inside: &str, writable| {
        let (host, inside) = (folder.path().to_owned(), PathBuf::from(inside));
        if writable { Mount::Writable { host, inside } } else { Mount::ReadOnly { host, inside } }
    };
    let mut job = job("echo yes > /data/new; echo no > /fixed/other");
    job.mounts.extend([mount("/data", true), mount("/fixed", false)]);
    let finished = backend().run(&job, LIMIT).expect("the job runs");
    assert!(finished.stderr.contains("Read-only"), "{finished:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("new")).expect("written"), "yes\n");
    assert!(!folder.path().join("other").exists());
}

#[test]
fn a_missing_mount_is_the_harness_trouble_and_named() {
    let mut job = job("true");
    job.mounts.push(Mount::ReadOnly { host: "/no/such/place".into(), inside: "/data".into() });
    let error = backend().run(&job, LIMIT).expect_err("cannot be set up");
    assert_eq!(error.fault(), gistmill::error::Fault::Harness);
    assert!(error.detail().is_some_and(|detail| detail.contains("/no/such/place")), "{error:?}");
}

fn limited(script: &str, limits: JobLimits) -> Finished {
    let job = Job { limits, ..job(script) };
    backend().run(&job, LIMIT).expect("the job runs")
}

#[test]
fn no_process_gets_more_memory_than_it_may() {
    let script = "dd if=/dev/zero of=/dev/null bs=400M count=1 && echo got it";
    let limits = JobLimits { memory: 200 << 20, ..JobLimits::default() };
    let finished = limited(script, limits);
    assert!(!finished.stdout.contains("got it") && finished.stderr.contains("memory"), "{finished:?}");
    assert_eq!(run(script).stdout, "got it\n", "without the limit there is enough");
}

#[test]
fn no_file_becomes_larger_than_it_may() {
    let limits = JobLimits { file_size: 100 << 10, ..JobLimits::default() };
    let finished = limited("trap '' XFSZ; head -c 200000 /dev/zero > /tmp/x; wc -c < /tmp/x", limits);
    assert_eq!(finished.stdout.trim(), "102400", "{finished:?}");
}

#[test]
fn no_more_is_written_to_a_place_in_memory_than_it_holds() {
    let finished = run("head -c 3000000 /dev/zero > /tmp/x; wc -c < /tmp/x");
    assert_eq!(finished.stdout.trim(), "1048576", "{finished:?}");
    assert!(finished.stderr.contains("No space left"), "{finished:?}");
}

#[test]
fn no_more_processes_are_started_than_may_be() {
    let marker = format!("33{:03}", std::process::id() % 1000);
    let script = format!("for i in $(seq 200); do sleep {marker} & done; sleep 15; echo all are there");
    let limits = JobLimits { processes: 20, ..JobLimits::default() };
    let finished = limited(&script, limits);
    assert!(!finished.stdout.contains("all are there"), "{finished:?}");
    // The kernel refuses them to an ordinary user; root's are counted and ended.
    let told = ["more than 20 processes", "ork", "Resource temporarily unavailable"];
    assert!(told.iter().any(|words| finished.stderr.contains(words)), "{finished:?}");
    assert_ends(&marker);
}

#[test]
fn only_the_end_of_endless_output_is_kept() {
    let job = job("yes | head -c 50000000; yes err | head -c 50000000 >&2; echo end; echo end >&2");
    let finished = backend().run(&job, 5 * LIMIT).expect("the job runs");
    for text in [&finished.stdout, &finished.stderr] {
        assert!(text.ends_with("end\n") && text.len() < 1 << 20, "{} bytes", text.len());
    }
}

#[test]
fn no_core_is_dumped_and_no_variable_is_inherited() {
    let finished = run("ulimit -c; env | cut -d= -f1 | sort | tr '\\n' ' '");
    assert_eq!(finished.stdout, "0\nPATH PWD ", "{finished:?}");
}

/// Waits until no process `sleep <marker>` is left, [`LIMIT`] at most.
fn assert_ends(marker: &str) {
    let deadline = Instant::now() + LIMIT;
    while process_with(&format!("sleep\0{marker}\0")) {
        assert!(Instant::now() < deadline, "`sleep {marker}` survived");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process on this machine has this command line.
fn process_with(command_line: &str) -> bool {
    std::fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains(command_line))
    })
}

#[test]
fn nothing_that_the_driver_holds_is_inherited() {
    let (reader, _writer) = nix::unistd::pipe().expect("a pipe");
    let held = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let shown = run("ls /proc/self/fd");
    let numbers: Vec<i32> = shown.stdout.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(held > 2 && numbers.len() <= 4, "{held}: {shown:?}");
    assert!(numbers.iter().all(|number| *number <= 3), "{held}: {shown:?}");
}

#[test]
fn the_first_process_names_no_place_of_the_host() {
    assert_eq!(run("tr '\\0' ' ' </proc/1/cmdline").stdout, "gistmill __sandbox ");
}

#[test]
fn packages_below_a_prefix_are_hidden_and_all_else_is_not() {
    let temp = tempfile::tempdir().expect("temp dir");
    let folders =
        ["lib/python3.9/site-packages", "lib/python3/dist-packages", "lib/python3.9/ensurepip/_bundled"];
    for folder in folders.into_iter().chain(["lib/python3.9/json"]) {
        std::fs::create_dir_all(temp.path().join(folder)).expect("made");
        std::fs::write(temp.path().join(folder).join("file"), "x").expect("written");
    }
    let mut job = job("cd /opt/prefix/lib && find . -type f && ! touch python3/dist-packages/x 2>/dev/null");
    job.mounts.push(Mount::ReadOnly { host: temp.path().to_owned(), inside: "/opt/prefix".into() });
    let shown = backend().run(&job, LIMIT).expect("the job runs");
    assert_eq!(shown.stdout.lines().count(), 4, "{shown:?}");
    for prefix in ["/opt/prefix", "/usr", "/not/there"] {
        job.mounts.push(Mount::NoPackages { prefix: prefix.into() });
    }
    let hidden = backend().run(&job, LIMIT).expect("the job runs");
    assert!(hidden.success(), "{hidden:?}");
    assert_eq!(hidden.stdout, "./python3.9/json/file\n");
}

#[test]
fn signals_that_the_caller_ignores_are_not_ignored_inside() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: to ignore a signal runs no handler.
    unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }.expect("it can be ignored");
    let finished = run("grep SigIgn /proc/self/status; kill -HUP $$; echo survived");
    let mask = finished.stdout.trim().strip_prefix("SigIgn:").expect("nothing else is printed").trim();
    let mask = u64::from_str_radix(mask, 16).expect("a mask of signals");
    assert_eq!(mask & 1, 0, "SIGHUP is ignored");
    assert_eq!(finished.code, None, "it was killed");
}
