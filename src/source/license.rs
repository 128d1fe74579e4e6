//! The license of a tree as an SPDX expression, or nothing when unsure.
//!
//! An expression that the metadata declares (PEP 639) decides. Everything else is evidence: each piece allows a set of
//! licenses ("BSD" allows two, the text of the GPL allows "only" and "or later"), and when exactly one license is left
//! that all pieces allow, it is the answer. Contradictions leave none.

mod evidence;
mod metadata;
mod text;

use std::path::Path;

use crate::beneath::Folder;
use evidence::Evidence;

/// A license and the file it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct License {
    pub expression: String,
    pub source: String,
}

/// Longer files are no declarations and no licenses.
const LONGEST: u64 = 4 << 20;

/// The license of a tree. Files that cannot be read or understood, or that links lead to outside of the tree, say
/// nothing.
pub(super) fn detect(root: &Path) -> Option<License> {
    let root = &Folder::open(&root.canonicalize().ok()?).ok()?;
    let metadata = metadata::read(root);
    if let Some(license) = metadata.declared {
        return Some(license);
    }
    let mut evidence = metadata.evidence;
    evidence.extend(text::read(root));
    decide(&evidence)
}

/// The content of a file of the tree.
fn read(root: &Folder, name: &str) -> Option<Vec<u8>> {
    root.read_through_links(Path::new(name), LONGEST).ok()
}

/// The one license that all evidence allows. The piece named as its source is the first that allows nothing else, or
/// the first at all.
fn decide(evidence: &[Evidence]) -> Option<License> {
    let first = evidence.first()?;
    let mut left = first.allowed.clone();
    for piece in evidence {
        left.retain(|id| piece.allowed.contains(id));
    }
    let expression = match left.as_slice() {
        [only] => only.clone(),
        _ => return None,
    };
    let decisive = evidence.iter().find(|piece| piece.allowed.len() == 1).unwrap_or(first);
    Some(License { expression, source: decisive.source.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIT: &str = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software \
        and associated documentation files (the \"Software\"), to deal in the Software without restriction, including \
        without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies \
        of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following \
        conditions:\n\nThe above copyright notice and this permission notice shall be included in all copies or \
        substantial portions of the Software.\n\nTHE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, \
        EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR \
        PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, \
        DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN \
        CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.";

    fn detected(files: &[(&str, &str)]) -> Option<(String, String)> {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs_err::write(root.path().join(name), content).unwrap();
        }
        detect(root.path()).map(|license| (license.expression, license.source))
    }

    fn is(files: &[(&str, &str)], expression: &str, source: &str) {
        assert_eq!(detected(files), Some((expression.to_owned(), source.to_owned())));
    }

    fn project(rest: &str) -> String {
        format!("[project]\nname = \"demo\"\n{rest}\n")
    }

    #[test]
    fn a_declared_expression_decides_and_is_spelt_as_spdx_spells_it() {
        let file = ("LICENSE", MIT);
        let text = project("license = \"mit or gpl-2.0-OR-later\"");
        is(&[("pyproject.toml", &text), file], "MIT OR GPL-2.0-or-later", "pyproject.toml");
        let text =
            "Metadata-Version: 2.4\nName: demo\nLicense-Expression: Apache-2.0\n\nLicense-Expression: MIT";
        is(&[("PKG-INFO", text)], "Apache-2.0", "PKG-INFO");
    }

    #[test]
    fn license_text_alone_is_enough() {
        let text = format!("The MIT License\n\nCopyright (c) 2020 Somebody\n\n{MIT}");
        is(&[("LICENSE.txt", &text)], "MIT", "LICENSE.txt");
    }

    #[test]
    fn ambiguous_words_are_settled_by_other_evidence_or_not_at_all() {
        let gpl = "License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)";
        let text = project(&format!("license = {{text = \"GPL\"}}\nclassifiers = [\"{gpl}\"]"));
        is(&[("pyproject.toml", &text)], "GPL-2.0-or-later", "pyproject.toml");
        let bsd = project("classifiers = [\"License :: OSI Approved :: BSD License\"]");
        assert_eq!(detected(&[("pyproject.toml", &bsd)]), None);
    }

    #[test]
    fn no_link_out_of_the_tree_is_evidence_and_one_within_is() {
        let outside = tempfile::tempdir().unwrap();
        let text = format!("The MIT License\n\nCopyright (c) 2020 Somebody\n\n{MIT}");
        fs_err::write(outside.path().join("LICENSE"), &text).unwrap();
        fs_err::write(outside.path().join("PKG-INFO"), "License-Expression: MIT\n").unwrap();
        let root = tempfile::tempdir().unwrap();
        let link =
            |target: &Path, name: &str| std::os::unix::fs::symlink(target, root.path().join(name)).unwrap();
        link(&outside.path().join("LICENSE"), "LICENSE");
        link(&outside.path().join("PKG-INFO"), "PKG-INFO");
        link(outside.path(), "legal");
        let declared = project("license = {file = \"legal/LICENSE\"}");
        fs_err::write(root.path().join("pyproject.toml"), &declared).unwrap();
        assert_eq!(detect(root.path()), None);
        fs_err::create_dir(root.path().join("papers")).unwrap();
        fs_err::write(root.path().join("papers/mit.txt"), &text).unwrap();
        fs_err::remove_file(root.path().join("LICENSE")).unwrap();
        link(Path::new("papers/mit.txt"), "LICENSE");
        assert_eq!(detect(root.path()).map(|license| license.expression).as_deref(), Some("MIT"));
    }

    #[test]
    fn contradictions_and_unknown_texts_leave_no_license() {
        let apache = project("classifiers = [\"License :: OSI Approved :: Apache Software License\"]");
        assert_eq!(detected(&[("pyproject.toml", &apache), ("LICENSE", MIT)]), None);
        assert_eq!(detected(&[("LICENSE", "All rights reserved. Ask us.")]), None);
        assert_eq!(detected(&[("LICENSE", "")]), None);
        assert_eq!(detected(&[("pyproject.toml", "not [ toml")]), None);
        assert_eq!(detected(&[]), None);
    }

    #[test]
    fn old_metadata_is_read_too() {
        let text = "[metadata]\nname = demo\nlicense = Apache 2.0\n";
        is(&[("setup.cfg", text)], "Apache-2.0", "setup.cfg");
        let text = "[tool.poetry]\nlicense = \"MIT\"\n";
        is(&[("pyproject.toml", text)], "MIT", "pyproject.toml");
        let text =
            "Name: demo\nLicense: MIT License\nClassifier: License :: OSI Approved :: MIT License\n\nbody";
        is(&[("PKG-INFO", text)], "MIT", "PKG-INFO");
    }
}
