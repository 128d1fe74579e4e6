//! Runs beside each other: whether two differ on the instances that both have, and how far repeats of one agree.

use std::collections::BTreeMap;

use super::{Cell, Run, Table, by, interval, names, number, rate, text};
use crate::family::gistify::{Cases, Row};
use crate::score::paired::{benjamini_hochberg, bootstrap, deviation, sign_flip};
use crate::score::{Mean, Ratio};

/// Pairs of runs that are compared: the first ones of more.
const MOST_PAIRS: usize = 100;

/// What a submission has of a measure.
type Measure = fn(&Row) -> Option<f64>;

/// What runs are compared by.
const MEASURES: [(&str, Measure); 6] = [
    ("fidelity", |row| row.fidelity.map(|right| f64::from(u8::from(right)))),
    ("line execution", |row| row.execution.filter(|_| row.fidelity == Some(true))?.rate()),
    ("line existence", |row| row.existence.and_then(Ratio::rate)),
    ("trace recall", |row| row.trace_recall.filter(|_| row.fidelity == Some(true))?.rate()),
    ("test F1", |row| row.test_f1),
    ("pass rate", |row| row.cases.and_then(Cases::rate)),
];

fn measured<'a>(run: &Run<'a>, of: Measure) -> BTreeMap<&'a str, f64> {
    let value = |one: &crate::referee::scored::Scored<'a>| {
        Some((one.instance.instance_id.as_str(), of(&one.judged.row)?))
    };
    run.scored.iter().filter_map(value).collect()
}

/// Each pair of runs, by each measure of which both have at least two instances.
pub(super) fn compared(runs: &[Run<'_>]) -> Table {
    let (mut rows, mut ps) = (Vec::new(), Vec::new());
    let pairs =
        runs.iter().enumerate().flat_map(|(at, one)| runs[at + 1..].iter().map(move |other| (one, other)));
    for (one, other) in pairs.take(MOST_PAIRS) {
        for (name, of) in MEASURES {
            let (first, second) = (measured(one, of), measured(other, of));
            let differences: Vec<f64> =
                first.iter().filter_map(|(id, value)| Some(second.get(id)? - value)).collect();
            let Some(between) = bootstrap(&differences) else { continue };
            let p = sign_flip(&differences);
            ps.extend(p);
            rows.push(vec![
                text(one.name),
                text(other.name),
                text(name),
                rate(Mean::of(differences)),
                interval(Some(between)),
                number(p),
            ]);
        }
    }
    let mut adjusted = benjamini_hochberg(&ps).into_iter();
    for row in &mut rows {
        let has_p = matches!(row[5], Cell::Number { value: Some(_) });
        row.push(number(if has_p { adjusted.next() } else { None }));
    }
    Table {
        id: "compared",
        title: "Two runs on the same instances",
        note: "The mean of the second run minus the first, over instances that both have a value for; a bootstrap interval at 95 % \
               over instances; p of sign flips of the paired differences, empty where none differs; q is p among all rows \
               (Benjamini and Hochberg). Of more than 100 pairs the first ones.",
        columns: names(&["first", "second", "measure", "difference", "95 %", "p", "q"]),
        rows,
    }
}

/// Runs of one framework, model and setting.
pub(super) fn repeats(runs: &[Run<'_>]) -> Table {
    let of_setting = by(runs, |run| (run.framework(), run.model(), run.setting()));
    let rows = of_setting.into_iter().filter(|(_, runs)| runs.len() > 1).map(
        |((framework, model, setting), runs)| {
            let all: Vec<BTreeMap<&str, f64>> = runs.iter().map(|run| measured(run, MEASURES[0].1)).collect();
            let means: Vec<f64> = all.iter().filter_map(|one| Mean::of(one.values().copied()).mean).collect();
            let whole = |id: &&&str| all.iter().all(|one| one.contains_key(**id));
            let right: Vec<f64> =
                all[0].keys().filter(whole).map(|id| all.iter().map(|one| one[id]).sum()).collect();
            let of_all = all.len() as f64;
            let share = |holds: &dyn Fn(f64) -> bool| {
                rate(Mean::of(right.iter().map(|times| f64::from(u8::from(holds(*times))))))
            };
            vec![
                text(framework),
                text(model),
                text(setting),
                number(Some(of_all)),
                rate(Mean::of(means.iter().copied())),
                number(deviation(&means)),
                share(&|times| times > 0.0),
                share(&|times| times >= of_all),
                share(&|times| times <= 0.0 || times >= of_all),
            ]
        },
    );
    Table {
        id: "repeats",
        title: "Repeats of a run",
        note: "Runs of the same framework, model and setting: the mean of their fidelities and its standard deviation from repeat to \
               repeat; of the instances that all have, the share that is right in one at least, in all, and the same in all.",
        columns: names(&[
            "framework",
            "model",
            "setting",
            "repeats",
            "fidelity",
            "deviation",
            "right once",
            "right in all",
            "same in all",
        ]),
        rows: rows.collect(),
    }
}
