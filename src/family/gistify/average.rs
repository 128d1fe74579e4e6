//! Numbers of many submissions. Every average carries how many submissions it is of, and each rate leaves out what it
//! cannot speak of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::ErrorClass;
use crate::score::{Mean, Ratio, wilson};

/// What was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Submitted {
    Nothing,
    Unparsable,
    Readable,
}

/// Golden cases of one submission whose run came as far as a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cases {
    pub passed: u32,
    /// Golden cases, whether they ran or not.
    pub total: u32,
}

impl Cases {
    /// From 0 to 1. None of nothing.
    pub fn rate(self) -> Option<f64> {
        Ratio { part: self.passed, whole: self.total }.rate()
    }
}

/// What one submission adds to the averages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub submitted: Submitted,
    /// None: lost.
    pub fidelity: Option<bool>,
    pub class: Option<ErrorClass>,
    /// Of a run that was traced, whatever it showed.
    pub execution: Option<Ratio>,
    pub execution_statements: Option<Ratio>,
    /// None where there is no file to read.
    pub existence: Option<Ratio>,
    pub existence_control: Option<Ratio>,
    /// None where the dataset has no trace of the original, or there is no file to read.
    #[serde(default)]
    pub trace_recall: Option<Ratio>,
    /// From 0 to 1; 0 where the test or the file is missing. None where the original is no definition.
    pub test_f1: Option<f64>,
    /// None where pytest ran no case.
    pub cases: Option<Cases>,
}

/// How often each class is the reason of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassShare {
    pub class: ErrorClass,
    pub n: u32,
    /// Of all failures. None where there are none.
    pub share: Option<f64>,
}

/// The numbers of a run, or of a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub submissions: u32,
    /// Left out of every number: the harness failed.
    pub lost: u32,
    pub fidelity: Mean,
    /// Wilson's interval at 95 %.
    pub fidelity_interval: Option<(f64, f64)>,
    /// Over submissions with fidelity 1.
    pub line_execution: Mean,
    pub line_execution_statements: Mean,
    /// Over all that were traced.
    pub line_execution_ran: Mean,
    /// Over files; one that is no Python has 0.
    pub line_existence: Mean,
    /// Line existence over files, with 0 for one that is not there.
    pub line_existence_all: Mean,
    pub line_existence_control: Mean,
    /// Over submissions with fidelity 1.
    pub trace_recall: Mean,
    pub test_f1: Mean,
    /// Over submissions of which at least one case ran.
    pub pass_rate: Mean,
    /// Over those of which at least one case passed.
    pub pass_rate_passed: Mean,
    /// Cases of all submissions in one.
    pub pass_rate_pooled: Ratio,
    pub classes: Vec<ClassShare>,
}

/// Sums up submissions.
pub fn summarize<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Summary {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let kept: Vec<&Row> = rows.iter().copied().filter(|row| row.fidelity.is_some()).collect();
    let good: Vec<&Row> = kept.iter().copied().filter(|row| row.fidelity == Some(true)).collect();
    let rates = |rows: &[&Row], of: fn(&Row) -> Option<Ratio>| {
        Mean::of(rows.iter().filter_map(|row| of(row)?.rate()).collect::<Vec<_>>())
    };
    let existence = |of: fn(&Row) -> Option<Ratio>, missing: Option<f64>| {
        let values = kept.iter().filter_map(|row| match row.submitted {
            Submitted::Nothing => missing,
            Submitted::Unparsable => Some(0.0),
            Submitted::Readable => of(row)?.rate(),
        });
        Mean::of(values.collect::<Vec<_>>())
    };
    let ran: Vec<Cases> = kept.iter().filter_map(|row| row.cases).filter(|cases| cases.total > 0).collect();
    let pass_rates = |least: u32| {
        let counted = ran.iter().filter(|cases| cases.passed >= least);
        Mean::of(counted.filter_map(|cases| cases.rate()).collect::<Vec<_>>())
    };
    let fidelity = Ratio { part: good.len() as u32, whole: kept.len() as u32 };
    Summary {
        submissions: rows.len() as u32,
        lost: (rows.len() - kept.len()) as u32,
        fidelity: Mean { mean: fidelity.rate(), n: fidelity.whole },
        fidelity_interval: wilson(fidelity),
        line_execution: rates(&good, |row| row.execution),
        line_execution_statements: rates(&good, |row| row.execution_statements),
        line_execution_ran: rates(&kept, |row| row.execution),
        line_existence: existence(|row| row.existence, None),
        line_existence_all: existence(|row| row.existence, Some(0.0)),
        line_existence_control: existence(|row| row.existence_control, None),
        trace_recall: rates(&good, |row| row.trace_recall),
        test_f1: Mean::of(kept.iter().filter_map(|row| row.test_f1)),
        pass_rate: pass_rates(0),
        pass_rate_passed: pass_rates(1),
        pass_rate_pooled: Ratio {
            part: ran.iter().map(|cases| cases.passed).sum(),
            whole: ran.iter().map(|cases| cases.total).sum(),
        },
        classes: classes(&kept),
    }
}

