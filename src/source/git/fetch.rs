//! Fetching from remote repositories into the cache's bare ones. Credentials stay in memory: remotes are anonymous, and
//! nothing that libgit2 would write an address into (`config`, `FETCH_HEAD`, reflogs) is used.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Once;
use std::time::{Duration, Instant};

use git2::{
    AutotagOption, Config, Cred, CredentialType, Direction, ErrorClass, ErrorCode, FetchOptions, Oid,
    Progress, ProxyOptions, RemoteCallbacks, RemoteHead, RemoteRedirect, Repository, RepositoryOpenFlags,
};
use libgit2_sys as raw;
use url::{Host, Url};

use super::super::Context;
use super::super::location::{Location, Remote};
use super::super::watch::{self, Patience, Watch};
use super::memory;
use crate::beneath::archive::LARGEST;
use crate::error::{self, Error, OrWhy, Result};
use crate::interrupt;
use crate::redact::redact;
use crate::store::Lock;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const SILENCE_TIMEOUT: Duration = Duration::from_mins(2);

/// Objects that a repository may have: more than the largest ones that are known.
const MOST_OBJECTS: usize = 50_000_000;

/// libgit2's depth for "everything that an earlier shallow fetch left out".
const UNSHALLOW: i32 = i32::MAX;

/// Sets up libgit2 once per process: trusted certificates, timeouts, partial clones.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let milliseconds = |duration: Duration| i32::try_from(duration.as_millis()).unwrap_or(i32::MAX);
        let certificates =
            ["GIT_SSL_CAINFO", "SSL_CERT_FILE"].into_iter().find_map(|name| std::env::var(name).ok());
        // SAFETY: these set process-wide options of libgit2 before this module makes any other call to it.
        unsafe {
            // Options that cannot be set stay at libgit2's defaults; a failing fetch then says why.
            let _ = git2::opts::set_server_connect_timeout_in_milliseconds(milliseconds(CONNECT_TIMEOUT));
            let _ = git2::opts::set_server_timeout_in_milliseconds(milliseconds(SILENCE_TIMEOUT));
            let _ = git2::opts::set_extensions(&["partialclone"]);
            memory::set_up();
            if let Some(file) = certificates {
                let _ = git2::opts::set_ssl_cert_file(file);
            }
        }
    });
}

/// The cache's repository for a remote, and the lock of whoever works on it.
struct Held {
    repository: Repository,
    _lock: Lock,
}

/// The cache's repository for a remote, with the commit in it; fetched only when it isn't there yet.
///
/// # Errors
/// When the remote cannot be reached, refuses, or has no such commit.
pub(super) fn fetch(context: &Context<'_>, remote: &Remote, commit: Oid) -> Result<Repository> {
    let held = hold(context, remote)?;
    if held.repository.find_commit(commit).is_ok() {
        return Ok(held.repository);
    }
    Ok(fetch_commit(context, held, remote, commit)?.repository)
}

/// The cache's repository for a remote, with the commit and so many commits of its history in it.
///
/// # Errors
/// When the remote cannot be reached, or refuses.
pub(super) fn deepen(context: &Context<'_>, remote: &Remote, commit: Oid, depth: i32) -> Result<Repository> {
    let held = hold(context, remote)?;
    let (held, result) = download(context, held, remote, vec![commit.to_string()], depth)?;
    result.map_err(|error| failed(remote, &error))?;
    Ok(held.repository)
}

fn hold(context: &Context<'_>, remote: &Remote) -> Result<Held> {
    prepare();
    let (lock, place) = claim(context, remote)?;
    let repository = open_or_create(&place)?;
    own_settings(&repository, remote)
        .map_err(|error| explain("cannot set up the cache's repository", &error))?;
    Ok(Held { repository, _lock: lock })
}

/// Settings of a repository that talks to a remote: no redirect to another host is followed, which a login would go along
/// with. For an address that is not the user's nothing of the user's configuration is read, whose `url.….insteadOf` and
/// `http.proxy` may hold logins.
pub(super) fn own_settings(repository: &Repository, remote: &Remote) -> Result<(), git2::Error> {
    let mut config = Config::open(&repository.path().join("config"))?;
    config.set_bool("http.followRedirects", false)?;
    if remote.anonymous {
        repository.set_config(&config)?;
    }
    Ok(())
}

