//! `gistmill export`: a dataset as the files of the harnesses that people have.

mod codetaste;
mod files;
mod receipt;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;

use self::receipt::Receipt;
use super::newest::DatasetArguments;
use super::selection::Selection;
use super::{Arguments, Format};
use crate::dataset::Dataset;
use crate::dataset::recube::RecubeInstance;
use crate::document;
use crate::error::{Error, Result};
use crate::export::read::{self, OtherPrompt, Wanted};
use crate::export::{Collection, Harness, write};
use crate::family::codetaste::prompt::{Mode, Track};
use crate::family::gistify::prompt::Template;
use crate::family::recube::leaks::is_apart;
use crate::record::family::{Family, Unit};
use crate::record::prompt::{ExecutionSetting, Strategy, Tool};
use crate::registry::ImagePlace;
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct ExportArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// The harness to write for, or several with commas between: one directory serves them all
    #[arg(long, value_enum, required = true, value_name = "HARNESS", value_delimiter = ',')]
    to: Vec<Harness>,
    /// Where to write; may hold an export of the same instances
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// The folder `hidden` of the dataset's build, where the dataset was published without it
    #[arg(long, value_name = "DIR")]
    hidden: Option<PathBuf>,
    /// Where the images that `gistmill image push` pushed are mirrored, if not where it pushed them
    #[arg(long, value_name = "PREFIX")]
    registry: Option<String>,
    /// Which images, where `gistmill image push` pushed those of several architectures: amd64, arm64
    #[arg(long, value_name = "ARCHITECTURE")]
    architecture: Option<String>,
    #[command(flatten)]
    files: files::FileArguments,
    /// Another prompt than the dataset's: what the agent may run
    #[arg(long, value_enum)]
    execution: Option<ExecutionSetting>,
    /// Another prompt: how the agent should go about it
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
    /// Another prompt: with the source of the test in it
    #[arg(long)]
    test_in_prompt: bool,
    /// Another prompt: a template of your own, with the slots of the built-in one
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Put commands for the agent into the images, all of them or `--tools=trace,search`, and name them in the prompt
    #[arg(long, value_enum, value_name = "TOOLS", num_args = 0.., require_equals = true, value_delimiter = ',')]
    tools: Option<Vec<Tool>>,
    /// Of masked files: what agents have; agent by default
    #[arg(long, value_enum, value_name = "SETTING")]
    setting: Option<AgentSetting>,
    /// Of refactorings: which description agents get; instructed by default
    #[arg(long, value_enum, value_name = "TRACK")]
    track: Option<Track>,
    /// Of refactorings: how agents go about it; direct by default
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<Mode>,
    /// Export refactorings although their descriptions have words or lines that only the golden patch adds
    #[arg(long)]
    allow_leak: bool,
    /// Have the judge of each task judge its solution, nothing and files that cheat, in its image; exit 1 where one is paid wrongly
    #[arg(long)]
    receipt: bool,
}

/// What an agent has beside a tree with a masked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AgentSetting {
    /// Nothing.
    Agent,
    /// A graph of the tree, and commands that ask it.
    AgentCce,
}

