//! What a sandbox keeps of the kernel from its jobs: keys, sockets, namespaces, settings, memory. The probes run as
//! whoever runs these tests and, when that is root, as an ordinary user as well.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use gistmill::backend::local::{LocalBackend, Strictness};
use gistmill::backend::{Backend, Finished, Job, JobLimits, Mount};
use nix::errno::Errno;

const LIMIT: Duration = Duration::from_mins(2);
/// Where an ordinary user finds the program.
const PROGRAM: &str = "GISTMILL_TEST_PROGRAM";

fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| env!("CARGO_BIN_EXE_gistmill").into(), PathBuf::from)
}

fn backend() -> LocalBackend {
    LocalBackend::new(&program()).expect("this machine allows the sandbox")
}

/// `call` gives 0 or the error of a system call, by number on x86_64 and aarch64.
const PRELUDE: &str = r"
import ctypes, errno, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
own = platform.machine() == 'aarch64'
def call(numbers, *arguments):
    result = libc.syscall(numbers[own], *map(ctypes.c_long, arguments))
    return 0 if result >= 0 else errno.errorcode[ctypes.get_errno()]
";

fn python(script: &str) -> Job {
    let mut job = Job::small(["python3", "-c", &format!("{PRELUDE}{script}")]);
    job.mounts.push(Mount::Tmpfs { inside: "/dev/shm".into(), bytes: 1 << 20 });
    job
}

#[track_caller]
fn run(job: &Job) -> Finished {
    let finished = backend().run(job, LIMIT).expect("the job runs");
    assert!(finished.success(), "{finished:?}");
    finished
}

/// Runs the probe with and without the right to mount; both must print this.
#[track_caller]
fn assert_prints(script: &str, expected: &str) {
    for may_mount in [false, true] {
        let job = Job { may_mount, ..python(script) };
        assert_eq!(run(&job).stdout.trim(), expected, "may mount: {may_mount}");
    }
}

#[test]
fn everything_holds_for_an_ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        // Then every other test is the proof.
        assert!(std::env::var_os(PROGRAM).is_some() || program().exists());
        return;
    }
    let folder = tempfile::tempdir().expect("temp dir");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("own folder");
    let [program, tests] = ["gistmill", "tests"].map(|name| folder.path().join(name));
    std::fs::copy(env!("CARGO_BIN_EXE_gistmill"), &program).expect("can be copied");
    std::fs::copy(std::env::current_exe().expect("known"), &tests).expect("can be copied");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "1234", "--regid", "1234", "--clear-groups"]).arg(&tests);
    command.args(["kernel::", "--skip", "everything_holds_for_an_ordinary_user", "--test-threads", "2"]);
    command.env(PROGRAM, &program).env("TMPDIR", "/tmp").current_dir("/");
    let ended = command.output().expect("setpriv is there");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && !text.contains(" 0 passed"), "{text}");
}

#[test]
fn no_key_is_added_or_found() {
    assert_prints(
        "print(call((248, 217), 0, 0, 0, 0, -3), call((249, 218), 0, 0, 0, 0), call((250, 219), 0, -3, 1))",
        "ENOSYS ENOSYS ENOSYS",
    );
}

/// Puts a key into a session keyring of this thread.
fn keep_a_key() {
    let (kind, name, payload) = (c"user", c"gistmill-test-key", b"s3cr3t");
    // SAFETY: the kernel reads names that end in NUL, and so many bytes of the payload.
    let added = unsafe {
        nix::libc::syscall(nix::libc::SYS_keyctl, 1_i64, std::ptr::null::<u8>());
        nix::libc::syscall(
            nix::libc::SYS_add_key,
            kind.as_ptr(),
            name.as_ptr(),
            payload.as_ptr(),
            payload.len(),
            -3_i64,
        )
    };
    Errno::result(added).expect("the kernel keeps keys");
}

/// Looks for the key in its session keyring, and in the lists of keys.
const FINDS_KEY: &str = "
libc.syscall.argtypes = [ctypes.c_long] * 2 + [ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long]
found = libc.syscall((250, 219)[own], 10, -3, b'user', b'gistmill-test-key', 0)
print('found' if found >= 0 else errno.errorcode[ctypes.get_errno()])
print('gistmill-test-key' in open('/proc/keys').read() or 'listed' * bool(open('/proc/keys').read()))
";

#[test]
fn keys_of_who_starts_it_are_out_of_reach_with_and_without_the_filter() {
    keep_a_key();
    let outside = Command::new("python3").args(["-c", &format!("{PRELUDE}{FINDS_KEY}")]).output();
    let outside = String::from_utf8(outside.expect("python3 is there").stdout).expect("is text");
    assert_eq!(outside, "found\nTrue\n", "without a sandbox the probe finds the key");
    let filtered = run(&python(FINDS_KEY));
    assert_eq!(filtered.stdout, "ENOSYS\n\n");
    assert_eq!(raw(&format!("{PRELUDE}{FINDS_KEY}"), &["system-calls"]), "ENOKEY\n\n");
}

