//! Who gets a login of the user's: the server that the configuration names, and nobody else. Git is let through to
//! addresses here that are refused before ([`Everything`]), so that it is git itself which is watched.

use std::cell::RefCell;

use gistmill::config::SourceSpec;
use gistmill::error::{Error, Fault, Result};
use gistmill::source::{IndexTool, resolve_reference};

use super::git::modules;
use super::sample::{
    Desk, Everything, FILE, HELPER_LOGIN, SUBMODULE, Sample, files, git_spec, helper_calls, holds,
    keep_login, path_spec,
};
use super::server::Server;

/// A private repository `lib.git`, for whose server the user keeps a login.
struct Private {
    server: Server,
    commit: String,
}

impl Private {
    fn start(desk: &Desk) -> Private {
        let sample = Sample::bare(&desk.path("private/lib.git"));
        let commit = sample.commit(&[(FILE, b"secret.py", b"secret = 1")]);
        let server = Server::git(&desk.path("private"), Some(HELPER_LOGIN));
        keep_login(server.port);
        Private { server, commit }
    }

    /// The same place in every spelling.
    fn addresses(&self) -> [String; 4] {
        let port = self.server.port;
        [
            self.server.url("lib.git"),
            self.server.named("lib.git"),
            self.server.url_with("me:pw", "lib.git"),
            format!("HTTP://someone@LOCALHOST:{port}/lib.git?token=x"),
        ]
    }

    /// It was asked for the repository, and told nothing of the user; nor was the helper asked.
    #[track_caller]
    fn got_no_login(&self) {
        let asked = self.server.asked();
        assert!(asked.iter().all(|(_, login)| login.is_none()), "{asked:?}");
        self.helper_was_not_asked();
    }

    #[track_caller]
    fn helper_was_not_asked(&self) {
        let calls = helper_calls();
        let own = |call: &Option<String>| {
            call.as_deref().is_none_or(|host| host.ends_with(&format!(":{}", self.server.port)))
        };
        assert!(!calls.iter().any(own), "{calls:?}");
    }
}

/// The commit of a bare repository with one submodule.
fn with_submodule(sample: &Sample, url: &str, commit: &str) -> String {
    let modules = modules("lib", url);
    sample.commit(&[(FILE, b".gitmodules", modules.as_bytes()), (SUBMODULE, b"lib", commit.as_bytes())])
}

#[track_caller]
fn fails(desk: &Desk, source: SourceSpec) -> Error {
    let error = desk.pin_with(source, &Everything).unwrap_err();
    assert_eq!(error.fault(), Fault::Repository, "{error}");
    assert!(!holds(desk.cache.root(), "secret = 1"), "{error}");
    error
}

#[test]
fn a_submodule_gets_no_login() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    for (number, address) in private.addresses().iter().enumerate() {
        let path = desk.path(&format!("outer{number}"));
        let outer = Sample::with_work_tree(&path);
        let commit = with_submodule(&outer, address, &private.commit);
        outer.check_out();
        fails(&desk, git_spec(&outer.url(), &commit));
        fails(&desk, path_spec(&path, Some(&commit), false));
    }
    assert!(private.server.connections() >= 8);
    private.got_no_login();
}

#[test]
fn a_submodule_of_a_submodule_gets_no_login() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    let middle = Sample::bare(&desk.path("public/middle.git"));
    let public = Server::git(&desk.path("public"), None);
    let inner = with_submodule(&middle, &private.server.named("lib.git"), &private.commit);
    let outer = Sample::bare(&desk.path("public/outer.git"));
    let commit = with_submodule(&outer, "../middle.git", &inner);
    fails(&desk, git_spec(&public.url("outer.git"), &commit));
    assert!(private.server.connections() > 0);
    private.got_no_login();
}

#[test]
fn a_submodule_beside_a_private_repository_gets_nothing_of_its_login() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    let sample = Sample::bare(&desk.path("private/demo.git"));
    let commit = with_submodule(&sample, "../lib.git", &private.commit);
    let port = private.server.port;
    for url in [
        format!("http://{HELPER_LOGIN}@localhost:{port}/demo.git"),
        format!("http://localhost:{port}/demo.git"),
        format!("http://{HELPER_LOGIN}@127.0.0.1:{port}/demo.git?access_token=t"),
    ] {
        fails(&desk, git_spec(&url, &commit));
    }
    let asked = private.server.asked();
    let of = |name: &str| asked.iter().filter(|(path, _)| path.contains(name)).collect::<Vec<_>>();
    assert!(
        of("demo").iter().any(|(_, login)| login.is_some()),
        "the configured one keeps its login: {asked:?}"
    );
    assert!(!of("lib").is_empty() && of("lib").iter().all(|(_, login)| login.is_none()), "{asked:?}");
}

