//! The user's download settings: which indexes, and how they are reached. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::file::{percent_decoded, without_login};
use crate::error::{Error, Result};

/// The index that uv asks when the user names no other one.
const DEFAULT: &str = "https://pypi.org/simple";
/// What the index is called that nobody named.
const PUBLIC: &str = "pypi.org";

/// The user's settings for downloads.
#[derive(Debug, Clone)]
pub struct Settings {
    /// In the order in which uv asks them; the default one is last.
    pub(super) sources: Vec<Source>,
    pub(super) strategy: Option<String>,
    pub(super) insecure: Vec<String>,
    pub(super) proxies: Proxies,
    pub(super) certificates: Certificates,
    /// How long a server may be silent.
    pub(super) patience: Duration,
    /// Whether a repository may name addresses of this machine and of private networks.
    pub(super) private: bool,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub name: Option<String>,
    /// The variable that names it; what is public without one.
    pub variable: &'static str,
    /// Without a login.
    pub url: Url,
    pub login: Option<Login>,
    pub is_default: bool,
}

/// A user and a password, which are never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Login")
    }
}

/// Addresses of proxies, which may hold logins.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Proxies {
    pub http: Option<String>,
    pub https: Option<String>,
    /// What is reached without a proxy.
    pub without: Vec<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Proxies")
    }
}

/// Files that say whom to trust and who the user is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Certificates {
    pub file: Option<PathBuf>,
    pub folder: Option<PathBuf>,
    /// Certificate and private key of the user.
    pub client: Option<PathBuf>,
}

impl Settings {
    /// Out of the user's variables, under the names that uv gives them.
    ///
    /// # Errors
    /// An index is not an `https://` or `http://` address; the message does not repeat it.
    pub fn of(variables: &BTreeMap<String, String>) -> Result<Settings> {
        let get =
            |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let first = |names: &[&str]| names.iter().find_map(|name| get(name));
        let proxy = |name: &str| first(&[&name.to_lowercase(), name]).map(str::to_owned);
        let all = proxy("ALL_PROXY");
        let seconds = first(&["UV_HTTP_TIMEOUT", "UV_REQUEST_TIMEOUT"]).and_then(|text| text.parse().ok());
        let list = |text: Option<&str>| -> Vec<String> {
            let words = text.unwrap_or_default().split([',', ' ']);
            words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
        };
        Ok(Settings {
            sources: sources(variables)?,
            strategy: get("UV_INDEX_STRATEGY").map(str::to_owned),
            insecure: list(get("UV_INSECURE_HOST")),
            proxies: Proxies {
                http: proxy("HTTP_PROXY").or_else(|| all.clone()),
                https: proxy("HTTPS_PROXY").or(all),
                without: list(first(&["no_proxy", "NO_PROXY"])),
            },
            certificates: Certificates {
                file: first(&["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]).map(PathBuf::from),
                folder: get("SSL_CERT_DIR").map(PathBuf::from),
                client: get("SSL_CLIENT_CERT").map(PathBuf::from),
            },
            patience: Duration::from_secs(seconds.filter(|seconds| *seconds > 0).unwrap_or(30)),
            private: get("GISTMILL_ALLOW_PRIVATE_ADDRESSES") == Some("1"),
        })
    }
}

fn sources(variables: &BTreeMap<String, String>) -> Result<Vec<Source>> {
    let list = |name: &'static str| {
        let words = variables.get(name).into_iter().flat_map(|value| value.split_whitespace());
        words.map(move |word| (name, word))
    };
    let mut sources = Vec::new();
    for (variable, address) in ["UV_INDEX", "UV_EXTRA_INDEX_URL"].into_iter().flat_map(list) {
        sources.push(source(variable, address, variables, false)?);
    }
    // The newer name of the default index comes first.
    let default = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"].into_iter().find_map(|name| list(name).next());
    let (variable, address) = default.unwrap_or((PUBLIC, DEFAULT));
    sources.push(source(variable, address, variables, true)?);
    Ok(sources)
}

/// The index at `address` or `name=address`; the login of a named one may be in variables of its own.
fn source(
    variable: &'static str,
    address: &str,
    variables: &BTreeMap<String, String>,
    is_default: bool,
) -> Result<Source> {
    let (name, address) = match address.split_once('=') {
        Some((name, rest)) if !name.contains([':', '/']) => (Some(name), rest),
        _ => (None, address),
    };
    let mut url = Url::parse(address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| {
            Error::usage(format!("`{variable}` names an index that has no valid address"))
                .with_hint("write `https://host/path`; percent-encode the special characters of a password")
        })?;
    let variable_of = |kind: &str| {
        let name = name?.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        variables.get(&format!("UV_INDEX_{name}_{kind}")).cloned()
    };
    let decoded = |text: &str| percent_decoded(text).unwrap_or_else(|| text.to_owned());
    let user = Some(decoded(url.username())).filter(|user| !user.is_empty());
    let password = url.password().map(decoded);
    let (own_user, own_password) = (variable_of("USERNAME"), variable_of("PASSWORD"));
    let (user, password) = if own_user.is_some() || own_password.is_some() {
        (own_user, own_password)
    } else {
        (user, password)
    };
    without_login(&mut url);
    let login = (user.is_some() || password.is_some())
        .then(|| Login { user: user.unwrap_or_default(), password: password.unwrap_or_default() });
    Ok(Source { name: name.map(str::to_owned), variable, url, login, is_default })
}

impl Source {
    /// As messages name index number `number`, from 0: without its host, since some get into datasets.
    pub(super) fn words(&self, number: usize) -> String {
        let name = self.name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        format!("index {} ({name}{})", number + 1, self.variable)
    }

