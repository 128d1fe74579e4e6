//! Which instances of a dataset a command is for: one set of options for all that read datasets.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::dataset::Dataset;
use crate::dataset::query::Found;
use crate::dataset::schema::InstanceRow;
use crate::document;
use crate::error::{Error, Result};
use crate::record::id::{RepoSlug, hash_parts};

/// Instances have to be in all that is given.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Only instances of this repository; may be given several times
    #[arg(long, value_name = "SLUG", value_parser = super::parse_slug)]
    only: Vec<RepoSlug>,
    /// Only instances of this subset
    #[arg(long, value_name = "NAME")]
    subset: Option<String>,
    /// Only instances of this tier
    #[arg(long, value_parser = ["easy", "medium", "hard"])]
    tier: Option<String>,
    /// Only the instance of this ID; may be given several times
    #[arg(short, long, value_name = "ID")]
    instance: Vec<String>,
    /// Only instances whose IDs are in this file, a line each
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
}

impl Selection {
    /// Whether instances may be left out.
    pub(super) fn is_part(&self) -> bool {
        !self.part().is_empty()
    }

    /// Which part of the dataset was asked for, in words; a file of IDs counts by what is in it.
    pub(super) fn part(&self) -> String {
        let slugs = self.only.iter().map(|slug| slug.as_str().to_owned());
        let file = self.ids.as_ref().map(|path| {
            let text = document::read_text(path).unwrap_or_default();
            format!("{} ({})", path.display(), &hash_parts(&["ids", &text])[..16])
        });
        let words = self.subset.iter().cloned().chain(slugs).chain(self.tier.iter().cloned());
        words.chain(self.instance.iter().cloned()).chain(file).collect::<Vec<_>>().join(" ")
    }

    /// The instances of a dataset that were asked for, in its order. The name of a repository means all of its pairs of
    /// commits.
    ///
    /// # Errors
    /// Usage errors: no such subset, repository or instance, a file that cannot be read, nothing that is in all of it.
    pub(super) fn of<R: InstanceRow>(
        &self,
        dataset: &Dataset,
        read: fn(&Dataset) -> Result<Vec<R>>,
    ) -> Result<Vec<R>> {
        let mut instances = read(dataset)?;
        if let Some(name) = &self.subset {
            let members = dataset.members(name)?;
            instances.retain(|one| members.contains(one.head().instance_id.as_str()));
        }
        if let Some(ids) = self.wanted_ids()? {
            let known: BTreeSet<&str> = instances.iter().map(|one| one.head().instance_id.as_str()).collect();
            unknown(&ids, |id| known.contains(id))?;
            instances.retain(|one| ids.contains(one.head().instance_id.as_str()));
        }
        let is_of = |one: &R, slug: &RepoSlug| one.head().slug == *slug || one.head().repo == slug.as_str();
        instances.retain(|one| self.tier.as_deref().is_none_or(|tier| one.rating().0.as_str() == tier));
        instances.retain(|one| self.only.is_empty() || self.only.iter().any(|slug| is_of(one, slug)));
        if let Some(slug) = self.only.iter().find(|slug| !instances.iter().any(|one| is_of(one, slug))) {
            return Err(Error::usage(format!("the dataset has no instance of {slug} there")));
        }
        if instances.is_empty() && self.is_part() {
            return Err(Error::usage(format!("the dataset has no instance that is all of: {}", self.part())));
        }
        Ok(instances)
    }

    /// Leaves those groups, files or pairs of a dataset that were asked for. Of a repository all are, of the rest those that
    /// are instances.
    ///
    /// # Errors
    /// Usage errors: no such subset or instance, a file that cannot be read.
    pub(super) fn keep_found<T: Found>(&self, dataset: &Dataset, found: &mut Vec<T>) -> Result<()> {
        found.retain(|one| self.only.is_empty() || self.only.iter().any(|slug| one.is_of(slug.as_str())));
        found.retain(|one| self.tier.is_none() || one.tier() == self.tier.as_deref());
        for set in self.sets(dataset)? {
            found.retain(|one| one.instance_id().is_some_and(|id| set.contains(id)));
        }
        Ok(())
    }

