//! What in a text looks as if a test depended on a dimension, in words for a person who looks for the reason.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::facts::{Seen, What};
use super::units::{Kind, Unit};
use super::{Code, SourceFile, stem};
use crate::record::collected::Group;
use crate::record::verdict::Dimension::{
    self, CheckoutPath, Clock, HashSeed, Home, Load, Locale, Terminal, TestFileLocation, TimeZone,
    WorkingDirectory,
};

/// Something that may be the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clue {
    /// 1-based, in the test file.
    pub line: u32,
    pub place: FilePart,
    /// A phrase: what is done there.
    pub what: String,
}

impl fmt::Display for Clue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, {}: {}", self.line, self.place, self.what)
    }
}

/// Which part of the file it is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilePart {
    Test,
    Fixture(String),
    SetUp(String),
    Helper(String),
    Class(String),
    Module,
}

impl fmt::Display for FilePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePart::Test => formatter.write_str("in the test"),
            FilePart::Fixture(name) => write!(formatter, "in fixture `{name}`"),
            FilePart::SetUp(name) => write!(formatter, "in set-up `{name}`"),
            FilePart::Helper(name) => write!(formatter, "in helper `{name}`"),
            FilePart::Class(name) => write!(formatter, "in class `{name}`"),
            FilePart::Module => formatter.write_str("at module level"),
        }
    }
}

/// Where a unit of a closure is.
pub(super) fn place(code: &Code<'_>, unit: &Unit) -> FilePart {
    if std::ptr::eq(unit, code.test()) {
        return FilePart::Test;
    }
    match &unit.kind {
        Kind::Function => FilePart::Helper(unit.name.clone()),
        Kind::Fixture { name, .. } => FilePart::Fixture(name.clone()),
        Kind::SetUp => FilePart::SetUp(unit.name.clone()),
        Kind::ClassBody => FilePart::Class(unit.name.clone()),
        Kind::Statement { .. } => FilePart::Module,
    }
}

/// Names of one kind, what they are a sign of, and why.
struct Sign {
    dimensions: &'static [Dimension],
    names: &'static [&'static str],
    why: &'static str,
}

const LOCATION: &[Dimension] = &[TestFileLocation, CheckoutPath];
const DIRECTORY: &[Dimension] = &[TestFileLocation, WorkingDirectory, CheckoutPath];

