//! A file that an index offers, and what addresses and hashes of files look like. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use url::Url;

/// Files of a page that are looked at.
const MOST_FILES: usize = 200_000;

/// A file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub filename: String,
    pub url: Url,
    /// By the name of the algorithm, in hexadecimal digits.
    pub hashes: BTreeMap<String, String>,
    pub requires_python: Option<String>,
    pub yanked: Yanked,
    pub uploaded: Option<Timestamp>,
    /// Hashes of the metadata that lie beside the file; none when nothing lies there.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// Whether a file was withdrawn, and perhaps why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Yanked {
    #[default]
    No,
    Yes,
    Because(String),
}

/// A hash that can be checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Hash {
    Sha256(String),
    Sha384(String),
    Sha512(String),
    Sha224(String),
    Sha1(String),
    Md5(String),
}

impl Hash {
    /// The hash to hold a file against: SHA-256 names files in the store, so it comes first.
    pub(super) fn strongest(hashes: &BTreeMap<String, String>) -> Option<Hash> {
        let of = |name: &str, make: fn(String) -> Hash| hashes.get(name).cloned().map(make);
        of("sha256", Hash::Sha256)
            .or_else(|| of("sha512", Hash::Sha512))
            .or_else(|| of("sha384", Hash::Sha384))
    }

    /// The hashes that the fragment of an address names in a requirement, as pip reads them: one of them must be that of
    /// the file. Only those of the strongest algorithm are given; none where the fragment has none.
    ///
    /// # Errors
    /// Something that stands for a hash and is none, in words.
    pub(super) fn of_requirement(fragment: &str) -> Result<Vec<Hash>, String> {
        type Known = (&'static str, usize, fn(String) -> Hash);
        const MAKE: [Known; 6] = [
            ("sha256", 64, Hash::Sha256),
            ("sha512", 128, Hash::Sha512),
            ("sha384", 96, Hash::Sha384),
            ("sha224", 56, Hash::Sha224),
            ("sha1", 40, Hash::Sha1),
            ("md5", 32, Hash::Md5),
        ];
        let mut found: BTreeMap<usize, Vec<Hash>> = BTreeMap::new();
        for (name, digits) in fragment.split('&').filter_map(|part| part.split_once('=')) {
            let name = name.trim().to_ascii_lowercase();
            let Some(rank) = MAKE.iter().position(|(known, ..)| *known == name) else { continue };
            let (_, length, make) = MAKE[rank];
            let digits = percent_decoded(digits).unwrap_or_default().trim().to_ascii_lowercase();
            if digits.len() != length || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(format!("what the requirement names as its {name} is not one"));
            }
            found.entry(rank).or_default().push(make(digits));
        }
        Ok(found.into_values().next().unwrap_or_default())
    }

    pub(super) fn digits(&self) -> &str {
        match self {
            Hash::Sha256(digits)
            | Hash::Sha384(digits)
            | Hash::Sha512(digits)
            | Hash::Sha224(digits)
            | Hash::Sha1(digits)
            | Hash::Md5(digits) => digits,
        }
    }
}

impl File {
    /// What stands for the file in addresses that a job sees.
    pub(super) fn key(&self) -> String {
        match self.hashes.get("sha256") {
            Some(hash) => hash.clone(),
            None => format!("u{}", super::sha256(self.url.as_str().as_bytes())),
        }
    }
}

/// The address of a file, without fragment and without a login of its own; none when it cannot be fetched.
pub(super) fn file_url(base: &Url, address: &str) -> Option<Url> {
    let mut url = base.join(address).ok()?;
    url.set_fragment(None);
    without_login(&mut url);
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Takes user and password out of an address that can have them.
pub(super) fn without_login(url: &mut Url) {
    if !url.username().is_empty() || url.password().is_some() {
        // Only addresses without a host refuse, and those have no login.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
}

/// Hashes that are hashes: lower-case digits after the name of an algorithm.
pub(super) fn checked(hashes: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let hashes = hashes.into_iter().map(|(name, digits)| (name, digits.to_ascii_lowercase()));
    hashes.filter(|(name, digits)| is_hash(name, digits)).collect()
}

fn is_hash(name: &str, digits: &str) -> bool {
    let length = match name {
        "md5" => 32,
        "sha256" | "blake2b" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The hashes in `sha256=…`, as fragments of addresses and attributes of HTML pages have them.
pub(super) fn fragment_hashes(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|part| part.split_once('='));
    checked(pairs.map(|(name, digits)| (name.to_owned(), digits.to_owned())).collect())
}

/// The last segment of an address, with its percent signs resolved.
pub(super) fn last_segment(url: &Url) -> Option<String> {
    percent_decoded(url.path_segments()?.next_back()?)
}

/// A text whose `%xx` are replaced; none when it is not UTF-8 then.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// At most so many files of a page are looked at.
pub(super) fn bounded<T>(files: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    files.into_iter().take(MOST_FILES)
}
