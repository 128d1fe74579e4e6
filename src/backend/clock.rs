//! The shifted wall clock: a small library that goes into every process of a run through `LD_PRELOAD`.
//!
//! In such a process the time of day is ahead by a fixed number of seconds, in C and everything above it: `time()`,
//! `datetime.now()`, `date`. Monotonic clocks, sleeps and waits stay as they are, and the times of files that the run
//! writes agree with its clock, while files from before keep theirs (so cached byte code stays valid).
//!
//! Out of reach: programs without a dynamic loader, programs that ask the kernel themselves, and processes that are
//! started with an environment of their own, from which the variables are gone. Boot time, process start times in
//! `/proc` and the times that other programs print stay real.
//!
//! The library is compiled by `build.rs` and has no dependency but the C library of the process, glibc or musl.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// Name of the file that the library should have.
pub const FILE_NAME: &str = "libgistmill_clock.so";

/// How far the clock world is ahead: 400 days, 7 h, 11 min and 13 s, so that year, month, day, weekday, hour, minute
/// and second all differ from the real ones.
pub const SHIFT: Duration = Duration::from_secs(((400 * 24 + 7) * 60 + 11) * 60 + 13);

/// The kernel stamps files with a clock that may be late by one tick.
const TICK: Duration = Duration::from_millis(10);

/// The library as a file, or none when there is none for this machine (64-bit x86 and ARM Linux have one).
pub fn library() -> Option<&'static [u8]> {
    #[cfg(clock_library)]
    let library = Some(include_bytes!(concat!(env!("OUT_DIR"), "/clock.so")).as_slice());
    #[cfg(not(clock_library))]
    let library = None;
    library
}

/// The variables of a process tree whose clock is ahead by [`SHIFT`]: for its first process; the others inherit them.
///
/// `library_path_inside` is where the processes find the library; a path with a blank or a colon cannot be preloaded.
/// `start` is when the run starts: files with later times count as written by the run.
pub fn variables(library_path_inside: &Path, start: SystemTime) -> Vec<(String, String)> {
    let start = (start - TICK).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    vec![
        ("LD_PRELOAD".into(), library_path_inside.to_string_lossy().into_owned()),
        ("GISTMILL_CLOCK_SHIFT".into(), SHIFT.as_secs().to_string()),
        ("GISTMILL_CLOCK_START".into(), format!("{}.{:09}", start.as_secs(), start.subsec_nanos())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Year, month, day, weekday, hour, minute, second, in UTC.
    fn parts(seconds: u64) -> [u64; 7] {
        let (mut days, time) = (seconds / 86_400, seconds % 86_400);
        let weekday = days % 7;
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let mut year = 1970;
        while days >= 365 + u64::from(leap(year)) {
            days -= 365 + u64::from(leap(year));
            year += 1;
        }
        let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while days >= lengths[month] {
            days -= lengths[month];
            month += 1;
        }
        [year, month as u64, days, weekday, time / 3600, time / 60 % 60, time % 60]
    }

    #[test]
    fn every_part_of_a_date_differs_whenever_the_run_is() {
        assert_eq!(parts(1_709_210_096), [2024, 1, 28, 0, 12, 34, 56], "2024-02-29 12:34:56, a Thursday");
        let first = 1_735_689_600;
        for seconds in (first..first + 5 * 366 * 86_400).step_by(3593) {
            let (real, shifted) = (parts(seconds), parts(seconds + SHIFT.as_secs()));
            let same: Vec<usize> = (0..7).filter(|part| real[*part] == shifted[*part]).collect();
            assert!(same.is_empty(), "{seconds}: {real:?} {shifted:?}");
        }
    }

    #[test]
    fn the_variables_name_library_shift_and_start() {
        let start = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 5_000_000);
        let variables = variables(Path::new("/opt/clock.so"), start);
        let expected = [
            ("LD_PRELOAD", "/opt/clock.so"),
            ("GISTMILL_CLOCK_SHIFT", "34585873"),
            ("GISTMILL_CLOCK_START", "1799999999.995000000"),
        ];
        assert_eq!(variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_library_is_small_and_needs_no_other() {
        let library = library().expect("this machine has one");
        assert!(library.starts_with(b"\x7fELF"));
        assert!(library.len() < 64 << 10, "{} bytes", library.len());
        assert!(!library.windows(4).any(|bytes| bytes == b"lib."), "names no other library");
        assert!(!library.windows(6).any(|bytes| bytes == b".so.6\0" || bytes == b".so.1\0"));
    }
}