pub(super) fn run(arguments: &Arguments, asked: &ExportArguments) -> Result<u8> {
    let directory = asked.dataset.directory()?;
    let harnesses: BTreeSet<Harness> = asked.to.iter().copied().collect();
    let settings = asked.files.settings(arguments.engine)?;
    if asked.receipt {
        receipt::check(&harnesses, &settings)?;
    }
    let any = Dataset::open_any(&directory)?;
    if any.manifest.family != Family::Codetaste {
        codetaste::refuse_options(asked)?;
    } else if asked.to.contains(&Harness::Codetaste) {
        return codetaste::run(arguments, asked, &any);
    }
    let dataset = any;
    // What others ask is refused where it is read.
    let is_refactoring = dataset.manifest.family == Family::Codetaste;
    let prompt = if is_refactoring { None } else { other_prompt(asked, &dataset)? };
    let registry = asked.registry.as_deref().map(ImagePlace::parse).transpose()?;
    let wanted = Wanted {
        prompt: prompt.as_ref(),
        hidden: asked.hidden.as_deref(),
        registry: registry.as_ref(),
        architecture: asked.architecture.as_deref(),
        settings,
        with_graph: asks_for_graph(asked, dataset.manifest.family)?,
    };
    let collection = match dataset.manifest.family.unit() {
        Unit::Group => {
            read::collection(&dataset, asked.selection.of(&dataset, Dataset::instances)?, &wanted)?
        }
        Unit::File => {
            refuse_other_prompts(asked, Family::Recube)?;
            let instances = asked.selection.of(&dataset, Dataset::recube_instances)?;
            warn_of_copies(&instances);
            read::masked::collection(&dataset, &instances, &wanted)?
        }
        Unit::Pair => {
            refuse_other_prompts(asked, Family::Codetaste)?;
            let told = codetaste::told(asked)?;
            read::refactorings::collection(
                &dataset,
                &asked.selection.of(&dataset, Dataset::codetaste_instances)?,
                (&wanted, told),
            )?
        }
    };
    let served = write::write(&asked.output, &dataset.directory, &collection, &harnesses)?;
    let receipt = asked.receipt.then(|| receipt::run(arguments, &asked.output, &collection)).transpose()?;
    print(arguments, asked, (&collection, dataset.manifest.family), (&served, receipt.as_ref()));
    Ok(u8::from(receipt.is_some_and(|receipt| !receipt.is_right)))
}

/// Says what was written, what of it cannot be built or judged, and what comes next.
fn print(
    arguments: &Arguments,
    asked: &ExportArguments,
    (collection, family): (&Collection, Family),
    (served, receipt): (&BTreeSet<Harness>, Option<&Receipt>),
) {
    let planted = collection.without_variants();
    if planted > 0 {
        terminal::warn(&format!(
            "{planted} of {} judged by three planted failures alone: their variants or their trees are not at hand",
            count(collection.tasks.len(), "task")
        ));
    }
    let alone = collection.without_other_input();
    if alone > 0 {
        terminal::warn_with_hint(
            &format!(
                "{alone} of {} judged by their own run alone, where a recorded answer is right: no other input of these commands is \
                 at hand",
                count(collection.commands(), "command")
            ),
            "name the folder `hidden` of the dataset's build with --hidden; what has the flag `constant` has none",
        );
    }
    if !collection.unsaid.is_empty() {
        terminal::warn(&format!(
            "{} left out, because the dataset does not say what they show in every attempt: {}",
            count(collection.unsaid.len(), "command"),
            terminal::one_line(&collection.unsaid.join(", "))
        ));
    }
    let unbuilt = collection.without_images();
    if !unbuilt.is_empty() {
        terminal::warn_with_hint(
            &format!(
                "no image of {} can be built here: the dataset has no tree or no recipe of it",
                unbuilt.join(", ")
            ),
            "`gistmill verify` says what is missing; copy the dataset again, or take images that were built elsewhere",
        );
    }
    let solved = collection.tasks.iter().filter(|task| task.has_solution()).count();
    match arguments.format {
        Format::Json => terminal::json(&json!({
            "directory": asked.output,
            "harnesses": served,
            "tasks": collection.tasks.len(),
            "solutions": solved,
            "without_variants": planted,
            "left_out": collection.unsaid,
            "by_own_run_alone": alone,
            "judged_by": collection.judged_by(),
            "receipt": receipt,
        })),
        Format::Human | Format::Csv => {
            let tasks = collection.tasks.len();
            terminal::say(&format!(
                "{}, {solved} with a solution, in {}",
                count(tasks, "task"),
                asked.output.display()
            ));
            terminal::say(match (family, collection.commands()) {
                (Family::Codetaste, _) => {
                    "judged there: by the suite's counts and machine-made patterns; `gistmill score` judges the rest"
                }
                (_, 0) => {
                    "judged there: by pytest alone, how each case ends; `gistmill score` judges the rest"
                }
                (_, commands) if commands == tasks => {
                    "judged there: by what the command shows, with other input too; `gistmill score` judges the rest"
                }
                _ => {
                    "judged there: by how each case of a test ends, or what a command shows; `gistmill score` judges the rest"
                }
            });
            let needs_images = served.iter().any(|format| *format != Harness::Prompts);
            if let Some(receipt) = receipt {
                receipt::print(receipt);
            } else if needs_images && unbuilt.len() < collection.environments.len() {
                terminal::say(&format!("next: sh {}", asked.output.join("images/build.sh").display()));
            }
            terminal::say(&format!("then: {} says how to run it", asked.output.join("README.md").display()));
        }
    }
}