/// Calls. `*` is any text at the beginning or the end of a name.
const CALLS: &[Sign] = &[
    Sign {
        dimensions: LOCATION,
        names: &[
            "inspect.getsource",
            "inspect.getsourcelines",
            "inspect.getsourcefile",
            "inspect.getfile",
            "inspect.getabsfile",
            "inspect.getmodule",
            "inspect.stack",
            "inspect.currentframe",
            "inspect.getframeinfo",
            "linecache.*",
            "sys._getframe",
        ],
        why: "which file a function or frame comes from",
    },
    Sign {
        dimensions: LOCATION,
        names: &["traceback.*", "warnings.formatwarning", "warnings.showwarning", "warnings.warn_explicit"],
        why: "its text names files and lines",
    },
    Sign {
        dimensions: &[TestFileLocation],
        names: &[
            "importlib.import_module",
            "__import__",
            "importlib.reload",
            "importlib.resources.*",
            "pkgutil.*",
            "runpy.*",
        ],
        why: "finds a module by its name or place",
    },
    Sign { dimensions: &[TestFileLocation], names: &["self.id"], why: "the test's own dotted name" },
    Sign {
        dimensions: DIRECTORY,
        names: &[
            "os.getcwd",
            "os.getcwdb",
            "os.path.abspath",
            "os.path.realpath",
            "os.path.relpath",
            "pathlib.Path.cwd",
            "os.chdir",
        ],
        why: "the directory that the test runs in",
    },
    Sign {
        dimensions: DIRECTORY,
        names: &["pathlib.Path*.resolve", "pathlib.Path*.absolute", ".resolve", ".absolute"],
        why: "makes a path absolute",
    },
    Sign {
        dimensions: &[WorkingDirectory, TestFileLocation],
        names: &["subprocess.*", "os.system", "os.popen", "asyncio.create_subprocess_*"],
        why: "a process that starts in the directory of the test run",
    },
    Sign {
        dimensions: &[HashSeed],
        names: &["hash", "id", "*.__hash__"],
        why: "differs from process to process",
    },
    Sign { dimensions: &[HashSeed], names: &["set.pop"], why: "takes any element of a set" },
    Sign {
        dimensions: &[TimeZone, Clock],
        names: &[
            "time.localtime",
            "time.ctime",
            "time.asctime",
            "time.strftime",
            "datetime.datetime.now",
            "datetime.datetime.today",
            "datetime.date.today",
            "email.utils.localtime",
            "email.utils.formatdate",
        ],
        why: "the local time",
    },
    Sign {
        dimensions: &[TimeZone],
        names: &[
            "time.mktime",
            "time.tzset",
            "datetime.datetime.fromtimestamp",
            "datetime.date.fromtimestamp",
            "*.astimezone",
            "*.timestamp",
            "dateutil.tz.tzlocal",
            "dateutil.tz.gettz",
            "tzlocal.*",
        ],
        why: "goes by the local time zone",
    },
    Sign {
        dimensions: &[Clock],
        names: &[
            "time.time",
            "time.time_ns",
            "time.gmtime",
            "datetime.datetime.utcnow",
            "uuid.uuid1",
            "pandas.Timestamp.now",
            "pandas.Timestamp.today",
            "pandas.Timestamp.utcnow",
            "pandas.to_datetime",
            "arrow.now",
            "arrow.utcnow",
            "pendulum.now",
            "pendulum.today",
            "*.now",
            "*.utcnow",
        ],
        why: "the time of day",
    },
    Sign {
        dimensions: &[Locale],
        names: &[
            "locale.*",
            "gettext.*",
            "*.strftime",
            "*.strptime",
            "time.strftime",
            "sys.getfilesystemencoding",
        ],
        why: "goes by the locale",
    },
    Sign {
        dimensions: &[Home],
        names: &[
            "os.path.expanduser",
            "*.expanduser",
            "pathlib.Path.home",
            "getpass.getuser",
            "pwd.*",
            "os.getlogin",
            "os.getuid",
            "os.geteuid",
            "os.path.expandvars",
            "tempfile.*",
            "platformdirs.*",
            "appdirs.*",
            "site.*",
        ],
        why: "the user, the home directory or the directory for temporary files",
    },
    Sign {
        dimensions: &[Terminal],
        names: &[
            "shutil.get_terminal_size",
            "os.get_terminal_size",
            "*.isatty",
            "curses.*",
            "*.format_help",
            "*.print_help",
            "*.format_usage",
            "*.print_usage",
            "rich.*",
            "*.get_terminal_width",
        ],
        why: "goes by the size or kind of the terminal",
    },
    Sign {
        dimensions: &[Load],
        names: &[
            "time.perf_counter*",
            "time.monotonic*",
            "time.process_time*",
            "time.time",
            "time.time_ns",
            "timeit.*",
            "resource.getrusage",
        ],
        why: "measures how long something takes",
    },
    Sign {
        dimensions: &[Load],
        names: &[
            "time.sleep",
            "asyncio.sleep",
            "anyio.sleep",
            "trio.sleep",
            "gevent.sleep",
            "asyncio.wait_for",
            "signal.alarm",
            "signal.setitimer",
        ],
        why: "waits",
    },
    Sign {
        dimensions: &[Load],
        names: &[
            "threading.*",
            "multiprocessing.*",
            "concurrent.futures.*",
            "asyncio.gather",
            "asyncio.create_task",
            "subprocess.*",
        ],
        why: "runs beside something else",
    },
];

/// What is read.
const USES: &[Sign] = &[
    Sign { dimensions: LOCATION, names: &["__file__", "__path__"], why: "its own file" },
    Sign {
        dimensions: &[TestFileLocation],
        names: &[
            "__name__",
            "__spec__",
            "__package__",
            "__loader__",
            "*.__module__",
            "*.__spec__",
            "*.__package__",
        ],
        why: "its own module",
    },
    Sign {
        dimensions: LOCATION,
        names: &["*.__file__", "*.co_filename", "*.filename", "*.pathname"],
        why: "the name of a file",
    },
    Sign {
        dimensions: LOCATION,
        names: &["request.path", "request.fspath", "request.node", "request.module"],
        why: "the test's own file or name",
    },
    Sign {
        dimensions: DIRECTORY,
        names: &[
            "request.config.rootpath",
            "request.config.rootdir",
            "request.config.inipath",
            "request.config.invocation_params",
            "request.config.invocation_dir",
            "pytestconfig.rootpath",
            "pytestconfig.rootdir",
            "pytestconfig.inipath",
            "pytestconfig.invocation_params",
        ],
        why: "the directory of the test run",
    },
    Sign {
        dimensions: LOCATION,
        names: &["sys.argv", "sys.path", "sys.orig_argv"],
        why: "follows from the command that was run",
    },
    Sign { dimensions: DIRECTORY, names: &["os.curdir"], why: "the directory that the test runs in" },
    Sign {
        dimensions: &[TimeZone],
        names: &["time.tzname", "time.timezone", "time.altzone", "time.daylight"],
        why: "the local time zone",
    },
    Sign {
        dimensions: &[Locale],
        names: &[
            "calendar.month_name",
            "calendar.month_abbr",
            "calendar.day_name",
            "calendar.day_abbr",
            "*.stdout.encoding",
        ],
        why: "goes by the locale",
    },
];

