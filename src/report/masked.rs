//! The page of a dataset of masked files: which files there are, the mask beside the original, who calls it, which tests reach
//! it and which bodies they notice. Plain HTML, without a script.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde::Serialize;

use crate::dataset::query::targets;
use crate::dataset::recube::RecubeInstance;
use crate::dataset::{Dataset, trees};
use crate::error::{Error, Fault, Result};
use crate::family::recube::mask::{Cut, mask};
use crate::page;
use crate::record::recube::{InstanceCase, Kind};

const PAGE: &str = include_str!("masked/page.html");
const STYLE: &str = include_str!("masked/page.css");

/// A masked file as the page shows it.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    slug: String,
    target: String,
    tier: &'static str,
    n_cases: u64,
    n_groups: u64,
    n_external: u64,
    n_internal: u64,
    hidden: usize,
    flags: Vec<String>,
    context_tokens: Option<u64>,
    leaks: Vec<String>,
    callers: Vec<String>,
    masked: Option<String>,
    /// None where the dataset has no tree of it.
    original: Option<String>,
    functions: Vec<Function>,
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Function {
    name: String,
    line: u32,
    statements: u32,
    called_by: usize,
    body: &'static str,
}

#[derive(Debug, Serialize)]
struct Group {
    id: String,
    kind: &'static str,
    reason: &'static str,
    way: &'static str,
    judging: usize,
    left_out: BTreeSet<String>,
    functions: usize,
}

/// The groups that call each function, and the functions that each group calls, of one instance.
#[derive(Debug, Default)]
struct Calls {
    by_function: BTreeMap<String, usize>,
    by_group: BTreeMap<String, usize>,
}

/// Renders the page.
pub(super) fn page(dataset: &Dataset) -> Result<String> {
    let (instances, targets) = (dataset.recube_instances()?, targets::all(dataset)?);
    let cases = dataset.recube_cases()?;
    let (originals, calls) = (originals(dataset, &instances)?, calls(dataset)?);
    let (nothing, none) = (Calls::default(), Vec::new());
    let shown: Vec<Shown> = instances
        .iter()
        .map(|one| {
            let id = one.head.instance_id.as_str();
            let original = originals.get(&(one.head.slug.to_string(), one.target.clone()));
            let of = (cases.get(id).unwrap_or(&none).as_slice(), calls.get(id).unwrap_or(&nothing));
            shown(one, original.map(String::as_str), of)
        })
        .collect();
    let repositories: BTreeSet<&str> = targets.iter().map(|one| one.slug.as_str()).collect();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    let safe = Value::from_safe_string;
    let context = context! {
        manifest => Value::from(Serde(&dataset.manifest)),
        repositories => repositories.len(),
        cases => instances.iter().map(|one| one.n_cases).sum::<u64>(),
        external => instances.iter().map(|one| one.n_external).sum::<u64>(),
        targets => Value::from(Serde(targets)),
        instances => Value::from(Serde(shown)),
        icon => safe(page::ICON.to_owned()),
        style => safe([page::STYLE, STYLE].concat()),
    };
    environment
        .render_str(PAGE, context)
        .map_err(|error| Error::internal("cannot render the page").with_source(error))
}

fn shown(one: &RecubeInstance, original: Option<&str>, (cases, calls): (&[InstanceCase], &Calls)) -> Shown {
    // What the tree has is shown where it is what was masked.
    let functions = original.and_then(|text| mask(text, Cut::All).ok()).map(|masked| masked.functions);
    let function = |function: crate::family::recube::mask::Function| Function {
        called_by: calls.by_function.get(&function.name).copied().unwrap_or(0),
        body: match (function.is_trivial, one.unnoticed.contains(&function.name)) {
            (true, _) => "none",
            (false, true) => "not noticed",
            (false, false) => "noticed",
        },
        name: function.name,
        line: function.line,
        statements: function.statements,
    };
    let mut groups: Vec<Group> = Vec::new();
    for case in cases {
        if groups.last().is_none_or(|last| last.id != case.group_id) {
            groups.push(Group {
                id: case.group_id.clone(),
                kind: case.kind.as_str(),
                reason: case.reason.as_str(),
                way: case.way.as_str(),
                judging: 0,
                left_out: BTreeSet::new(),
                functions: calls.by_group.get(&case.group_id).copied().unwrap_or(0),
            });
        }
        if let Some(group) = groups.last_mut() {
            group.judging += usize::from(case.left_out.is_none());
            group.left_out.extend(case.left_out.clone());
        }
    }
    groups.sort_by_key(|group| group.kind != Kind::External.as_str());
    Shown {
        id: one.head.instance_id.to_string(),
        slug: one.head.slug.to_string(),
        target: one.target.clone(),
        tier: one.tier.as_str(),
        n_cases: one.n_cases,
        n_groups: one.n_groups,
        n_external: one.n_external,
        n_internal: one.n_internal,
        hidden: one.hidden_files.len(),
        flags: one.flags.clone(),
        context_tokens: one.context_tokens,
        leaks: one.leaks.clone(),
        callers: one.callers.clone(),
        masked: one.masked.clone(),
        original: original.map(str::to_owned),
        functions: functions.unwrap_or_default().into_iter().map(function).collect(),
        groups,
    }
}