#[test]
fn what_a_dataset_names_gets_no_login() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    for address in private.addresses() {
        let SourceSpec::Git { url, commit, submodules, subdirectory, .. } =
            git_spec(&address, &private.commit)
        else {
            panic!("is git")
        };
        fails(&desk, SourceSpec::Git { url, commit, submodules, subdirectory, anonymous: true });
    }
    assert!(private.server.connections() >= 4);
    private.got_no_login();

    // What the user fetched is out of reach of a dataset that names it.
    let url = format!("http://{HELPER_LOGIN}@127.0.0.1:{}/lib.git", private.server.port);
    let pinned = desk.pin(git_spec(&url, &private.commit)).unwrap();
    assert_eq!(files(&pinned.tree), ["secret.py"]);
    let SourceSpec::Git { url, commit, .. } = git_spec(&private.server.url("lib.git"), &private.commit)
    else {
        panic!("is git")
    };
    let named = SourceSpec::Git { url, commit, submodules: true, subdirectory: None, anonymous: true };
    assert!(desk.pin_with(named, &Everything).is_err());
}

#[test]
fn a_redirect_takes_no_login_along() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    for to in [private.server.named(""), private.server.url("")] {
        let moved = Server::redirecting(to);
        let port = moved.port;
        for from in [moved.named("lib.git"), moved.url("lib.git")] {
            let outer = Sample::bare(&desk.path(&format!("{}.git", from.replace(['/', ':'], "_"))));
            let commit = with_submodule(&outer, &from, &private.commit);
            fails(&desk, git_spec(&outer.url(), &commit));
        }
        // What the user names has a login, for its own server.
        for host in ["localhost", "127.0.0.1"] {
            let url = format!("http://{HELPER_LOGIN}@{host}:{port}/lib.git");
            fails(&desk, git_spec(&url, &private.commit));
            assert!(resolve_reference(&url, "main").is_err());
            fails(&desk, git_spec(&format!("http://{host}:{port}/lib.git"), &private.commit));
        }
        assert!(moved.connections() > 0);
    }
    private.got_no_login();
}

#[test]
fn a_helper_is_never_asked_without_a_host() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    for url in [private.server.url("lib.git"), private.server.url_with("me", "lib.git")] {
        let error = desk.pin(git_spec(&url, &private.commit)).unwrap_err();
        assert!(error.hint().unwrap().contains("credential helper"), "{error:?}");
    }
    private.helper_was_not_asked();
    desk.pin(git_spec(&private.server.named("lib.git"), &private.commit)).unwrap();
    assert!(helper_calls().contains(&Some(format!("localhost:{}", private.server.port))));
}

/// Refuses every address, and remembers it.
#[derive(Default)]
struct Refusing(RefCell<Vec<String>>);

impl IndexTool for Refusing {
    fn lock_entry(&self, requirement: &str) -> Result<String> {
        panic!("asked the index for {requirement}");
    }

    fn public_address(&self, address: &str) -> Result<String> {
        self.0.borrow_mut().push(address.to_owned());
        Err(Error::repository("not public"))
    }
}

#[test]
fn nothing_is_asked_before_the_address_was_looked_over() {
    let desk = Desk::new();
    let private = Private::start(&desk);
    let tool = Refusing::default();
    let outer = Sample::bare(&desk.path("outer.git"));
    let refused = |source: SourceSpec| {
        let error = desk.pin_with(source, &tool).unwrap_err();
        assert!(error.to_string().contains("not public"), "{error}");
        tool.0.borrow_mut().pop().unwrap()
    };
    for (written, asked) in [
        (private.server.url("lib.git"), private.server.url("lib.git")),
        (private.server.url_with("me:pw", "lib.git"), private.server.url("lib.git")),
        ("git@example.org:a/b.git".to_owned(), "https://example.org/a/b.git".to_owned()),
        ("ssh://git@example.org:22/a/b.git".to_owned(), "https://example.org/a/b.git".to_owned()),
        ("git://example.org/a".to_owned(), "git://example.org/a".to_owned()),
        ("ext::sh -c touch%20x".to_owned(), "https://ext/:sh -c touch%20x".to_owned()),
    ] {
        let commit = with_submodule(&outer, &written, &private.commit);
        assert_eq!(refused(git_spec(&outer.url(), &commit)), asked, "{written}");
    }
    let SourceSpec::Git { url, commit, .. } = git_spec(&private.server.url("lib.git"), &private.commit)
    else {
        panic!("is git")
    };
    let named = SourceSpec::Git { url, commit, submodules: true, subdirectory: None, anonymous: true };
    assert_eq!(refused(named), private.server.url("lib.git"));
    assert_eq!(private.server.connections(), 0);
}
