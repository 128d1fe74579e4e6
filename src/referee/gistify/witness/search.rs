//! The search for one witness: the generator proposes, the driver tries and compares.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cause::{self, Cause, NotMade};
use super::generator::{Generator, Step};
use super::trace::Traced;
use super::trials::{Trials, Tried};
use crate::attempt::lab::Lab;
use crate::beneath::Folder;
use crate::error::Result;
use crate::family::gistify::{Evaluated, TestName, inject};
use crate::python_source::decoded;
use crate::record::collected::Group;
use crate::record::execution::Execution;
use crate::referee::gistify::ground::Ground;
use crate::referee::gistify::original::{LARGEST_TEST, Original};
use crate::referee::scored::spelled;
use crate::runner::protocol::{CandidateRun, Generated, Request};
use crate::score::{Comparison, File, Masks, compare};
use crate::text::tail;

/// Lines of a failure that the generator is told.
const FAILURE_LINES: usize = 80;

/// What a search came to.
pub(super) struct Searched {
    pub(super) found: std::result::Result<Box<Generated>, NotMade>,
    pub(super) trials: u32,
    /// Whether chance decides which lines of the original run.
    pub(super) varies: bool,
}

/// Searches for witnesses of instances of one repository.
pub(super) struct Searcher<'a> {
    pub(super) lab: &'a Lab,
    pub(super) ground: &'a Ground,
    /// The file that a submission is.
    pub(super) file: &'a str,
}

impl Searcher<'_> {
    /// Searches for all of them, several at a time.
    ///
    /// # Errors
    /// An interruption, and the harness's when it stays broken.
    pub(super) fn all(
        &self,
        originals: &[&Original<'_>],
        traced: &[Traced],
        step: &(dyn Fn() + Sync),
    ) -> Result<Vec<Searched>> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Result<Searched>>>> = Mutex::new(originals.iter().map(|_| None).collect());
        let workers = self.lab.jobs().clamp(1, originals.len().max(1));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    let mut generator = Generator::new(self.lab);
                    let mut trials = Trials::new(self.lab, self.ground, self.file);
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(original) = originals.get(at) else { return };
                        let searched = self.one(original, &traced[at], &mut generator, &mut trials);
                        if let Ok(one) = &searched {
                            tracing::info!("{}: searched with {} trials", original.id, one.trials);
                        }
                        let stops = searched.is_err();
                        let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        done[at] = Some(searched);
                        drop(done);
                        step();
                        if stops {
                            next.store(originals.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Those that were not begun because another one failed come after it or not at all.
        let mut searched = Vec::with_capacity(done.len());
        let mut begun: Vec<Result<Searched>> = done.into_iter().flatten().collect();
        if let Some(at) = begun.iter().position(Result::is_err) {
            return begun.swap_remove(at).map(|_| Vec::new());
        }
        for one in begun {
            searched.push(one?);
        }
        Ok(searched)
    }

    fn one(
        &self,
        original: &Original<'_>,
        traced: &Traced,
        generator: &mut Generator<'_>,
        trials: &mut Trials<'_>,
    ) -> Result<Searched> {
        crate::interrupt::check()?;
        let execution = match traced {
            Ok(execution) => execution,
            Err(why) => {
                let found = Err(NotMade::new(Cause::NotTraced, why));
                return Ok(Searched { found, trials: 0, varies: false });
            }
        };
        // Projects put modules of others under names of their own into `sys.modules`.
        let modules = &self.ground.code.modules;
        let others: Vec<String> = execution.others.iter().filter(|one| !modules.owns(one)).cloned().collect();
        let case = Case::new(self, original)?;
        trials.prepare(&others, &case.group)?;
        let (mut made, varies) = (0, execution.varies());
        let mut step = generator.ask(&case.begin(execution))?;
        loop {
            match step {
                Step::Candidate(text) => {
                    made += 1;
                    let trial = case.trial(&text, trials)?;
                    step = generator.ask(&Request::Tried(trial))?;
                }
                Step::Ended(generated) => {
                    let found = if generated.text.is_some() {
                        Ok(generated)
                    } else {
                        Err(cause::of_search(execution, &generated))
                    };
                    return Ok(Searched { found, trials: made, varies });
                }
                Step::Broke(why) => {
                    let found = Err(NotMade::new(Cause::OverBudget, &why));
                    return Ok(Searched { found, trials: made, varies });
                }
            }
        }
    }
}

/// An instance that is being searched for.
struct Case<'a> {
    searcher: &'a Searcher<'a>,
    original: &'a Original<'a>,
    /// The group that its submission has.
    group: Group,
    test: TestName,
    test_module: String,
    /// The text of its file.
    source: String,
}

