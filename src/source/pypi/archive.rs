//! Unpacks a source distribution, or a crate: one top folder, nothing outside it, and no links that lead out.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::super::location::normalized;
use super::super::tree::{self, Kind};
use crate::error::{Error, Result};
use crate::interrupt;

/// What an entry counts at least, in bytes: its header.
const HEADER: u64 = 512;

/// What came out of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacked {
    /// The newest modification time in it, seconds since 1970.
    pub newest: i64,
    /// What is left of the limit, in bytes.
    pub left: u64,
}

/// Unpacks into an empty directory, without the top folder: not more than `limit` bytes.
///
/// # Errors
/// When the file is no `.tar.gz` or `.crate`, is damaged, comes to more than the limit, holds unsafe paths or links, or has
/// more than one top folder.
pub(crate) fn unpack(file: &Path, name: &str, target: &Path, limit: u64) -> Result<Unpacked> {
    if !name.ends_with(".tar.gz") && !name.ends_with(".crate") {
        return Err(Error::repository(format!("{name} is not a .tar.gz"))
            .with_hint("name the project's repository with `git` instead"));
    }
    let mut unpacking = Unpacking {
        name,
        target,
        top: None,
        links: BTreeMap::new(),
        copies: Vec::new(),
        newest: 0,
        left: limit,
    };
    // Names may stand in entries of their own, which are read whole and not seen here.
    let most = limit.saturating_mul(2).saturating_add(1 << 20);
    let unpacked = MultiGzDecoder::new(fs_err::File::open(file)?).take(most);
    let mut archive = Archive::new(unpacked);
    for entry in archive.entries().map_err(|error| unpacking.damaged(error))? {
        interrupt::check()?;
        let mut entry = entry.map_err(|error| unpacking.damaged(error))?;
        unpacking.entry(&mut entry)?;
    }
    unpacking.finish()
}

struct Unpacking<'a> {
    name: &'a str,
    target: &'a Path,
    top: Option<PathBuf>,
    /// Made last, so that nothing can be written through them.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Hard links: path and the path whose content it shares.
    copies: Vec<(PathBuf, PathBuf)>,
    newest: i64,
    left: u64,
}

