//! The messages between the driver and the embedded Python runner: one enum each way, and their frames.
//!
//! Requests are a 4-byte big-endian length and JSON. Answers are lines `@gistmill <token> <length> <json>`; everything
//! else that appears on the pipe is noise that repository code scribbled there, and is skipped.

use std::fmt;
use std::io::{BufRead, Read};

use serde::{Deserialize, Serialize};

use super::report::{Attempted, ImportTrace};
use crate::record::collected::GroupKey;
use crate::record::environment::SwitchedOff;
use crate::record::outcome::TimeScope;

/// Longest answer that is read, in bytes: far more than the report of any group, whose memory is bounded.
const LONGEST_ANSWER: usize = 1 << 30;

/// Version of this protocol; the runner refuses another one.
pub const PROTOCOL: u32 = 1;

/// What the driver asks.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "op")]
pub enum Request {
    Hello {
        token: String,
        protocol: u32,
        isolation: Option<RunnerIsolation>,
        limits: OutputLimits,
        world: RunnerWorld,
    },
    /// Collect everything; `args` empty = the repository's own testpaths.
    Discover {
        args: Vec<String>,
        options: Vec<String>,
        /// Limit of each file.
        timeout_ms: u64,
        /// What is not to be imported again.
        known: Vec<AtFault>,
    },
    /// Configure pytest as for `file` and load its directory's initial conftests.
    OpenDirectory {
        file: String,
        options: Vec<String>,
        trace: TraceMode,
        timeout_ms: u64,
    },
    OpenFile {
        file: String,
        timeout_ms: u64,
    },
    Run {
        items: Vec<usize>,
        case_timeout_ms: u64,
        group_timeout_ms: u64,
        repeat: u32,
    },
    /// End the process on top of the stack.
    Close {},
}

/// What a traced directory counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceMode {
    Off,
    /// Calls into the tree; code outside is not observed.
    Tree,
    /// Calls in all code.
    All,
}

/// Where the runner lays its overlays.
#[derive(Debug, Clone, Serialize)]
pub struct RunnerIsolation {
    pub root: String,
    pub writable: Vec<String>,
    pub scratch: String,
}

/// What the runner itself changes to make a world; the rest is environment variables and mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunnerWorld {
    /// Working directory for everything from the first conftest on; none = the root of the tree.
    pub elsewhere: Option<String>,
    /// File in the root of the tree that test modules are loaded from; none = their own.
    pub probe: Option<String>,
    /// Whether the root is not where byte code was compiled.
    pub moved: bool,
}

/// Bounds on what a case's report carries.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OutputLimits {
    pub output_bytes: u64,
}

/// What the runner answers. Unknown fields are ignored so that a runner may say more.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Answer {
    Hello {
        pytest: String,
    },
    Refused {
        reason: String,
    },
    /// A discovery is still at work.
    Collecting {
        file: String,
    },
    Discovered(Box<Discovered>),
    DirectoryReady {},
    FileReady(Box<FileReady>),
    GroupDone(Box<Attempted>),
    Closed {},
    /// Configuration or conftest trouble of the repository.
    Failed {
        stage: FailedStage,
        error: Failure,
    },
    /// A server process ended by itself while it imported repository code.
    Died {
        level: Level,
        exit: ProcessExit,
        /// What a discovery was importing; empty for nothing.
        #[serde(default)]
        place: Option<String>,
    },
    TimedOut {
        level: Level,
        #[serde(default)]
        place: Option<String>,
    },
    /// The runner itself is in trouble; never a test's result.
    InternalError {
        traceback: String,
    },
    /// The runner's, but with content that it should not have; never sent.
    #[serde(skip)]
    Unreadable {
        reason: String,
    },
}

/// An answer with the number of the request it belongs to.
#[derive(Debug, Clone, Deserialize)]
pub struct Numbered {
    pub id: u64,
    #[serde(flatten)]
    pub answer: Answer,
}

/// What pytest was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedStage {
    Configure,
    Collect,
}

impl fmt::Display for FailedStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FailedStage::Configure => "configure",
            FailedStage::Collect => "collect",
        })
    }
}

/// A process of the fork tree that runs code of the repository before any test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Discover,
    Directory,
    File,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Level::Discover => "discover",
            Level::Directory => "directory",
            Level::File => "file",
        })
    }
}