impl<'a> Case<'a> {
    fn new(searcher: &'a Searcher<'a>, original: &'a Original<'a>) -> Result<Self> {
        let group = original.group();
        let source = if original.entry.is_some() {
            Vec::new()
        } else {
            let tree = Folder::open(&searcher.lab.built.tree)?;
            tree.read(Path::new(&group.file), LARGEST_TEST)?
        };
        Ok(Case {
            searcher,
            original,
            test: TestName { classes: group.classes.clone(), function: group.function.clone() },
            test_module: searcher.ground.code.modules.module_of(&group.file),
            source: decoded(&source),
            group: original.submitted(searcher.file),
        })
    }

    fn begin(&self, execution: &Execution) -> Request {
        Request::Generate {
            execution: Box::new(execution.clone()),
            file: self.original.file.to_owned(),
            classes: self.group.classes.clone(),
            function: self.group.function.clone(),
            submission: self.searcher.file.to_owned(),
            command: self.original.entry.as_ref().map(|entry| entry.command.clone()),
        }
    }

    /// Tries a text as the referee would, with the original test in it.
    fn trial(&self, text: &str, trials: &mut Trials<'_>) -> Result<CandidateRun> {
        let file = File { path: self.original.file, text: &self.source };
        let modules = &self.searcher.ground.code.modules;
        let made = match self.original.entry {
            Some(_) => Ok(Evaluated::as_it_is(text)),
            None => inject(text, file, &self.test, modules),
        };
        let evaluated = match made {
            Ok(evaluated) => evaluated,
            Err(why) => return Ok(CandidateRun { failure: format!("{why:?}"), ..CandidateRun::default() }),
        };
        let tried = trials.run(&self.group, &evaluated.text)?;
        let own = tried.imports.iter().filter(|one| Path::new(&one.file).ends_with(self.searcher.file));
        let own: BTreeSet<&str> =
            own.map(|one| one.module.as_str()).filter(|module| modules.owns(module)).collect();
        let all = tried.imports.iter().filter(|one| modules.owns(&one.module));
        let asked: BTreeSet<String> = all.map(|one| format!("{} (from {})", one.module, one.file)).collect();
        let ground = self.searcher.ground;
        let masks = Masks { modules, files: &ground.code.sources, test_module: &self.test_module };
        let compared = compare(
            self.original.golden,
            &tried.attempt.exit,
            &tried.attempt.cases,
            &masks,
            self.searcher.lab.compare,
        );
        let agrees = compared.agrees() && own.is_empty();
        let failure = if agrees { String::new() } else { failure(&tried, &compared, &asked) };
        let (lines, started) = ran(&tried, &evaluated);
        Ok(CandidateRun { agrees, failure, lines, started })
    }
}

/// What of the submitted text ran.
fn ran(tried: &Tried, evaluated: &Evaluated) -> (Vec<u32>, Vec<(u32, String)>) {
    let Some(ran) = &tried.ran else { return (Vec::new(), Vec::new()) };
    let lines = ran.lines.iter().filter_map(|(line, _)| evaluated.submitted_line(*line));
    let started =
        ran.started.iter().filter_map(|(line, name)| Some((evaluated.submitted_line(*line)?, name.clone())));
    (lines.collect(), started.collect())
}

/// Why a text does not show the same, in pytest's words where it has some.
fn failure(tried: &Tried, compared: &Comparison, asked: &BTreeSet<String>) -> String {
    let mut parts = Vec::new();
    if !asked.is_empty() {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        parts.push(format!("{}{}", cause::ASKS_FOR, asked.join(", ")));
    }
    parts.extend(tried.attempt.cases.iter().map(|case| case.message.clone()));
    parts.push(tried.text.clone());
    parts.push(tried.attempt.raw_output.clone());
    if let Some(case) = compared.cases.iter().find(|case| case.difference.is_some()) {
        parts.push(format!(
            "{}: {}\nexpected: {}\nseen: {}",
            case.case,
            case.difference.as_ref().and_then(spelled).unwrap_or_default(),
            case.expected,
            case.seen
        ));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.iter().map(|part| tail(part, FAILURE_LINES)).collect::<Vec<_>>().join("\n")
}
