//! What an agent may do and reads beside the task itself: the settings that the Gistify paper compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the agent may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionSetting {
    /// No interpreter and no test runner.
    None,
    /// Any command.
    #[default]
    Bash,
    /// Only the file that it writes, by the tool that edits it.
    EditAndExecute,
}

impl ExecutionSetting {
    /// Every value.
    pub const ALL: [ExecutionSetting; 3] =
        [ExecutionSetting::None, ExecutionSetting::Bash, ExecutionSetting::EditAndExecute];

    /// The one spelling of it.
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionSetting::None => "none",
            ExecutionSetting::Bash => "bash",
            ExecutionSetting::EditAndExecute => "edit-and-execute",
        }
    }
}

/// How the agent should go about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Nothing is said.
    #[default]
    Base,
    /// Predict the calls, and follow them.
    Tracing,
    /// Start from the test, and follow what it uses.
    Reading,
}

impl Strategy {
    /// Every value.
    pub const ALL: [Strategy; 3] = [Strategy::Base, Strategy::Tracing, Strategy::Reading];

    /// The one spelling of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::Base => "base",
            Strategy::Tracing => "tracing",
            Strategy::Reading => "reading",
        }
    }
}

/// What an agent's image holds beside the tree: the tools that the Gistify paper compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Writes the file and runs its test.
    Edit,
    /// The functions that the test calls.
    Trace,
    /// Definitions and references in the repository.
    Search,
}

impl Tool {
    /// Every value.
    pub const ALL: [Tool; 3] = [Tool::Edit, Tool::Trace, Tool::Search];

    /// The one spelling of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Tool::Edit => "edit",
            Tool::Trace => "trace",
            Tool::Search => "search",
        }
    }
}

/// One setting: `[prompt]` of the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PromptSettings {
    pub execution: ExecutionSetting,
    pub strategy: Strategy,
    /// Whether the source of the test is in the prompt.
    pub test_in_prompt: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_as_it_is_called() {
        let written = |value: serde_json::Value| value.as_str().unwrap().to_owned();
        for one in ExecutionSetting::ALL {
            assert_eq!(written(serde_json::to_value(one).unwrap()), one.as_str());
        }
        for one in Tool::ALL {
            assert_eq!(written(serde_json::to_value(one).unwrap()), one.as_str());
        }
        for one in Strategy::ALL {
            assert_eq!(written(serde_json::to_value(one).unwrap()), one.as_str());
        }
    }
}
