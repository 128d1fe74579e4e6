//! What images are called that are built from an export.

use crate::record::id::{RepoSlug, hash_parts};

/// The name of an image that is built from an export. Parts of it are letters and digits, with single separators between.
pub(super) fn image(slug: &RepoSlug, key: &[&str]) -> String {
    let name = slug.as_str().to_lowercase();
    let parts: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    format!("gistmill-export/{}:{}", parts.join("-"), &hash_parts(key)[..16])
}
