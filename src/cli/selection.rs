//! Which instances of a dataset a command is for: one set of options for all that read datasets.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::dataset::Dataset;
use crate::dataset::codetaste::CodetasteInstance;
use crate::dataset::query::FoundGroup;
use crate::dataset::query::pairs::FoundPair;
use crate::dataset::query::targets::FoundTarget;
use crate::dataset::recube::RecubeInstance;
use crate::document;
use crate::error::{Error, Result};
use crate::record::id::{RepoSlug, hash_parts};
use crate::record::instance::Instance;

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

    /// The instances of a dataset that were asked for, in its order.
    ///
    /// # Errors
    /// Usage errors: no such subset, repository or instance, a file that cannot be read, nothing that is in all of it.
    pub(super) fn of(&self, dataset: &Dataset) -> Result<Vec<Instance>> {
        let mut instances = dataset.instances()?;
        let members = self.subset.as_ref().map(|name| dataset.members(name)).transpose()?;
        if let Some(members) = members {
            instances.retain(|one| members.contains(one.instance_id.as_str()));
        }
        let head = |one: &Instance| (one.instance_id.to_string(), one.slug.clone(), one.tier.as_str());
        self.keep(&mut instances, head)?;
        Ok(instances)
    }

    /// The instances of a dataset of `ReCUBE` that were asked for, in its order.
    ///
    /// # Errors
    /// Those of [`Selection::of`].
    pub(super) fn of_recube(&self, dataset: &Dataset) -> Result<Vec<RecubeInstance>> {
        let mut instances = dataset.recube_instances()?;
        let members = self.subset.as_ref().map(|name| dataset.members(name)).transpose()?;
        if let Some(members) = members {
            instances.retain(|one| members.contains(one.head.instance_id.as_str()));
        }
        self.keep(&mut instances, |one| {
            (one.head.instance_id.to_string(), one.head.slug.clone(), one.tier.as_str())
        })?;
        Ok(instances)
    }

    /// Leaves those candidates of a dataset of `ReCUBE` that were asked for. Of a repository all are, of the rest those that
    /// are instances.
    ///
    /// # Errors
    /// Those of [`Selection::keep_groups`].
    pub(super) fn keep_targets(&self, dataset: &Dataset, targets: &mut Vec<FoundTarget>) -> Result<()> {
        targets.retain(|one| self.only.is_empty() || self.only.iter().any(|slug| slug.as_str() == one.slug));
        let tier = |one: &FoundTarget| one.published.as_ref().map(|published| published.tier);
        targets.retain(|one| self.tier.is_none() || tier(one) == self.tier.as_deref());
        for set in self.sets(dataset)? {
            targets.retain(|one| one.instance_id.as_ref().is_some_and(|id| set.contains(id)));
        }
        Ok(())
    }

    /// The instances of a dataset of `CodeTaste` that were asked for, in its order. A repository's name means all of its
    /// pairs.
    ///
    /// # Errors
    /// Those of [`Selection::of`].
    pub(super) fn of_codetaste(&self, dataset: &Dataset) -> Result<Vec<CodetasteInstance>> {
        let mut instances = dataset.codetaste_instances()?;
        let members = self.subset.as_ref().map(|name| dataset.members(name)).transpose()?;
        if let Some(members) = members {
            instances.retain(|one| members.contains(one.head.instance_id.as_str()));
        }
        self.keep(&mut instances, |one| {
            let asked = RepoSlug::new(&one.head.repo).ok().filter(|repo| self.only.contains(repo));
            let slug = asked.unwrap_or_else(|| one.head.slug.clone());
            (one.head.instance_id.to_string(), slug, one.tier.as_str())
        })?;
        Ok(instances)
    }

    /// Leaves those pairs of a dataset of `CodeTaste` that were asked for. Of a repository all are, of the rest those that are
    /// instances.
    ///
    /// # Errors
    /// Those of [`Selection::keep_groups`].
    pub(super) fn keep_pairs(&self, dataset: &Dataset, pairs: &mut Vec<FoundPair>) -> Result<()> {
        let is_of = |one: &FoundPair| {
            self.only.iter().any(|slug| slug.as_str() == one.slug || slug.as_str() == one.repo)
        };
        pairs.retain(|one| self.only.is_empty() || is_of(one));
        let tier = |one: &FoundPair| one.published.as_ref().map(|published| published.tier);
        pairs.retain(|one| self.tier.is_none() || tier(one) == self.tier.as_deref());
        for set in self.sets(dataset)? {
            pairs.retain(|one| one.instance_id.as_ref().is_some_and(|id| set.contains(id)));
        }
        Ok(())
    }

    /// Leaves those groups of a dataset that were asked for. Of a repository all groups are, of the rest those that are
    /// instances.
    ///
    /// # Errors
    /// Usage errors: no such subset or instance, a file that cannot be read.
    pub(super) fn keep_groups(&self, dataset: &Dataset, groups: &mut Vec<FoundGroup>) -> Result<()> {
        groups
            .retain(|group| self.only.is_empty() || self.only.iter().any(|slug| slug.as_str() == group.slug));
        groups.retain(|group| self.tier.is_none() || group.tier == self.tier);
        let sets = self.sets(dataset)?;
        let is_in = |group: &FoundGroup, set: &BTreeSet<String>| {
            group.instance_id.as_ref().is_some_and(|id| set.contains(id))
        };
        groups.retain(|group| sets.iter().all(|set| is_in(group, set)));
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

    /// Leaves what was asked for; `head` gives the ID, repository and tier of an instance.
    fn keep<T>(
        &self,
        instances: &mut Vec<T>,
        head: impl Fn(&T) -> (String, RepoSlug, &'static str),
    ) -> Result<()> {
        if let Some(ids) = self.wanted_ids()? {
            let known: BTreeSet<String> = instances.iter().map(|one| head(one).0).collect();
            unknown(&ids, |id| known.contains(id))?;
            instances.retain(|one| ids.contains(&head(one).0));
        }
        instances.retain(|one| self.tier.as_deref().is_none_or(|tier| head(one).2 == tier));
        instances.retain(|one| self.only.is_empty() || self.only.contains(&head(one).1));
        if let Some(slug) = self.only.iter().find(|slug| !instances.iter().any(|one| head(one).1 == **slug)) {
            return Err(Error::usage(format!("the dataset has no instance of {slug} there")));
        }
        if instances.is_empty() && self.is_part() {
            return Err(Error::usage(format!("the dataset has no instance that is all of: {}", self.part())));
        }
        Ok(())
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
            selection.of(&dataset).unwrap().iter().map(|one| one.instance_id.to_string()).collect()
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
            selection.keep_groups(&dataset, &mut groups).unwrap();
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
        let refused = |selection: Selection| selection.of(&dataset).unwrap_err().to_string();
        let unknown = Selection { instance: vec!["gone".to_owned()], ..Selection::default() };
        assert_eq!(refused(unknown), "the dataset has no instance `gone`");
    }
}
