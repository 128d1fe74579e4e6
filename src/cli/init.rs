//! `gistmill init`: a commented configuration for one repository, with what was found in it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Arguments, Format, preview};
use crate::config::{self, Config};
use crate::environment::{Preview, Tools};
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::source::Pinned;
use crate::source;
use crate::store::write_atomic;
use crate::terminal::{self, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// A directory, or the URL of a git repository
    #[arg(value_name = "PATH|URL")]
    place: String,
    /// The branch or tag to pin; by default the repository's own branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// The folder of a git repository that is the project
    #[arg(long, value_name = "FOLDER")]
    subdirectory: Option<String>,
    /// The file to write; one that is there is never replaced
    #[arg(long, default_value = "repos.toml", value_name = "FILE")]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, asked: &InitArguments) -> Result<u8> {
    if asked.output.symlink_metadata().is_ok() {
        return Err(taken(&asked.output));
    }
    let keys = keys(asked)?;
    let slug = slug(&asked.place);
    let schema = schema_beside(&asked.output);
    let head = schema.as_ref().map(|(name, _)| format!("#:schema ./{name}\n")).unwrap_or_default();
    let document = format!("{head}{}", document(&slug, &keys));
    let config = parse(&document, &asked.output)?;
    let cache = arguments.cache()?;
    let tools = Tools::find(&cache)?;
    // What cannot be looked at yet can be configured all the same.
    let found = config.repos.first().map(|repo| preview::look(repo, &cache, &tools));
    let text = match &found {
        Some(Ok((pinned, preview))) => format!("{document}{}", comments(pinned, preview)),
        Some(Err(error)) => format!("{document}# {}\n", one_line(&error.to_string())),
        None => document,
    };
    parse(&text, &asked.output)?;
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(&asked.output)?;
    file.write_all(text.as_bytes())?;
    if let Some((_, path)) = schema.as_ref().filter(|(_, path)| path.symlink_metadata().is_err()) {
        write_atomic(path, config::SCHEMA.as_bytes())?;
    }
    if arguments.format == Format::Json {
        let schema = schema.map(|(_, path)| path);
        terminal::json(&json!({ "file": asked.output, "slug": slug, "schema": schema }));
    } else {
        terminal::say(&format!(
            "{} has {slug}; next: gistmill build {}",
            asked.output.display(),
            asked.output.display()
        ));
    }
    match found {
        Some(Err(error)) => Err(error.at(&slug)),
        _ => Ok(0),
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
    Error::usage(format!("{} is there already", path.display()))
        .with_hint("name another file with --output, or add a [[repo]] to this one by hand")
}

/// The keys that say where the repository is.
fn keys(asked: &InitArguments) -> Result<Vec<(&'static str, String)>> {
    if Path::new(&asked.place).is_dir() {
        if asked.branch.is_some() || asked.subdirectory.is_some() {
            return Err(Error::usage("--branch and --subdirectory go with the URL of a git repository")
                .with_hint("name the folder itself"));
        }
        return Ok(vec![("path", from(&asked.output, &asked.place)?)]);
    }
    if !asked.place.contains("://") && !asked.place.contains('@') {
        return Err(Error::usage(format!(
            "{} is neither a directory nor the URL of a git repository",
            asked.place
        )));
    }
    let reference = asked.branch.as_deref().unwrap_or("HEAD");
    let commit = source::resolve_reference(&asked.place, reference)?
        .ok_or_else(|| Error::usage(format!("the repository has nothing that is called `{reference}`")))?;
    let mut keys = vec![("git", asked.place.clone()), ("commit", commit)];
    keys.extend(asked.branch.iter().map(|branch| ("branch", branch.clone())));
    keys.extend(asked.subdirectory.iter().map(|folder| ("subdirectory", folder.clone())));
    Ok(keys)
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
        .map_err(|_| Error::usage(format!("{place} lies below a folder whose name is not UTF-8")))
}

/// `owner/name` from the last two parts of a place.
fn slug(place: &str) -> String {
    let full =
        Path::new(place).canonicalize().map_or_else(|_| place.to_owned(), |path| path.display().to_string());
    let plain = |part: &str| -> String {
        let part = part.strip_suffix(".git").unwrap_or(part);
        let kept: String = part
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
            .collect();
        kept.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
    };
    let parts: Vec<String> = full.split(['/', ':']).map(plain).filter(|part| !part.is_empty()).collect();
    let name = parts.last().cloned().unwrap_or_else(|| "project".to_owned());
    let owner = parts.len().checked_sub(2).map_or("local", |at| parts[at].as_str());
    let slug = format!("{owner}/{name}");
    RepoSlug::new(&slug).map_or_else(|_| "local/project".to_owned(), |slug| slug.to_string())
}

fn document(slug: &str, keys: &[(&str, String)]) -> String {
    let name = slug.rsplit('/').next().unwrap_or(slug).to_lowercase();
    let mut text = format!(
        "[dataset]\nname = {}\nversion = \"1\"\n\n[[repo]]\nslug = {}\n",
        quoted(&name),
        quoted(slug)
    );
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {}", quoted(value));
    }
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
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

fn parse(text: &str, file: &Path) -> Result<Config> {
    let here = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    config::parse(text, here, &|_, _| None).map_err(|problems| {
        let words: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
        Error::usage("no configuration can be written for this").with_detail(words.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_gives_a_slug() {
        for (place, expected) in [
            ("https://host.org/pallets/flask.git", "pallets/flask"),
            ("git@host.org:acme/core.git", "acme/core"),
            ("ssh://git@host/deep/er/a b.git/", "er/a-b"),
            ("file:///srv/one.git", "srv/one"),
        ] {
            assert_eq!(slug(place), expected, "{place}");
        }
    }

    #[test]
    fn the_schema_has_the_name_of_the_configuration_or_none() {
        let name = |path: &str| schema_beside(Path::new(path)).map(|(_, path)| path.display().to_string());
        assert_eq!(name("repos.toml").as_deref(), Some("./repos.schema.json"));
        assert_eq!(name("a b/x.y.toml").as_deref(), Some("a b/x.y.schema.json"));
        assert_eq!(name("a\nb.toml"), None);
    }

    #[test]
    fn what_is_written_is_a_configuration_whatever_was_found() {
        let keys = [
            ("git", "https://h/a/b".to_owned()),
            ("commit", "2ac89889f4cc330eabd50f295dcef02828522c69".to_owned()),
        ];
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
        let text = format!("{}{}", document("a/b", &keys), comments(&pinned, &preview));
        let config = parse(&text, Path::new("repos.toml")).unwrap();
        assert_eq!(config.repos.len(), 1);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!((config.dataset.name.as_str(), config.repos[0].slug.as_str()), ("b", "a/b"));
    }
}
