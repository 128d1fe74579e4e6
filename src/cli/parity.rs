//! `gistmill parity`: do the local sandbox and containers give the same verdicts?

use super::session;
use super::{Arguments, ConfigArguments, ConfigPlace, Format, IsolationArguments, parse_slug};
use crate::config::BackendKind;
use crate::error::{Error, Result};
use crate::parity::{self, Parity};
use crate::record::id::RepoSlug;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct ParityArguments {
    /// The repository
    #[arg(value_name = "SLUG", value_parser = parse_slug)]
    slug: RepoSlug,
    #[command(flatten)]
    config: ConfigPlace,
    #[command(flatten)]
    isolation: IsolationArguments,
}

pub(super) fn run(arguments: &Arguments, asked: &ParityArguments) -> Result<u8> {
    let config = ConfigArguments {
        config: asked.config.clone(),
        isolation: asked.isolation,
        only: vec![asked.slug.clone()],
        ..ConfigArguments::default()
    };
    let job = |kind| {
        session::with(arguments, &config, |config| {
            config.repos.retain(|repo| repo.slug == asked.slug);
            for repo in &mut config.repos {
                repo.backend = kind;
            }
        })
    };
    let (local, docker) = (job(BackendKind::Local)?, job(BackendKind::Docker)?);
    let (at_local, at_docker) = (local.pipeline(), docker.pipeline());
    let missing = || Error::internal("the repository is gone from the configuration");
    let of_local = local.config.repos.first().ok_or_else(missing)?;
    let of_docker = docker.config.repos.first().ok_or_else(missing)?;
    let found = parity::compare((&at_local, of_local), (&at_docker, of_docker))?;
    match arguments.format {
        Format::Json => terminal::json(&serde_json::json!(found)),
        Format::Human | Format::Csv => print(&found),
    }
    Ok(u8::from(found.differing.iter().any(|one| !one.explained)))
}

fn print(found: &Parity) {
    for (name, side) in [("local", &found.local), ("docker", &found.docker)] {
        terminal::say(&format!(
            "{name:<6}  Python {}, pytest {}, lock {}: {}, {} kept",
            side.python,
            side.pytest,
            &side.lock_sha256[..12.min(side.lock_sha256.len())],
            count(side.groups, "group"),
            side.kept
        ));
    }
    let unexplained = found.differing.iter().filter(|one| !one.explained).count();
    terminal::say(&format!(
        "{} compared, {} differ, {unexplained} unexplained",
        found.compared,
        found.differing.len()
    ));
    for one in &found.differing {
        let group = terminal::one_line(&one.group_id);
        terminal::say(&format!("\n{group}\n  local:  {}\n  docker: {}", one.local, one.docker));
        for line in one.reason.lines() {
            terminal::say(&format!("  {line}"));
        }
    }
}
