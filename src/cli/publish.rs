//! `gistmill publish`: a dataset as a folder for a hub. Uploading is what the user does.

use std::path::PathBuf;

use serde_json::json;

use super::newest::DatasetArguments;
use super::{Arguments, Format};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::publish::{self, About};
use crate::terminal;
use crate::text::{count, shell_quote};

#[derive(Debug, clap::Args)]
pub(super) struct PublishArguments {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// The folder to write, which is empty but for git's files
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Where it will be on the hub, such as me/dataset
    #[arg(long, value_name = "NAME")]
    repo: Option<String>,
    /// Who made it; may be given several times
    #[arg(long, value_name = "NAME")]
    author: Vec<String>,
    /// Publish the edited tests that judge submissions as well: then agents may read them
    #[arg(long)]
    with_hidden: bool,
}

pub(super) fn run(arguments: &Arguments, asked: &PublishArguments) -> Result<u8> {
    let dataset = Dataset::open(&asked.dataset.directory()?)?;
    let manifest = &dataset.manifest;
    let repo = asked.repo.clone().unwrap_or_else(|| format!("YOU/{}", manifest.name));
    let about = About {
        authors: if asked.author.is_empty() { vec!["unknown".to_owned()] } else { asked.author.clone() },
        url: format!("https://huggingface.co/datasets/{repo}"),
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        with_hidden: asked.with_hidden,
    };
    let files = publish::write(&dataset, &asked.to, &about)?;
    let (folder, name) = (shell_quote(&asked.to.to_string_lossy()), shell_quote(&repo));
    let version = shell_quote(manifest.version.as_str());
    let next = [
        format!(
            "cosign sign-blob --bundle {folder}/provenance.sigstore.json {folder}/provenance.json   # if you sign"
        ),
        format!("hf upload {name} {folder} . --repo-type dataset"),
        format!("hf repo tag create {name} {version} --repo-type dataset"),
    ];
    if arguments.format == Format::Json {
        terminal::json(&json!({ "folder": asked.to, "files": files, "next": next }));
        return Ok(0);
    }
    terminal::say(&format!("{} in {}; nothing was uploaded", count(files, "file"), asked.to.display()));
    if asked.author.is_empty() {
        terminal::warn("nobody is named as its author: --author");
    }
    terminal::say("next:");
    for command in &next {
        terminal::say(&format!("  {command}"));
    }
    Ok(0)
}
