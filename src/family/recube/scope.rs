//! Parts of a tree: which files an agent is shown.

use std::collections::BTreeSet;

use regex::Regex;

use crate::record::recube::Scope;
use crate::text::glob;

/// The files of a scope, among those of a tree: what fits its globs, and every `__init__.py` above one of them.
pub fn files<'a>(scope: &Scope, paths: &[&'a str]) -> BTreeSet<&'a str> {
    let globs: Vec<Regex> =
        scope.paths.iter().filter_map(|glob| Regex::new(&glob::pattern(glob)).ok()).collect();
    let own: BTreeSet<&str> =
        paths.iter().copied().filter(|path| globs.iter().any(|glob| glob.is_match(path))).collect();
    let is_above = |path: &str| {
        let folder = path.strip_suffix("__init__.py").filter(|folder| folder.ends_with('/'));
        folder.is_some_and(|folder| own.iter().any(|file| file.starts_with(folder)))
    };
    paths.iter().copied().filter(|path| own.contains(path) || is_above(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_has_its_files_and_the_packages_above_them() {
        let paths =
            ["a/__init__.py", "a/b/__init__.py", "a/b/c.py", "a/d.py", "e/__init__.py", "e/x__init__.py"];
        let scope = |glob: &str| Scope { name: "s".into(), paths: vec![glob.into()] };
        let of = |glob: &str| files(&scope(glob), &paths).into_iter().collect::<Vec<_>>();
        assert_eq!(of("a/b/*.py"), ["a/__init__.py", "a/b/__init__.py", "a/b/c.py"]);
        assert_eq!(of("a/*.py"), ["a/__init__.py", "a/d.py"]);
        assert_eq!(of("nothing/**"), Vec::<&str>::new());
    }
}
