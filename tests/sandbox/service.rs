//! A service of the driver at the loopback of a job.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gistmill::backend::{Backend, Connection, Finished, Job, SERVICE_PORT, Service};
use gistmill::error::Fault;

use super::{LIMIT, backend};

/// Says again what it hears, or says nothing and waits; counts how many it serves at the same time.
#[derive(Debug, Default)]
struct Answering {
    silent: bool,
    now: AtomicUsize,
    most: AtomicUsize,
    served: AtomicUsize,
}

impl Service for Answering {
    fn serve(&self, connection: Connection) {
        let Connection::Tcp(mut stream) = connection else { panic!("{connection:?}") };
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if !self.silent && stream.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        self.served.fetch_add(1, Ordering::SeqCst);
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

fn job(service: &Arc<Answering>, script: &str) -> Job {
    let script = format!("import os, socket, sys\nat = ('127.0.0.1', {SERVICE_PORT})\n{script}");
    let service: Arc<dyn Service> = Arc::clone(service) as Arc<dyn Service>;
    Job { service: Some(service), ..Job::small(["python3", "-I", "-S", "-c", script.as_str()]) }
}

fn run(service: &Arc<Answering>, script: &str) -> Finished {
    let finished = backend().run(&job(service, script), LIMIT).expect("the job runs");
    assert!(finished.success(), "{finished:?}");
    finished
}

#[test]
fn a_job_talks_to_the_service_at_its_loopback() {
    let service = Arc::default();
    let script = "\
import threading
sent = os.urandom(8 << 20)
stream = socket.create_connection(at)
def send():
    stream.sendall(sent)
    stream.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
back = b''.join(iter(lambda: stream.recv(1 << 16), b''))
print(len(back), back == sent)";
    assert_eq!(run(&service, script).stdout, "8388608 True\n");
}

#[test]
fn ten_thousand_connections_are_served_a_bounded_number_at_once() {
    let service = Arc::default();
    let script = "\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
kept, answered = [], 0
for number in range(10000):
    stream = socket.create_connection(at)
    stream.settimeout(60)
    if number % 100 == 0:
        stream.sendall(b'x')
        answered += stream.recv(1) == b'x'
    kept.append(stream)
    if len(kept) > 50:
        kept.pop(0).close()
print(answered)";
    assert_eq!(run(&service, script).stdout, "100\n");
    assert!(service.most.load(Ordering::SeqCst) <= 64, "{service:?}");
}

#[test]
fn connections_that_nobody_reads_wait_for_a_place_and_end_with_the_job() {
    let service = Arc::new(Answering { silent: true, ..Answering::default() });
    let script = "\
kept = []
for _ in range(150):
    stream = socket.socket()
    stream.setblocking(False)
    stream.connect_ex(at)
    kept.append(stream)
import time
time.sleep(1)
print('done')";
    let started = Instant::now();
    assert_eq!(run(&service, script).stdout, "done\n");
    assert!(started.elapsed() < LIMIT);
    assert_eq!(service.most.load(Ordering::SeqCst), 64);
    let deadline = Instant::now() + LIMIT;
    while service.now.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "a connection outlived its job: {service:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_job_that_is_ended_ends_its_connections() {
    let service = Arc::new(Answering { silent: true, ..Answering::default() });
    let job = job(&service, "stream = socket.create_connection(at)\nstream.sendall(b'x')\nstream.recv(1)");
    let process = backend().start(&job).expect("the job starts");
    let deadline = Instant::now() + LIMIT;
    while service.now.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < deadline, "nobody came");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(process);
    while service.now.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "a connection outlived its job: {service:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_job_has_no_socket_of_the_sandbox_and_no_other_network() {
    let service = Arc::default();
    let script = "\
held = []
for number in range(3, 1024):
    try:
        held.append(os.readlink('/proc/self/fd/%d' % number))
    except OSError:
        pass
print([one for one in held if 'socket' in one])
print(len([one for one in open('/proc/net/dev') if ':' in one]))
try:
    socket.create_connection(('192.0.2.1', 80), 5)
except OSError as error:
    print(error)
try:
    socket.socket().bind(at)
except OSError as error:
    print(error)";
    assert_eq!(
        run(&service, script).stdout,
        "[]\n1\n[Errno 101] Network is unreachable\n[Errno 98] Address already in use\n"
    );
}

#[test]
fn a_service_does_not_go_with_a_channel() {
    let service = Arc::default();
    let job = Job { channel: true, ..job(&service, "") };
    assert_eq!(backend().start(&job).expect_err("is refused").fault(), Fault::Internal);
}
