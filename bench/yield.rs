//! What becomes of repositories: how far each one gets, what of it passes, and what is lost to what.
//!
//! `cargo bench --profile dev --bench all -- yield LIST [--json FILE] [--jobs N] [--most N]`. A line of LIST is a directory,
//! or the URL of a git repository with a commit after a blank; empty lines and lines that start with `#` are left out. Each
//! repository is installed and collected without a word of configuration, and its groups, or as many of them as `--most`
//! says, evenly spread, are run once in the base world. Sources, environments and collections are kept below the target
//! directory. FILE has, beyond the table, the plans that were tried and what each group that was lost said.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use gistmill::attempt::lab::{Made, Wanted};
use gistmill::pipeline::prepare::{Preparation, Prepared};
use gistmill::record::environment::TriedPlan;
use gistmill::record::outcome::{Attempt, Exit, Outcome};

use crate::common::{AnyError, Subject, folder};

/// What became of one repository.
#[derive(Debug, Default, serde::Serialize)]
struct Yield {
    source: String,
    /// `source`, `environment`, `collect` or `base`: the last one that it came through.
    reached: String,
    cases: usize,
    groups: usize,
    /// Groups that were run.
    run: usize,
    /// Groups that pass or are skipped in the base world.
    passing: usize,
    skipped: usize,
    /// Files that cannot be collected.
    uncollected: usize,
    /// Causes of loss, the commonest first.
    losses: Vec<(String, usize)>,
    plans: Vec<TriedPlan>,
    lost: Vec<Lost>,
    error: Option<String>,
    seconds: f64,
}

/// A group that neither passes nor is skipped.
#[derive(Debug, serde::Serialize)]
struct Lost {
    group: String,
    cause: String,
    /// The end of what its first such case said.
    said: String,
}

impl Yield {
    /// Percent of the groups that were run; a file that cannot be collected counts as one more.
    fn share(&self) -> f64 {
        let all = (self.run + self.uncollected).max(1);
        100.0 * (self.passing + self.skipped) as f64 / all as f64
    }
}

pub fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = crate::arguments();
    let list = arguments.first().ok_or("name a file with sources")?;
    let after = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let json = after("--json");
    let number = |name: &str, otherwise: usize| after(name).map_or(Ok(otherwise), |text| text.parse());
    let jobs = number("--jobs", std::thread::available_parallelism().map_or(1, std::num::NonZero::get))?;
    let most = number("--most", usize::MAX)?;
    let text = fs_err::read_to_string(list)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut all = Vec::new();
    println!(
        "{:<44} {:<12} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>7}  lost to",
        "source", "reached", "cases", "groups", "run", "pass", "skip", "%", "s"
    );
    for line in lines {
        let one = measure(line, jobs, most);
        println!("{}", row(&one));
        all.push(one);
        if let Some(path) = json {
            fs_err::write(path, serde_json::to_string_pretty(&all)?)?;
        }
    }
    println!("{}", summary(&all));
    Ok(())
}

fn row(one: &Yield) -> String {
    let mut lost: Vec<String> =
        one.losses.iter().take(4).map(|(cause, count)| format!("{cause} {count}")).collect();
    lost.extend(one.error.iter().filter_map(|error| error.lines().next()).map(str::to_owned));
    let name: String = one.source.chars().rev().take(44).collect::<Vec<char>>().into_iter().rev().collect();
    format!(
        "{name:<44} {:<12} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5.1} {:>7.1}  {}",
        one.reached,
        one.cases,
        one.groups,
        one.run,
        one.passing,
        one.skipped,
        one.share(),
        one.seconds,
        lost.join(", ")
    )
}

fn summary(all: &[Yield]) -> String {
    let collected: Vec<&Yield> = all.iter().filter(|one| one.reached == "base").collect();
    let mut shares: Vec<f64> = collected.iter().map(|one| one.share()).collect();
    shares.sort_by(f64::total_cmp);
    let mut text = format!("{} of {} installed and collected", collected.len(), all.len());
    if let Some(median) = shares.get(shares.len() / 2) {
        let _ = write!(text, "; median share that passes or skips {median:.1} %");
    }
    text
}

/// One source, as far as it gets.
fn measure(line: &str, jobs: usize, most: usize) -> Yield {
    let started = Instant::now();
    let mut one = Yield { source: line.to_owned(), reached: "nothing".to_owned(), ..Yield::default() };
    if let Err(error) = go(line, jobs, most, &mut one) {
        let detail = error.downcast_ref::<gistmill::error::Error>().and_then(|error| error.detail());
        one.error = Some(format!("{error}\n{}", end(detail.unwrap_or_default())));
    }
    one.seconds = started.elapsed().as_secs_f64();
    one
}

