//! `gistmill check`: everything that can be known before anything long starts, all problems at once.

use std::fmt::Write as _;

use serde_json::json;

use super::inputs::Inputs;
use super::preview::{self, Explained};
use super::{Arguments, ConfigArguments, Format, session};
use crate::backend::Backend;
use crate::backend::docker::{Engine, image};
use crate::backend::local::{LocalBackend, Strictness};
use crate::config::{BackendKind, Config, Repo, SourceSpec};
use crate::environment::plan::python;
use crate::environment::{Preview, Tools};
use crate::error::{Error, Fault, Result};
use crate::pipeline::Former;
use crate::record::engine::EngineKind;
use crate::record::source::Pinned;
use crate::rules::RuleSet;
use crate::source;
use crate::terminal::{self, Text};
use crate::text::count;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Fetch every repository, and show what its environment would be made of, and why
    #[arg(long)]
    explain: bool,
}

/// One thing that was looked at.
struct Finding {
    what: String,
    result: Result<String>,
}

pub(super) fn run(arguments: &Arguments, check: &CheckArguments) -> u8 {
    let inputs = Inputs::choose(&check.config);
    let rules = inputs.rules();
    let config = inputs.config(&check.config.only, &check.config.output).and_then(|mut config| {
        config.repos.iter_mut().try_for_each(source::outside::read)?;
        Ok(config)
    });
    let number = |rules: &RuleSet| format!("{} ({})", rules.rules().len(), inputs.describe_rules());
    let mut findings = vec![finding("rules", rules.as_ref().map(number).map_err(copy))];
    // Who only builds in containers needs no sandbox on this machine.
    let local = |config: &Config| config.repos.iter().any(|repo| repo.backend == BackendKind::Local);
    if config.as_ref().map_or(true, local) {
        findings.push(finding("sandbox", sandbox(check.config.isolation.isolation)));
    }
    let cache = arguments.cache();
    findings
        .push(finding("cache", cache.as_ref().map(|cache| cache.root().display().to_string()).map_err(copy)));
    let mut explained = Vec::new();
    if let Ok(cache) = &cache {
        let tools = Tools::find(cache);
        findings.extend(machine(tools.as_ref(), config.as_ref().ok()));
        if let (Ok(tools), Ok(config)) = (&tools, &config) {
            explained = preview::explain(config, &check.config.only, check.explain, (cache, tools));
        }
    }
    findings.extend(explained.iter().map(of_repository));
    findings.extend(config.iter().flat_map(outputs));
    findings.extend(config.iter().flat_map(|config| release(config, &check.config, &explained)));
    findings.push(finding(
        "config",
        config
            .as_ref()
            .map(|config| {
                format!("{} ({})", count(config.repos.len(), "repository"), inputs.describe_config())
            })
            .map_err(copy),
    ));
    let has_sandbox = findings.iter().all(|finding| finding.what != "sandbox" || finding.result.is_ok());
    findings.push(finding("containers", Ok(containers(config.as_ref().ok(), has_sandbox))));
    findings.extend(config.iter().flat_map(|config| docker(config, arguments.engine)));
    let shown = if check.explain { explained.as_slice() } else { &[] };
    print(arguments, &findings, shown, &warnings(&explained));
    let worst = findings
        .iter()
        .filter_map(|finding| finding.result.as_ref().err())
        .map(|error| error.fault().exit_code());
    // A bad config outranks a machine that lacks something: it is what the user can mend first.
    worst.min_by_key(|code| (*code != Fault::Usage.exit_code(), *code)).unwrap_or(0)
}

fn finding(what: &str, result: Result<String>) -> Finding {
    Finding { what: what.to_owned(), result }
}

fn copy(error: &Error) -> Error {
    let mut copy = Error::new(error.fault(), error.to_string());
    if let Some(detail) = error.detail() {
        copy = copy.with_detail(detail);
    }
    if let Some(hint) = error.hint() {
        copy = copy.with_hint(hint);
    }
    copy
}

fn sandbox(strictness: Strictness) -> Result<String> {
    let backend = LocalBackend::with(&session::own_program()?, strictness)?;
    let isolation = backend.isolation();
    let missing =
        if isolation.missing.is_empty() { "nothing".to_owned() } else { isolation.missing.join(", ") };
    Ok(format!("{}, missing: {missing}", isolation.kind))
}

