//! What attempts say of an entry: a command that is not a test. Pure.

use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::id::hash_parts;
use crate::record::outcome::{Attempt, CaseResult, Wants};
use crate::record::verdict::Cause;

/// Exceptions of what needs a terminal.
const OF_TERMINALS: [&str; 3] = ["termios.error", "_curses.error", "curses.error"];
/// What the system says of a stream that is not a terminal.
const NOT_A_TERMINAL: &str = "Inappropriate ioctl for device";

/// The hash of what a command printed, as entries keep it of help and version.
pub(crate) fn printed(case: &CaseResult) -> String {
    hash_parts(&[&case.stdout, &case.stderr])
}

/// Why attempts of an entry, which all show this, do not make it a task, in a sentence; none where they do.
pub(super) fn trouble(entry: &Entry, shown: &Attempt) -> Option<(Cause, String)> {
    let case = shown.cases.first()?;
    let command = case.command.as_ref()?;
    let told = |cause, summary: &str| Some((cause, summary.to_owned()));
    if command.status == i32::from(entry.exit) {
        let is_help = entry.help.contains(&printed(case)) && command.files.is_empty();
        let summary = "prints what the same program prints for --help or --version";
        return is_help.then(|| (Cause::PrintsHelpOnly, summary.to_owned()));
    }
    if !shown.connections.is_empty() {
        let places = shown.connections.join(", ");
        return told(Cause::NeedsNetwork, &format!("fails offline after an attempt to reach {places}"));
    }
    let is_of_terminals = case.exception.as_deref().is_some_and(|name| OF_TERMINALS.contains(&name));
    if command.wants == Some(Wants::Terminal) || is_of_terminals || case.stderr.contains(NOT_A_TERMINAL) {
        return told(Cause::NeedsTerminal, "fails without a terminal");
    }
    if command.wants == Some(Wants::Input) || case.exception.as_deref() == Some("EOFError") {
        return told(Cause::WaitsForInput, "asks for input, and fails when it gets none");
    }
    let status = command.status;
    told(
        Cause::ExitsWith,
        &format!("leaves with status {status} in every attempt, expected is {}", entry.exit),
    )
}

/// What an entry said, for evidence.
pub(super) fn excerpt(shown: &Attempt) -> String {
    let texts = shown.cases.first().map(|case| [&case.message, &case.stdout].map(|text| text.trim_end()));
    texts.map(|texts| texts.join("\n")).unwrap_or_default()
}

/// The cause of an entry that is over its limit in so many of its attempts.
pub(super) fn over_the_limit(group: &Group, late: usize, attempts: usize) -> Cause {
    if group.entry.is_some() && late == attempts { Cause::RunsForever } else { Cause::TimesOut }
}
