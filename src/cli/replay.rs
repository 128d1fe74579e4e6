//! `gistmill replay`: one group once more in a world, and what it shows there against the base world.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::inputs::Inputs;
use super::restored::{self, GivenArguments};
use super::session;
use super::{Arguments, ConfigArguments, ConfigPlace, Format, IsolationArguments, newest, parse_slug};
use crate::backend::local::Strictness;
use crate::config::{Config, Repo};
use crate::dataset::Dataset;
use crate::dataset::query::{self, FoundGroup};
use crate::error::{Error, Result};
use crate::pipeline::replay::Replay;
use crate::record::collected::Group;
use crate::record::id::RepoSlug;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::screen::verdict;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// A group ID, or a part of one that no other group has; or an instance or case ID of the dataset that was built
    #[arg(value_name = "GROUP", value_parser = NonEmptyStringValueParser::new())]
    group: String,
    /// By default everything, with --masked base. base, everything, dimensions joined by `+` (`time-zone`, `locale+clock`), or `hash-seed-1` and so on
    #[arg(long, value_parser = World::parse)]
    world: Option<World>,
    /// With the mask in the place of this file of the tree
    #[arg(long, value_name = "TARGET")]
    masked: Option<String>,
    /// How often
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    #[command(flatten)]
    pub(super) config: ConfigPlace,
    /// In the environment of this dataset, without a configuration: the directory `<name>/<version>`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["place", "config"])]
    dataset: Option<PathBuf>,
    #[command(flatten)]
    given: GivenArguments,
    /// The repository of the group, where the configuration has several
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Option<RepoSlug>,
    #[command(flatten)]
    isolation: IsolationArguments,
}

pub(super) fn run(arguments: &Arguments, replay: &ReplayArguments) -> Result<u8> {
    if let Some(directory) = &replay.dataset {
        let asked = (directory.as_path(), replay.group.as_str(), replay.only.as_ref());
        let given = (&replay.given, replay.isolation.isolation);
        return in_dataset(arguments, asked, given, |one, group| show(arguments, replay, one, group));
    }
    if replay.given.are_given() {
        return Err(Error::usage("--source, --variable and --containers go with --dataset")
            .with_hint("name the dataset, or set these things in the configuration"));
    }
    let config = ConfigArguments {
        config: replay.config.clone(),
        isolation: replay.isolation,
        only: replay.only.clone().into_iter().collect(),
        ..ConfigArguments::default()
    };
    let job = session::open(arguments, &config)?;
    let known = known(&job.config, &replay.group);
    if known.is_none() && replay.only.is_none() && Inputs::choose(&config).are_built_in() {
        let unknown = format!(
            "no dataset of the built-in configuration has just one test `{}`, and there is no repos.toml here",
            replay.group
        );
        return Err(Error::usage(unknown)
            .with_hint("name the dataset with --dataset DIR, or its configuration with --config FILE"));
    }
    let group = known.as_ref().map_or(replay.group.as_str(), |(_, group)| group);
    let pipeline = job.pipeline();
    let mut failed = None;
    let mut prepared = Vec::new();
    for repo in selected(&job.config, replay.only.as_ref(), known.as_ref().map(|(slug, _)| slug.as_str())) {
        match Replay::prepare(&pipeline, repo) {
            Ok(one) => {
                if let Some(group) = one.exact(group) {
                    return show(arguments, replay, &one, group);
                }
                prepared.push(one);
            }
            Err(error) => failed = Some(error.at(&repo.slug)),
        }
    }
    let found: Vec<(&Replay, &Group)> =
        prepared.iter().flat_map(|one| one.find(group).into_iter().map(move |group| (one, group))).collect();
    match found.as_slice() {
        [(one, group)] => show(arguments, replay, one, group),
        [] => Err(failed.unwrap_or_else(|| {
            Error::usage(format!("no repository of the configuration has a group `{}`", replay.group))
                .with_hint("name the configuration of the build with --config")
        })),
        several => {
            let names: Vec<&str> =
                several.iter().take(10).map(|(_, group)| group.group_id.as_str()).collect();
            Err(ambiguous(&replay.group, several.len(), &names))
        }
    }
}

