//! What a test reaches within its file.

use std::collections::{BTreeSet, VecDeque};

use super::SourceFile;
use super::units::{Kind, Target};
use crate::record::collected::Group;

/// The class that a chain of at least one name leads to. None: the file has no such class.
pub(super) fn class_of(file: &SourceFile, classes: &[String]) -> Option<usize> {
    let (first, inner) = classes.split_first()?;
    inner.iter().try_fold(class_named(file, first)?, |class, name| nested(file, class, name))
}

/// The unit of the test function, in its class or in the nearest base of it that this file defines.
pub(super) fn test_of(file: &SourceFile, class: Option<usize>, function: &str) -> Option<usize> {
    match class {
        None => {
            let targets = file.index.names.get(function)?.iter().rev();
            targets.copied().find_map(|target| match target {
                Target::Unit(unit) if !matches!(file.units[unit].kind, Kind::Statement { .. }) => Some(unit),
                _ => None,
            })
        }
        Some(class) => lineage(file, class).into_iter().find_map(|class| {
            file.classes[class].members.iter().rev().copied().find(|unit| file.units[*unit].name == function)
        }),
    }
}

/// Units that the test reaches, the test first, each once, nearest first.
pub(super) fn of(file: &SourceFile, test: usize, class: Option<usize>, group: &Group) -> Vec<usize> {
    let chain = match class {
        Some(class) => chain(file, class),
        None => Vec::new(),
    };
    let mut walk =
        Walk { file, chain, test, seen: BTreeSet::new(), found: Vec::new(), queue: VecDeque::new() };
    walk.push(test);
    for fixture in &group.fixtures {
        walk.fixture(fixture);
    }
    walk.automatic(class.is_some());
    while let Some(unit) = walk.queue.pop_front() {
        walk.follow(unit);
    }
    walk.found
}

fn class_named(file: &SourceFile, name: &str) -> Option<usize> {
    file.index.names.get(name)?.iter().rev().find_map(|target| match target {
        Target::Class(class) => Some(*class),
        Target::Unit(_) => None,
    })
}

fn nested(file: &SourceFile, class: usize, name: &str) -> Option<usize> {
    file.classes[class].classes.iter().rev().copied().find(|inner| file.classes[*inner].name == name)
}

/// A class and its bases in this file, nearest first.
fn lineage(file: &SourceFile, class: usize) -> Vec<usize> {
    let mut found = vec![class];
    let mut next = 0;
    while let Some(class) = found.get(next).copied() {
        next += 1;
        for base in &file.classes[class].bases {
            let Some(path) = base.strip_prefix('.') else { continue };
            let mut names = path.split('.');
            let root = names.next().and_then(|name| class_named(file, name));
            let base = names.try_fold(root, |class, name| Some(nested(file, class?, name)));
            if let Some(base) = base.flatten().filter(|base| !found.contains(base)) {
                found.push(base);
            }
        }
    }
    found
}

/// The classes whose fixtures and set-up methods a test in this class gets: its own lineage and those around it.
fn chain(file: &SourceFile, class: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut around = Some(class);
    while let Some(class) = around {
        found.extend(lineage(file, class));
        around = file.classes[class].parent;
    }
    found
}

struct Walk<'f> {
    file: &'f SourceFile,
    /// Classes of which only what is named is taken.
    chain: Vec<usize>,
    test: usize,
    seen: BTreeSet<usize>,
    found: Vec<usize>,
    queue: VecDeque<usize>,
}

impl Walk<'_> {
    fn push(&mut self, unit: usize) {
        if self.seen.insert(unit) {
            self.found.push(unit);
            self.queue.push_back(unit);
        }
    }

    /// What runs with the test whether it names it or not.
    fn automatic(&mut self, in_class: bool) {
        let file = self.file;
        for class in self.chain.clone() {
            let Some(body) = file.classes[class].body else { continue };
            self.push(body);
            let members = file.classes[class].members.iter();
            members.filter(|unit| file.units[**unit].is_automatic()).for_each(|unit| self.push(*unit));
        }
        for unit in &file.index.around {
            let for_functions = file.units[*unit].name.ends_with("_function");
            if file.units[*unit].is_automatic() && !(in_class && for_functions) {
                self.push(*unit);
            }
        }
        for target in file.index.names.get("pytestmark").into_iter().flatten() {
            self.target(*target);
        }
    }

    fn fixture(&mut self, name: &str) {
        let file = self.file;
        let of_classes = self.chain.clone().into_iter().flat_map(|class| &file.classes[class].members);
        for unit in of_classes.chain(&file.index.around) {
            if file.units[*unit].fixture() == Some(name) {
                self.push(*unit);
            }
        }
    }

    fn target(&mut self, target: Target) {
        match target {
            Target::Unit(unit) => self.push(unit),
            Target::Class(class) if self.chain.contains(&class) => {}
            Target::Class(class) => self.whole_class(class),
        }
    }

    fn whole_class(&mut self, class: usize) {
        let file = self.file;
        for class in lineage(file, class) {
            let class = &file.classes[class];
            class.body.into_iter().chain(class.members.iter().copied()).for_each(|unit| self.push(unit));
            for inner in class.classes.iter().filter(|inner| !self.chain.contains(inner)).collect::<Vec<_>>()
            {
                if file.classes[*inner].body.is_some_and(|body| !self.seen.contains(&body)) {
                    self.whole_class(*inner);
                }
            }
        }
    }

    fn member(&mut self, classes: &[usize], name: &str) {
        let file = self.file;
        for class in classes {
            let members = file.classes[*class].members.iter();
            members.filter(|unit| file.units[**unit].name == name).for_each(|unit| self.push(*unit));
            if let Some(inner) = nested(file, *class, name) {
                self.target(Target::Class(inner));
            }
        }
    }

    fn follow(&mut self, unit: usize) {
        let file = self.file;
        let (at, unit) = (unit, &file.units[unit]);
        let refers = &unit.facts.refers;
        if at == self.test || unit.fixture().is_some() || unit.kind == Kind::SetUp {
            unit.parameters.iter().for_each(|name| self.fixture(name));
        }
        refers.fixtures.iter().for_each(|name| self.fixture(name));
        for name in &refers.names {
            for target in file.index.names.get(&**name).into_iter().flatten() {
                self.target(*target);
            }
        }
        for (name, attribute) in &refers.attributes {
            let class = class_named(file, name).filter(|class| self.chain.contains(class));
            if let Some(class) = class {
                self.member(&lineage(file, class), attribute);
            }
        }
        if unit.class.is_some_and(|class| self.chain.contains(&class)) {
            let chain = self.chain.clone();
            refers.members.iter().for_each(|name| self.member(&chain, name));
        }
    }
}
