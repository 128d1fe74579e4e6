//! `gistmill image` and `gistmill clean`: what gistmill keeps in a Docker engine.

mod check;
mod push;

use std::path::PathBuf;

use clap::Subcommand;
use indicatif::HumanBytes;
use serde_json::json;

use super::{Arguments, Format};
use crate::backend::docker::{self, Cleaning, Engine, image};
use crate::error::{Error, Result};
use crate::terminal;
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct ImageArguments {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    /// The images that gistmill made
    List,
    /// Write an image to an archive, for a machine without a registry
    Save {
        /// The tag, as `image` in `instances` has it
        #[arg(value_name = "TAG")]
        tag: String,
        /// The archive
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// How it is laid out
        #[arg(long, value_enum, value_name = "LAYOUT", default_value = "docker")]
        layout: image::Layout,
    },
    /// Read what `save` wrote into the engine
    Load {
        #[arg(value_name = "FILE")]
        archive: PathBuf,
    },
    /// Push the images of a dataset to a registry, and write their digests into its `images.json`
    Push(push::PushArguments),
    /// Ask, without a login, whether the pushed images of a dataset can be pulled
    Check(check::CheckArguments),
}

pub(super) fn run(arguments: &Arguments, asked: &ImageArguments) -> Result<u8> {
    if let ImageCommand::Check(asked) = &asked.command {
        return check::run(arguments, asked);
    }
    let engine = Engine::connect(arguments.engine)?;
    match &asked.command {
        ImageCommand::Push(asked) => push::run(arguments, asked, &engine)?,
        // Above: it needs no engine.
        ImageCommand::Check(_) => {}
        ImageCommand::List => list(arguments, &engine)?,
        ImageCommand::Save { tag, output, layout } => {
            let saved = image::save(&engine, tag, output, *layout)?;
            let bytes = fs_err::metadata(output)?.len();
            told(arguments, &[saved], &format!("{} in {}", HumanBytes(bytes), output.display()));
        }
        ImageCommand::Load { archive } => {
            let loaded = image::load_file(&engine, archive)?;
            if loaded.is_empty() {
                return Err(Error::usage(format!("{} holds no image with a tag", archive.display()))
                    .with_hint("write it with `gistmill image save`"));
            }
            told(arguments, &loaded, &format!("from {}", archive.display()));
        }
    }
    Ok(0)
}

fn told(arguments: &Arguments, images: &[image::Image], words: &str) {
    for one in images {
        match arguments.format {
            Format::Human | Format::Csv => terminal::say(&format!("{} {} {words}", one.tag, one.id)),
            Format::Json => terminal::json(&json!({"image": one.tag, "image_id": one.id})),
        }
    }
}

fn list(arguments: &Arguments, engine: &Engine) -> Result<()> {
    let images = image::list(engine)?;
    if arguments.format == Format::Json {
        terminal::json(&json!({"images": images}));
        return Ok(());
    }
    for one in &images {
        let own = one.own_bytes.map_or_else(|| "-".to_owned(), |bytes| HumanBytes(bytes).to_string());
        terminal::say(&format!("{}  {}  own {own}, in all {}", one.tag, one.id, HumanBytes(one.bytes)));
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(super) struct CleanArguments {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// `gistmill clean`
pub(super) fn clean(arguments: &Arguments, asked: &CleanArguments) -> Result<u8> {
    let (cleaning, did) =
        if asked.dry_run { (Cleaning::Tell, "would remove") } else { (Cleaning::Remove, "removed") };
    let cleaned = docker::clean(&Engine::connect(arguments.engine)?, cleaning)?;
    match arguments.format {
        Format::Json => terminal::json(&json!(cleaned)),
        Format::Human | Format::Csv => {
            terminal::say(&format!("{did} {}", count(cleaned.containers, "container")));
            for name in cleaned.images.iter().chain(&cleaned.volumes) {
                terminal::say(&format!("{did} {name}"));
            }
        }
    }
    Ok(0)
}
