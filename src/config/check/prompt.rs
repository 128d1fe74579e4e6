//! `[prompt]`: which of the paper's settings the instances' prompts are for.

use super::flag;
use crate::config::raw::RawPrompt;
use crate::document::section::Field;
use crate::document::{Problems, suggest};
use crate::record::prompt::{ExecutionSetting, PromptSettings, Strategy};
use crate::redact::quote;

use super::super::raw::Text;

pub(super) fn check(raw: &RawPrompt<'_>, problems: &mut Problems<'_>) -> PromptSettings {
    let executions = ExecutionSetting::ALL.map(|one| (one.as_str(), one));
    let strategies = Strategy::ALL.map(|one| (one.as_str(), one));
    PromptSettings {
        execution: one_of("execution", &raw.execution, &executions, problems),
        strategy: one_of("strategy", &raw.strategy, &strategies, problems),
        test_in_prompt: flag(&raw.test_in_prompt, false),
    }
}

fn one_of<T: Copy + Default>(
    key: &str,
    field: &Text<'_>,
    known: &[(&str, T)],
    problems: &mut Problems<'_>,
) -> T {
    let Field::Given(text) = field else { return T::default() };
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == text.value) {
        return *value;
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    problems.add(
        text.at,
        format!("unknown {key} {}", quote(text.value)),
        Some(suggest::hint(text.value, &names)),
    );
    T::default()
}
