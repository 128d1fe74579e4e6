//! JSON lines over standard input and output: a request a line, an answer a line, in whatever order they are ready.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::LARGEST_REQUEST;
use super::desk::Desk;
use super::wire::{self, Answer, Asked};
use crate::error::Result;
use crate::interrupt::{self, Waiting};

/// Answers that may wait to be read.
const MOST_ANSWERS: usize = 4096;
/// Time between two looks whether a stop was asked for.
const LOOK_MS: u16 = 200;
/// Longest wait for a reader of the last answers.
const LAST: Duration = Duration::from_secs(5);

/// The line that says that requests are taken.
pub(super) fn greeting(desk: &Desk) -> String {
    let settings = &desk.settings;
    json!({
        "status": "ready",
        "dataset": settings.dataset,
        "version": settings.version,
        "instances": settings.instances.len(),
        "queue": settings.queue,
    })
    .to_string()
}

/// Answers what comes on standard input until that ends, or a stop is asked for.
///
/// # Errors
/// When the input cannot be read.
pub(super) fn serve(desk: &Arc<Desk>) -> Result<()> {
    let (sender, waiting) = sync_channel::<String>(MOST_ANSWERS);
    let lines = Lines { sender, last: Arc::default() };
    let reader = Waiting::until(Instant::now());
    let read_by = reader.clone();
    let writer = std::thread::spawn(move || write(&waiting, std::io::stdout(), &read_by));
    lines.send(greeting(desk));
    let ended = take(desk, &Input(&reader), (&lines, &reader));
    desk.close();
    // What waits still answers, as long as somebody can read it.
    while desk.load() != (0, 0, 0) {
        if is_closed(std::io::stdout().as_fd()) {
            reader.leave();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(lines);
    let until = Instant::now() + LAST;
    while !writer.is_finished() && (!interrupt::requested() || Instant::now() < until) {
        std::thread::sleep(Duration::from_millis(10));
    }
    ended
}

/// Answers on their way out.
#[derive(Clone)]
struct Lines {
    sender: SyncSender<String>,
    /// Until when the reader has time, once a stop was asked for.
    last: Arc<OnceLock<Instant>>,
}

impl Lines {
    fn send(&self, line: String) {
        self.send_unless(line, interrupt::requested, LAST);
    }

    /// Waits for a place; once it stops, no longer than `last` for all lines together.
    fn send_unless(&self, mut line: String, is_stopping: impl Fn() -> bool, last: Duration) {
        while let Err(TrySendError::Full(back)) = self.sender.try_send(line) {
            let now = Instant::now();
            if is_stopping() && now >= *self.last.get_or_init(|| now + last) {
                return;
            }
            line = back;
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether whoever would read has closed it.
fn is_closed(output: std::os::fd::BorrowedFd<'_>) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut looked = [PollFd::new(output, PollFlags::empty())];
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    poll(&mut looked, PollTimeout::ZERO).is_ok()
        && looked[0].revents().is_some_and(|events| events.intersects(gone))
}

fn write(lines: &Receiver<String>, mut to: impl Write, reader: &Waiting) {
    for line in lines {
        // Where nobody reads any more, nothing is judged any more.
        if to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n")).and_then(|()| to.flush()).is_err()
        {
            reader.leave();
            return;
        }
    }
}

/// Standard input, which ends where a stop is asked for, or nobody reads the answers.
struct Input<'a>(&'a Waiting);

impl Read for &Input<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let input = std::io::stdin();
        loop {
            if interrupt::requested() || self.0.has_left() {
                return Ok(0);
            }
            let mut wanted = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, PollTimeout::from(LOOK_MS)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(nix::unistd::read(input.as_fd(), into)?),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Takes requests in until the input ends.
fn take(desk: &Desk, input: impl Read, (lines, reader): (&Lines, &Waiting)) -> Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let client = desk.client();
    while let Some(line) = next_line(&mut input, LARGEST_REQUEST)? {
        let Ok(line) = line else {
            let most = LARGEST_REQUEST >> 20;
            lines.send(wire::bad(None, &format!("a request is longer than {most} MiB")));
            continue;
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match wire::read(&line) {
            Ok(Asked::One(one)) => {
                let lines = lines.clone();
                desk.take_for(reader, client, one, Box::new(move |answer| lines.send(answer.line())));
            }
            Ok(Asked::Many(id, all)) => {
                let together = Together::new(id, all.len(), lines.clone());
                for (at, one) in all.into_iter().enumerate() {
                    let together = Arc::clone(&together);
                    desk.take_for(reader, client, one, Box::new(move |answer| together.note(at, answer)));
                }
            }
            Err((id, message)) => lines.send(wire::bad(id.as_ref(), &message)),
        }
    }
    Ok(())
}

/// The next line without its end, or that it is too long; none at the end.
fn next_line(
    input: &mut impl BufRead,
    most: usize,
) -> std::io::Result<Option<std::result::Result<Vec<u8>, ()>>> {
    let (mut line, mut is_long, mut has_any) = (Vec::new(), false, false);
    loop {
        let part = input.fill_buf()?;
        if part.is_empty() {
            return Ok(has_any.then_some(if is_long { Err(()) } else { Ok(line) }));
        }
        has_any = true;
        let end = part.iter().position(|byte| *byte == b'\n');
        let piece = &part[..end.unwrap_or(part.len())];
        is_long |= line.len() + piece.len() > most;
        if is_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(piece);
        }
        let used = end.map_or(part.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if is_long { Err(()) } else { Ok(line) }));
        }
    }
}

/// Answers that go out together.
struct Together {
    id: Option<Value>,
    answers: Mutex<(usize, Vec<Option<Answer>>)>,
    lines: Lines,
}

impl Together {
    fn new(id: Option<Value>, of: usize, lines: Lines) -> Arc<Self> {
        if of == 0 {
            lines.send(wire::many(id.as_ref(), &[]));
        }
        Arc::new(Together { id, answers: Mutex::new((of, vec![None; of])), lines })
    }

    fn note(&self, at: usize, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, all) = &mut *answers;
        *left -= 1;
        all[at] = Some(answer);
        if *left == 0 {
            let all: Vec<Answer> = std::mem::take(all).into_iter().flatten().collect();
            self.lines.send(wire::many(self.id.as_ref(), &all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_gone_or_does_not_read_holds_up_nothing() {
        let (sender, waiting) = sync_channel(1);
        let lines = Lines { sender, last: Arc::default() };
        let reader = Waiting::until(Instant::now() + Duration::from_mins(1));
        let of_one = reader.also_until(Instant::now() + Duration::from_mins(1));
        lines.send("first".to_owned());
        lines.send_unless("no place".to_owned(), || true, Duration::ZERO);
        let (pipe, to) = std::io::pipe().unwrap();
        assert!(!is_closed(to.as_fd()) && !of_one.is_over());
        drop(pipe);
        assert!(is_closed(to.as_fd()));
        write(&waiting, to, &reader);
        assert!(of_one.has_left());
        drop(waiting);
        lines.send("to nobody".to_owned());
    }

    #[test]
    fn lines_are_bounded_and_the_next_one_is_read() {
        let text = format!("one\n{}\ntwo\n\nlast", "x".repeat(50));
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 10).unwrap() {
            lines.push(line.map(|line| String::from_utf8(line).unwrap()));
        }
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(lines, [ok("one"), Err(()), ok("two"), ok(""), ok("last")]);
    }
}
