//! `gistmill commits`: commits of clones that read like refactorings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::place::PlaceArguments;
use super::{Arguments, Format};
use crate::error::{Error, Result};
use crate::family::codetaste::funnel::{Cause, Changes, Limits};
use crate::history::{self, Asked, ClonePlace, Row, Scores};
use crate::record::id::RepoSlug;
use crate::terminal;
use crate::text::count;

/// Lists of words that take the place of the built-in ones.
const WORDS: &str = "filters/commits.toml";

#[derive(Debug, clap::Args)]
pub(super) struct CommitsArguments {
    /// A clone with its whole history, bare or not; with the name of its repository where the clone does not say it
    #[arg(value_name = "[SLUG=]CLONE", required = true)]
    clones: Vec<String>,
    /// Fewest files that a commit changes
    #[arg(long, value_name = "N", default_value_t = Limits::default().min_files)]
    min_files: u32,
    /// Fewest files of code among them
    #[arg(long, value_name = "N", default_value_t = Limits::default().min_code_files)]
    min_code_files: u32,
    /// Whether half of the code files have to be Python's: python, or any
    #[arg(long, value_enum, default_value_t)]
    language: Language,
    /// How many commits go on at most, best message first
    #[arg(long, value_name = "N", default_value_t = Limits::default().most)]
    most: usize,
    /// The share that stays when the most repetitive diffs go
    #[arg(long, value_name = "SHARE", default_value_t = Limits::default().keep, value_parser = parse_share)]
    keep: f64,
    /// Only commits of this day (UTC) and later ones
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    since: Option<i64>,
    /// Only commits before this day (UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    until: Option<i64>,
    /// Take single commits alone, and not merges in the place of what they merge
    #[arg(long)]
    no_merges: bool,
    /// Lists of words to judge messages by; without it ./filters/commits.toml where that exists, else the built-in ones
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// What a model said of the commits, as JSON lines: the best ones stay
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    /// How many of the best scored commits stay
    #[arg(long, value_name = "N", default_value_t = Limits::default().top, requires = "scores")]
    top: usize,
    /// Print dropped commits that change enough files as well, with their causes
    #[arg(long)]
    dropped: bool,
    /// Write what is left as sections of a configuration, into a new file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    #[default]
    Python,
    Any,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 1 is needed".to_owned())
}

fn parse_day(text: &str) -> Result<i64, String> {
    let day: jiff::civil::Date = text.parse().map_err(|_| "a day is written 2026-11-27".to_owned())?;
    let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|error| error.to_string())?;
    Ok(midnight.timestamp().as_second())
}

/// Lists the commits that are left, and how many each cause dropped.
pub(super) fn run(arguments: &Arguments, asked: &CommitsArguments) -> Result<u8> {
    let clones = clones(&asked.clones)?;
    let words = asked.words.as_deref().or_else(|| Some(Path::new(WORDS)).filter(|file| file.exists()));
    let lists = history::lists(words)?;
    let scores = asked.scores.as_deref().map(Scores::read).transpose()?;
    let rows = history::search(&clones, &asked.settings(), &lists, scores.as_ref())?;
    if let Some(file) = &asked.write {
        write_new(file, &sections(&clones, &rows))?;
    }
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "commits": rows.iter().map(described).collect::<Vec<_>>(),
            "causes": causes(&rows),
        })),
        Format::Human | Format::Csv => {
            terminal::say(table(&rows, asked.dropped).trim_end());
            terminal::note(&closing(&rows));
        }
    }
    Ok(0)
}

impl CommitsArguments {
    fn settings(&self) -> Asked {
        let limits = Limits {
            min_files: self.min_files,
            min_code_files: self.min_code_files,
            python: self.language == Language::Python,
            most: self.most,
            keep: self.keep,
            top: self.top,
        };
        Asked { limits, merges: !self.no_merges, since: self.since, until: self.until }
    }
}

