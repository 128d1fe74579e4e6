//! A [`Service`] at the loopback of a job in a container: its connections come and go as pieces over the attached stream
//! (see `relay.py`). What comes is hostile.
//!
//! The thread that reads the stream never waits for a service or for the container's input: pieces lie in queues that
//! are bounded by what was agreed, and threads of each connection empty them.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::backend::service::MOST_CONNECTIONS;
use crate::backend::{Connection, Service};

/// Bytes of a connection in one direction that have not been passed on yet.
const WINDOW: usize = 256 << 10;
const PIECE: usize = 64 << 10;
/// Kind and number of the connection.
const HEAD: usize = 5;

/// Why pieces cannot be those of the program in the container.
pub(super) type Broken = &'static str;

/// What connects the job of one container with a service.
pub(super) struct Relay {
    service: Arc<dyn Service>,
    /// The container's input.
    to: Mutex<Box<dyn Write + Send>>,
    lines: Mutex<Lines>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Relay").field("service", &self.service).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Lines {
    over: bool,
    open: HashMap<u32, Line>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    /// What the job sent, on its way to the service; none once the job sends nothing more.
    pieces: Option<Sender<Vec<u8>>>,
    flow: Arc<Flow>,
    /// The other end of what the service has.
    stream: UnixStream,
}

/// How much is on its way.
#[derive(Debug)]
struct Flow {
    amounts: Mutex<Amounts>,
    changed: Condvar,
}

#[derive(Debug)]
struct Amounts {
    /// Bytes that may still be sent to the job.
    credit: usize,
    /// Bytes of the job that wait for the service.
    waiting: usize,
    gone: bool,
}

impl Flow {
    fn new() -> Self {
        let amounts = Amounts { credit: WINDOW, waiting: 0, gone: false };
        Flow { amounts: Mutex::new(amounts), changed: Condvar::new() }
    }

    fn amounts(&self) -> MutexGuard<'_, Amounts> {
        self.amounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be sent; gives how much of it, none when the job is gone.
    fn take(&self, wanted: usize) -> Option<usize> {
        let none = |amounts: &mut Amounts| amounts.credit == 0 && !amounts.gone;
        let mut amounts =
            self.changed.wait_while(self.amounts(), none).unwrap_or_else(PoisonError::into_inner);
        if amounts.gone {
            return None;
        }
        let share = wanted.min(amounts.credit);
        amounts.credit -= share;
        Some(share)
    }
}

