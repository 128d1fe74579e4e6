//! Clones that somebody made in order to harm whoever looks through them: it ends soon, nothing of the machine is read or
//! written, and what is wrong is said.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use git2::{ObjectType, Oid, Repository};

use super::*;
use crate::pattern::{self, Pair};

/// What looking through one may take, however busy the machine is.
const LONGEST: Duration = Duration::from_mins(2);

fn object(repository: &Repository, kind: ObjectType, content: &[u8]) -> Oid {
    repository.odb().unwrap().write(kind, content).unwrap()
}

/// A tree of raw entries: mode, name, object.
fn tree(repository: &Repository, entries: &[(&str, &[u8], Oid)]) -> Oid {
    let mut content = Vec::new();
    for (mode, name, id) in entries {
        content.extend(mode.as_bytes());
        content.push(b' ');
        content.extend(*name);
        content.push(0);
        content.extend(id.as_bytes());
    }
    object(repository, ObjectType::Tree, &content)
}

fn commit(repository: &Repository, tree: Oid, parents: &[Oid], message: &[u8]) -> Oid {
    let parents: Vec<String> = parents.iter().map(|id| format!("parent {id}\n")).collect();
    let parents = parents.concat();
    let who = "a <a@b> 1 +0000";
    let mut content = format!("tree {tree}\n{parents}author {who}\ncommitter {who}\n\n").into_bytes();
    content.extend(message);
    object(repository, ObjectType::Commit, &content)
}

/// A base and a golden commit on `main`, with the tree that is made.
fn pair_of(repository: &Repository, make: impl Fn(&Repository, Oid) -> Oid) -> Oid {
    let text = object(repository, ObjectType::Blob, b"def f():\n    return old(1)\n");
    let base = tree(repository, &[("100644", b"m.py", text)]);
    let first = commit(repository, base, &[], b"First");
    let golden = make(repository, text);
    let last = commit(repository, golden, &[first], b"Refactor: move \x1b]0;it\x07 and rename it");
    point(repository, last);
    last
}

