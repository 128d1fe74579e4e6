//! Submissions → judgements: read, put the original test in, run, compare; what agrees is run once more traced and once
//! more with a failure in the test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ground::Ground;
use super::submissions::Submission;
use crate::attempt::lab::Lab;
use crate::attempt::normalize::Normalizer;
use crate::attempt::pool::{Event, Pool, Run as PoolRun, Task};
use crate::attempt::world::WorldSetting;
use crate::attempt::{attempt_of, node_id, not_collected};
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::record::collected::Group;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::instance::Instance;
use crate::record::outcome::{Attempt, CaseResult, Outcome};
use crate::record::world::World;
use crate::runner::protocol::{ImportAttempt, TraceMode};
use crate::runner::report::{GroupTrace, ImportTrace};
use crate::score::{
    Cases, ErrorClass, Evaluated, ExecutedLine, Facts, File, Finding, Line, LineExistence, Masks, Modules,
    NotInjected, Ratio, Row, Run, Sabotage, Scenery, Submitted, TestName, Unreadable, Verdict, Violation,
    compare, findings, inject, judge, line_execution, sabotage, test_overlap, text_of,
};
use crate::text::tail;

/// Raised when the same submission may be judged otherwise.
const SCORER: &str = "score-1";
/// Largest test file that is read, in bytes.
pub(crate) const LARGEST_TEST: u64 = 8 << 20;
/// Lines of output that are kept as evidence.
const OUTPUT_LINES: usize = 60;

/// An instance and what its original showed.
pub(crate) struct Original<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) golden: &'a [CaseResult],
}

/// Everything that is known about one submission.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) row: Row,
    /// How the original test came in.
    pub(crate) injection: Option<crate::score::Injection>,
    /// Why the file cannot be read.
    pub(crate) unreadable: Option<Unreadable>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) import_attempts: Vec<ImportAttempt>,
    /// None where nothing was run.
    pub(crate) comparison: Option<crate::score::Comparison>,
    pub(crate) sabotage: Sabotage,
    pub(crate) existence: Option<LineExistence>,
    pub(crate) executed: Vec<ExecutedLine>,
    /// Why executed lines are not known.
    pub(crate) untraced: Option<String>,
    /// Physical lines of the submitted file.
    pub(crate) lines: usize,
    /// SHA-256 of the submitted file.
    pub sha256: Option<String>,
    /// SHA-256 of the text that was run.
    pub evaluated_sha256: Option<String>,
    /// The end of what the run printed beside its cases.
    pub(crate) output: String,
}

impl Judged {
    /// Lines of the submitted file with their types.
    pub(crate) fn submitted_lines(&self) -> &[Line] {
        self.existence.as_ref().map_or(&[], |existence| &existence.lines)
    }
}

/// Judges submissions for instances of one repository. `each` gets them as they are done, by their index.
pub(crate) struct Referee<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) ground: &'a Ground,
    /// The file that is handed in.
    pub(crate) file: &'a str,
    pub(crate) allowed: &'a BTreeSet<Violation>,
}

/// A submission on its way.
struct Case<'a> {
    original: &'a Original<'a>,
    test: TestName,
    test_module: String,
    judged: Judged,
    evaluated: Option<Evaluated>,
    findings_decide: bool,
    seen: Option<Seen>,
    sabotage: Sabotage,
    traced: Option<Traced>,
}

/// What a run showed.
struct Seen {
    attempt: Attempt,
    imports: Vec<ImportAttempt>,
}

struct Traced {
    lines: Option<BTreeSet<u32>>,
    same: bool,
}

