//! What building asks for and nothing declares.

use crate::environment::plan::missing;

/// The backend that does not have the root of the tree on its path.
const SETUPTOOLS: &str = "setuptools.build_meta";
/// What nothing declares is added so often at most.
const MOST_ASKED: usize = 4;

/// What the hooks asked for and nothing declares: who builds by hand has it installed, or builds in the tree's folder.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) requirements: Vec<&'static str>,
    /// Whether a hook imports what is at the root of the tree.
    own: bool,
}

impl Asked {
    /// Takes from the output of hooks what another try should have; says whether that is anything new.
    pub(super) fn add(&mut self, backend: &str, is_own: impl Fn(&str) -> bool, output: &str) -> bool {
        let Some(module) = missing::modules(output).last() else { return false };
        if is_own(module) {
            return backend == SETUPTOOLS && !std::mem::replace(&mut self.own, true);
        }
        match missing::distribution(module).filter(|one| !self.requirements.contains(one)) {
            Some(found) if self.requirements.len() < MOST_ASKED => {
                self.requirements.push(found);
                true
            }
            _ => false,
        }
    }

    /// The backend that has the root of the tree on its path, where that is asked for.
    pub(super) fn backend(&self, declared: &str) -> String {
        let legacy = if self.own { ":__legacy__" } else { "" };
        format!("{declared}{legacy}")
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let note = |one: &&str| format!("{one} was added to the build requirements, which building asks for");
        let own =
            self.own.then(|| "the build has the tree's root on its path, which setup.py asks for".to_owned());
        self.requirements.iter().map(note).chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_ask_for_is_added_once_where_everybody_knows_it() {
        let no_module = |name: &str| format!("Traceback\nModuleNotFoundError: No module named '{name}'\n");
        let mut asked = Asked::default();
        assert!(asked.add(SETUPTOOLS, |_| false, &no_module("pkg_resources")));
        assert!(!asked.add(SETUPTOOLS, |_| false, &no_module("pkg_resources")), "it did not help");
        assert!(asked.add(SETUPTOOLS, |_| false, &no_module("numpy.distutils")));
        assert!(!asked.add(SETUPTOOLS, |_| false, &no_module("nobody_knows_this")));
        assert!(!asked.add(SETUPTOOLS, |_| false, "error: subprocess failed"));
        assert_eq!(asked.requirements, ["setuptools<81", "numpy"]);
        assert_eq!((asked.backend(SETUPTOOLS).as_str(), asked.notes().len()), (SETUPTOOLS, 2));
        assert!(asked.add(SETUPTOOLS, |module| module == "basket", &no_module("basket")));
        assert!(!asked.add(SETUPTOOLS, |_| true, &no_module("basket")));
        assert_eq!(asked.backend(SETUPTOOLS), "setuptools.build_meta:__legacy__");
        assert!(!Asked::default().add("flit_core.buildapi", |_| true, &no_module("basket")));
    }
}
