//! Files that are named as files with secrets are, in trees that are taken as a folder has them. Only the names count.

use std::path::Path;

use super::tree;
use crate::error::Result;
use crate::record::source::{Origin, Pinned};

/// Names of files that programs keep keys and logins in.
const NAMES: [&str; 17] = [
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "pip.conf",
    "secrets.toml",
    "service-account.json",
];
/// Endings of such files.
const ENDINGS: [&str; 6] = [".key", ".pem", ".p12", ".pfx", ".kdbx", ".keystore"];
/// Ends of the names of their examples, which everybody may see.
const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];

/// Files of a tree that look like secrets, where no commit says that they belong to it: a folder without git, and changes of
/// a work tree.
///
/// # Errors
/// When the tree cannot be listed.
pub(super) fn of_folder(pinned: &Pinned) -> Result<Vec<String>> {
    let is_as_it_was = match pinned.origin {
        Origin::Path { uncommitted_changes, .. } => {
            uncommitted_changes || pinned.commit.starts_with("sha256:")
        }
        _ => false,
    };
    if !is_as_it_was {
        return Ok(Vec::new());
    }
    let entries = tree::entries(&pinned.tree)?;
    let secret = entries.iter().filter(|entry| is_secret(&entry.path));
    Ok(secret.map(|entry| entry.path.to_string_lossy().into_owned()).collect())
}

fn is_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if EXAMPLES.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    NAMES.contains(&name.as_str())
        || name.starts_with(".env.")
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for name in
            [".env", "deploy/.env.production", "keys/id_rsa", "server.PEM", ".aws/credentials", ".netrc"]
        {
            assert!(is_secret(Path::new(name)), "{name}");
        }
        for name in
            [".env.example", "id_rsa.pub", "environment.py", "test_credentials.py", "key", "secrets.py"]
        {
            assert!(!is_secret(Path::new(name)), "{name}");
        }
    }
}