/// Prepares the repository of a group of a dataset, for which nothing but the dataset is needed, and does something with it.
pub(super) fn in_dataset(
    arguments: &Arguments,
    (directory, name, only): (&Path, &str, Option<&RepoSlug>),
    (given, isolation): (&GivenArguments, Strictness),
    then: impl FnOnce(&Replay, &Group) -> Result<u8>,
) -> Result<u8> {
    let answer = query::find(directory, name)?;
    let of_repo = |found: &&FoundGroup| only.is_none_or(|slug| found.slug == slug.as_str());
    let found: Vec<&FoundGroup> = answer.found.iter().filter(of_repo).collect();
    let [one] = found.as_slice() else {
        let names: Vec<&str> = found.iter().take(10).map(|one| one.group_id.as_str()).collect();
        if names.is_empty() {
            let hint = match answer.nearest.as_slice() {
                [] => "`gistmill list` shows what the dataset has".to_owned(),
                near => format!("did you mean {}?", near.join(", ")),
            };
            return Err(Error::usage(format!("the dataset has no group `{name}`")).with_hint(hint));
        }
        return Err(ambiguous(name, found.len(), &names));
    };
    let slug = RepoSlug::new(&one.slug).map_err(|error| Error::usage(error.to_string()))?;
    let dataset = Dataset::open_any(directory)?;
    let slugs = BTreeSet::from([slug]);
    let job = given.session(arguments, &dataset, &slugs, isolation)?;
    let repo = job.config.repos.first().ok_or_else(|| {
        Error::usage(format!("manifest.json has no configuration of {}: nothing of it can be run", one.slug))
    })?;
    let pipeline = job.pipeline();
    let prepared = Replay::prepare(&pipeline, repo)?;
    restored::check(&dataset, prepared.prepared())?;
    let group = prepared.exact(&one.group_id).ok_or_else(|| {
        Error::machine(format!("{} is not collected here, as it was for the dataset", one.group_id))
            .with_hint("`gistmill verify` says what differs")
    })?;
    then(&prepared, group)
}

fn ambiguous(name: &str, number: usize, names: &[&str]) -> Error {
    Error::usage(format!("`{name}` could be one of {number} groups"))
        .with_detail(names.join("\n"))
        .with_hint("give the whole id, and the repository with --only")
}

/// Repository and group that a dataset of this configuration knows under that name, where it is the only one: other
/// repositories need not be built to look for it.
fn known(config: &Config, name: &str) -> Option<(String, String)> {
    let built = newest::default_place(config.dataset.name.as_str(), config.dataset.version.as_str());
    // Without a dataset, or with one that cannot be read, every repository is looked into.
    let answer = query::find(&built, name).ok()?;
    match answer.found.as_slice() {
        [one] => Some((one.slug.clone(), one.group_id.clone())),
        _ => None,
    }
}

/// Repositories to look into: the one that is asked for, else the one that is known to have the group, else all.
fn selected<'c>(
    config: &'c Config,
    only: Option<&'c RepoSlug>,
    known: Option<&str>,
) -> impl Iterator<Item = &'c Repo> {
    let wanted = only.map(RepoSlug::as_str).or(known).map(str::to_owned);
    let is_there = config.repos.iter().any(|repo| Some(repo.slug.as_str()) == wanted.as_deref());
    let wanted = wanted.filter(|_| is_there);
    config.repos.iter().filter(move |repo| wanted.as_ref().is_none_or(|slug| repo.slug.as_str() == slug))
}

fn show(arguments: &Arguments, replay: &ReplayArguments, one: &Replay, group: &Group) -> Result<u8> {
    let base = one.run(group, &World::Base, 1)?;
    let otherwise = if replay.masked.is_some() { World::Base } else { World::Everything };
    let world = replay.world.as_ref().unwrap_or(&otherwise);
    let made = match &replay.masked {
        Some(target) => one.run_masked(&arguments.cache()?, target, group, (world, replay.times))?,
        None if *world == World::Base && replay.times == 1 => base.clone(),
        None => one.run(group, world, replay.times)?,
    };
    let reference = base.first().ok_or_else(|| Error::internal("an attempt gave no result"))?;
    print(arguments, one, reference, &made);
    Ok(0)
}

