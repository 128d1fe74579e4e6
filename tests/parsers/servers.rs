//! What servers answer: pages of package indexes, and git servers with their packs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gistmill::config::{Repo, SourceSpec};
use gistmill::error::{Error, Fault};
use gistmill::index::listed;
use gistmill::source::IndexTool;
use gistmill::store::Cache;
use git2::{ObjectType, Oid};
use proptest::prelude::*;
use sha1::{Digest, Sha1};

use super::{bytes, fuzz, text};

const JSON: &str = r#"{"meta": {"api-version": "1.1"}, "name": "foo", "files": [
{"filename": "foo-1.0-py3-none-any.whl", "url": "../f/foo.whl", "hashes": {"sha256": "ab", "md5": "0123456789abcdef0123456789abcdef"},
"requires-python": ">=3.8", "yanked": "broken", "upload-time": "2024-01-02T03:04:05Z", "core-metadata": {"sha256": "cd"}},
{"filename": "foo-1.0.tar.gz", "url": "https://me:pw@host/f/foo.tar.gz#sha256=00", "hashes": {}, "yanked": false}]}"#;
const HTML: &str = r#"<!DOCTYPE html><html><head><base href="https://host/f/"></head><body>
<a href="foo-1.0-py3-none-any.whl#sha256=ab" data-requires-python="&gt;=3.8" data-yanked="" data-core-metadata="sha256=cd">foo</a><br/>
<A HREF='//me:pw@other/foo-1.0.tar.gz' data-dist-info-metadata=true>bar</A></body></html>"#;
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ",",
    "null",
    "true",
    "1e999",
    "-0",
    "\\u0000",
    "\\ud800",
    "<a href=",
    "<a",
    "</a>",
    "<base href=",
    "<!--",
    "-->",
    "<![CDATA[",
    "&lt;",
    "&#x0;",
    "&#99999999;",
    "&amp",
    "=",
    ">",
    "<",
    "/",
    "..",
    "../",
    "%2e%2e%2f",
    "%2f",
    "%00",
    "\0",
    "\n",
    "é",
    "\u{feff}",
    "javascript:",
    "file:///etc/passwd",
    "http://[::1",
    "https://me:pw@host/",
    "data:,x",
    "#sha256=",
    "sha256=",
    "\"files\":",
    "\"url\":",
    "\"filename\":",
    "\"hashes\":{",
    "\"yanked\":",
    ".whl",
    ".tar.gz",
    "-1.0",
    "\\",
    "+00:00",
    "data-yanked",
    "<script>",
    "?x",
    "@",
    " ",
];

/// What is listed can be asked for: a file name that is one, at an address without a login.
fn check_page(kind: &str, body: &[u8]) {
    let Ok(files) = listed("https://index.example/simple/foo/", kind, body) else { return };
    for (name, address) in files {
        assert!(!name.is_empty() && name.len() < 1000, "{name:?}");
        assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\0', '\n']), "{name:?}");
        let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
        let host = rest.unwrap_or_else(|| panic!("{address}")).split('/').next().unwrap_or_default();
        assert!(!host.is_empty() && !host.contains('@') && !address.contains('#'), "{address}");
    }
}

#[test]
fn json_pages_of_an_index() {
    fuzz(bytes(vec![JSON.into()], TOKENS), |body| {
        check_page("application/vnd.pypi.simple.v1+json", body);
    });
}

#[test]
fn html_pages_of_an_index() {
    fuzz((bytes(vec![HTML.into()], TOKENS), text(&["text/html; charset=utf-8"], TOKENS)), |(body, kind)| {
        check_page("text/html", body);
        check_page(kind, body);
    });
}

/// A git server of one repository, which answers what it is told to.
#[derive(Clone, Default)]
struct Told {
    references: Vec<u8>,
    answer: Vec<u8>,
}

struct Server {
    port: u16,
    told: Arc<Mutex<Told>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let told: Arc<Mutex<Told>> = Arc::default();
        let own = Arc::clone(&told);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = own.lock().expect("no panic").clone();
                // The client may go away in the middle.
                let _ = serve(&stream, &told);
            }
        });
        Server { port, told }
    }
}

fn serve(mut stream: &TcpStream, told: &Told) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut is_post) = (String::new(), 0, false);
    reader.read_line(&mut line)?;
    is_post |= line.starts_with("POST");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    let (kind, body) = if is_post { ("result", &told.answer) } else { ("advertisement", &told.references) };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn packet(text: &str) -> Vec<u8> {
    format!("{:04x}{text}", text.len() + 4).into_bytes()
}