/// The clones with the names of their repositories: as given, else that of the remote that it came from, else the folder's.
fn clones(given: &[String]) -> Result<Vec<ClonePlace>> {
    let mut clones: Vec<ClonePlace> = Vec::new();
    for text in given {
        let named = text.split_once('=').and_then(|(slug, path)| Some((RepoSlug::new(slug).ok()?, path)));
        let clone = if let Some((slug, path)) = named {
            ClonePlace { slug, path: path.into() }
        } else {
            let slug = RepoSlug::new(&PlaceArguments::of(text).slug())
                .map_err(|error| Error::internal(format!("the name of {text}: {error}")))?;
            ClonePlace { slug, path: text.into() }
        };
        if let Some(other) = clones.iter().find(|other| other.slug == clone.slug) {
            let (one, two) = (other.path.display(), clone.path.display());
            return Err(Error::usage(format!("{one} and {two} are both {}", clone.slug))
                .with_hint(format!("name a repository as in owner/name={two}")));
        }
        clones.push(clone);
    }
    Ok(clones)
}

fn described(row: &Row) -> Value {
    let shape = &row.shape;
    let is_counted = !matches!(row.cause, Some(Cause::NoParent | Cause::InsideMerge));
    let counted = |number: u32| is_counted.then_some(number);
    let share = |part: u32, whole: u32| (whole > 0).then(|| f64::from(part) / f64::from(whole));
    json!({
        "repo": row.slug, "commit": row.commit, "base": row.base, "made_at": row.made_at, "subject": row.subject,
        "cause": row.cause.map(|cause| cause.to_string()),
        "files": counted(shape.files), "code_files": counted(shape.code_files),
        "python_files": counted(shape.python_files), "test_files": counted(shape.test_files),
        "tests_share": share(shape.test_files, shape.files), "py_share": share(shape.python_files, shape.code_files),
        "words": shape.words, "changes": row.changes, "gzip_ratio": row.gzip_ratio, "score": row.score,
    })
}

fn causes(rows: &[Row]) -> BTreeMap<String, usize> {
    let mut causes = BTreeMap::new();
    for cause in rows.iter().filter_map(|row| row.cause) {
        *causes.entry(cause.to_string()).or_default() += 1;
    }
    causes
}

const HEADINGS: [&str; 8] = ["commit", "repository", "files", "code", "tests", "+", "-", "gzip"];