/// Sums up each part of a run: a repository, a tier, a subset.
pub fn summarize_by<'r, K: Ord>(rows: impl IntoIterator<Item = (K, &'r Row)>) -> BTreeMap<K, Summary> {
    let mut parts: BTreeMap<K, Vec<&Row>> = BTreeMap::new();
    for (key, row) in rows {
        parts.entry(key).or_default().push(row);
    }
    parts.into_iter().map(|(key, rows)| (key, summarize(rows))).collect()
}

fn classes(rows: &[&Row]) -> Vec<ClassShare> {
    let failures = rows.iter().filter(|row| row.class.is_some()).count() as u32;
    let share = |class| {
        let n = rows.iter().filter(|row| row.class == Some(class)).count() as u32;
        ClassShare { class, n, share: Ratio { part: n, whole: failures }.rate() }
    };
    ErrorClass::ALL.into_iter().map(share).collect()
}

/// What would be expected of a subset if it were no harder than the rest of its repositories: the mean of the
/// repositories' numbers, weighted by how many of the subset each has.
pub fn weighted_baseline<K: Ord>(subset: &BTreeMap<K, u32>, whole: &BTreeMap<K, Mean>) -> Option<f64> {
    let known = subset.iter().filter_map(|(key, n)| Some((f64::from(*n), whole.get(key)?.mean?)));
    let (sum, weight) = known.fold((0.0, 0.0), |(sum, weight), (n, mean)| (sum + n * mean, weight + n));
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::mean_of_means;

    fn row(submitted: Submitted, fidelity: Option<bool>, class: Option<ErrorClass>) -> Row {
        Row {
            submitted,
            fidelity,
            class,
            execution: None,
            execution_statements: None,
            existence: None,
            existence_control: None,
            trace_recall: None,
            test_f1: None,
            cases: None,
        }
    }

    fn percent(part: u32) -> Ratio {
        Ratio { part, whole: 100 }
    }

    /// The six submissions of the worked averages.
    fn six() -> Vec<Row> {
        use Submitted::*;
        let runtime = Some(ErrorClass::PytestRuntimeError);
        let cases = |passed, total| Some(Cases { passed, total });
        vec![
            Row {
                execution: Some(percent(80)),
                existence: Some(percent(100)),
                test_f1: Some(1.0),
                cases: cases(2, 2),
                ..row(Readable, Some(true), None)
            },
            Row {
                execution: Some(percent(10)),
                existence: Some(percent(50)),
                test_f1: Some(0.5),
                cases: cases(1, 4),
                ..row(Readable, Some(false), runtime)
            },
            Row { test_f1: Some(0.0), ..row(Nothing, Some(false), Some(ErrorClass::FileCreationFailure)) },
            Row { test_f1: Some(0.0), ..row(Unparsable, Some(false), runtime) },
            Row {
                execution: Some(percent(60)),
                existence: Some(percent(90)),
                test_f1: Some(1.0),
                cases: cases(3, 3),
                ..row(Readable, Some(true), None)
            },
            Row {
                existence: Some(percent(7)),
                test_f1: Some(1.0),
                cases: cases(0, 9),
                ..row(Readable, None, None)
            },
        ]
    }

    fn is(mean: Mean, value: f64, n: u32) {
        assert_eq!(mean.n, n);
        assert!((mean.mean.unwrap() - value).abs() < 1e-12, "{mean:?} is not {value}");
    }

    #[test]
    fn worked_averages_a1_to_a5() {
        let mut rows = six();
        let all = summarize(&rows);
        assert_eq!((all.submissions, all.lost), (6, 1));
        is(all.fidelity, 0.4, 5);
        is(all.line_execution, 0.7, 2);
        is(all.line_execution_ran, 0.5, 3);
        is(all.line_existence, 0.6, 4);
        is(all.line_existence_all, 0.48, 5);
        is(all.test_f1, 0.5, 5);
        is(all.pass_rate, 0.75, 3);
        assert_eq!(all.pass_rate_pooled, Ratio { part: 6, whole: 9 });
        let failed = row(Submitted::Readable, Some(false), Some(ErrorClass::PytestRuntimeError));
        rows.push(Row { cases: Some(Cases { passed: 0, total: 5 }), ..failed });
        let all = summarize(&rows);
        is(all.pass_rate, 0.5625, 4);
        is(all.pass_rate_passed, 0.75, 3);
        assert_eq!(all.pass_rate_pooled, Ratio { part: 6, whole: 14 });
    }

    #[test]
    fn worked_averages_a6_to_a8() {
        let setting = |value| Mean { mean: Some(value), n: 5 };
        is(mean_of_means([setting(0.6), setting(0.7), Mean::default()]), 0.65, 2);
        let subset = BTreeMap::from([("a", 3), ("b", 1)]);
        let whole = BTreeMap::from([("a", setting(0.4)), ("b", setting(0.5))]);
        assert!((weighted_baseline(&subset, &whole).unwrap() - 0.425).abs() < 1e-12);
        assert_eq!(weighted_baseline(&BTreeMap::from([("c", 1)]), &whole), None);
        let counts = [
            (ErrorClass::ImportError, 2),
            (ErrorClass::FileCreationFailure, 1),
            (ErrorClass::MissingTestFunction, 4),
            (ErrorClass::PytestRuntimeError, 3),
        ];
        let rows = counts
            .iter()
            .flat_map(|(class, n)| vec![row(Submitted::Readable, Some(false), Some(*class)); *n]);
        let rows: Vec<Row> = rows.collect();
        let shares = summarize(&rows).classes;
        let shown: Vec<_> =
            shares.iter().map(|it| (it.n, it.share.map(|share| format!("{:.1}", share * 100.0)))).collect();
        let percent = |text: &str| Some(text.to_owned());
        assert_eq!(
            shown,
            [
                (2, percent("20.0")),
                (1, percent("10.0")),
                (4, percent("40.0")),
                (3, percent("30.0")),
                (0, percent("0.0")),
                (0, percent("0.0"))
            ]
        );
    }

    #[test]
    fn parts_are_summed_up_on_their_own() {
        let rows = six();
        let parts = summarize_by(rows.iter().enumerate().map(|(number, row)| (number % 2, row)));
        assert_eq!((parts[&0].submissions, parts[&1].submissions), (3, 3));
        is(parts[&0].fidelity, 2.0 / 3.0, 3);
        is(parts[&1].fidelity, 0.0, 2);
    }

    #[test]
    fn nothing_has_no_mean() {
        let all = summarize([]);
        assert_eq!((all.fidelity.mean, all.fidelity_interval, all.classes[0].share), (None, None, None));
    }

    #[test]
    fn the_interval_is_wilsons() {
        let (low, high) = wilson(Ratio { part: 2, whole: 5 }).unwrap();
        assert!((low - 0.117_621).abs() < 1e-6 && (high - 0.769_276).abs() < 1e-6, "{low} {high}");
        assert!(wilson(Ratio { part: 0, whole: 10 }).unwrap().0.abs() < f64::EPSILON);
    }
}