/// Written by hand, since what it names may not exist.
fn point(repository: &Repository, id: Oid) {
    let heads = repository.path().join("refs/heads");
    fs_err::create_dir_all(&heads).unwrap();
    fs_err::write(heads.join("main"), format!("{id}\n")).unwrap();
    fs_err::write(repository.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

/// Folders within folders, each named twice by the one above: `2^levels` files of few objects.
fn bomb(repository: &Repository, levels: usize, text: Oid) -> Oid {
    let leaf = tree(repository, &[("100644", b"a.py", text), ("100644", b"b.py", text)]);
    (0..levels).fold(leaf, |below, _| tree(repository, &[("40000", b"a", below), ("40000", b"b", below)]))
}

type Make = fn(&Path, &Repository) -> Oid;

const CLONES: [(&str, Make); 15] = [
    ("names with escape codes, dots and slashes", |_, repository| {
        pair_of(repository, |repository, text| {
            let names: [&[u8]; 5] =
                [b"../../victim.py", b"/victim.py", b"\x1b[2J.py", b"\xff\xfe.py", b"x\ny.py"];
            let entries: Vec<_> = names.iter().map(|name| ("100644", *name, text)).collect();
            tree(repository, &entries)
        })
    }),
    ("links out of the tree", |here, repository| {
        let victim = here.join("victim");
        pair_of(repository, |repository, text| {
            let link = object(repository, ObjectType::Blob, victim.as_os_str().as_encoded_bytes());
            tree(repository, &[("120000", b"link.py", link), ("100644", b"m.py", text)])
        })
    }),
    ("submodules without a commit", |_, repository| {
        pair_of(repository, |repository, text| {
            let modules = b"[submodule \"x\"]\n\tpath = x.py\n\turl = file:///\n";
            let modules = object(repository, ObjectType::Blob, modules);
            tree(repository, &[("100644", b".gitmodules", modules), ("160000", b"x.py", text)])
        })
    }),
    ("a file that is missing", |_, repository| {
        pair_of(repository, |repository, _| {
            tree(repository, &[("100644", b"m.py", Oid::from_bytes(&[7; 20]).unwrap())])
        })
    }),
    ("a folder that is a file", |_, repository| {
        pair_of(repository, |repository, text| tree(repository, &[("40000", b"m", text)]))
    }),
    ("a tree that is cut off", |_, repository| {
        pair_of(repository, |repository, _| object(repository, ObjectType::Tree, b"100644 m.py\0abc"))
    }),
    ("one name many times", |_, repository| {
        pair_of(repository, |repository, text| {
            tree(repository, &[("100644", b"m.py".as_slice(), text); 1000])
        })
    }),
    ("folders within each other without end", |_, repository| {
        pair_of(repository, |repository, text| {
            let leaf = tree(repository, &[("100644", b"m.py", text)]);
            (0..5000).fold(leaf, |below, _| tree(repository, &[("40000", b"d", below)]))
        })
    }),
    ("Python that is deep", |_, repository| {
        pair_of(repository, |repository, _| {
            let deep = object(repository, ObjectType::Blob, "(".repeat(200_000).as_bytes());
            let long = object(repository, ObjectType::Blob, "a.".repeat(500_000).as_bytes());
            tree(repository, &[("100644", b"m.py", deep), ("100644", b"n.py", long)])
        })
    }),
    ("a long message without lines", |_, repository| {
        let last = pair_of(repository, |repository, text| tree(repository, &[("100644", b"n.py", text)]));
        let root = repository.find_commit(last).unwrap().tree_id();
        let message = b"refactor ".repeat(1 << 20);
        let next = commit(repository, root, &[last], &message);
        point(repository, next);
        next
    }),
    ("a parent that is missing", |_, repository| {
        let last = pair_of(repository, |repository, text| tree(repository, &[("100644", b"n.py", text)]));
        let root = repository.find_commit(last).unwrap().tree_id();
        let next = commit(repository, root, &[Oid::from_bytes(&[9; 20]).unwrap()], b"Refactor");
        point(repository, next);
        next
    }),
    ("objects that are those of another clone", |here, repository| {
        let other = Repository::init_bare(here.join("other")).unwrap();
        let last = pair_of(&other, |repository, text| tree(repository, &[("100644", b"n.py", text)]));
        let objects = other.path().join("objects");
        fs_err::write(
            repository.path().join("objects/info/alternates"),
            objects.as_os_str().as_encoded_bytes(),
        )
        .unwrap();
        point(repository, last);
        last
    }),
    ("a configuration that names programs and files", |here, repository| {
        let touch = format!("touch {}", here.join("planted").display());
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = {touch}\n\tsshCommand = {touch}\n\
             \tattributesFile = {victim}\n[include]\n\tpath = {victim}\n[diff \"py\"]\n\ttextconv = {touch}\n\
             \tcommand = {touch}\n[filter \"py\"]\n\tsmudge = {touch}\n",
            victim = here.join("victim").display()
        );
        fs_err::write(repository.path().join("config"), config).unwrap();
        pair_of(repository, |repository, text| {
            let attributes = object(repository, ObjectType::Blob, b"*.py diff=py filter=py\n");
            tree(repository, &[("100644", b".gitattributes", attributes), ("100644", b"n.py", text)])
        })
    }),
    ("a branch that is a link to a file of the machine", |here, repository| {
        let last = pair_of(repository, |repository, text| tree(repository, &[("100644", b"n.py", text)]));
        let main = repository.path().join("refs/heads/main");
        fs_err::remove_file(&main).unwrap();
        symlink(here.join("victim"), main).unwrap();
        last
    }),
    ("an index of packs that is none", |_, repository| {
        let last = pair_of(repository, |repository, text| tree(repository, &[("100644", b"n.py", text)]));
        let packs = repository.path().join("objects/pack");
        fs_err::create_dir_all(&packs).unwrap();
        fs_err::write(packs.join("pack-0000.idx"), [0xff; 4096]).unwrap();
        fs_err::write(packs.join("pack-0000.pack"), b"PACK\0\0\0\x02\xff\xff\xff\xff").unwrap();
        last
    }),
];

/// What `commits` and `pattern mine` do with a clone, and whether either says that something is wrong.
fn look_through(clone: &Path, golden: Oid) -> Vec<String> {
    let limits = Limits { min_files: 0, min_code_files: 0, ..Limits::default() };
    let asked = Asked { limits, merges: true, ..Asked::default() };
    let place = ClonePlace { slug: RepoSlug::new("a/b").unwrap(), path: clone.to_owned() };
    let searched = search(&[place], &asked, &lists(None).unwrap(), None).map(drop);
    let mined = Pair::open(&format!("{}@{golden}", clone.display())).and_then(|pair| {
        let (base, golden) = pair.trees(pattern::Reach::Python)?;
        pattern::mine(&base, &golden, &pair.changed()?).map(drop)
    });
    [searched, mined].into_iter().filter_map(|result| result.err().map(|error| error.to_string())).collect()
}

#[test]
fn a_hostile_clone_costs_a_message_and_nothing_else() {
    let must_say = [
        "a file that is missing",
        "a folder that is a file",
        "a tree that is cut off",
        "folders within each other without end",
        "a parent that is missing",
        "a branch that is a link to a file of the machine",
    ];
    for (title, make) in CLONES {
        let said = said_of(title, make);
        assert!(!must_say.contains(&title) || !said.is_empty(), "{title}: nothing is said");
    }
}

/// git's library takes the memory that it may have until it is refused more.
#[test]
#[ignore = "takes 4 GiB"]
fn a_bomb_of_folders_is_refused() {
    let said =
        said_of("a bomb", |_, repository| pair_of(repository, |repository, text| bomb(repository, 40, text)));
    let [searched, mined] = said.as_slice() else { panic!("{said:?}") };
    assert!(searched.contains("more than 4 GiB"), "{searched}");
    assert!(mined.contains("more than a million files"), "{mined}");
}

/// Looks through a clone in a folder of its own, where nothing else may change.
fn said_of(title: &str, make: Make) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_owned();
    fs_err::write(here.join("victim"), "the secret of this machine").unwrap();
    let clone = here.join("clone");
    let golden = make(&here, &Repository::init_bare(&clone).unwrap());
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || sender.send(look_through(&clone, golden)));
    let said = match receiver.recv_timeout(LONGEST) {
        Ok(said) => said,
        Err(RecvTimeoutError::Timeout) => panic!("{title}: it does not end"),
        Err(RecvTimeoutError::Disconnected) => panic!("{title}: it panics"),
    };
    drop(thread.join());
    assert!(said.iter().all(|text| !text.is_empty() && !text.contains("secret")), "{title}: {said:?}");
    assert!(!here.join("planted").exists(), "{title}: a program ran");
    assert_eq!(fs_err::read(here.join("victim")).unwrap(), b"the secret of this machine", "{title}");
    said
}
