//! The tables of the Gistify paper over the runs that were scored together, and what it does not have. What a run says
//! of itself (framework, model, setting, tool calls) decides which cell it is in; none of it is scored.

mod compared;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::family::gistify::{ErrorClass, Row, Summary, summarize, weighted_baseline};
use crate::record::instance::Axis;
use crate::referee::scored::Scored;
use crate::score::paired::kendall;
use crate::score::{Mean, mcnemar, mean_of_means, pearson, pearson_of_deciles, quartiles, spearman};

/// What stands in a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Cell {
    Text {
        text: String,
    },
    /// From 0 to 1, of `n`.
    Rate {
        rate: Option<f64>,
        n: u32,
    },
    /// An interval at 95 %: Wilson's of a share, or as the table says.
    Interval {
        low: f64,
        high: f64,
    },
    Number {
        value: Option<f64>,
    },
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Table {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// What the numbers are, and of what.
    pub(crate) note: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A run with its submissions.
pub(crate) struct Run<'a> {
    pub(crate) name: &'a str,
    pub(crate) meta: &'a Value,
    pub(crate) scored: &'a [Scored<'a>],
}

/// Names of tools and the group that the paper counts them in; all others are `other`.
const TOOLS: [(&str, &[&str]); 3] = [
    ("view", &["view", "open", "cat", "read", "read_file", "goto", "scroll_up", "scroll_down"]),
    ("search", &["search", "grep", "rg", "find", "glob", "find_file", "search_file", "search_dir", "ls"]),
    ("execute", &["execute", "bash", "run", "shell", "python", "terminal", "edit-and-execute"]),
];

impl<'a> Run<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.meta[key].as_str()
    }

    fn model(&self) -> String {
        self.text("model").unwrap_or(self.name).to_owned()
    }

    fn framework(&self) -> String {
        self.text("framework").unwrap_or("–").to_owned()
    }

    /// Whether the agent could execute code. None where the run does not say.
    fn executes(&self) -> Option<bool> {
        self.meta["setting"]["execution"].as_str().map(|how| how != "none")
    }

    fn setting(&self) -> String {
        let setting = &self.meta["setting"];
        let parts = ["execution", "strategy", "tools"].map(|key| setting[key].as_str().map(str::to_owned));
        let test = setting["test_in_prompt"].as_bool().filter(|it| *it).map(|_| "test in prompt".to_owned());
        let told: Vec<String> = parts.into_iter().flatten().chain(test).collect();
        if told.is_empty() { "–".to_owned() } else { told.join(", ") }
    }

    fn rows(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        self.scored.iter().map(|one| &one.judged.row)
    }
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text { text: text.into() }
}

fn rate(mean: Mean) -> Cell {
    Cell::Rate { rate: mean.mean, n: mean.n }
}

fn interval(interval: Option<(f64, f64)>) -> Cell {
    interval.map_or_else(|| text("–"), |(low, high)| Cell::Interval { low, high })
}