/// Where a remote is asked. One that is not the user's is looked over first.
///
/// # Errors
/// It may not be asked.
pub(super) fn address(check: &dyn Fn(&str) -> Result<String>, remote: &Remote) -> Result<String> {
    if remote.anonymous { check(&remote.url) } else { Ok(remote.url.clone()) }
}

/// Sets the cache's repository for a remote aside when an object in it cannot be read or is not what its name says.
/// Gives whether it did.
pub(super) fn set_aside_damaged(context: &Context<'_>, remote: &Remote) -> Result<bool> {
    let (_lock, path) = claim(context, remote)?;
    if !path.exists() || is_sound(&path) {
        return Ok(false);
    }
    crate::store::set_aside(&path)?;
    Ok(true)
}

fn is_sound(path: &std::path::Path) -> bool {
    let Ok(repository) = Repository::open_bare(path) else { return false };
    let Ok(database) = repository.odb() else { return false };
    let mut sound = true;
    let listed = database.foreach(|id| {
        // What is too large to be taken out is not read either.
        sound = database
            .read_header(*id)
            .is_ok_and(|(size, _)| size as u64 > LARGEST || database.read(*id).is_ok());
        sound && !interrupt::requested()
    });
    sound && (listed.is_ok() || interrupt::requested())
}

/// The cache's place for a remote's repository, and the lock of whoever works on it.
fn claim(context: &Context<'_>, remote: &Remote) -> Result<(Lock, PathBuf)> {
    let place = context.cache.dir("git")?.join(remote.cache_name());
    let lock = Lock::wait(&place.with_extension("lock"), || {
        context.say(&format!("another build fetches from {}; waiting for it", remote.shown()));
    })?;
    crate::store::mark_used(&place);
    Ok((lock, place))
}

/// Only a cache: what cannot be opened is made anew.
fn open_or_create(path: &std::path::Path) -> Result<Repository> {
    // `open_bare` does not read where the history ends.
    let flags = RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_SEARCH;
    if let Ok(repository) = Repository::open_ext(path, flags, [] as [&str; 0]) {
        return Ok(repository);
    }
    if path.exists() {
        crate::store::set_aside(path)?;
    }
    Repository::init_bare(path).map_err(|error| explain(&format!("cannot make {}", path.display()), &error))
}

/// First the commit alone, which most servers hand out; then, where that is refused, all branches and tags.
fn fetch_commit(context: &Context<'_>, held: Held, remote: &Remote, commit: Oid) -> Result<Held> {
    context.say(&format!("fetching {} from {}", &commit.to_string()[..10], remote.shown()));
    let (held, exact) = download(context, held, remote, vec![commit.to_string()], 1)?;
    if exact.is_ok() && held.repository.find_commit(commit).is_ok() {
        return Ok(held);
    }
    context
        .say(&format!("{} does not hand out single commits; fetching all branches and tags", remote.shown()));
    let depth = if held.repository.is_shallow() { UNSHALLOW } else { 0 };
    let everything = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"].map(str::to_owned);
    let (held, all) = download(context, held, remote, everything.into(), depth)?;
    all.map_err(|error| failed(remote, &error))?;
    if held.repository.find_object(commit, None).is_ok() {
        return Ok(held);
    }
    Err(no_such_commit(&Location::Remote(remote.clone()), &commit.to_string()))
}

/// Connects and downloads. The outer error is final (no connection, no access, too much, stopped by the user); the inner
/// one says that the server refuses this way of asking.
fn download(
    context: &Context<'_>,
    held: Held,
    remote: &Remote,
    refspecs: Vec<String>,
    depth: i32,
) -> Result<(Held, Result<(), git2::Error>)> {
    let address = address(context.check, remote)?;
    let asked = remote.clone();
    let work = move |watch: &Watch| {
        let bounds = Bounds { watch: watch.clone(), excess: Rc::default() };
        let (result, was_refused) = memory::lend(watch.over(), || {
            exchange(&held.repository, &asked, &address, (&refspecs, depth), &bounds)
        });
        (held, result, bounds.excess.get().or(was_refused.then_some("fits into 4 GiB of memory")))
    };
    let waited = watch::wait(Patience::FETCH, context.progress, work);
    interrupt::check()?;
    let (held, result, excess) =
        waited.map_err(|error| error.at(format!("cannot fetch from {}", remote.shown())))?;
    if let Some(excess) = excess {
        return Err(Error::repository(format!("{} sends more than {excess}", remote.shown()))
            .with_hint("name a smaller repository, or a local clone of it"));
    }
    match result.map_err(|error| failed(remote, &error))? {
        Err(error) if is_final(&error) => Err(failed(remote, &error)),
        other => Ok((held, other)),
    }
}

