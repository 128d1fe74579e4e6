//! The messages between the driver and the embedded Python runner: one enum each way. How they travel is in
//! [`super::frame`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use super::ending::{ImportAttempt, ProcessExit, Reached};
use super::report::{Attempted, ImportTrace};
use crate::record::entry::{Entry, EntryCommand, GroupKey};
use crate::record::environment::SwitchedOff;
use crate::record::execution::Execution;

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
        /// Modules to import before any file, so that its forks need not.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        preload: Vec<String>,
        /// What files of the tree say from now on, by path, before anything of it is imported.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        texts: BTreeMap<String, String>,
        timeout_ms: u64,
    },
    OpenFile {
        file: String,
        /// What the file says from now on, in the process that collects it and in its attempts.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        timeout_ms: u64,
    },
    Run {
        items: Vec<usize>,
        case_timeout_ms: u64,
        group_timeout_ms: u64,
        repeat: u32,
        #[serde(flatten)]
        manner: Manner,
    },
    /// Make ready to generate witnesses.
    OpenGenerator { timeout_ms: u64 },
    /// Begin with the witness of a group.
    Generate {
        execution: Box<Execution>,
        file: String,
        classes: Vec<String>,
        function: String,
        /// The file that a witness is.
        submission: String,
        /// What it is for, where that is not a test; then the file and the function say nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<EntryCommand>,
    },
    /// What the last candidate showed.
    Tried(CandidateRun),
    /// End the process on top of the stack.
    Close {},
}

/// How the attempts of a group are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Manner {
    /// Nobody watches them, whatever the directory traces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untraced: bool,
    /// The definition of the file that begins at this line, decorators included, fails whenever it is called. 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<u32>,
    /// What threads other than the test's own print comes late, so that a race for the end of the test is lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late_writes: bool,
}

impl Manner {
    /// As it is, and nobody watches.
    pub const PLAIN: Manner = Manner { untraced: true, failing: None, late_writes: false };
}

/// What a candidate for a witness showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CandidateRun {
    /// Whether it shows what the original shows.
    pub agrees: bool,
    /// Why it does not, in pytest's words.
    pub failure: String,
    /// Its lines that ran.
    pub lines: Vec<u32>,
    /// Its functions that started: first line and name.
    pub started: Vec<(u32, String)>,
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
    /// Lines of the tree in the order of first execution; nothing is counted.
    Lines,
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
    /// Top-level modules whose imports are noted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<String>,
    /// Whether the watched modules are not there: pytest is not to ask for them either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Whether files of the tree that are opened are noted, code aside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub notes_files: bool,
    /// File in the root of the tree that a text which is judged is written to, where commands are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<String>,
    /// The commands that are run instead of tests: then nothing of pytest is imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
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
    GeneratorReady {},
    /// A text to try.
    Candidate {
        text: String,
    },
    Generated(Box<Generated>),
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
    /// A process that runs foreign code says that it cannot go on, or what it says does not fit; it was ended.
    Broken {
        level: Level,
        traceback: String,
    },
    /// The keeper itself is in trouble; never a test's result.
    InternalError {
        traceback: String,
    },
    /// The runner's, but with content that it should not have; never sent.
    #[serde(skip)]
    Unreadable {
        reason: String,
    },
}

/// The end of a search for a witness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// The last text that agreed; none where none did.
    pub text: Option<String>,
    /// How much of what did not run it keeps.
    #[serde(default)]
    pub level: Option<String>,
    pub trials: u32,
    /// Levels that did not pass, with their last failures.
    #[serde(default)]
    pub failures: Vec<(String, String)>,
    /// Files that its lines come from.
    #[serde(default)]
    pub files: Vec<String>,
    /// Names under which it needs two classes of the original.
    #[serde(default)]
    pub twins: Vec<String>,
    /// Names under which modules of the tree have compiled code of it.
    #[serde(default)]
    pub compiled: Vec<String>,
}

/// An answer with the number of the request it belongs to.
#[derive(Debug, Clone)]
pub struct Numbered {
    pub id: u64,
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
    Generator,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Level::Discover => "discover",
            Level::Directory => "directory",
            Level::File => "file",
            Level::Generator => "generator",
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

/// The signal that no process can catch: the kernel sends it for want of memory, people send it, and so can a test.
pub const SIGKILL: i32 = nix::libc::SIGKILL;

/// Result of a whole-suite collection.
#[derive(Debug, Clone, Default, Deserialize)]
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
    /// `file::Class::function` of the definition, where that is another file of the tree.
    #[serde(default)]
    pub defined_in: Option<String>,
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
    /// Watched modules that were asked for until then, by conftests too.
    #[serde(default)]
    pub import_attempts: Vec<ImportAttempt>,
    /// Files and folders of the tree that were opened until then, code aside.
    #[serde(default)]
    pub opened: Vec<String>,
}