/// uv, the interpreters, and what the config asks of them, as far as it names it.
fn machine(tools: Result<&Tools, &Error>, config: Option<&Config>) -> Vec<Finding> {
    let tools = match tools {
        Ok(tools) => tools,
        Err(error) => return vec![finding("tools", Err(copy(error)))],
    };
    let uv = match tools.installed_uv() {
        Some(uv) => uv.version.clone(),
        None => "not found; a build installs it into the cache".to_owned(),
    };
    let usable = tools.interpreters.iter().filter(|python| !python.is_emptied());
    let versions: Vec<&str> = usable.map(|python| python.version.as_str()).collect();
    let unused = python::unused(&tools.interpreters);
    let pythons = match (versions.is_empty(), unused) {
        (true, None) => Err(Error::machine("no CPython 3.8 or newer was found")
            .with_hint("install one: your distribution's packages, pyenv, or `uv python install`")),
        (true, Some(unused)) => Err(Error::machine("no CPython 3.8 or newer can be used")
            .with_detail(unused)
            .with_hint(python::ELSEWHERE)),
        (false, unused) => {
            Ok([Some(versions.join(", ")), unused].into_iter().flatten().collect::<Vec<_>>().join("; "))
        }
    };
    let mut findings = vec![finding("uv", Ok(uv)), finding("pythons", pythons)];
    findings.extend(indexes(tools));
    findings.extend(config.into_iter().flat_map(|config| repositories(config, &versions)));
    findings
}

/// What distributions are installed from.
fn indexes(tools: &Tools) -> Vec<Finding> {
    let of_one = |(name, answer): (String, std::result::Result<&str, String>)| {
        let wrong = |problem: String| {
            Error::machine(problem).with_hint("docs/private.md says how an index and its login are named")
        };
        finding(&name, answer.map(str::to_owned).map_err(wrong))
    };
    match tools.probe_indexes() {
        Ok(answers) => answers.into_iter().map(of_one).collect(),
        Err(error) => vec![finding("indexes", Err(error))],
    }
}

/// What the files of a repository say.
fn of_repository(one: &Explained) -> Finding {
    let words = |(pinned, preview): &(Pinned, Preview)| {
        let ways = count(preview.rungs.len(), "way");
        format!("{}, Python {}, {ways} to install it", pinned.origin.describe(), preview.python)
    };
    finding(one.slug.as_str(), one.result.as_ref().map(words).map_err(copy))
}

/// Outputs in a clone that git would show, so that somebody commits the answers beside the questions.
fn outputs(config: &Config) -> Vec<Finding> {
    let Some(output) = config.apart.last() else { return Vec::new() };
    let shown = |repo: &&Repo| matches!(&repo.source, SourceSpec::Path { path, .. } if source::is_shown_by_git(path, output));
    let refused = |repo: &Repo| {
        let error = Error::usage(format!("the output {} is in its clone, and not ignored", output.display()));
        finding(
            repo.slug.as_str(),
            Err(error.with_hint("add the folder to .gitignore, or name another --output")),
        )
    };
    config.repos.iter().filter(shown).map(refused).collect()
}

/// What a build would refuse to replace: the same version, made of something else. Of sources that are not at hand only the
/// commit is known, or nothing.
fn release(config: &Config, asked: &ConfigArguments, explained: &[Explained]) -> Vec<Finding> {
    let former = Former::find(&config.dataset.directory(&asked.output), |_| {});
    let Some(former) = former else { return Vec::new() };
    let moved = |repo: &Repo| {
        let mut looked_at = explained.iter().filter(|one| one.slug == repo.slug);
        let pinned = looked_at.find_map(|one| Some(&one.result.as_ref().ok()?.0));
        let checked = match (&repo.source, pinned) {
            (_, Some(pinned)) => former.check_pin(&repo.slug, &pinned.commit, Some(&pinned.tree_sha256)),
            (SourceSpec::Git { commit, .. }, None) => former.check_pin(&repo.slug, commit.as_str(), None),
            _ => Ok(()),
        };
        checked.err().map(|error| finding(repo.slug.as_str(), Err(error)))
    };
    let is_asked = |repo: &&Repo| asked.only.is_empty() || asked.only.contains(&repo.slug);
    config.repos.iter().filter(is_asked).filter_map(moved).collect()
}

fn repositories(config: &Config, versions: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for repo in &config.repos {
        // The interpreters of a container are those of its image.
        if let Some(request) = repo.python.as_ref().filter(|_| repo.backend == BackendKind::Local) {
            let matching = versions
                .iter()
                .find(|version| **version == request.as_str() || version.starts_with(&format!("{request}.")));
            let result = match matching {
                Some(version) => Ok(format!("python {version}")),
                None => Err(Error::repository(format!("python {request} is not on this machine"))
                    .with_hint(format!("it has {}", versions.join(", ")))),
            };
            findings.push(finding(repo.slug.as_str(), result));
        }
    }
    findings
}