/// What a server may send.
struct Bounds {
    watch: Watch,
    excess: Rc<Cell<Option<&'static str>>>,
}

/// The connection, and the transfer over it.
fn exchange(
    repository: &Repository,
    remote: &Remote,
    address: &str,
    (refspecs, depth): (&[String], i32),
    bounds: &Bounds,
) -> Result<OrWhy<(), git2::Error>, git2::Error> {
    let mut connected = repository.remote_anonymous(address)?;
    let asked = connected.url()?.to_owned();
    let callbacks = || callbacks(remote, &asked, bounds);
    let mut connection = connected.connect_auth(Direction::Fetch, Some(callbacks()), Some(proxy()))?;
    let mut options = FetchOptions::new();
    options.depth(depth).download_tags(AutotagOption::None).proxy_options(proxy());
    options.follow_redirects(RemoteRedirect::None).remote_callbacks(callbacks());
    let result = connection.remote().download(refspecs, Some(&mut options));
    if result.is_ok() && matches!(depth, 0 | UNSHALLOW) {
        keep_references(repository, connection.remote());
    }
    Ok(result)
}

fn failed(remote: &Remote, error: &git2::Error) -> Error {
    unreachable("cannot fetch from", remote, error)
}

fn callbacks<'a>(remote: &'a Remote, asked: &'a str, bounds: &Bounds) -> RemoteCallbacks<'a> {
    let mut callbacks = login(remote, asked);
    let last = Cell::new(Instant::now());
    let (watch, excess) = (bounds.watch.clone(), Rc::clone(&bounds.excess));
    callbacks.transfer_progress(move |progress| {
        if last.get().elapsed() > Duration::from_millis(200) {
            last.set(Instant::now());
            watch.say(transfer(&progress));
        }
        let found = too_much(progress.received_bytes() as u64, progress.total_objects());
        if found.is_some() {
            excess.set(found);
        }
        watch.goes_on() && found.is_none()
    });
    let watch = bounds.watch.clone();
    callbacks.sideband_progress(move |_| watch.goes_on());
    callbacks
}

/// What of a transfer is more than is taken.
fn too_much(bytes: u64, objects: usize) -> Option<&'static str> {
    if bytes > LARGEST {
        return Some("16 GiB");
    }
    (objects > MOST_OBJECTS).then_some("50 million objects")
}

/// What is had is told to the server next time, so that it sends only the rest. Losing this costs time only.
fn keep_references(repository: &Repository, remote: &git2::Remote<'_>) {
    for head in remote.list().unwrap_or_default() {
        let Some(name) = name_of(head) else { continue };
        let is_wanted = name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
        if is_wanted && !name.ends_with("^{}") {
            let _ = repository.reference(name, head.oid(), true, "");
        }
    }
}

