//! Patches between the files of two trees, and onto one: as git writes and applies them, in memory alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use git2::build::TreeUpdateBuilder;
use git2::{Delta, Diff, FileMode, Oid, Repository, Tree};

use super::measure::Difference;
use crate::beneath::{Folder, Kind};
use crate::error::{Error, Fault, OrWhy, Result};
use crate::family::codetaste::diff::changed;
use crate::record::codetaste::PatchShape;
use crate::record::patch::Patch;
use crate::source;

/// Largest file that a patch may change, and largest patch, in bytes.
const LARGEST: u64 = 64 << 20;
const LARGEST_PATCH: usize = 64 << 20;
/// Most files that a patch may change.
const MOST_FILES: usize = 100_000;
/// Lines around what a patch changes.
const CONTEXT: u32 = 3;
/// What the objects of a patch have to be.
const PLAIN: [u32; 2] = [0o100_644, 0o100_755];

/// The patch that makes one tree of another, and what it does.
///
/// # Errors
/// What cannot be read of either.
pub(crate) fn between(base: &Folder, golden: &Folder) -> Result<(Vec<u8>, PatchShape)> {
    source::bounded(|| {
        let repository = in_memory()?;
        let (before, after) = (differing(&repository, base, golden)?, differing(&repository, golden, base)?);
        let read = || -> std::result::Result<_, git2::Error> {
            let (before, after) = (repository.find_tree(before)?, repository.find_tree(after)?);
            let lines = Difference::of_trees(&repository, &before, &after, 0)?.lines()?;
            Ok((Difference::of_trees(&repository, &before, &after, CONTEXT)?.text()?, lines))
        };
        let (text, lines) = read().map_err(|error| broken(&error))?;
        let (changes, counted) = (lines.changes, changed(&text));
        let files = [changes.created, changes.deleted, changes.moved, changes.modified];
        let shape = PatchShape {
            files: files.into_iter().sum(),
            created: changes.created,
            deleted: changes.deleted,
            moved: changes.moved,
            lines_added: counted.added.count(),
            lines_removed: counted.removed.count(),
            gzip_ratio: lines.gzip_ratio,
        };
        Ok((text, shape))
    })
}

/// What a patch makes of a tree, as files that are laid over it; the text says why it cannot be applied. Blank text changes
/// nothing.
///
/// # Errors
/// What cannot be read of the tree.
pub(crate) fn apply(base: &Folder, patch: &[u8]) -> Result<OrWhy<Patch>> {
    if patch.trim_ascii().is_empty() {
        return Ok(Ok(Patch::default()));
    }
    if patch.len() > LARGEST_PATCH {
        return Ok(Err("it is larger than 64 MiB".to_owned()));
    }
    match source::bounded(|| applied(base, patch)) {
        // Too much for git's library, or a file of the tree that is too large to change: the patch's own trouble.
        Err(error) if error.fault() == Fault::Repository => Ok(Err(error.to_string())),
        applied => applied,
    }
}

/// What of the tree a file would be laid over or below, where that is not a folder to put it in.
fn in_its_way(base: &Folder, path: &str) -> Result<Option<String>> {
    let path = Path::new(path);
    if base.look(path)?.is_some_and(|entry| matches!(entry.kind, Kind::Folder)) {
        return Ok(Some(format!("{} is a folder", path.display())));
    }
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        // What is below a link or a file cannot be looked at.
        if let Ok(Some(entry)) = base.look(above)
            && !matches!(entry.kind, Kind::Folder)
        {
            return Ok(Some(format!("{} is not a folder", above.display())));
        }
    }
    Ok(None)
}

fn applied(base: &Folder, patch: &[u8]) -> Result<OrWhy<Patch>> {
    let diff = match Diff::from_buffer(patch) {
        Ok(diff) => diff,
        Err(error) => return Ok(Err(format!("it is not a patch of git's: {}", error.message()))),
    };
    let paths = match Paths::of(&diff) {
        Ok(paths) => paths,
        Err(why) => return Ok(Err(why)),
    };
    // The library would put one in front of the other.
    let exists = |path: &&String| !paths.gone.contains(*path) && base.has_file(Path::new(path));
    if let Some(path) = paths.created.iter().find(exists) {
        return Ok(Err(format!("{path} exists already")));
    }
    let repository = in_memory()?;
    let mut update = TreeUpdateBuilder::new();
    for path in &paths.all {
        add(&repository, &mut update, base, Path::new(path))?;
    }
    let empty = empty(&repository)?;
    let mut make = || -> std::result::Result<_, git2::Error> {
        let tree = repository.find_tree(update.create_updated(&repository, &empty)?)?;
        repository.apply_to_tree(&tree, &diff, None)
    };
    let index = match make() {
        Ok(made) => made,
        Err(error) => return Ok(Err(error.message().to_owned())),
    };
    let mut found = Patch::default();
    for path in &paths.gone {
        if let Err(why) = found.hide(path) {
            return Ok(Err(format!("{path} is not a path of the tree: {why:?}")));
        }
    }
    for entry in index.iter() {
        let Ok(path) = String::from_utf8(entry.path) else {
            return Ok(Err("it names a path that is not text".to_owned()));
        };
        if !PLAIN.contains(&entry.mode) {
            return Ok(Err(format!("{path} would be a link or a submodule")));
        }
        let blob = repository.find_blob(entry.id).map_err(|error| broken(&error))?;
        if let Ok(Some(why)) | Err(why) = in_its_way(base, &path).map_err(|error| error.to_string()) {
            return Ok(Err(why));
        }
        let bytes = blob.content().to_vec();
        let is_program = match paths.as_they_were.get(&path) {
            Some(old) => base.look(Path::new(old))?.is_some_and(|entry| entry.mode & 0o100 != 0),
            None => entry.mode == 0o100_755,
        };
        let put = if is_program { found.put_executable(&path, bytes) } else { found.put(&path, bytes) };
        if let Err(why) = put {
            return Ok(Err(format!("{path} is not a path of the tree: {why:?}")));
        }
    }
    Ok(Ok(found))
}

