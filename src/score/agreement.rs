//! Choices between two submissions, by people and by the metrics, and how far both agree: Cohen's κ.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Ratio;
use super::average::{Mean, Row, Submitted};

/// What a choice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// By line execution.
    Minimality,
    /// By line existence.
    Faithfulness,
}

/// The better one of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    First,
    Second,
    Same,
}

/// A choice of a person beside that of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedChoice<'a> {
    pub annotator: &'a str,
    pub criterion: Criterion,
    pub person: Choice,
    /// None where one of both submissions has no value.
    pub metric: Option<Choice>,
}

/// How far one person and a metric agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnnotatorAgreement {
    pub annotator: String,
    pub kappa: Option<f64>,
    /// Choices that κ is of.
    pub n: u32,
    /// Choices for which the metric has none.
    pub left_out: u32,
}

/// How far people and a metric agree on a criterion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    pub criterion: Criterion,
    /// Over annotators whose κ is defined; each counts alike.
    pub kappa: Mean,
    /// In the order of their names.
    pub annotators: Vec<AnnotatorAgreement>,
}

impl Criterion {
    pub const ALL: [Criterion; 2] = [Criterion::Minimality, Criterion::Faithfulness];

    /// The one spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Criterion::Minimality => "minimality",
            Criterion::Faithfulness => "faithfulness",
        }
    }

    /// The metric that chooses by it.
    pub fn metric(self) -> &'static str {
        match self {
            Criterion::Minimality => "line execution",
            Criterion::Faithfulness => "line existence",
        }
    }

    /// The value of the metric, as it goes into the averages. None where it does not.
    fn value(self, row: &Row) -> Option<Ratio> {
        let value = match (self, row.submitted) {
            (Criterion::Minimality, _) => row.execution.filter(|_| row.fidelity == Some(true)),
            (Criterion::Faithfulness, _) if row.fidelity.is_none() => None,
            (Criterion::Faithfulness, Submitted::Nothing) => None,
            (Criterion::Faithfulness, Submitted::Unparsable) => Some(Ratio { part: 0, whole: 1 }),
            (Criterion::Faithfulness, Submitted::Readable) => row.existence,
        };
        value.filter(|ratio| ratio.whole > 0)
    }

    /// What the metric chooses: the submission with the higher value. None where one of both has none.
    pub fn choice(self, first: &Row, second: &Row) -> Option<Choice> {
        let (first, second) = (self.value(first)?, self.value(second)?);
        Some(match compared(first, second) {
            Ordering::Greater => Choice::First,
            Ordering::Less => Choice::Second,
            Ordering::Equal => Choice::Same,
        })
    }
}

/// Two rates without rounding.
fn compared(first: Ratio, second: Ratio) -> Ordering {
    let product = |part: u32, whole: u32| u64::from(part) * u64::from(whole);
    product(first.part, second.whole).cmp(&product(second.part, first.whole))
}

/// Cohen's κ of two who chose for the same pairs: `(observed − expected) / (1 − expected)`. None without a pair, and where
/// both always choose the same one thing: agreement by chance is 1 then.
pub fn cohen_kappa(pairs: &[(Choice, Choice)]) -> Option<f64> {
    let count = |is: &dyn Fn(&(Choice, Choice)) -> bool| pairs.iter().filter(|pair| is(pair)).count() as u64;
    let n = pairs.len() as u64;
    let agreeing = count(&|pair| pair.0 == pair.1);
    let both = |choice| count(&|pair| pair.0 == choice) * count(&|pair| pair.1 == choice);
    let by_chance: u64 = [Choice::First, Choice::Second, Choice::Same].into_iter().map(both).sum();
    // Both shares times n².
    let (observed, most) = (n * agreeing, n * n);
    (by_chance < most).then(|| (observed as f64 - by_chance as f64) / (most - by_chance) as f64)
}

