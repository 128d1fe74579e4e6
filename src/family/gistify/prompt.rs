//! What an agent is told: a template with slots, and what fills them. The built-in one is in words of the project; another
//! one with the same slots can take its place. Pure.

use std::collections::BTreeSet;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, context};

use crate::error::{Error, Result};
use crate::record::id::sha256_hex;
use crate::record::instance::Instance;
use crate::record::prompt::{PromptSettings, Tool};

const BUILT_IN: &str = include_str!("prompt.md");
/// What the built-in one says of a command that is not a test.
const OF_COMMANDS: &str = include_str!("prompt_of_commands.md");
/// The template's name in messages.
const NAME: &str = "prompt";
/// The name of the one for commands; only the built-in one has it.
const COMMANDS: &str = "prompt of commands";
/// What a template can ask for.
const SLOTS: [&str; 16] = [
    "repository",
    "working_dir",
    "file",
    "entry_command",
    "check_command",
    "test_file",
    "test_source",
    "test_in_prompt",
    "fence",
    "execution",
    "strategy",
    "tools",
    "stdin",
    "stdin_file",
    "cwd",
    "env",
];

/// A template whose slots are all known.
#[derive(Debug)]
pub struct Template {
    text: String,
    environment: Environment<'static>,
}

impl Template {
    /// The one of the project.
    ///
    /// # Errors
    /// None in a tested build.
    pub fn built_in() -> Result<Self> {
        let mut template = Template::new(BUILT_IN.to_owned())?;
        let added = template.environment.add_template(COMMANDS, OF_COMMANDS);
        added.map_err(|error| cannot_be_used(&error))?;
        Ok(template)
    }

    /// A text of somebody's own.
    ///
    /// # Errors
    /// A usage error: it is no template, or asks for what there is not.
    pub fn new(text: String) -> Result<Self> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()
            .map_err(|error| cannot_be_used(&error))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.add_template_owned(NAME, text.clone()).map_err(|error| cannot_be_used(&error))?;
        let template = environment.get_template(NAME).map_err(|error| cannot_be_used(&error))?;
        let asked: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
        if let Some(unknown) = asked.iter().find(|name| !SLOTS.contains(&name.as_str())) {
            return Err(Error::usage(format!("the prompt's template asks for `{unknown}`"))
                .with_hint(format!("it can have {}", SLOTS.join(", "))));
        }
        Ok(Template { text, environment })
    }

    /// The text with its slots.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text.
    pub fn sha256(&self) -> String {
        sha256_hex(self.text.as_bytes())
    }

    /// The prompt of an instance whose image holds these tools. `check` runs what the agent writes to `file`.
    ///
    /// # Errors
    /// A usage error: the template cannot be filled.
    pub fn render(
        &self,
        settings: &PromptSettings,
        tools: &BTreeSet<Tool>,
        instance: &Instance,
        file: &str,
        check: &str,
    ) -> Result<String> {
        let source = instance.test_source.as_deref().unwrap_or_default();
        let of_commands = self.environment.get_template(COMMANDS).ok().filter(|_| !instance.is_test());
        let template = match of_commands {
            Some(template) => template,
            None => self.environment.get_template(NAME).map_err(|error| cannot_be_used(&error))?,
        };
        let rendered = template.render(context! {
            repository => instance.slug.as_str(),
            working_dir => crate::family::WORKDIR,
            file => file,
            entry_command => &instance.entry_command,
            check_command => check,
            test_file => &instance.test_file,
            test_source => source,
            test_in_prompt => settings.test_in_prompt,
            fence => fence(if instance.is_test() { source } else { instance.stdin.as_deref().unwrap_or_default() }),
            execution => settings.execution.as_str(),
            strategy => settings.strategy.as_str(),
            stdin => instance.stdin.as_deref().unwrap_or_default(),
            stdin_file => instance.stdin_file.as_deref().unwrap_or_default(),
            cwd => instance.cwd.as_deref().unwrap_or_default(),
            env => instance.env.clone().unwrap_or_default(),
            tools => tools.iter().map(|tool| tool.as_str()).collect::<Vec<_>>(),
        });
        rendered.map_err(|error| cannot_be_used(&error))
    }
}

fn cannot_be_used(error: &minijinja::Error) -> Error {
    Error::usage(format!("the prompt's template cannot be used: {error}"))
}

