//! Witnesses of a repository, kept beside its attempts: what was made once under a key is not made again.

use std::collections::BTreeMap;

use super::cause::Cause;
use super::{Maker, Witnessed};
use crate::attempt::lab::Lab;
use crate::attempt::pool::Terms;
use crate::dataset::private::Private;
use crate::error::Result;
use crate::family::gistify::Violation;
use crate::record::id::{InstanceId, sha256_hex};
use crate::record::witness::{MADE, Witness, WitnessColumns};
use crate::referee::gistify::evaluate::{Policy, Referee};
use crate::referee::gistify::ground::{self, Files, Ground};
use crate::referee::gistify::original::Original;
use crate::store::Cache;
use crate::store::memo::Memo;

/// Instances whose witnesses are made and judged together, so that an interruption costs one portion.
const PORTION: usize = 25;
/// Its place in the folder of the lab.
const FILE: &str = "witnesses";

/// What a witness has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// The file that a submission is.
    pub(crate) file: &'static str,
    /// Variants that it does not pass are dropped from the instance, which is not published yet.
    pub(crate) drops_variants: bool,
}

/// Gives every instance its witness, or the cause why it has none. `begin` is told how many have to be made, and gives
/// what is called as each search ends.
///
/// # Errors
/// IO errors, an interruption, and the harness's when it stays broken.
pub(crate) fn of_repository<S: Fn() + Sync>(
    lab: &Lab,
    cache: &Cache,
    Demand { file, drops_variants }: Demand,
    originals: &[Original<'_>],
    begin: impl FnOnce(u64) -> S,
) -> Result<BTreeMap<InstanceId, Witness>> {
    let ground = Ground::new(lab, cache, Files::Data, file)?;
    let dropped = [Violation::NotTheOriginal, Violation::HardCoded];
    let allowed = dropped.into_iter().filter(|_| drops_variants).collect();
    let policy = Policy { file, allowed, attempts: 1 };
    let referee = Referee { lab, ground: &ground, policy: &policy, terms: &Terms::default() };
    let maker = Maker { lab, ground: &ground, referee: &referee };
    let mut known = Memo::<Witnessed>::open(&lab.folder.join(FILE))?;
    let keyed: Vec<(String, &Original<'_>)> = originals.iter().map(|one| (maker.key(one), one)).collect();
    let missing: Vec<_> = keyed.iter().filter(|(key, _)| known.get(key).is_none()).collect();
    let refused = if missing.is_empty() { None } else { ground::refused(lab, &ground.setting)? };
    let (hopeless, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|(_, original)| refused.is_some() && original.entry.is_none());
    let why = format!("without the repository, {}", refused.unwrap_or_default());
    known
        .extend(hopeless.iter().map(|(key, _)| (key.clone(), Witnessed::without(Cause::NoneAgrees, &why))))?;
    let step = begin(missing.len() as u64);
    for part in missing.chunks(PORTION) {
        let of_part: Vec<&Original<'_>> = part.iter().map(|(_, original)| *original).collect();
        known.extend(part.iter().map(|(key, _)| key.clone()).zip(maker.make(&of_part, &step)?))?;
    }
    let private = Private::of_environment(&lab.built);
    let made = keyed
        .iter()
        .filter_map(|(key, original)| Some((original.id.clone(), published(known.get(key)?, &private))));
    Ok(made.collect())
}

/// What a dataset says of it: nothing of this machine's folders.
fn published(witnessed: &Witnessed, private: &Private) -> Witness {
    match &witnessed.result {
        Ok(made) => Witness {
            columns: WitnessColumns {
                witness: Some(MADE.to_owned()),
                witness_sha256: Some(sha256_hex(made.text.as_bytes())),
                witness_lines: Some(made.lines),
                witness_units: Some(made.units),
                witness_files: Some(made.files.len() as u64),
                witness_line_execution: made.line_execution,
                witness_line_existence: made.line_existence,
            },
            text: Some(made.text.clone()),
            evidence: None,
            dropped_variants: witnessed.dropped_variants.clone(),
        },
        Err(missing) => Witness {
            columns: WitnessColumns {
                witness: Some(missing.cause.as_str().to_owned()),
                ..WitnessColumns::default()
            },
            text: None,
            evidence: Some(private.hide(&missing.evidence)),
            dropped_variants: Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::record::id::RepoSlug;
    use crate::referee::gistify::witness::cause::{Cause, NotMade};
    use crate::testing::made_up;

    #[test]
    fn evidence_that_is_published_names_no_folder_of_the_machine() {
        let mut built = made_up::built(&RepoSlug::new("a/b").unwrap(), Path::new("/cache"));
        built.python_prefix = "/home/someone/python/3.12".into();
        let evidence =
            "asks for tiny (from /home/someone/python/3.12/lib/python3.12/importlib/resources/_common.py)";
        let result = Err(NotMade::new(Cause::ImportsRepository, evidence));
        let witnessed = Witnessed { result, trials: 1, dropped_variants: Vec::new() };
        let said = published(&witnessed, &Private::of_environment(&built)).evidence.unwrap();
        assert_eq!(said, "asks for tiny (from <python>/lib/python3.12/importlib/resources/_common.py)");
    }
}
