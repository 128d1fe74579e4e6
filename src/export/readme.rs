//! The README of an export: how to run it with each harness, and how it is judged.

use std::collections::BTreeSet;

use minijinja::{Environment, UndefinedBehavior, context};

use super::{Collection, Harness, images, masked, refactoring};
use crate::error::{Error, Result};

const TEMPLATE: &str = include_str!("readme.md");

pub(super) fn render(collection: &Collection, harnesses: &BTreeSet<Harness>) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let has = |wanted: &[Harness]| wanted.iter().any(|one| harnesses.contains(one));
    let environments = &collection.environments;
    let unbuildable: Vec<String> = environments
        .iter()
        .filter(|(_, environment)| !environment.is_pulled && !images::can_be_built(environment))
        .map(|(slug, _)| slug.to_string())
        .collect();
    let context = context! {
        name => &collection.name,
        version => &collection.version,
        tasks => collection.tasks.len(),
        commands => collection.commands(),
        masked => !collection.masked.is_empty(),
        has_graph => collection.masked.values().any(masked::MaskedImage::has_graph),
        without_variants => collection.without_variants(),
        without_other_input => collection.without_other_input(),
        gold => collection.tasks.iter().filter(|task| task.has_solution()).count(),
        refactorings => collection.tasks.iter().any(refactoring::is_refactoring),
        steps => collection.tasks.first().and_then(|task| task.judging.suite.as_ref()).map_or(0, |suite| suite.steps.len()),
        first => collection.tasks.first().map(|task| task.id.to_string()),
        submission => collection.tasks.first().map(|task| task.judging.submission.clone()),
        images => environments.values().map(|one| one.image.clone()).collect::<Vec<_>>(),
        unbuildable => unbuildable,
        all_pulled => environments.values().all(|one| one.is_pulled),
        tools => collection.tools.as_ref().map(|tools| tools.names().collect::<Vec<_>>()),
        harbor => has(&[Harness::Harbor, Harness::Inspect, Harness::Verifiers]),
        swe_bench => has(&[Harness::SweBench, Harness::MiniSweAgent]),
        mini => has(&[Harness::MiniSweAgent]),
        swe_agent => has(&[Harness::SweAgent]),
        prompts => has(&[Harness::Prompts]),
        sif => &collection.settings.sif,
        bounds_network => collection.settings.bounds_network(),
        engine => collection.settings.program(),
        other_engine => collection.settings.other_program(),
    };
    environment
        .render_str(TEMPLATE, context)
        .map(|text| text + "\n")
        .map_err(|error| Error::internal("cannot render the README of an export").with_source(error))
}