/// Whether agents get a graph.
///
/// # Errors
/// A usage error: there are no agents, or no masked files.
fn asks_for_graph(asked: &ExportArguments, family: Family) -> Result<bool> {
    let Some(setting) = asked.setting else { return Ok(false) };
    if family != Family::Recube {
        return Err(Error::usage("--setting goes with datasets of the family recube"));
    }
    if asked.to.contains(&Harness::Prompts) {
        return Err(Error::usage(
            "--setting says what agents have, and prompts are for models without a machine",
        )
        .with_hint("export prompts without it: they are written for `full-context` and `full-context-cot`"));
    }
    Ok(setting == AgentSetting::AgentCce)
}

/// Options that are about tests alone.
fn refuse_other_prompts(asked: &ExportArguments, family: Family) -> Result<()> {
    let options = [
        ("--execution", asked.execution.is_some()),
        ("--strategy", asked.strategy.is_some()),
        ("--test-in-prompt", asked.test_in_prompt),
        ("--prompt", asked.prompt.is_some()),
        ("--tools", asked.tools.is_some()),
        ("--hidden", asked.hidden.is_some() && family == Family::Recube),
    ];
    let what = if family == Family::Recube { "masked files" } else { "refactorings" };
    let hint = if family == Family::Recube {
        "their prompts are the column `prompt`, and those of `--to prompts`"
    } else {
        "--track and --mode say what agents are asked"
    };
    match options.iter().find(|(_, is_asked)| *is_asked) {
        None => Ok(()),
        Some((option, _)) => Err(Error::usage(format!("{option} does not go with {what}")).with_hint(hint)),
    }
}

/// Says what images of tasks go without, because the original can be read there.
fn warn_of_copies(instances: &[RecubeInstance]) {
    let installed = |path: &&String| path.starts_with("venv/") && !is_apart(path);
    let copies: BTreeSet<&String> = instances.iter().flat_map(|one| &one.leaks).filter(installed).collect();
    if let Some(first) = copies.first() {
        terminal::warn(&format!(
            "images of tasks go without {} in which an original can be read, such as {}: what imports it there does not run",
            count(copies.len(), "installed file"),
            terminal::one_line(first)
        ));
    }
}

/// The prompt that the options ask for; none: the dataset's own.
fn other_prompt(asked: &ExportArguments, dataset: &Dataset) -> Result<Option<OtherPrompt>> {
    let own = dataset.manifest.prompt.as_ref();
    let is_asked = asked.execution.is_some()
        || asked.strategy.is_some()
        || asked.test_in_prompt
        || asked.tools.is_some()
        || asked.prompt.is_some();
    if !is_asked {
        return Ok(None);
    }
    let mut settings = own.map(|own| own.settings).unwrap_or_default();
    settings.execution = asked.execution.unwrap_or(settings.execution);
    settings.strategy = asked.strategy.unwrap_or(settings.strategy);
    settings.test_in_prompt |= asked.test_in_prompt;
    let template = match &asked.prompt {
        Some(path) => Template::new(document::read_text(path)?)?,
        None => Template::built_in()?,
    };
    let tools = match asked.tools.as_deref() {
        None => BTreeSet::new(),
        Some([]) => Tool::ALL.into(),
        Some(some) => some.iter().copied().collect(),
    };
    Ok(Some(OtherPrompt { template, settings, tools }))
}
