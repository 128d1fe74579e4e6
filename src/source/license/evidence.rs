//! What a word about a license allows.

use spdx::Expression;

/// One piece of evidence: the licenses that it allows, and the file it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    pub allowed: Vec<String>,
    pub source: String,
}

/// Words and the SPDX identifiers that they may mean. Classifiers are looked up by their last part.
const WORDS: [(&str, &[&str]); 57] = [
    ("mit", &["MIT"]),
    ("mit license", &["MIT"]),
    ("the mit license", &["MIT"]),
    ("mit no attribution license (mit-0)", &["MIT-0"]),
    ("bsd", &["BSD-2-Clause", "BSD-3-Clause"]),
    ("bsd license", &["BSD-2-Clause", "BSD-3-Clause"]),
    ("new bsd", &["BSD-3-Clause"]),
    ("new bsd license", &["BSD-3-Clause"]),
    ("modified bsd license", &["BSD-3-Clause"]),
    ("3-clause bsd", &["BSD-3-Clause"]),
    ("3-clause bsd license", &["BSD-3-Clause"]),
    ("bsd 3-clause", &["BSD-3-Clause"]),
    ("bsd 3-clause license", &["BSD-3-Clause"]),
    ("bsd 2-clause", &["BSD-2-Clause"]),
    ("simplified bsd", &["BSD-2-Clause"]),
    ("apache", &["Apache-2.0", "Apache-1.1", "Apache-1.0"]),
    ("apache license", &["Apache-2.0", "Apache-1.1", "Apache-1.0"]),
    ("apache software license", &["Apache-2.0", "Apache-1.1", "Apache-1.0"]),
    ("apache 2.0", &["Apache-2.0"]),
    ("apache 2", &["Apache-2.0"]),
    ("apache license 2.0", &["Apache-2.0"]),
    ("apache license, version 2.0", &["Apache-2.0"]),
    ("apache software license 2.0", &["Apache-2.0"]),
    ("apache-2", &["Apache-2.0"]),
    ("apache2", &["Apache-2.0"]),
    ("apache v2", &["Apache-2.0"]),
    ("apache license v2.0", &["Apache-2.0"]),
    ("apache license version 2.0", &["Apache-2.0"]),
    ("gpl", &["GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later"]),
    ("gpl-2.0", &["GPL-2.0-only", "GPL-2.0-or-later"]),
    ("gplv2", &["GPL-2.0-only", "GPL-2.0-or-later"]),
    ("gpl-2.0+", &["GPL-2.0-or-later"]),
    ("gplv2+", &["GPL-2.0-or-later"]),
    ("gpl-3.0", &["GPL-3.0-only", "GPL-3.0-or-later"]),
    ("gplv3", &["GPL-3.0-only", "GPL-3.0-or-later"]),
    ("gpl-3.0+", &["GPL-3.0-or-later"]),
    ("gplv3+", &["GPL-3.0-or-later"]),
    ("unlicense", &["Unlicense"]),
    ("gnu general public license v2 (gplv2)", &["GPL-2.0-only"]),
    ("gnu general public license v2 or later (gplv2+)", &["GPL-2.0-or-later"]),
    ("gnu general public license v3 (gplv3)", &["GPL-3.0-only"]),
    ("gnu general public license v3 or later (gplv3+)", &["GPL-3.0-or-later"]),
    ("gnu lesser general public license v2 (lgplv2)", &["LGPL-2.0-only"]),
    ("gnu lesser general public license v2 or later (lgplv2+)", &["LGPL-2.0-or-later", "LGPL-2.1-or-later"]),
    ("gnu lesser general public license v3 (lgplv3)", &["LGPL-3.0-only"]),
    ("gnu lesser general public license v3 or later (lgplv3+)", &["LGPL-3.0-or-later"]),
    ("gnu affero general public license v3", &["AGPL-3.0-only"]),
    ("gnu affero general public license v3 or later (agplv3+)", &["AGPL-3.0-or-later"]),
    ("isc license (iscl)", &["ISC"]),
    ("isc license", &["ISC"]),
    ("mozilla public license 2.0 (mpl 2.0)", &["MPL-2.0"]),
    ("mpl 2.0", &["MPL-2.0"]),
    ("python software foundation license", &["PSF-2.0", "Python-2.0"]),
    ("the unlicense (unlicense)", &["Unlicense"]),
    ("zlib/libpng license", &["Zlib", "Libpng"]),
    ("boost software license 1.0 (bsl-1.0)", &["BSL-1.0"]),
    ("cc0 1.0 universal (cc0 1.0) public domain dedication", &["CC0-1.0"]),
];

impl Evidence {
    /// What a short text of a license field allows; `None` when it says nothing certain.
    pub(super) fn of_words(text: &str, source: &str) -> Option<Evidence> {
        let text = text.trim();
        let word = text.to_lowercase();
        let known = WORDS.iter().find(|(known, _)| *known == word);
        let allowed = match known {
            Some((_, ids)) => ids.iter().map(|id| (*id).to_owned()).collect(),
            None => vec![expression(text)?],
        };
        Some(Evidence { allowed, source: source.to_owned() })
    }

    /// What `License :: …` classifiers allow; other classifiers and general ones (`OSI Approved`) say nothing.
    pub(super) fn of_classifiers<'a>(
        classifiers: impl Iterator<Item = &'a str>,
        source: &str,
    ) -> Vec<Evidence> {
        classifiers
            .filter_map(|classifier| classifier.trim().strip_prefix("License ::"))
            .filter_map(|rest| rest.rsplit("::").next())
            .filter_map(|word| Evidence::of_words(word, source))
            .collect()
    }
}

/// A valid SPDX expression in its canonical spelling; identifiers are compared without regard to case, as SPDX says.
/// Deprecated identifiers are none: `GPL-2.0` is too often meant as "or later".
pub(super) fn expression(text: &str) -> Option<String> {
    const LONGEST: usize = 200;
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let spelt = respell(text);
    Expression::parse(&spelt).is_ok().then_some(spelt)
}

fn respell(text: &str) -> String {
    let spaced = text.replace('(', "( ").replace(')', " )");
    let words: Vec<&str> = spaced.split_whitespace().map(respell_word).collect();
    words.join(" ").replace("( ", "(").replace(" )", ")")
}

fn respell_word(word: &str) -> &str {
    for operator in ["AND", "OR", "WITH"] {
        if word.eq_ignore_ascii_case(operator) {
            return operator;
        }
    }
    let licenses = spdx::identifiers::LICENSES.iter().map(|license| license.name);
    let exceptions = spdx::identifiers::EXCEPTIONS.iter().map(|exception| exception.name);
    licenses.chain(exceptions).find(|name| name.eq_ignore_ascii_case(word)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_known_licenses() {
        for (word, ids) in WORDS {
            assert_eq!(word, word.to_lowercase(), "words are compared in lower case");
            for id in ids {
                assert_eq!(expression(id).as_deref(), Some(*id));
            }
        }
    }

    #[test]
    fn expressions_are_respelt_and_nonsense_is_none() {
        assert_eq!(expression("GPL-2.0-OR-later").as_deref(), Some("GPL-2.0-or-later"));
        assert_eq!(expression("(mit or isc) and zlib").as_deref(), Some("(MIT OR ISC) AND Zlib"));
        for nonsense in ["", "see LICENSE", "proprietary", "MIT OR", "UNKNOWN"] {
            assert_eq!(expression(nonsense), None, "{nonsense}");
        }
    }
}