    /// Where the page of a project lies.
    pub(super) fn project(&self, project: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{project}/", self.url.path().trim_end_matches('/')));
        url
    }

    /// Whether an address has the scheme, host and port of this index.
    pub(super) fn has_origin_of(&self, url: &Url) -> bool {
        self.url.origin() == url.origin()
    }

    /// The login that goes to an address: to this index alone.
    pub(super) fn login_for(&self, url: &Url) -> Option<&Login> {
        self.login.as_ref().filter(|_| self.has_origin_of(url))
    }
}

impl Proxies {
    /// The proxy for an address.
    pub(super) fn of(&self, url: &Url) -> Option<&str> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        let host = url.host_str().unwrap_or_default();
        proxy.as_deref().filter(|_| !self.without.iter().any(|pattern| covers(pattern, host)))
    }
}

/// Whether an entry of `NO_PROXY` means a host: the host itself, one below it, or a network of IPv4 addresses.
fn covers(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim_start_matches("*.").trim_start_matches('.');
    if let (Some((network, bits)), Ok(address)) = (pattern.split_once('/'), host.parse()) {
        let address: std::net::Ipv4Addr = address;
        return match (network.parse::<std::net::Ipv4Addr>(), bits.parse::<u32>()) {
            (Ok(network), Ok(bits @ 0..=32)) => {
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                network.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        };
    }
    let is_below = || host.strip_suffix(pattern).is_some_and(|rest| rest.ends_with('.'));
    pattern == "*" || (!pattern.is_empty() && (host == pattern || is_below()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::of(&variables.collect()).expect("valid settings")
    }

    fn shown(source: &Source) -> (Option<&str>, &str, Option<(&str, &str)>, bool) {
        let login = source.login.as_ref().map(|login| (login.user.as_str(), login.password.as_str()));
        (source.name.as_deref(), source.url.as_str(), login, source.is_default)
    }

    #[test]
    fn without_settings_the_default_index_is_asked() {
        let settings = settings(&[]);
        assert_eq!(settings.sources.len(), 1);
        assert_eq!(shown(&settings.sources[0]), (None, DEFAULT, None, true));
        assert_eq!(settings.proxies, Proxies::default());
    }

    #[test]
    fn indexes_keep_their_order_and_logins_are_taken_out_of_addresses() {
        let settings = settings(&[
            ("UV_DEFAULT_INDEX", "https://u:s3cret%40@mirror.example/simple"),
            ("UV_INDEX_URL", "https://older.example/simple"),
            ("UV_INDEX", "corp=https://corp.example/simple https://v@other.example:8443/"),
            ("UV_EXTRA_INDEX_URL", "https://extra.example/simple/"),
            ("UV_INDEX_CORP_USERNAME", "me"),
            ("UV_INDEX_CORP_PASSWORD", "s3cret/@\""),
        ]);
        let sources: Vec<_> = settings.sources.iter().map(shown).collect();
        assert_eq!(
            sources,
            [
                (Some("corp"), "https://corp.example/simple", Some(("me", "s3cret/@\"")), false),
                (None, "https://other.example:8443/", Some(("v", "")), false),
                (None, "https://extra.example/simple/", None, false),
                (None, "https://mirror.example/simple", Some(("u", "s3cret@")), true),
            ]
        );
        assert!(!format!("{settings:?}").contains("s3cret"));
    }

    #[test]
    fn an_index_that_is_no_address_is_refused_without_repeating_it() {
        for address in ["ftp://u:s3cret@host/simple", "/srv/s3cret", "corp=s3cret", "https://u:s3#cret@host/"]
        {
            let variables = BTreeMap::from([("UV_INDEX".to_owned(), address.to_owned())]);
            let error = Settings::of(&variables).expect_err("no index");
            assert_eq!(error.fault(), crate::error::Fault::Usage);
            assert!(error.to_string().contains("UV_INDEX") && !error.to_string().contains("s3"), "{error}");
        }
    }

    #[test]
    fn a_login_goes_to_its_own_scheme_host_and_port_only() {
        let settings = settings(&[("UV_INDEX", "https://me:secret@index.corp:8443/simple")]);
        let login =
            |url: &str| settings.sources[0].login_for(&Url::parse(url).expect("an address")).is_some();
        assert!(login("https://index.corp:8443/files/x.whl") && login("https://INDEX.corp:8443/"));
        for other in [
            "https://index.corp/x",
            "http://index.corp:8443/x",
            "https://index.corp.evil:8443/x",
            "https://x.index.corp:8443/x",
            "https://index.corp:8443@evil/x",
            "https://evil/index.corp:8443",
        ] {
            assert!(!login(other), "{other}");
        }
    }

    #[test]
    fn pages_lie_below_the_index() {
        for address in ["https://host/simple", "https://host/simple/", "https://host/simple//"] {
            let settings = settings(&[("UV_INDEX_URL", address)]);
            assert_eq!(settings.sources[0].project("foo").as_str(), "https://host/simple/foo/");
        }
    }

    #[test]
    fn proxies_are_chosen_by_scheme_and_host() {
        let settings = settings(&[
            ("https_proxy", "http://w:s3cret@lower:1"),
            ("HTTPS_PROXY", "http://upper:1"),
            ("ALL_PROXY", "socks5://all:2"),
            ("NO_PROXY", "localhost, .corp.example,10.0.0.0/8"),
        ]);
        let proxy = |url: &str| settings.proxies.of(&Url::parse(url).expect("an address"));
        assert_eq!(proxy("https://index.example/x"), Some("http://w:s3cret@lower:1"));
        assert_eq!(proxy("http://index.example/x"), Some("socks5://all:2"));
        assert_eq!(proxy("https://11.1.2.3/"), Some("http://w:s3cret@lower:1"));
        assert_eq!(proxy("https://mycorp.example/"), Some("http://w:s3cret@lower:1"));
        for direct in
            ["http://localhost:1/", "https://corp.example/", "https://a.corp.example/", "http://10.1.2.3/"]
        {
            assert_eq!(proxy(direct), None, "{direct}");
        }
        assert!(!format!("{settings:?}").contains("s3cret"));
    }

    #[test]
    fn silence_is_bounded_by_the_users_timeout() {
        assert_eq!(settings(&[("UV_HTTP_TIMEOUT", "7")]).patience, Duration::from_secs(7));
        assert_eq!(settings(&[("UV_HTTP_TIMEOUT", "soon")]).patience, Duration::from_secs(30));
    }
}
