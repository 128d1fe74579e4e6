//! `gistmill scopes`: parts that repositories of masked files could be cut into.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use serde_json::json;

use super::inputs::Inputs;
use super::{Arguments, ConfigArguments, Format};
use crate::beneath::{Folder, Kind};
use crate::config::{Config, Repo};
use crate::environment::Tools;
use crate::error::{Error, Result};
use crate::family::recube::mask::LONGEST;
use crate::family::recube::pack::pack;
use crate::family::recube::scopes::{MOST_FILES, ONE_SCOPE, Proposal, propose};
use crate::family::tokens;
use crate::record::trace::{is_test_path, test_roots};
use crate::source;
use crate::terminal;
use crate::text::glob;

#[derive(Debug, clap::Args)]
pub(super) struct ScopesArguments {
    #[command(flatten)]
    config: ConfigArguments,
}

/// What is proposed for a repository.
struct Proposed<'a> {
    repo: &'a Repo,
    files: usize,
    /// Tokens of its README and its files; none where they cannot be counted.
    tokens: Option<u64>,
    /// None: the whole tree is one.
    scopes: Vec<Proposal>,
}

/// Prints the scopes of each repository as sections of a configuration. Nothing is run, and nothing is written.
pub(super) fn run(arguments: &Arguments, asked: &ScopesArguments) -> Result<u8> {
    let config = Inputs::choose(&asked.config).config(&asked.config.only, &asked.config.output)?;
    let cache = arguments.cache()?;
    let tools = Tools::find(&cache)?;
    let is_asked = |repo: &&Repo| asked.config.only.is_empty() || asked.config.only.contains(&repo.slug);
    let mut all = Vec::new();
    for repo in config.repos.iter().filter(is_asked) {
        let pinned = source::pin((repo, &config.apart), &cache, &tools, &|_| {})?;
        all.push(proposed(&config, repo, &pinned.tree)?);
    }
    match arguments.format {
        Format::Json => terminal::json(&json!(all.iter().map(described).collect::<Vec<_>>())),
        Format::Human | Format::Csv => terminal::exactly(&all.iter().map(text).collect::<String>()),
    }
    Ok(0)
}

fn proposed<'a>(config: &Config, repo: &'a Repo, tree: &Path) -> Result<Proposed<'a>> {
    let folder = Folder::open(tree)?;
    let entries = folder.walk()?;
    let files = entries.iter().filter(|entry| entry.kind == Kind::File);
    let paths: Vec<&str> = files.filter_map(|entry| entry.path.to_str()).collect();
    let roots = test_roots(paths.iter().copied().filter(|path| is_test_path(path, &[])));
    let globs = config.recube.context_exclude.iter();
    let globs: Vec<Regex> = globs.filter_map(|one| Regex::new(&glob::pattern(one)).ok()).collect();
    let is_shown = |path: &str| {
        !path.starts_with(".git/")
            && !is_test_path(path, &roots)
            && !globs.iter().any(|one| one.is_match(path))
    };
    let read = |ending: &str| -> BTreeMap<&str, String> {
        let wanted = paths.iter().filter(|path| path.ends_with(ending) && is_shown(path));
        let text = |path: &str| String::from_utf8(folder.read(Path::new(path), LONGEST as u64).ok()?).ok();
        wanted.filter_map(|path| Some((*path, text(path)?))).collect()
    };
    let (code, prose) = (read(".py"), read(".md"));
    if code.len() > MOST_FILES {
        let message = format!("{}: {} Python files are too many for a proposal", repo.slug, code.len());
        return Err(Error::repository(message).with_hint("name its parts by hand, as [[repo.scope]]"));
    }
    let code: BTreeMap<&str, &str> = code.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let prose: Vec<(&str, &str)> = prose.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let listed: Vec<(&str, &str)> = code.iter().map(|(path, text)| (*path, *text)).collect();
    let tokens = tokens::count(&pack(&prose, &[], &listed));
    let is_one = tokens.is_some_and(|tokens| tokens <= ONE_SCOPE);
    let scopes = if is_one { Vec::new() } else { propose(&code) };
    Ok(Proposed { repo, files: code.len(), tokens, scopes })
}

fn described(one: &Proposed<'_>) -> serde_json::Value {
    let scope = |scope: &Proposal| json!({ "name": scope.name, "paths": scope.paths, "files": scope.files });
    json!({
        "slug": one.repo.slug,
        "files": one.files,
        "tokens": one.tokens,
        "scopes": one.scopes.iter().map(scope).collect::<Vec<_>>(),
    })
}

/// Sections to paste below the repository's own.
fn text(one: &Proposed<'_>) -> String {
    let tokens = one.tokens.map_or_else(|| "an unknown number of".to_owned(), |tokens| tokens.to_string());
    let mut text = format!("# {}: {} Python files, {tokens} tokens", one.repo.slug, one.files);
    if one.scopes.len() < 2 {
        return text + ": the whole tree is one scope\n";
    }
    text.push('\n');
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    for scope in &one.scopes {
        let paths: Vec<String> = scope.paths.iter().map(|path| quoted(path)).collect();
        let (name, files) = (quoted(&scope.name), scope.files);
        let _ = write!(
            text,
            "\n[[repo.scope]]                      # {files} files\nname = {name}\npaths = [{}]\n",
            paths.join(", ")
        );
    }
    text + "\n"
}
