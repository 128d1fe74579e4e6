//! Options of `gistmill export` about what is in the files, beside the tasks.

use crate::error::{Error, Result};
use crate::export::settings::{Author, Network, Settings, checked_org};
use crate::record::engine::EngineKind;

#[derive(Debug, clap::Args)]
pub(super) struct FileArguments {
    /// Whose tasks they are, in their names (`org/task`); else the name of the dataset
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// Who made them, `Ann <ann@example.org>`; may be given several times
    #[arg(long, value_name = "AUTHOR")]
    author: Vec<Author>,
    /// What the agent reaches: public, no-network or allowlist:HOST,HOST. Not every runner of Harbor can
    #[arg(long, value_name = "NETWORK")]
    agent_network: Option<Network>,
    /// What the judge reaches, in the same words
    #[arg(long, value_name = "NETWORK")]
    verifier_network: Option<Network>,
    /// Who the agent is in its container; 1000 owns the tree. Else root
    #[arg(long, value_name = "USER")]
    agent_user: Option<String>,
    /// Begin each Harbor instruction with a line by which training data can be searched for it
    #[arg(long)]
    canary: bool,
    /// Leave the solutions out: for what is published
    #[arg(long)]
    without_solutions: bool,
    /// `sif:DIR` names images of Apptainer in this folder in the tasks of Harbor, and writes how they are made
    #[arg(long, value_name = "sif:DIR")]
    images: Option<String>,
}

impl FileArguments {
    /// # Errors
    /// Usage errors that say the form.
    pub(super) fn settings(&self, engine: Option<EngineKind>) -> Result<Settings> {
        let folder = |text: &String| match text.strip_prefix("sif:") {
            Some(folder) if folder.starts_with('/') => Ok(folder.to_owned()),
            _ => Err(Error::usage(format!("--images {text:?} names no folder of images")).with_hint(
                "write `sif:` and an absolute path where the tasks run, as in `sif:/scratch/me/images`",
            )),
        };
        let is_user = |user: &&String| {
            !user.is_empty() && user.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        if let Some(user) = self.agent_user.as_ref().filter(|user| !is_user(user)) {
            return Err(Error::usage(format!("--agent-user {user:?} is not a user"))
                .with_hint("write a name or a number, as in `--agent-user 1000`"));
        }
        Ok(Settings {
            org: self.org.as_deref().map(checked_org).transpose()?,
            authors: self.author.clone(),
            agent_network: self.agent_network.clone(),
            verifier_network: self.verifier_network.clone(),
            agent_user: self.agent_user.clone(),
            has_canary: self.canary,
            without_solutions: self.without_solutions,
            sif: self.images.as_ref().map(folder).transpose()?,
            engine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        files: FileArguments,
    }

    fn settings(line: &str) -> Result<Settings> {
        let words = ["x"].into_iter().chain(line.split_whitespace());
        <Line as clap::Parser>::parse_from(words).files.settings(None)
    }

    #[test]
    fn what_is_not_a_place_or_a_user_is_refused_with_its_form() {
        assert_eq!(settings("--images sif:/a/b").unwrap().sif.as_deref(), Some("/a/b"));
        for (line, hint) in [
            ("--images /a", "sif:/scratch"),
            ("--images sif:a", "absolute path"),
            ("--agent-user a;b", "--agent-user 1000"),
            ("--org a/b", "--org my-lab"),
        ] {
            let error = settings(line).unwrap_err();
            assert!(error.hint().is_some_and(|found| found.contains(hint)), "{line}: {error}");
        }
    }
}
