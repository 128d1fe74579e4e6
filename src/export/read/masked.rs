//! Masked files of a dataset as tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Wanted, environment, image_named, limit, of_tasks, options};
use crate::dataset::recube::RecubeInstance;
use crate::dataset::{Dataset, trees};
use crate::error::{Error, Result};
use crate::export::masked::MaskedImage;
use crate::export::{Collection, Environment, masked, settings};
use crate::family::Running;
use crate::family::recube::graph::graph;
use crate::family::recube::task::MaskedFile;
use crate::record::id::{RepoSlug, sha256_hex};
use crate::record::task::Demand;
use crate::record::trace::check_path;

/// What is read of the trees: bytes by path, by slug.
type Trees = BTreeMap<RepoSlug, BTreeMap<String, Vec<u8>>>;

/// Masked files of a dataset as tasks.
///
/// # Errors
/// Usage errors: the dataset is damaged, has no instance, or came without code.
pub(crate) fn collection(
    dataset: &Dataset,
    instances: &[RecubeInstance],
    wanted: &Wanted<'_>,
) -> Result<Collection> {
    let manifest = &dataset.manifest;
    if instances.is_empty() {
        return Err(Error::usage(format!("{} has no instance", dataset.directory.display())));
    }
    let (folder, images) = (dataset.folder()?, dataset.images()?);
    let (demands, contexts, trees) =
        (dataset.demands()?, dataset.recube_contexts()?, trees(dataset, instances, wanted.with_graph)?);
    let cases = dataset.judging_cases()?;
    let mut environments: BTreeMap<RepoSlug, Environment> = BTreeMap::new();
    let (mut tasks, mut images_of_tasks) = (Vec::new(), masked::MaskedImages::new());
    for one in instances {
        let (slug, id) = (&one.head.slug, one.head.instance_id.as_str());
        if !environments.contains_key(slug) {
            let image = image_named(dataset, &one.head, one.image.as_deref())?;
            environments
                .insert(slug.clone(), environment(dataset, (&folder, &images), (slug, image), wanted)?);
        }
        let tree = trees.get(slug).ok_or_else(|| without_code(slug))?;
        let masked = one.masked.as_deref().ok_or_else(|| without_code(slug))?;
        let original = tree.get(&one.target).ok_or_else(|| without_code(slug))?;
        check(one, original, masked)?;
        let own = cases.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut groups: Vec<&str> = own.iter().map(|case| case.group_id.as_str()).collect();
        groups.dedup();
        let of_group = |group: &&str| demands.get(&(slug.to_string(), (*group).to_owned())).copied();
        let demand = groups.iter().filter_map(of_group).fold(Demand::default(), Demand::max);
        let restored = one.hidden_files.iter().filter(|path| !path.ends_with(".pyc"));
        let restored = restored.filter_map(|path| Some((path.clone(), tree.get(path)?.clone())));
        let with_tools = masked::with_tools(&one.prompt);
        let file = MaskedFile {
            head: &one.head,
            target: &one.target,
            masked,
            tier: one.tier.as_str(),
            prompt: if wanted.with_graph { &with_tools } else { &one.prompt },
            command: &one.entry_command,
            image: one.image.as_deref(),
            groups,
            cases: &one.fail_to_pass,
            attempts: one.attempts,
            flake_bound: one.flake_bound,
            hidden: &one.hidden_files,
            restored: restored.collect(),
            context: contexts.get(id).map(|context| (context.as_str(), one.context_tokens)),
        };
        let task = file.task(Running {
            options: options(dataset, slug),
            variables: environments[slug].variables.clone(),
            limit: settings::limit(limit(&manifest.config), demand.slowest),
            demand,
            gold: (!wanted.settings.without_solutions).then(|| original.clone()),
            ..Running::default()
        })?;
        let graph = wanted.with_graph.then(|| graph_of(one, tree, masked)).transpose()?;
        let image = MaskedImage::new(&task, &environments[slug].image, graph);
        images_of_tasks.extend(image.map(|image| (task.id.clone(), image)));
        tasks.push(task);
    }
    Ok(Collection { masked: images_of_tasks, ..of_tasks(dataset, tasks, environments, wanted) })
}

/// The graph of what an agent sees, as JSON.
fn graph_of(one: &RecubeInstance, tree: &BTreeMap<String, Vec<u8>>, mask: &str) -> Result<Vec<u8>> {
    let hidden: BTreeSet<&String> = one.hidden_files.iter().collect();
    let is_shown = |path: &&String| path.ends_with(".py") && !hidden.contains(path);
    let shown = tree.iter().filter(|(path, _)| is_shown(path));
    let texts = shown.filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)));
    let mut texts: BTreeMap<&str, &str> = texts.collect();
    texts.insert(&one.target, mask);
    serde_json::to_vec(&graph(&one.target, &texts))
        .map_err(|error| Error::internal("cannot encode a graph").with_source(error))
}

fn without_code(slug: &RepoSlug) -> Error {
    Error::usage(format!("the dataset does not have the code of {slug}")).with_hint(
        "images of masked files need the tree: build without `--no-trees`, or copy the dataset with its folder `trees`",
    )
}

/// The files that are named have to be those of the dataset, and nowhere else.
fn check(one: &RecubeInstance, original: &[u8], masked: &str) -> Result<()> {
    let id = &one.head.instance_id;
    for path in one.hidden_files.iter().chain([&one.target]) {
        check_path(path).map_err(|why| Error::usage(format!("{id}: {why}")))?;
    }
    let is_whole =
        sha256_hex(original) == one.original_sha256 && sha256_hex(masked.as_bytes()) == one.masked_sha256;
    if is_whole {
        return Ok(());
    }
    Err(Error::usage(format!("{id}: its mask or its original is not the one that its hash is of"))
        .with_hint("`gistmill verify` says what was changed; copy the dataset again"))
}

/// Targets and hidden files of the trees; with `code` all Python files too.
fn trees(dataset: &Dataset, instances: &[RecubeInstance], code: bool) -> Result<Trees> {
    let mut wanted: BTreeMap<&RepoSlug, BTreeSet<&str>> = BTreeMap::new();
    for one in instances {
        let files = wanted.entry(&one.head.slug).or_default();
        files.extend(one.hidden_files.iter().chain([&one.target]).map(String::as_str));
    }
    let mut trees = Trees::new();
    for (slug, files) in wanted {
        if !dataset.folder()?.has_file(Path::new(&trees::place(slug))) {
            continue;
        }
        let read = trees::bytes(dataset, slug.as_str(), |path| {
            files.contains(path) || code && path.ends_with(".py")
        })?;
        trees.extend(read.map(|read| (slug.clone(), read.into_iter().collect())));
    }
    Ok(trees)
}