/// What a server calls one of its branches or tags; none where that is not UTF-8, over which [`RemoteHead::name`] panics.
pub(super) fn name_of<'a>(head: &'a RemoteHead<'_>) -> Option<&'a str> {
    const { assert!(size_of::<RemoteHead<'_>>() == size_of::<*const raw::git_remote_head>()) }
    let place: *const RemoteHead<'_> = head;
    // SAFETY: a `RemoteHead` is a pointer to what the library keeps as long as the remote is connected: `Remote::list` gives
    // the library's own array of such pointers as an array of these.
    let name = unsafe {
        let raw_head = *place.cast::<*const raw::git_remote_head>();
        std::ffi::CStr::from_ptr((*raw_head).name)
    };
    name.to_str().ok()
}

fn transfer(progress: &Progress<'_>) -> String {
    let megabytes = progress.received_bytes() / 1_000_000;
    format!(
        "received {} of {} objects, {megabytes} MB",
        progress.received_objects(),
        progress.total_objects()
    )
}

/// The proxy of the repository's configuration (see [`own_settings`]) or of the environment.
pub(super) fn proxy<'a>() -> ProxyOptions<'a> {
    let mut options = ProxyOptions::new();
    options.auto();
    options
}

/// Callbacks that log in: with the address's own credentials, then git's credential helpers; by ssh with the agent.
/// Each way is tried once, for libgit2 asks until it is told that there is nothing more. `asked` is the address as git's
/// configuration rewrites it. A login is for its own server alone.
pub(super) fn login<'a>(remote: &'a Remote, asked: &'a str) -> RemoteCallbacks<'a> {
    let (mut tried_own, mut tried_helper, mut tried_agent) = (false, false, false);
    let mut callbacks = RemoteCallbacks::new();
    callbacks.credentials(move |url, _, allowed| {
        if remote.anonymous {
            return Err(denied("it wants a login, and an address that is not the user's gets none"));
        }
        if !is_same_server(url, asked) {
            return Err(denied("it leads to another server, which gets no login"));
        }
        let user = remote.user.as_deref();
        if allowed.contains(CredentialType::USERNAME) {
            return Cred::username(user.unwrap_or("git"));
        }
        if allowed.contains(CredentialType::SSH_KEY) && !std::mem::replace(&mut tried_agent, true) {
            return Cred::ssh_key_from_agent(user.unwrap_or("git"));
        }
        if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) {
            let is_own = is_same_server(url, &remote.url);
            if let (Some(user), Some(password), false, true) =
                (user, remote.password.as_deref(), tried_own, is_own)
            {
                tried_own = true;
                return Cred::userpass_plaintext(user, password);
            }
            if has_name(url)
                && !std::mem::replace(&mut tried_helper, true)
                && let Ok(found) =
                    Config::open_default().and_then(|config| Cred::credential_helper(&config, url, user))
            {
                return Ok(found);
            }
            if let (Some(token), false, true) = (user, std::mem::replace(&mut tried_own, true), is_own) {
                return Cred::userpass_plaintext(token, "");
            }
        }
        Err(denied("no accepted credentials were found"))
    });
    callbacks
}

fn denied(why: &str) -> git2::Error {
    git2::Error::new(ErrorCode::Auth, ErrorClass::Callback, why)
}

/// Whether two addresses have one scheme, host and port.
fn is_same_server(one: &str, other: &str) -> bool {
    let server = |text: &str| {
        let url = Url::parse(text).ok()?;
        let host = url.host_str().map(str::to_ascii_lowercase);
        Some((url.scheme().to_owned(), host, url.port_or_known_default()))
    };
    // `user@host:path` is no URL.
    one == other
        || server(one)
            .is_some_and(|(scheme, host, port)| host.is_some() && server(other) == Some((scheme, host, port)))
}

/// Whether a credential helper can be told the host: the library passes names on, and numbers not. A helper that is told
/// none gives the first login that it has.
fn has_name(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.host(), Some(Host::Domain(name)) if !name.is_empty()))
}

/// Whether another way of asking the same server cannot help.
fn is_final(error: &git2::Error) -> bool {
    matches!(error.code(), ErrorCode::Auth | ErrorCode::Certificate | ErrorCode::User | ErrorCode::Timeout)
        || matches!(error.class(), ErrorClass::Os | ErrorClass::Ssl | ErrorClass::Callback)
}

/// The error for a commit that a repository does not have.
pub(super) fn no_such_commit(location: &Location, commit: &str) -> Error {
    Error::repository(format!("{location} has no commit {commit}")).with_hint(
        "it may have been force-pushed away, be only in a fork or a pull request, or belong to another repository",
    )
}

