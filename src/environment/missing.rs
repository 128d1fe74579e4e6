//! From what pytest could not find to the distribution that has it. Pure.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::requirements_files::pattern;

/// Import names whose distribution is called otherwise. Everything else is assumed to bear its own name.
const DISTRIBUTIONS: &[(&str, &str)] = &[
    ("Crypto", "pycryptodome"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyOpenSSL"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("distutils", "setuptools"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "pymupdf"),
    ("git", "GitPython"),
    ("google.protobuf", "protobuf"),
    ("gi", "PyGObject"),
    ("jose", "python-jose"),
    ("jwt", "PyJWT"),
    ("ldap", "python-ldap"),
    ("lxml_html_clean", "lxml-html-clean"),
    ("magic", "python-magic"),
    ("memcache", "python-memcached"),
    ("mpl_toolkits", "matplotlib"),
    ("multipart", "python-multipart"),
    ("nacl", "PyNaCl"),
    ("pkg_resources", "setuptools<81"),
    ("psycopg2", "psycopg2-binary"),
    ("pytest_cov", "pytest-cov"),
    ("rest_framework", "djangorestframework"),
    ("ruamel", "ruamel.yaml"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("socks", "PySocks"),
    ("usb", "pyusb"),
    ("websocket", "websocket-client"),
    ("xdist", "pytest-xdist"),
    ("yaml", "PyYAML"),
    ("zmq", "pyzmq"),
    ("zope.interface", "zope.interface"),
];

/// pytest options (in `addopts`) and the plugin that knows them.
const PLUGINS: &[(&str, &str)] = &[
    ("--asyncio", "pytest-asyncio"),
    ("--benchmark", "pytest-benchmark"),
    ("--cov", "pytest-cov"),
    ("--no-cov", "pytest-cov"),
    ("--disable-socket", "pytest-socket"),
    ("--allow-hosts", "pytest-socket"),
    ("--dist", "pytest-xdist"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--doctest-rst", "pytest-doctestplus"),
    ("--ds", "pytest-django"),
    ("--nomigrations", "pytest-django"),
    ("--reuse-db", "pytest-django"),
    ("--forked", "pytest-forked"),
    ("--html", "pytest-html"),
    ("--hypothesis", "hypothesis"),
    ("--instafail", "pytest-instafail"),
    ("--loadgroup", "pytest-xdist"),
    ("--maxprocesses", "pytest-xdist"),
    ("--mpl", "pytest-mpl"),
    ("--mypy", "pytest-mypy"),
    ("--numprocesses", "pytest-xdist"),
    ("--random-order", "pytest-random-order"),
    ("--randomly", "pytest-randomly"),
    ("--record-mode", "pytest-recording"),
    ("--remote-data", "pytest-remotedata"),
    ("--reruns", "pytest-rerunfailures"),
    ("--ruff", "pytest-ruff"),
    ("--snapshot", "syrupy"),
    ("--timeout", "pytest-timeout"),
    ("--xdoctest", "xdoctest"),
    ("-n", "pytest-xdist"),
];

/// The distribution to try for a missing module; none when nothing on an index can provide it.
pub fn distribution(module: &str) -> Option<String> {
    let known = |name: &str| {
        DISTRIBUTIONS.iter().find(|(import, _)| *import == name).map(|(_, found)| (*found).to_owned())
    };
    let mut parts = module.split('.');
    let top = parts.next().unwrap_or_default();
    let two = parts.next().map(|second| format!("{top}.{second}"));
    if let Some(found) = two.as_deref().and_then(known).or_else(|| known(top)) {
        return Some(found);
    }
    let is_plain = top.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
        && top.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // These would shadow, or be confused with, what tests call their own helpers.
    let is_common =
        matches!(top, "tests" | "test" | "conftest" | "utils" | "helpers" | "common" | "setup" | "src");
    (is_plain && !is_common).then(|| top.replace('_', "-"))
}

/// The plugins that pytest's refusal to start asks for.
pub fn plugins(text: &str) -> BTreeSet<String> {
    static UNRECOGNIZED: LazyLock<Regex> = LazyLock::new(|| pattern(r"unrecognized arguments?: ([^\n]+)"));
    static REQUIRED: LazyLock<Regex> = LazyLock::new(|| pattern(r"Missing required plugins: ([^\n]+)"));
    static MODULE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"No module named ["']([\w.]+)["']"#));
    let mut found = BTreeSet::new();
    for arguments in UNRECOGNIZED.captures_iter(text) {
        for word in arguments[1].split_whitespace() {
            // The longest option that fits: `--cov-report` is `--cov`'s.
            let fits = PLUGINS.iter().filter(|(option, _)| {
                word.starts_with(option)
                    && (option.starts_with("--") || word[option.len()..].chars().all(|c| c.is_ascii_digit()))
            });
            if let Some((_, plugin)) = fits.max_by_key(|(option, _)| option.len()) {
                found.insert((*plugin).to_owned());
            }
        }
    }
    for required in REQUIRED.captures_iter(text) {
        found.extend(
            required[1].split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
        );
    }
    found.extend(MODULE.captures_iter(text).filter_map(|module| distribution(&module[1])));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_import_names_have_their_distribution() {
        for (module, name) in
            [("yaml", "PyYAML"), ("PIL.Image", "pillow"), ("sklearn.svm", "scikit-learn"), ("six", "six")]
        {
            assert_eq!(distribution(module).as_deref(), Some(name));
        }
        for nothing in ["tests.helpers", "_private", "", "a-b"] {
            assert_eq!(distribution(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn refused_options_name_their_plugin() {
        let text = "ERROR: usage: __main__.py [options]\n__main__.py: error: unrecognized arguments: --cov=x --cov-report=xml -n4 --what";
        let found: Vec<String> = plugins(text).into_iter().collect();
        assert_eq!(found, ["pytest-cov", "pytest-xdist"]);
        assert!(plugins("Missing required plugins: pytest-env>=1, pytest-mock").contains("pytest-mock"));
    }
}
