//! `gistmill export --to codetaste`.

use serde_json::json;

use super::ExportArguments;
use crate::cli::{Arguments, Format};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::export::Harness;
use crate::export::codetaste::{Known, files};
use crate::export::read::refactorings::Told;
use crate::export::write::write_files;
use crate::family::codetaste::prompt::Mode;
use crate::terminal;
use crate::text::count;

/// Refuses what goes with refactorings alone.
pub(super) fn refuse_options(asked: &ExportArguments) -> Result<()> {
    if asked.to.contains(&Harness::Codetaste) {
        return Err(Error::usage("only datasets of the family codetaste are exported to codetaste"));
    }
    let options = [
        ("--track", asked.track.is_some()),
        ("--mode", asked.mode.is_some()),
        ("--allow-leak", asked.allow_leak),
    ];
    match options.iter().find(|(_, is_asked)| *is_asked) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Error::usage(format!("{option} goes with datasets of the family codetaste")))
        }
    }
}

/// What agents are asked.
///
/// # Errors
/// A usage error: a harness that has one agent for a task cannot have several.
pub(super) fn told(asked: &ExportArguments) -> Result<Told> {
    let mode = asked.mode.unwrap_or_default();
    let can = |harness: &&Harness| match harness {
        Harness::Prompts | Harness::Codetaste => true,
        // Its tasks have steps; who chooses between plans is not one of them.
        Harness::Harbor => mode != Mode::Multiplan,
        Harness::Inspect
        | Harness::Verifiers
        | Harness::SweBench
        | Harness::MiniSweAgent
        | Harness::SweAgent => mode == Mode::Direct,
    };
    if let Some(harness) = asked.to.iter().find(|harness| !can(harness)) {
        let name = clap::ValueEnum::to_possible_value(harness);
        let name = name.map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Error::usage(format!("--mode {} cannot be exported to {name}", mode.as_str()))
            .with_hint("--to prompts writes the texts of every mode, one for each agent and for the judge"));
    }
    Ok(Told { track: asked.track.unwrap_or_default(), mode, allow_leak: asked.allow_leak })
}

/// Writes a dataset of refactorings in its authors' layout, which no other harness shares a folder with.
pub(super) fn run(arguments: &Arguments, asked: &ExportArguments, dataset: &Dataset) -> Result<u8> {
    if asked.to != [Harness::Codetaste] {
        return Err(Error::usage(
            "the authors' layout has what judges, and shares no folder with other harnesses",
        )
        .with_hint("give --to codetaste alone"));
    }
    let instances = asked.selection.of(dataset, Dataset::codetaste_instances)?;
    let hidden = dataset.hidden_pairs(asked.hidden.as_deref())?;
    let runs = dataset.suite_runs()?;
    let mut all = Vec::new();
    for instance in &instances {
        let id = instance.head.instance_id.as_str();
        let lacks = || Error::usage(format!("hidden/ has nothing of {id}"));
        let hidden = hidden.get(id).ok_or_else(lacks)?;
        all.push(Known { instance, hidden, runs: runs.get(id).map(Vec::as_slice).unwrap_or_default() });
    }
    write_files(&asked.output, &files(&all))?;
    let without = all.iter().filter(|one| one.hidden.opengrep.is_empty()).count();
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "directory": asked.output, "instances": all.len(), "without_opengrep_patterns": without,
        })),
        Format::Human | Format::Csv => {
            let instances = count(all.len(), "instance");
            terminal::say(&format!(
                "{instances} in {}: not for agents, it has what judges them",
                asked.output.display()
            ));
        }
    }
    if without > 0 {
        terminal::warn(&format!(
            "{} of {} no pattern in the form that the authors' engine reads",
            without,
            if without == 1 { "the instances has" } else { "the instances have" }
        ));
    }
    Ok(0)
}
