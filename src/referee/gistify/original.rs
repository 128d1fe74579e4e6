//! What a submission is held to: an original test, or a command, and what it showed.

use crate::family::gistify::{TestName, TracedFunction};
use crate::record::collected::Group;
use crate::record::entry::Entry;
use crate::record::flag::PROBE_INSENSITIVE;
use crate::record::id::InstanceId;
use crate::record::instance::Instance;
use crate::record::outcome::CaseResult;
use crate::record::variant::Variant;

/// Largest test file that is read, in bytes.
pub(crate) const LARGEST_TEST: u64 = 8 << 20;

/// An original test and what it showed.
#[derive(Debug, Clone)]
pub(crate) struct Original<'a> {
    pub(crate) id: &'a InstanceId,
    /// Its file, from the root of the tree.
    pub(crate) file: &'a str,
    pub(crate) test: TestName,
    /// Where it is defined, when that is another file.
    pub(crate) defined_in: Option<(&'a str, TestName)>,
    pub(crate) golden: &'a [CaseResult],
    /// Whether it fails when it is made to.
    pub(crate) can_be_sabotaged: bool,
    /// Functions of the repository that its cases call. None where there is no trace.
    pub(crate) traced: Option<&'a [TracedFunction]>,
    /// Edited texts of the test, or other input of the command; where there are none, a planted failure has to do for a test.
    pub(crate) variants: &'a [Variant],
    /// The command that it is, where it is not a test.
    pub(crate) entry: Option<Entry>,
}

impl<'a> Original<'a> {
    /// That of an instance.
    pub(crate) fn of(instance: &'a Instance, golden: &'a [CaseResult]) -> Self {
        let classes = instance.test_class.iter().flat_map(|chain| chain.split("::"));
        let defined_in = instance.test_defined_in.as_deref().and_then(|place| place.split_once("::"));
        let test = TestName {
            classes: classes.map(str::to_owned).collect(),
            function: instance.test_function.clone(),
        };
        Original {
            defined_in: defined_in.and_then(|(file, name)| Some((file, name.parse().ok()?))),
            can_be_sabotaged: instance.is_test()
                && !instance.flags.iter().any(|flag| flag == PROBE_INSENSITIVE),
            entry: instance.entry(),
            ..Original::new(&instance.instance_id, &instance.test_file, test, golden)
        }
    }

    /// One of which no more is known.
    pub(crate) fn new(id: &'a InstanceId, file: &'a str, test: TestName, golden: &'a [CaseResult]) -> Self {
        Original {
            id,
            file,
            test,
            defined_in: None,
            golden,
            can_be_sabotaged: true,
            traced: None,
            variants: &[],
            entry: None,
        }
    }

    /// That of a group.
    pub(crate) fn of_group(id: &'a InstanceId, group: &'a Group, golden: &'a [CaseResult]) -> Self {
        let test = TestName { classes: group.classes.clone(), function: group.function.clone() };
        let can_be_sabotaged = group.entry.is_none();
        Original {
            entry: group.entry.clone(),
            can_be_sabotaged,
            ..Original::new(id, &group.file, test, golden)
        }
    }

    /// The group of its test function, with whatever cases that has.
    pub(crate) fn group(&self) -> Group {
        if let Some(entry) = &self.entry {
            return Group::of_entry(entry.clone());
        }
        Group {
            group_id: self.id.to_string(),
            file: self.file.to_owned(),
            classes: self.test.classes.clone(),
            function: self.test.function.clone(),
            cases: Vec::new(),
            markers: Vec::new(),
            fixtures: Vec::new(),
            flags: Vec::new(),
            entry: None,
        }
    }

    /// The group that a submission has, which is this file.
    pub(crate) fn submitted(&self, file: &str) -> Group {
        match &self.entry {
            Some(entry) => Group::of_entry(Entry { command: entry.submitted(file), ..entry.clone() }),
            None => Group { file: file.to_owned(), ..self.group() },
        }
    }

    /// Where the test is defined.
    pub(crate) fn definition(&self) -> (&'a str, &TestName) {
        self.defined_in.as_ref().map_or((self.file, &self.test), |(file, name)| (file, name))
    }
}
