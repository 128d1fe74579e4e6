//! Fetching from remote repositories into the cache's bare ones. Credentials stay in memory: remotes are anonymous, and
//! nothing that libgit2 would write an address into (`config`, `FETCH_HEAD`, reflogs) is used.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Once;
use std::time::{Duration, Instant};

use git2::{
    AutotagOption, Config, Cred, CredentialType, Direction, ErrorClass, ErrorCode, FetchOptions, Oid,
    Progress, ProxyOptions, RemoteCallbacks, Repository, RepositoryOpenFlags,
};

use super::super::Context;
use super::super::location::{Location, Remote};
use crate::error::{self, Error, Result};
use crate::interrupt;
use crate::redact::redact;
use crate::store::Lock;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const SILENCE_TIMEOUT: Duration = Duration::from_mins(2);

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
            if let Some(file) = certificates {
                let _ = git2::opts::set_ssl_cert_file(file);
            }
        }
    });
}

/// The cache's repository for a remote, with the commit in it; fetched only when it isn't there yet.
///
/// # Errors
/// When the remote cannot be reached, refuses, or has no such commit.
pub(super) fn fetch(context: &Context<'_>, remote: &Remote, commit: Oid) -> Result<Repository> {
    prepare();
    let (_lock, place) = claim(context, remote)?;
    let repository = open_or_create(&place)?;
    if remote.anonymous {
        without_user(&repository).map_err(|error| explain("cannot set up the cache's repository", &error))?;
    }
    if repository.find_commit(commit).is_err() {
        fetch_commit(context, &repository, remote, commit)?;
    }
    Ok(repository)
}

/// The same with so many commits of its history, where the cache's repository has been fetched without it.
///
/// # Errors
/// When the remote cannot be reached, or refuses.
pub(super) fn deepen(context: &Context<'_>, remote: &Remote, commit: Oid, depth: i32) -> Result<Repository> {
    let (_lock, place) = claim(context, remote)?;
    let repository = open_or_create(&place)?;
    if remote.anonymous {
        without_user(&repository).map_err(|error| explain("cannot set up the cache's repository", &error))?;
    }
    {
        let fetch = Fetch { context, repository: &repository, remote };
        fetch.download(&[commit.to_string()], depth)?.map_err(|error| fetch.failed(&error))?;
    }
    Ok(repository)
}

/// Gives a repository a configuration of its own in place of the user's, whose `url.….insteadOf` may hold a login. Nor is
/// a redirect to another host followed, which may lead into the user's own network.
pub(super) fn without_user(repository: &Repository) -> Result<(), git2::Error> {
    let mut config = Config::open(&repository.path().join("config"))?;
    config.set_bool("http.followRedirects", false)?;
    repository.set_config(&config)
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
        sound = database.read(*id).is_ok();
        sound
    });
    sound && listed.is_ok()
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
fn fetch_commit(context: &Context<'_>, repository: &Repository, remote: &Remote, commit: Oid) -> Result<()> {
    let fetch = Fetch { context, repository, remote };
    context.say(&format!("fetching {} from {}", &commit.to_string()[..10], remote.shown()));
    let exact = fetch.download(&[commit.to_string()], 1)?;
    if exact.is_ok() && repository.find_commit(commit).is_ok() {
        return Ok(());
    }
    context
        .say(&format!("{} does not hand out single commits; fetching all branches and tags", remote.shown()));
    let depth = if repository.is_shallow() { UNSHALLOW } else { 0 };
    let everything = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"].map(str::to_owned);
    fetch.download(&everything, depth)?.map_err(|error| fetch.failed(&error))?;
    match repository.find_object(commit, None) {
        Ok(_) => Ok(()),
        Err(_) => Err(no_such_commit(&Location::Remote(remote.clone()), &commit.to_string())),
    }
}

struct Fetch<'a> {
    context: &'a Context<'a>,
    repository: &'a Repository,
    remote: &'a Remote,
}

