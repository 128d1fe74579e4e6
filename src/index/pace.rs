//! How fast a server must be: one that is slow on purpose would hold a build for ever, a byte at a time.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use crate::interrupt;

/// How long a request may take with all that is read, and how much must come in each span of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub total: Duration,
    pub span: Duration,
    /// Bytes in each span.
    pub least: u64,
}

impl Pace {
    /// For a page, or for a part of a file.
    pub(crate) const PAGE: Pace =
        Pace { total: Duration::from_mins(5), span: Duration::from_secs(30), least: 64 << 10 };
    /// For a file.
    pub(crate) const FILE: Pace =
        Pace { total: Duration::from_hours(1), span: Duration::from_mins(1), least: 256 << 10 };
}

/// What a server sends, as long as it keeps pace and nobody asked to stop.
#[derive(Debug)]
pub(crate) struct Paced<R> {
    inner: R,
    pace: Pace,
    /// All tries of a request together.
    end: Instant,
    span_start: Instant,
    span_bytes: u64,
}

impl<R: Read> Paced<R> {
    /// `start` is when the first try began.
    pub(crate) fn new(inner: R, pace: Pace, start: Instant) -> Self {
        Paced { inner, pace, end: start + pace.total, span_start: Instant::now(), span_bytes: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if interrupt::requested() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.inner.read(buffer)?;
        self.span_bytes += read as u64;
        let now = Instant::now();
        let mut is_slow = read > 0 && now > self.end;
        if now.duration_since(self.span_start) >= self.pace.span {
            is_slow |= read > 0 && self.span_bytes < self.pace.least;
            (self.span_start, self.span_bytes) = (now, 0);
        }
        if is_slow { Err(io::Error::new(io::ErrorKind::TimedOut, "too slow")) } else { Ok(read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte at a time, with pauses.
    struct Drip(Duration, usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            self.1 = self.1.saturating_sub(1);
            buffer[0] = 0;
            Ok(usize::from(self.1 > 0))
        }
    }

    fn read(pace: Pace, pause: Duration) -> io::Result<usize> {
        Paced::new(Drip(pause, 50), pace, Instant::now()).read_to_end(&mut Vec::new())
    }

    #[test]
    fn a_server_that_drips_is_given_up() {
        let (pause, hour) = (Duration::from_millis(5), Duration::from_hours(1));
        let span = Duration::from_millis(20);
        let slow = read(Pace { total: hour, span, least: 1000 }, pause).expect_err("too slow");
        assert_eq!(slow.kind(), io::ErrorKind::TimedOut);
        let long = read(Pace { total: span, span: hour, least: 0 }, pause).expect_err("too long");
        assert_eq!(long.kind(), io::ErrorKind::TimedOut);
        assert_eq!(read(Pace { total: hour, span, least: 1 }, pause).expect("fast enough"), 49);
    }
}
