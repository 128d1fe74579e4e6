//! One error type for everything that can stop a build or a repository.
//!
//! An error says whose trouble it is ([`Fault`], which decides the exit code), what went wrong and where
//! (`message`), the lines of a tool's output that matter (`detail`) and the way out (`hint`).
//! A failing *test* is never an error: it is a result, see [`crate::record::outcome`].

use std::fmt;

/// Whose trouble an error is; decides the exit code and whether other repositories go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Bad command line or configuration: nothing was started.
    Usage,
    /// The machine lacks something that every repository needs.
    Machine,
    /// One repository cannot be turned into instances; the others go on.
    Repository,
    /// The harness broke (a runner died, a pipe closed): never a verdict about a test.
    Harness,
    /// Ctrl-C or SIGTERM; the state is resumable.
    Interrupted,
    /// A bug in gistmill.
    Internal,
}

impl Fault {
    /// The process exit code of the contract.
    pub fn exit_code(self) -> u8 {
        match self {
            Fault::Repository | Fault::Harness => 1,
            Fault::Usage => 2,
            Fault::Machine => 3,
            Fault::Internal => 4,
            Fault::Interrupted => 130,
        }
    }
}

/// The way out of a full disk.
pub const DISK_HINT: &str =
    "free some disk space, or name another folder with --cache-dir, and run the same command again";

/// Whether words of a tool or of the system speak of a full disk.
pub fn says_disk_is_full(text: &str) -> bool {
    let text = text.to_lowercase();
    ["no space left on device", "disk quota exceeded"].iter().any(|words| text.contains(words))
}

/// What an error is, where a caller acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The kernel makes no more namespaces for now: those of processes that have ended may still count.
    NoMoreNamespaces,
    /// `/proc` cannot be mounted: the sandbox cannot have a process namespace of its own.
    NoProcessNamespace,
}

/// What went wrong, where, and the way out.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    fault: Fault,
    kind: Option<ErrorKind>,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of everything fallible in gistmill.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was found, or why there is nothing: a result like any other, where an [`Error`] ends what is being done.
pub type OrWhy<T, W = String> = std::result::Result<T, W>;

impl Error {
    /// A new error; `message` names the thing and the place.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        let inner =
            Inner { fault, kind: None, message: message.into(), detail: None, hint: None, source: None };
        Error { inner: Box::new(inner) }
    }

    /// Bad command line or configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::new(Fault::Usage, message)
    }

    /// The machine lacks something.
    pub fn machine(message: impl Into<String>) -> Self {
        Error::new(Fault::Machine, message)
    }

    /// One repository is in trouble.
    pub fn repository(message: impl Into<String>) -> Self {
        Error::new(Fault::Repository, message)
    }

    /// The harness broke.
    pub fn harness(message: impl Into<String>) -> Self {
        Error::new(Fault::Harness, message)
    }

    /// A bug in gistmill.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Fault::Internal, message)
    }

    /// Stopped by the user.
    pub fn interrupted() -> Self {
        Error::new(Fault::Interrupted, "interrupted; run the same command again to go on")
    }

    /// Adds the lines of output that matter.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.inner.detail = Some(detail.into());
        self
    }

    /// Says what it is, where a caller acts on that.
    #[must_use]
    pub fn with_kind(mut self, kind: Option<ErrorKind>) -> Self {
        self.inner.kind = kind;
        self
    }

    /// Adds the way out.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.inner.source = Some(Box::new(source));
        self
    }

    /// Puts a place in front of the message: `place: message`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.inner.message = format!("{place}: {}", self.inner.message);
        self
    }

    /// Whose trouble it is.
    pub fn fault(&self) -> Fault {
        self.inner.fault
    }

    /// The error with another fault, for a stage that knows better whose trouble it is.
    #[must_use]
    pub fn blame(mut self, fault: Fault) -> Self {
        self.inner.fault = fault;
        self
    }

    /// What it is, where that is known.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.inner.kind
    }

    /// Writes it to the log of this run: where, whose fault, message with its sources, detail and hint.
    pub fn log(&self, place: impl fmt::Display) {
        tracing::error!("{place}: {self} ({:?})", self.fault());
        for line in self.detail().into_iter().flat_map(str::lines) {
            tracing::error!("{place}:   {line}");
        }
        if let Some(hint) = self.hint() {
            tracing::error!("{place}: hint: {hint}");
        }
    }

    /// The output lines that matter, if any.
    pub fn detail(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// The way out, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.inner.message)?;
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let text = error.to_string();
            if !self.inner.message.contains(&text) {
                write!(formatter, ": {text}")?;
            }
            source = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// `fs_err` errors already name action and path.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let hint = match error.kind() {
            std::io::ErrorKind::StorageFull => Some("free some disk space and run the same command again"),
            std::io::ErrorKind::ReadOnlyFilesystem => {
                Some("choose another place with --output or --cache-dir")
            }
            std::io::ErrorKind::PermissionDenied => Some("check who owns that path"),
            _ => None,
        };
        let error = Error::machine(error.to_string()).with_source(error);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        let codes = [Fault::Repository, Fault::Usage, Fault::Machine, Fault::Internal, Fault::Interrupted]
            .map(Fault::exit_code);
        assert_eq!(codes, [1, 2, 3, 4, 130]);
    }

    #[test]
    fn words_about_a_full_disk_are_understood() {
        assert!(says_disk_is_full("write: No space left on device (os error 28)"));
        assert!(says_disk_is_full("DISK QUOTA EXCEEDED"));
        assert!(!says_disk_is_full("no space left in this hotel"));
    }

    #[test]
    fn display_names_place_and_cause_once() {
        let io = std::io::Error::other("no space left");
        let error = Error::repository("cannot write the lock").with_source(io).at("pallets/flask");
        assert_eq!(error.to_string(), "pallets/flask: cannot write the lock: no space left");
    }
}
