//! Witnesses that a dataset has already: a build that makes none takes over those of instances that are what they were.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dataset::{Dataset, assemble, witnesses};
use crate::error::Result;
use crate::record::family::Unit;
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::instance::{Contribution, Instance};
use crate::record::variant::Variant;
use crate::record::witness::Witness;
use crate::text::count;

/// IDs that are named.
const NAMED: usize = 5;

/// Gives instances the witnesses that a dataset has of them. Returns what has to be said of the others.
///
/// # Errors
/// What the dataset says of its witnesses cannot be read.
pub(super) fn carry_over(former: &Dataset, repositories: &mut [Contribution]) -> Result<Option<String>> {
    if !former.manifest.files.keys().any(|file| Path::new(file).starts_with(witnesses::FOLDER)) {
        return Ok(None);
    }
    let known = former.instances()?;
    let mut known: BTreeMap<&InstanceId, &Instance> =
        known.iter().filter(|one| one.witness.witness.is_some()).map(|one| (&one.instance_id, one)).collect();
    let (hidden, causes) = (former.variants(None)?, former.why_no_witness()?);
    for one in repositories.iter_mut().filter(|one| one.family.unit() == Unit::Group) {
        let pinned = &one.evidence.pinned;
        let source = former.manifest.sources.get(&pinned.slug);
        let is_same_tree = source.is_some_and(|it| it.tree_sha256 == pinned.tree_sha256);
        for instance in assemble::instances_of(one)? {
            let id = &instance.instance_id;
            if one.witnesses.contains_key(id) {
                known.remove(id);
                continue;
            }
            let Some(was) = known.get(id).filter(|was| is_same_tree && is_same(was, &instance)) else {
                continue;
            };
            let judged = |all: Option<&Vec<Variant>>| all.cloned().unwrap_or_default();
            let is_judged_alike =
                hidden.as_ref().is_some_and(|hidden| judged(hidden.get(id)) == judged(one.variants.get(id)));
            if let Some(witness) = witness(former, was, &causes)?.filter(|_| is_judged_alike) {
                known.remove(id);
                one.witnesses.insert(id.clone(), witness);
            }
        }
    }
    let made = known.values().filter(|one| one.witness.is_made());
    Ok(left_out(&former.directory, &made.map(|one| one.instance_id.as_str()).collect::<Vec<_>>()))
}

/// Whether an instance asks for the same, in the same environment.
fn is_same(was: &Instance, is: &Instance) -> bool {
    let digest = |one: &Instance| {
        (
            (one.commit.clone(), one.group_id.clone(), one.entry_command.clone(), one.case_ids.clone()),
            (one.expected.clone(), one.code_sha256.clone(), one.lock_sha256.clone(), one.python.clone()),
            (one.variants, one.stdin.clone(), one.env.clone()),
        )
    };
    digest(was) == digest(is)
}

/// What a dataset has of a witness; none where its file is not the one that it names.
fn witness(former: &Dataset, of: &Instance, causes: &BTreeMap<String, String>) -> Result<Option<Witness>> {
    let columns = of.witness.clone();
    if !columns.is_made() {
        let evidence = causes.get(of.instance_id.as_str()).cloned();
        return Ok(Some(Witness { columns, evidence, ..Witness::default() }));
    }
    let place = PathBuf::from(witnesses::FOLDER).join(format!("{}.py", of.instance_id));
    let bytes = former.folder()?.read_if_there(&place, witnesses::LARGEST_WITNESS)?;
    let is_it = |bytes: &Vec<u8>| columns.witness_sha256.as_deref() == Some(&sha256_hex(bytes));
    let text = bytes.filter(is_it).and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(text.map(|text| Witness { columns, text: Some(text), ..Witness::default() }))
}

fn left_out(directory: &Path, ids: &[&str]) -> Option<String> {
    let others = ids.len().saturating_sub(NAMED);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    (!ids.is_empty()).then(|| {
        format!(
            "{} of the dataset before left out, because the instance is not published now or not what it was: {}{more}; \
             `gistmill witness {}` makes new ones",
            count(ids.len(), "witness"),
            ids[..ids.len().min(NAMED)].join(", "),
            directory.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::witness::{MADE, WitnessColumns};
    use crate::testing::made_up::MadeUp;

    /// A dataset of one repository, with a witness for its first instance and a cause for its second.
    fn with_witnesses(folder: &Path, made_up: &MadeUp) -> (Dataset, Vec<InstanceId>) {
        crate::testing::write(folder, &made_up.input()).unwrap();
        let dataset = Dataset::open(folder).unwrap();
        let ids: Vec<InstanceId> =
            dataset.instances().unwrap().iter().map(|one| one.instance_id.clone()).collect();
        let made = WitnessColumns {
            witness: Some(MADE.to_owned()),
            witness_sha256: Some(sha256_hex(b"x = 1\n")),
            witness_lines: Some(1),
            ..WitnessColumns::default()
        };
        let none = WitnessColumns { witness: Some("too-slow".to_owned()), ..WitnessColumns::default() };
        let all = BTreeMap::from([
            (
                ids[0].clone(),
                Witness { columns: made, text: Some("x = 1\n".to_owned()), ..Witness::default() },
            ),
            (
                ids[1].clone(),
                Witness { columns: none, evidence: Some("it takes 9 s".to_owned()), ..Witness::default() },
            ),
        ]);
        witnesses::add(&dataset, &all).unwrap();
        (Dataset::open(folder).unwrap(), ids)
    }

    #[test]
    fn an_unchanged_build_keeps_the_witnesses_of_its_dataset() {
        let folder = tempfile::tempdir().unwrap();
        let made_up = MadeUp::new(&[12]);
        let (former, ids) = with_witnesses(&folder.path().join("d"), &made_up);
        let mut again = MadeUp::new(&[12]).repositories;
        assert!(again.iter().all(|one| one.witnesses.is_empty()));
        assert_eq!(carry_over(&former, &mut again).unwrap(), None);
        let kept: BTreeMap<_, _> = again.iter().flat_map(|one| &one.witnesses).collect();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert_eq!(kept[&ids[0]].text.as_deref(), Some("x = 1\n"));
        assert_eq!(kept[&ids[1]].evidence.as_deref(), Some("it takes 9 s"));
    }

    #[test]
    fn what_changed_or_is_not_published_loses_its_witness_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let made_up = MadeUp::new(&[12]);
        let (former, ids) = with_witnesses(&folder.path().join("d"), &made_up);
        let mut other = MadeUp::new(&[12]).repositories;
        for one in &mut other {
            one.published.remove(&ids[0]);
            one.evidence.pinned.tree_sha256 = "another".to_owned();
        }
        let said = carry_over(&former, &mut other).unwrap().unwrap();
        assert!(other.iter().all(|one| one.witnesses.is_empty()));
        assert!(said.starts_with("1 witness of the dataset before left out, "), "{said}");
        assert!(!said.contains('\n'), "it is a line of the log: {said}");
        assert!(
            said.contains(ids[0].as_str())
                && !said.contains(ids[1].as_str())
                && said.contains("gistmill witness "),
            "{said}"
        );
        let mut forged = MadeUp::new(&[12]).repositories;
        let place = former.directory.join(witnesses::FOLDER).join(format!("{}.py", ids[0]));
        fs_err::write(place, "x = 2\n").unwrap();
        let said = carry_over(&former, &mut forged).unwrap().unwrap();
        assert!(said.starts_with("1 witness of") && said.contains(ids[0].as_str()), "{said}");
    }
}