impl Unpacking<'_> {
    fn damaged(&self, error: std::io::Error) -> Error {
        Error::repository(format!("cannot unpack {}", self.name)).with_source(error)
    }

    fn refused(&self, path: &Path, reason: &str) -> Error {
        Error::repository(format!("{} holds `{}`, which {reason}", self.name, path.display()))
    }

    /// Takes bytes from what is left.
    fn spend(&mut self, bytes: u64) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| Error::repository(format!("{} unpacks to too much", self.name)))?;
        Ok(())
    }

    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<()> {
        self.spend(HEADER)?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let path = entry.path().map_err(|error| self.damaged(error))?.into_owned();
        let Some(inside) = self.inside(&path)? else { return Ok(()) };
        self.newest =
            self.newest.max(entry.header().mtime().map_or(0, |time| i64::try_from(time).unwrap_or(0)));
        if let Some(parent) = inside.parent() {
            tree::make_directory(self.target, parent)?;
        }
        match kind {
            EntryType::Directory => tree::make_directory(self.target, &inside),
            EntryType::Symlink => {
                let link = self.link_target(entry, &path)?;
                self.links.insert(inside, link);
                Ok(())
            }
            EntryType::Link => {
                let link = self.link_target(entry, &path)?;
                let from = self.inside(&link)?.ok_or_else(|| self.refused(&path, "links to a folder"))?;
                self.copies.push((inside, from));
                Ok(())
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => self.file(entry, &inside),
            _ => Err(self.refused(&path, "is neither file, link nor folder")),
        }
    }

    fn file<R: Read>(&mut self, entry: &mut Entry<'_, R>, inside: &Path) -> Result<()> {
        let mode = entry.header().mode().map_err(|error| self.damaged(error))?;
        let path = self.target.join(inside);
        // An archive may hold a file twice; the later one counts.
        if path.is_file() {
            fs_err::remove_file(&path)?;
        }
        // Of a sparse file the archive holds less than what it is.
        let bound = self.left + 1;
        let mut content = entry.take(bound);
        tree::write_file(&path, &mut content, Kind::of_mode(mode)).map_err(|error| error.at(self.name))?;
        self.spend(bound - content.limit())
    }

    fn link_target<R: Read>(&self, entry: &Entry<'_, R>, path: &Path) -> Result<PathBuf> {
        let target = entry.link_name().map_err(|error| self.damaged(error))?;
        target.map(std::borrow::Cow::into_owned).ok_or_else(|| self.refused(path, "is a link to nothing"))
    }

    /// The path below the top folder; `None` for the top folder itself.
    fn inside(&mut self, path: &Path) -> Result<Option<PathBuf>> {
        if path.components().any(|part| matches!(part, Component::ParentDir | Component::RootDir)) {
            return Err(self.refused(path, "leaves the archive"));
        }
        let clean = normalized(path);
        let Some(first) = clean.components().next() else { return Ok(None) };
        let first = PathBuf::from(first.as_os_str());
        if *self.top.get_or_insert_with(|| first.clone()) != first {
            return Err(self.refused(path, "is outside the one top folder that a source distribution has"));
        }
        let inside = clean.strip_prefix(&first).unwrap_or(&clean).to_owned();
        if inside.as_os_str().is_empty() {
            return Ok(None);
        }
        tree::checked(&inside).map(|inside| Some(inside.to_owned()))
    }

    fn finish(mut self) -> Result<Unpacked> {
        for (path, from) in &std::mem::take(&mut self.copies) {
            let source = self.target.join(from);
            let kind = tree::kind(&source)?.filter(|kind| *kind != Kind::Link);
            let kind = kind.ok_or_else(|| self.refused(path, "links to something that is not a file"))?;
            self.spend(fs_err::metadata(&source)?.len())?;
            tree::write_file(&self.target.join(path), &mut fs_err::File::open(&source)?, kind)?;
        }
        for (path, link) in &self.links {
            tree::write_link(&self.target.join(path), link)?;
        }
        for (path, link) in &self.links {
            if tree::leaves(self.target, path, link) {
                return Err(self.refused(path, "is a link that leads out of it"));
            }
        }
        match self.top {
            Some(_) => Ok(Unpacked { newest: self.newest, left: self.left }),
            None => Err(Error::repository(format!("{} is empty", self.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use tar::{Builder, Header};

    use super::*;

    fn archive(entries: &[(&str, EntryType, &str)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut builder = Builder::new(GzEncoder::new(file.reopen().unwrap(), Compression::fast()));
        for (path, kind, content) in entries {
            let mut header = Header::new_gnu();
            // Not `set_path`, which refuses what these tests are about.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(if content.starts_with("#!") { 0o755 } else { 0o664 });
            header.set_mtime(1000);
            let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
            if is_link {
                header.set_link_name_literal(content).unwrap();
            }
            let content = if is_link { "" } else { content };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
        file
    }

    fn unpacked(entries: &[(&str, EntryType, &str)]) -> Result<tempfile::TempDir> {
        let target = tempfile::tempdir().unwrap();
        unpack(archive(entries).path(), "demo-1.0.tar.gz", target.path(), 1 << 20)?;
        Ok(target)
    }

    #[test]
    fn an_archive_comes_to_its_limit_and_no_further() {
        let text = "x".repeat(3000);
        let one = [("demo/a", EntryType::Regular, text.as_str())];
        let linked = [one[0], ("demo/b", EntryType::Link, "demo/a"), ("demo/c", EntryType::Link, "demo/a")];
        for (entries, fits, too_small) in [(&one[..], 6000, 3200), (&linked[..], 12000, 9000)] {
            let file = archive(entries);
            let unpacked = |limit| {
                let target = tempfile::tempdir().unwrap();
                unpack(file.path(), "demo-1.0.crate", target.path(), limit).map(|unpacked| unpacked.left)
            };
            let spent = entries.len() as u64 * (HEADER + 3000);
            assert_eq!(unpacked(fits).unwrap(), fits - spent);
            let error = unpacked(too_small).unwrap_err().to_string();
            assert_eq!(error, "demo-1.0.crate unpacks to too much");
        }
    }

    #[test]
    fn top_folder_is_stripped_and_modes_and_links_are_kept() {
        let tree = unpacked(&[
            ("demo-1.0/", EntryType::Directory, ""),
            ("demo-1.0/run", EntryType::Regular, "#!"),
            ("demo-1.0/a/b.py", EntryType::Regular, "old"),
            ("demo-1.0/a/b.py", EntryType::Regular, "new"),
            ("demo-1.0/a/c.py", EntryType::Symlink, "../run"),
            ("demo-1.0/hard.py", EntryType::Link, "demo-1.0/a/b.py"),
        ])
        .unwrap();
        let kinds: Vec<_> = tree::entries(tree.path()).unwrap().into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::File, Kind::Link, Kind::File, Kind::Executable]);
        assert_eq!(fs_err::read_to_string(tree.path().join("hard.py")).unwrap(), "new");
    }

    #[test]
    fn what_leads_out_is_refused() {
        let cases: [&[(&str, EntryType, &str)]; 8] = [
            &[("/etc/x", EntryType::Regular, "")],
            &[("demo/../../x", EntryType::Regular, "")],
            &[("demo/l", EntryType::Symlink, "/etc")],
            &[("demo/l", EntryType::Symlink, "../x")],
            &[("demo/d/r", EntryType::Symlink, ".."), ("demo/h", EntryType::Symlink, "d/r/..")],
            &[("demo/l", EntryType::Link, "../../etc/passwd")],
            &[("demo/x", EntryType::Fifo, "")],
            &[("demo/a", EntryType::Regular, ""), ("other/b", EntryType::Regular, "")],
        ];
        for entries in cases {
            let error = unpacked(entries).err().unwrap_or_else(|| panic!("{entries:?} was unpacked"));
            assert!(error.to_string().starts_with("demo-1.0.tar.gz holds"), "{error}");
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let outside = tempfile::tempdir().unwrap();
        let link = outside.path().to_str().unwrap();
        let entries = [("demo/l", EntryType::Symlink, link), ("demo/l/x", EntryType::Regular, "x")];
        assert!(unpacked(&entries).is_err());
        assert!(!outside.path().join("x").exists());
    }

    #[test]
    fn other_and_damaged_archives_are_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), "nonsense").unwrap();
        let target = tempfile::tempdir().unwrap();
        for (name, expected) in
            [("demo.zip", "demo.zip is not"), ("demo.tar.gz", "cannot unpack demo.tar.gz")]
        {
            let error = unpack(file.path(), name, target.path(), 1 << 20).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    /// Paths of all kinds, most of them below one folder.
    fn paths() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "a", "b.py", "..", ".", "", "demo", "link", "\u{e9}", "\n", ".git", "con ", "-x",
        ]);
        let start = prop::sample::select(vec!["demo/", "demo/", "demo/", "demo/", "/", "", "../"]);
        (start, prop::collection::vec(part, 0..4))
            .prop_map(|(start, parts)| start.to_owned() + &parts.join("/"))
    }

    fn kinds() -> impl Strategy<Value = EntryType> {
        prop::sample::select(vec![
            EntryType::Regular,
            EntryType::Regular,
            EntryType::Directory,
            EntryType::Symlink,
            EntryType::Link,
            EntryType::GNUSparse,
            EntryType::GNULongName,
            EntryType::XHeader,
            EntryType::XGlobalHeader,
            EntryType::Char,
        ])
    }

    proptest! {
        #![proptest_config(crate::source::same_in_every_run())]

        #[test]
        fn whatever_an_archive_holds_nothing_outside_its_folder_changes(
            entries in prop::collection::vec((paths(), kinds(), paths()), 0..8),
            damage in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let borrowed: Vec<(&str, EntryType, &str)> =
                entries.iter().map(|(path, kind, content)| (path.as_str(), *kind, content.as_str())).collect();
            let file = archive(&borrowed);
            if let Some((at, byte)) = damage {
                let mut bytes = fs_err::read(file.path()).unwrap();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                fs_err::write(file.path(), bytes).unwrap();
            }
            let around = tempfile::tempdir().unwrap();
            fs_err::write(around.path().join("a"), "mine").unwrap();
            let target = around.path().join("tree");
            fs_err::create_dir(&target).unwrap();
            let done = unpack(file.path(), "demo-1.0.tar.gz", &target, 1 << 20);
            let names: Vec<_> = fs_err::read_dir(around.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            prop_assert_eq!(names.len(), 2, "{:?}", names);
            prop_assert_eq!(fs_err::read_to_string(around.path().join("a")).unwrap(), "mine");
            if done.is_ok() {
                // Every link ends below the folder.
                let root = fs_err::canonicalize(&target).unwrap();
                for entry in walkdir::WalkDir::new(&target).into_iter().flatten().filter(walkdir::DirEntry::path_is_symlink) {
                    if let Ok(end) = fs_err::canonicalize(entry.path()) {
                        prop_assert!(end.starts_with(&root), "{} -> {}", entry.path().display(), end.display());
                    }
                }
            }
        }
    }
}
