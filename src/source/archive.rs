//! Trees that a dataset holds itself, as `.tar.zst`. Whoever made the dataset wrote the archive.

use std::collections::BTreeMap;
use std::path::Path;

use super::tree::{self, Kind};
use super::{Content, Context, Request};
use crate::beneath;
use crate::beneath::archive::each;
use crate::error::{Error, Result};
use crate::record::id::RepoSlug;
use crate::record::moment::Moment;
use crate::record::source::Pinned;

/// Pins the tree in an archive; `of_dataset` is what the dataset says of it.
pub(super) fn pin(
    context: &Context<'_>,
    slug: &RepoSlug,
    file: &Path,
    of_dataset: &Pinned,
) -> Result<Pinned> {
    let key = ["archive".to_owned(), of_dataset.tree_sha256.clone(), of_dataset.pinned_at.clone()];
    let request = Request { origin: of_dataset.origin.clone(), key: key.into() };
    let mut pinned = context.find_or_make(slug, request, |target| {
        context.say(&format!("unpacking {}", file.display()));
        unpack(file, target)?;
        let found = tree::hash(target)?;
        if found != of_dataset.tree_sha256 {
            return Err(Error::repository(format!(
                "{} holds other files than the dataset says",
                file.display()
            ))
            .with_detail(format!("the dataset says {}\nfound            {found}", of_dataset.tree_sha256))
            .with_hint(format!("get the file again, or name the repository with --source {slug}=<place>")));
        }
        let pinned_at = Moment::parse(&of_dataset.pinned_at).map_or(0, Moment::seconds);
        Ok(Content { commit: of_dataset.commit.clone(), pinned_at, notes: of_dataset.notes.clone() })
    })?;
    // Another dataset may have brought the same files as another commit.
    let (slug, tree) = (pinned.slug, pinned.tree);
    pinned = Pinned { slug, tree, ..of_dataset.clone() };
    Ok(pinned)
}

/// Unpacks into an empty directory.
fn unpack(file: &Path, target: &Path) -> Result<()> {
    let name = file.display().to_string();
    let mut links = BTreeMap::new();
    each(fs_err::File::open(file)?, &name, |member, content| {
        crate::interrupt::check()?;
        let path = tree::checked(member.path).map_err(|error| error.at(&name))?;
        if let Some(parent) = path.parent() {
            tree::make_directory(target, parent)?;
        }
        match member.kind {
            beneath::Kind::Folder => tree::make_directory(target, path),
            // Made last, so that nothing can be written through them.
            beneath::Kind::Link(to) => {
                links.insert(path.to_owned(), to.clone());
                Ok(())
            }
            beneath::Kind::File => tree::write_file(&target.join(path), content, Kind::of_mode(member.mode))
                .map_err(|error| error.at(&name)),
            beneath::Kind::Other => Err(Error::repository(format!(
                "{name} holds `{}`, which is neither file, link nor folder",
                path.display()
            ))),
        }
    })?;
    for (path, to) in links {
        tree::write_link(&target.join(path), &to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tar::EntryType;

    use super::*;

    fn packed(entries: &[(&str, EntryType, &str)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut archive = tar::Builder::new(zstd::Encoder::new(file.reopen().unwrap(), 1).unwrap());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            // As it is, whatever a careful writer would say.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            if *kind == EntryType::Symlink {
                header.set_link_name(content).unwrap();
            }
            let bytes = if *kind == EntryType::Regular { content.as_bytes() } else { b"" };
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            archive.append(&header, bytes).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn nothing_is_written_outside_or_through_a_link() {
        let outside = tempfile::tempdir().unwrap();
        let place = outside.path().to_str().unwrap();
        let bad: [&[(&str, EntryType, &str)]; 5] = [
            &[("../x.py", EntryType::Regular, "x")],
            &[("/etc/x.py", EntryType::Regular, "x")],
            &[("a/.git/config", EntryType::Regular, "x")],
            &[("pipe", EntryType::Fifo, "")],
            &[("a.py", EntryType::Regular, "x"), ("a.py", EntryType::Regular, "y")],
        ];
        for entries in bad {
            let target = tempfile::tempdir().unwrap();
            assert!(unpack(packed(entries).path(), target.path()).is_err(), "{entries:?}");
        }
        let through = packed(&[("a", EntryType::Symlink, place), ("a/x.py", EntryType::Regular, "x")]);
        let target = tempfile::tempdir().unwrap();
        assert!(unpack(through.path(), target.path()).is_err());
        assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_comes_out_as_it_is_and_no_other_is_taken_for_it() {
        let file = packed(&[("s/a.py", EntryType::Regular, "1"), ("l", EntryType::Symlink, "s/a.py")]);
        let target = tempfile::tempdir().unwrap();
        unpack(file.path(), target.path()).unwrap();
        let slug = RepoSlug::new("a/b").unwrap();
        let said = Pinned {
            tree_sha256: tree::hash(target.path()).unwrap(),
            ..crate::testing::made_up::pinned(&slug, "c0")
        };
        let home = tempfile::tempdir().unwrap();
        let cache = crate::store::Cache::open(home.path()).unwrap();
        let check = |_: &str| panic!("nothing is asked");
        let context = Context { cache: &cache, progress: &|_| {}, check: &check };
        let pinned = pin(&context, &slug, file.path(), &said).unwrap();
        assert_eq!((&pinned.commit, &pinned.pinned_at), (&said.commit, &said.pinned_at));
        assert_eq!(fs_err::read_to_string(pinned.tree.join("l")).unwrap(), "1");
        let other = packed(&[("s/a.py", EntryType::Regular, "2"), ("l", EntryType::Symlink, "s/a.py")]);
        let said = Pinned { tree_sha256: "0".repeat(64), ..said };
        let error = pin(&context, &slug, other.path(), &said).unwrap_err();
        assert!(error.to_string().contains("holds other files"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--source a/b=")), "{error:?}");
    }
}
