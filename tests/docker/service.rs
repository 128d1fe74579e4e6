//! A service of the driver at the loopback of a job in a container.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gistmill::backend::docker::{ContainerLimits, DockerBackend, Engine};
use gistmill::backend::{Backend, Connection, Job, Mount, SERVICE_PORT, Service};

const LIMIT: Duration = Duration::from_mins(1);

/// Says again what it hears, but for connections that begin with `s`: those it leaves standing.
#[derive(Debug, Default)]
struct Echo {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Service for Echo {
    fn serve(&self, connection: Connection) {
        let Connection::Unix(mut stream) = connection else { panic!("{connection:?}") };
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let mut buffer = vec![0; 1 << 20];
        let mut first = true;
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if std::mem::take(&mut first) && buffer[0] == b's' {
                let mut watched = [nix::poll::PollFd::new(
                    std::os::fd::AsFd::as_fd(&stream),
                    nix::poll::PollFlags::empty(),
                )];
                let _ = nix::poll::poll(&mut watched, nix::poll::PollTimeout::NONE);
                break;
            }
            if stream.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

const SCRIPT: &str = r"
import os, socket, threading
stalled = [socket.create_connection(at) for _ in range(5)]
for stream in stalled:
    stream.setblocking(False)
    stream.sendall(b's')
    try:
        while True:
            stream.send(bytes(1 << 16))
    except BlockingIOError:
        pass
def echoed(size):
    sent = b'e' + os.urandom(size)
    stream = socket.create_connection(at)
    def send():
        stream.sendall(sent)
        stream.shutdown(socket.SHUT_WR)
    threading.Thread(target=send).start()
    return b''.join(iter(lambda: stream.recv(1 << 16), b'')) == sent
print('large', echoed(20 << 20))
unread = [socket.create_connection(at) for _ in range(3)]
for stream in unread:
    stream.sendall(bytes(200 << 10))
several = []
threads = [threading.Thread(target=lambda: several.append(echoed(1 << 20))) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print('several', several.count(True))
print('one after the other', sum(echoed(10) for _ in range(300)))
for _ in range(200):
    stream = socket.create_connection(at)
    stream.sendall(bytes(1000))
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    stream.close()
many = []
for _ in range(150):
    stream = socket.socket()
    stream.setblocking(False)
    stream.connect_ex(at)
    many.append(stream)
for stream in many:
    stream.close()
print('after many', echoed(10))
print(sorted(one.split(':')[0].strip() for one in open('/proc/net/dev') if ':' in one))
print([one for one in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + one)
       and 'socket' in os.readlink('/proc/self/fd/' + one) and int(one) < stalled[0].fileno()])
with open('/data/left', 'w') as file:
    file.write('left')
";

pub fn a_job_talks_to_the_service_at_its_loopback() {
    let engine = Arc::new(Engine::connect(None).expect("an engine answers"));
    let temp = tempfile::tempdir().expect("temp dir");
    let data = temp.path().join("data");
    std::fs::create_dir(&data).expect("made");
    let limits = ContainerLimits::default();
    let backend = DockerBackend::for_builds(&engine, &crate::base(), limits).expect("works");
    let service = Arc::new(Echo::default());
    let script = format!("at = ('127.0.0.1', {SERVICE_PORT}){SCRIPT}");
    let mut job = Job::small(["python3", "-I", "-S", "-u", "-c", script.as_str()]);
    job.service = Some(Arc::clone(&service) as Arc<dyn Service>);
    job.mounts.push(Mount::Writable { host: data.clone(), inside: "/data".into() });
    let finished = backend.run(&job, LIMIT).expect("the job runs");
    assert_eq!(
        finished.stdout, "large True\nseveral 20\none after the other 300\nafter many True\n['lo']\n[]\n",
        "{finished:?}"
    );
    assert!(service.most.load(Ordering::SeqCst) <= 64, "{service:?}");
    assert_eq!(std::fs::read_to_string(data.join("left")).expect("came back"), "left");
    let deadline = std::time::Instant::now() + LIMIT;
    while service.now.load(Ordering::SeqCst) > 0 {
        assert!(std::time::Instant::now() < deadline, "a connection outlived its job: {service:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn nothing_is_sent_or_mounted_through_a_link() {
    let engine = Arc::new(Engine::connect(None).expect("an engine answers"));
    let temp = tempfile::tempdir().expect("temp dir");
    let work = temp.path().join("work");
    for folder in [&work, &temp.path().join("victim"), &work.join("home")] {
        std::fs::create_dir(folder).expect("made");
    }
    let limits = ContainerLimits::default();
    let backend = DockerBackend::for_builds(&engine, &crate::base(), limits).expect("works");
    std::os::unix::fs::symlink(temp.path().join("victim"), work.join("sent")).expect("linked");
    std::os::unix::fs::symlink("/old/tmp", work.join("way")).expect("linked");
    let writable = |host: std::path::PathBuf, inside: &str| Mount::Writable { host, inside: inside.into() };
    let cases = [
        vec![writable(work.clone(), "/work"), writable(work.join("sent"), "/home/x")],
        vec![writable(work.clone(), "/work"), writable(work.join("home"), "/work/way/made")],
    ];
    for mounts in cases {
        let mut job = Job::small(["true"]);
        job.mounts.extend(mounts);
        let error = backend.start(&job).and_then(|process| process.wait(LIMIT)).expect_err("is refused");
        let detail = error.detail().unwrap_or_default();
        assert!(detail.contains("symbolic link"), "{error:?}");
    }
}

/// A hole costs the job nothing, and would fill the disk of the host as zeros.
pub fn what_is_too_large_is_not_sent_back() {
    let engine = Arc::new(Engine::connect(None).expect("an engine answers"));
    let temp = tempfile::tempdir().expect("temp dir");
    let data = temp.path().join("data");
    std::fs::create_dir(&data).expect("made");
    std::fs::write(data.join("before"), "before").expect("written");
    let limits = ContainerLimits::default();
    let backend = DockerBackend::for_builds(&engine, &crate::base(), limits).expect("works");
    let leave = |script: &str| {
        let mut job = Job::small(["python3", "-I", "-S", "-c", script]);
        job.mounts.push(Mount::Writable { host: data.clone(), inside: "/data".into() });
        backend.start(&job).and_then(|process| process.wait(LIMIT))
    };
    let hole = |gibibytes: u64| {
        leave(&format!(
            "import os; os.mkdir('/data/a'); f = os.open('/data/a/b', os.O_CREAT | os.O_RDWR)\n\
             os.pwrite(f, b'x', 1 << 20); os.truncate(f, {gibibytes} << 30)"
        ))
    };
    for (gibibytes, words) in [(100, "more than 32 GiB"), (6, "holes of more than 1 GiB")] {
        let started = std::time::Instant::now();
        let error = hole(gibibytes).expect_err("is refused");
        assert!(started.elapsed() < LIMIT / 2, "bytes of the hole were sent");
        assert!(error.to_string().contains("what a job left"), "{error:?}");
        assert!(error.detail().unwrap_or_default().contains(words), "{error:?}");
        assert_eq!(std::fs::read_to_string(data.join("before")).expect("is there"), "before");
        assert!(!data.join("a").exists());
    }
    // Another name of a file is no further bytes.
    let linked = "import os; os.truncate(os.open('/data/b', os.O_CREAT | os.O_RDWR), 64 << 20)\n\
                  for n in range(600): os.link('/data/b', '/data/b%d' % n)";
    assert_eq!(leave(linked).expect("comes back").code, Some(0));
    assert!(data.join("b599").exists());
}
