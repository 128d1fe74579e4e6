//! What is exported, read from a dataset. Nothing in it is believed: names are checked, files are read beneath it.

pub(crate) mod masked;
pub(crate) mod refactorings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::masked::MaskedImages;
use super::names::image;
use super::settings::{self, Settings};
use super::{Collection, Environment, Tools};
use crate::beneath::Folder;
use crate::dataset::images::Images;
use crate::dataset::{Dataset, trees};
use crate::document::units;
use crate::error::{Error, Result};
use crate::family::gistify::prompt::Template;
use crate::family::{Running, Sources};
use crate::record::id::RepoSlug;
use crate::record::instance::{Head, Instance};
use crate::record::prompt::{PromptSettings, Tool};
use crate::record::task::{Task, pytest_settings};
use crate::redact::REDACTED;
use crate::registry::ImagePlace;
use crate::score::Modules;
use crate::text::shell_quote;

/// Files of an environment that its image is built from.
const RECIPE: [&str; 4] =
    ["Dockerfile", "requirements.lock", "build-requirements.lock", "build-constraints.txt"];
/// Solutions of instances that are known to be right, by instance id.
const WITNESSES: &str = "witnesses";
/// Largest file of a recipe, and largest solution, in bytes.
const LARGEST: u64 = 64 << 20;
/// What a run may take where the dataset does not say.
const LIMIT: Duration = Duration::from_mins(5);

/// Prompts other than those of the dataset.
#[derive(Debug)]
pub(crate) struct OtherPrompt {
    pub(crate) template: Template,
    pub(crate) settings: PromptSettings,
    /// What the images hold beside their trees.
    pub(crate) tools: BTreeSet<Tool>,
}

/// What is wanted of an export beside its instances.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'w> {
    pub(crate) prompt: Option<&'w OtherPrompt>,
    /// Where variants of tests are, if not in the dataset.
    pub(crate) hidden: Option<&'w Path>,
    /// Where pushed images are mirrored, if not where they were pushed to.
    pub(crate) registry: Option<&'w ImagePlace>,
    /// Which images, where several architectures were pushed.
    pub(crate) architecture: Option<&'w str>,
    pub(crate) settings: Settings,
    /// Whether agents get a graph of the tree that they see.
    pub(crate) with_graph: bool,
}

