//! Downloads one file and hashes it on the way.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use ureq::tls::{RootCerts, TlsConfig};

use super::super::location::{Location, Remote};
use super::super::watch::{self, Patience, Watch};
use crate::error::{Error, Result};
use crate::index::{FILE_BYTES, Pace, Paced, basic};
use crate::interrupt;
use crate::redact::redact;

/// A downloaded file; removed when dropped.
pub(super) struct Downloaded {
    pub file: NamedTempFile,
    pub sha256: String,
}

/// Fetches `https://…`, `http://…`, `file://…` or a path.
///
/// # Errors
/// When the server cannot be reached, does not answer with the file or takes too long, when the file is too large, and IO
/// errors.
pub(super) fn download(address: &str, progress: &dyn Fn(&str)) -> Result<Downloaded> {
    match Location::parse(address)? {
        Location::Local(path) => {
            let shown = path.display().to_string();
            if !fs_err::metadata(&path)?.is_file() {
                return Err(Error::repository(format!("{shown} is not a regular file")));
            }
            save(&mut fs_err::File::open(&path)?, &shown, FILE_BYTES, &mut |text| progress(&text))
        }
        Location::Remote(remote) => {
            let shown = remote.shown();
            let work = move |watch: &Watch| {
                let mut answer = open(&remote)?;
                let mut body = Paced::new(answer.body_mut().as_reader(), Pace::FILE, Instant::now());
                save(&mut body, &remote.shown(), FILE_BYTES, &mut |text| watch.say(text))
            };
            watch::wait(Patience::FILE, progress, work)
                .map_err(|error| error.at(format!("cannot download {shown}")))?
        }
    }
}

fn open(remote: &Remote) -> Result<ureq::http::Response<ureq::Body>> {
    let mut request = agent().get(&remote.url);
    if let Some((user, password)) =
        remote.user.clone().zip(remote.password.clone()).or_else(|| index_login(remote))
    {
        request = request.header("authorization", basic(&user, &password));
    }
    request.call().map_err(|error| {
        let hint = match &error {
            ureq::Error::StatusCode(401 | 403) => {
                "the index wants a login: put it into the index address that uv uses (UV_INDEX_URL)"
            }
            _ => "check the network, the proxy (https_proxy) and the certificates (SSL_CERT_FILE)",
        };
        let reason = redact(&error.to_string());
        Error::repository(format!("cannot download {}: {reason}", remote.shown())).with_hint(hint)
    })
}

/// Certificates come from the platform (`SSL_CERT_FILE` included), the proxy from the environment. The file is wanted
/// as it is: an archive that is decompressed on the way has another hash.
fn agent() -> ureq::Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .accept_encoding("identity")
        .user_agent(concat!("gistmill/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_recv_response(Some(Duration::from_mins(1)))
        .timeout_per_read(Some(Duration::from_mins(1)));
    ureq::Agent::new_with_config(config.build())
}

/// uv leaves the login out of the addresses that it prints; it is in the address of the index on the same host.
fn index_login(remote: &Remote) -> Option<(String, String)> {
    const INDEXES: [&str; 5] =
        ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"];
    let values = INDEXES.iter().filter_map(|name| std::env::var(name).ok()).collect::<Vec<_>>().join(" ");
    login_for(remote, &values)
}

fn login_for(remote: &Remote, indexes: &str) -> Option<(String, String)> {
    let addresses = indexes.split([' ', ',', '\n']).map(|word| {
        // A named index is written `name=address`.
        word.split_once('=').filter(|(name, _)| !name.contains(':')).map_or(word, |(_, address)| address)
    });
    addresses.filter_map(|address| Location::parse(address).ok()).find_map(|location| match location {
        Location::Remote(index) if host(&index.url) == host(&remote.url) => {
            Some((index.user?, index.password.unwrap_or_default()))
        }
        _ => None,
    })
}

/// Scheme, host and port.
fn host(url: &str) -> &str {
    let start = url.find("://").map_or(0, |index| index + 3);
    url[start..].find('/').map_or(url, |end| &url[..start + end])
}

fn save(
    content: &mut dyn Read,
    shown: &str,
    limit: u64,
    progress: &mut dyn FnMut(String),
) -> Result<Downloaded> {
    let failed = |error: std::io::Error| {
        Error::repository(format!("cannot download {shown}"))
            .with_source(error)
            .with_hint("check the network and run the same command again")
    };
    let mut file = crate::store::scratch_file()?;
    let place: PathBuf = file.path().to_owned();
    let (mut hasher, mut buffer, mut total) = (Sha256::new(), vec![0; 64 * 1024], 0_u64);
    let mut last = Instant::now();
    loop {
        interrupt::check()?;
        let read = content.read(&mut buffer).map_err(failed);
        interrupt::check()?;
        let read = read?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        file.write_all(&buffer[..read])
            .map_err(|error| Error::from(error).at(format!("cannot write {}", place.display())))?;
        total += read as u64;
        if total > limit {
            return Err(Error::repository(format!("{shown} has more than {} MiB", limit >> 20)));
        }
        if last.elapsed() > Duration::from_millis(200) {
            last = Instant::now();
            progress(format!("received {} kB", total / 1000));
        }
    }
    Ok(Downloaded { file, sha256: hex::encode(hasher.finalize()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str) -> Remote {
        Remote { url: url.to_owned(), user: None, password: None, anonymous: false }
    }

    #[test]
    fn an_index_login_goes_to_its_own_host_only() {
        let indexes = "https://host/simple corp=https://me:secret@index.corp:8443/simple";
        let login = |url: &str| login_for(&remote(url), indexes);
        assert_eq!(login("https://index.corp:8443/f/x.tar.gz"), Some(("me".to_owned(), "secret".to_owned())));
        for other in
            ["https://index.corp/x", "http://index.corp:8443/x", "https://host/x", "https://elsewhere/x"]
        {
            assert_eq!(login(other), None, "{other}");
        }
    }
    #[test]
    fn a_file_without_end_and_a_pipe_are_refused() {
        let error = save(&mut std::io::repeat(0), "x.tar.gz", 1 << 20, &mut |_| {}).err().unwrap();
        assert_eq!(error.to_string(), "x.tar.gz has more than 1 MiB");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("x.tar.gz");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = download(pipe.to_str().unwrap(), &|_| {}).err().unwrap();
        assert!(error.to_string().contains("is not a regular file"), "{error}");
    }
}
