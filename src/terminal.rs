//! The one door of text to the terminal. What others wrote (a repository, a dependency, a dataset that was downloaded)
//! is shown there, never obeyed: characters that move the cursor, set colours or titles, write the clipboard or turn the
//! direction of writing come out as `\u{1b}`.
//!
//! gistmill's own colours are added by [`Text::styled`] alone, so nothing needs to distinguish them from foreign ones.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ColorChoice;
use console::Style;
use serde_json::Value;

/// How much is said on stderr beside warnings and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volume {
    /// Nothing.
    Quiet,
    /// What is being done.
    Normal,
    /// Every line of the log as well.
    Verbose,
}

static VOLUME: AtomicU8 = AtomicU8::new(Volume::Normal as u8);

/// Sets the volume of this process.
pub(crate) fn set_volume(volume: Volume) {
    VOLUME.store(volume as u8, Ordering::Relaxed);
}

/// The volume of this process.
pub(crate) fn volume() -> Volume {
    match VOLUME.load(Ordering::Relaxed) {
        0 => Volume::Quiet,
        1 => Volume::Normal,
        _ => Volume::Verbose,
    }
}

/// Sets whether this process colours what it prints; `Auto` leaves that to the environment and the terminal.
pub(crate) fn set_color(choice: ColorChoice) {
    if choice != ColorChoice::Auto {
        console::set_colors_enabled(choice == ColorChoice::Always);
        console::set_colors_enabled_stderr(choice == ColorChoice::Always);
    }
}

/// Whether a terminal would do something else with the character than show it.
pub(crate) fn is_obeyed(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let separates_lines = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || turns_direction || separates_lines
}

/// A text of several lines; newlines and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// A text that is meant to be one line: its newlines are escaped too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_obeyed(c) && c != '\t')
}

fn escape(text: &str, escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' if escaped(c) => shown.push_str("\\n"),
            c if escaped(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Text on its way to the terminal: whatever is written into it is made printable.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&printable(text));
        Ok(())
    }
}

impl Text {
    /// Adds a word in gistmill's own colour; the word itself is made printable.
    pub(crate) fn styled(&mut self, style: &Style, word: &str) {
        let _ = write!(self.0, "{}", style.apply_to(printable(word)));
    }

    /// Adds a line; its newlines are escaped.
    pub(crate) fn line(&mut self, line: &str) {
        self.0.push_str(&one_line(line));
        self.0.push('\n');
    }

    /// What would be printed.
    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Prints it to stdout.
    pub(crate) fn print(&self) {
        print(&self.0);
    }

    /// Prints it to stderr.
    pub(crate) fn eprint(&self) {
        eprint(&self.0);
    }
}

/// A line on stdout, for people.
pub(crate) fn say(text: &str) {
    print(&format!("{}\n", printable(text)));
}

/// A text that others wrote, byte for byte, where no terminal would obey it; on a terminal as one that can be shown.
pub(crate) fn exactly(text: &str) {
    if std::io::stdout().is_terminal() { print(&printable(text)) } else { print(text) }
}

/// A line on stderr, for people who did not ask for quiet.
pub(crate) fn note(text: &str) {
    if volume() != Volume::Quiet {
        warn(text);
    }
}

/// A line on stderr that nobody should miss.
pub(crate) fn warn(text: &str) {
    eprint(&format!("{}\n", one_line(text)));
}

/// A line on stderr that nobody should miss, and a line with the way out.
pub(crate) fn warn_with_hint(text: &str, hint: &str) {
    eprint(&format!("{}\n  hint: {}\n", one_line(text), one_line(hint)));
}

/// A line of JSON on stdout. Programs read the very value that was given; terminals see escapes only.
pub(crate) fn json(value: &Value) {
    print(&format!("{}\n", json_text(value)));
}

/// Outside of its strings JSON has none of these characters, and inside any may be written as `\uXXXX`.
fn json_text(value: &Value) -> String {
    let text = value.to_string();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            // All of them have four hex digits.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A reader that closed the pipe has seen enough. Anything else that keeps an answer from its reader is reported.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprint(&format!("error: cannot write to stdout: {error}\n"));
            std::process::exit(crate::error::Fault::Machine.exit_code().into());
        }
        _ => {}
    }
}

fn eprint(text: &str) {
    // Where stderr is gone, there is nowhere left to say so.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\rd\u{8}e\u{7f}f\u{202e}g\u{2066}h\u{2028}i\0";

    #[test]
    fn nothing_foreign_reaches_the_terminal_as_a_command() {
        let shown = printable(HOSTILE);
        assert!(!shown.chars().any(|c| c.is_control() || !c.is_ascii()), "{shown:?}");
        assert!(shown.starts_with("a\\u{1b}]0;title\\u{7}b\\u{9b}2J"), "{shown}");
        assert_eq!(printable("one\n\ttwo é 漢 👩‍👩‍👧"), "one\n\ttwo é 漢 👩‍👩‍👧");
        assert_eq!(one_line("one\nfailed x/y"), "one\\nfailed x/y");
    }

    #[test]
    fn own_colours_stay_and_foreign_ones_do_not() {
        let mut text = Text::default();
        text.styled(&Style::new().red().force_styling(true), "failed");
        let _ = writeln!(text, " \u{1b}[32mok\u{1b}[0m");
        text.line("one\ntwo");
        assert_eq!(text.as_str(), "\u{1b}[31mfailed\u{1b}[0m \\u{1b}[32mok\\u{1b}[0m\none\\ntwo\n");
    }

    #[test]
    fn json_stays_the_same_json() {
        let text = json_text(&Value::from(HOSTILE));
        assert!(!text.chars().any(is_obeyed), "{text:?}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), HOSTILE);
    }
}