/// What of programs for containers is here, and whether one is needed: clusters often have none.
fn containers(config: Option<&Config>, has_sandbox: bool) -> String {
    let found = programs(&std::env::var_os("PATH").unwrap_or_default());
    let needed =
        config.is_some_and(|config| config.repos.iter().any(|repo| repo.backend == BackendKind::Docker));
    let need = match (needed, has_sandbox) {
        (true, _) => "an engine is needed",
        (false, true) => "none is needed: the sandbox does without",
        (false, false) => "without a sandbox only an engine can run repositories: backend = \"docker\"",
    };
    if found.is_empty() {
        format!("no program for containers; {need}")
    } else {
        format!("{}; {need}", found.join(", "))
    }
}

/// Programs for containers in these folders.
fn programs(folders: &std::ffi::OsStr) -> Vec<&'static str> {
    let is_here = |name: &&str| std::env::split_paths(folders).any(|folder| folder.join(name).is_file());
    ["docker", "podman", "apptainer", "singularity", "enroot"].into_iter().filter(is_here).collect()
}

/// The engine, where a repository needs one, and whether it has the bases.
fn docker(config: &Config, asked: Option<EngineKind>) -> Vec<Finding> {
    let mut bases: Vec<&str> = config
        .repos
        .iter()
        .filter(|repo| repo.backend == BackendKind::Docker)
        .map(|repo| repo.base.as_deref().unwrap_or(&config.docker.base))
        .collect();
    bases.sort_unstable();
    bases.dedup();
    if bases.is_empty() {
        return Vec::new();
    }
    let engine = match Engine::connect(asked) {
        Ok(engine) => engine,
        Err(error) => return vec![finding("docker", Err(error))],
    };
    let mut findings = vec![finding("docker", Ok(engine.version.clone()))];
    findings.extend(bases.into_iter().map(|base| {
        let there = image::exists(&engine, base);
        let text = |there| {
            format!("{base} {}", if there { "exists" } else { "does not exist yet; a build pulls it" })
        };
        finding("base", there.map(text))
    }));
    findings
}

/// What is not a problem, and may be one for whoever passes the dataset on.
fn warnings(explained: &[Explained]) -> Vec<String> {
    let words = |one: &Explained| {
        let warning = source::secrets_warning(&one.result.as_ref().ok()?.0).ok()??;
        Some(format!("{}: {warning}", one.slug))
    };
    explained.iter().filter_map(words).collect()
}

fn print(arguments: &Arguments, findings: &[Finding], explained: &[Explained], warnings: &[String]) {
    if arguments.format == Format::Json {
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| match &finding.result {
                Ok(text) => json!({"what": finding.what, "ok": true, "text": text}),
                Err(error) => json!({
                    "what": finding.what, "ok": false, "text": error.to_string(),
                    "detail": error.detail(), "hint": error.hint(),
                }),
            })
            .collect();
        let ladders: serde_json::Map<String, serde_json::Value> = explained
            .iter()
            .filter_map(|one| Some((one.slug.to_string(), json!(one.result.as_ref().ok()?.1))))
            .collect();
        terminal::json(&json!({ "findings": rows, "explained": ladders, "warnings": warnings }));
        return;
    }
    let mut text = Text::default();
    for finding in findings {
        describe(finding, &mut text);
    }
    preview::describe(explained, &mut text);
    text.print();
    for warning in warnings {
        terminal::warn(warning);
    }
}

fn describe(finding: &Finding, text: &mut Text) {
    let error = match &finding.result {
        Ok(found) => {
            text.styled(&console::Style::new().green(), "ok     ");
            return text.line(&format!(" {}: {found}", finding.what));
        }
        Err(error) => error,
    };
    text.styled(&console::Style::new().red().bold(), "problem");
    let _ = writeln!(text, " {}: {error}", finding.what);
    for line in error.detail().into_iter().flat_map(str::lines) {
        text.line(&format!("          {line}"));
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(text, "          hint: {hint}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_sandbox_is_refused_an_engine_is_the_way() {
        assert!(containers(None, true).ends_with("none is needed: the sandbox does without"));
        assert!(containers(None, false).ends_with("backend = \"docker\""));
    }

    #[test]
    fn programs_for_containers_are_named_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["apptainer", "python"] {
            fs_err::write(folder.path().join(name), "").unwrap();
        }
        fs_err::create_dir(folder.path().join("docker")).unwrap();
        assert_eq!(programs(folder.path().as_os_str()), ["apptainer"]);
        assert!(programs("".as_ref()).is_empty());
    }
}
