//! What an agent may do and reads beside the task itself: the settings that the Gistify paper compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spelling::spelling;

spelling! {
    /// What the agent may run.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ExecutionSetting, ALL {
        /// No interpreter and no test runner.
        None "none",
        /// Any command.
        #[default]
        Bash "bash",
        /// Only the file that it writes, by the tool that edits it.
        EditAndExecute "edit-and-execute",
    }
}

spelling! {
    /// How the agent should go about it.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Strategy, ALL {
        /// Nothing is said.
        #[default]
        Base "base",
        /// Predict the calls, and follow them.
        Tracing "tracing",
        /// Start from the test, and follow what it uses.
        Reading "reading",
    }
}

spelling! {
    /// What an agent's image holds beside the tree: the tools that the Gistify paper compares.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
    #[serde(rename_all = "kebab-case")]
    pub enum Tool, ALL {
        /// Writes the file and runs its test.
        Edit "edit",
        /// The functions that the test calls.
        Trace "trace",
        /// Definitions and references in the repository.
        Search "search",
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
