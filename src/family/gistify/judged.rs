//! What a judge outside of gistmill has to know of a test and its repository.

use std::collections::BTreeSet;

use super::inject::parts;
use super::locate::TestName;
use super::strict::taken_from_outside;
use super::{in_file, test_name};
use crate::error::{Error, Result};
use crate::family::{Running, Sources};
use crate::record::id::sha256_hex;
use crate::record::instance::Instance;
use crate::record::patch::Patch;
use crate::record::task::{JudgedVariant, OriginalTest, pytest_settings};
use crate::record::variant::{Variant, VariantCase};
use crate::score::{File, Masks};

/// The test of an instance.
pub(super) fn original(instance: &Instance, running: &Running) -> OriginalTest {
    let name = test_name(instance);
    let plain = OriginalTest {
        defined_as: name.clone(),
        name,
        source: instance.test_source.clone(),
        text: None,
        variants: Vec::new(),
        outside: std::collections::BTreeMap::new(),
    };
    let known =
        running.sources.as_ref().and_then(|sources| known(instance, sources, &running.variants, &plain));
    known.unwrap_or(plain)
}

/// The test of an instance with what its file says. None where the file does not define it.
fn known(
    instance: &Instance,
    sources: &Sources,
    variants: &[Variant],
    plain: &OriginalTest,
) -> Option<OriginalTest> {
    let test: TestName = plain.name.parse().ok()?;
    let file = File { path: &instance.test_file, text: sources.files.get(&instance.test_file)? };
    let (name, text) = parts(file, &test, &sources.modules).ok()??;
    let variants = variants.iter().filter_map(|one| variant(file, &test, sources, one)).collect();
    let outside = taken_from_outside(file, &test, &sources.modules);
    Some(OriginalTest { defined_as: name.to_string(), text: Some(text), variants, outside, ..plain.clone() })
}

fn variant(file: File<'_>, test: &TestName, sources: &Sources, variant: &Variant) -> Option<JudgedVariant> {
    let whole = in_file(file.text, test, &variant.source).ok()??;
    let (_, text) = parts(File { path: file.path, text: &whole }, test, &sources.modules).ok()??;
    let (module, files) = (sources.modules.module_of(file.path), BTreeSet::new());
    let masks = Masks { modules: &sources.modules, files: &files, test_module: &module };
    let masked = |case: &VariantCase| VariantCase {
        exception: case.exception.as_deref().map(|name| masks.exception(name).to_owned()),
        ..case.clone()
    };
    // Where a place of the machine is in a name, it has another one there.
    let is_known = variant.cases.iter().all(|case| !case.case.contains("<tmp>"));
    let cases = variant.cases.iter().map(masked).collect();
    is_known.then(|| JudgedVariant { kind: variant.kind.as_str(), text, cases })
}

/// The settings of pytest that the repository has, and none that it does not have.
pub(super) fn settings(sources: Option<&Sources>) -> Result<Patch> {
    let mut patch = Patch::default();
    for name in pytest_settings().filter(|_| sources.is_some()) {
        let done = match sources.and_then(|sources| sources.files.get(name)) {
            Some(text) => patch.put(name, text.as_bytes().to_vec()),
            None => patch.hide(name),
        };
        done.map_err(|_| Error::internal("settings of pytest cannot be files of a tree"))?;
    }
    Ok(patch)
}

/// SHA-256 of the repository's Python files.
pub(super) fn code(sources: Option<&Sources>) -> Vec<String> {
    let files = sources.iter().flat_map(|sources| &sources.files);
    let code = files.filter(|(path, _)| path.ends_with(".py"));
    code.map(|(_, text)| sha256_hex(text.as_bytes())).collect::<BTreeSet<_>>().into_iter().collect()
}
