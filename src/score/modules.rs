//! Which dotted names are modules of the repository, and which names of a file stand for one.

use std::collections::{BTreeSet, HashMap};

use ruff_python_ast::{Stmt, StmtImport, StmtImportFrom};

use super::tree;

/// The dotted names that an environment would import from the tree of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules(BTreeSet<String>);

impl<S: Into<String>> FromIterator<S> for Modules {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Modules(names.into_iter().map(Into::into).collect())
    }
}

impl Modules {
    /// Whether this is the name of a module.
    pub fn contains(&self, dotted: &str) -> bool {
        self.0.contains(dotted)
    }

    /// Whether the name is that of a module, or of something within one.
    pub fn owns(&self, dotted: &str) -> bool {
        prefixes(dotted).any(|prefix| self.contains(prefix))
    }

    /// The longest module that a dotted name begins with, as a number of bytes.
    pub fn longest_prefix(&self, dotted: &str) -> Option<usize> {
        prefixes(dotted).filter(|prefix| self.contains(prefix)).map(str::len).last()
    }

    /// The package that relative imports of a file start from; empty at the top. Folders that no module's name begins
    /// with (`src/`) are left out.
    pub(crate) fn package_of(&self, path: &str) -> String {
        let dotted = path.strip_suffix(".py").unwrap_or(path).replace('/', ".");
        let own = dotted.strip_suffix(".__init__").unwrap_or(&dotted);
        let from = std::iter::once(0).chain(own.match_indices('.').map(|(at, _)| at + 1));
        let start = from.into_iter().find(|at| self.contains(&own[*at..])).unwrap_or(0);
        dotted[start.min(dotted.len())..]
            .rsplit_once('.')
            .map_or_else(String::new, |(package, _)| package.to_owned())
    }

    /// The dotted names by which files can be imported: from the root, from `src`, and from the folder that pytest puts on the
    /// path for a test file, the first one above it that is not a package.
    pub fn of_files(sources: &BTreeSet<String>, is_installed: impl Fn(&str) -> bool) -> Self {
        let mut names = BTreeSet::new();
        let mut known: std::collections::BTreeMap<String, bool> = std::collections::BTreeMap::new();
        let mut add = |path: &str| {
            let dotted = path.trim_end_matches(".py").replace('/', ".");
            let dotted = dotted.strip_suffix(".__init__").unwrap_or(&dotted).to_owned();
            let is_name = |part: &str| {
                !part.is_empty()
                    && !part.starts_with(|first: char| first.is_ascii_digit())
                    && part.chars().all(|one| one == '_' || one.is_alphanumeric())
            };
            if dotted == "__init__" || !dotted.split('.').all(is_name) {
                return;
            }
            let top = dotted.split('.').next().unwrap_or_default().to_owned();
            let elsewhere = *known.entry(top.clone()).or_insert_with(|| is_installed(&top));
            if !elsewhere {
                let ends = dotted.match_indices('.').map(|(at, _)| at).chain([dotted.len()]);
                names.extend(ends.map(|end| dotted[..end].to_owned()));
            }
        };
        for path in sources {
            add(path);
            if let Some(rest) = path.strip_prefix("src/") {
                add(rest);
            }
            let mut base = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            while !base.is_empty() && sources.contains(&format!("{base}/__init__.py")) {
                base = base.rsplit_once('/').map_or("", |(above, _)| above);
            }
            if let Some(rest) = path.strip_prefix(base).and_then(|rest| rest.strip_prefix('/')) {
                add(rest);
            }
        }
        Modules(names)
    }

    /// The module as which pytest imports a test file: the shortest name of the file that is known.
    pub fn module_of(&self, file: &str) -> String {
        let dotted = file.trim_end_matches(".py").replace('/', ".");
        let starts = dotted.match_indices('.').map(|(at, _)| at + 1).rev().chain([0]);
        let mut names = starts.map(|at| &dotted[at..]);
        names.find(|name| self.contains(name)).unwrap_or(&dotted).to_owned()
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }

    /// The modules that all others are below.
    pub fn roots(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|name| !name.contains('.'))
    }
}

/// `a`, `a.b`, `a.b.c` of `a.b.c`.
fn prefixes(dotted: &str) -> impl Iterator<Item = &str> {
    dotted.match_indices('.').map(|(at, _)| &dotted[..at]).chain(std::iter::once(dotted))
}

/// What the names of one file stand for.
#[derive(Debug, Clone)]
pub(crate) struct Bindings<'m> {
    pub modules: &'m Modules,
    package: String,
    /// Local name → module.
    aliases: HashMap<String, String>,
}

impl<'m> Bindings<'m> {
    /// Those of a file of the repository: its imports, wherever they stand.
    pub(crate) fn of_file(modules: &'m Modules, path: &str, body: &[Stmt]) -> Self {
        Bindings { modules, package: modules.package_of(path), aliases: HashMap::new() }.read(body)
    }

