//! Refactorings against what the dataset says of them: patterns on both trees, and golden and empty patch through the judge.

use std::time::Duration;

use super::instances::Verified;
use crate::dataset::codetaste::{CodetasteInstance, HiddenPair};
use crate::error::Result;
use crate::pattern::Sandbox;
use crate::pipeline::prepare::Prepared;
use crate::record::codetaste::{Bounds, PatternRow};
use crate::record::host::HostFacts;
use crate::referee::codetaste::judge::{Class, Ground, Instance, Judged};
use crate::referee::codetaste::suite::{SuiteLab, Suites};
use crate::store::{Cache, scratch};

/// How far two shares may be apart that are the same.
const SAME: f64 = 1e-9;

/// Judges the golden and the empty patch of one instance so many times, `limit` is what a run of scripts may take; `step` is called after each. `machine` gets what is
/// other here than where the dataset was built.
///
/// # Errors
/// IO errors and an interruption.
pub(crate) fn verify(
    (prepared, cache, limit): (&Prepared, &Cache, Duration),
    sandbox: Sandbox<'_>,
    (instance, hidden): (&CodetasteInstance, &HiddenPair),
    attempts: u32,
    (built, machine): (&HostFacts, &mut Vec<String>),
    step: &dyn Fn(),
) -> Result<Verified> {
    let mut one = Verified {
        instance_id: instance.head.instance_id.to_string(),
        group_id: instance.golden_commit.clone(),
        ..Verified::default()
    };
    let ground = match Ground::of(&prepared.pinned.tree, &hidden.pattern_files, &hidden.patterns, sandbox) {
        Ok(ground) => ground,
        Err(error) => {
            crate::interrupt::check()?;
            one.tables.push(error.to_string());
            return Ok(one);
        }
    };
    let slug = instance.head.slug.as_str();
    machine.extend(ground.engine().and_then(|here| built.engine_difference(slug, here)));
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let on_trial = Instance {
        place: SuiteLab { lab: &prepared.lab, cache, scripts: &hidden.scripts, limit },
        ground: &ground,
        rows: &hidden.patterns,
        bounds: Bounds { passed: signed(instance.p_min), failed: signed(instance.f_max) },
        must_pass: &hidden.must_pass,
        failing: &hidden.failing,
    };
    let mut first = None;
    for number in 0..attempts {
        // Nothing that an earlier run left counts.
        let folder = scratch()?;
        let mut suites = Suites::open(&folder.path().join("runs"))?;
        let mut differences = Vec::new();
        if let Some(patch) = &hidden.golden_patch {
            let judged = on_trial.judge(patch, &mut suites)?;
            differences.extend(of_golden(instance, &hidden.patterns, &judged));
            let counts = (judged.counts, judged.pass_set);
            one.alike += u32::from(*first.get_or_insert(counts) == counts);
        } else if number == 0 {
            one.tables.push("the dataset came without the golden patch".to_owned());
        }
        differences.extend(of_null(&on_trial.judge(b"", &mut suites)?));
        one.attempts += 1;
        one.agreeing += u32::from(differences.is_empty());
        for text in differences {
            one.differs(text);
        }
        step();
    }
    Ok(one)
}

fn suite(name: &str, judged: &Judged) -> Option<String> {
    let why = judged.detail.as_deref().unwrap_or("no reason is known");
    (judged.class != Class::Passes).then(|| format!("the {name} patch: the suite does not pass: {why}"))
}

/// Cases that must pass and do not.
fn lacking<'j>(judged: &'j Judged, name: &str) -> impl Iterator<Item = String> + use<'j> {
    let name = name.to_owned();
    judged.missing.iter().map(move |case| format!("{case} must pass, and does not with the {name} patch"))
}

/// What the golden patch shows that the dataset does not say.
fn of_golden(instance: &CodetasteInstance, rows: &[PatternRow], judged: &Judged) -> Vec<String> {
    let mut found: Vec<String> = suite("golden", judged).into_iter().collect();
    found.extend(lacking(judged, "golden"));
    let matches = |id: &str| judged.matches.get(id).copied().unwrap_or_default();
    for row in rows.iter().filter(|row| matches(&row.id) != row.golden) {
        found.push(format!(
            "{}: recorded with {} matches on golden, seen {}",
            row.id,
            row.golden,
            matches(&row.id)
        ));
    }
    let numbers = judged.numbers.as_ref();
    if let Some(ifr) = numbers.and_then(|numbers| numbers.ifr).filter(|ifr| *ifr < 1.0 - SAME) {
        found.push(format!("the golden patch has an IFR of {ifr:.6} and not 1"));
    }
    let prec = numbers.map(|numbers| numbers.prec);
    let is_same = match (instance.golden_prec, prec) {
        (Some(said), Some(seen)) => (said - seen).abs() < SAME,
        (said, seen) => said.is_none() && seen.is_none_or(|seen| seen == 0.0),
    };
    if !is_same {
        let shown = |share: Option<f64>| share.map_or("none".to_owned(), |share| format!("{share:.6}"));
        let (said, seen) = (shown(instance.golden_prec), shown(prec));
        found.push(format!("golden_prec: recorded {said}, seen {seen}"));
    }
    found
}

/// What the empty patch shows that it must not.
fn of_null(judged: &Judged) -> Vec<String> {
    let mut found: Vec<String> = suite("empty", judged).into_iter().collect();
    found.extend(lacking(judged, "empty"));
    if let Some(numbers) = &judged.numbers
        && numbers.ifr.is_some_and(|ifr| ifr > 0.0)
    {
        found.push("the empty patch satisfies a pattern".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::record::codetaste::Side;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn a_golden_patch_that_shows_something_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        crate::testing::write(&folder.path().join("1"), &MadeUp::pairs(&[5]).input()).unwrap();
        let dataset = Dataset::open_any(&folder.path().join("1")).unwrap();
        let (instance, hidden) =
            (dataset.codetaste_instances().unwrap().remove(0), dataset.hidden_pairs(None).unwrap());
        let rows = &hidden[instance.head.instance_id.as_str()].patterns;
        let right = Judged {
            class: Class::Passes,
            matches: rows.iter().map(|row| (row.id.clone(), row.golden)).collect(),
            ..Judged::absent(None)
        };
        let told = |judged: &Judged| of_golden(&instance, rows, judged);
        let prec = "golden_prec: recorded 0.750000, seen none";
        assert_eq!(told(&right), [prec]);
        let broken = Judged {
            class: Class::Regression,
            detail: Some("3 passed".to_owned()),
            missing: vec!["t.py::test".to_owned()],
            matches: crate::family::codetaste::score::MatchCounts::new(),
            ..right.clone()
        };
        let additive = rows.iter().find(|row| row.side == Side::Additive).unwrap();
        assert_eq!(
            told(&broken),
            [
                "the golden patch: the suite does not pass: 3 passed".to_owned(),
                "t.py::test must pass, and does not with the golden patch".to_owned(),
                format!("{}: recorded with 2 matches on golden, seen 0", additive.id),
                prec.to_owned(),
            ]
        );
        assert!(of_null(&right).is_empty());
        let null = of_null(&broken);
        assert_eq!(
            (null.len(), null[1].as_str()),
            (2, "t.py::test must pass, and does not with the empty patch")
        );
    }
}