impl Fetch<'_> {
    /// Connects and downloads. The outer error is final (no connection, no access, stopped by the user); the inner
    /// one says that the server refuses this way of asking.
    fn download(&self, refspecs: &[String], depth: i32) -> Result<Result<(), git2::Error>> {
        let mut remote =
            self.repository.remote_anonymous(&self.remote.url).map_err(|error| self.failed(&error))?;
        let result = {
            let mut connection = remote
                .connect_auth(Direction::Fetch, Some(self.callbacks()), Some(proxy(self.remote)))
                .map_err(|error| self.failed(&error))?;
            let mut options = FetchOptions::new();
            options.depth(depth).download_tags(AutotagOption::None).proxy_options(proxy(self.remote));
            options.remote_callbacks(self.callbacks());
            let result = connection.remote().download(refspecs, Some(&mut options));
            if result.is_ok() && matches!(depth, 0 | UNSHALLOW) {
                self.keep_references(connection.remote());
            }
            result
        };
        interrupt::check()?;
        match result {
            Err(error) if is_final(&error) => Err(self.failed(&error)),
            other => Ok(other),
        }
    }

    fn failed(&self, error: &git2::Error) -> Error {
        unreachable("cannot fetch from", self.remote, error)
    }

    fn callbacks(&self) -> RemoteCallbacks<'_> {
        let mut callbacks = login(self.remote);
        let last = Cell::new(Instant::now());
        callbacks.transfer_progress(move |progress| {
            if last.get().elapsed() > Duration::from_millis(200) {
                last.set(Instant::now());
                self.context.say(&transfer(&progress));
            }
            !interrupt::requested()
        });
        callbacks
    }

    /// What is had is told to the server next time, so that it sends only the rest. Losing this costs time only.
    fn keep_references(&self, remote: &git2::Remote<'_>) {
        for head in remote.list().unwrap_or_default() {
            let is_wanted = head.name().starts_with("refs/heads/") || head.name().starts_with("refs/tags/");
            if is_wanted && !head.name().ends_with("^{}") {
                let _ = self.repository.reference(head.name(), head.oid(), true, "");
            }
        }
    }
}

fn transfer(progress: &Progress<'_>) -> String {
    let megabytes = progress.received_bytes() / 1_000_000;
    format!(
        "received {} of {} objects, {megabytes} MB",
        progress.received_objects(),
        progress.total_objects()
    )
}

/// The proxy of git's configuration or of the environment.
pub(super) fn proxy<'a>(remote: &Remote) -> ProxyOptions<'a> {
    let mut options = ProxyOptions::new();
    let configured = Config::open_default().and_then(|config| config.get_string("http.proxy"));
    match configured {
        // The repository has another configuration than the user's, see [`without_user`].
        Ok(proxy) if remote.anonymous && !proxy.is_empty() => options.url(&proxy),
        _ => options.auto(),
    };
    options
}

/// Callbacks that log in: with the address's own credentials, then git's credential helpers; by ssh with the agent.
/// Each way is tried once, for libgit2 asks until it is told that there is nothing more.
pub(super) fn login(remote: &Remote) -> RemoteCallbacks<'_> {
    let (mut tried_own, mut tried_helper, mut tried_agent) = (false, false, false);
    let mut callbacks = RemoteCallbacks::new();
    callbacks.credentials(move |url, _, allowed| {
        if remote.anonymous {
            return Err(git2::Error::new(ErrorCode::Auth, ErrorClass::Callback, "it wants a login"));
        }
        let user = remote.user.as_deref();
        if allowed.contains(CredentialType::USERNAME) {
            return Cred::username(user.unwrap_or("git"));
        }
        if allowed.contains(CredentialType::SSH_KEY) && !std::mem::replace(&mut tried_agent, true) {
            return Cred::ssh_key_from_agent(user.unwrap_or("git"));
        }
        if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) {
            if let (Some(user), Some(password), false) = (user, remote.password.as_deref(), tried_own) {
                tried_own = true;
                return Cred::userpass_plaintext(user, password);
            }
            if !std::mem::replace(&mut tried_helper, true)
                && let Ok(found) =
                    Config::open_default().and_then(|config| Cred::credential_helper(&config, url, user))
            {
                return Ok(found);
            }
            if let (Some(token), false) = (user, std::mem::replace(&mut tried_own, true)) {
                return Cred::userpass_plaintext(token, "");
            }
        }
        Err(git2::Error::new(ErrorCode::Auth, ErrorClass::Callback, "no accepted credentials were found"))
    });
    callbacks
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

    #[test]
    fn what_the_user_configures_does_not_touch_an_anonymous_remote() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        // As the user's own file would be read: with the repository.
        let users = folder.path().join("users");
        fs_err::write(&users, "[url \"https://me:s3cret@h.example/\"]\n\tinsteadOf = https://h.example/\n")
            .unwrap();
        let mut config = Config::open(&repository.path().join("config")).unwrap();
        config.add_file(&users, git2::ConfigLevel::App, true).unwrap();
        repository.set_config(&config).unwrap();
        let shown = || {
            let remote = repository.remote_anonymous("https://h.example/a").unwrap();
            remote.url().unwrap().to_owned()
        };
        assert_eq!(shown(), "https://me:s3cret@h.example/a", "as git does for the user");
        without_user(&repository).unwrap();
        assert_eq!(shown(), "https://h.example/a");
        let config = repository.config().unwrap();
        assert!(!config.get_bool("http.followRedirects").unwrap());
    }
}