/// Variables of the environment, with what they are a sign of.
const VARIABLES: &[(&str, &[Dimension])] = &[
    ("PYTEST_CURRENT_TEST", &[TestFileLocation]),
    ("PWD", DIRECTORY),
    ("PYTHONPATH", LOCATION),
    ("PYTHONHASHSEED", &[HashSeed]),
    ("TZ", &[TimeZone]),
    ("LANG", &[Locale]),
    ("LANGUAGE", &[Locale]),
    ("LC_ALL", &[Locale]),
    ("LC_CTYPE", &[Locale]),
    ("LC_TIME", &[Locale]),
    ("HOME", &[Home]),
    ("USER", &[Home]),
    ("LOGNAME", &[Home]),
    ("TMPDIR", &[Home]),
    ("XDG_CONFIG_HOME", &[Home]),
    ("XDG_CACHE_HOME", &[Home]),
    ("XDG_DATA_HOME", &[Home]),
    ("COLUMNS", &[Terminal]),
    ("LINES", &[Terminal]),
    ("TERM", &[Terminal]),
    ("NO_COLOR", &[Terminal]),
];
const ENVIRONMENT: [&str; 4] = ["os.environ.get", "os.getenv", "os.environ", "os.environ.pop"];

/// Calls that take a path first.
const PATH_CALLS: [&str; 20] = [
    "open",
    "io.open",
    "codecs.open",
    "os.open",
    "os.listdir",
    "os.scandir",
    "os.walk",
    "os.stat",
    "os.path.exists",
    "os.path.isfile",
    "os.path.isdir",
    "os.path.getsize",
    "os.path.abspath",
    "glob.glob",
    "glob.iglob",
    "pathlib.Path",
    "pathlib.PosixPath",
    "shutil.copy",
    "shutil.copytree",
    "importlib.util.spec_from_file_location",
];
/// Calls that read or write text and go by the locale unless an encoding is named.
const TEXT_CALLS: [&str; 5] = ["open", "io.open", "*.read_text", "*.write_text", ".read_text"];
const PICKLES: [&str; 8] = [
    "pickle.dumps",
    "pickle.dump",
    "cloudpickle.dumps",
    "cloudpickle.dump",
    "dill.dumps",
    "joblib.dump",
    "*.__reduce__",
    "*.__reduce_ex__",
];
/// Fixtures of plugins that look for files beside the test, or make some that are named after it.
const DATA_FIXTURES: [&str; 16] = [
    "testdir",
    "pytester",
    "datadir",
    "shared_datadir",
    "lazy_datadir",
    "lazy_shared_datadir",
    "original_datadir",
    "datafiles",
    "data_regression",
    "file_regression",
    "num_regression",
    "dataframe_regression",
    "ndarrays_regression",
    "image_regression",
    "snapshot",
    "cov",
];

/// Whether a name can become a clue.
pub(super) fn is_interesting(name: &str) -> bool {
    let of_signs = CALLS.iter().chain(USES).flat_map(|sign| sign.names);
    let plain = ENVIRONMENT.iter().chain(&PATH_CALLS).chain(&TEXT_CALLS).chain(&PICKLES);
    is_chdir(name) || of_signs.chain(plain).any(|pattern| fits(pattern, name))
}

fn is_chdir(name: &str) -> bool {
    name == "chdir" || name.ends_with(".chdir") || name.ends_with(".as_cwd")
}

/// Whether a name fits a pattern with at most one `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

impl SourceFile {
    /// What in a test, and in what it uses, looks as if it depended on this dimension: the test's own first, then
    /// what it uses, then what its module does when it is imported.
    pub fn clues(&self, dimension: Dimension, group: &Group, module: &str, path: &str) -> Vec<Clue> {
        let Some(code) = self.code(group) else { return Vec::new() };
        let calls = || code.calls();
        let looker = Looker {
            dimension,
            module,
            stem: stem(path),
            moves: calls().any(is_chdir),
            has_classes: code
                .units()
                .any(|unit| matches!(unit.kind, Kind::ClassBody) && code.test().class != unit.class),
        };
        let mut clues = Vec::new();
        if matches!(dimension, TestFileLocation | CheckoutPath) {
            clues.extend(data_fixtures(&code, group));
        }
        let effects = self.index.effects.iter().filter(|unit| !code.closure.contains(unit));
        let effects = effects.map(|unit| &self.units[*unit]);
        let mut told = BTreeSet::new();
        for unit in code.units().chain(effects) {
            for (line, what) in unit.facts.seen.iter().filter_map(|seen| looker.look(seen)) {
                if told.insert((line, what.clone())) {
                    clues.push(Clue { line, place: place(&code, unit), what });
                }
            }
        }
        clues
    }
}