    /// IDs that what is asked for has to be in, each of a subset or given.
    fn sets(&self, dataset: &Dataset) -> Result<Vec<BTreeSet<String>>> {
        let mut sets: Vec<BTreeSet<String>> = Vec::new();
        sets.extend(self.subset.as_ref().map(|name| dataset.members(name)).transpose()?);
        if let Some(ids) = self.wanted_ids()? {
            let instances = dataset.table("instances", &["instance_id"])?;
            let known: BTreeSet<&str> = instances.whole_texts("instance_id")?.into_iter().collect();
            unknown(&ids, |id| known.contains(id))?;
            sets.push(ids);
        }
        Ok(sets)
    }

    fn wanted_ids(&self) -> Result<Option<BTreeSet<String>>> {
        let mut ids: BTreeSet<String> = self.instance.iter().cloned().collect();
        if let Some(path) = &self.ids {
            let text = document::read_text(path)?;
            ids.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        } else if ids.is_empty() {
            return Ok(None);
        }
        Ok(Some(ids))
    }
}

/// Refuses IDs that the dataset does not have.
fn unknown(ids: &BTreeSet<String>, is_known: impl Fn(&str) -> bool) -> Result<()> {
    match ids.iter().find(|id| !is_known(id)) {
        None => Ok(()),
        Some(id) => Err(Error::usage(format!("the dataset has no instance `{id}`"))
            .with_hint("gistmill list DATASET --format csv has the IDs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::query;
    use crate::testing::made_up::MadeUp;

    #[test]
    fn instances_are_chosen_by_all_that_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("made-up");
        crate::testing::write(&directory, &MadeUp::new(&[6]).input()).unwrap();
        let dataset = Dataset::open(&directory).unwrap();
        let all = dataset.instances().unwrap();
        let (first, second) = (all[0].instance_id.to_string(), all[1].instance_id.to_string());
        let chosen = |selection: &Selection| -> Vec<String> {
            selection
                .of(&dataset, Dataset::instances)
                .unwrap()
                .iter()
                .map(|one| one.instance_id.to_string())
                .collect()
        };
        assert_eq!(chosen(&Selection::default()).len(), all.len());
        let file = folder.path().join("ids");
        fs_err::write(&file, format!("{second}\n\n")).unwrap();
        let two =
            Selection { instance: vec![first.clone()], ids: Some(file.clone()), ..Selection::default() };
        assert_eq!(chosen(&two), [first.clone(), second]);
        let part = two.part();
        fs_err::write(&file, &first).unwrap();
        assert_ne!(two.part(), part, "the same file with other IDs is another part");
        let tier = all[0].tier.as_str().to_owned();
        let one = Selection { tier: Some(tier), instance: vec![first.clone()], ..Selection::default() };
        assert_eq!((chosen(&one), one.is_part()), (vec![first.clone()], true));
        let groups = |selection: &Selection| -> Vec<Option<String>> {
            let mut groups = query::all(&dataset).unwrap();
            selection.keep_found(&dataset, &mut groups).unwrap();
            groups.into_iter().map(|group| group.instance_id).collect()
        };
        let slug = all[0].slug.clone();
        assert_eq!(groups(&one), [Some(first.clone())]);
        let whole = Selection { only: vec![slug], ..Selection::default() };
        assert_eq!(
            groups(&whole),
            groups(&Selection::default()),
            "groups that are no instances belong to it"
        );
        assert!(groups(&whole).contains(&None));
        let top = Selection { subset: Some("top".to_owned()), ..Selection::default() };
        assert_eq!(groups(&top).len(), dataset.members("top").unwrap().len());
        let refused =
            |selection: Selection| selection.of(&dataset, Dataset::instances).unwrap_err().to_string();
        let unknown = Selection { instance: vec!["gone".to_owned()], ..Selection::default() };
        assert_eq!(refused(unknown), "the dataset has no instance `gone`");
    }
}