/// An exception of the repository's code or configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub exception: Option<String>,
    #[serde(default)]
    pub text: String,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ProcessExit {
    Finished,
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    TimedOut {
        scope: TimeScope,
        index: Option<i64>,
    },
    /// What it reported cannot be used; never sent.
    #[serde(skip)]
    Unusable,
}

/// The signal that no process can catch: the kernel sends it for want of memory, people send it, and so can a test.
pub const SIGKILL: i32 = nix::libc::SIGKILL;

/// Result of a whole-suite collection.
#[derive(Debug, Clone, Deserialize)]
pub struct Discovered {
    pub items: Vec<Item>,
    pub errors: Vec<CollectError>,
    #[serde(default)]
    pub deselected: usize,
    /// Files and conftests whose import ended the process or went over the limit.
    #[serde(default)]
    pub at_fault: Vec<AtFault>,
    /// Plugins that must be kept quiet, with the options that do it.
    #[serde(default)]
    pub switched_off: Vec<SwitchedOff>,
}

/// A test file or conftest whose import ended the process or went over its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtFault {
    /// Its path in the tree.
    pub place: String,
    pub kind: CollectErrorKind,
    pub text: String,
}

/// A collected pytest item.
#[derive(Debug, Clone, Deserialize)]
pub struct Item {
    pub index: usize,
    pub node_id: String,
    pub file: String,
    pub classes: Vec<String>,
    pub function: String,
    pub parameters: Option<String>,
    pub kind: ItemKind,
    #[serde(default)]
    pub markers: Vec<String>,
    #[serde(default)]
    pub fixtures: Vec<String>,
    #[serde(default)]
    pub line: Option<u32>,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum ItemKind {
    Function,
    /// Another kind, by the name of its class.
    Other(String),
}

impl From<String> for ItemKind {
    fn from(name: String) -> Self {
        if name == "function" { ItemKind::Function } else { ItemKind::Other(name) }
    }
}

/// Why nothing was collected of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CollectErrorKind {
    Error,
    Skipped,
    TimedOut,
}

impl Item {
    /// The group that it belongs to.
    pub fn key(&self) -> GroupKey {
        GroupKey { file: self.file.clone(), classes: self.classes.clone(), function: self.function.clone() }
    }
}

/// A collector that failed, or skipped everything in it.
#[derive(Debug, Clone, Deserialize)]
pub struct CollectError {
    #[serde(default)]
    pub node_id: String,
    pub file: String,
    pub kind: CollectErrorKind,
    #[serde(default)]
    pub exception: Option<String>,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub missing_module: Option<String>,
}

/// A file process is ready.
#[derive(Debug, Clone, Deserialize)]
pub struct FileReady {
    pub items: Vec<Item>,
    #[serde(default)]
    pub errors: Vec<CollectError>,
    #[serde(default)]
    pub import: Option<ImportTrace>,
}

/// Encodes a request as a frame.
///
/// # Errors
/// When the request cannot be encoded or is longer than 4 GiB.
pub fn encode(id: u64, request: &Request) -> Result<Vec<u8>, String> {
    let mut value = serde_json::to_value(request).map_err(|error| error.to_string())?;
    value["id"] = id.into();
    let text = value.to_string();
    let length = u32::try_from(text.len()).map_err(|_| "the request is too long".to_owned())?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    Ok(frame)
}

/// A frame with the right token.
#[derive(Debug)]
pub enum Frame {
    Answer(Numbered),
    /// Its content is no answer, for this reason.
    Unreadable(String),
}

/// Reads the next answer with this token, skipping whatever else is on the pipe; `None` at its end.
///
/// # Errors
/// A read error, or a frame that is too long or breaks off.
pub fn read_answer(pipe: &mut impl BufRead, token: &str) -> Result<Option<Frame>, String> {
    let mark = format!("@gistmill {token} ");
    loop {
        if !skip_to_line_starting_with(pipe, mark.as_bytes())? {
            return Ok(None);
        }
        let Some(length) = read_length(pipe)? else { continue };
        if length > LONGEST_ANSWER {
            return Err(format!("an answer of {length} bytes is too long"));
        }
        // Room is made for what arrives, not for what was announced.
        let mut text = Vec::new();
        let read = pipe.by_ref().take(length as u64).read_to_end(&mut text);
        read.map_err(|error| format!("reading an answer: {error}"))?;
        if text.len() < length {
            return Err(format!("an answer breaks off after {} of {length} bytes", text.len()));
        }
        return Ok(Some(match serde_json::from_slice(&text) {
            Ok(answer) => Frame::Answer(answer),
            Err(error) => Frame::Unreadable(format!("an answer cannot be read: {error}: {}", excerpt(&text))),
        }));
    }
}