/// An error of libgit2 in our words: without credentials, with the way out where it is known.
pub(crate) fn explain(action: &str, error: &git2::Error) -> Error {
    let message = redact(error.message());
    let denied =
        ["401", "403", "404", "authentication", "credentials"].iter().any(|word| message.contains(word));
    let hint = match (error.code(), error.class()) {
        (ErrorCode::Owner, _) => {
            Some("it belongs to another user: `git config --global --add safe.directory <path>` trusts it")
        }
        (ErrorCode::Certificate, ErrorClass::Ssh) => Some("add the host's key to ~/.ssh/known_hosts"),
        (ErrorCode::Certificate, _) | (_, ErrorClass::Ssl) => {
            Some("name the file of your certificate authority in SSL_CERT_FILE")
        }
        (ErrorCode::Auth, _) | (_, ErrorClass::Callback) => Some(ACCESS),
        _ if message.contains("object format") => Some("SHA-256 repositories are not supported"),
        _ if denied => Some(ACCESS),
        _ => None,
    };
    if error::says_disk_is_full(&message) {
        return Error::machine(format!("{action}: {message}")).with_hint(error::DISK_HINT);
    }
    let result = Error::repository(format!("{action}: {message}"));
    match hint {
        Some(hint) => result.with_hint(hint),
        None => result,
    }
}

/// The error for a remote that does not give what was asked for.
pub(super) fn unreachable(action: &str, remote: &Remote, error: &git2::Error) -> Error {
    let result = explain(&format!("{action} {}", remote.shown()), error);
    match result.hint() {
        Some(_) => result,
        None => result.with_hint("check the address, the network, and https_proxy if you need one"),
    }
}

const ACCESS: &str = "a private or misspelt repository? give access with ssh-agent (ssh addresses) or a git credential helper (https)";

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, anonymous: bool) -> Remote {
        let Location::Remote(remote) = Location::parse(url).unwrap() else { panic!("is remote") };
        Remote { anonymous, ..remote }
    }

    #[test]
    fn what_the_user_configures_does_not_touch_an_anonymous_remote() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        // As the user's own file would be read: with the repository.
        let users = folder.path().join("users");
        let text = "[url \"https://me:s3cret@h.example/\"]\n\tinsteadOf = https://h.example/\n\
                    [http]\n\tproxy = http://me:s3cret@proxy.example\n\tfollowRedirects = true\n";
        fs_err::write(&users, text).unwrap();
        let mut config = Config::open(&repository.path().join("config")).unwrap();
        config.add_file(&users, git2::ConfigLevel::App, true).unwrap();
        repository.set_config(&config).unwrap();
        let shown = || {
            let remote = repository.remote_anonymous("https://h.example/a").unwrap();
            remote.url().unwrap().to_owned()
        };
        own_settings(&repository, &remote("https://h.example/a", false)).unwrap();
        assert_eq!(shown(), "https://me:s3cret@h.example/a", "as git does for the user");
        own_settings(&repository, &remote("https://h.example/a", true)).unwrap();
        assert_eq!(shown(), "https://h.example/a");
        let config = repository.config().unwrap();
        assert!(!config.get_bool("http.followRedirects").unwrap());
        assert!(config.get_string("http.proxy").is_err());
    }

    #[test]
    fn servers_are_told_apart_by_scheme_host_and_port() {
        let own = "https://host.example/a";
        for same in ["https://host.example/b", "https://me:pw@HOST.example:443/a"] {
            assert!(is_same_server(own, same), "{same}");
        }
        for other in [
            "http://host.example/a",
            "https://host.example:8443/a",
            "https://host.example.org/a",
            "https://host/a",
            "https://10.0.0.1/a",
            "host.example:a",
            "",
        ] {
            assert!(!is_same_server(own, other), "{other}");
        }
        assert!(is_same_server("git@host:a", "git@host:a") && !is_same_server("git@host:a", "git@other:a"));
    }

    #[test]
    fn a_helper_is_asked_for_hosts_that_have_a_name() {
        assert!(has_name("https://host.example/x") && has_name("https://localhost:1/x"));
        for url in ["https://203.0.113.5/x", "https://3405803781/x", "https://[2001:db8::1]/x", "x", ""] {
            assert!(!has_name(url), "{url}");
        }
    }

    #[test]
    fn what_a_server_sends_is_bounded() {
        assert_eq!(too_much(LARGEST, MOST_OBJECTS), None);
        assert!(too_much(LARGEST + 1, 0).is_some() && too_much(0, MOST_OBJECTS + 1).is_some());
    }
}
