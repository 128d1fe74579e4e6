//! How `ReCUBE` judges: a text takes the place of the target in the whole tree, and the groups of the instance run there.

pub(crate) mod gates;
pub(crate) mod judge;
pub(crate) mod outputs;
pub(crate) mod tables;
pub(crate) mod trajectories;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::texts::byte_code_of;
use crate::attempt::lab::Lab;
use crate::beneath::Folder;
use crate::error::{Error, Result};
use crate::family::gistify::{TestName, failing};
use crate::family::recube::mask::{Cut, Masked, mask, text_of_target};
use crate::record::collected::Group;
use crate::record::id::sha256_hex;
use crate::record::trace::check_path;
use crate::score::LONGEST;

/// The file of an instance as the tree has it.
pub(crate) struct Ground {
    pub(crate) original: String,
    pub(crate) masked: Masked,
    /// Files with its byte code.
    pub(crate) byte_code: Vec<String>,
    /// Python files of the tree.
    pub(crate) python: BTreeSet<String>,
}

impl Ground {
    /// Reads the file of an instance, which the dataset names.
    ///
    /// # Errors
    /// A usage error: the tree does not have it, or it cannot be masked.
    pub(crate) fn of(lab: &Lab, target: &str) -> Result<Self> {
        let folder = Folder::open(&lab.built.tree)?;
        let not_a_target = |why: &str| Error::usage(format!("{target} is not a target: {why}"));
        check_path(target).map_err(|why| not_a_target(&why))?;
        let bytes = folder.read_through_links(Path::new(target), LONGEST as u64 + 1)?;
        let text = text_of_target(&bytes).map_err(|why| not_a_target(why.reason()))?;
        let masked = mask(text, Cut::All).map_err(|why| not_a_target(why.reason()))?;
        let entries = folder.walk()?;
        let paths = entries.iter().filter_map(|entry| entry.path.to_str());
        let python = paths.clone().filter(|path| path.ends_with(".py")).map(str::to_owned).collect();
        Ok(Ground { original: text.to_owned(), masked, byte_code: byte_code_of(target, paths), python })
    }

    /// Whether these are the original and the mask that the dataset was made of.
    ///
    /// # Errors
    /// A usage error: one of them is another.
    pub(crate) fn check(&self, original: &str, masked: &str) -> Result<()> {
        if sha256_hex(self.original.as_bytes()) == original
            && sha256_hex(self.masked.text.as_bytes()) == masked
        {
            return Ok(());
        }
        Err(Error::usage("the mask of a target is not the one that the dataset says")
            .with_hint("use the gistmill that wrote the dataset, or build it again"))
    }
}

/// Files of tests in which these groups fail as soon as they start. Those whose test is defined elsewhere are left as they are.
///
/// # Errors
/// IO errors.
pub(crate) fn planted(lab: &Lab, groups: &[Group]) -> Result<BTreeMap<String, String>> {
    let folder = Folder::open(&lab.built.tree)?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for group in groups {
        let text = match texts.get(&group.file) {
            Some(text) => Some(text.clone()),
            None => {
                String::from_utf8(folder.read_through_links(Path::new(&group.file), LONGEST as u64 + 1)?).ok()
            }
        };
        let test = TestName { classes: group.classes.clone(), function: group.function.clone() };
        let fails = text.and_then(|text| failing(&text, &test).ok()?.into_iter().next());
        texts.extend(fails.map(|text| (group.file.clone(), text)));
    }
    Ok(texts)
}

/// The group of an ID, with whatever cases its test function has.
pub(crate) fn group_of(group_id: &str) -> Group {
    let mut names: Vec<String> = group_id.split("::").map(str::to_owned).collect();
    let file = names.remove(0);
    let function = names.pop().unwrap_or_default();
    Group {
        group_id: group_id.to_owned(),
        file,
        classes: names,
        function,
        cases: Vec::new(),
        markers: Vec::new(),
        fixtures: Vec::new(),
        flags: Vec::new(),
        entry: None,
    }
}
