//! An instance as subsets see it, and as rows of tables.

use super::{CodetasteInstance, axis_name, instances};
use crate::dataset::rated::Rate;
use crate::dataset::schema::ColumnOf;
use crate::dataset::write::InstanceRow;
use crate::family::tier::Difficulty;
use crate::record::id::{InstanceId, RepoSlug};
use crate::record::instance::{Axis, Tier};
use crate::subset::{Measure, Member};

impl Member for CodetasteInstance {
    fn instance_id(&self) -> &InstanceId {
        &self.head.instance_id
    }

    fn slug(&self) -> &RepoSlug {
        &self.head.slug
    }

    fn tier(&self) -> Tier {
        self.tier
    }

    fn is_top(&self) -> bool {
        !self.hard_axes.is_empty()
    }

    fn measured(&self, measure: Measure) -> Option<f64> {
        let number = match measure {
            Measure::FilesChanged => self.files_changed,
            Measure::FilesMoved => self.files_moved,
            Measure::LinesAdded => self.lines_added,
            Measure::LinesRemoved => self.lines_removed,
            Measure::NAdditive => self.n_additive,
            Measure::NReductive => self.n_reductive,
            Measure::NMustPass => self.n_must_pass,
            Measure::TestsBase => self.tests_base,
            Measure::GoldenPrec => return self.golden_prec,
            Measure::NCases
            | Measure::TraceLength
            | Measure::TraceLengthPackage
            | Measure::TraceLengthTotal
            | Measure::UniqueFiles
            | Measure::UniqueFunctions
            | Measure::ExecutedLines
            | Measure::ImportCalls
            | Measure::ImportFiles
            | Measure::Attempts
            | Measure::FlakeBound
            | Measure::Mutants
            | Measure::MutationScore
            | Measure::NeededStatements
            | Measure::TargetLines
            | Measure::TargetStatements
            | Measure::MaskedFunctions
            | Measure::CalledFunctions
            | Measure::NoticedFunctions
            | Measure::ReachedBy
            | Measure::NGroups
            | Measure::NExternal
            | Measure::NInternal
            | Measure::CallerFiles
            | Measure::TraceCalls => return None,
        };
        Some(number as f64)
    }
}

impl InstanceRow for CodetasteInstance {
    fn columns() -> Vec<ColumnOf<Self>> {
        instances()
    }
}

impl Rate for CodetasteInstance {
    fn difficulty(&self) -> Difficulty {
        Difficulty { trace_length: self.lines_added + self.lines_removed, unique_files: self.files_changed }
    }

    fn set(&mut self, tier: Tier, hard_axes: Vec<Axis>) {
        self.tier = tier;
        self.hard_axes = hard_axes.into_iter().map(|axis| axis_name(axis).to_owned()).collect();
    }
}
