//! What building asks for and nothing declares.

use regex::Regex;

use crate::environment::plan::missing;
use crate::requirement::{normalize, parse};

/// The backend that does not have the root of the tree on its path.
const SETUPTOOLS: &str = "setuptools.build_meta";
/// What nothing declares is added so often at most.
const MOST_ASKED: usize = 4;

/// What the hooks asked for and nothing declares: who builds by hand has it installed, or builds in the tree's folder.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) requirements: Vec<String>,
    /// Whether a hook imports what is at the root of the tree.
    own: bool,
}

impl Asked {
    /// Takes from the output of hooks what another try should have; says whether that is anything new. `declares` are the
    /// texts in which the tree says what it needs: of what not everybody knows, only that is installed.
    pub(super) fn add(
        &mut self,
        backend: &str,
        is_own: impl Fn(&str) -> bool,
        declares: impl Fn() -> Vec<String>,
        output: &str,
    ) -> bool {
        let Some(module) = missing::modules(output).last() else { return false };
        if is_own(module) {
            return backend == SETUPTOOLS && !std::mem::replace(&mut self.own, true);
        }
        let known = missing::distribution(module).map(str::to_owned);
        let found = known.or_else(|| declares().iter().find_map(|text| declared(text, module)));
        match found.filter(|one| !self.requirements.contains(one)) {
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
        let note =
            |one: &String| format!("{one} was added to the build requirements, which building asks for");
        let own =
            self.own.then(|| "the build has the tree's root on its path, which setup.py asks for".to_owned());
        self.requirements.iter().map(note).chain(own).collect()
    }
}

/// The requirement of a text, a literal or a line of its own, that bears the name of a module.
fn declared(text: &str, module: &str) -> Option<String> {
    let name = normalize(module.split('.').next().unwrap_or(module));
    let spelled = regex::escape(&name).replace(r"\-", "[-_.]+");
    let literal =
        Regex::new(&format!(r#"(?im)(?:^\s*|["'])({spelled}(?:[^\w.\n"'-][^\n"']*)?)(?:["']|$)"#)).ok()?;
    let mut found = literal.captures_iter(text).map(|found| found[1].trim().to_owned());
    found.find(|one| parse(one).is_some_and(|one| normalize(one.name.as_ref()) == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_ask_for_is_added_once_where_everybody_knows_it() {
        let no_module = |name: &str| format!("Traceback\nModuleNotFoundError: No module named '{name}'\n");
        let mut asked = Asked::default();
        let none = Vec::new;
        assert!(asked.add(SETUPTOOLS, |_| false, none, &no_module("pkg_resources")));
        assert!(!asked.add(SETUPTOOLS, |_| false, none, &no_module("pkg_resources")), "it did not help");
        assert!(asked.add(SETUPTOOLS, |_| false, none, &no_module("numpy.distutils")));
        assert!(!asked.add(SETUPTOOLS, |_| false, none, &no_module("nobody_knows_this")));
        assert!(!asked.add(SETUPTOOLS, |_| false, none, "error: subprocess failed"));
        assert_eq!(asked.requirements, ["setuptools<81", "numpy"]);
        assert_eq!((asked.backend(SETUPTOOLS).as_str(), asked.notes().len()), (SETUPTOOLS, 2));
        assert!(asked.add(SETUPTOOLS, |module| module == "basket", none, &no_module("basket")));
        assert!(!asked.add(SETUPTOOLS, |_| true, none, &no_module("basket")));
        assert_eq!(asked.backend(SETUPTOOLS), "setuptools.build_meta:__legacy__");
        assert!(!Asked::default().add("flit_core.buildapi", |_| true, none, &no_module("basket")));
    }

    #[test]
    fn what_only_the_tree_declares_is_added_as_it_says() {
        let no_module = |name: &str| format!("Traceback\nModuleNotFoundError: No module named '{name}'\n");
        for (text, module, expected) in [
            ("setup(install_requires=['zict>=2', \"x\"])", "zict.lru", Some("zict>=2")),
            ("six\nmy_own.tools [a] ; python_version > '3'\n", "my_own", None),
            ("six\nMy-Own <3\n", "my_own", Some("My-Own <3")),
            ("import zict\nzict.run()\nname = 'zict-extras'\n", "zict", None),
        ] {
            let mut asked = Asked::default();
            let is_new = asked.add(SETUPTOOLS, |_| false, || vec![text.to_owned()], &no_module(module));
            assert_eq!(asked.requirements.first().map(String::as_str), expected, "{text}");
            assert_eq!(is_new, expected.is_some(), "{text}");
        }
    }
}