impl Referee<'_> {
    /// Judges all of them.
    ///
    /// # Errors
    /// IO errors, an interruption, and the harness's when it stays broken.
    pub(crate) fn judge(
        &self,
        submissions: &[(&Original<'_>, &Submission)],
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<Judged>> {
        let mut cases = self.observe(submissions, progress)?;
        self.conclude(&WorldSetting::base(&self.ground.setting), &mut cases)?;
        Ok(cases.into_iter().map(|case| self.finish(case)).collect())
    }

    /// How each of them differs from its original, run once in processes of its own; none where it does not.
    ///
    /// # Errors
    /// Those of [`Referee::judge`].
    pub(crate) fn agree_again(
        &self,
        submissions: &[(&Original<'_>, &Submission)],
    ) -> Result<Vec<Option<String>>> {
        let cases = self.observe(submissions, &mut || {})?;
        let difference = |case: &Case<'_>| {
            let Some(compared) = self.comparison(case) else { return Some("it was not run".to_owned()) };
            let differs = compared.cases.iter().find(|one| one.difference.is_some());
            let differs =
                differs.map(|one| format!("{}: expected {}, seen {}", one.case, one.expected, one.seen));
            compared.difference.map(|what| format!("{what:?}\n{}", differs.unwrap_or_default()))
        };
        Ok(cases.iter().map(difference).collect())
    }

    /// Reads them, and runs those that can be run once.
    fn observe<'a>(
        &self,
        submissions: &[(&'a Original<'a>, &Submission)],
        progress: &mut dyn FnMut(),
    ) -> Result<Vec<Case<'a>>> {
        let tree = Folder::open(&self.lab.built.tree)?;
        let mut cases = Vec::with_capacity(submissions.len());
        for (original, submission) in submissions {
            cases.push(self.read(&tree, original, submission)?);
        }
        let world = WorldSetting::base(&self.ground.setting);
        let wanted: Vec<usize> = (0..cases.len())
            .filter(|at| cases[*at].evaluated.is_some() && !cases[*at].findings_decide)
            .collect();
        let texts = |cases: &[Case<'_>], at: usize| cases[at].evaluated.as_ref().map(|it| it.text.clone());
        self.run(
            &world,
            &cases_texts(&wanted, |at| texts(&cases, at)),
            TraceMode::Off,
            &cases_groups(&cases, self.file),
            |at, seen, _| {
                cases_set(&mut cases, at, seen);
                progress();
            },
        )?;
        Ok(cases)
    }

    /// What decides about a judgement: the same key, the same judgement.
    pub(crate) fn key(&self, original: &Original<'_>, text: Option<&[u8]>) -> String {
        let lab = self.lab;
        hash_parts(&[
            SCORER,
            &crate::runner::version_hash(),
            &lab.built.key,
            &lab.backend.isolation().kind,
            &self.ground.setting.tree.to_string_lossy(),
            original.instance.instance_id.as_str(),
            &serde_json::to_string(original.golden).unwrap_or_default(),
            &format!("{:?} {:?} {}", lab.timeouts, lab.setting.limits, lab.setting.output_bytes),
            &format!("{:?}", self.allowed),
            &text.map_or_else(|| "nothing".to_owned(), sha256_hex),
        ])
    }

    /// What can be said before anything runs.
    fn read<'a>(
        &self,
        tree: &Folder,
        original: &'a Original<'a>,
        submission: &Submission,
    ) -> Result<Case<'a>> {
        let instance = original.instance;
        let classes = instance.test_class.iter().flat_map(|chain| chain.split("::"));
        let test = TestName {
            classes: classes.map(str::to_owned).collect(),
            function: instance.test_function.clone(),
        };
        let source = tree.read(Path::new(&instance.test_file), LARGEST_TEST)?;
        let source = String::from_utf8_lossy(&source);
        let file = File { path: &instance.test_file, text: &source };
        let mut judged = Judged::empty(submission.text.as_deref());
        let mut evaluated = None;
        if let Some(bytes) = &submission.text {
            match text_of(bytes).and_then(|text| self.examine(text, file, &test, &mut judged)) {
                Ok(Ok(ready)) => evaluated = Some(ready),
                Ok(Err(NotInjected::Missing)) => {}
                Ok(Err(NotInjected::Unparsable { reason })) | Err(reason) => judged.cannot_be_read(reason),
                Ok(Err(NotInjected::Original { reason })) => {
                    return Err(Error::usage(format!(
                        "{}: the test of {} cannot be read: {reason:?}",
                        instance.test_file, instance.instance_id
                    )));
                }
            }
        }
        judged.injection = evaluated.as_ref().map(|ready| ready.injection);
        judged.evaluated_sha256 = evaluated.as_ref().map(|ready| sha256_hex(ready.text.as_bytes()));
        Ok(Case {
            original,
            test_module: module_of(&instance.test_file, &self.ground.modules),
            test,
            findings_decide: forbids(&judged.findings, self.allowed),
            judged,
            evaluated,
            seen: None,
            sabotage: Sabotage::NotTried,
            traced: None,
        })
    }

    /// Lines, findings and test of a text, and the text to run.
    fn examine(
        &self,
        text: &str,
        original: File<'_>,
        test: &TestName,
        judged: &mut Judged,
    ) -> std::result::Result<std::result::Result<Evaluated, NotInjected>, Unreadable> {
        let Ground { modules, corpus, sources, .. } = self.ground;
        let root = self.lab.setting.places.root.to_string_lossy();
        let scenery = Scenery { modules, test, root: &root, hidden: sources };
        judged.read_as(corpus.line_existence(text)?, findings(text, scenery)?);
        let overlap = test_overlap(text, original, test, modules);
        judged.row.test_f1 = overlap.ok().flatten().map(crate::score::Overlap::f1);
        Ok(inject(text, original, test, modules))
    }

    /// The second and third run of what agrees.
    fn conclude(&self, world: &WorldSetting, cases: &mut [Case<'_>]) -> Result<()> {
        let agreeing: Vec<usize> = (0..cases.len()).filter(|at| self.agrees(&cases[*at])).collect();
        let groups = cases_groups(cases, self.file);
        let sabotaged = |at: usize| cases[at].evaluated.as_ref().and_then(sabotage);
        let texts = cases_texts(&agreeing, sabotaged);
        let mut survived: BTreeMap<usize, Sabotage> = BTreeMap::new();
        self.run(world, &texts, TraceMode::Off, &groups, |at, seen, _| {
            let passes = |name: &str| {
                let mut cases = seen.attempt.cases.iter();
                cases.any(|case| after_file(&case.case_id) == name && case.outcome == Outcome::Passed)
            };
            let golden = cases[at].original.golden.iter();
            let survives = golden
                .filter(|case| case.outcome == Outcome::Passed)
                .any(|case| passes(after_file(&case.case_id)));
            survived.insert(at, if survives { Sabotage::Survives } else { Sabotage::Fails });
        })?;
        let plain = |at: usize| cases[at].evaluated.as_ref().map(|it| it.text.clone());
        let mut traces: BTreeMap<usize, Traced> = BTreeMap::new();
        self.run(world, &cases_texts(&agreeing, plain), TraceMode::All, &groups, |at, seen, trace| {
            let first = cases[at].seen.as_ref().map(|seen| seen.attempt.outcome_hash());
            let same = first == Some(seen.attempt.outcome_hash());
            traces.insert(at, Traced { lines: trace, same });
        })?;
        for (at, sabotage) in survived {
            cases[at].sabotage = sabotage;
        }
        for (at, traced) in traces {
            cases[at].traced = Some(traced);
        }
        Ok(())
    }

    fn masks<'b>(&'b self, case: &'b Case<'_>) -> Masks<'b> {
        Masks { modules: &self.ground.modules, files: &self.ground.sources, test_module: &case.test_module }
    }

    fn comparison(&self, case: &Case<'_>) -> Option<crate::score::Comparison> {
        let seen = &case.seen.as_ref()?.attempt;
        Some(compare(case.original.golden, &seen.exit, &seen.cases, &self.masks(case)))
    }

    fn agrees(&self, case: &Case<'_>) -> bool {
        self.comparison(case).is_some_and(|comparison| comparison.agrees())
    }

    fn finish(&self, case: Case<'_>) -> Judged {
        let comparison = self.comparison(&case);
        let mut judged = case.judged;
        let asked: Vec<ImportAttempt> =
            case.seen.iter().flat_map(|seen| seen.imports.iter().cloned()).collect();
        let own_file = |attempt: &&ImportAttempt| Path::new(&attempt.file).ends_with(self.file);
        let of_submission =
            asked.iter().filter(own_file).filter(|attempt| self.ground.modules.owns(&attempt.module));
        let import_attempts = of_submission.map(|attempt| attempt.module.clone()).collect();
        let run =
            comparison.clone().map(|comparison| Run { comparison, import_attempts, sabotage: case.sabotage });
        let facts = match (&judged.sha256, &judged.unreadable) {
            (None, _) => Facts::NoFile,
            (_, Some(_)) => Facts::Unparsable,
            _ if case.evaluated.is_none() => Facts::NoTest,
            _ => Facts::Read { findings: judged.findings.clone(), run },
        };
        judged.verdict = judge(&facts, self.allowed);
        judged.row.fidelity = judged.verdict.fidelity;
        judged.row.class = judged.verdict.class;
        judged.row.cases = comparison
            .as_ref()
            .filter(|comparison| comparison.ran)
            .map(|comparison| Cases { passed: comparison.passed_cases, total: comparison.n_cases });
        if judged.verdict.class == Some(ErrorClass::MissingTestFunction) {
            judged.row.test_f1 = judged.row.test_f1.map(|_| 0.0);
        }
        judged.executed_lines(case.evaluated.as_ref(), case.traced);
        judged.output =
            case.seen.map(|seen| tail(&seen.attempt.raw_output, OUTPUT_LINES)).unwrap_or_default();
        judged.sabotage = case.sabotage;
        judged.comparison = comparison;
        judged.import_attempts = asked;
        judged
    }

    /// Runs texts; `each` gets what was seen, with the lines of the file that ran where they were traced.
    fn run(
        &self,
        world: &WorldSetting,
        texts: &[(usize, Arc<str>)],
        trace: TraceMode,
        groups: &[Group],
        mut each: impl FnMut(usize, Seen, Option<BTreeSet<u32>>),
    ) -> Result<()> {
        let pool = Pool {
            backend: &*self.lab.backend,
            setting: &world.setting,
            groups,
            options: &self.lab.options,
            normalizer: &world.normalizer,
            timeouts: self.lab.timeouts,
            jobs: self.lab.jobs,
        };
        let task = |(at, text): &(usize, Arc<str>)| {
            let mut task = Task::new(self.file, 0, trace);
            task.text = Some(Arc::clone(text));
            task.runs.push(PoolRun { group: *at, repeat: 1 });
            task
        };
        let normalizer: &Normalizer = &world.normalizer;
        pool.run(texts.iter().map(task).collect(), |event| {
            match event {
                Event::Attempt { group, done, items, import, import_attempts, .. } => {
                    let name = |index: i64| node_id(&items, index);
                    let attempt = attempt_of(&groups[group], &done, name, normalizer, (&World::Base, 0));
                    let imports = import_attempts.iter().chain(&done.import_attempts).cloned().collect();
                    let lines = lines_of(self.file, import.as_deref(), done.trace.as_ref());
                    each(group, Seen { attempt, imports }, lines);
                }
                Event::Unavailable { group, text, import_attempts, .. } => {
                    let attempt = not_collected(&groups[group], &text, normalizer, (&World::Base, 0));
                    each(group, Seen { attempt, imports: import_attempts.to_vec() }, None);
                }
                Event::Broken(error) => return Err(error),
            }
            Ok(())
        })
    }
}