/// The files of a patch.
#[derive(Default)]
struct Paths {
    all: BTreeSet<String>,
    /// Those that it deletes, or that move.
    gone: BTreeSet<String>,
    created: BTreeSet<String>,
    /// Where files come from that move or are copied with no word of their mode, which the library would lose.
    as_they_were: BTreeMap<String, String>,
}

impl Paths {
    fn of(diff: &Diff<'_>) -> std::result::Result<Self, String> {
        let mut paths = Paths::default();
        for delta in diff.deltas() {
            let path = |file: git2::DiffFile<'_>| {
                let bytes = file.path_bytes().unwrap_or_default().to_vec();
                String::from_utf8(bytes).map_err(|_| "it names a path that is not text".to_owned())
            };
            let (old, new) = (path(delta.old_file())?, path(delta.new_file())?);
            for path in [&old, &new].into_iter().filter(|path| !path.is_empty()) {
                if Patch::default().hide(path).is_err() {
                    return Err(format!("{path} is not a path of the tree"));
                }
                paths.all.insert(path.clone());
            }
            let says_nothing = delta.new_file().mode() == FileMode::Unreadable;
            if says_nothing && matches!(delta.status(), Delta::Renamed | Delta::Copied) {
                paths.as_they_were.insert(new.clone(), old.clone());
            }
            match delta.status() {
                Delta::Added | Delta::Copied => drop(paths.created.insert(new)),
                Delta::Deleted => drop(paths.gone.insert(old)),
                Delta::Renamed => {
                    paths.gone.insert(old);
                    paths.created.insert(new);
                }
                _ => {}
            }
            if paths.all.len() > MOST_FILES {
                return Err("it changes more than 100,000 files".to_owned());
            }
        }
        if paths.all.is_empty() { Err("it changes no file".to_owned()) } else { Ok(paths) }
    }
}

fn in_memory() -> Result<Repository> {
    let make = || -> std::result::Result<_, git2::Error> {
        let objects = git2::Odb::new()?;
        objects.add_new_mempack_backend(1)?;
        Repository::from_odb(objects)
    };
    make().map_err(|error| broken(&error))
}

fn broken(error: &git2::Error) -> Error {
    Error::repository("the files of a pair cannot be compared").with_detail(error.message().to_owned())
}

fn empty(repository: &Repository) -> Result<Tree<'_>> {
    let make = || {
        let id = repository.treebuilder(None)?.write()?;
        repository.find_tree(id)
    };
    make().map_err(|error: git2::Error| broken(&error))
}

/// A tree of the files of a folder that another one does not have like this.
fn differing(repository: &Repository, folder: &Folder, other: &Folder) -> Result<Oid> {
    let mut update = TreeUpdateBuilder::new();
    for entry in folder.walk()? {
        if matches!(entry.kind, Kind::Folder | Kind::Other) {
            continue;
        }
        let there = other.look(&entry.path)?;
        let is_like = there.is_some_and(|there| {
            there.kind == entry.kind && there.size == entry.size && (there.mode ^ entry.mode) & 0o100 == 0
        });
        let is_same = is_like
            && (matches!(entry.kind, Kind::Link(_))
                || folder.read(&entry.path, LARGEST)? == other.read(&entry.path, LARGEST)?);
        if !is_same {
            add(repository, &mut update, folder, &entry.path)?;
        }
    }
    let empty = empty(repository)?;
    update.create_updated(repository, &empty).map_err(|error| broken(&error))
}

