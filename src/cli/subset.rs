//! `gistmill subset`: subsets of an existing dataset, without running anything.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::newest::DatasetArguments;
use super::{Arguments, Format};
use crate::config;
use crate::dataset::Dataset;
use crate::dataset::manifest::SubsetSummary;
use crate::dataset::schema::InstanceRow;
use crate::dataset::subsets;
use crate::error::{Error, Result};
use crate::record::family::Unit;
use crate::subset::Subset;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct SubsetArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// The subset to write: `top`, or the name of a [subset.<name>]; may be given several times; all by default
    #[arg(long, value_name = "NAME")]
    subset: Vec<String>,
    /// The configuration whose [subset.<name>] sections to use; without one there is only `top`
    #[arg(long, value_name = "repos.toml")]
    config: Option<PathBuf>,
    /// Where <name>.parquet and <name>.jsonl are written
    #[arg(long, default_value = "subsets", value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, subset: &SubsetArguments) -> Result<u8> {
    let configured = match &subset.config {
        Some(path) => config::load(path, &super::inputs::resolve)?.subsets,
        None => Vec::new(),
    };
    let wanted = config::named_subsets(&configured, &subset.subset)?;
    let dataset = Dataset::open_any(&subset.dataset.directory()?)?;
    let family = dataset.manifest.family;
    let foreign = wanted.iter().flat_map(|one| one.ranges.keys()).find(|measure| !measure.is_of(family));
    if let Some(measure) = foreign {
        let name = measure.as_str();
        return Err(Error::usage(format!(
            "instances of the family {} do not have the measurement `{name}`",
            family.as_str()
        ))
        .with_hint("docs/configuration.md says which measurements each family has"));
    }
    let described = match family.unit() {
        Unit::Group => written(&subset.output, &wanted, &dataset.instances()?)?,
        Unit::File => written(&subset.output, &wanted, &dataset.recube_instances()?)?,
        Unit::Pair => written(&subset.output, &wanted, &dataset.codetaste_instances()?)?,
    };
    match arguments.format {
        Format::Json => terminal::json(&json!({ "directory": subset.output, "subsets": described })),
        Format::Human | Format::Csv => {
            for one in &described {
                terminal::say(&line(one));
            }
            terminal::say(&format!("written to {}", subset.output.display()));
        }
    }
    Ok(0)
}

/// Writes subsets of these instances.
fn written<R: InstanceRow>(output: &Path, wanted: &[Subset], instances: &[R]) -> Result<Vec<SubsetSummary>> {
    subsets::remove(output, wanted)?;
    subsets::write(&fs_err::canonicalize(output)?, wanted, instances)?;
    Ok(wanted.iter().map(|one| SubsetSummary::new(one, instances)).collect())
}

/// One line about a subset.
pub(super) fn line(one: &SubsetSummary) -> String {
    let parts: Vec<String> = one.repositories.iter().map(|(slug, size)| format!("{slug} {size}")).collect();
    let of = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    terminal::one_line(&format!("subset {}: {}{of}", one.definition.name, count(one.size, "instance")))
        .into_owned()
}
