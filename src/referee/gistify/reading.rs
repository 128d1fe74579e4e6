//! What is known of a submission before anything runs: its lines, its findings, and the texts to run.

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;

use super::evaluate::{Case, Referee};
use super::ground::{Code, Ground};
use super::judged::Judged;
use super::original::{LARGEST_TEST, Original};
use crate::beneath::Folder;
use crate::error::{Error, OrWhy, Result};
use crate::family::gistify::{
    Against, Effect, Evaluated, Finding, NotInjected, Overlap, Scenery, TestName, Violation,
    counts_for_commands, findings, in_file, inject_inherited, strict_findings, test_overlap,
};
use crate::python_source::decoded;
use crate::record::id::{hash_parts, sha256_hex};
use crate::record::variant::Variant;
use crate::referee::submissions::Submission;
use crate::score::{File, Unreadable, text_of};

/// Raised when the same submission may be judged otherwise.
const SCORER: &str = "score-11";
impl Referee<'_> {
    /// A submission with each variant of its test in it.
    pub(super) fn variant_texts(
        &self,
        tree: &Folder,
        original: &Original<'_>,
        submitted: &[u8],
    ) -> Result<Vec<String>> {
        let (path, defined) = original.definition();
        let source = decoded(&tree.read_through_links(Path::new(path), LARGEST_TEST)?);
        let modules = &self.ground.code.modules;
        let text = |variant: &Variant| {
            let edited = in_file(&source, defined, &variant.source).ok().flatten()?;
            let file = File { path, text: &edited };
            Some(
                inject_inherited(text_of(submitted).ok()?, file, defined, &original.test, modules).ok()?.text,
            )
        };
        let texts: Option<Vec<String>> = original.variants.par_iter().map(text).collect();
        texts.ok_or_else(|| {
            Error::usage(format!("a variant of {} does not fit its test in {path}", original.id))
                .with_hint("hidden/variants.jsonl and the tree have to be of one build")
        })
    }

    /// What decides about a judgement: the same key, the same judgement.
    pub(crate) fn key(&self, original: &Original<'_>, text: Option<&[u8]>) -> String {
        let lab = self.lab;
        hash_parts(&[
            SCORER,
            &crate::runner::version_hash(),
            &lab.built.key,
            &lab.backend.isolation().kind,
            &self.ground.key,
            original.id.as_str(),
            &format!("{:?} {}", original.definition(), original.can_be_sabotaged),
            &serde_json::to_string(&(original.golden, original.traced)).unwrap_or_default(),
            &serde_json::to_string(&(original.variants, &original.entry)).unwrap_or_default(),
            &format!("{:?} {:?} {}", lab.timeouts, lab.setting.limits, lab.setting.output_bytes),
            &format!("{:?} {}", self.policy, lab.compare.as_str()),
            &text.map_or_else(|| "nothing".to_owned(), sha256_hex),
        ])
    }

    /// What can be said before anything runs.
    pub(super) fn read<'a>(
        &self,
        tree: &Folder,
        original: &'a Original<'a>,
        submission: &Submission,
    ) -> Result<Case<'a>> {
        let mut judged = Judged::empty(submission.text.as_deref());
        if original.entry.is_some() {
            return Ok(self.read_of_command(original, submission, judged));
        }
        let (path, defined) = original.definition();
        let source = decoded(&tree.read_through_links(Path::new(path), LARGEST_TEST)?);
        let file = File { path, text: &source };
        let mut evaluated = None;
        if let Some(bytes) = &submission.text {
            match text_of(bytes)
                .and_then(|text| self.examine(text, (file, defined), &original.test, &mut judged))
            {
                Ok(Ok(ready)) => evaluated = Some(ready),
                Ok(Err(NotInjected::Missing)) => judged.missing = true,
                Ok(Err(NotInjected::Unparsable { reason })) | Err(reason) => judged.cannot_be_read(reason),
                Ok(Err(NotInjected::Original { reason })) => {
                    return Err(Error::usage(format!(
                        "{path}: the test of {} cannot be read: {reason:?}",
                        original.id
                    )));
                }
            }
        }
        judged.take_injection(evaluated.as_ref());
        let decided = forbids(&judged.findings, &self.policy.allowed);
        let module = self.ground.code.modules.module_of(original.file);
        Ok(Case::new(original, module, judged, evaluated.filter(|_| !decided)))
    }

    /// What can be said of a file for a command before it runs: there is no test in it.
    pub(super) fn read_of_command<'a>(
        &self,
        original: &'a Original<'a>,
        submission: &Submission,
        mut judged: Judged,
    ) -> Case<'a> {
        judged.row.test_f1 = None;
        judged.is_command = true;
        let mut evaluated = None;
        if let Some(bytes) = &submission.text {
            match text_of(bytes).and_then(|text| self.look_through(text, &mut judged).map(|()| text)) {
                Ok(text) => evaluated = Some(Evaluated::as_it_is(text)),
                Err(reason) => {
                    judged.cannot_be_read(reason);
                    judged.row.test_f1 = None;
                }
            }
        }
        judged.evaluated_sha256 = evaluated.as_ref().map(|it| sha256_hex(it.text.as_bytes()));
        let decided = forbids(&judged.findings, &self.policy.allowed);
        Case::new(original, String::new(), judged, evaluated.filter(|_| !decided))
    }

    /// Lines and findings of a file for a command.
    pub(super) fn look_through(
        &self,
        text: &str,
        judged: &mut Judged,
    ) -> std::result::Result<(), Unreadable> {
        let Ground { code: Code { modules, sources }, corpus, .. } = self.ground;
        let root = self.lab.setting.places.root.to_string_lossy();
        let test = TestName { classes: Vec::new(), function: String::new() };
        let scenery = Scenery { modules, test: &test, root: &root, hidden: sources };
        let existence = corpus.line_existence(text)?;
        let none = Against { original: File { path: "", text: "" }, defined: &test, corpus };
        let mut found = findings(text, scenery)?;
        found.extend(strict_findings(text, scenery, none)?);
        found.retain(counts_for_commands);
        judged.read_as(existence, found);
        Ok(())
    }

    /// Lines, findings and test of a text, and the text to run.
    pub(super) fn examine(
        &self,
        text: &str,
        (original, defined): (File<'_>, &TestName),
        test: &TestName,
        judged: &mut Judged,
    ) -> std::result::Result<OrWhy<Evaluated, NotInjected>, Unreadable> {
        let Ground { code: Code { modules, sources }, corpus, .. } = self.ground;
        let root = self.lab.setting.places.root.to_string_lossy();
        let scenery = Scenery { modules, test, root: &root, hidden: sources };
        let existence = corpus.line_existence(text)?;
        let mut found = findings(text, scenery)?;
        found.extend(strict_findings(text, scenery, Against { original, defined, corpus })?);
        judged.read_as(existence, found);
        let overlap = test_overlap(text, original, defined, modules);
        judged.row.test_f1 = overlap.ok().flatten().map(Overlap::f1);
        Ok(inject_inherited(text, original, defined, test, modules))
    }
}

fn forbids(found: &[Finding], allowed: &BTreeSet<Violation>) -> bool {
    found.iter().any(|finding| match finding.kind.effect() {
        Effect::ImportError => true,
        Effect::Violation => Violation::of(finding.kind).is_some_and(|one| !allowed.contains(&one)),
        Effect::Flag => false,
    })
}