/// Backticks that end no sooner than the text between them.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::assemble::Assembled;
    use crate::record::prompt::{ExecutionSetting, Strategy};
    use crate::testing::made_up::MadeUp;

    fn instance() -> Instance {
        Assembled::new(&MadeUp::new(&[12]).input()).unwrap().all().unwrap().remove(0)
    }

    fn render(template: &Template, settings: PromptSettings) -> String {
        let check = "python -m pytest concise.py::TestMade::test_00001";
        template.render(&settings, &BTreeSet::new(), &instance(), "concise.py", check).unwrap()
    }

    fn prompt(settings: PromptSettings) -> String {
        render(&Template::built_in().unwrap(), settings)
    }

    #[test]
    fn the_prompt_names_both_commands_the_file_and_the_rules() {
        let text = prompt(PromptSettings::default());
        assert!(text.contains(&format!("\n```\n{}\n```\n", instance().entry_command)), "{text}");
        assert!(text.contains("\n```\npython -m pytest concise.py::TestMade::test_00001\n```\n"), "{text}");
        assert!(text.contains("`/testbed/concise.py`"), "{text}");
        let rules: Vec<char> = text
            .lines()
            .filter(|line| line.contains(". **"))
            .filter_map(|line| line.chars().next())
            .collect();
        assert_eq!(rules, ['1', '2', '3', '4', '5', '6', '7'], "{text}");
        assert!(!text.contains("\n\n\n") && !text.contains("{%") && text.ends_with("ignored.\n"), "{text}");
    }

    #[test]
    fn the_prompt_forbids_the_code_of_the_tree_and_not_its_data_files() {
        let text = prompt(PromptSettings::default()).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("No code of the tree is imported or read"), "{text}");
        assert!(text.contains(
            "files that are not code (templates, tables, settings) stay where they are, and may be opened"
        ));
    }

    #[test]
    fn every_setting_is_another_prompt() {
        let mut texts = BTreeSet::new();
        for execution in ExecutionSetting::ALL {
            for strategy in Strategy::ALL {
                for test_in_prompt in [false, true] {
                    let text = prompt(PromptSettings { execution, strategy, test_in_prompt });
                    assert!(!text.contains("\n\n\n"), "{text}");
                    texts.insert(text);
                }
            }
        }
        assert_eq!(texts.len(), 18);
    }

    #[test]
    fn a_prompt_names_the_commands_of_the_tools_that_there_are_and_no_others() {
        let template = Template::built_in().unwrap();
        let all = ["write", "replace", "run", "trace", "definitions", "references"];
        let named = |execution, tools: &[Tool]| {
            let settings = PromptSettings { execution, ..PromptSettings::default() };
            let tools = tools.iter().copied().collect();
            let text = template.render(&settings, &tools, &instance(), "concise.py", "x").unwrap();
            assert!(!text.contains("\n\n\n") && !text.contains("{%"), "{text}");
            assert_eq!(text.contains("## Commands"), !tools.is_empty(), "{text}");
            all.into_iter().filter(|one| text.contains(&format!("`gistify {one}"))).collect::<Vec<_>>()
        };
        assert_eq!(named(ExecutionSetting::Bash, &Tool::ALL), all);
        assert_eq!(named(ExecutionSetting::Bash, &[]), [""; 0]);
        assert_eq!(named(ExecutionSetting::Bash, &[Tool::Trace]), ["trace"]);
        assert_eq!(named(ExecutionSetting::Bash, &[Tool::Search]), ["definitions", "references"]);
        assert_eq!(named(ExecutionSetting::None, &[Tool::Edit]), ["write", "replace"]);
    }

    #[test]
    fn the_test_stands_in_the_prompt_only_where_it_is_asked_for_and_ends_its_fence_nowhere() {
        let mut one = instance();
        one.test_source = Some("def test():\n    '''\n```` end\n'''".to_owned());
        let template = Template::built_in().unwrap();
        let render = |test_in_prompt| {
            let settings = PromptSettings { test_in_prompt, ..PromptSettings::default() };
            template.render(&settings, &BTreeSet::new(), &one, "concise.py", "x").unwrap()
        };
        assert!(!render(false).contains("def test()"));
        assert!(
            render(true).contains("\n`````python\ndef test():\n    '''\n```` end\n'''\n`````\n"),
            "{}",
            render(true)
        );
    }

    #[test]
    fn a_template_of_ones_own_has_the_same_slots_and_no_others() {
        let own = Template::new("Do {{ entry_command }} in {{ working_dir }}".to_owned()).unwrap();
        assert!(render(&own, PromptSettings::default()).ends_with(" in /testbed"));
        let error = Template::new("{{ entry_comand }}".to_owned()).unwrap_err();
        assert!(error.to_string().contains("`entry_comand`"), "{error}");
        assert!(error.hint().unwrap_or_default().contains("entry_command"));
        assert!(Template::new("{% if %}".to_owned()).is_err());
    }
}