/// Instances of a dataset as tasks.
///
/// # Errors
/// Usage errors: the dataset has another format, is damaged, or has no instance.
pub(crate) fn collection(
    dataset: &Dataset,
    instances: Vec<Instance>,
    wanted: &Wanted<'_>,
) -> Result<Collection> {
    let prompt = wanted.prompt;
    let manifest = &dataset.manifest;
    if instances.is_empty() {
        return Err(Error::usage(format!("{} has no instance", dataset.directory.display())));
    }
    let (unsaid, mut instances): (Vec<Instance>, Vec<Instance>) =
        instances.into_iter().partition(Instance::is_unsaid_command);
    let unsaid: Vec<String> = unsaid.into_iter().map(|one| one.instance_id.to_string()).collect();
    if instances.is_empty() {
        return Err(Error::usage(
            "the dataset does not say of any of these commands what it shows in every attempt",
        )
        .with_detail(unsaid.join("\n"))
        .with_hint("build it again with `compare = \"output\"` in [screen]"));
    }
    let folder = dataset.folder()?;
    let (mut tasks, mut environments) = (Vec::new(), BTreeMap::new());
    let mut variants = dataset.variants(wanted.hidden)?.unwrap_or_default();
    let (mut sources, images) = (BTreeMap::new(), dataset.images()?);
    let demands = dataset.demands()?;
    for instance in &mut instances {
        if let Some(other) = prompt {
            instance.prompt =
                instance.family.prompt(&other.template, &other.settings, &other.tools, instance)?;
        }
        if instance.prompt.is_empty() {
            return Err(Error::usage(format!("{}: the dataset has no prompts", dataset.directory.display()))
                .with_hint("build it again: what is in the cache is not run again"));
        }
        if !environments.contains_key(&instance.slug) {
            let image = image_of(dataset, instance)?;
            let environment = environment(dataset, (&folder, &images), (&instance.slug, image), wanted)?;
            environments.insert(instance.slug.clone(), environment);
            sources.insert(instance.slug.clone(), sources_of(dataset, &instance.slug)?);
        }
        let group = (instance.slug.to_string(), instance.group_id.clone());
        let demand = demands.get(&group).copied().unwrap_or_default();
        let has_gold = !wanted.settings.without_solutions;
        let witness = Path::new(WITNESSES).join(format!("{}.py", instance.instance_id));
        let running = Running {
            options: options(dataset, &instance.slug),
            variables: environments[&instance.slug].variables.clone(),
            limit: settings::limit(limit(&manifest.config), demand.slowest),
            demand,
            gold: if has_gold { folder.read_if_there(&witness, LARGEST)? } else { None },
            variants: variants.remove(&instance.instance_id).unwrap_or_default(),
            sources: sources[&instance.slug].clone(),
        };
        tasks.push(instance.family.task(instance, running)?);
    }
    let tools = prompt.filter(|other| !other.tools.is_empty()).map(|other| {
        let wanted = (&other.tools, other.settings.execution);
        Tools::new(dataset, wanted, (&instances, &tasks), &environments)
    });
    Ok(Collection {
        unsaid,
        tools: tools.transpose()?,
        sources: sources.into_iter().filter_map(|(slug, sources)| Some((slug, sources?))).collect(),
        ..of_tasks(dataset, tasks, environments, wanted)
    })
}

/// Tasks with what every family says of them.
fn of_tasks(
    dataset: &Dataset,
    tasks: Vec<Task>,
    environments: BTreeMap<RepoSlug, Environment>,
    wanted: &Wanted<'_>,
) -> Collection {
    Collection {
        unsaid: Vec::new(),
        masked: MaskedImages::new(),
        name: dataset.manifest.name.to_string(),
        version: dataset.manifest.version.to_string(),
        tasks,
        environments,
        tools: None,
        sources: BTreeMap::new(),
        settings: wanted.settings.clone(),
    }
}

/// The Python files of a repository, and its settings of pytest; none where the dataset has no tree of it.
fn sources_of(dataset: &Dataset, slug: &RepoSlug) -> Result<Option<Arc<Sources>>> {
    let wanted = |path: &str| path.ends_with(".py") || pytest_settings().any(|name| name == path);
    let Some(files) = trees::texts(dataset, slug.as_str(), wanted)? else { return Ok(None) };
    let files: BTreeMap<String, String> = files.into_iter().collect();
    let code = files.keys().filter(|path| path.ends_with(".py")).cloned().collect();
    Ok(Some(Arc::new(Sources { modules: Modules::of_files(&code, |_| false), files })))
}

fn environment(
    dataset: &Dataset,
    (folder, images): (&Folder, &Images),
    (slug, image): (&RepoSlug, String),
    wanted: &Wanted<'_>,
) -> Result<Environment> {
    let variables = variables(&dataset.manifest.config, slug);
    if let Some(pushed) = dataset.pushed(images, slug, wanted.architecture)? {
        let place = pushed.place()?;
        let place = wanted.registry.map_or_else(|| place.clone(), |registry| registry.below(place.name()));
        let image = checked_image(&format!("{place}@{}", pushed.digest))?;
        return Ok(Environment {
            image,
            is_pulled: true,
            recipe: BTreeMap::new(),
            has_tree: false,
            variables,
        });
    }
    if wanted.registry.is_some() || wanted.architecture.is_some() {
        return Err(Error::usage(format!(
            "no image of {slug} was pushed, so an export can name none in a registry"
        ))
        .with_hint(format!(
            "`gistmill image push {} --registry PREFIX` pushes them",
            shell_quote(&dataset.directory.to_string_lossy())
        )));
    }
    let mut recipe = BTreeMap::new();
    for name in RECIPE {
        let place = Path::new("environments").join(slug.file_name()).join(name);
        if let Some(bytes) = folder.read_if_there(&place, LARGEST)? {
            recipe.insert(name.to_owned(), bytes);
        }
    }
    Ok(Environment {
        image,
        is_pulled: false,
        recipe,
        has_tree: folder.has_file(Path::new(&trees::place(slug))),
        variables,
    })
}