fn number(value: Option<f64>) -> Cell {
    Cell::Number { value }
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

/// Runs by a key, in its order.
fn by<'r, 'a, K: Ord>(runs: &'r [Run<'a>], key: impl Fn(&Run<'a>) -> K) -> BTreeMap<K, Vec<&'r Run<'a>>> {
    let mut groups: BTreeMap<K, Vec<&Run<'a>>> = BTreeMap::new();
    for run in runs {
        groups.entry(key(run)).or_default().push(run);
    }
    groups
}

fn summary(runs: &[&Run<'_>]) -> Summary {
    summarize(runs.iter().flat_map(|run| run.rows()))
}

/// All tables that the runs have something for.
pub(crate) fn tables(runs: &[Run<'_>]) -> Vec<Table> {
    let all = [
        main(runs),
        parts(runs),
        classes(runs),
        settings(runs),
        tests(runs),
        tools(runs),
        difficulty(runs),
        hard(runs),
        agreement(runs),
        execution_pairs(runs),
        compared::compared(runs),
        compared::repeats(runs),
        sizes(runs),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).map(Table::without_empty_columns).collect()
}

impl Table {
    /// Without the columns that say nothing of any row.
    fn without_empty_columns(mut self) -> Self {
        let says = |at: usize| self.rows.iter().any(|row| row[at] != text("–"));
        let kept: Vec<bool> = (0..self.columns.len()).map(says).collect();
        let mut keep = kept.iter().copied().cycle();
        self.columns.retain(|_| keep.next().unwrap_or(true));
        for row in &mut self.rows {
            let mut keep = kept.iter().copied();
            row.retain(|_| keep.next().unwrap_or(true));
        }
        self
    }
}

fn main(runs: &[Run<'_>]) -> Table {
    let rows =
        by(runs, |run| (run.framework(), run.model())).into_iter().map(|((framework, model), runs)| {
            let of = |executes: Option<bool>| {
                let part: Vec<&Run<'_>> =
                    runs.iter().copied().filter(|run| run.executes() == executes).collect();
                (!part.is_empty()).then(|| summary(&part))
            };
            let settings = [of(Some(false)), of(Some(true)), of(None)];
            let fidelity =
                |at: usize| settings[at].as_ref().map_or_else(|| text("–"), |it| rate(it.fidelity));
            let mean = |value: fn(&Summary) -> Mean| {
                let means: Vec<Mean> = settings.iter().flatten().map(value).collect();
                Mean { n: means.iter().map(|mean| mean.n).sum(), ..mean_of_means(means.iter().copied()) }
            };
            vec![
                text(framework),
                text(model),
                fidelity(0),
                fidelity(1),
                fidelity(2),
                rate(mean(|it| it.line_execution)),
                rate(mean(|it| it.line_existence)),
            ]
        });
    Table {
        id: "main",
        title: "Main results",
        note: "The paper's table 1. Line execution and existence are means over the settings.",
        columns: names(&[
            "framework",
            "model",
            "fidelity without execution",
            "fidelity with execution",
            "fidelity, setting unknown",
            "line execution",
            "line existence",
        ]),
        rows: rows.collect(),
    }
}

fn parts(runs: &[Run<'_>]) -> Table {
    let mut rows = Vec::new();
    for run in runs {
        let mut parts: BTreeMap<(u8, String), Vec<&Row>> = BTreeMap::new();
        for one in run.scored {
            let instance = one.instance;
            let mut add = |order, name: String| parts.entry((order, name)).or_default().push(&one.judged.row);
            add(0, "all".to_owned());
            add(1, instance.slug.to_string());
            add(2, instance.tier.as_str().to_owned());
            if !instance.hard_axes.is_empty() {
                add(3, "subset top".to_owned());
            }
        }
        for ((_, name), part) in parts {
            let it = summarize(part);
            rows.push(vec![
                text(run.name),
                text(name),
                rate(it.fidelity),
                interval(it.fidelity_interval),
                rate(it.line_execution),
                rate(it.line_existence),
                rate(it.trace_recall),
                rate(it.test_f1),
                rate(it.pass_rate),
            ]);
        }
    }
    Table {
        id: "parts",
        title: "Each run, whole and in parts",
        note: "By repository, tier and the subset `top`. The interval is Wilson's at 95 %.",
        columns: names(&[
            "run",
            "part",
            "fidelity",
            "95 %",
            "line execution",
            "line existence",
            "trace recall",
            "test F1",
            "pass rate",
        ]),
        rows,
    }
}

fn classes(runs: &[Run<'_>]) -> Table {
    let by_model = by(runs, Run::model);
    let summaries: Vec<(String, Summary)> =
        by_model.into_iter().map(|(model, runs)| (model, summary(&runs))).collect();
    let count = |it: &Summary, class| it.classes.iter().find(|one| one.class == class).map_or(0, |one| one.n);
    let has_violations = summaries.iter().any(|(_, it)| count(it, ErrorClass::Violation) > 0);
    let shown = ErrorClass::ALL.into_iter().filter(|class| *class != ErrorClass::Violation || has_violations);
    let shown: Vec<ErrorClass> = shown.collect();
    let rows = summaries.iter().map(|(model, it)| {
        let share = |class: &ErrorClass| {
            let found = it.classes.iter().find(|one| one.class == *class);
            Cell::Rate { rate: found.and_then(|one| one.share), n: found.map_or(0, |one| one.n) }
        };
        std::iter::once(text(model)).chain(shown.iter().map(share)).collect()
    });
    let spelled = |class: &ErrorClass| crate::referee::scored::spelled(class).unwrap_or_default();
    Table {
        id: "classes",
        title: "Why submissions fail",
        note: "The paper's table 2: the share of each class among the failures, and its number.",
        columns: std::iter::once("model".to_owned()).chain(shown.iter().map(spelled)).collect(),
        rows: rows.collect(),
    }
}

fn settings(runs: &[Run<'_>]) -> Table {
    let rows = by(runs, Run::setting).into_iter().map(|(setting, runs)| {
        let it = summary(&runs);
        let all = runs.iter().flat_map(|run| run.scored);
        let steps = all.filter_map(|one| one.said("hit_step_limit").as_bool());
        let steps = steps.map(|hit| f64::from(u8::from(hit)));
        vec![
            text(setting),
            rate(it.fidelity),
            rate(it.line_existence),
            rate(it.line_execution),
            rate(Mean::of(steps.collect::<Vec<_>>())),
        ]
    });
    Table {
        id: "settings",
        title: "By setting",
        note: "The paper's tables 3 and figures 2b and 18: execution, strategy and tools as the runs report them.",
        columns: names(&["setting", "fidelity", "line existence", "line execution", "max steps reached"]),
        rows: rows.collect(),
    }
}

fn tests(runs: &[Run<'_>]) -> Table {
    let rows = by(runs, Run::model).into_iter().map(|(model, runs)| {
        let it = summary(&runs);
        vec![text(model), rate(it.fidelity), rate(it.pass_rate), rate(it.test_f1)]
    });
    Table {
        id: "tests",
        title: "Faithfulness to the test",
        note: "The paper's table 6. The pass rate is of submissions of which at least one case ran.",
        columns: names(&["model", "fidelity", "pass rate", "test F1"]),
        rows: rows.collect(),
    }
}

fn tools(runs: &[Run<'_>]) -> Table {
    let rows = by(runs, Run::model).into_iter().filter_map(|(model, runs)| {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        let mut told = 0_u32;
        for calls in
            runs.iter().flat_map(|run| run.scored.iter().filter_map(|one| one.meta["tool_calls"].as_object()))
        {
            told += 1;
            for (name, count) in calls {
                let group = TOOLS.iter().find(|(_, names)| names.contains(&name.as_str()));
                *counts.entry(group.map_or("other", |(group, _)| group)).or_default() +=
                    count.as_f64().unwrap_or_default();
            }
        }
        let all: f64 = counts.values().sum();
        let share = |group: &str| {
            let part = counts.get(group).copied().unwrap_or_default();
            Cell::Rate { rate: (all > 0.0).then(|| part / all), n: told }
        };
        let mean = number((told > 0).then(|| all / f64::from(told)));
        (told > 0).then(|| {
            vec![text(model), mean, share("view"), share("search"), share("execute"), share("other")]
        })
    });
    Table {
        id: "tools",
        title: "Tool calls",
        note: "The paper's table 7, of submissions that report their tool calls: the mean number, and the share of each kind.",
        columns: names(&["model", "calls", "view", "search", "execute", "other"]),
        rows: rows.collect(),
    }
}

fn place(one: &Scored<'_>, axis: Axis) -> f64 {
    match axis {
        Axis::TraceLength => one.instance.trace_length as f64,
        Axis::UniqueFiles => f64::from(one.instance.unique_files),
    }
}

fn difficulty(runs: &[Run<'_>]) -> Table {
    let mut rows = Vec::new();
    for (model, runs) in by(runs, Run::model) {
        for axis in [Axis::TraceLength, Axis::UniqueFiles] {
            let points: Vec<(f64, bool)> = runs
                .iter()
                .flat_map(|run| run.scored)
                .filter_map(|one| Some((place(one, axis), one.judged.row.fidelity?)))
                .collect();
            let pairs: Vec<(f64, f64)> =
                points.iter().map(|(at, right)| (*at, f64::from(u8::from(*right)))).collect();
            let (found, tau) = (spearman(&pairs), kendall(&pairs));
            for bin in quartiles(&points) {
                rows.push(vec![
                    text(&model),
                    text(axis.as_str()),
                    text(if bin.from < bin.to {
                        format!("{} to {}", bin.from, bin.to)
                    } else {
                        bin.from.to_string()
                    }),
                    rate(bin.fidelity),
                    interval(bin.interval),
                    number(found.map(|it| it.r)),
                    number(found.map(|it| it.p)),
                    number(tau.map(|it| it.r)),
                    number(tau.map(|it| it.p)),
                ]);
            }
        }
    }
    Table {
        id: "difficulty",
        title: "Fidelity and difficulty",
        note: "The paper's figure 2a: quartiles of each axis, with Wilson's interval at 95 %; Spearman's ρ and Kendall's τ \
               (b) over the single submissions, each with its p.",
        columns: names(&["model", "axis", "quarter", "fidelity", "95 %", "ρ", "p", "τ", "p of τ"]),
        rows,
    }
}

fn hard(runs: &[Run<'_>]) -> Table {
    let rows = by(runs, Run::model).into_iter().filter_map(|(model, runs)| {
        let all: Vec<&Scored<'_>> = runs.iter().flat_map(|run| run.scored).collect();
        let is_hard = |one: &&&Scored<'_>| !one.instance.hard_axes.is_empty();
        let hard: Vec<&&Scored<'_>> = all.iter().filter(is_hard).collect();
        let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
        for one in &hard {
            *sizes.entry(one.instance.slug.as_str()).or_default() += 1;
        }
        let of = |slug: &&str| {
            summarize(all.iter().filter(|one| one.instance.slug.as_str() == *slug).map(|one| &one.judged.row))
        };
        let whole: BTreeMap<&str, Mean> = sizes.keys().map(|slug| (*slug, of(slug).fidelity)).collect();
        let it = summarize(hard.iter().map(|one| &one.judged.row));
        let baseline = Cell::Rate { rate: weighted_baseline(&sizes, &whole), n: it.fidelity.n };
        (!hard.is_empty())
            .then(|| vec![text(model), rate(it.fidelity), interval(it.fidelity_interval), baseline])
    });
    Table {
        id: "hard",
        title: "The subset top",
        note: "Against what would be expected if it were no harder than its repositories: their fidelities, weighted by \
               how many of the subset each has.",
        columns: names(&["model", "fidelity, top", "95 %", "weighted baseline"]),
        rows: rows.collect(),
    }
}

fn agreement(runs: &[Run<'_>]) -> Table {
    let rows = by(runs, Run::model).into_iter().filter_map(|(model, runs)| {
        let pair = |row: &Row| Some((row.test_f1?, f64::from(u8::from(row.fidelity?))));
        let pairs: Vec<(f64, f64)> = runs.iter().flat_map(|run| run.rows()).filter_map(pair).collect();
        let (binned, single) = (pearson_of_deciles(&pairs), pearson(&pairs));
        (binned.is_some() || single.is_some()).then(|| {
            vec![
                text(model),
                number(binned.map(|it| it.r)),
                number(binned.map(|it| it.p)),
                number(single.map(|it| it.r)),
                number(single.map(|it| it.p)),
            ]
        })
    });
    Table {
        id: "agreement",
        title: "Test F1 and fidelity",
        note: "Pearson's r of ten bins of equal size (the paper's), and the point-biserial one over single submissions.",
        columns: names(&["model", "r of bins", "p", "r, single", "p"]),
        rows: rows.collect(),
    }
}

fn execution_pairs(runs: &[Run<'_>]) -> Table {
    let mut rows = Vec::new();
    for ((framework, model), runs) in by(runs, |run| (run.framework(), run.model())) {
        let of = |executes: bool| -> BTreeMap<&str, bool> {
            let part = runs.iter().filter(|run| run.executes() == Some(executes)).flat_map(|run| run.scored);
            part.filter_map(|one| Some((one.instance.instance_id.as_str(), one.judged.row.fidelity?)))
                .collect()
        };
        let (without, with) = (of(false), of(true));
        let both: BTreeSet<&str> = without.keys().filter(|id| with.contains_key(*id)).copied().collect();
        if both.is_empty() {
            continue;
        }
        let only = |a: &BTreeMap<&str, bool>, b: &BTreeMap<&str, bool>| {
            both.iter().filter(|id| a[*id] && !b[*id]).count() as u32
        };
        let (lost, won) = (only(&without, &with), only(&with, &without));
        let difference = (f64::from(won) - f64::from(lost)) / both.len() as f64;
        rows.push(vec![
            text(framework),
            text(model),
            Cell::Rate { rate: Some(difference), n: both.len() as u32 },
            number(Some(f64::from(won))),
            number(Some(f64::from(lost))),
            number(mcnemar(lost, won)),
        ]);
    }
    Table {
        id: "execution",
        title: "What execution is worth",
        note: "Fidelity with execution minus fidelity without, on the same instances; McNemar's exact p.",
        columns: names(&["framework", "model", "difference", "right only with", "right only without", "p"]),
        rows,
    }
}

fn sizes(runs: &[Run<'_>]) -> Table {
    let rows = runs.iter().filter_map(|run| {
        let right = run.scored.iter().filter(|one| one.judged.row.fidelity == Some(true));
        let sizes: Vec<(f64, Option<f64>, bool)> = right
            .filter_map(|one| {
                let units = one.judged.existence.as_ref()?.lines.len() as f64;
                let original = one.instance.executed_lines.filter(|lines| *lines > 0);
                let low = one
                    .judged
                    .row
                    .existence
                    .and_then(crate::score::Ratio::rate)
                    .is_some_and(|rate| rate < 0.5);
                Some((units, original.map(|lines| units / lines as f64), low))
            })
            .collect();
        (!sizes.is_empty()).then(|| {
            vec![
                text(run.name),
                number(Some(sizes.len() as f64)),
                number(Mean::of(sizes.iter().map(|one| one.0)).mean),
                number(Mean::of(sizes.iter().filter_map(|one| one.1)).mean),
                number(Some(sizes.iter().filter(|one| one.2).count() as f64)),
            ]
        })
    });
    Table {
        id: "sizes",
        title: "Size of what is right",
        note: "Of submissions with fidelity 1: logical lines, their ratio to the lines that the original test runs, and how \
               many have a line existence below 50 % (constants instead of code show there).",
        columns: names(&["run", "right", "lines", "lines per original line", "existence below 50 %"]),
        rows: rows.collect(),
    }
}
