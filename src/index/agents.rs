//! Connections to servers: certificates, proxies, and addresses that are not spoken to.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Proxy};
use url::{Host, Url};

use super::addresses::{NamedBy, is_link_local, is_public};
use super::once::Once;
use super::settings::{Certificates, Proxies, Settings};
use crate::error::{Error, Result};

/// Connections that are kept open to one server: as many as uv has requests on the way.
const IDLE: usize = 50;

/// Connections that are kept, by how servers are reached.
#[derive(Debug)]
pub(super) struct Agents {
    proxies: Proxies,
    insecure: Vec<String>,
    patience: Duration,
    roots: RootCerts,
    client: Option<ClientCert>,
    places: Arc<Places>,
    found: Arc<AddressBook>,
    made: Mutex<HashMap<Way, Agent>>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Way {
    proxy: Option<String>,
    is_insecure: bool,
    /// Whether the user's certificate is shown.
    is_client: bool,
    by: NamedBy,
}

impl Agents {
    pub(super) fn new(settings: &Settings) -> Result<Agents> {
        let mut places = Places {
            origins: settings.sources.iter().map(|source| source.url.origin()).collect(),
            indexes: settings.sources.iter().filter_map(|source| host(&source.url)).collect(),
            proxies: BTreeSet::new(),
            private: settings.private,
        };
        let proxies = [&settings.proxies.http, &settings.proxies.https];
        for proxy in proxies.into_iter().flatten() {
            let uri = Proxy::new(proxy).map_err(|_| {
                Error::usage("a proxy variable holds no valid address").with_hint(
                    "write `http://host:port`; percent-encode the special characters of a password",
                )
            })?;
            places.proxies.insert(uri.host().to_ascii_lowercase());
        }
        Ok(Agents {
            proxies: settings.proxies.clone(),
            insecure: settings.insecure.clone(),
            patience: settings.patience,
            roots: roots(&settings.certificates)?,
            client: settings.certificates.client.as_deref().map(client).transpose()?,
            places: Arc::new(places),
            found: Arc::default(),
            made: Mutex::default(),
        })
    }

    /// Whether an address that a repository names may be one that is not encrypted: where an index of the user's is, or in
    /// the user's own network, if the user lets repositories name it.
    pub(super) fn may_be_plain(&self, url: &Url) -> bool {
        let found = numbers(url);
        let is_private = !found.is_empty() && found.iter().all(|number| !is_public(*number));
        self.places.origins.contains(&url.origin()) || (self.places.private && is_private)
    }

    /// Connections for an address.
    ///
    /// # Errors
    /// The address is one that is not spoken to.
    pub(super) fn of(&self, url: &Url, by: NamedBy) -> Result<Agent, String> {
        self.places.check(url, by)?;
        let way = self.way(url, by);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(made.entry(way).or_insert_with_key(|way| self.make(way)).clone())
    }

    /// Where a program that makes its own connections may speak to an address that a repository names. It looks the name
    /// up again, and the name server may answer something else then: with encryption that machine has no certificate of
    /// the name; without, the program is given the number that was looked up here.
    ///
    /// # Errors
    /// The address is one that is not spoken to.
    pub(super) fn check(&self, url: &Url) -> Result<Url, String> {
        let found = numbers(url);
        self.check_numbers(url, &found)
    }

    /// Where such a program may speak to an address that leads to these machines.
    fn check_numbers(&self, url: &Url, found: &[IpAddr]) -> Result<Url, String> {
        self.places.check(url, NamedBy::Repository)?;
        let host = host(url).unwrap_or_default();
        let is_index = self.places.origins.contains(&url.origin());
        for number in found {
            if let Some(reason) = self.places.refuse(*number, &host, is_index, NamedBy::Repository) {
                return Err(reason.to_owned());
            }
        }
        let mut url = url.clone();
        // A name that only a proxy knows is none of this network.
        if let (Some(number), "http", false) = (found.first(), url.scheme(), is_index)
            && url.set_ip_host(*number).is_err()
        {
            return Err("the address has no host".to_owned());
        }
        Ok(url)
    }

    fn way(&self, url: &Url, by: NamedBy) -> Way {
        Way {
            proxy: self.proxies.of(url).map(str::to_owned),
            is_insecure: self.is_insecure(url),
            is_client: by == NamedBy::Index && self.places.origins.contains(&url.origin()),
            by,
        }
    }

    /// Whether the user wants no certificate of that server checked.
    fn is_insecure(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        self.insecure.iter().any(|entry| {
            let entry =
                entry.split_once("://").map_or(entry.as_str(), |(_, rest)| rest).trim_end_matches('/');
            entry == host || entry == with_port
        })
    }