/// What a program prints in a sandbox without these parts.
fn raw(script: &str, without: &[&str]) -> String {
    let plan = serde_json::json!({
        "argv": ["python3", "-c", script],
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "cwd": "/",
        "mounts": [],
        "may_mount": false,
        "limits": {"memory": 0, "processes": 0, "file_size": 0},
        "channel": false,
        "without": without,
    });
    let text = plan.to_string();
    let mut command = Command::new(program());
    command.arg("__sandbox").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(&u32::try_from(text.len()).expect("is short").to_be_bytes()).expect("is read");
    stdin.write_all(text.as_bytes()).expect("is read");
    let mut said = String::new();
    child.stdout.take().expect("is piped").read_to_string(&mut said).expect("is text");
    drop(stdin);
    assert!(child.wait().expect("ends").success());
    said
}

#[test]
fn only_sockets_that_the_network_namespace_covers_are_made() {
    let script = "
def make(family, *more):
    try:
        socket.socket(family, *more).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return 0
stream, dgram = socket.SOCK_STREAM, socket.SOCK_DGRAM
print([make(family, stream) for family in (1, 2, 10)], make(16, socket.SOCK_RAW), socket.socketpair() and 0)
# IPX, X25, packets, Bluetooth, CAN, TIPC, AF_ALG, vsock, QIPCRTR, XDP.
print({make(family, kind) for family in (4, 9, 17, 29, 30, 31, 38, 40, 42, 44) for kind in (stream, dgram, 3, 5)})
print(call((53, 199), 40, 1, 0, 0))
import multiprocessing, asyncio
asyncio.run(asyncio.sleep(0))
print(socket.getaddrinfo('127.0.0.1', 80)[0][4], len(socket.if_nameindex()))
";
    assert_prints(script, "[0, 0, 0] 0 0\n{'EAFNOSUPPORT'}\nEAFNOSUPPORT\n('127.0.0.1', 80) 1");
}

#[test]
fn no_namespaces_but_those_of_the_runner() {
    let script = "
# NEWUSER, NEWUSER|NEWNS, NEWNET, NEWPID, NEWIPC, NEWUTS, NEWCGROUP
flags = (0x10000000, 0x10020000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000)
print({call((272, 97), one) for one in flags}, {call((56, 220), one | 17, 0, 0, 0, 0) for one in flags})
print(call((435, 435), 0, 88), call((308, 268), os.open('/proc/self/ns/user', os.O_RDONLY), 0))
import subprocess, threading, multiprocessing
threading.Thread(target=print, args=('thread',)).start()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
";
    assert_prints(script, "{'EPERM'} {'EPERM'}\nENOSYS EPERM\nthread\nchild\n[1, 2]");
}

#[test]
fn other_ways_into_the_kernel_are_closed() {
    let script = "
print({call((one, one), 0, 0, 0, 0, 0) for one in (425, 426, 427, 428, 429, 430, 431, 432, 433, 442)})
print({call(one, 0, 0, 0, 0, 0) for one in ((321, 280), (298, 241), (323, 282), (300, 262), (304, 265), (103, 116))})
";
    assert_prints(script, "{'ENOSYS'}\n{'EPERM'}");
}

