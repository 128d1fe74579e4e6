//! The whole door in one process, between a connection that plays uv and a server that plays an index.

mod upstream;

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::backend::Connection;
use upstream::{Got, Server, ask, ask_over, file, index, index_at, page, redirect, said};

const WHEEL: &str = "foo-1.0-py3-none-any.whl";
const SDIST: &str = "foo-1.0.tar.gz";
/// `me:s3cret` as a login is sent.
const LOGIN: &str = "Basic bWU6czNjcmV0";

/// Builds "wheels", and counts them.
#[derive(Debug, Default)]
struct Builder {
    count: AtomicUsize,
    last: Mutex<Option<Sdist>>,
    folder: Option<tempfile::TempDir>,
}

impl Builder {
    fn new() -> Arc<Builder> {
        Arc::new(Builder { folder: Some(tempfile::tempdir().expect("a folder")), ..Builder::default() })
    }
}

impl Wheels for Builder {
    fn wheel(&self, sdist: &Sdist) -> Result<WheelFile, String> {
        self.count.fetch_add(1, Ordering::SeqCst);
        *self.last.lock().expect("no panic") = Some(sdist.clone());
        std::thread::sleep(std::time::Duration::from_millis(30));
        let folder = self.folder.as_ref().ok_or("no compiler here")?;
        let path = folder.path().join("wheel");
        fs_err::write(&path, "the built wheel").map_err(|error| error.to_string())?;
        Ok(WheelFile { path, sha256: sha256(b"the built wheel"), metadata: b"Name: foo".to_vec() })
    }
}

fn door(index: &Arc<Index>) -> Door {
    Door::new(Arc::clone(index), None, BTreeMap::new(), Arc::new(Builder::default()))
}

