//! What pytest collects, and the groups that come of it.

use serde::{Deserialize, Serialize};

use super::entry::{ENTRIES, Entry, EntryCommand, GroupKey};

/// One pytest node ID and what pytest knows about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The node ID with `<root>`, `<venv>`, `<tmp>` in place of machine paths.
    pub case_id: String,
    /// `callspec.id`, parameters only; none for a plain test. Machine paths replaced likewise.
    pub parameters: Option<String>,
    /// Line of the definition, 1-based, where known.
    pub line: Option<u32>,
}

/// All cases of one test function: the unit that becomes an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// `file::Class::function` relative to the root of the tree; the file alone for a collection error.
    pub group_id: String,
    /// Test file relative to the root of the tree.
    pub file: String,
    /// Class chain from the outside in.
    pub classes: Vec<String>,
    /// The original function's name; empty for a file that cannot be collected.
    pub function: String,
    /// Cases in the order of the entry command.
    pub cases: Vec<Case>,
    pub markers: Vec<String>,
    pub fixtures: Vec<String>,
    /// Flags that do not drop a group, e.g. `machine-path-in-id`.
    pub flags: Vec<String>,
    /// The command that it is, where it is not a test.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entry: Option<Entry>,
}

impl Group {
    /// The group of a key, without what pytest knows about it.
    pub fn of(key: GroupKey) -> Group {
        Group {
            group_id: key.group_id(),
            file: key.file,
            classes: key.classes,
            function: key.function,
            cases: Vec::new(),
            markers: Vec::new(),
            fixtures: Vec::new(),
            flags: Vec::new(),
            entry: None,
        }
    }

    /// The group of a command: its one case is the command itself.
    pub fn of_entry(entry: Entry) -> Group {
        let function = entry.name.to_string();
        let key = GroupKey { file: ENTRIES.to_owned(), classes: Vec::new(), function };
        let case = Case { case_id: key.group_id(), parameters: None, line: None };
        Group { cases: vec![case], entry: Some(entry), ..Group::of(key) }
    }

    /// What makes its cases one group.
    pub fn key(&self) -> GroupKey {
        GroupKey { file: self.file.clone(), classes: self.classes.clone(), function: self.function.clone() }
    }

    /// The literal entry command, run in the root of the tree.
    pub fn command(&self) -> EntryCommand {
        match &self.entry {
            Some(entry) => entry.command.clone(),
            None => EntryCommand::Pytest { node: self.group_id.clone() },
        }
    }
}

/// A file or group that pytest could not turn into runnable cases, with the cause it is dropped for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncollected {
    pub group: Group,
    pub cause: super::verdict::Cause,
    /// What pytest said.
    pub text: String,
}

/// The result of collecting one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    pub pytest: String,
    /// Every node ID of a whole-suite collection, machine paths replaced, in pytest's order.
    pub node_ids: Vec<String>,
    pub groups: Vec<Group>,
    pub uncollected: Vec<Uncollected>,
    /// Cases that the repository's own options deselect.
    pub deselected: usize,
    pub notes: Vec<String>,
}