    /// Those of a submission, in which the names of the repository's packages stand for themselves, imported or not.
    pub(crate) fn of_submission(modules: &'m Modules, body: &[Stmt]) -> Self {
        Bindings::by_name(modules).read(body)
    }

    /// The packages of the repository under their own names, and nothing else.
    pub(crate) fn by_name(modules: &'m Modules) -> Self {
        let aliases = modules.roots().map(|name| (name.clone(), name.clone())).collect();
        Bindings { modules, package: String::new(), aliases }
    }

    /// Without names that stand for something else where they are used.
    pub(crate) fn without(mut self, locals: &BTreeSet<String>) -> Self {
        self.aliases.retain(|name, _| !locals.contains(name));
        self
    }

    /// The module that a name stands for.
    pub(crate) fn module(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.aliases.is_empty()
    }

    /// The dotted name that a `from` names, without its dots. Dots that lead out of the tree lead to its top.
    pub(crate) fn absolute(&self, import: &StmtImportFrom) -> String {
        let module = import.module.as_ref().map_or("", |module| module.as_str());
        let Some(up) = (import.level as usize).checked_sub(1) else { return module.to_owned() };
        let parts: Vec<&str> = self.package.split('.').filter(|part| !part.is_empty()).collect();
        let kept = &parts[..parts.len().saturating_sub(up)];
        kept.iter().copied().chain((!module.is_empty()).then_some(module)).collect::<Vec<_>>().join(".")
    }

    /// Whether `import name` imports the repository.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.modules.owns(name)
    }

    /// Whether a name of a `from` import comes from the repository. Relative imports do.
    pub(crate) fn is_own_from(&self, import: &StmtImportFrom, name: &str) -> bool {
        let module = self.absolute(import);
        import.level > 0 || self.modules.owns(&module) || self.modules.contains(&joined(&module, name))
    }

    fn read(mut self, body: &[Stmt]) -> Self {
        let mut found = Vec::new();
        self.collect(body, 0, &mut found);
        // Inner imports come last, so that they win.
        found.sort_by_key(|(depth, _, _)| *depth);
        self.aliases.extend(found.into_iter().map(|(_, name, module)| (name, module)));
        self
    }

    fn collect(&self, body: &[Stmt], depth: u32, found: &mut Vec<(u32, String, String)>) {
        for statement in body {
            match statement {
                Stmt::Import(import) => {
                    found.extend(self.of_import(import).map(|(name, module)| (depth, name, module)));
                }
                Stmt::ImportFrom(import) => {
                    found
                        .extend(self.of_from(import).into_iter().map(|(name, module)| (depth, name, module)));
                }
                _ => {
                    for body in tree::bodies(statement) {
                        self.collect(body, depth + 1, found);
                    }
                }
            }
        }
    }

    fn of_import<'a>(&'a self, import: &'a StmtImport) -> impl Iterator<Item = (String, String)> + 'a {
        import.names.iter().filter_map(|alias| {
            let dotted = alias.name.as_str();
            if let Some(name) = &alias.asname {
                return self.modules.contains(dotted).then(|| (name.to_string(), dotted.to_owned()));
            }
            let root = dotted.split('.').next().unwrap_or(dotted);
            self.modules.contains(root).then(|| (root.to_owned(), root.to_owned()))
        })
    }

    fn of_from(&self, import: &StmtImportFrom) -> Vec<(String, String)> {
        let module = self.absolute(import);
        let named = import.names.iter().filter_map(|alias| {
            let full = joined(&module, alias.name.as_str());
            let local = alias.asname.as_ref().unwrap_or(&alias.name);
            self.modules.contains(&full).then(|| (local.to_string(), full))
        });
        named.collect()
    }
}

/// `name` in `module`.
pub(crate) fn joined(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_above_the_packages_are_no_part_of_a_package() {
        let modules: Modules =
            ["tiny", "tiny.core", "tiny.inner", "tiny.inner.deep", "tests.test_a"].into_iter().collect();
        for (path, package) in [
            ("tiny/__init__.py", "tiny"),
            ("tiny/core.py", "tiny"),
            ("src/tiny/core.py", "tiny"),
            ("lib/src/tiny/inner/__init__.py", "tiny.inner"),
            ("src/tiny/inner/deep.py", "tiny.inner"),
            ("tests/test_a.py", "tests"),
            ("unknown/place.py", "unknown"),
            ("setup.py", ""),
        ] {
            assert_eq!(modules.package_of(path), package, "{path}");
        }
    }

    #[test]
    fn a_module_owns_what_is_below_it() {
        let modules: Modules = ["tiny", "space.one"].into_iter().collect();
        assert!(modules.owns("tiny") && modules.owns("tiny.core.Box") && modules.owns("space.one.f"));
        assert!(!modules.owns("tinyness") && !modules.owns("space") && !modules.owns("space.two"));
        assert_eq!(modules.longest_prefix("tiny.core.Box"), Some(4));
    }
}