fn cases_texts(wanted: &[usize], text: impl Fn(usize) -> Option<String>) -> Vec<(usize, Arc<str>)> {
    wanted.iter().filter_map(|at| Some((*at, Arc::from(text(*at)?)))).collect()
}

fn cases_set(cases: &mut [Case<'_>], at: usize, seen: Seen) {
    cases[at].seen = Some(seen);
}

/// The group of each submission: whatever its test function has as cases.
fn cases_groups(cases: &[Case<'_>], file: &str) -> Vec<Group> {
    let group = |case: &Case<'_>| Group {
        group_id: case.original.instance.instance_id.to_string(),
        file: file.to_owned(),
        classes: case.test.classes.clone(),
        function: case.test.function.clone(),
        cases: Vec::new(),
        markers: Vec::new(),
        fixtures: Vec::new(),
        flags: Vec::new(),
    };
    cases.iter().map(group).collect()
}

/// Lines of the submission that ran, while it was imported and while its cases ran.
fn lines_of(
    file: &str,
    import: Option<&ImportTrace>,
    trace: Option<&std::result::Result<GroupTrace, String>>,
) -> Option<BTreeSet<u32>> {
    let (import, Some(Ok(trace))) = (import?, trace) else { return None };
    if !trace.complete {
        return None;
    }
    let mut lines = BTreeSet::new();
    let functions = import.functions.iter().chain(&trace.functions);
    let of_functions = functions.map(|one| (&one.file, one.lines.as_ref()));
    let of_bodies = import.bodies.iter().chain(&trace.bodies).map(|one| (&one.file, one.lines.as_ref()));
    for (_, executed) in of_functions.chain(of_bodies).filter(|(of, _)| *of == file) {
        lines.extend(executed?.iter().copied());
    }
    Some(lines)
}

fn forbids(found: &[Finding], allowed: &BTreeSet<Violation>) -> bool {
    found.iter().any(|finding| match finding.kind.effect() {
        crate::score::Effect::ImportError => true,
        crate::score::Effect::Violation => !allowed.contains(&Violation::RegistersRepositoryModule),
        crate::score::Effect::Flag => false,
    })
}

fn after_file(case: &str) -> &str {
    case.split_once("::").map_or(case, |(_, name)| name)
}

/// The module as which pytest imports a test file: the shortest name of the file that is known.
pub(crate) fn module_of(file: &str, modules: &Modules) -> String {
    let dotted = file.trim_end_matches(".py").replace('/', ".");
    let starts = dotted.match_indices('.').map(|(at, _)| at + 1).rev().chain([0]);
    let mut names = starts.map(|at| &dotted[at..]);
    names.find(|name| modules.contains(name)).unwrap_or(&dotted).to_owned()
}

impl Judged {
    fn empty(bytes: Option<&[u8]>) -> Self {
        let submitted = if bytes.is_some() { Submitted::Readable } else { Submitted::Nothing };
        Judged {
            verdict: judge(&Facts::Lost, &BTreeSet::new()),
            row: Row {
                submitted,
                fidelity: None,
                class: None,
                execution: None,
                execution_statements: None,
                existence: None,
                existence_control: None,
                test_f1: Some(0.0),
                cases: None,
            },
            injection: None,
            unreadable: None,
            findings: Vec::new(),
            import_attempts: Vec::new(),
            comparison: None,
            sabotage: Sabotage::NotTried,
            existence: None,
            executed: Vec::new(),
            untraced: None,
            lines: bytes.map_or(0, |bytes| {
                bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
            }),
            sha256: bytes.map(sha256_hex),
            evaluated_sha256: None,
            output: String::new(),
        }
    }

    fn cannot_be_read(&mut self, reason: Unreadable) {
        self.row.submitted = Submitted::Unparsable;
        self.row.existence = Some(Ratio::default());
        self.row.test_f1 = Some(0.0);
        self.unreadable = Some(reason);
    }

    fn read_as(&mut self, existence: LineExistence, findings: Vec<Finding>) {
        self.row.existence = Some(existence.rate);
        self.row.existence_control = Some(existence.with_control_flow);
        self.existence = Some(existence);
        self.findings = findings;
    }

    fn executed_lines(&mut self, evaluated: Option<&Evaluated>, traced: Option<Traced>) {
        let (Some(evaluated), Some(traced)) = (evaluated, traced) else { return };
        let Some(lines) = traced.lines.filter(|_| traced.same) else {
            let why = if traced.same {
                "the test took the tracer away"
            } else {
                "tracing changes what the test shows"
            };
            self.untraced = Some(why.to_owned());
            return;
        };
        if let Ok(execution) = line_execution(&evaluated.text, &lines) {
            self.row.execution = Some(execution.rate);
            self.row.execution_statements = Some(execution.statements);
            self.executed = execution.lines;
        }
    }
}
