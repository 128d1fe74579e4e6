//! `gistmill entries`: commands of a repository that a person would run, found by reading.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::place::{self, PlaceArguments};
use super::{Arguments, Format};
use crate::beneath::Folder;
use crate::config;
use crate::discovery::{self, Discovered, Reject};
use crate::document;
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::record::entry::{Entry, Stdin};
use crate::source;
use crate::store::write_atomic;
use crate::terminal::{self, one_line};
use crate::text::count;

/// Commands that are named where this is not what was asked.
const SHOWN: usize = 8;

#[derive(Debug, clap::Args)]
pub(super) struct EntriesArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Append the candidates to a configuration whose last `[[repo]]` is this repository
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "repos.toml")]
    write: Option<PathBuf>,
}

/// Lists candidates and rejects.
pub(super) fn run(arguments: &Arguments, asked: &EntriesArguments) -> Result<u8> {
    let mut keys = asked.place.keys(|place| Ok(place.to_owned()))?;
    if keys.iter().any(|(key, _)| *key == "path") {
        // Nothing is published, so what is not committed may be looked at as well.
        keys.push(("allow_uncommitted", true.into()));
    }
    let slug = asked.place.slug();
    let config = place::parse(&place::document(&slug, &keys), Path::new("."))?;
    let repo = config.repos.first().ok_or_else(|| Error::internal("the configuration is empty"))?;
    let cache = arguments.cache()?;
    let tools = Tools::find(&cache)?;
    let pinned = source::pin((repo, &config.apart), &cache, &tools, &|_| {})?;
    let found = discovery::discover(&Folder::open(&pinned.tree)?, None)?;
    if let Some(file) = &asked.write {
        append(file, &slug, &found.candidates)?;
    }
    if arguments.format == Format::Json {
        terminal::json(&json!({
            "slug": slug,
            "candidates": found.candidates.iter().map(candidate).collect::<Vec<Value>>(),
            "rejects": found.rejects.iter().map(reject).collect::<Vec<Value>>(),
        }));
    } else {
        terminal::say(table(&found).trim_end());
        let [candidates, rejects] = [("candidate", found.candidates.len()), ("reject", found.rejects.len())]
            .map(|(noun, n)| count(n, noun));
        terminal::note(&match &asked.write {
            Some(file) => format!("{candidates} written to {}, {rejects}", file.display()),
            None => format!("{candidates}, {rejects}: nothing was run"),
        });
    }
    Ok(0)
}

/// The first commands that a tree names, a line each, and how many more there are; nothing where there are none, or it cannot
/// be read.
pub(super) fn named_in(tree: &Path) -> Vec<String> {
    let Ok(found) = Folder::open(tree).and_then(|tree| discovery::discover(&tree, None)) else {
        return Vec::new();
    };
    let all = found.candidates.len();
    let mut lines: Vec<String> = found
        .candidates
        .iter()
        .take(SHOWN)
        .map(|one| format!("{} ({})", one.command.line(), one.origin))
        .collect();
    if all > SHOWN {
        lines.push(format!("and {} more", all - SHOWN));
    }
    lines
}

fn candidate(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "kind": entry.command.kind(),
        "command": entry.command.line(),
        "stdin": entry.stdin,
        "origin": entry.origin,
    })
}

fn reject(reject: &Reject) -> Value {
    json!({ "line": reject.line, "reason": reject.reason, "origin": reject.origin })
}

/// One line for each, what was refused below.
fn table(found: &Discovered) -> String {
    let mut text = String::new();
    for one in &found.candidates {
        let stdin = match &one.stdin {
            Some(Stdin::File(file)) => format!(" < {file}"),
            Some(Stdin::Text(typed)) => format!(" (typed: {typed:?})"),
            None => String::new(),
        };
        let line = format!("{}{stdin}  ({})", one.command.line(), one.origin);
        let _ = writeln!(text, "{}", one_line(&line));
    }
    for one in &found.rejects {
        let line = format!("not: {}: {}  ({})", one.line, one.reason, one.origin);
        let _ = writeln!(text, "{}", one_line(&line));
    }
    text
}