    fn make(&self, way: &Way) -> Agent {
        let tls = TlsConfig::builder()
            .root_certs(self.roots.clone())
            .client_cert(self.client.clone().filter(|_| way.is_client))
            .disable_verification(way.is_insecure)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            // Checked when the settings were read.
            .proxy(way.proxy.as_deref().and_then(|proxy| Proxy::new(proxy).ok()))
            .user_agent(concat!("gistmill/", env!("CARGO_PKG_VERSION")))
            // Each step is looked at: where it leads, and whether it gets the login.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(2 * IDLE)
            .max_idle_connections_per_host(IDLE)
            .timeout_connect(Some(self.patience))
            .timeout_recv_response(Some(self.patience))
            .timeout_per_read(Some(self.patience))
            .build();
        let guard = Guard { places: Arc::clone(&self.places), found: Arc::clone(&self.found), by: way.by };
        Agent::with_parts(config, DefaultConnector::default(), guard)
    }
}

const REFUSED: &str = "an address that is local to the link is not spoken to";

const PRIVATE: &str = "an address of this machine or of a private network is not asked for a repository unless \
                       GISTMILL_ALLOW_PRIVATE_ADDRESSES=1 is set";

/// Machines that the user names, which may be anywhere.
#[derive(Debug, Default)]
struct Places {
    /// Of the indexes.
    origins: Vec<url::Origin>,
    indexes: BTreeSet<String>,
    proxies: BTreeSet<String>,
    /// Whether the user lets repositories name private addresses.
    private: bool,
}

impl Places {
    /// Refuses an address that names by its number a machine that is not spoken to; a proxy would connect to it unseen.
    fn check(&self, url: &Url, by: NamedBy) -> Result<(), String> {
        let host = host(url).unwrap_or_default();
        let is_index = self.origins.contains(&url.origin());
        if by == NamedBy::Repository && !self.private && !is_index && self.proxies.contains(&host) {
            return Err(PRIVATE.to_owned());
        }
        let number = match url.host() {
            Some(Host::Ipv4(number)) => IpAddr::V4(number),
            Some(Host::Ipv6(number)) => IpAddr::V6(number),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        self.refuse(number, &host, is_index, by).map_or(Ok(()), |reason| Err(reason.to_owned()))
    }

    /// Why a machine is not spoken to, if it is not. `is_index`: the address has the origin of an index.
    fn refuse(&self, number: IpAddr, host: &str, is_index: bool, by: NamedBy) -> Option<&'static str> {
        match by {
            _ if is_index => None,
            NamedBy::Index => (is_link_local(number) && !self.indexes.contains(host)).then_some(REFUSED),
            NamedBy::Repository if is_link_local(number) => Some(REFUSED),
            NamedBy::Repository => (!self.private && !is_public(number)).then_some(PRIVATE),
        }
    }
}

/// Looks names up and keeps out machines that are not spoken to: those local to the link, where machines serve secrets
/// to whatever runs on them, and, for what a repository names, all of the user's own network. Only indexes and proxies
/// of the user may be there.
#[derive(Debug, Clone)]
struct Guard {
    places: Arc<Places>,
    found: Arc<AddressBook>,
    by: NamedBy,
}

/// Addresses of names, by name, port and the time slot in which they were asked for. Connections are opened by the
/// dozen; as many questions at once are more than some name servers answer.
#[derive(Debug)]
struct AddressBook {
    start: Instant,
    addresses: Once<(String, u64), Vec<SocketAddr>>,
}

impl Default for AddressBook {
    fn default() -> Self {
        AddressBook { start: Instant::now(), addresses: Once::default() }
    }
}

/// How long an address is taken to be that of its name.
const SLOT: Duration = Duration::from_mins(1);

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let slot = self.found.start.elapsed().as_secs() / SLOT.as_secs();
        let name = format!("{}://{host}:{:?}", uri.scheme_str().unwrap_or_default(), uri.port_u16());
        let found = self.found.addresses.get((name, slot), || {
            DefaultResolver::default().resolve(uri, config, timeout).map(|found| found.to_vec())
        })?;
        // With a proxy it is the proxy that is looked up.
        let is_proxy = self.places.proxies.contains(&host);
        let is_index =
            Url::parse(&uri.to_string()).is_ok_and(|url| self.places.origins.contains(&url.origin()));
        let refuse = |address: &SocketAddr| {
            self.places.refuse(address.ip(), &host, is_index, self.by).filter(|_| !is_proxy)
        };
        let reason = found.iter().find_map(refuse);
        let allowed: Vec<SocketAddr> =
            found.into_iter().filter(|address| refuse(address).is_none()).collect();
        if let (true, Some(reason)) = (allowed.is_empty(), reason) {
            return Err(ureq::Error::Other(reason.into()));
        }
        let mut result = self.empty();
        for address in allowed {
            result.push(address);
        }
        Ok(result)
    }
}