#[test]
fn nothing_of_the_machine_can_be_set_and_little_read() {
    let script = "
readable = [name for name in ('keys', 'key-users', 'kallsyms', 'cmdline', 'iomem', 'modules', 'timer_list', 'kcore', 'kmsg')
            if os.access('/proc/' + name, os.R_OK) and open('/proc/' + name, 'rb').read(1)]
writable = []
for folder, folders, files in os.walk('/proc'):
    folders[:] = [one for one in folders if not one.isdigit() and not one.endswith('self')]
    for name in files:
        try:
            descriptor = os.open(folder + '/' + name, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        # What is masked is the null device.
        state = os.stat(folder + '/' + name)
        if state.st_rdev == 0 and state.st_mode & 0o222:
            writable.append(folder + '/' + name)
print(readable, writable)
print(sorted(os.listdir('/sys')), os.path.exists('/sys/class'), os.cpu_count() > 0)
print(open('/proc/self/cgroup').read().count('..'), os.access('/sys', os.W_OK) and 'writable' or 'read-only')
";
    for may_mount in [false, true] {
        let said = run(&Job { may_mount, ..python(script) }).stdout;
        assert_eq!(said, "[] []\n['devices', 'kernel'] False True\n0 read-only\n", "may mount: {may_mount}");
    }
}

#[test]
fn programs_that_need_processors_and_memory_find_them() {
    let script = "
print(len(os.sched_getaffinity(0)) > 0, 'MemTotal' in open('/proc/meminfo').read(), os.getloadavg() is not None)
print(os.path.exists('/sys/devices/system/cpu/online'), os.path.exists('/proc/cpuinfo'), os.path.exists('/proc/stat'))
";
    assert_prints(script, "True True True\nTrue True True");
}

/// Fills memory that belongs to no process.
const HOLDS: &str = "
holds = [os.memfd_create('x') for _ in range(8)]
for one in holds:
    for _ in range(64):
        os.write(one, bytes(1 << 20))
print('holds', sum(os.fstat(one).st_size for one in holds) >> 20)
";

#[test]
fn memory_of_a_job_is_bounded_whatever_it_is_made_of() {
    let missing = backend().isolation().missing.clone();
    if missing.iter().any(|one| one.starts_with("a bound on the memory of all processes of a job together")) {
        let refused = LocalBackend::with(&program(), Strictness::Strict).expect_err("is not all of it");
        assert!(
            refused.hint().is_some_and(|hint| hint.contains("systemd-run --user --scope")),
            "{refused:?}"
        );
        return;
    }
    let limited = |memory| Job { limits: JobLimits { memory, ..JobLimits::default() }, ..python(HOLDS) };
    assert_eq!(run(&limited(2 << 30)).stdout, "holds 512\n");
    let finished = backend().run(&limited(300 << 20), LIMIT).expect("the job runs");
    assert_eq!((finished.code, finished.stdout.as_str()), (None, ""), "{finished:?}");
    let mut job =
        python("for name in 'ab': open('/data/' + name, 'wb').write(bytes(250 << 20))\nprint('written')");
    job.mounts.push(Mount::Tmpfs { inside: "/data".into(), bytes: 1 << 30 });
    job.limits.memory = 400 << 20;
    let finished = backend().run(&job, LIMIT).expect("the job runs");
    assert_eq!((finished.code, finished.stdout.as_str()), (None, ""), "{finished:?}");
}

/// Runs a probe as the program inside a container does, with this machine in the place of the container.
fn in_container(script: &str) -> String {
    use gistmill::backend::sandbox::seccomp::{Architecture, Sockets, encoded};
    let filters: std::collections::BTreeMap<&str, String> =
        Architecture::ALL.map(|one| (one.as_str(), hex::encode(encoded(one, Sockets::Covered)))).into();
    let plan = serde_json::json!({
        "argv": ["python3", "-c", format!("{PRELUDE}{script}")],
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "cwd": "/",
        "mounts": [{"kind": "tmpfs", "inside": "/dev/shm", "bytes": 1 << 20}],
        "service": false,
        "may_mount": false,
        "limits": {"memory": 0, "processes": 0, "file_size": 0},
        "channel": false,
        "user": "gistmill",
        "on_disk": false,
        "own_processes": true,
        "filters": filters,
        "send_back": [],
    });
    let text = plan.to_string();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "python3", "-I", "-S", "-B", "-c"]);
    command.arg(gistmill::backend::docker::program());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("is piped");
    let length = u32::try_from(text.len()).expect("is short").to_be_bytes();
    stdin.write_all(&[&length, text.as_bytes(), &[0; 4]].concat()).expect("is read");
    let mut frames = Vec::new();
    child.stdout.take().expect("is piped").read_to_end(&mut frames).expect("is read");
    drop(stdin);
    child.wait().expect("ends");
    let (mut said, mut rest) = (String::new(), frames.as_slice());
    while let [kind, a, b, c, d, more @ ..] = rest {
        let (data, after) = more.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        said.extend([char::from(*kind), ':', ' ']);
        said.push_str(String::from_utf8_lossy(data).trim());
        said.push('\n');
        rest = after;
    }
    said
}

#[test]
fn jobs_in_containers_are_held_to_the_same() {
    let script = "
print(call((250, 219), 0, -3, 1), call((272, 97), 0x10000000), call((435, 435), 0, 88), call((425, 425), 1, 0))
try:
    socket.socket(40, 1)
except OSError as error:
    print(errno.errorcode[error.errno])
print(repr(open('/proc/keys').read() + open('/proc/cmdline').read()), sorted(os.listdir('/sys')), os.cpu_count() > 0)
print([name for name in os.listdir('/proc') if name[0] > '9' and os.path.isfile('/proc/' + name) and os.access('/proc/' + name, os.W_OK)])
import multiprocessing
with multiprocessing.get_context('fork').Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
";
    let said = in_container(script);
    let expected =
        "ENOSYS EPERM ENOSYS ENOSYS\nEAFNOSUPPORT\n'' ['devices', 'kernel'] True\n[]\n[1, 2]\nx: 0";
    assert_eq!(said.replace("o: ", "").trim(), expected);
}