/// Appends sections to a configuration, which has to be right after that.
fn append(file: &Path, slug: &str, candidates: &[Entry]) -> Result<()> {
    let text = document::read_text(file)?;
    let last = text.parse::<toml::Table>().ok().and_then(|table| {
        let repos = table.get("repo")?.as_array()?;
        repos.last()?.get("slug")?.as_str().map(str::to_owned)
    });
    if last.as_deref() != Some(slug) {
        let found = last.map_or_else(|| "missing".to_owned(), |last| format!("{:?}", one_line(&last)));
        return Err(Error::usage(format!("the last [[repo]] of {} is {found}, not {slug}", file.display()))
            .with_hint(
                "entries belong to the [[repo]] above them: move it to the end, or write to another file",
            ));
    }
    let text = format!("{}\n{}", text.trim_end(), sections(candidates));
    let base = std::path::absolute(file)?.parent().map(Path::to_path_buf).unwrap_or_default();
    config::parse(&text, &base, &|_, _| None)
        .map_err(|problems| Error::usage(document::render(&file.display().to_string(), &problems)))?;
    write_atomic(file, text.as_bytes())
}

/// A section for each candidate, below a comment that says where it was found.
fn sections(candidates: &[Entry]) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = String::new();
    for one in candidates {
        let origin = one.origin.to_string();
        let _ = write!(text, "\n# {}\n[[repo.entry]]\n", one_line(&origin));
        let _ = writeln!(text, "name = {}", quoted(one.name.as_str()));
        let _ = writeln!(text, "command = {}", quoted(&one.command.line()));
        match &one.stdin {
            Some(Stdin::Text(typed)) => drop(writeln!(text, "stdin = {}", quoted(typed))),
            Some(Stdin::File(file)) => drop(writeln!(text, "stdin_file = {}", quoted(file))),
            None => {}
        }
        if one.exit != 0 {
            let _ = writeln!(text, "exit = {}", one.exit);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_says_which_commands_it_names() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(named_in(&folder.path().join("missing")), Vec::<String>::new());
        let write = |name: &str, text: &str| fs_err::write(folder.path().join(name), text).unwrap();
        write(
            "pyproject.toml",
            "[project]\nname = \"shop\"\nversion = \"1\"\n[project.scripts]\nshop = \"shop:main\"\n",
        );
        let blocks: Vec<String> = (0..SHOWN).map(|at| format!("```sh\nshop buy-{at}\n```\n")).collect();
        write("README.md", &blocks.concat());
        let named = named_in(folder.path());
        assert_eq!(named[0], "shop buy-0 (readme README.md:2)");
        assert_eq!((named.len(), named[SHOWN].as_str()), (SHOWN + 1, "and 1 more"));
    }
    use crate::testing::attempts::entry;

    const HEAD: &str = "[dataset]\nname = \"d\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\ngit = \"https://h.org/a/b\"\n\
                        commit = \"2ac89889f4cc330eabd50f295dcef02828522c69\"\n";

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("repos.toml");
        fs_err::write(&file, HEAD).unwrap();
        let typed = Entry { stdin: Some(Stdin::Text("a \"b\"\n".into())), exit: 3, ..entry("shop init") };
        let all = [entry("shop export --json 'a b'"), typed];
        append(&file, "a/b", &all).unwrap();
        let text = fs_err::read_to_string(&file).unwrap();
        assert!(text.starts_with(HEAD) && text.contains("# configured:9\n[[repo.entry]]\n"), "{text}");
        let config = place::parse(&text, folder.path()).unwrap();
        let read: Vec<_> = config.repos[0]
            .entries
            .asked()
            .iter()
            .map(|one| (one.command.clone(), one.stdin.clone(), one.exit))
            .collect();
        assert_eq!(read, all.map(|one| (one.command, one.stdin, one.exit)));
        let again = append(&file, "a/b", &[entry("shop init")]).unwrap_err();
        assert!(again.to_string().contains("named twice"), "{again}");
        assert!(append(&file, "a/c", &[]).unwrap_err().to_string().contains("not a/c"));
        assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
    }
}
