//! What `gistmill verify` runs of a dataset of pairs of commits.

use super::{VerifyArguments, prepare, sampled};
use crate::cli::Arguments;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::verify::instances::Verified;
use crate::verify::{Verification, pairs};

/// Judges golden and empty patches, each a whole run of the suite.
pub(super) fn run(arguments: &Arguments, asked: &VerifyArguments, found: &mut Verification) -> Result<()> {
    let (mut restored, rows, others) = asked.restore.open_rows(arguments, Dataset::codetaste_instances)?;
    // Said with the tables.
    let Some(hidden) = restored.dataset.hidden_pairs_if_there()? else { return Ok(()) };
    let left_out = "cold runs of the entry commands: whole suites judge here";
    let instances = sampled(asked, (&mut restored, &others), rows, (found, left_out));
    for repo in restored.repositories() {
        let (mut repository, prepared) = prepare(&restored, repo, &mut found.machine)?;
        if let Some(prepared) = prepared {
            let own = || instances.iter().filter(|one| one.head.slug == repo.slug);
            let steps = own().count() as u64 * u64::from(asked.attempts);
            let stage = restored.job.progress.stage(&format!("{} verify", repo.slug), steps);
            for one in own() {
                let id = one.head.instance_id.as_str();
                let verified = match hidden.get(id) {
                    Some(hidden) => {
                        let limit = restored.job.config.codetaste.suite_timeout;
                        let place = (&prepared, &restored.job.cache, limit);
                        let sandbox = || restored.job.machine.sandbox();
                        let machine = (&restored.dataset.manifest.machine, &mut found.machine);
                        let step = || stage.step();
                        pairs::verify(place, &sandbox, (one, hidden), asked.attempts, machine, &step)?
                    }
                    None => Verified {
                        instance_id: id.to_owned(),
                        tables: vec!["hidden/ has nothing of it".to_owned()],
                        ..Verified::default()
                    },
                };
                repository.instances.push(verified);
            }
        }
        found.repositories.push(repository);
    }
    Ok(())
}