/// A server with one page, and variables that name it as an index with a login.
fn served(project: &str, files: &[String]) -> (Server, Vec<(&'static str, String)>) {
    let server = Server::start();
    server.says(&format!("/simple/{project}/"), page(files));
    let variables = vec![("UV_DEFAULT_INDEX", format!("http://me:s3cret@{}/simple", server.address))];
    (server, variables)
}

/// The address of a file of a page.
fn address(got: &Got, number: usize) -> String {
    got.json()["files"][number]["url"].as_str().expect("an address").to_owned()
}

#[test]
fn files_come_through_the_door_and_the_login_stays_outside() {
    let (server, variables) =
        served("foo", &[file(WHEEL, "/f/foo.whl", b"content", r#", "core-metadata": true"#)]);
    server.says("/f/foo.whl", said(200, "x/y", "content"));
    server.says("/f/foo.whl.metadata", said(200, "x/y", "Name: foo"));
    let (folder, index) = index(&variables);
    let door = door(&index);
    let got = ask(&door, "/0/simple/foo/");
    let (wheel, metadata) =
        (ask(&door, &address(&got, 0)), ask(&door, &format!("{}.metadata", address(&got, 0))));
    assert_eq!((got.status, wheel.status, metadata.status), (200, 200, 200));
    assert_eq!(
        (wheel.body.as_slice(), metadata.body.as_slice()),
        (b"content".as_slice(), b"Name: foo".as_slice())
    );
    assert!(server.asked().iter().all(|(_, login)| login.as_deref() == Some(LOGIN)), "{:?}", server.asked());
    assert_eq!(ask(&door, "/0/simple/bar/").status, 404);
    for got in [got, wheel, metadata, ask(&door, "/0/simple/bar/")] {
        let all = format!("{}{}", got.head, String::from_utf8_lossy(&got.body));
        for secret in ["s3cret", "bWU6", &server.address.port().to_string(), "Upstream"] {
            assert!(!all.contains(secret), "{secret}: {all}");
        }
    }
    let asked = door.asked();
    assert_eq!(asked.unknown().into_iter().collect::<Vec<_>>(), ["bar"]);
    let served: Vec<_> =
        asked.files.iter().map(|file| (file.filename.as_str(), file.sha256.clone())).collect();
    assert_eq!(served, [(WHEEL, sha256(b"content"))]);

    // A later run takes the file from the store, and asks for the page alone.
    let later = index_at(&variables, folder.path());
    let before = server.asked().len();
    let door = self::door(&later);
    let wheel = ask(&door, &address(&ask(&door, "/0/simple/foo/"), 0));
    assert_eq!((wheel.body.as_slice(), server.asked().len()), (b"content".as_slice(), before + 1));
}

#[test]
fn a_login_follows_no_redirect_to_another_server() {
    let (server, variables) = served("foo", &[file(WHEEL, "/f/foo.whl", b"content", "")]);
    let elsewhere = Server::start();
    server.says("/f/foo.whl", redirect(format!("http://me:s3cret@{}/moved.whl", elsewhere.address)));
    elsewhere.says("/moved.whl", said(200, "x/y", "content"));
    let (_folder, index) = index(&variables);
    let door = door(&index);
    let wheel = ask(&door, &address(&ask(&door, "/0/simple/foo/"), 0));
    assert_eq!(wheel.body, b"content");
    assert_eq!(elsewhere.asked(), [("/moved.whl".to_owned(), None)]);
}

#[test]
fn only_listed_files_of_listed_projects_can_be_had() {
    let (server, variables) =
        served("foo", &[file(WHEEL, "/f/foo.whl", b"content", ""), file(SDIST, "/f/foo.tgz", b"source", "")]);
    let (_folder, index) = index(&variables);
    let door = door(&index);
    let got = ask(&door, "/0/simple/foo/");
    let before = server.asked().len();
    let listed = address(&got, 0);
    for path in [
        listed.replace(WHEEL, "foo-2.0-py3-none-any.whl"),
        listed.replace(&sha256(b"content"), &"0".repeat(64)),
        // Listed for its hash alone.
        address(&got, 1),
        "/0/files/foo/..%2f..%2fetc/passwd".to_owned(),
        "/1/simple/foo/".to_owned(),
        "/-1/simple/foo/".to_owned(),
        "/0/simple/..%2fadmin/".to_owned(),
        "/0/simple/Foo/".to_owned(),
        "/direct/x/y".to_owned(),
        "//".to_owned(),
        "*".to_owned(),
        format!("http://{}/f/foo.whl", server.address),
    ] {
        assert_eq!(ask(&door, &path).status, 404, "{path}");
    }
    assert_eq!(server.asked().len(), before);
}

#[test]
fn a_file_with_another_hash_is_not_handed_out() {
    let (server, variables) = served("foo", &[file(WHEEL, "/f/foo.whl", b"content", "")]);
    server.says("/f/foo.whl", said(200, "x/y", "something else"));
    let (folder, index) = index(&variables);
    let door = door(&index);
    let got = ask(&door, &address(&ask(&door, "/0/simple/foo/"), 0));
    assert_eq!(got.status, 502);
    let trouble = door.asked().trouble;
    let only = trouble.first().expect("trouble");
    assert!(only.starts_with(&format!("index 1 (UV_DEFAULT_INDEX), {WHEEL}: its hash is")), "{only}");
    assert!(door.asked().files.is_empty());
    assert_eq!(fs_err::read_dir(folder.path()).expect("the store").count(), 0);
}

#[test]
fn what_an_index_refuses_or_cannot_do_is_told_apart() {
    let (server, variables) = served("foo", &[]);
    server.says("/simple/locked/", said(401, "text/plain", "who are you"));
    server.says("/simple/broken/", said(200, "text/plain", "no page"));
    server.says("/simple/loop/", redirect("/simple/loop/".to_owned()));
    server.says("/simple/away/", redirect("file:///etc/passwd".to_owned()));
    let (_folder, index) = index(&variables);
    let door = door(&index);
    let statuses = ["locked", "broken", "loop", "away", "none"]
        .map(|name| ask(&door, &format!("/0/simple/{name}/")).status);
    assert_eq!(statuses, [403, 502, 502, 502, 404]);
    let asked = door.asked();
    assert_eq!((asked.trouble.len(), asked.unknown().len(), asked.is_troubled()), (4, 1, true));
    assert!(
        asked.trouble.iter().all(|text| !text.contains("127.0.0.1") && !text.contains("s3cret")),
        "{asked:?}"
    );
}

#[test]
fn each_index_is_asked_once_and_named_by_its_variable() {
    let server = Server::start();
    let at = |path: &str| format!("http://{}/{path}", server.address);
    server.says("/good/pytest/", page(&[]));
    server.says("/closed/pytest/", said(401, "text/plain", "s3cret"));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let answers = |more: String, default: String| {
        let variables = [("UV_INDEX", more), ("UV_DEFAULT_INDEX", default)];
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Index::probe(Settings::of(&variables).expect("valid settings")).expect("answers")
    };
    let first = answers(format!("mine={} {}", at("closed"), at("other")), at("good"));
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["index 1 (mine, UV_INDEX)", "index 2 (UV_INDEX)", "index 3 (UV_DEFAULT_INDEX)"]);
    assert_eq!(first[0].1, Err("the server wants another login (status 401)".to_owned()));
    assert_eq!((&first[1].1, &first[2].1), (&Ok("answers"), &Ok("answers")));
    let second = answers(format!("http://{gone}/simple"), at("other"));
    assert_eq!(second[0].1, Ok("does not answer now: what the cache has can be installed"));
    assert!(second[1].1.as_ref().is_err_and(|words| words.contains("simple index")), "{second:?}");
}

#[test]
fn trouble_that_passes_is_waited_for() {
    let (server, variables) = served("foo", &[]);
    let page = page(&[file(WHEEL, "/f", b"", "")]);
    server.says("/simple/foo/", said(503, "text/plain", "later"));
    let (_folder, index) = index(&variables);
    let door = door(&index);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.asked().is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            server.says("/simple/foo/", page);
        });
        assert_eq!(ask(&door, "/0/simple/foo/").status, 200);
    });
    assert!(!door.asked().is_troubled());
}

