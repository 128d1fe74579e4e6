//! A made-up dataset of masked files.

use std::collections::BTreeSet;

use super::made_up::MadeUp;
use crate::family::recube::mask::{Cut, mask};
use crate::record::family::Family;
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::instance::Contribution;
use crate::record::recube::{
    InstanceCase, Measured, PublishedTarget, Reason, RecubeRecord, TargetCause, TargetRow, WHOLE_TREE, Way,
};
use crate::record::trace::FunctionCalls;

/// The file that is masked.
pub(crate) const TARGET: &str = "src/made/core.py";
/// Its text.
pub(crate) const ORIGINAL: &str = "import os\n\n\ndef first(a):\n    '''Doc.'''\n    b = a + 1\n    return os.sep * b\n\n\n\
                            def second(a):\n    return first(a)\n\n\ndef third():\n    return 3\n";
/// A file that calls into it.
const CALLER: &str = "src/made/api.py";

impl MadeUp {
    /// Repositories with one masked file each, which all tests that are kept judge but for the last case.
    pub(crate) fn masked(sizes: &[usize]) -> Self {
        let mut made_up = MadeUp::new(sizes);
        made_up.config.dataset.family = Family::Recube;
        made_up.subsets.retain(|one| one.ranges.is_empty());
        for contribution in &mut made_up.repositories {
            add(contribution);
        }
        made_up
    }
}

fn add(contribution: &mut Contribution) {
    let tree = contribution.evidence.pinned.tree.clone();
    for (path, text) in
        [(TARGET, ORIGINAL), (CALLER, "from .core import second\n\n\ndef run():\n    return second(1)\n")]
    {
        fs_err::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
        fs_err::write(tree.join(path), text).unwrap();
    }
    let groups: Vec<_> = contribution.evidence.groups.iter().map(|group| group.unwrap()).collect();
    let chosen: Vec<_> =
        groups.iter().filter(|one| contribution.published.contains(&one.instance_id)).collect();
    let mut cases: Vec<InstanceCase> = Vec::new();
    for (at, one) in chosen.iter().enumerate() {
        let reason = if at == 0 { Reason::TestCallsPrivate } else { Reason::OtherFileCalls };
        let way = if at == 0 { Way::Direct } else { Way::Through };
        cases.extend(one.group.cases.iter().map(|case| InstanceCase {
            group_id: one.group.group_id.clone(),
            case_id: case.case_id.clone(),
            kind: reason.kind().unwrap(),
            reason,
            way,
            left_out: None,
        }));
    }
    if let Some(last) = cases.last_mut() {
        last.left_out = Some("imports-kept".to_owned());
    }
    let calls = |name: &str, line: u32, order: u32| FunctionCalls {
        file: TARGET.to_owned(),
        function: name.to_owned(),
        line,
        calls: 2,
        order,
        lines: Some(vec![line + 1]),
        callers: None,
    };
    let traces = chosen.iter().flat_map(|one| {
        [("second", 10, 0), ("first", 4, 1)]
            .map(|(name, line, order)| (one.group.group_id.clone(), calls(name, line, order)))
    });
    let masked = mask(ORIGINAL, Cut::All).unwrap();
    let pinned = &contribution.evidence.pinned;
    let measured = Measured {
        target_lines: ORIGINAL.lines().count() as u64,
        target_statements: masked.functions.iter().map(|one| u64::from(one.statements)).sum(),
        functions: 3,
        masked_functions: 3,
        called_functions: 2,
        docstring_none: 2,
        docstring_line: 1,
        reached_by: chosen.len() as u64,
        callers: vec![CALLER.to_owned()],
        trace_calls: 4 * chosen.len() as u64,
        imports_removed: masked.imports.into(),
        ..Measured::default()
    };
    let files: BTreeSet<String> = groups.iter().map(|one| one.group.file.clone()).collect();
    let published = PublishedTarget {
        instance_id: InstanceId::of_target(&pinned.slug, &pinned.commit, WHOLE_TREE, TARGET),
        file: TARGET.to_owned(),
        scope: WHOLE_TREE.to_owned(),
        large: false,
        measured: measured.clone(),
        noticed_functions: 2,
        unnoticed: vec!["third".to_owned()],
        mutants: (0, 0),
        masked_sha256: sha256_hex(masked.text.as_bytes()),
        masked: masked.text,
        original_sha256: sha256_hex(ORIGINAL.as_bytes()),
        flags: Vec::new(),
        cases,
        attempts: 12,
        hidden_files: files.into_iter().collect(),
        leaks: Vec::new(),
        context: "<readme>\n</readme>\n".to_owned(),
        context_tokens: crate::family::tokens::count("<readme>\n</readme>\n"),
        target_tokens: Some(60),
        traces: traces.collect(),
    };
    let kept = TargetRow {
        file: TARGET.to_owned(),
        cause: None,
        evidence: None,
        rank: Some(1),
        published: true,
        measured,
    };
    let dropped = TargetRow {
        file: CALLER.to_owned(),
        cause: Some(TargetCause::FewFunctions),
        evidence: Some("1 of at least 3 functions has a body".to_owned()),
        rank: None,
        published: false,
        measured: Measured { functions: 1, masked_functions: 1, ..Measured::default() },
    };
    contribution.family = Family::Recube;
    contribution.recube = Some(RecubeRecord {
        targets: vec![dropped, kept],
        published: vec![published],
        domain: Some("web".to_owned()),
    });
}
