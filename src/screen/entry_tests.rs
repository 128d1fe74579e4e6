//! Verdicts of entries on tables of attempts.

use super::command::printed;
use super::verdict;
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::outcome::{Attempt, CommandResult, Compare, Exit, Method, Outcome, TimeScope, Wants};
use crate::record::verdict::Dimension;
use crate::record::world::World;
use crate::testing::attempts::attempt;

fn entry() -> Entry {
    crate::testing::attempts::entry("shop now")
}

fn made(status: i32, change: impl Fn(&mut Attempt)) -> Attempt {
    let outcome = if status == 0 { Outcome::Passed } else { Outcome::Failed };
    let mut made = attempt(&World::Base, Method::Fork, 0, outcome, "printed\n");
    made.cases[0].command = Some(CommandResult { status, ..CommandResult::default() });
    change(&mut made);
    made
}

fn cause(entry: Entry, attempts: &[Attempt]) -> Option<String> {
    let group = Group::of_entry(entry);
    let attempts: Vec<&Attempt> = attempts.iter().collect();
    verdict::judge(&group, &attempts, false, Compare::Output).cause().map(ToString::to_string)
}

#[test]
fn each_way_to_fail_has_its_cause() {
    let twice = |one: Attempt| [one.clone(), one];
    let of = |one: Attempt| cause(entry(), &twice(one));
    assert_eq!(of(made(0, |_| ())), None);
    assert_eq!(of(made(2, |_| ())).as_deref(), Some("exits-with"));
    assert_eq!(
        cause(Entry { exit: 2, ..entry() }, &twice(made(2, |one| one.cases[0].outcome = Outcome::Passed))),
        None
    );
    let wants = |what| made(1, |one| one.cases[0].command.as_mut().unwrap().wants = Some(what));
    assert_eq!(of(wants(Wants::Input)).as_deref(), Some("waits-for-input"));
    assert_eq!(of(wants(Wants::Terminal)).as_deref(), Some("needs-terminal"));
    let raises = |name: &str| made(1, |one| one.cases[0].exception = Some(name.to_owned()));
    assert_eq!(of(raises("EOFError")).as_deref(), Some("waits-for-input"));
    assert_eq!(of(raises("_curses.error")).as_deref(), Some("needs-terminal"));
    assert_eq!(of(raises("KeyError")).as_deref(), Some("exits-with"));
    let connects = made(1, |one| one.connections.push("example.org:443".to_owned()));
    assert_eq!(of(connects).as_deref(), Some("needs-network"));
    let late = made(0, |one| {
        one.cases.clear();
        one.exit = Exit::TimedOut { scope: TimeScope::Case, case: None };
    });
    assert_eq!(of(late.clone()).as_deref(), Some("runs-forever"));
    assert_eq!(cause(entry(), &[late, made(0, |_| ())]).as_deref(), Some("times-out"));
    let killed = made(0, |one| {
        one.cases.clear();
        one.exit = Exit::Signaled { signal: 11 };
    });
    assert_eq!(of(killed).as_deref(), Some("crashes"));
    let other = made(0, |one| one.cases[0].stdout = "other\n".to_owned());
    assert_eq!(cause(entry(), &[made(0, |_| ()), other]).as_deref(), Some("nondeterministic-output"));
    let status = made(3, |_| ());
    assert_eq!(cause(entry(), &[made(0, |_| ()), status]).as_deref(), Some("nondeterministic-outcome"));
}

#[test]
fn help_is_not_a_task_unless_something_is_written_as_well() {
    let one = made(0, |_| ());
    let helped = Entry { help: vec![printed(&one.cases[0])], ..entry() };
    assert_eq!(cause(helped.clone(), std::slice::from_ref(&one)).as_deref(), Some("prints-help-only"));
    let other = made(0, |one| one.cases[0].stdout = "other\n".to_owned());
    assert_eq!(cause(helped, &[other]), None);
}

#[test]
fn what_depends_on_the_file_of_the_submission_depends_on_its_name() {
    let (base, other) = (made(0, |_| ()), made(0, |one| one.cases[0].stdout = "concise.py\n".to_owned()));
    let cause = |group: &Group| {
        let dimensions = [Dimension::TestFileLocation].into();
        let told = verdict::depends(group, &dimensions, (&base, &other), &[], String::new());
        told.cause().map(ToString::to_string)
    };
    assert_eq!(cause(&Group::of_entry(entry())).as_deref(), Some("depends-on-program-name"));
    let group = crate::testing::attempts::group();
    assert_eq!(cause(&group).as_deref(), Some("depends-on-test-file-location"));
}