#[test]
fn projects_of_the_tree_are_asked_of_nobody() {
    let (server, variables) = served("foo", &[file(WHEEL, "/f", b"", "")]);
    let (_folder, index) = index(&variables);
    let refused = BTreeMap::from([("foo".to_owned(), "pyproject.toml".to_owned())]);
    let door = Door::new(index, None, refused.clone(), Arc::new(Builder::default()));
    assert_eq!(ask(&door, "/0/simple/foo/").status, 404);
    assert_eq!((door.asked().refused, server.asked().len()), (refused, 0));
    assert!(door.asked().unknown().is_empty());
}

#[test]
fn files_without_an_upload_time_are_named() {
    let dated = |moment: &str| format!(r#", "upload-time": "{moment}""#);
    let (server, mut variables) = served(
        "foo",
        &[
            file(WHEEL, "/f/1", b"one", &dated("2024-01-01T00:00:00Z")),
            file("foo-2.0-py3-none-any.whl", "/f/2", b"two", &dated("2025-01-01T00:00:00Z")),
        ],
    );
    server.says(
        "/html/foo/",
        said(200, "text/html", "<a href='/f/3#x'>x</a><a href='foo-3.0-py3-none-any.whl'>y</a>"),
    );
    server.says("/html/foo/foo-3.0-py3-none-any.whl", said(200, "x/y", "three"));
    variables.push(("UV_INDEX", format!("corp=http://{}/html", server.address)));
    let (_folder, index) = index(&variables);
    let moment = Some("2024-06-01T00:00:00Z".parse().expect("a moment"));
    let door = Door::new(index, moment, BTreeMap::new(), Arc::new(Builder::default()));
    let (html, json) = (ask(&door, "/0/simple/foo/"), ask(&door, "/1/simple/foo/"));
    let names = |got: &Got| -> Vec<String> {
        let files = got.json();
        let files = files["files"].as_array().expect("files").iter();
        files.map(|file| file["filename"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!((names(&html), names(&json)), (vec!["foo-3.0-py3-none-any.whl".into()], vec![WHEEL.into()]));
    assert_eq!(ask(&door, &address(&html, 0)).body, b"three");
    let asked = door.asked();
    assert_eq!(asked.undated.into_iter().collect::<Vec<_>>(), [("foo".to_owned(), 0)]);
    let served: Vec<_> = asked.files.iter().map(|file| (file.index, file.is_dated)).collect();
    assert_eq!(served, [(0, false)]);
    // The second index has no login, though it is on the same server.
    assert!(server.asked().iter().all(|(path, login)| login.is_some() == path.starts_with("/simple")));
}

fn archive(metadata: &str) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(metadata.len() as u64);
    builder.append_data(&mut header, "foo-1.0/PKG-INFO", metadata.as_bytes()).expect("an entry");
    builder.into_inner().and_then(flate2::write::GzEncoder::finish).expect("an archive")
}

/// A server with one source distribution, and a door to it.
fn with_sdist(metadata: &str, wheels: Arc<dyn Wheels>) -> (tempfile::TempDir, Door, Vec<u8>) {
    let content = archive(metadata);
    let (server, variables) = served("foo", &[file(SDIST, "/f/foo.tgz", &content, "")]);
    server.says("/f/foo.tgz", said(200, "x/y", content.clone()));
    let (folder, index) = index(&variables);
    (folder, Door::new(index, None, BTreeMap::new(), wheels), content)
}

#[test]
fn a_source_distribution_is_built_once_and_looks_like_a_wheel() {
    let builder = Builder::new();
    let (_folder, door, content) = with_sdist("Metadata-Version: 2.1\n", builder.clone());
    let got = ask(&door, "/0/simple/foo/");
    assert_eq!(got.json()["files"][0]["filename"], "foo-1.0-py30-none-any.whl");
    assert_eq!(got.json()["files"][0]["hashes"]["sha256"], sha256(&content));
    let url = address(&got, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(ask(&door, &url).body, b"the built wheel"));
            scope.spawn(|| assert_eq!(ask(&door, &format!("{url}.metadata")).body, b"Name: foo"));
        }
    });
    assert_eq!(builder.count.load(Ordering::SeqCst), 1);
    let sdist = builder.last.lock().expect("no panic").clone().expect("a source distribution");
    assert_eq!((sdist.name.as_str(), sdist.version.as_str(), sdist.filename.as_str()), ("foo", "1.0", SDIST));
    assert_eq!(sdist.building, ["foo==1.0"]);
    assert_eq!(fs_err::read(&sdist.path).expect("its content"), content);
    let built = door.asked().built.into_iter().next().expect("a wheel");
    assert_eq!((built.sdist_sha256, built.wheel_sha256), (sha256(&content), sha256(b"the built wheel")));
}