/// What the image of an instance is called in an engine: as the dataset names it, else as an export's script does.
///
/// # Errors
/// Usage errors: what the dataset says is not a name.
pub(crate) fn image_of(dataset: &Dataset, instance: &Instance) -> Result<String> {
    image_named(dataset, instance, instance.image.as_deref())
}

/// What the image of an instance is called, by the columns that every family has.
///
/// # Errors
/// As for [`image_of`].
fn image_named(dataset: &Dataset, head: &Head, named: Option<&str>) -> Result<String> {
    match named {
        Some(image) => checked_image(image),
        None => Ok(image(&head.slug, &[dataset.environment(&head.slug)?.key.as_str(), &head.commit])),
    }
}

/// An image's name that is one argument and one line.
fn checked_image(image: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    if image.is_empty() || image.starts_with('-') || !image.chars().all(plain) {
        return Err(Error::usage(format!("{image:?} is not the name of an image")));
    }
    Ok(image.to_owned())
}

/// Options that keep plugins quiet which would reorder, retry or distribute.
fn options(dataset: &Dataset, slug: &RepoSlug) -> Vec<String> {
    let environment = dataset.manifest.environments.get(slug.as_str());
    environment.iter().flat_map(|one| &one.switched_off).flat_map(|plugin| plugin.options.clone()).collect()
}

/// The variables that are published with their values.
fn variables(config: &Value, slug: &RepoSlug) -> BTreeMap<String, String> {
    let repos = config["repos"].as_array().into_iter().flatten();
    let env = repos.filter(|repo| repo["slug"] == slug.as_str()).filter_map(|repo| repo["env"].as_object());
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    env.flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .filter(|(name, value)| is_name(name) && value != REDACTED)
        .collect()
}

fn limit(config: &Value) -> Duration {
    let written = config["screen"]["group_timeout"].as_str();
    written.and_then(|text| units::parse_duration(text).ok()).unwrap_or(LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_names_that_engines_take() {
        let name = |slug: &str| image(&RepoSlug::new(slug).unwrap(), &["key"]);
        assert!(
            name("Pallets/Flask").starts_with("gistmill-export/pallets-flask:"),
            "{}",
            name("Pallets/Flask")
        );
        assert!(name("a._b/-c_.d").starts_with("gistmill-export/a-b-c-d:"), "{}", name("a._b/-c_.d"));
        for bad in ["", "-v", "a b", "a\nRUN x", "a;b", "$(x)"] {
            assert!(checked_image(bad).is_err(), "{bad:?}");
        }
        assert!(checked_image("gistmill/a__b:0123").is_ok());
    }

    #[test]
    fn only_variables_that_are_published_are_set() {
        let config = serde_json::json!({"repos": [
            {"slug": "a/b", "env": {"MODE": "x y", "TOKEN": REDACTED, "1BAD": "x", "A;B": "x"}},
            {"slug": "a/c", "env": {"OTHER": "z"}},
        ]});
        let found = variables(&config, &RepoSlug::new("a/b").unwrap());
        assert_eq!(found, [("MODE".to_owned(), "x y".to_owned())].into());
        assert_eq!(limit(&serde_json::json!({"screen": {"group_timeout": "2m"}})), Duration::from_mins(2));
        assert_eq!(limit(&Value::Null), LIMIT);
    }
}