/// Agreement on each criterion that somebody chose by.
pub fn agreements(choices: &[ComparedChoice<'_>]) -> Vec<Agreement> {
    let of = |criterion| choices.iter().filter(move |choice| choice.criterion == criterion);
    let chosen = Criterion::ALL.into_iter().filter(|criterion| of(*criterion).next().is_some());
    chosen.map(|criterion| agreement(criterion, &of(criterion).collect::<Vec<_>>())).collect()
}

fn agreement(criterion: Criterion, choices: &[&ComparedChoice<'_>]) -> Agreement {
    let mut by_annotator: BTreeMap<&str, Vec<&ComparedChoice<'_>>> = BTreeMap::new();
    for choice in choices {
        by_annotator.entry(choice.annotator).or_default().push(choice);
    }
    let annotators: Vec<AnnotatorAgreement> = by_annotator
        .into_iter()
        .map(|(annotator, choices)| {
            let pairs: Vec<(Choice, Choice)> =
                choices.iter().filter_map(|choice| Some((choice.person, choice.metric?))).collect();
            AnnotatorAgreement {
                annotator: annotator.to_owned(),
                kappa: cohen_kappa(&pairs),
                n: pairs.len() as u32,
                left_out: (choices.len() - pairs.len()) as u32,
            }
        })
        .collect();
    let kappa = Mean::of(annotators.iter().filter_map(|one| one.kappa).collect::<Vec<_>>());
    Agreement { criterion, kappa, annotators }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(table: &[(Choice, Choice, usize)]) -> Vec<(Choice, Choice)> {
        table.iter().flat_map(|(a, b, times)| std::iter::repeat_n((*a, *b), *times)).collect()
    }

    fn close(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-12), "{found:?} {expected}");
    }

    use Choice::{First, Same, Second};

    #[test]
    fn kappa_is_agreement_beyond_chance() {
        // 20, 5, 10, 15 of 50: observed 0.7, by chance 0.5 · 0.6 + 0.5 · 0.4 = 0.5.
        let books = [(First, First, 20), (First, Second, 5), (Second, First, 10), (Second, Second, 15)];
        close(cohen_kappa(&pairs(&books)), 0.4);
        // Three of four, with ties: by chance (2 · 2 + 1 · 2 + 1 · 0) / 16 = 0.375; (0.75 − 0.375) / 0.625.
        let ties = [(First, First, 2), (Second, Second, 1), (Same, Second, 1)];
        close(cohen_kappa(&pairs(&ties)), 0.6);
        close(cohen_kappa(&pairs(&[(First, First, 3), (Same, Same, 1)])), 1.0);
        close(cohen_kappa(&pairs(&[(First, Second, 2), (Second, First, 2)])), -1.0);
        // One of both always says the same: no better than chance.
        close(cohen_kappa(&pairs(&[(First, First, 3), (Second, First, 2)])), 0.0);
    }

    #[test]
    fn kappa_is_not_defined_where_chance_alone_agrees() {
        assert_eq!(cohen_kappa(&[]), None);
        assert_eq!(cohen_kappa(&pairs(&[(First, First, 7)])), None);
        assert_eq!(cohen_kappa(&pairs(&[(Same, Same, 1)])), None);
    }

    fn row(submitted: Submitted, fidelity: Option<bool>, part: u32, whole: u32) -> Row {
        let ratio = Some(Ratio { part, whole });
        Row {
            submitted,
            fidelity,
            class: None,
            execution: ratio,
            execution_statements: None,
            existence: ratio.filter(|_| submitted == Submitted::Readable),
            existence_control: None,
            trace_recall: None,
            test_f1: None,
            cases: None,
        }
    }

    #[test]
    fn a_metric_chooses_the_higher_value_and_none_where_there_is_none() {
        let right = |part, whole| row(Submitted::Readable, Some(true), part, whole);
        let wrong = row(Submitted::Readable, Some(false), 9, 10);
        for criterion in Criterion::ALL {
            assert_eq!(criterion.choice(&right(2, 3), &right(1, 2)), Some(First));
            assert_eq!(criterion.choice(&right(1, 2), &right(2, 3)), Some(Second));
            assert_eq!(criterion.choice(&right(2, 6), &right(1, 3)), Some(Same));
            assert_eq!(criterion.choice(&right(0, 0), &right(1, 3)), None, "a rate of nothing");
            let lost = row(Submitted::Readable, None, 1, 1);
            assert_eq!(criterion.choice(&right(1, 3), &lost), None);
        }
        assert_eq!(Criterion::Minimality.choice(&right(1, 2), &wrong), None);
        assert_eq!(Criterion::Faithfulness.choice(&right(1, 2), &wrong), Some(Second));
        let (nothing, unparsable) =
            (row(Submitted::Nothing, Some(false), 0, 0), row(Submitted::Unparsable, Some(false), 0, 0));
        assert_eq!(Criterion::Faithfulness.choice(&nothing, &wrong), None);
        assert_eq!(Criterion::Faithfulness.choice(&unparsable, &wrong), Some(Second));
    }

    #[test]
    fn each_annotator_counts_alike_and_what_has_no_value_is_left_out() {
        let choice =
            |annotator, criterion, person, metric| ComparedChoice { annotator, criterion, person, metric };
        let (m, f) = (Criterion::Minimality, Criterion::Faithfulness);
        let choices = [
            choice("b", m, First, Some(First)),
            choice("b", m, Second, Some(Second)),
            choice("b", m, Second, None),
            choice("a", m, First, Some(First)),
            choice("a", m, Second, Some(First)),
            choice("c", m, First, Some(First)),
            choice("a", f, First, None),
        ];
        let found = agreements(&choices);
        let one = |annotator: &str, kappa, n, left_out| AnnotatorAgreement {
            annotator: annotator.to_owned(),
            kappa,
            n,
            left_out,
        };
        let minimality = Agreement {
            criterion: m,
            kappa: Mean { mean: Some(0.5), n: 2 },
            annotators: vec![one("a", Some(0.0), 2, 0), one("b", Some(1.0), 2, 1), one("c", None, 1, 0)],
        };
        let faithfulness = Agreement {
            criterion: f,
            kappa: Mean { mean: None, n: 0 },
            annotators: vec![one("a", None, 0, 1)],
        };
        assert_eq!(found, [minimality, faithfulness]);
        assert_eq!(agreements(&[]), []);
    }
}
