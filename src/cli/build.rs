//! `gistmill build`

use std::time::{Duration, Instant};

use serde_json::json;

use super::session::{self, cores};
use super::{Arguments, ConfigArguments, Format, spent, table};
use crate::config;
use crate::error::Result;
use crate::log;
use crate::pipeline::shards::Shards;
use crate::pipeline::{Built, Stage};
use crate::record::shard::Shard;
use crate::source;
use crate::terminal::{self, Volume};

#[derive(Debug, clap::Args)]
pub(super) struct BuildArguments {
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Stop after this stage
    #[arg(long, value_enum, default_value = "dataset")]
    pub until: Stage,
    #[command(flatten)]
    pub common: Common,
    /// Screen and trace part K of N of all groups, as one of many machines that share a cache; `merge` goes on from there
    #[arg(long, value_name = "K/N", conflicts_with = "until")]
    pub shard: Option<Shard>,
}

/// What building and merging have in common.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Common {
    /// Attempts that compute at the same time; all cores by default. Where attempts wait for something else, more of
    /// them are under way
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The named subset to write beside the whole: `top` or a [subset.<name>]; may be given several times; all by
    /// default
    #[arg(long, value_name = "NAME")]
    subset: Vec<String>,
    /// Leave the repositories' code out of the dataset: no trees, and no sources of tests, for those who may not pass it
    /// on
    #[arg(long)]
    no_trees: bool,
    /// Leave out hidden/, the edited tests that show what is not the original: for a dataset that is published. `score` takes
    /// them from --hidden
    #[arg(long)]
    no_hidden: bool,
    #[command(flatten)]
    ending: Ending,
}

/// What happens when a build ends.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Ending {
    /// Replace the dataset that exists, also with less (a repository failed, nothing is published) or with what is made of
    /// another commit
    #[arg(long)]
    replace: bool,
    /// Report when it ends where the time went, step by step; so does --verbose. The manifest has it in any case
    #[arg(long)]
    times: bool,
}

pub(super) fn run(arguments: &Arguments, build: &BuildArguments) -> Result<u8> {
    with(arguments, build, build.shard.map_or_else(Shards::default, Shards::Make))
}

/// A build that does this with shards.
pub(super) fn with(arguments: &Arguments, build: &BuildArguments, shards: Shards) -> Result<u8> {
    let started = Instant::now();
    let mut job = session::open(arguments, &build.config)?;
    let Common { jobs, subset, no_trees, no_hidden, ending } = &build.common;
    job.request.until = build.until;
    job.request.jobs = jobs.map_or_else(cores, usize::from);
    job.request.passes_code_on = !no_trees;
    job.request.with_hidden = !no_hidden;
    job.request.subsets = config::named_subsets(&job.config.subsets, subset)?;
    job.request.shards = shards;
    job.request.replace = ending.replace;
    let built = job.pipeline().run()?;
    tracing::info!("built: {} repositories, {} failed", built.finished.len(), built.failed.len());
    match arguments.format {
        Format::Human | Format::Csv => {
            table::closing(&built)?.print();
            if (ending.times || terminal::volume() == Volume::Verbose) && !built.finished.is_empty() {
                spent::summary(&job.progress.spent(), cores()).eprint();
            }
        }
        Format::Json => {
            let mut value = as_json(&built);
            value["spent"] = json!(job.progress.spent());
            terminal::json(&value);
        }
    }
    terminal::note(&format!("took {}", elapsed(started.elapsed())));
    if let Some(path) = log::path().filter(|_| !built.failed.is_empty()) {
        terminal::note(&format!("log: {}", path.display()));
    }
    Ok(u8::from(!built.failed.is_empty() || built.kept.is_some()))
}

/// `1 h 2 min 3 s`, `4.5 s`.
pub(super) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, seconds) => format!("{hours} h {minutes} min {seconds} s"),
    }
}

fn as_json(built: &Built) -> serde_json::Value {
    json!({
        "summary": built.summary,
        "kept": built.kept,
        "log": log::path(),
        "failed": built.failed,
        "found": built.finished.iter().map(|finished| (finished.slug.to_string(), json!(finished.found)))
            .collect::<serde_json::Map<_, _>>(),
        "warnings": built.finished.iter().filter_map(|finished| {
            let evidence = &finished.record.as_ref()?.evidence;
            let mut warnings = evidence.built.warnings();
            warnings.extend(source::secrets_warning(&evidence.pinned).ok().flatten());
            (!warnings.is_empty()).then(|| (finished.slug.to_string(), json!(warnings)))
        }).collect::<serde_json::Map<_, _>>(),
        "parity": built.finished.iter().filter_map(|finished| {
            let record = finished.record.as_ref()?;
            Some((finished.slug.to_string(), serde_json::to_value(&record.evidence.parity).ok()?))
        }).collect::<serde_json::Map<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = [4.54, 123.0, 3_723.9].map(|seconds| elapsed(Duration::from_secs_f64(seconds)));
        assert_eq!(said, ["4.5 s", "2 min 3 s", "1 h 2 min 3 s"]);
    }
}
