//! `gistmill replay`: one group once more in a world, and what it shows there against the base world.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::build::Job;
use super::{Arguments, ConfigArguments, Format, parse_slug};
use crate::backend::local::Strictness;
use crate::error::{Error, Result};
use crate::pipeline::replay::Replay;
use crate::record::collected::Group;
use crate::record::id::RepoSlug;
use crate::record::outcome::Attempt;
use crate::record::world::World;
use crate::screen::verdict;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArguments {
    /// A group id, or a part of one that no other group has
    #[arg(value_name = "GROUP", value_parser = NonEmptyStringValueParser::new())]
    group: String,
    /// base, everything, dimensions joined by `+` (`time-zone`, `locale+clock`), or `hash-seed-1` and so on
    #[arg(long, value_parser = World::parse, default_value = "everything")]
    world: World,
    /// How often
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// The configuration of the build
    #[arg(long, value_name = "repos.toml")]
    config: Option<PathBuf>,
    /// The repository of the group, where the configuration has several
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Option<RepoSlug>,
    /// What to do on a machine that does not allow all of the sandbox
    #[arg(long, value_enum, default_value_t)]
    isolation: Strictness,
}

pub(super) fn run(arguments: &Arguments, replay: &ReplayArguments) -> Result<u8> {
    let config = ConfigArguments {
        config: replay.config.clone(),
        rules: None,
        isolation: replay.isolation,
        output: PathBuf::from("output"),
        only: replay.only.clone().into_iter().collect(),
    };
    let job = Job::new(arguments, &config)?;
    let pipeline = job.pipeline();
    let mut failed = None;
    let mut prepared = Vec::new();
    let selected = |repo: &&crate::config::Repo| replay.only.as_ref().is_none_or(|only| *only == repo.slug);
    for repo in job.config.repos.iter().filter(selected) {
        match Replay::prepare(&pipeline, repo) {
            Ok(one) => {
                if let Some(group) = one.exact(&replay.group) {
                    return show(arguments, replay, &one, group);
                }
                prepared.push(one);
            }
            Err(error) => failed = Some(error.at(&repo.slug)),
        }
    }
    let found: Vec<(&Replay, &Group)> = prepared
        .iter()
        .flat_map(|one| one.find(&replay.group).into_iter().map(move |group| (one, group)))
        .collect();
    match found.as_slice() {
        [(one, group)] => show(arguments, replay, one, group),
        [] => Err(failed.unwrap_or_else(|| {
            Error::usage(format!("no repository of the configuration has a group `{}`", replay.group))
                .with_hint("name the configuration of the build with --config")
        })),
        several => {
            let names: Vec<&str> =
                several.iter().take(10).map(|(_, group)| group.group_id.as_str()).collect();
            Err(Error::usage(format!("`{}` could be one of {} groups", replay.group, several.len()))
                .with_detail(names.join("\n"))
                .with_hint("give the whole id, and the repository with --only"))
        }
    }
}

fn show(arguments: &Arguments, replay: &ReplayArguments, one: &Replay, group: &Group) -> Result<u8> {
    let base = one.run(group, &World::Base, 1)?;
    let made = if replay.world == World::Base && replay.times == 1 {
        base.clone()
    } else {
        one.run(group, &replay.world, replay.times)?
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
    let same = |attempt: &Attempt| replay.agree(attempt, base);
    for attempt in made {
        terminal::say(&format!(
            "{}#{}: {} ({})",
            attempt.world,
            attempt.number,
            terminal::one_line(&verdict::describe(attempt)),
            if same(attempt) { "as in the base world" } else { "not as in the base world" }
        ));
    }
    let differing = made.iter().find(|attempt| !same(attempt));
    let shown = match differing {
        Some(attempt) => verdict::observation_diff(base, attempt),
        None => made.first().map(verdict::render).unwrap_or_default(),
    };
    terminal::say(shown.trim_end_matches('\n'));
}