/// Numbers of the machines that an address names.
fn numbers(url: &Url) -> Vec<IpAddr> {
    let host = host(url).unwrap_or_default();
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or_default();
    (name, port).to_socket_addrs().into_iter().flatten().map(|address| address.ip()).collect()
}

fn host(url: &Url) -> Option<String> {
    url.host_str().map(str::to_ascii_lowercase)
}

/// Whom to trust: the files that the user names, else what the machine trusts, else what Mozilla's programs trust.
fn roots(certificates: &Certificates) -> Result<RootCerts> {
    const OF_THE_MACHINE: [&str; 4] =
        ["/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted/pem", "/etc/ssl/cert.pem"];
    let mut files: Vec<_> = certificates.file.iter().cloned().collect();
    if let Some(folder) = certificates.file.is_none().then_some(certificates.folder.as_ref()).flatten() {
        for entry in fs_err::read_dir(folder)? {
            files.push(entry?.path());
        }
        files.retain(|path| path.is_file());
    }
    if files.is_empty() {
        let has_some = |path: &&str| {
            let path = Path::new(*path);
            path.is_file() || fs_err::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        };
        let is_set_up = OF_THE_MACHINE.iter().any(has_some);
        return Ok(if is_set_up { RootCerts::PlatformVerifier } else { RootCerts::WebPki });
    }
    let mut roots: Vec<Certificate<'static>> = Vec::new();
    for path in files {
        roots.extend(items(&path)?.into_iter().filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        }));
    }
    if roots.is_empty() {
        return Err(Error::machine("the certificates that the environment names hold none")
            .with_hint("check SSL_CERT_FILE and SSL_CERT_DIR"));
    }
    Ok(RootCerts::new_with_certs(&roots))
}

/// Who the user is: certificates and their private key.
fn client(path: &Path) -> Result<ClientCert> {
    let (mut chain, mut key): (Vec<Certificate<'static>>, Option<PrivateKey<'static>>) = (Vec::new(), None);
    for item in items(path)? {
        match item {
            PemItem::Certificate(certificate) => chain.push(certificate),
            PemItem::PrivateKey(private) => key = Some(private),
            _ => {}
        }
    }
    match key {
        Some(key) if !chain.is_empty() => Ok(ClientCert::new_with_certs(&chain, key)),
        _ => Err(Error::machine(format!("{} has no certificate with its private key", path.display()))
            .with_hint("check SSL_CLIENT_CERT")),
    }
}