fn table(rows: &[Row], dropped: bool) -> String {
    let is_near = |cause: Option<Cause>| {
        cause.is_none_or(|cause| {
            dropped && !matches!(cause, Cause::NoParent | Cause::InsideMerge | Cause::FewFiles)
        })
    };
    let shown = rows.iter().filter(|row| is_near(row.cause));
    let mut cells = vec![(HEADINGS.map(str::to_owned), "message".to_owned())];
    cells.extend(shown.map(|row| (numbers(row), last_cell(row))));
    let width = |column: usize| cells.iter().map(|(row, _)| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = String::new();
    for (row, last) in &cells {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ =
                if column < 2 { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        let _ = writeln!(text, "{last}");
    }
    text
}

fn numbers(row: &Row) -> [String; 8] {
    let changes = |of: fn(&Changes) -> u64| {
        row.changes.as_ref().map(of).map_or_else(String::new, |number| number.to_string())
    };
    [
        row.commit.chars().take(12).collect(),
        row.slug.to_string(),
        row.shape.files.to_string(),
        row.shape.code_files.to_string(),
        row.shape.test_files.to_string(),
        changes(|changes| changes.lines_added),
        changes(|changes| changes.lines_removed),
        row.gzip_ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
    ]
}

fn last_cell(row: &Row) -> String {
    let subject: String = terminal::one_line(&row.subject).chars().take(72).collect();
    row.cause.map_or_else(|| subject.clone(), |cause| format!("{cause}: {subject}"))
}

fn closing(rows: &[Row]) -> String {
    let left = rows.iter().filter(|row| row.cause.is_none()).count();
    let mut text = format!("{} of {}", left, count(rows.len(), "commit"));
    let causes: Vec<String> =
        causes(rows).iter().map(|(cause, number)| format!("{cause} {number}")).collect();
    if !causes.is_empty() {
        let _ = write!(text, "; dropped: {}", causes.join(", "));
    }
    text
}

/// A configuration with `[[repo]]` and `[[pair]]` of what is left.
fn sections(clones: &[ClonePlace], rows: &[Row]) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let left: Vec<&Row> = rows.iter().filter(|row| row.cause.is_none()).collect();
    let mut text =
        "[dataset]\nfamily = \"codetaste\"\nname = \"refactorings\"\nversion = \"1\"\n\n".to_owned();
    for clone in clones.iter().filter(|clone| left.iter().any(|row| row.slug == clone.slug)) {
        let path = clone.path.canonicalize().unwrap_or_else(|_| clone.path.clone());
        let (slug, path) = (quoted(clone.slug.as_str()), quoted(&path.to_string_lossy()));
        let _ = writeln!(text, "[[repo]]\nslug = {slug}\npath = {path}\n");
    }
    for row in left {
        // A subject is somebody else's text: on one line it cannot leave its comment.
        let subject = terminal::one_line(&row.subject);
        let (slug, base) = (quoted(row.slug.as_str()), quoted(row.base.as_deref().unwrap_or_default()));
        let golden = quoted(&row.commit);
        let _ = writeln!(text, "[[pair]]   # {subject}\nrepo = {slug}\ngolden = {golden}\ncommit = {base}\n");
    }
    text
}

fn write_new(file: &Path, text: &str) -> Result<()> {
    let opened = fs_err::OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened = opened.map_err(|error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let refused = Error::usage(error.to_string()).with_source(error);
        if exists { refused.with_hint("name a new file with --write") } else { refused }
    })?;
    Ok(opened.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::codetaste::funnel::Shape;

    fn row(subject: &str, cause: Option<Cause>) -> Row {
        Row {
            slug: RepoSlug::new("a/b").unwrap(),
            commit: "1".repeat(40),
            base: Some("2".repeat(40)),
            made_at: 0,
            subject: subject.to_owned(),
            shape: Shape { files: 50, code_files: 40, python_files: 40, test_files: 5, ..Shape::default() },
            changes: None,
            gzip_ratio: Some(0.25),
            score: None,
            cause,
        }
    }

    #[test]
    fn sections_hold_what_is_left_and_no_subject_leaves_its_comment() {
        let clones = [ClonePlace { slug: RepoSlug::new("a/b").unwrap(), path: "/no/such \"clone".into() }];
        let rows = [row("x\u{2028}\rgolden = 1", None), row("other", Some(Cause::FewCode))];
        let text = sections(&clones, &rows);
        let read: toml::Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read["repo"][0]["path"].as_str(), Some("/no/such \"clone"));
        assert_eq!(read["pair"].as_array().unwrap().len(), 1);
        assert_eq!(read["pair"][0]["golden"].as_str(), Some(&*"1".repeat(40)));
        assert_eq!(read["pair"][0]["commit"].as_str(), Some(&*"2".repeat(40)));
    }

    #[test]
    fn the_table_has_what_is_left_and_on_request_what_is_near() {
        let rows =
            [row("one", None), row("two\nthree", Some(Cause::FewCode)), row("four", Some(Cause::FewFiles))];
        let lines = |dropped: bool| table(&rows, dropped).lines().count();
        assert_eq!((lines(false), lines(true)), (2, 3));
        assert!(table(&rows, true).contains("few-code: two\\nthree"), "{}", table(&rows, true));
        assert_eq!(closing(&rows), "1 of 3 commits; dropped: few-code 1, few-files 1");
        assert_eq!(described(&rows[0])["tests_share"], 0.1);
        assert_eq!(described(&row("x", Some(Cause::InsideMerge)))["files"], Value::Null);
    }

    #[test]
    fn two_clones_of_one_repository_are_refused() {
        let given = ["a/b=/x".to_owned(), "a/b=/y".to_owned()];
        let error = clones(&given).unwrap_err();
        assert_eq!(error.to_string(), "/x and /y are both a/b");
        assert_eq!(error.hint(), Some("name a repository as in owner/name=/y"));
        assert_eq!(parse_day("1970-01-02"), Ok(86400));
        assert!(parse_day("yesterday").is_err() && parse_share("1.5").is_err());
    }
}
