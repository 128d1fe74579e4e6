//! `gistmill image push`: the images of a dataset's environments to a registry.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::super::newest::DatasetArguments;
use super::super::several::several;
use super::super::{Arguments, Format, parse_slug};
use crate::backend::docker::Engine;
use crate::backend::docker::login::Login;
use crate::backend::docker::push::{self, Local, Target};
use crate::dataset::Dataset;
use crate::dataset::images::{Images, PushedImage};
use crate::error::{Error, Result};
use crate::export::read;
use crate::progress::{Progress, Stage};
use crate::record::id::RepoSlug;
use crate::registry::{Answer, ImagePlace, Registries};
use crate::terminal;
use crate::text::{count, shell_quote};

#[derive(Debug, clap::Args)]
pub(super) struct PushArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// Where images go: the registry's host and a path, such as ghcr.io/me/datasets
    #[arg(long, value_name = "PREFIX")]
    registry: String,
    /// Only the image of this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = parse_slug)]
    only: Vec<RepoSlug>,
    /// How many are pushed at the same time, after the first
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(1..=16))]
    jobs: u8,
}

/// One image to push.
struct Wanted {
    slug: RepoSlug,
    image: Local,
    place: ImagePlace,
    tag: String,
}

/// What came of one.
struct Done {
    wanted: Wanted,
    digest: String,
    /// Whether the registry had it already.
    was_there: bool,
}

pub(super) fn run(arguments: &Arguments, asked: &PushArguments, engine: &Engine) -> Result<()> {
    let prefix = ImagePlace::parse(&asked.registry)?;
    let dataset = Dataset::open(&asked.dataset.directory()?)?;
    let wanted = wanted(&dataset, engine, &prefix, &asked.only)?;
    let login = Login::at(prefix.host(), engine.kind)?;
    let registries = Registries::new(&std::env::vars().collect(), Some(&prefix))?;
    let images = Mutex::new(dataset.images()?);
    let stage = Progress::for_terminal().stage("push", wanted.len() as u64);
    let one = |wanted: Wanted| -> Result<Done> {
        let known = { lock(&images).of.get(&wanted.slug).cloned().unwrap_or_default() };
        let known = known.into_iter().find(|one| {
            one.place == wanted.place.to_string() && one.tag == wanted.tag && one.image_id == wanted.image.id
        });
        if let Some(known) = known
            && [known.digest.as_str(), known.tag.as_str()].iter().all(|name| {
                registries.manifest(&wanted.place, name) == Answer::Manifest(known.digest.clone())
            })
        {
            stage.step();
            return Ok(Done { wanted, digest: known.digest, was_there: true });
        }
        let digest = sent(engine, &wanted, login.as_ref(), &stage)?;
        let mut images = lock(&images);
        images.add(&wanted.slug, pushed(&dataset, &wanted, &digest)?);
        // After each, so that an interrupted push goes on behind it.
        images.save(&dataset.directory)?;
        stage.step();
        Ok(Done { wanted, digest, was_there: false })
    };
    // Layers that images share are packed and sent once: the first image goes alone, and the registry has them for the others.
    let mut first = wanted;
    let others = first.split_off(first.len().min(1));
    let mut done = several(first, 1, &one)?;
    done.extend(several(others, usize::from(asked.jobs), &one)?);
    done.sort_by(|a, b| a.wanted.slug.cmp(&b.wanted.slug));
    drop(stage);
    print(arguments, &dataset, &asked.registry, &done);
    Ok(())
}

fn lock(images: &Mutex<Images>) -> std::sync::MutexGuard<'_, Images> {
    images.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The images of the dataset, which the engine must have.
