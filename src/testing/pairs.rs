//! A made-up dataset of pairs of commits.

use super::made_up::MadeUp;
use crate::record::codetaste::{
    Bounds, Counts, Dropped, LockFrom, PairCause, PairRow, PairTree, PatchShape, PatternRow, PublishedPair,
    Side, SuiteRun,
};
use crate::record::family::Family;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::Contribution;

/// A file that the golden patch changes, before it.
pub(crate) const CORE: &str =
    "def old_name(a):\n    return a + 1\n\n\ndef caller(b):\n    return old_name(b)\n";
/// The golden patch: a function gets another name.
pub(crate) const GOLDEN: &str = "diff --git a/src/made/core.py b/src/made/core.py\nindex 1111111..2222222 100644\n--- a/src/made/core.py\n\
+++ b/src/made/core.py\n@@ -1,6 +1,6 @@\n-def old_name(a):\n+def the_new_name_of_it(a):\n     return a + 1\n \n \n \
def caller(b):\n-    return old_name(b)\n+    return the_new_name_of_it(b)\n";
/// Patterns of either side, as they are mined.
pub(crate) const ADDITIVE: &str = "{\"id\":\"ident-the-new-name\",\"language\":\"python\",\"severity\":\"info\",\"rule\":{\"kind\":\
\"identifier\",\"regex\":\"^the_new_name_of_it$\"},\"metadata\":{\"side\":\"additive\",\"feature\":\"ident the_new_name_of_it\"}}\n";
pub(crate) const REDUCTIVE: &str = "{\"id\":\"def-old-name\",\"language\":\"python\",\"severity\":\"info\",\"rule\":{\"kind\":\
\"identifier\",\"regex\":\"^old_name$\",\"inside\":{\"kind\":\"function_definition\",\"field\":\"name\"}},\"metadata\":{\"side\":\
\"reductive\",\"feature\":\"def old_name\"}}\n";

impl MadeUp {
    /// Pairs that are instances, one of each repository, and one that fell.
    pub(crate) fn pairs(sizes: &[usize]) -> Self {
        let mut made_up = MadeUp::new(sizes);
        made_up.config.dataset.family = Family::Codetaste;
        made_up.subsets.retain(|one| one.ranges.is_empty());
        for contribution in &mut made_up.repositories {
            add(contribution);
            made_up.pairs.extend(contribution.codetaste.iter().map(|one| one.row.clone()));
        }
        let evidence = "3 patterns are taken and 1 refused; <b>5</b> are asked for".to_owned();
        let dropped = Dropped { cause: PairCause::FewPatterns, evidence };
        made_up.pairs.push(PairRow { dropped: Some(dropped), ..row("made/fallen", &"1".repeat(40)) });
        made_up
    }
}

fn row(slug: &str, base: &str) -> PairRow {
    let (slug, golden) = (RepoSlug::new(slug).unwrap(), "9".repeat(40));
    let name = format!("{slug}-{}", &base[..8]);
    PairRow {
        instance_id: InstanceId::of_pair(&slug, base, &golden),
        slug: RepoSlug::new(&name).unwrap(),
        repo: slug,
        base: base.to_owned(),
        golden,
        dropped: None,
    }
}

fn add(contribution: &mut Contribution) {
    let pinned = &mut contribution.evidence.pinned;
    let path = pinned.tree.join("src/made/core.py");
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, CORE).unwrap();
    let row = row(pinned.slug.as_str(), &pinned.commit);
    pinned.slug = row.slug.clone();
    let groups: Vec<_> = contribution.evidence.groups.iter().map(|group| group.unwrap()).collect();
    let kept = groups.iter().filter(|one| one.verdict.is_kept());
    let must_pass = kept.flat_map(|one| one.group.cases.iter().map(|case| case.case_id.clone())).collect();
    let counts = Counts { passed: 20, failed: 1, skipped: 2, total: 23 };
    let run = |tree, number| SuiteRun { tree, number, counts: Some(counts), duration_ms: 100.0 };
    let trees = [PairTree::Base, PairTree::Golden];
    let pattern = |id: &str, side, base, golden, lines| PatternRow {
        outside: false,
        id: id.to_owned(),
        side,
        given: false,
        base,
        golden,
        lines,
        files: 1,
    };
    contribution.family = Family::Codetaste;
    contribution.published.clear();
    contribution.tests.clear();
    contribution.variants.clear();
    contribution.codetaste = Some(PublishedPair {
        row,
        lock_from: LockFrom::Base,
        runs: trees.into_iter().flat_map(|tree| [run(tree, 0), run(tree, 1)]).collect(),
        bounds: Bounds { passed: 20, failed: 1 },
        must_pass,
        failing: ["tests/test_0.py::test_broken".to_owned()].into(),
        patterns: vec![
            pattern("ident-the-new-name", Side::Additive, 0, 2, 2),
            pattern("def-old-name", Side::Reductive, 1, 0, 1),
        ],
        pattern_files: vec![
            ("additive.ast-grep.yml".to_owned(), ADDITIVE.to_owned()),
            ("reductive.ast-grep.yml".to_owned(), REDUCTIVE.to_owned()),
        ],
        scripts: crate::record::codetaste::Scripts::new(),
        opengrep: Vec::new(),
        golden_patch: GOLDEN.into(),
        shape: PatchShape { files: 1, lines_added: 2, lines_removed: 2, ..PatchShape::default() },
        precision: [Some(0.75), Some(1.0), Some(0.5)],
        description: Some("Give `old_name` a better name.\n".to_owned()),
        open_description: None,
        flags: vec!["flaky-suite".to_owned()],
    });
}
