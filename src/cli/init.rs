//! `gistmill init`: a commented configuration for one repository, with what was found in it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::place::{self, PlaceArguments};
use super::{Arguments, Format, preview};
use crate::config::{self, Config, SourceSpec};
use crate::environment::{Preview, Tools};
use crate::error::{Error, Result};
use crate::record::family::{Family, Unit};
use crate::record::source::Pinned;
use crate::source;
use crate::store::write_atomic;
use crate::terminal::{self, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// The file to write; one that exists is never replaced
    #[arg(long, default_value = "repos.toml", value_name = "FILE")]
    output: PathBuf,
    /// The kind of tasks to make: gistify (tests), recube (masked files)
    #[arg(long, value_name = "FAMILY", value_parser = parse_family, default_value = "gistify")]
    family: Family,
}

fn parse_family(text: &str) -> std::result::Result<Family, String> {
    match Family::ALL.into_iter().find(|family| family.as_str() == text) {
        Some(Family::Codetaste) => {
            Err("pairs come from a clone: `gistmill commits CLONE --write FILE`".to_owned())
        }
        Some(family) => Ok(family),
        None => Err("give gistify or recube".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments, asked: &InitArguments) -> Result<u8> {
    if asked.output.symlink_metadata().is_ok() {
        return Err(taken(&asked.output));
    }
    let around = folder_of(&asked.output);
    if !around.is_dir() {
        return Err(Error::usage(format!("there is no folder {}", around.display()))
            .with_hint("make it first, or name another --output"));
    }
    let keys = asked.place.keys(|place| from(&asked.output, place))?;
    let slug = asked.place.slug();
    let schema = schema_beside(&asked.output);
    let head = schema.as_ref().map(|(name, _)| format!("#:schema ./{name}\n")).unwrap_or_default();
    let document = format!("{head}{}", of_family(&place::document(&slug, &keys), asked.family));
    let config = place::parse(&document, folder_of(&asked.output))?;
    let cache = arguments.cache()?;
    let tools = Tools::find(&cache)?;
    // What cannot be looked at yet can be configured all the same.
    let found = config.repos.first().map(|repo| preview::look((repo, &config.apart), &cache, &tools));
    let text = match &found {
        Some(Ok((pinned, preview))) => format!("{document}{}", comments(pinned, preview)),
        Some(Err(error)) => format!("{document}# {}\n", one_line(&error.to_string())),
        None => document,
    };
    place::parse(&text, folder_of(&asked.output))?;
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(&asked.output)?;
    file.write_all(text.as_bytes())?;
    if let Some((_, path)) = schema.as_ref().filter(|(_, path)| path.symlink_metadata().is_err()) {
        write_atomic(path, format!("{:#}\n", config::schema()).as_bytes())?;
    }
    if arguments.format == Format::Json {
        let schema = schema.map(|(_, path)| path);
        terminal::json(&json!({ "file": asked.output, "slug": slug, "schema": schema }));
    } else {
        let file = asked.output.display();
        let first = if shows_output(&config, around) {
            "; add output/ to .gitignore, so that nobody commits the answers"
        } else {
            ""
        };
        terminal::say(&format!("{file} has {slug}{first}; next: gistmill build {file}"));
    }
    match found {
        Some(Err(error)) => Err(error.at(&slug)),
        _ => Ok(0),
    }
}

/// Whether git would show what a build in this folder writes, because it is in the clone of a repository.
fn shows_output(config: &Config, folder: &Path) -> bool {
    let Ok(output) = fs_err::canonicalize(folder).map(|folder| folder.join("output")) else { return false };
    config.repos.iter().any(|repo| match &repo.source {
        SourceSpec::Path { path, .. } => source::is_shown_by_git(path, &output),
        _ => false,
    })
}

/// A configuration for tasks of a family, with the keys that are of that family alone.
fn of_family(document: &str, family: Family) -> String {
    match family.unit() {
        Unit::Group => document.to_owned(),
        Unit::File => {
            let document = document.replacen("[dataset]\n", "[dataset]\nfamily = \"recube\"\n", 1);
            format!(
                "{document}# domain = \"web\"                # for tables by domain\n\
                 # [[repo.target]]                 # then no other file is masked\n# file = \"src/package/module.py\"\n"
            )
        }
        // Refused by `parse_family`: pairs come from a clone.
        Unit::Pair => document.replacen("[dataset]\n", "[dataset]\nfamily = \"codetaste\"\n", 1),
    }
}

/// Name and place of the schema that editors check a configuration with: beside it, since a comment names it. None where
/// the name would need quoting, which the comment does not know.
fn schema_beside(output: &Path) -> Option<(String, PathBuf)> {
    let stem = output.file_stem()?.to_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = format!("{stem}.schema.json");
    let folder = output.parent().unwrap_or(Path::new("")).to_owned();
    // What is written aside and renamed needs a folder with a name.
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    stem.chars().all(is_plain).then(|| (name.clone(), folder.join(name)))
}

fn taken(path: &Path) -> Error {
    Error::usage(format!("{} already exists", path.display()))
        .with_hint("name another file with --output, or add a [[repo]] to this one by hand")
}

/// A directory as a configuration names it: paths start at the folder of the configuration.
fn from(output: &Path, place: &str) -> Result<String> {
    let is_here =
        output.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder == Path::new("."));
    if is_here || Path::new(place).is_absolute() {
        return Ok(place.to_owned());
    }
    let full = fs_err::canonicalize(place)?;
    full.into_os_string()
        .into_string()
        .map_err(|_| Error::usage(format!("{place} is below a folder whose name is not UTF-8")))
}

/// What was found, and the keys that change it, as comments.
fn comments(pinned: &Pinned, preview: &Preview) -> String {
    let mut text = format!(
        "\n# As of {}. What follows was found in the tree and needs no word of configuration:\n",
        pinned.pinned_at
    );
    for line in preview::lines(preview) {
        let _ = writeln!(text, "#   {}", one_line(&line));
    }
    for note in &pinned.notes {
        let _ = writeln!(text, "#   {}", one_line(note));
    }
    let commands = super::entries::named_in(&pinned.tree);
    if !commands.is_empty() {
        text.push_str("#\n# Commands that it names; `entries = \"discover\"` makes tasks of them:\n");
    }
    for line in commands {
        let _ = writeln!(text, "#   {}", one_line(&line));
    }
    text.push_str(
        "#\n# Any of it can be set instead:\n\
         # python = \"3.12\"\n\
         # groups = [\"test\"]              # dependency groups, extras and requirements replace what the tree declares\n\
         # extras = [\"test\"]\n\
         # requirements = [\"requirements-dev.txt\", \"./packages/core\", \"pytest>=8\"]\n\
         # tests = [\"tests/unit\"]         # what is collected\n\
         # env = { MODE = \"test\" }\n\
         # backend = \"docker\"\n",
    );
    text
}

/// The folder that paths of a configuration start at.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::id::RepoSlug;

    #[test]
    fn the_schema_has_the_name_of_the_configuration_or_none() {
        let name = |path: &str| schema_beside(Path::new(path)).map(|(_, path)| path.display().to_string());
        assert_eq!(name("repos.toml").as_deref(), Some("./repos.schema.json"));
        assert_eq!(name("a b/x.y.toml").as_deref(), Some("a b/x.y.schema.json"));
        assert_eq!(name("a\nb.toml"), None);
    }

    #[test]
    fn a_family_is_written_and_is_a_configuration() {
        let document =
            place::document("a/b", &[("git", "https://h/a/b".into()), ("commit", "c".repeat(40).into())]);
        for family in [Family::Gistify, Family::Recube] {
            let config = place::parse(&of_family(&document, family), Path::new(".")).unwrap();
            assert_eq!((config.dataset.family, config.repos.len()), (family, 1));
        }
        assert!(parse_family("recub").unwrap_err().contains("gistify or recube"));
        assert!(parse_family("codetaste").unwrap_err().contains("gistmill commits"));
    }

    #[test]
    fn what_is_written_is_a_configuration_whatever_was_found() {
        let keys =
            [("git", "https://h/a/b".into()), ("commit", "2ac89889f4cc330eabd50f295dcef02828522c69".into())];
        let preview = Preview {
            python: "3.12.1".to_owned(),
            python_reason: "two\nlines \u{1b}[2J".to_owned(),
            backend: None,
            members: [("a\nb".to_owned(), "x".to_owned())].into(),
            variables: vec!["MODE".to_owned()],
            rungs: Vec::new(),
            on_demand: vec!["extra \"x\"\n[[repo]]".to_owned()],
            notes: Vec::new(),
        };
        let pinned = crate::testing::made_up::pinned(&RepoSlug::new("a/b").unwrap(), "c");
        let text = format!("{}{}", place::document("a/b", &keys), comments(&pinned, &preview));
        let config = place::parse(&text, Path::new(".")).unwrap();
        assert_eq!(config.repos.len(), 1);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!((config.dataset.name.as_str(), config.repos[0].slug.as_str()), ("b", "a/b"));
    }
}