fn references(commit: Oid) -> Vec<u8> {
    let capabilities = "ofs-delta allow-tip-sha1-in-want allow-reachable-sha1-in-want agent=git/2";
    [
        packet("# service=git-upload-pack\n"),
        b"0000".to_vec(),
        packet(&format!("{commit} HEAD\0{capabilities}\n")),
        packet(&format!("{commit} refs/heads/main\n")),
        b"0000".to_vec(),
    ]
    .concat()
}

/// Objects of a repository as they go into a pack: number of the kind, and content.
type Object = (u8, Vec<u8>);

const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;
/// Against the object whose hash comes first.
const DELTA: u8 = 7;

fn packed(objects: &[Object], count: u32) -> Vec<u8> {
    let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for (kind, content) in objects {
        let (base, content) = content.split_at(if *kind == DELTA { 20.min(content.len()) } else { 0 });
        let mut size = content.len();
        let mut byte = kind << 4 | u8::try_from(size & 15).expect("four bits");
        size >>= 4;
        while size > 0 {
            pack.push(byte | 0x80);
            byte = u8::try_from(size & 0x7f).expect("seven bits");
            size >>= 7;
        }
        pack.push(byte);
        pack.extend(base);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("into memory");
        pack.extend(encoder.finish().expect("into memory"));
    }
    pack
}

/// With the hash at its end, so that what was changed is looked at at all.
fn sealed(mut pack: Vec<u8>) -> Vec<u8> {
    let sum = Sha1::digest(&pack);
    pack.extend(&sum[..]);
    [packet("NAK\n"), pack].concat()
}

