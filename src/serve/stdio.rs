//! JSON lines over standard input and output: a request a line, an answer a line, in whatever order they are ready.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::LARGEST_REQUEST;
use super::desk::Desk;
use super::wire::{self, Answer, Asked};
use crate::error::Result;
use crate::interrupt;

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
    let (lines, waiting) = sync_channel::<String>(MOST_ANSWERS);
    let writer = std::thread::spawn(move || write(&waiting, std::io::stdout()));
    let _ = lines.send(greeting(desk));
    let ended = take(desk, &Input, &lines);
    desk.close();
    // What waits still answers.
    while desk.load() != (0, 0, 0) {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(lines);
    let until = Instant::now() + LAST;
    while !writer.is_finished() && (!interrupt::requested() || Instant::now() < until) {
        std::thread::sleep(Duration::from_millis(10));
    }
    ended
}

fn write(lines: &Receiver<String>, mut to: impl Write) {
    for line in lines {
        // Where nobody reads any more, the input ends as well.
        if to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n")).and_then(|()| to.flush()).is_err()
        {
            return;
        }
    }
}

/// Standard input, which ends where a stop is asked for.
struct Input;

impl Read for &Input {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        let input = std::io::stdin();
        loop {
            if interrupt::requested() {
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
fn take(desk: &Desk, input: impl Read, lines: &SyncSender<String>) -> Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let client = desk.client();
    while let Some(line) = next_line(&mut input, LARGEST_REQUEST)? {
        let Ok(line) = line else {
            let most = LARGEST_REQUEST >> 20;
            let _ = lines.send(wire::bad(None, &format!("a request is longer than {most} MiB")));
            continue;
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match wire::read(&line) {
            Ok(Asked::One(one)) => {
                let lines = lines.clone();
                desk.take(client, one, Box::new(move |answer| drop(lines.send(answer.line()))));
            }
            Ok(Asked::Many(id, all)) => {
                let together = Together::new(id, all.len(), lines.clone());
                for (at, one) in all.into_iter().enumerate() {
                    let together = Arc::clone(&together);
                    desk.take(client, one, Box::new(move |answer| together.note(at, answer)));
                }
            }
            Err((id, message)) => drop(lines.send(wire::bad(id.as_ref(), &message))),
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
    lines: SyncSender<String>,
}

impl Together {
    fn new(id: Option<Value>, of: usize, lines: SyncSender<String>) -> Arc<Self> {
        if of == 0 {
            let _ = lines.send(wire::many(id.as_ref(), &[]));
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
            let _ = self.lines.send(wire::many(self.id.as_ref(), &all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