fn excerpt(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned()
}

/// Consumes bytes up to and including `mark` at the start of a line.
fn skip_to_line_starting_with(pipe: &mut impl BufRead, mark: &[u8]) -> Result<bool, String> {
    let mut matched = 0;
    let mut at_line_start = true;
    loop {
        let buffer = pipe.fill_buf().map_err(|error| format!("reading answers: {error}"))?;
        if buffer.is_empty() {
            return Ok(false);
        }
        let mut used = 0;
        for &byte in buffer {
            used += 1;
            if at_line_start && byte == mark[matched] {
                matched += 1;
                if matched == mark.len() {
                    pipe.consume(used);
                    return Ok(true);
                }
            } else {
                matched = 0;
                at_line_start = byte == b'\n';
            }
        }
        pipe.consume(used);
    }
}

/// Reads decimal digits up to a space; `None` when it is something else (noise that looked like a frame).
fn read_length(pipe: &mut impl BufRead) -> Result<Option<usize>, String> {
    let mut length = 0_usize;
    for _ in 0..12 {
        let mut byte = [0_u8];
        pipe.read_exact(&mut byte).map_err(|error| format!("an answer breaks off: {error}"))?;
        match byte[0] {
            digit @ b'0'..=b'9' => length = length * 10 + usize::from(digit - b'0'),
            b' ' if length > 0 => return Ok(Some(length)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(token: &str, json: &str) -> String {
        format!("\n@gistmill {token} {} {json}\n", json.len())
    }

    #[test]
    fn answers_are_found_between_garbage() {
        let json = r#"{"id":3,"type":"closed"}"#;
        let text = format!("noise@gistmill t 5 {}\n@gistmill wrong 3 abc{}tail", json, frame("t", json));
        let mut pipe = text.as_bytes();
        let frame = read_answer(&mut pipe, "t").expect("reads").expect("is there");
        let Frame::Answer(answer) = frame else { panic!("{frame:?}") };
        assert_eq!(answer.id, 3);
        assert!(matches!(answer.answer, Answer::Closed {}));
        assert!(read_answer(&mut pipe, "t").expect("reads").is_none());
    }

    #[test]
    fn a_frame_that_breaks_off_is_an_error_and_not_a_result() {
        for length in ["500", "1073741824", "1073741825", "999999999999", "99999999999999999999"] {
            let text = format!("\n@gistmill t {length} {{\"id\":1");
            let read = read_answer(&mut text.as_bytes(), "t");
            assert!(matches!(read, Err(_) | Ok(None)), "{length}: {read:?}");
        }
    }

    #[test]
    fn a_frame_that_is_no_answer_does_not_hide_the_next() {
        let good = r#"{"id":3,"type":"closed"}"#;
        for bad in [r#"{"id":1,"type":"died"}"#, r#"{"id":1,"type":"closed","x":"\ud800"}"#, "[", "{}"] {
            let text = frame("t", bad) + &frame("t", good);
            let mut pipe = text.as_bytes();
            let read = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(&read, Frame::Unreadable(why) if why.contains("cannot be read")), "{read:?}");
            let next = read_answer(&mut pipe, "t").expect("reads").expect("is there");
            assert!(matches!(next, Frame::Answer(Numbered { id: 3, .. })), "{next:?}");
        }
    }

    #[test]
    fn requests_carry_their_number_and_operation() {
        let frame = encode(7, &Request::Close {}).expect("encodes");
        let value: serde_json::Value = serde_json::from_slice(&frame[4..]).expect("is JSON");
        assert_eq!(value, serde_json::json!({"op": "close", "id": 7}));
        assert_eq!(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize, frame.len() - 4);
    }
}