fn data_fixtures(code: &Code<'_>, group: &Group) -> Vec<Clue> {
    let named: BTreeSet<&str> = code
        .units()
        .flat_map(|unit| unit.parameters.iter().map(String::as_str))
        .chain(group.fixtures.iter().map(String::as_str))
        .collect();
    let line = code.lines().0;
    let known = DATA_FIXTURES.into_iter().filter(|fixture| named.contains(fixture));
    known
        .map(|fixture| Clue {
            line,
            place: FilePart::Test,
            what: format!(
                "gets fixture `{fixture}`, which finds or names files by the test's own name and place"
            ),
        })
        .collect()
}

struct Looker<'a> {
    dimension: Dimension,
    module: &'a str,
    stem: &'a str,
    /// Whether the test chooses its working directory, so that relative paths say nothing.
    moves: bool,
    /// Whether it uses classes of its file.
    has_classes: bool,
}

impl Looker<'_> {
    fn look(&self, seen: &Seen) -> Option<(u32, String)> {
        let what = match &seen.what {
            What::Call { name, text, encoded, timeout } => {
                self.call(name, text.as_deref(), *encoded, *timeout)
            }
            What::Use(name) => self
                .sign(USES, name)
                .map(|why| format!("reads `{}`: {why}", shown(name)))
                .or_else(|| self.sign(CALLS, name).map(|why| format!("refers to `{}`: {why}", shown(name)))),
            What::Item { name, text } => self.variable(name, text),
            What::OwnName(text) => self.own_name(text),
            What::SetOrder => {
                (self.dimension == HashSeed).then(|| "goes through a set in its order".to_owned())
            }
        };
        what.map(|what| (seen.line, what))
    }

    fn call(&self, name: &str, text: Option<&str>, encoded: bool, timeout: bool) -> Option<String> {
        if let Some(what) = text.and_then(|text| self.variable(name, text)) {
            return Some(what);
        }
        if self.is_about(DIRECTORY)
            && !self.moves
            && PATH_CALLS.contains(&name)
            && let Some(path) = text.filter(|text| is_relative(text))
        {
            return Some(format!("calls `{}` with the relative path \"{}\"", shown(name), short(path)));
        }
        if self.dimension == TestFileLocation
            && self.has_classes
            && PICKLES.iter().any(|known| fits(known, name))
        {
            return Some(format!(
                "calls `{}`: a class of this file is pickled by the name of its module",
                shown(name)
            ));
        }
        if self.dimension == Locale && !encoded && TEXT_CALLS.iter().any(|known| fits(known, name)) {
            return Some(format!("calls `{}` without an encoding", shown(name)));
        }
        if self.dimension == Load && timeout {
            return Some(format!("calls `{}` with a timeout", shown(name)));
        }
        self.sign(CALLS, name).map(|why| format!("calls `{}`: {why}", shown(name)))
    }

    fn sign(&self, signs: &'static [Sign], name: &str) -> Option<&'static str> {
        let about = |sign: &&Sign| sign.dimensions.contains(&self.dimension);
        let found = signs.iter().filter(about).find(|sign| sign.names.iter().any(|known| fits(known, name)));
        found.map(|sign| sign.why)
    }

    fn variable(&self, name: &str, text: &str) -> Option<String> {
        let (variable, dimensions) = VARIABLES.iter().find(|(variable, _)| *variable == text)?;
        (ENVIRONMENT.contains(&name) && dimensions.contains(&self.dimension))
            .then(|| format!("reads the environment variable `{variable}`"))
    }

    fn own_name(&self, text: &str) -> Option<String> {
        if self.dimension != TestFileLocation {
            return None;
        }
        let file = format!("{}.py", self.stem);
        if has_word(text, &file) {
            return Some(format!("names its own file: \"{}\"", short(text)));
        }
        let telling = self.stem.len() > 5 && has_word(text, self.stem);
        ((!self.module.is_empty() && has_word(text, self.module)) || telling)
            .then(|| format!("names its own module: \"{}\"", short(text)))
    }

    fn is_about(&self, dimensions: &[Dimension]) -> bool {
        dimensions.contains(&self.dimension)
    }
}

/// A path that the directory of the test run completes.
fn is_relative(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '\\', '~', '<', '{'])
        && !path.contains("://")
        && !path.contains('\n')
        && path.as_bytes().get(1) != Some(&b':')
}

/// Whether a text holds a word that is not a part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, found)| !text[..at].ends_with(is_part) && !text[at + found.len()..].starts_with(is_part))
}

/// A name without the dot that marks the file's own names.
fn shown(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

/// The first words of a text.
fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let cut: String = line.chars().take(60).collect();
    if cut.len() < text.trim().len() { format!("{cut}…") } else { cut }
}
