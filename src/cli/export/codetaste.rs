//! `gistmill export --to codetaste`.

use serde_json::json;

use super::ExportArguments;
use crate::cli::{Arguments, Format};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::export::Harness;
use crate::export::codetaste::{Known, files};
use crate::export::write::write_files;
use crate::terminal;
use crate::text::count;

/// Writes a dataset of refactorings in its authors' layout; no other family goes there, and it goes nowhere else.
pub(super) fn run(arguments: &Arguments, asked: &ExportArguments, dataset: &Dataset) -> Result<u8> {
    if asked.to != [Harness::Codetaste] {
        return Err(Error::usage(
            "a dataset of the family codetaste is exported to its authors' layout alone",
        )
        .with_hint("give --to codetaste"));
    }
    let mut instances = dataset.codetaste_instances()?;
    asked.selection.of_codetaste(&mut instances)?;
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