fn items(path: &Path) -> Result<Vec<PemItem<'static>>> {
    let text = fs_err::read(path)?;
    // Something else beside certificates in such a file or folder is no reason to stop.
    Ok(parse_pem(&text).filter_map(std::result::Result::ok).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn agents_of(variables: &[(&str, &str)]) -> Agents {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Agents::new(&Settings::of(&variables).expect("valid settings")).expect("connections")
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn addresses_local_to_the_link_are_refused_in_every_spelling() {
        let agents = agents_of(&[("UV_INDEX", "http://169.254.7.7/simple")]);
        for address in [
            "http://169.254.169.254/latest",
            "http://2852039166/",
            "http://0xa9.254.0xa9fe/",
            "http://[fe80::1]/",
            "http://[::ffff:169.254.169.254]/",
        ] {
            assert_eq!(agents.of(&url(address), NamedBy::Index).err().as_deref(), Some(REFUSED), "{address}");
        }
        // The user's own index may lie there.
        for address in ["http://169.254.7.7/files/x", "http://127.0.0.1/", "https://host.example/"] {
            assert!(agents.of(&url(address), NamedBy::Index).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_name_that_leads_to_the_link_is_refused() {
        let guard = Guard { places: Arc::default(), found: Arc::default(), by: NamedBy::Index };
        let uri = |text: &'static str| ureq::http::Uri::from_static(text);
        let timeout = || NextTimeout {
            after: ureq::unversioned::transport::time::Duration::NotHappening,
            ..Default::default()
        };
        let resolve = |text| guard.resolve(&uri(text), &ureq::config::Config::default(), timeout());
        assert!(resolve("http://169.254.169.254/").is_err());
        assert_eq!(resolve("http://127.0.0.1:81/").expect("an address")[0].port(), 81);
    }

    #[test]
    fn a_repository_names_no_machine_of_the_users_network() {
        let index =
            [("UV_INDEX", "http://127.0.0.1:8080/simple"), ("HTTPS_PROXY", "http://proxy.example:3128")];
        let agents = agents_of(&index);
        let refused = |address: &str| agents.of(&url(address), NamedBy::Repository).err();
        for address in [
            "http://127.0.0.1/x",
            "http://127.0.0.1:8081/x",
            "http://10.0.0.1/",
            "http://[fd00::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://0/",
            "https://proxy.example/x",
        ] {
            assert_eq!(refused(address).as_deref(), Some(PRIVATE), "{address}");
            assert_eq!(agents.check(&url(address)).err().as_deref(), Some(PRIVATE), "{address}");
        }
        assert_eq!(refused("http://169.254.169.254/").as_deref(), Some(REFUSED));
        assert_eq!(agents.check(&url("ssh://localhost/x")).err().as_deref(), Some(PRIVATE), "a name");
        for address in ["http://127.0.0.1:8080/files/x", "https://1.1.1.1/x"] {
            let same = Ok(url(address));
            assert_eq!((refused(address), agents.check(&url(address))), (None, same), "{address}");
        }
        let allowed = agents_of(&[("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1")]);
        assert!(allowed.of(&url("http://10.0.0.1/"), NamedBy::Repository).is_ok());
        assert!(allowed.of(&url("http://169.254.169.254/"), NamedBy::Repository).is_err());
    }

    #[test]
    fn without_encryption_git_is_sent_to_the_number_that_was_looked_up() {
        let agents = agents_of(&[
            ("GISTMILL_ALLOW_PRIVATE_ADDRESSES", "1"),
            ("UV_INDEX", "http://index.example:8080/simple"),
        ]);
        let (private, link): (IpAddr, IpAddr) =
            ("10.1.2.3".parse().expect("a number"), "169.254.169.254".parse().expect("a number"));
        let sent = |address: &str, found: &[IpAddr]| agents.check_numbers(&url(address), found);
        assert_eq!(sent("http://git.example:81/a", &[private]), Ok(url("http://10.1.2.3:81/a")));
        assert_eq!(sent("http://git.example/a", &[private, link]), Err(REFUSED.to_owned()));
        // A certificate is of a name, and the user knows what the index is called.
        for same in ["https://git.example/a", "http://index.example:8080/a"] {
            assert_eq!(sent(same, &[private]), Ok(url(same)));
        }
    }

    #[test]
    fn a_name_of_the_users_network_is_refused_to_a_repository() {
        let guard = Guard { places: Arc::default(), found: Arc::default(), by: NamedBy::Repository };
        let timeout = NextTimeout {
            after: ureq::unversioned::transport::time::Duration::NotHappening,
            ..Default::default()
        };
        let uri = ureq::http::Uri::from_static("http://localhost:81/");
        let error = guard.resolve(&uri, &ureq::config::Config::default(), timeout).expect_err("refused");
        assert!(error.to_string().contains(PRIVATE), "{error}");
    }

    #[test]
    fn the_users_certificate_is_shown_to_indexes_alone() {
        let agents = agents_of(&[("UV_INDEX", "https://index.example:8443/simple")]);
        let shown = |address: &str, by| agents.way(&url(address), by).is_client;
        assert!(shown("https://index.example:8443/files/x", NamedBy::Index));
        for address in ["https://index.example/x", "https://files.example/x", "http://index.example:8443/x"] {
            assert!(!shown(address, NamedBy::Index), "{address}");
        }
        assert!(!shown("https://index.example:8443/x", NamedBy::Repository));
    }

    #[test]
    fn hosts_are_insecure_only_where_the_user_says_so() {
        let agents =
            agents_of(&[("UV_INSECURE_HOST", "one.example two.example:8443,https://three.example/")]);
        for (address, is_insecure) in [
            ("https://one.example:1/", true),
            ("https://two.example:8443/", true),
            ("https://two.example/", false),
            ("https://three.example/", true),
            ("https://x.one.example/", false),
        ] {
            assert_eq!(agents.is_insecure(&url(address)), is_insecure, "{address}");
        }
    }

    #[test]
    fn files_that_hold_no_certificate_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("empty.pem");
        fs_err::write(&file, "nothing").expect("a file");
        for variable in ["SSL_CERT_FILE", "SSL_CLIENT_CERT"] {
            let variables = BTreeMap::from([(variable.to_owned(), file.to_string_lossy().into_owned())]);
            let error =
                Agents::new(&Settings::of(&variables).expect("valid settings")).expect_err("no certificate");
            assert!(error.hint().is_some_and(|hint| hint.contains(variable)), "{error}");
        }
    }
}
