//! What containers cost: for each repository of a config, the time to build its environment and image, the size of the
//! image with shared layers counted once, and an attempt beside the same one in the local sandbox.
//!
//! `cargo bench --profile dev --bench all -- containers my.toml`; repositories need `backend = "docker"`.

use std::path::PathBuf;
use std::time::Instant;

use crate::common::{AnyError, Subject, cold, folder, fork, milliseconds, sample};
use gistmill::backend::docker::{Engine, image};
use gistmill::config::BackendKind;
use gistmill::pipeline::prepare::Preparation;
use gistmill::runner::protocol::TraceMode;

/// Groups that are run cold.
const SAMPLE: usize = 20;

pub fn main() -> Result<(), AnyError> {
    let named = crate::arguments().into_iter().find(|argument| !argument.starts_with("--"));
    let config = PathBuf::from(named.ok_or("name a config whose repositories have backend = \"docker\"")?);
    let docker = Subject::open(&config, &folder().join("containers"), 1)?;
    let mut local = Subject::open(&config, &folder().join("containers"), 1)?;
    for repo in &mut local.config.repos {
        repo.backend = BackendKind::Local;
    }
    for (kind, subject) in [("docker", &docker), ("local", &local)] {
        for repo in &subject.config.repos {
            measure(kind, subject, repo)?;
        }
    }
    sizes()
}

fn measure(kind: &str, subject: &Subject, repo: &gistmill::config::Repo) -> Result<(), AnyError> {
    let pipeline = subject.pipeline();
    let preparation = Preparation::new(&pipeline, repo);
    let pinned = preparation.source()?;
    let started = Instant::now();
    let built = preparation.environment(&pinned)?;
    let environment = milliseconds(started);
    let started = Instant::now();
    let prepared = preparation.collect(pinned, built)?;
    let collected = milliseconds(started);
    let attempt = fork(&prepared, TraceMode::Off)?;
    let groups = sample(&prepared.collected.groups, SAMPLE);
    let command = cold(&prepared, &groups)?;
    println!(
        "{kind:<6} {}: environment {:.1} s, image and collection {:.1} s, {} groups, {attempt:.1} ms an attempt, {command:.0} ms a cold run",
        repo.slug,
        environment / 1000.0,
        collected / 1000.0,
        prepared.collected.groups.len(),
    );
    Ok(())
}

/// Sizes of all images that gistmill made in the engine.
fn sizes() -> Result<(), AnyError> {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let images = image::list(&Engine::connect(None)?)?;
    let of_environments: Vec<_> = images.iter().filter(|one| one.own_bytes.is_some()).collect();
    let mut own_in_all = 0;
    let mut base = 0;
    for one in &of_environments {
        let own = one.own_bytes.unwrap_or_default();
        own_in_all += own;
        base = base.max(one.bytes.saturating_sub(own));
        println!("{}: {:.1} MB of its own, {:.1} MB with the base", one.tag, mega(own), mega(one.bytes));
    }
    println!("{} images on one base: {:.1} MB", of_environments.len(), mega(own_in_all + base));
    Ok(())
}
