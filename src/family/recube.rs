//! `ReCUBE`: one file of a repository is masked, and written again from the rest.

pub mod answer;
pub mod candidates;
pub mod choose;
pub mod docstring;
pub mod graph;
pub mod kinds;
pub mod leaks;
pub mod mask;
pub mod pack;
pub mod prompts;
pub mod published;
pub mod scope;
pub mod scopes;
pub mod score;
pub mod similar;
pub mod surface;
pub mod task;
pub mod viewed;

use crate::record::patch::{Patch, PathProblem};

/// The file that an agent hands in.
pub const SUBMISSION: &str = "target.py";

/// Most tokens of an answer with one question, without a chain of thought.
const LONG_ANSWER: u64 = 8192;

/// What whoever uses an instance should know of it.
pub fn flags(noticed: u64, bodies: u64, target_tokens: Option<u64>) -> Vec<String> {
    let is_long = target_tokens.is_some_and(|tokens| tokens > LONG_ANSWER);
    let flags = [(2 * noticed < bodies, "bodies-unnoticed"), (is_long, "long-answer")];
    flags.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name.to_owned()).collect()
}

/// The tree with another text in the place of the target.
///
/// # Errors
/// The target is not a file of a tree.
pub fn exchanged(target: &str, text: &[u8], byte_code: &[String]) -> Result<Patch, PathProblem> {
    let mut patch = Patch::default();
    byte_code.iter().try_for_each(|path| patch.hide(path))?;
    patch.put(target, text.to_vec())?;
    Ok(patch)
}

/// The tree that an agent works in: the target is its mask, and files are hidden.
///
/// # Errors
/// A path that is not one of a tree's own files.
pub fn agents_tree(target: &str, masked: &str, hidden: &[String]) -> Result<Patch, PathProblem> {
    exchanged(target, masked.as_bytes(), hidden)
}

/// What an agent is asked to do in the tree at `workdir`, in Markdown.
pub fn prompt(repository: &str, target: &str, workdir: &str) -> String {
    format!(
        "The directory `{workdir}` has the repository {repository}. In its file `{target}` all imports are gone, and the body of \
         every function is `raise NotImplementedError()`, after its docstring where it has one.\n\nWrite the file again: every import, and \
         every body. What remains says how: signatures and docstrings of the file, the README, and the other files, which import \
         from it and call into it. Change no other file, and keep names, signatures and everything else that the file has. The file \
         is judged by tests that reach it; they are not in the directory, and neither is a network.\n"
    )
}

#[cfg(test)]
mod tests;