#[test]
fn settled_metadata_needs_no_build() {
    let builder = Builder::new();
    let settled = "Metadata-Version: 2.2\nName: foo\nRequires-Dist: bar\n";
    let (_folder, door, _) = with_sdist(settled, builder.clone());
    let url = address(&ask(&door, "/0/simple/foo/"), 0);
    assert_eq!(ask(&door, &format!("{url}.metadata")).body, settled.as_bytes());
    assert_eq!(builder.count.load(Ordering::SeqCst), 0);
}

#[test]
fn metadata_that_an_index_has_none_of_comes_out_of_the_wheel() {
    let wheel = inside::tests::archive(&[("foo-1.0.dist-info/METADATA", b"Name: inside")], true);
    for with_parts in [false, true] {
        let (server, variables) =
            served("foo", &[file(WHEEL, "/f/foo.whl", &wheel, r#", "core-metadata": true"#)]);
        let mut whole = said(200, "x/y", wheel.clone());
        if with_parts {
            whole.status = 206;
            whole.headers.push(("Content-Range", format!("bytes 0-{}/{}", wheel.len() - 1, wheel.len())));
        }
        server.says("/f/foo.whl", whole);
        let (folder, index) = index(&variables);
        let door = door(&index);
        let url = address(&ask(&door, "/0/simple/foo/"), 0);
        assert_eq!(ask(&door, &format!("{url}.metadata")).body, b"Name: inside");
        assert_eq!(fs_err::read_dir(folder.path()).expect("the store").count(), usize::from(!with_parts));
        assert!(!door.asked().is_troubled());
    }
}

#[test]
fn the_metadata_of_a_wheel_for_others_is_taken_for_that_of_the_source() {
    let (server, variables) = served(
        "foo",
        &[
            file("foo-1.0-cp312-cp312-win_amd64.whl", "/f/foo.whl", b"w", r#", "core-metadata": {}"#),
            file(SDIST, "/f/foo.tgz", b"source", ""),
        ],
    );
    server.says("/f/foo.whl.metadata", said(200, "x/y", "Name: near"));
    let (_folder, index) = index(&variables);
    let door = door(&index);
    let url = address(&ask(&door, "/0/simple/foo/"), 1);
    assert_eq!(ask(&door, &format!("{url}.metadata")).body, b"Name: near");
}

#[test]
fn a_build_that_fails_is_told_once_and_remembered() {
    let builder = Arc::new(Builder::default());
    let (_folder, door, _) = with_sdist("Metadata-Version: 2.1\n", builder.clone());
    let url = address(&ask(&door, "/0/simple/foo/"), 0);
    let got = [ask(&door, &url), ask(&door, &format!("{url}.metadata"))];
    assert!(
        got.iter().all(|got| got.status == 422 && !String::from_utf8_lossy(&got.body).contains("compiler"))
    );
    assert_eq!(builder.count.load(Ordering::SeqCst), 1);
    assert_eq!(door.asked().failed, BTreeMap::from([("foo==1.0".into(), "no compiler here".into())]));
}

#[test]
fn what_needs_itself_to_be_built_is_an_error() {
    let builder = Builder::new();
    let chains: [(&[&str], &str); 2] =
        [(&["foo==1.0", "bar==2"], "it needs itself to be built"), (&["a==1"; 8], "too much is needed")];
    for (chain, words) in chains {
        let (_folder, door, _) = with_sdist("Metadata-Version: 2.1\n", builder.clone());
        let door = door.within(chain.iter().map(|name| (*name).to_owned()).collect());
        let url = address(&ask(&door, "/0/simple/foo/"), 0);
        assert_eq!(ask(&door, &url).status, 422);
        let reason = door.asked().failed["foo==1.0"].clone();
        assert!(reason.starts_with(words) && reason.ends_with("needs foo==1.0"), "{reason}");
    }
    assert_eq!(builder.count.load(Ordering::SeqCst), 0);
}

#[test]
fn the_configuration_names_the_door_alone() {
    let (_folder, index) = index(&[
        ("UV_INDEX", "corp=https://me:s3cret@corp.example/simple".to_owned()),
        ("UV_INDEX_STRATEGY", "unsafe-best-match".to_owned()),
    ]);
    let text = door(&index).configuration();
    let file: toml::Table = text.parse().expect("uv reads TOML");
    assert_eq!(file["index-strategy"].as_str(), Some("unsafe-best-match"));
    let indexes = file["index"].as_array().expect("a list");
    let shown: Vec<_> = indexes
        .iter()
        .map(|one| {
            (one.get("name").and_then(toml::Value::as_str), one["url"].as_str(), one["default"].as_bool())
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Some("corp"), Some("http://127.0.0.1:3141/0/simple/"), Some(false)),
            (None, Some("http://127.0.0.1:3141/1/simple/"), Some(true))
        ]
    );
    assert!(!text.contains("s3cret") && !text.contains("example"));
}

#[test]
fn files_of_the_driver_are_served_over_tcp_too() {
    let (folder, index) = index(&[]);
    let door = door(&index);
    let path = folder.path().join("own.whl");
    fs_err::write(&path, "own").expect("a file");
    let url = door.add_file(path, "own-1-py3-none-any.whl", "abc");
    let path = url.strip_prefix("http://127.0.0.1:3141").expect("the job's loopback");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (there, _) = listener.accept().expect("a connection");
    let got = ask_over(&door, here, Connection::Tcp(there), path);
    assert_eq!((got.status, got.body.as_slice()), (200, b"own".as_slice()));
    assert_eq!(ask(&door, "/direct/abc/other.whl").status, 404);
}

#[test]
fn a_direct_address_is_downloaded_and_checked() {
    let (server, mut variables) = served("foo", &[]);
    variables.push(("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1".to_owned()));
    let elsewhere = Server::start();
    for server in [&server, &elsewhere] {
        server.says("/d/foo%2B1.zip", said(200, "x/y", "direct"));
        server.says("/d/link.zip", redirect("http://169.254.169.254/latest/link.zip".to_owned()));
    }
    let (_folder, index) = index(&variables);
    let at = |server: &Server, rest: &str| format!("http://other:pw@{}/d/{rest}", server.address);
    let fetched = index.fetch_direct(&at(&server, "foo%2B1.zip")).expect("a file");
    assert_eq!((fetched.filename.as_str(), fetched.sha256), ("foo+1.zip", sha256(b"direct")));
    assert_eq!(fs_err::read(fetched.path).expect("its content"), b"direct");
    index.fetch_direct(&at(&elsewhere, "foo%2B1.zip")).expect("a file");
    assert_eq!(server.asked()[0].1, None, "an address that a repository names gets no login");
    assert_eq!(elsewhere.asked()[0].1, None);
    let wrong = format!("foo%2B1.zip#sha256={}", "0".repeat(64));
    for (rest, words) in
        [(wrong.as_str(), "its hash is"), ("link.zip", "local to the link"), ("none.zip", "no such")]
    {
        let error = index.fetch_direct(&at(&elsewhere, rest)).expect_err("no file").to_string();
        assert!(error.contains(words) && !error.contains("other:pw"), "{error}");
    }
    for (name, digits) in [
        ("sha256", sha256(b"direct")),
        ("SHA256", sha256(b"direct").to_uppercase()),
        ("sha512", hex::encode(sha2::Sha512::digest(b"direct"))),
        ("sha384", hex::encode(sha2::Sha384::digest(b"direct"))),
        ("sha224", hex::encode(sha2::Sha224::digest(b"direct"))),
        ("sha1", hex::encode(sha1::Sha1::digest(b"direct"))),
        ("md5", hex::encode(md5::Md5::digest(b"direct"))),
    ] {
        let address = |digits: &str| at(&elsewhere, &format!("foo%2B1.zip#egg=foo&{name}={digits}"));
        index.fetch_direct(&address(&digits)).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Another content, with both in the message, and what is not a hash.
        let other = "0".repeat(digits.len());
        let error = index.fetch_direct(&address(&other)).expect_err("another hash").to_string();
        assert!(error.contains(&other) && error.contains(&digits.to_lowercase()), "{name}: {error}");
        for broken in ["", "zz", &digits[1..]] {
            let error = index.fetch_direct(&address(broken)).expect_err("not a hash").to_string();
            assert!(error.contains("is not one"), "{name}: {error}");
        }
    }
    let either = format!("foo%2B1.zip#sha256={}&sha256={}", "0".repeat(64), sha256(b"direct"));
    assert!(index.fetch_direct(&at(&elsewhere, &either)).is_ok(), "one of several is enough");
    for address in
        ["file:///etc/passwd", "http://169.254.169.254/x.zip", "ftp://host/x.zip", "nonsense", "http://h/"]
    {
        assert!(index.fetch_direct(address).is_err(), "{address}");
    }
}

#[test]
fn what_is_pinned_is_taken_with_its_hash_alone_and_kept() {
    let (server, variables) = served("foo", &[]);
    server.says("/c/a-1.crate", said(200, "x/y", "crate"));
    server.says("/c/b-1.crate", said(200, "x/y", "crate"));
    let (folder, index) = index(&variables);
    let at = |name: &str| format!("http://{}/c/{name}", server.address);
    let hash = sha256(b"crate");
    let path = index.fetch_pinned(&at("a-1.crate"), &hash, 100).expect("a file").expect("it is there");
    assert_eq!(fs_err::read(path).expect("its content"), b"crate");
    assert_eq!(server.asked(), [("/c/a-1.crate".to_owned(), None)], "without a login");
    let error = index.fetch_pinned(&at("b-1.crate"), &"0".repeat(64), 100).expect_err("another hash");
    assert!(error.contains(&format!("its hash is {hash}, but it must be 000")), "{error}");
    assert_eq!(index.fetch_pinned(&at("c-1.crate"), &"0".repeat(64), 100), Ok(None));
    let later = index_at(&variables, folder.path());
    let before = server.asked().len();
    assert!(later.fetch_pinned(&at("a-1.crate"), &hash, 100).expect("a file").is_some());
    assert_eq!(server.asked().len(), before, "it is asked for once");
    let (_folder, index) = self::index(&variables);
    assert!(index.fetch_pinned(&at("a-1.crate"), &hash, 2).expect_err("too large").contains("more than"));
}

#[test]
fn a_direct_address_leads_out_of_the_users_network() {
    let (server, variables) = served("foo", &[]);
    let elsewhere = Server::start();
    for server in [&server, &elsewhere] {
        server.says("/foo.zip", said(200, "x/y", "direct"));
    }
    server.says("/link.zip", redirect(format!("http://{}/foo.zip", elsewhere.address)));
    let (_folder, index) = index(&variables);
    assert!(index.fetch_direct(&format!("http://{}/foo.zip", server.address)).is_ok(), "where an index is");
    for address in
        [format!("http://{}/foo.zip", elsewhere.address), format!("http://{}/link.zip", server.address)]
    {
        let error = index.fetch_direct(&address).expect_err("refused").to_string();
        assert!(error.contains("private network") && error.contains(&address), "{error}");
    }
    assert!(elsewhere.asked().is_empty());
}

const REFERENCES: &str = "/info/refs?service=git-upload-pack";

#[test]
fn git_is_sent_to_public_addresses_alone() {
    let (server, mut variables) = served("foo", &[]);
    let elsewhere = Server::start();
    for server in [&server, &elsewhere] {
        server.says(&format!("/a.git{REFERENCES}"), said(200, "x/y", "0000"));
    }
    let (_folder, index) = index(&variables);
    let port = elsewhere.address.port();
    for address in [
        format!("http://{}/a.git", elsewhere.address),
        format!("https://{}/a.git", elsewhere.address),
        format!("https://localhost:{port}/a.git"),
        format!("https://2130706433:{port}/a.git"),
        format!("https://0x7f.1:{port}/a.git"),
        format!("https://[::ffff:127.0.0.1]:{port}/a.git"),
        "https://10.1.2.3/a.git".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "http://public.example/a.git".to_owned(),
        "http://1.1.1.1/a.git".to_owned(),
        "git://1.1.1.1/a.git".to_owned(),
        "ssh://git@1.1.1.1/a.git".to_owned(),
        "file:///srv/a.git".to_owned(),
        "git@host:a".to_owned(),
        "/srv/a.git".to_owned(),
    ] {
        let error = index.check_repository(&address).expect_err("refused");
        assert!(error.hint().is_none_or(|hint| hint.contains("docs/private.md")), "{address}: {error}");
    }
    assert!(elsewhere.asked().is_empty(), "it was not even connected to");
    let found = index.check_repository(&format!("http://me:pw@{}/a.git?token=x#y", server.address));
    assert_eq!(found.expect("where an index is"), format!("http://{}/a.git", server.address));
    assert_eq!(server.asked(), [(format!("/a.git{REFERENCES}"), None)], "no login, not even the index's");

    // Who lets repositories name the own network lets them name it without encryption.
    variables.push(("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1".to_owned()));
    let (_folder, index) = self::index(&variables);
    assert!(index.check_repository(&format!("http://{}/a.git", elsewhere.address)).is_ok());
    assert!(index.check_repository("http://1.1.1.1/a.git").is_err());
}

#[test]
fn redirects_of_a_repository_are_looked_at_and_carry_no_login() {
    let (server, mut variables) = served("foo", &[]);
    let elsewhere = Server::start();
    elsewhere.says(&format!("/b.git{REFERENCES}"), said(200, "x/y", "0000"));
    let to = |path: &str| redirect(format!("http://me:pw@{}{path}", elsewhere.address));
    server.says(&format!("/a.git{REFERENCES}"), to(&format!("/b.git{REFERENCES}")));
    server.says(&format!("/page.git{REFERENCES}"), to("/login?next=x"));
    server.says(&format!("/file.git{REFERENCES}"), redirect("file:///etc/passwd".to_owned()));
    server.says(&format!("/moved.git{REFERENCES}"), redirect(format!("/a.git{REFERENCES}")));
    server.says(&format!("/locked.git{REFERENCES}"), said(401, "x/y", "who are you"));
    let at = |name: &str| format!("http://{}/{name}.git", server.address);
    let (_folder, private) = index(&variables);
    let error = private.check_repository(&at("a")).expect_err("into the user's network").to_string();
    assert!(error.contains("private network") && elsewhere.asked().is_empty(), "{error}");

    variables.push(("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1".to_owned()));
    let (_folder, index) = index(&variables);
    for name in ["a", "moved"] {
        let found = index.check_repository(&at(name)).expect("leads on");
        assert_eq!(found, format!("http://{}/b.git", elsewhere.address));
    }
    for (name, words) in [
        ("page", "no such file"),
        ("file", "no address"),
        ("locked", "wants another login (status 401)"),
        ("none", "nothing public"),
    ] {
        let error = index.check_repository(&at(name)).expect_err("nothing for git").to_string();
        assert!(error.contains(words) || (name == "page" && error.contains("nothing public")), "{error}");
    }
    let all = [server.asked(), elsewhere.asked()].concat();
    assert!(all.len() > 5 && all.iter().all(|(_, login)| login.is_none()), "{all:?}");
}

#[test]
fn a_file_of_a_private_index_is_not_given_to_whoever_knows_its_hash() {
    let (server, mut variables) = served("foo", &[file(WHEEL, "/f/foo.whl", b"private", "")]);
    server.says("/f/foo.whl", said(200, "x/y", "private"));
    // Another index lists the same file, and cannot give it.
    let other = Server::start();
    other.says("/simple/foo/", page(&[file(WHEEL, "/f/foo.whl", b"private", "")]));
    variables.push(("UV_INDEX", format!("http://{}/simple", other.address)));
    variables.push(("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1".to_owned()));
    let (folder, first) = index(&variables);
    let hash = sha256(b"private");
    let take = |index: &Arc<Index>, number: usize| {
        let door = door(index);
        let page = ask(&door, &format!("/{number}/simple/foo/"));
        ask(&door, &address(&page, 0)).status
    };
    assert_eq!(take(&first, 1), 200);
    for index in [&first, &index_at(&variables, folder.path())] {
        let crates = index.fetch_pinned(&format!("http://{}/x.crate", other.address), &hash, 100);
        assert_eq!(crates, Ok(None), "a crate of that hash");
        let direct = format!("http://{}/x.zip#sha256={hash}", other.address);
        assert!(index.fetch_direct(&direct).is_err(), "an address with that hash");
        assert_ne!(take(index, 0), 200, "an index that lists that hash");
        assert_eq!(take(index, 1), 200, "its own index");
    }
    let files = server.asked().into_iter().filter(|(path, _)| path == "/f/foo.whl").count();
    assert_eq!(files, 1, "which is asked for it once");
}

#[test]
fn what_is_built_with_files_of_other_indexes_has_another_key() {
    let key = |variables: &[(&'static str, String)]| index(variables).1.key();
    let of = |name: &'static str, address: &str| (name, address.to_owned());
    let (one, two) = ("https://one.example/simple", "https://two.example/simple");
    let public = key(&[of("UV_DEFAULT_INDEX", one)]);
    assert_eq!(public, key(&[of("UV_DEFAULT_INDEX", one)]));
    let others = [
        vec![of("UV_DEFAULT_INDEX", two)],
        vec![of("UV_DEFAULT_INDEX", one), of("UV_INDEX", two)],
        vec![of("UV_DEFAULT_INDEX", two), of("UV_INDEX", one)],
        vec![of("UV_DEFAULT_INDEX", "https://me:s3cret@one.example/simple")],
        vec![of("UV_DEFAULT_INDEX", one), of("UV_INDEX", two), of("UV_INDEX_STRATEGY", "unsafe-best-match")],
    ];
    let mut keys: Vec<String> = others.iter().map(|variables| key(variables)).collect();
    keys.push(public);
    let number = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), number);
    assert!(keys.iter().all(|key| !key.contains("s3cret")));
}