fn entry(mode: &str, name: &[u8], id: Oid) -> Vec<u8> {
    [mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat()
}

fn hash(kind: ObjectType, content: &[u8]) -> Oid {
    Oid::hash_object(kind, content).expect("a hash")
}

/// A commit with two folders and a submodule; `name` and `mode` are those of one of its files.
fn repository(name: &[u8], mode: &str, modules: &[u8]) -> (Oid, Vec<Object>) {
    let file = b"print('a file of some length, so that a delta is worth it')\n".to_vec();
    let id = hash(ObjectType::Blob, &file);
    // Against the file: its first eleven bytes.
    let size = u8::try_from(file.len()).expect("is short");
    let delta = [id.as_bytes(), &[size, 11, 0x90, 11]].concat();
    let module = hash(ObjectType::Blob, modules);
    let inner = entry(mode, name, id);
    let inner_id = hash(ObjectType::Tree, &inner);
    let tree = [
        entry("100644", b".gitmodules", module),
        entry("100755", b"a.py", id),
        entry("120000", b"link", hash(ObjectType::Blob, &file[..10])),
        entry("40000", b"pkg", inner_id),
        entry("160000", b"sub", id),
    ]
    .concat();
    let commit = format!(
        "tree {}\nauthor A <a@example.org> 0 +0000\ncommitter A <a@example.org> 0 +0000\n\nm\n",
        hash(ObjectType::Tree, &tree)
    )
    .into_bytes();
    let id = hash(ObjectType::Commit, &commit);
    let objects = [
        (COMMIT, commit),
        (TREE, tree),
        (TREE, inner),
        (BLOB, file),
        (BLOB, modules.to_vec()),
        (DELTA, delta),
    ];
    (id, objects.into())
}

/// Lets git go to no further place.
struct Nowhere;

impl IndexTool for Nowhere {
    fn lock_entry(&self, _: &str) -> gistmill::error::Result<String> {
        Err(Error::repository("no index"))
    }
}

fn repo(url: &str, commit: &str) -> Repo {
    let config =
        "[dataset]\nname = \"d\"\nversion = \"1\"\n[[repo]]\nslug = \"a/b\"\ngit = \"https://host/x\"\n";
    let text = format!("{config}commit = \"{commit}\"\n");
    let mut config = gistmill::config::parse(&text, Path::new("/"), &|_, _| None).expect("is right");
    let mut repo = config.repos.remove(0);
    if let SourceSpec::Git { url: own, .. } = &mut repo.source {
        url.clone_into(own);
    }
    repo
}

/// Fetches and writes what the server has; gives whether that worked. Whatever comes, nothing is written outside the cache,
/// no link is written through, and the fault is that of the repository.
fn fetched(server: &Server, commit: Oid, references: Vec<u8>, answer: Vec<u8>) -> bool {
    *server.told.lock().expect("no panic") = Told { references, answer };
    let around = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(&around.path().join("cache")).expect("a cache");
    let url = format!("http://127.0.0.1:{}/x.git", server.port);
    let pinned = gistmill::source::pin((&repo(&url, &commit.to_string()), &[]), &cache, &Nowhere, &|_| {});
    let beside = std::fs::read_dir(around.path()).expect("can be listed").count();
    assert_eq!(beside, 1, "something beside the cache");
    match pinned {
        Ok(pinned) => {
            for found in walkdir::WalkDir::new(&pinned.tree).min_depth(1) {
                let found = found.expect("can be listed");
                assert!(!found.file_name().eq_ignore_ascii_case(".git"), "{}", found.path().display());
            }
            true
        }
        Err(error) => {
            assert!(
                matches!(error.fault(), Fault::Repository | Fault::Usage),
                "{:?}: {error}",
                error.fault()
            );
            false
        }
    }
}

const MODULES: &[u8] = b"[submodule \"m\"]\n\tpath = other\n\turl = https://host.invalid/x\n";
const PARTS: &[&str] = &[
    "NAK\n",
    "0000",
    "0001",
    "0008NAK\n",
    "PACK",
    "\0\0\0\x02",
    "\0\0\0\x01",
    "\u{7f}\u{7f}",
    "ffff",
    "ERR no\n",
    "ACK ",
    "shallow ",
    "tree ",
    "parent ",
    "author ",
    "40000 ",
    "100644 ",
    "120000 ",
    "160000 ",
    "..\0",
    ".git\0",
    "x\0",
    "\0",
    "\n",
    "é",
    "/",
];

#[test]
fn a_git_server_that_keeps_to_the_rules_is_understood() {
    let server = Server::start();
    let (commit, objects) = repository(b"x.py", "100644", MODULES);
    let link = (BLOB, objects[3].1[..10].to_vec());
    let objects = [objects, vec![link]].concat();
    let count = u32::try_from(objects.len()).expect("a few");
    let answer = sealed(packed(&objects, count));
    assert!(fetched(&server, commit, references(commit), answer.clone()));
    // Some call a branch what is not UTF-8.
    let odd = [b"003d", commit.to_string().as_bytes(), b" refs/heads/\xff\xfe\xff\xfe\n0000"].concat();
    let end = references(commit).len() - 4;
    let more = [&references(commit)[..end], &odd].concat();
    assert!(fetched(&server, commit, more, answer));
}

#[test]
fn packs_of_a_git_server() {
    let server = Server::start();
    let (commit, objects) = repository(b"x.py", "100644", MODULES);
    let link = (BLOB, objects[3].1[..10].to_vec());
    let objects = [objects, vec![link]].concat();
    let pack = packed(&objects, u32::try_from(objects.len()).expect("a few"));
    fuzz(bytes(vec![pack], PARTS), |pack| {
        let _ = fetched(&server, commit, references(commit), sealed(pack.clone()));
    });
}

#[test]
fn answers_of_a_git_server() {
    let server = Server::start();
    let (commit, objects) = repository(b"x.py", "100644", MODULES);
    let answer = sealed(packed(&objects, u32::try_from(objects.len()).expect("a few")));
    fuzz((bytes(vec![references(commit)], PARTS), bytes(vec![answer], PARTS)), |(references, answer)| {
        let _ = fetched(&server, commit, references.clone(), answer.clone());
    });
}

#[test]
fn trees_of_a_git_server() {
    let server = Server::start();
    let names = bytes(vec![b"x.py".to_vec(), b".git".to_vec(), b"..".to_vec(), vec![b'n'; 300]], PARTS);
    let modes =
        prop::sample::select(vec!["100644", "120000", "40000", "160000", "100755", "0", "7777777", "-1", ""]);
    let modules = bytes(vec![MODULES.to_vec(), b"[include]\n\tpath = /etc/passwd\n".to_vec()], PARTS);
    fuzz((names, modes, modules, any::<bool>()), |(name, mode, modules, is_whole)| {
        let (commit, mut objects) = repository(name, mode, modules);
        let link = (BLOB, objects[3].1[..10].to_vec());
        objects.extend(is_whole.then_some(link));
        let count = u32::try_from(objects.len()).expect("a few");
        let _ = fetched(&server, commit, references(commit), sealed(packed(&objects, count)));
    });
}