/// The originals by repository and path; a tree that cannot be read costs them alone.
fn originals(dataset: &Dataset, instances: &[RecubeInstance]) -> Result<BTreeMap<(String, String), String>> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in instances {
        wanted.entry(one.head.slug.as_str()).or_default().insert(&one.target);
    }
    let mut found = BTreeMap::new();
    for (slug, files) in wanted {
        match trees::texts(dataset, slug, |path| files.contains(path)) {
            Ok(texts) => {
                let texts = texts.into_iter().flatten();
                found.extend(texts.map(|(path, text)| ((slug.to_owned(), path), text)));
            }
            Err(error) if error.fault() == Fault::Interrupted => return Err(error),
            Err(error) => {
                tracing::warn!("the page has no originals of {slug}: {error}");
            }
        }
    }
    Ok(found)
}

fn calls(dataset: &Dataset) -> Result<BTreeMap<String, Calls>> {
    let table = dataset.table("traces", &["instance_id", "group_id", "function"])?;
    let (ids, groups) = (table.whole_texts("instance_id")?, table.whole_texts("group_id")?);
    let functions = table.whole_texts("function")?;
    let mut calls: BTreeMap<String, Calls> = BTreeMap::new();
    for at in 0..table.rows() {
        let one = calls.entry(ids[at].to_owned()).or_default();
        *one.by_function.entry(functions[at].to_owned()).or_default() += 1;
        *one.by_group.entry(groups[at].to_owned()).or_default() += 1;
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use crate::testing::made_up::MadeUp;
    use crate::testing::masked::TARGET;

    #[test]
    fn the_page_shows_masks_callers_tests_and_bodies_and_takes_no_text_for_markup() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("1");
        let mut made_up = MadeUp::masked(&[12]);
        let recube = made_up.repositories[0].recube.as_mut().unwrap();
        recube.published[0].cases[0].case_id = "</table><script>alert(1)</script>".to_owned();
        recube.targets[0].evidence = Some("<b>bold</b>".to_owned());
        crate::testing::write(&directory, &made_up.input()).unwrap();
        let path = directory.join(crate::report::FILE);
        let page = fs_err::read_to_string(&path).unwrap();
        for words in [
            TARGET,
            "return os.sep * b",
            "raise NotImplementedError()",
            "Called by <code>src",
            "<code>third</code><td class=\"n\">14<td class=\"n\">1<td class=\"n\">0<td>not noticed",
            "test-calls-private",
            "imports-kept",
            "few-functions",
        ] {
            let escaped = words.replace('/', "&#x2f;");
            assert!(page.contains(words) || page.contains(&escaped), "{words}");
        }
        assert!(!page.contains("<script") && !page.contains("<b>bold"), "what a dataset says is text");
        for loader in ["src=", "@import", "url(", "fetch("] {
            assert!(!page.contains(loader), "{loader}");
        }
        crate::report::render(&directory).unwrap();
        assert_eq!(page, fs_err::read_to_string(&path).unwrap(), "rendering again gives the same page");
        fs_err::write(directory.join("trees/made__up0.tar.zst"), "no archive").unwrap();
        crate::report::render(&directory).unwrap();
        assert!(!fs_err::read_to_string(&path).unwrap().contains("return os.sep"));
    }
}
