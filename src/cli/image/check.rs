//! `gistmill image check`: whether others can pull the images of a dataset. Hosts are asked that the dataset names, without a
//! login; in the user's own network only what the user types.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::newest::DatasetArguments;
use super::super::{Arguments, Format};
use crate::dataset::Dataset;
use crate::dataset::images::PushedImage;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::registry::{Answer, ImagePlace, Registries};
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// Ask here in place of where the images were pushed to: for a mirror, and for a registry in your own network
    #[arg(long, value_name = "PREFIX")]
    registry: Option<String>,
}

/// What is wrong with an image; none: it can be pulled.
struct Problem {
    kind: &'static str,
    text: String,
}

/// One pushed image, and where it was looked for.
struct Row<'i> {
    slug: &'i RepoSlug,
    image: &'i PushedImage,
    place: ImagePlace,
    problem: Option<Problem>,
}

pub(super) fn run(arguments: &Arguments, asked: &CheckArguments) -> Result<u8> {
    let prefix = asked.registry.as_deref().map(ImagePlace::parse).transpose()?;
    let dataset = Dataset::open(&asked.dataset.directory()?)?;
    let images = dataset.images()?;
    let registries = Registries::new(&std::env::vars().collect(), prefix.as_ref())?;
    let mut rows = Vec::new();
    for (slug, image) in images.of.iter().flat_map(|(slug, all)| all.iter().map(move |one| (slug, one))) {
        crate::interrupt::check()?;
        let place = image.place()?;
        let place = prefix.as_ref().map_or(place.clone(), |prefix| prefix.below(place.name()));
        let mut problem = look(&registries, &place, image);
        if image.of != dataset.link(slug)? {
            let text = "it is of another environment than the dataset's; push again".to_owned();
            problem = Some(Problem { kind: "outdated", text });
        }
        rows.push(Row { slug, image, place, problem });
    }
    if rows.is_empty() {
        return Err(Error::usage(format!("no image of {} was pushed", dataset.directory.display()))
            .with_hint("`gistmill image push DATASET --registry PREFIX` pushes them"));
    }
    let slugs: BTreeSet<RepoSlug> = dataset.instances()?.iter().map(|one| one.slug.clone()).collect();
    let lacking = images.lacking(&slugs);
    match arguments.format {
        Format::Json => terminal::json(&in_json(&rows, &lacking)),
        Format::Human | Format::Csv => print(&rows, &lacking),
    }
    let is_bad = rows.iter().any(|row| row.problem.is_some()) || !lacking.is_empty();
    Ok(u8::from(is_bad))
}

/// What was not pushed, in words.
fn not_pushed(architecture: Option<&str>) -> String {
    match architecture {
        None => "no image was pushed".to_owned(),
        Some(name) => format!("no image for {name} was pushed, which others have"),
    }
}

fn in_json(rows: &[Row<'_>], lacking: &[(&RepoSlug, Option<&str>)]) -> serde_json::Value {
    let pushed = rows.iter().map(|Row { slug, image, place, problem }| {
        json!({
            "slug": slug, "image": place.to_string(), "tag": image.tag, "digest": image.digest,
            "architecture": image.architecture,
            "state": problem.as_ref().map_or("available", |problem| problem.kind),
            "text": problem.as_ref().map(|problem| &problem.text),
        })
    });
    let others = lacking.iter().map(|(slug, architecture)| {
        json!({
            "slug": slug, "image": null, "tag": null, "digest": null, "architecture": architecture,
            "state": "not-pushed", "text": not_pushed(*architecture),
        })
    });
    json!({ "images": pushed.chain(others).collect::<Vec<_>>() })
}

fn print(rows: &[Row<'_>], lacking: &[(&RepoSlug, Option<&str>)]) {
    for Row { slug, image, place, problem } in rows {
        let words = problem.as_ref().map_or_else(
            || "can be pulled by anybody".to_owned(),
            |problem| format!("{}: {}", problem.kind, problem.text),
        );
        let name = format!("{slug} ({}): {place}@{}", image.architecture, image.digest);
        terminal::say(&terminal::one_line(&format!("{name}: {words}")));
    }
    for (slug, architecture) in lacking {
        terminal::say(&terminal::one_line(&format!("{slug}: {}", not_pushed(*architecture))));
    }
    let bad = rows.iter().filter(|row| row.problem.is_some()).count();
    terminal::say(&format!("{bad} of {} cannot be pulled as they were pushed", count(rows.len(), "image")));
}

/// By its digest, which exports name, and by its tag, which people do.
fn look(registries: &Registries, place: &ImagePlace, image: &PushedImage) -> Option<Problem> {
    let problem = |kind, text: &str| Some(Problem { kind, text: text.to_owned() });
    let by_digest = registries.manifest(place, &image.digest);
    match by_digest {
        Answer::Manifest(_) => {}
        Answer::Private => return problem("private", "the registry wants a login"),
        Answer::Trouble(why) => return problem("unknown", &why),
        Answer::Missing => {
            return match registries.manifest(place, &image.tag) {
                Answer::Manifest(other) => {
                    problem("missing", &format!("its tag {} is of {other}", image.tag))
                }
                _ => problem("missing", "the registry does not have it"),
            };
        }
    }
    match registries.manifest(place, &image.tag) {
        Answer::Manifest(digest) if digest == image.digest => None,
        Answer::Manifest(other) => problem("retagged", &format!("its tag {} is of {other}", image.tag)),
        Answer::Private => problem("private", "the registry wants a login for its tag"),
        Answer::Trouble(why) => problem("unknown", &why),
        Answer::Missing => {
            problem("untagged", &format!("it has lost its tag {}, and may be removed as unused", image.tag))
        }
    }
}