fn print(arguments: &Arguments, replay: &Replay, base: &Attempt, made: &[Attempt]) {
    if arguments.format == Format::Json {
        terminal::json(&json!({ "base": base, "attempts": made }));
        return;
    }
    terminal::say(&text(base, made, |one, other| replay.agree(one, other)));
}

/// A line for each attempt, how many different results several of them show, and a difference: between two of them if
/// they differ, else from the base world.
fn text(base: &Attempt, made: &[Attempt], agree: impl Fn(&Attempt, &Attempt) -> bool) -> String {
    let mut lines = Vec::new();
    let mut results: Vec<&Attempt> = Vec::new();
    for attempt in made {
        let name = format!("{}#{}", attempt.world, attempt.number);
        let is_same = agree(attempt, base);
        let described = verdict::describe(attempt);
        let described = terminal::one_line(&described);
        let against = if is_same { "as in the base world" } else { "not as in the base world" };
        lines.push(format!("{name}: {described} ({against})"));
        if !results.iter().any(|known| agree(known, attempt)) {
            results.push(attempt);
        }
    }
    if made.len() > 1 {
        let attempts = count(made.len(), "attempt");
        lines.push(match results.len() {
            1 => format!("{attempts} with the same result"),
            several => format!("{attempts} with {several} different results"),
        });
    }
    let shown = match results.as_slice() {
        [one, other, ..] => verdict::observation_diff(one, other),
        [one] if !agree(one, base) => verdict::observation_diff(base, one),
        [one] => verdict::render(one),
        [] => String::new(),
    };
    lines.push(shown.trim_end_matches('\n').to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::{Compare, Method, Outcome};
    use crate::testing::attempts::attempt;

    #[test]
    fn repeats_that_differ_among_each_other_are_counted_and_shown() {
        let one = |world: &World, number: u32, stdout: &str| Attempt {
            number,
            ..attempt(world, Method::Fork, 0, Outcome::Passed, stdout)
        };
        let base = one(&World::Base, 0, "base\n");
        let said = |world: &World, outputs: &[&str]| {
            let made: Vec<Attempt> =
                (0..).zip(outputs).map(|(number, stdout)| one(world, number, stdout)).collect();
            let compare = Compare::Output;
            text(&base, &made, |one, other| one.shown(compare) == other.shown(compare))
        };
        let everything = World::Everything;
        let differ = said(&everything, &["a\n", "a\n", "b\n", "c\n"]);
        assert!(differ.contains("\n4 attempts with 3 different results\n"), "{differ}");
        assert!(differ.contains("--- everything#0\n+++ everything#2\n"), "{differ}");
        let same = said(&everything, &["a\n", "a\n"]);
        assert!(same.contains("everything#1: 1 passed (not as in the base world)\n"), "{same}");
        assert!(same.contains("\n2 attempts with the same result\n"), "{same}");
        assert!(same.contains("--- base#0\n+++ everything#0\n"), "{same}");
        let alone = said(&everything, &["a\n"]);
        assert!(alone.contains("+++ everything#0") && !alone.contains("result"), "{alone}");
        let steady = said(&World::Base, &["base\n", "base\n"]);
        assert!(steady.contains("(as in the base world)") && !steady.contains("---"), "{steady}");
    }

    #[test]
    fn only_the_repository_that_has_the_group_is_looked_into() {
        let config =
            crate::config::parse(crate::config::DEFAULT, std::path::Path::new("."), &|_, _| None).unwrap();
        let requests = RepoSlug::new("psf/requests").unwrap();
        let slugs = |only: Option<&RepoSlug>, known: Option<&str>| -> Vec<String> {
            selected(&config, only, known).map(|repo| repo.slug.to_string()).collect()
        };
        assert_eq!(slugs(None, Some("pallets/flask")), ["pallets/flask"]);
        assert_eq!(slugs(Some(&requests), Some("pallets/flask")), ["psf/requests"], "what is asked for wins");
        assert_eq!(slugs(None, None).len(), 2);
        assert_eq!(slugs(None, Some("gone/away")).len(), 2, "the configuration has changed since");
    }
}