fn wanted(dataset: &Dataset, engine: &Engine, prefix: &ImagePlace, only: &[RepoSlug]) -> Result<Vec<Wanted>> {
    let mut of: BTreeMap<RepoSlug, (String, Option<String>)> = BTreeMap::new();
    for instance in dataset.instances()? {
        if (only.is_empty() || only.contains(&instance.slug)) && !of.contains_key(&instance.slug) {
            let name = read::image_of(dataset, &instance)?;
            if !is_own(&name, &instance.slug) {
                return Err(Error::usage(format!(
                    "the dataset names the image {name}, which is not the one that gistmill made of {}",
                    instance.slug
                ))
                .with_hint("nothing else of your engine is pushed because a dataset says so"));
            }
            of.insert(instance.slug.clone(), (name, instance.image_id.clone()));
        }
    }
    if let Some(unknown) = only.iter().find(|slug| !of.contains_key(*slug)) {
        return Err(Error::usage(format!("the dataset has no instance of {unknown}")));
    }
    let (mut wanted, mut missing) = (Vec::new(), Vec::new());
    for (slug, (name, id)) in of {
        match push::local(engine, &name)? {
            Some(image) if id.as_ref().is_some_and(|id| *id != image.id) => {
                return Err(Error::usage(format!(
                    "{name} in the engine is not the image of {slug} that the dataset names"
                ))
                .with_detail(format!("{} in the engine, {} in the dataset", image.id, id.unwrap_or_default()))
                .with_hint(
                    "remove it and build the dataset again, or load the image with `gistmill image load`",
                ));
            }
            Some(image) => {
                let (repository, key) = name.rsplit_once(':').unwrap_or((&name, "latest"));
                let place = prefix.below(repository.rsplit('/').next().unwrap_or(repository));
                // A tag is of one architecture; several have several.
                let tag = format!("{key}-{}", image.architecture);
                wanted.push(Wanted { slug, place: ImagePlace::parse(&place.to_string())?, tag, image });
            }
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        return Ok(wanted);
    }
    let place = shell_quote(&dataset.directory.to_string_lossy());
    Err(Error::usage(format!("the engine does not have {} of the dataset", count(missing.len(), "image")))
        .with_detail(missing.join("\n"))
        .with_hint(format!(
            "`gistmill export {place} --to harbor --output run` and `sh run/images/build.sh` make images of an export; \
             those of a dataset that was built in containers come from `gistmill build` or `gistmill image load`"
        )))
}

/// Whether an image has a name that gistmill gives that of a repository: a dataset could name any other one of the engine.
fn is_own(name: &str, slug: &RepoSlug) -> bool {
    let letters =
        |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let rest = ["gistmill/", "gistmill-export/"].iter().find_map(|own| name.strip_prefix(own));
    rest.is_some_and(|rest| letters(rest.split(':').next().unwrap_or(rest)) == letters(slug.as_str()))
}

fn sent(engine: &Engine, wanted: &Wanted, login: Option<&Login>, stage: &Stage) -> Result<String> {
    let place = wanted.place.to_string();
    stage.message(&format!("{}: {place}:{}", wanted.slug, wanted.tag));
    let say = |words: &str| stage.message(&format!("{}: {words}", wanted.slug));
    let to = Target { host: wanted.place.host(), repository: &place, tag: &wanted.tag, login };
    push::push(engine, &wanted.image, to, &say).map_err(|error| error.at(&wanted.slug))
}

fn pushed(dataset: &Dataset, wanted: &Wanted, digest: &str) -> Result<PushedImage> {
    Ok(PushedImage {
        architecture: wanted.image.architecture.clone(),
        place: wanted.place.to_string(),
        tag: wanted.tag.clone(),
        digest: digest.to_owned(),
        image_id: wanted.image.id.clone(),
        of: dataset.link(&wanted.slug)?,
    })
}

fn print(arguments: &Arguments, dataset: &Dataset, registry: &str, done: &[Done]) {
    if arguments.format == Format::Json {
        let rows: Vec<_> = done
            .iter()
            .map(|one| {
                json!({
                    "slug": one.wanted.slug, "image": one.wanted.place.to_string(), "tag": one.wanted.tag,
                    "digest": one.digest, "architecture": one.wanted.image.architecture, "was_there": one.was_there,
                })
            })
            .collect();
        terminal::json(&json!({ "images": rows }));
        return;
    }
    for one in done {
        let did = if one.was_there { "already there" } else { "pushed" };
        terminal::say(&format!("{}: {}@{} {did}", one.wanted.slug, one.wanted.place, one.digest));
    }
    let place = shell_quote(&dataset.directory.to_string_lossy());
    terminal::say(&format!(
        "next: gistmill image check {place} --registry {}; exports name these images from now on",
        shell_quote(registry)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_of_gistmill_are_pushed() {
        let slug = RepoSlug::new("a/B").expect("is one");
        assert!(is_own("gistmill/a__b:1", &slug) && is_own("gistmill-export/a-b:1", &slug));
        for name in
            ["secret:1", "company/gistmill/a__b:1", "gistmill:1", "h.io/gistmill/a__b:1", "gistmill/a__c:1"]
        {
            assert!(!is_own(name, &slug), "{name}");
        }
    }
}