impl Line {
    /// Neither the service nor whoever waits for the job gets anything more.
    fn break_off(&mut self) {
        self.pieces = None;
        self.flow.amounts().gone = true;
        self.flow.changed.notify_all();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Relay {
    pub(super) fn new(service: Arc<dyn Service>, to: Box<dyn Write + Send>) -> Arc<Self> {
        Arc::new(Relay { service, to: Mutex::new(to), lines: Mutex::default() })
    }

    /// The container's input. Connections wait as long as it is held.
    pub(super) fn input(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Breaks every connection off.
    pub(super) fn end(&self) {
        let mut lines = self.lines();
        lines.over = true;
        lines.open.values_mut().for_each(Line::break_off);
    }

    /// Takes in a piece from the container, without waiting.
    ///
    /// # Errors
    /// When the container does not keep to what was agreed.
    pub(super) fn take(self: &Arc<Self>, piece: &[u8]) -> Result<(), Broken> {
        let Some((head, data)) = piece.split_first_chunk::<HEAD>() else {
            return Err("a piece of a connection without its head");
        };
        let number = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        if head[0] == b'o' {
            return self.open(number);
        }
        let mut lines = self.lines();
        // What comes late for a connection that is done means nothing.
        let Some(line) = lines.open.get_mut(&number) else { return Ok(()) };
        match head[0] {
            b'd' => pass_on(line, data)?,
            b'a' => {
                let count = data.try_into().map_err(|_| "an amount that is not a number")?;
                let mut amounts = line.flow.amounts();
                amounts.credit =
                    amounts.credit.saturating_add(u32::from_be_bytes(count) as usize).min(WINDOW);
                line.flow.changed.notify_all();
            }
            b'h' => line.pieces = None,
            b'r' => line.break_off(),
            _ => return Err("a piece of a connection of an unknown kind"),
        }
        Ok(())
    }

    fn open(self: &Arc<Self>, number: u32) -> Result<(), Broken> {
        let mut lines = self.lines();
        if lines.over {
            return Ok(());
        }
        if lines.open.len() >= MOST_CONNECTIONS || lines.open.contains_key(&number) {
            return Err("more connections than agreed");
        }
        let none_left = |_: std::io::Error| "no thread or descriptor is left for a connection";
        let (stream, theirs) = UnixStream::pair().map_err(none_left)?;
        let (up, down) = (stream.try_clone().map_err(none_left)?, stream.try_clone().map_err(none_left)?);
        let (pieces, incoming) = channel();
        let flow = Arc::new(Flow::new());
        lines.open.insert(number, Line { pieces: Some(pieces), flow: Arc::clone(&flow), stream });
        drop(lines);
        let start = || {
            let service = Arc::clone(&self.service);
            let served = spawn(move || service.serve(Connection::Unix(theirs)))?;
            let (relay, amounts) = (Arc::clone(self), Arc::clone(&flow));
            let carried = spawn(move || relay.carry_to_service(number, down, &incoming, &amounts))?;
            let relay = Arc::clone(self);
            spawn(move || {
                relay.carry_to_job(number, up, &flow);
                relay.close(number, [served, carried]);
            })
        };
        start().map(drop).map_err(none_left)
    }

    fn say(&self, kind: u8, number: u32, data: &[u8]) -> std::io::Result<()> {
        let length = u32::try_from(HEAD + data.len()).map_err(std::io::Error::other)?;
        let mut piece = Vec::with_capacity(4 + HEAD + data.len());
        piece.extend_from_slice(&length.to_be_bytes());
        piece.push(kind);
        piece.extend_from_slice(&number.to_be_bytes());
        piece.extend_from_slice(data);
        let mut to = self.input();
        to.write_all(&piece).and_then(|()| to.flush())
    }

    /// From the job to the service, until one of them has enough.
    fn carry_to_service(&self, number: u32, mut stream: UnixStream, pieces: &Receiver<Vec<u8>>, flow: &Flow) {
        for piece in pieces {
            if stream.write_all(&piece).is_err() {
                return;
            }
            flow.amounts().waiting -= piece.len();
            // A piece is never as long as the window.
            if self.say(b'a', number, &(piece.len() as u32).to_be_bytes()).is_err() {
                return;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
    }

    /// From the service to the job, until one of them has enough.
    fn carry_to_job(&self, number: u32, mut stream: UnixStream, flow: &Flow) {
        let mut buffer = vec![0_u8; PIECE];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            let mut rest = &buffer[..length];
            while !rest.is_empty() {
                let Some(share) = flow.take(rest.len()) else { return };
                if self.say(b'd', number, &rest[..share]).is_err() {
                    return;
                }
                rest = &rest[share..];
            }
        }
        let _ = self.say(b'h', number, &[]);
    }

    /// Waits for the service to be done and gives the connection's place free.
    fn close(&self, number: u32, threads: [JoinHandle<()>; 2]) {
        let [served, carried] = threads;
        let _ = served.join();
        if let Some(mut line) = self.lines().open.remove(&number) {
            line.break_off();
        }
        let _ = carried.join();
        let _ = self.say(b'z', number, &[]);
    }
}

fn pass_on(line: &mut Line, data: &[u8]) -> Result<(), Broken> {
    let Some(pieces) = &line.pieces else { return Ok(()) };
    let mut amounts = line.flow.amounts();
    amounts.waiting += data.len();
    if amounts.waiting > WINDOW {
        return Err("more bytes of a connection than agreed");
    }
    // A service that reads nothing more is told by the end of its thread.
    let _ = pieces.send(data.to_vec());
    Ok(())
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("service connection".to_owned()).spawn(run)
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    #[derive(Debug)]
    struct Echo;

    impl Service for Echo {
        fn serve(&self, connection: Connection) {
            let Connection::Unix(mut stream) = connection else { panic!("{connection:?}") };
            let mut buffer = vec![0; PIECE];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
        }
    }

    /// Never reads, until it is broken off.
    #[derive(Debug)]
    struct Deaf(Mutex<Sender<()>>);

    impl Service for Deaf {
        fn serve(&self, connection: Connection) {
            let Connection::Unix(stream) = connection else { panic!("{connection:?}") };
            // Its end is told in any case.
            let mut watched = [PollFd::new(stream.as_fd(), PollFlags::empty())];
            poll(&mut watched, PollTimeout::NONE).unwrap();
            self.0.lock().unwrap().send(()).unwrap();
        }
    }

    fn relay(service: impl Service + 'static) -> (Arc<Relay>, PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        (Relay::new(Arc::new(service), Box::new(writer)), reader)
    }

    fn piece(kind: u8, number: u32, data: &[u8]) -> Vec<u8> {
        [&[kind], &number.to_be_bytes()[..], data].concat()
    }

    fn next(reader: &mut PipeReader) -> (u8, u32, Vec<u8>) {
        let mut length = [0; 4];
        reader.read_exact(&mut length).unwrap();
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        reader.read_exact(&mut text).unwrap();
        let number = u32::from_be_bytes(text[1..5].try_into().unwrap());
        (text[0], number, text[5..].to_vec())
    }

    #[test]
    fn a_connection_goes_both_ways_and_gives_its_number_back() {
        let (relay, mut reader) = relay(Echo);
        for (kind, data) in [(b'o', b"".as_slice()), (b'd', b"hello"), (b'h', b"")] {
            relay.take(&piece(kind, 7, data)).unwrap();
        }
        let mut seen: Vec<_> = (0..4).map(|_| next(&mut reader)).collect();
        assert_eq!(seen.pop(), Some((b'z', 7, Vec::new())));
        seen.sort();
        assert_eq!(seen, [(b'a', 7, vec![0, 0, 0, 5]), (b'd', 7, b"hello".to_vec()), (b'h', 7, Vec::new())]);
        relay.take(&piece(b'o', 7, b"")).unwrap();
    }

    #[test]
    fn no_more_is_sent_than_has_been_passed_on() {
        let (relay, mut reader) = relay(Echo);
        relay.take(&piece(b'o', 1, b"")).unwrap();
        let (mut passed, mut came) = (0, 0);
        // Whoever sends waits for the service, and the service waits for who is answered.
        for _ in 0..WINDOW / PIECE {
            relay.take(&piece(b'd', 1, &vec![1; PIECE])).unwrap();
        }
        while came < WINDOW || passed < WINDOW {
            match next(&mut reader) {
                (b'a', 1, count) => passed += u32::from_be_bytes(count.try_into().unwrap()) as usize,
                (b'd', 1, data) => came += data.len(),
                other => panic!("{other:?}"),
            }
        }
        relay.take(&piece(b'd', 1, b"last")).unwrap();
        assert_eq!(next(&mut reader), (b'a', 1, vec![0, 0, 0, 4]));
        // The four bytes wait until the job has taken in what came before.
        relay.take(&piece(b'a', 1, &3_u32.to_be_bytes())).unwrap();
        assert_eq!(next(&mut reader), (b'd', 1, b"las".to_vec()));
        relay.take(&piece(b'a', 1, &u32::MAX.to_be_bytes())).unwrap();
        assert_eq!(next(&mut reader), (b'd', 1, b"t".to_vec()));
    }

    #[test]
    fn a_service_that_reads_nothing_stops_no_other_connection_and_ends_with_the_job() {
        let (sender, ended) = channel();
        let (relay, _reader) = relay(Deaf(Mutex::new(sender)));
        for number in 0..MOST_CONNECTIONS as u32 {
            relay.take(&piece(b'o', number, b"")).unwrap();
            relay.take(&piece(b'd', number, &vec![1; PIECE])).unwrap();
        }
        relay.end();
        for _ in 0..MOST_CONNECTIONS {
            ended.recv_timeout(std::time::Duration::from_mins(1)).unwrap();
        }
    }

    #[test]
    fn who_does_not_keep_to_what_was_agreed_is_found_out() {
        let (sender, _ended) = channel();
        let (relay, _reader) = relay(Deaf(Mutex::new(sender)));
        let refused = |piece: &[u8]| relay.take(piece).unwrap_err();
        assert!(refused(b"d\0\0").contains("head"));
        for number in 0..MOST_CONNECTIONS as u32 {
            relay.take(&piece(b'o', number, b"")).unwrap();
        }
        assert!(refused(&piece(b'o', 1000, b"")).contains("more connections"));
        assert!(refused(&piece(b'a', 1, b"12345")).contains("is not a number"));
        assert!(refused(&piece(b'?', 1, b"")).contains("unknown kind"));
        assert!(refused(&piece(b'd', 1, &vec![0; WINDOW + (512 << 10)])).contains("more bytes"));
        // Nobody knows these: they came late.
        relay.take(&piece(b'd', 2000, b"x")).unwrap();
        relay.end();
    }

    /// What `relay.py` stands in front of here: clients of its own in place of a job.
    const CLIENTS: &str = r#"
import os, sys, threading

def emit(kind, data):
    data = memoryview(struct.pack(">cI", kind, len(data)) + data)
    while data:
        data = data[os.write(1, data) :]

watched = select.poll()
relay = Relay(0, emit, watched)
at = relay.listener.getsockname()
done, over = os.pipe()

def echoed(size):
    sent = os.urandom(size)
    stream = socket.create_connection(at)
    def send():
        stream.sendall(sent)
        stream.shutdown(socket.SHUT_WR)
    threading.Thread(target=send).start()
    return b"".join(iter(lambda: stream.recv(1 << 16), b"")) == sent

def clients():
    unread = [socket.create_connection(at) for _ in range(5)]
    for stream in unread:
        stream.setblocking(False)
        try:
            while True:
                stream.send(bytes(1 << 16))
        except BlockingIOError:
            pass
    said = [echoed(4 << 20), all(echoed(10) for _ in range(100))]
    for _ in range(100):
        stream = socket.create_connection(at)
        stream.sendall(bytes(1000))
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.close()
    said.append(echoed(10))
    sys.stderr.write("%r" % said)
    sys.stderr.flush()
    os.write(over, b"x")

threading.Thread(target=clients, daemon=True).start()
watched.register(0, select.POLLIN)
watched.register(done, select.POLLIN)
while True:
    for descriptor, _ in watched.poll():
        if descriptor == done:
            os._exit(0)
        elif descriptor == 0:
            relay.take(os.read(0, 1 << 16))
        elif relay.owns(descriptor):
            relay.handle(descriptor)
"#;

    #[test]
    fn both_halves_understand_each_other() {
        use std::process::{Command, Stdio};
        let program = include_str!("relay.py").to_owned() + CLIENTS;
        let mut child = Command::new("python3")
            .args(["-I", "-S", "-B", "-c", &program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let relay = Relay::new(Arc::new(Echo), Box::new(child.stdin.take().unwrap()));
        let mut stdout = child.stdout.take().unwrap();
        let mut header = [0; 5];
        while stdout.read_exact(&mut header).is_ok() {
            assert_eq!(header[0], b'n');
            let mut piece = vec![0; u32::from_be_bytes(header[1..].try_into().unwrap()) as usize];
            stdout.read_exact(&mut piece).unwrap();
            relay.take(&piece).unwrap();
        }
        relay.end();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "[True, True, True]");
    }
}
