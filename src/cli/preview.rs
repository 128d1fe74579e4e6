//! What repositories say of their environments, before anything is installed: for `check` and `init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::config::{BackendKind, Config, Repo, SourceSpec};
use crate::environment::{self, Preview, Tools};
use crate::error::Result;
use crate::record::id::RepoSlug;
use crate::record::source::Pinned;
use crate::source;
use crate::store::Cache;
use crate::terminal::Text;

/// Requirements of a rung that are named; the others are counted.
const NAMED: usize = 12;

/// What a repository says of itself.
pub(super) struct Explained {
    pub slug: RepoSlug,
    pub result: Result<(Pinned, Preview)>,
}

/// Looks at the repositories of a configuration: at all of them, or at those alone whose files are on this machine.
/// Those that are built in containers are left out: their interpreters are those of their images.
pub(super) fn explain(
    config: &Config,
    only: &[RepoSlug],
    all: bool,
    (cache, tools): (&Cache, &Tools),
) -> Vec<Explained> {
    let is_here = |repo: &&Repo| all || matches!(repo.source, SourceSpec::Path { .. });
    let is_asked = |repo: &&Repo| only.is_empty() || only.contains(&repo.slug);
    // An interpreter that is asked for and missing is reported once, whatever the files say.
    let can_run = |repo: &&Repo| {
        repo.python.as_ref().is_none_or(|asked| {
            let fits = |version: &str| version == asked || version.starts_with(&format!("{asked}."));
            tools.interpreters.iter().any(|python| !python.is_emptied() && fits(&python.version))
        })
    };
    let repos = config.repos.iter().filter(|repo| repo.backend == BackendKind::Local).filter(can_run);
    let mut explained = Vec::new();
    for repo in repos.filter(is_here).filter(is_asked) {
        let results = with_what_else((repo, &config.apart), cache, tools);
        explained.extend(results.into_iter().map(|result| Explained { slug: repo.slug.clone(), result }));
    }
    explained
}

/// What was found; where changes of a work tree are in the way, also what else is wrong with it.
fn with_what_else(
    (repo, apart): (&Repo, &[PathBuf]),
    cache: &Cache,
    tools: &Tools,
) -> Vec<Result<(Pinned, Preview)>> {
    let first = look((repo, apart), cache, tools);
    let mut repo = repo.clone();
    let is_refused = match &mut repo.source {
        SourceSpec::Path { allow_uncommitted, .. } => {
            first.is_err() && !std::mem::replace(allow_uncommitted, true)
        }
        _ => false,
    };
    let told = first.as_ref().err().map(ToString::to_string);
    let further = is_refused.then(|| look((&repo, apart), cache, tools).err()).flatten();
    let further = further.filter(|error| Some(error.to_string()) != told);
    std::iter::once(first).chain(further.map(Err)).collect()
}

/// One repository, pinned, with its ladder.
///
/// # Errors
/// Those of pinning it; a configuration that asks for what it does not have.
pub(super) fn look(
    (repo, apart): (&Repo, &[PathBuf]),
    cache: &Cache,
    tools: &Tools,
) -> Result<(Pinned, Preview)> {
    let pinned = source::pin((repo, apart), cache, tools, &|_| {})?;
    let preview =
        environment::preview(&pinned.tree, repo, environment::newest(&pinned, repo)?, &tools.interpreters)?;
    Ok((pinned, preview))
}

/// The ladder, a line each; every line is a whole one for a terminal or a comment.
pub(super) fn lines(preview: &Preview) -> Vec<String> {
    let mut lines = vec![format!("Python {}: {}", preview.python, preview.python_reason)];
    lines.push(match &preview.backend {
        Some(backend) => format!("the project at the root is built by {backend}"),
        None => "the root is not a project: it is put on the path".to_owned(),
    });
    lines.extend(
        preview.members.iter().map(|(folder, reason)| format!("{folder} is installed, too: {reason}")),
    );
    if !preview.variables.is_empty() {
        lines.push(format!("the tests run with {} as the tree sets them", preview.variables.join(", ")));
    }
    lines.push("tried in this order, until everything can be collected:".to_owned());
    for (number, rung) in preview.rungs.iter().enumerate() {
        lines.push(format!("  {}. {}", number + 1, rung.name));
        lines.push(format!("     {}", rung.reason));
        let mut requirements = rung.requirements.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = rung.requirements.len().saturating_sub(NAMED);
        if more > 0 {
            let _ = write!(requirements, " and {more} more");
        }
        lines.push(format!("     {requirements}"));
    }
    if !preview.on_demand.is_empty() {
        lines.push(format!("added where skips and failures ask for it: {}", preview.on_demand.join(", ")));
    }
    lines.extend(preview.notes.iter().cloned());
    lines
}

/// All ladders, for people.
pub(super) fn describe(explained: &[Explained], text: &mut Text) {
    for one in explained {
        let Ok((_, preview)) = &one.result else { continue };
        text.line(one.slug.as_str());
        for line in lines(preview) {
            text.line(&format!("  {line}"));
        }
    }
}