/// Adds the file at a path, where the folder has one.
fn add(repository: &Repository, update: &mut TreeUpdateBuilder, folder: &Folder, path: &Path) -> Result<()> {
    let Ok(Some(entry)) = folder.look(path) else { return Ok(()) };
    let (bytes, mode) = match &entry.kind {
        Kind::File if entry.mode & 0o100 != 0 => (folder.read(path, LARGEST)?, FileMode::BlobExecutable),
        Kind::File => (folder.read(path, LARGEST)?, FileMode::Blob),
        Kind::Link(target) => (target.as_os_str().as_encoded_bytes().to_vec(), FileMode::Link),
        Kind::Folder | Kind::Other => return Ok(()),
    };
    let id = repository.blob(&bytes).map_err(|error| broken(&error))?;
    update.upsert(path, id, mode);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made(tempfile::TempDir);

    impl Made {
        fn new(files: &[(&str, &str)]) -> Self {
            let made = Made(tempfile::tempdir().unwrap());
            for (path, text) in files {
                let place = made.0.path().join(path);
                fs_err::create_dir_all(place.parent().unwrap()).unwrap();
                fs_err::write(place, text).unwrap();
            }
            made
        }

        fn folder(&self) -> Folder {
            Folder::open(self.0.path()).unwrap()
        }
    }

    fn long(word: &str) -> String {
        let lines: Vec<String> = (0..20).map(|at| format!("{word} {at}\n")).collect();
        lines.concat()
    }

    #[test]
    fn a_patch_between_two_trees_makes_one_of_the_other() {
        let base = Made::new(&[
            ("a.py", "x = 1\ny = 2\n"),
            ("old/b.py", &long("b")),
            ("gone.py", "z\n"),
            ("same", "s"),
        ]);
        let moved = long("b").replace("b 3\n", "c 3\n");
        let golden =
            Made::new(&[("a.py", "x = 1\ny = 3"), ("new/b.py", &moved), ("made.py", "n\n"), ("same", "s")]);
        std::os::unix::fs::PermissionsExt::set_mode(
            &mut fs_err::metadata(golden.0.path().join("made.py")).unwrap().permissions(),
            0o755,
        );
        let (text, shape) = between(&base.folder(), &golden.folder()).unwrap();
        let shown = String::from_utf8(text.clone()).unwrap();
        assert!(shown.contains("rename from old/b.py\nrename to new/b.py\n"), "{shown}");
        let expected = PatchShape {
            files: 4,
            created: 1,
            deleted: 1,
            moved: 1,
            lines_added: 3,
            lines_removed: 3,
            gzip_ratio: shape.gzip_ratio,
        };
        assert_eq!(shape, expected, "{shown}");
        let patch = apply(&base.folder(), &text).unwrap().unwrap();
        let files: Vec<_> = patch.files().collect();
        let expected = [
            ("a.py", Some(&b"x = 1\ny = 3"[..])),
            ("gone.py", None),
            ("made.py", Some(b"n\n")),
            ("new/b.py", Some(moved.as_bytes())),
            ("old/b.py", None),
        ];
        assert_eq!(files, expected);
        let other = Made::new(&[("a.py", "different\n"), ("old/b.py", "no\n")]);
        assert!(apply(&other.folder(), &text).unwrap().is_err());
    }

    #[test]
    fn a_program_that_moves_unchanged_stays_one() {
        use std::os::unix::fs::PermissionsExt;

        let (base, golden) =
            (Made::new(&[("a/run", "#!\n"), ("b", "x\n")]), Made::new(&[("c/run", "#!\n"), ("b", "x\n")]));
        for file in [base.0.path().join("a/run"), golden.0.path().join("c/run")] {
            fs_err::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (text, shape) = between(&base.folder(), &golden.folder()).unwrap();
        assert_eq!((shape.moved, shape.lines_added), (1, 0));
        let patch = apply(&base.folder(), &text).unwrap().unwrap();
        assert!(patch.is_executable("c/run"), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn what_leaves_the_tree_or_is_no_patch_is_refused_with_the_reason() {
        let base = Made::new(&[("a.py", "x\n")]);
        let adds = |path: &str, mode: &str| {
            format!(
                "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..1234567\n--- /dev/null\n+++ b/{path}\n@@ \
                 -0,0 +1 @@\n+/etc\n"
            )
        };
        let refused = |text: &str| apply(&base.folder(), text.as_bytes()).unwrap().unwrap_err();
        assert!(
            refused(&adds("../up", "100644")).contains("not a path"),
            "{}",
            refused(&adds("../up", "100644"))
        );
        assert!(refused(&adds(".git/config", "100644")).contains("not a path"));
        assert!(refused(&adds("link", "120000")).contains("would be a link"));
        assert!(refused("words\n").contains("not a patch"), "{}", refused("words\n"));
        assert!(!refused(&adds("a.py", "100644")).is_empty(), "the file exists");
        assert_eq!(apply(&base.folder(), b" \n").unwrap(), Ok(Patch::default()));
        assert!(refused(&adds("a.py/b.py", "100644")).contains("a.py is not a folder"));
        fs_err::create_dir(base.0.path().join("folder")).unwrap();
        fs_err::write(base.0.path().join("folder/x"), "x").unwrap();
        assert!(refused(&adds("folder", "100644")).contains("is a folder"));
        std::os::unix::fs::symlink("/etc", base.0.path().join("out")).unwrap();
        assert!(refused(&adds("out/passwd", "100644")).contains("out is not a folder"));
        let program = apply(&base.folder(), adds("run", "100755").as_bytes()).unwrap().unwrap();
        assert!(program.is_executable("run"));
    }
}
