//! Masked files against what the dataset says of them: with the original every case that judges passes, with the mask and with
//! imports alone none does.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::instances::Verified;
use crate::dataset::recube::RecubeInstance;
use crate::error::{Error, Result};
use crate::family::recube::mask::{Cut, mask};
use crate::pipeline::prepare::Prepared;
use crate::record::collected::Group;
use crate::record::recube::InstanceCase;
use crate::referee::recube::{Ground, group_of};
use crate::referee::texts::{Runs, Shown, TargetLab};
use crate::store::Cache;

/// Runs the instances of one repository so many times; `step` is called after each of them.
///
/// # Errors
/// IO errors and an interruption.
pub(crate) fn verify(
    prepared: &Prepared,
    cache: &Cache,
    instances: &[(&RecubeInstance, &[InstanceCase])],
    attempts: u32,
    step: &(dyn Fn() + Sync),
) -> Result<Vec<Verified>> {
    // Nothing that an earlier command left counts.
    let runs = Runs::fresh(2 * prepared.lab.jobs());
    let of_one = |(instance, cases): &(&RecubeInstance, &[InstanceCase])| {
        let mut one = Verified {
            instance_id: instance.head.instance_id.to_string(),
            group_id: instance.target.clone(),
            ..Verified::default()
        };
        let ground = Ground::of(&prepared.lab, &instance.target).and_then(|ground| {
            ground.check(&instance.original_sha256, &instance.masked_sha256).map(|()| ground)
        });
        match ground {
            Ok(ground) => {
                let place = TargetLab {
                    lab: &prepared.lab,
                    cache,
                    target: &instance.target,
                    byte_code: &ground.byte_code,
                    waiting: None,
                };
                run(&mut one, (place, &ground), cases, attempts, &runs)?;
            }
            Err(error) => {
                crate::interrupt::check()?;
                one.tables.push(error.to_string());
            }
        }
        step();
        Ok(one)
    };
    instances.par_iter().map(of_one).collect()
}

fn run(
    one: &mut Verified,
    (place, ground): (TargetLab<'_>, &Ground),
    cases: &[InstanceCase],
    attempts: u32,
    runs: &Runs,
) -> Result<()> {
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.group_id.as_str()).collect();
    let groups: Vec<Group> = ids.into_iter().map(group_of).collect();
    let bodies = mask(&ground.original, Cut::Bodies)
        .map_err(|why| Error::internal(format!("{} cannot be masked: {}", place.target, why.reason())))?;
    let mut first: Option<BTreeMap<String, _>> = None;
    for number in 0..attempts {
        let show = |text: &str| runs.shown(place, text, &groups, number);
        let (original, masked) = (show(&ground.original)?, show(&ground.masked.text)?);
        let differences =
            differences(cases, &original, [("masked", masked), ("imports-kept", show(&bodies.text)?)]);
        one.attempts += 1;
        one.agreeing += u32::from(differences.is_empty());
        one.alike += u32::from(*first.get_or_insert_with(|| original.outcomes.clone()) == original.outcomes);
        for text in differences {
            one.differs(text);
        }
    }
    Ok(())
}

/// What is not as the dataset says.
fn differences(cases: &[InstanceCase], original: &Shown, gates: [(&str, Shown); 2]) -> Vec<String> {
    if let Some(broken) = &original.broken {
        return vec![format!("with the original nothing can be run: {broken}")];
    }
    let mut found = Vec::new();
    for case in cases {
        if !original.passes(&case.case_id) {
            found.push(format!("{} does not pass with the original", case.case_id));
        }
        let taken = gates.iter().find(|(_, shown)| shown.passes(&case.case_id)).map(|(gate, _)| *gate);
        if taken != case.left_out.as_deref() {
            let said =
                |gate: Option<&str>| gate.map_or("no gate".to_owned(), |gate| format!("the gate {gate}"));
            let (recorded, seen) = (said(case.left_out.as_deref()), said(taken));
            found.push(format!("{}: recorded that {recorded} takes it, seen {seen}", case.case_id));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::outcome::Outcome;
    use crate::record::recube::{Kind, Reason, Way};

    #[test]
    fn a_case_that_passes_without_the_bodies_or_fails_with_them_is_named() {
        let case = |id: &str, left_out: Option<&str>| InstanceCase {
            group_id: "t.py::test".into(),
            case_id: id.into(),
            kind: Kind::External,
            reason: Reason::OtherFileCalls,
            way: Way::Through,
            left_out: left_out.map(str::to_owned),
        };
        let shown = |passing: &[&str]| Shown {
            outcomes: passing.iter().map(|id| ((*id).to_owned(), Outcome::Passed)).collect(),
            ..Shown::default()
        };
        let cases = [case("a", None), case("b", None), case("c", Some("imports-kept"))];
        let told = |original: &[&str], masked: &[&str], imports: &[&str]| {
            differences(
                &cases,
                &shown(original),
                [("masked", shown(masked)), ("imports-kept", shown(imports))],
            )
        };
        assert_eq!(told(&["a", "b", "c"], &[], &["c"]), [""; 0]);
        assert_eq!(
            told(&["a", "c"], &["a"], &[]),
            [
                "a: recorded that no gate takes it, seen the gate masked",
                "b does not pass with the original",
                "c: recorded that the gate imports-kept takes it, seen no gate",
            ]
        );
        let broken = Shown { broken: Some("gone".into()), ..Shown::default() };
        assert_eq!(
            differences(&cases, &broken, [("masked", shown(&[])), ("imports-kept", shown(&[]))]),
            ["with the original nothing can be run: gone"]
        );
    }
}