fn go(line: &str, jobs: usize, most: usize, one: &mut Yield) -> Result<(), AnyError> {
    let config = tempfile::tempdir()?;
    let file = config.path().join("repos.toml");
    fs_err::write(&file, configuration(line)?)?;
    let subject = Subject::open(&file, &folder().join("yield"), jobs)?;
    let repo = subject.config.repos.first().ok_or("there is no repository")?;
    let pipeline = subject.pipeline();
    let preparation = Preparation::new(&pipeline, repo);
    let pinned = preparation.source()?;
    "source".clone_into(&mut one.reached);
    let built = preparation.environment(&pinned)?;
    "environment".clone_into(&mut one.reached);
    one.plans.clone_from(&built.plans);
    let prepared = preparation.collect(pinned, built)?;
    "collect".clone_into(&mut one.reached);
    run(&prepared, most, one)?;
    "base".clone_into(&mut one.reached);
    Ok(())
}

fn configuration(line: &str) -> Result<String, AnyError> {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let place = match line.split_once(' ') {
        Some((url, commit)) => format!("git = {}\ncommit = {}", quoted(url), quoted(commit.trim())),
        None if Path::new(line).is_dir() => {
            format!(
                "path = {}\nallow_uncommitted = true",
                quoted(&fs_err::canonicalize(line)?.to_string_lossy())
            )
        }
        None => return Err("is neither a directory nor a URL with a commit".into()),
    };
    Ok(format!(
        "[dataset]\nname = \"yield\"\nversion = \"1\"\n[[repo]]\nslug = \"yield/repository\"\n{place}\n"
    ))
}

/// Groups once in the base world.
fn run(prepared: &Prepared, most: usize, one: &mut Yield) -> Result<(), AnyError> {
    let groups = &prepared.collected.groups;
    one.groups = groups.len();
    one.cases = groups.iter().map(|group| group.cases.len()).sum();
    let lab = &prepared.lab;
    let (world, durations) = (lab.base(), BTreeMap::new());
    let wanted: Vec<(usize, u32)> =
        (0..groups.len()).step_by(groups.len().div_ceil(most).max(1)).map(|at| (at, 1)).collect();
    one.run = wanted.len();
    let wanted = Wanted { world: &world, round: 0, groups: &wanted, durations: &durations, patience: None };
    let mut losses: BTreeMap<String, usize> = BTreeMap::new();
    lab.make(groups, &[wanted], |_, _, made| {
        let (Made::Attempt(attempt) | Made::Unavailable { attempt, .. }) = made;
        let worst = attempt.cases.iter().map(|case| case.outcome).max();
        let passes =
            attempt.cases.iter().any(|case| matches!(case.outcome, Outcome::Passed | Outcome::XPassed));
        let cause = match (&attempt.exit, worst) {
            (Exit::Finished, Some(Outcome::Failed)) => "fails",
            (Exit::Finished, Some(Outcome::Error)) => "errors",
            (Exit::Finished, Some(_)) if passes => {
                one.passing += 1;
                return Ok(());
            }
            (Exit::Finished, Some(_)) => {
                one.skipped += 1;
                return Ok(());
            }
            (Exit::TimedOut { .. }, _) => "times-out",
            (Exit::NotCollected, _) | (Exit::Finished, None) => "collection-error",
            _ => "crashes",
        };
        *losses.entry(cause.to_owned()).or_default() += 1;
        one.lost.push(Lost {
            group: attempt.group_id.clone(),
            cause: cause.to_owned(),
            said: said(&attempt),
        });
        Ok(())
    })?;
    for row in &prepared.collected.uncollected {
        one.uncollected += 1;
        *losses.entry(row.cause.to_string()).or_default() += 1;
        let (group, cause) = (row.group.group_id.clone(), row.cause.to_string());
        one.lost.push(Lost { group, cause, said: end(&row.text) });
    }
    one.losses = losses.into_iter().collect();
    one.losses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(())
}

fn said(attempt: &Attempt) -> String {
    let bad = |outcome| matches!(outcome, Outcome::Failed | Outcome::Error);
    attempt.cases.iter().find(|case| bad(case.outcome)).map(|case| end(&case.message)).unwrap_or_default()
}

/// The last lines, without blank ones.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
