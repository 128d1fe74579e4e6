//! Rule files become rules, or all of their problems with file and line.

use std::collections::BTreeMap;

use super::conditions::{self, KEYS};
use super::matching::Match;
use super::{Action, Rule};
use crate::document::section::{Field, Located, Section};
use crate::document::{self, Problem, Problems, suggest};
use crate::record::verdict::{Cause, Dimension};
use crate::redact::quote;

const RULE: [&str; 5] = ["id", "reason", "action", "causes", "match"];
const ACTIONS: [&str; 3] = ["flag", "drop", "keep"];
const EXAMPLE: &str = r#"[[rule]]
id = "sleeps"
reason = "waits for time to pass"
action = "flag"

[rule.match]
source = 'time\.sleep\('"#;

/// A problem and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    pub file: String,
    pub problem: Problem,
}

impl Misplaced {
    /// `file:LINE: message`, and the hint indented below it.
    pub fn render(&self) -> String {
        self.problem.render(&self.file)
    }
}

/// What spans several files: ids, and the rules that `keep` rules name.
#[derive(Default)]
struct Across {
    /// Id to `file:line`.
    ids: BTreeMap<String, String>,
    /// Index of the file, offset in it, id.
    named: Vec<(usize, usize, String)>,
}

/// Reads files, given as name and text. A `keep` may also name the rules that are known already.
pub(super) fn load(files: &[(&str, &str)], known: &[Rule]) -> Result<Vec<Rule>, Vec<Misplaced>> {
    let mut across = Across::default();
    let mut rules = Vec::new();
    let mut found: Vec<Problems<'_>> = Vec::new();
    for (number, (name, text)) in files.iter().enumerate() {
        let mut problems = Problems::new(text);
        let table = document::parse(text, &mut problems);
        let root = Section::root(table.get_ref());
        root.refuse_unknown(&["rule"], |_| None, &mut problems);
        if !root.has_some("rule") {
            problems.missing_section("this file has no rule", format!("add one, as in\n{EXAMPLE}"));
        }
        let mut reader = Reader { file: (number, name), across: &mut across, problems: &mut problems };
        rules
            .extend(root.sections("rule", reader.problems).iter().filter_map(|section| reader.rule(section)));
        found.push(problems);
    }
    refuse_unknown_rules(&across, known, &mut found);
    let misplaced: Vec<Misplaced> = files
        .iter()
        .zip(found)
        .flat_map(|((file, _), problems)| {
            problems.into_sorted().into_iter().map(|problem| Misplaced { file: (*file).to_owned(), problem })
        })
        .collect();
    if misplaced.is_empty() { Ok(rules) } else { Err(misplaced) }
}

fn refuse_unknown_rules(across: &Across, known: &[Rule], found: &mut [Problems<'_>]) {
    let known = known.iter().map(|rule| rule.id.as_str());
    let known: Vec<&str> = across.ids.keys().map(String::as_str).chain(known).collect();
    for (file, at, id) in &across.named {
        if !known.contains(&id.as_str()) {
            found[*file].add(*at, format!("there is no rule {}", quote(id)), Some(suggest::hint(id, &known)));
        }
    }
}

struct Reader<'r, 't> {
    file: (usize, &'r str),
    across: &'r mut Across,
    problems: &'r mut Problems<'t>,
}

impl Reader<'_, '_> {
    fn rule(&mut self, section: &Section<'_>) -> Option<Rule> {
        section.refuse_unknown(
            &RULE,
            |key| KEYS.contains(&key).then(|| "[rule.match]".to_owned()),
            self.problems,
        );
        let id = self.id(section);
        let reason = self.required(section, "reason", "say why, for the person who asks");
        let action = self.action(section);
        let matches = self.conditions(section);
        if let Some(reason) = reason.filter(|reason| reason.value.trim().is_empty()) {
            self.problems.add(
                reason.at,
                "`reason` is empty",
                Some("say why, for the person who asks".to_owned()),
            );
        }
        Some(Rule { id: id?, reason: reason?.value.to_owned(), action: action?, matches: matches? })
    }

    fn required<'a>(&mut self, section: &Section<'a>, key: &str, hint: &str) -> Option<Located<&'a str>> {
        match section.text(key, self.problems) {
            Field::Missing => {
                self.problems.missing_key(
                    section.at,
                    format!("missing key `{key}` in {}", section.name),
                    hint,
                );
                None
            }
            field => field.given(),
        }
    }

    fn id(&mut self, section: &Section<'_>) -> Option<String> {
        let text = self.required(section, "id", "add id = \"…\", words with `-` between them")?;
        if !is_id(text.value) {
            let hint = "use lower-case letters and digits, words with `-` between them".to_owned();
            self.problems.add(text.at, format!("{} is not the id of a rule", quote(text.value)), Some(hint));
            return None;
        }
        let place = format!("{}:{}", self.file.1, self.problems.line(text.at));
        if let Some(first) = self.across.ids.get(text.value) {
            self.problems.add(text.at, format!("rule `{}` is already in {first}", text.value), None);
            return None;
        }
        self.across.ids.insert(text.value.to_owned(), place);
        Some(text.value.to_owned())
    }

    fn action(&mut self, section: &Section<'_>) -> Option<Action> {
        let causes = section.texts("causes", self.problems);
        let text = self.required(section, "action", "add action = \"flag\", \"drop\" or \"keep\"")?;
        let action = match text.value {
            "keep" => return self.causes(section, causes).map(Action::Keep),
            "flag" => Action::Flag,
            "drop" => Action::Drop,
            other => {
                let hint = suggest::hint(other, &ACTIONS);
                self.problems.add(text.at, format!("unknown action {}", quote(other)), Some(hint));
                return None;
            }
        };
        if let Some(causes) = causes.given() {
            let hint = "`causes` says which verdicts a `keep` overrides".to_owned();
            self.problems.add(
                causes.at,
                format!("`causes` does not go with action `{}`", text.value),
                Some(hint),
            );
        }
        Some(action)
    }

    fn causes(&mut self, section: &Section<'_>, field: Field<Vec<Located<&str>>>) -> Option<Vec<Cause>> {
        let known = known_causes();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = "name the causes that it overrides, as in causes = [\"nondeterministic-output\"]";
        let list = match field {
            Field::Refused => return None,
            Field::Missing => {
                self.problems.missing_key(
                    section.at,
                    "missing key `causes` in [[rule]]: a `keep` needs it",
                    hint,
                );
                return None;
            }
            Field::Given(list) => list,
        };
        if list.value.is_empty() {
            self.problems.add(
                list.at,
                "`causes` is empty, so this `keep` overrides nothing",
                Some(hint.to_owned()),
            );
        }
        let mut causes = Vec::new();
        for text in &list.value {
            if let Ok(cause) = Cause::try_from(text.value.to_owned()) {
                if let Cause::Rule(id) = &cause {
                    self.across.named.push((self.file.0, text.at, id.clone()));
                }
                causes.push(cause);
            } else {
                let hint = suggest::hint(text.value, &known);
                self.problems.add(text.at, format!("unknown cause {}", quote(text.value)), Some(hint));
            }
        }
        Some(causes)
    }

    fn conditions(&mut self, rule: &Section<'_>) -> Option<Match> {
        let mut section = match rule.section("match", self.problems) {
            Field::Refused => return None,
            Field::Missing => {
                let hint = "add a section [rule.match] that says which tests it is about";
                self.problems.missing_key(rule.at, "missing section [rule.match] of this [[rule]]", hint);
                return None;
            }
            Field::Given(section) => section.value,
        };
        "[rule.match]".clone_into(&mut section.name);
        section.refuse_unknown(
            &KEYS,
            |key| RULE.contains(&key).then(|| "[[rule]]".to_owned()),
            self.problems,
        );
        if !KEYS.iter().any(|key| section.has(key)) {
            let message = "[rule.match] is empty, so the rule would match every test";
            self.problems.add(section.at, message, Some(format!("known: {}", suggest::list(&KEYS))));
        }
        Some(conditions::read(&section, self.problems))
    }
}

fn is_id(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.split('-').all(is_word)
}

/// Spellings of all causes that are not rules.
fn known_causes() -> Vec<String> {
    let plain = Cause::named().map(|cause| cause.to_string());
    plain.chain(Dimension::ALL.map(|dimension| Cause::DependsOn(dimension).to_string())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rendered(files: &[(&str, &str)]) -> Vec<String> {
        load(files, &[]).unwrap_err().iter().map(Misplaced::render).collect()
    }

    #[test]
    fn a_file_with_many_mistakes_reports_each_with_its_line() {
        let text = "\
[[rule]]
id = 'Bad Id'
reason = ''
action = 'keap'
[rule.match]
sorce = 'x'

[[rule]]
id = 'good'
reason = 'r'
action = 'keep'
causes = ['fail', 'rule:other']
path = 'x'
[rule.match]
name = '('
min_cases = 5
max_cases = 2
max_duration = '5 apples'
";
        assert_eq!(
            rendered(&[("a.toml", text)]),
            [
                "a.toml:2: `Bad Id` is not the id of a rule\n  hint: use lower-case letters and digits, words with `-` between them",
                "a.toml:3: `reason` is empty\n  hint: say why, for the person who asks",
                "a.toml:4: unknown action `keap`\n  hint: did you mean `keep`?",
                "a.toml:5: [rule.match] is empty, so the rule would match every test\n  hint: known: `path`, `name`, `marker`, `fixture`, `source`, `calls`, `uses`, `node`, `repository`, `min_cases`, `max_cases`, `min_duration`, `max_duration`, `min_trace_length`, `max_trace_length`, `min_unique_files`, `max_unique_files`, `kind`, `command`, `origin`",
                "a.toml:6: unknown key `sorce` in [rule.match]\n  hint: did you mean `source`?",
                "a.toml:12: unknown cause `fail`\n  hint: did you mean `fails`?",
                "a.toml:12: there is no rule `other`\n  hint: known: `good`",
                "a.toml:13: unknown key `path` in [[rule]]\n  hint: `path` belongs to [rule.match]",
                "a.toml:15: name `(` does not compile: unclosed group",
                "a.toml:17: max_cases is below min_cases, so nothing matches",
                "a.toml:18: max_duration `5 apples` is not a duration\n  hint: write it like \"60s\", \"5m\", \"1h30m\" or \"500ms\"",
            ]
        );
    }

    #[test]
    fn bad_conditions_on_code_are_named_with_what_was_probably_meant() {
        let text = "\
[[rule]]
id = 'a'
reason = 'r'
action = 'flag'
[rule.match]
calls = ['requests.get(', '']
uses = []
node = ['Lambda', 'AsyncFuncDef', 'lambda']
call = 'x'
";
        let said = rendered(&[("a.toml", text)]);
        assert_eq!(
            said[..6],
            [
                "a.toml:6: calls `requests.get(` does not compile: no dotted name has `(` in it",
                "a.toml:6: `calls` has an empty pattern",
                "a.toml:7: `uses` is empty\n  hint: leave it out to match all",
                "a.toml:8: node `AsyncFuncDef` is not a kind of node in Python's `ast`\n  hint: did you mean `AsyncFunctionDef`?",
                "a.toml:8: node `lambda` is not a kind of node in Python's `ast`\n  hint: did you mean `Lambda`?",
                "a.toml:9: unknown key `call` in [rule.match]\n  hint: did you mean `calls`?",
            ]
            .map(str::to_owned)[..]
        );
    }

    #[test]
    fn a_keep_may_name_a_rule_that_is_known_already() {
        let rule = |id: &str, rest: &str| {
            format!("[[rule]]\nid = '{id}'\nreason = 'r'\n{rest}\nmatch = {{name = 'x'}}\n")
        };
        let known = load(&[("a.toml", &rule("a", "action = 'drop'"))], &[]).unwrap();
        let keep = rule("b", "action = 'keep'\ncauses = ['rule:a']");
        assert_eq!(load(&[("b.toml", &keep)], &known).map(|rules| rules.len()), Ok(1));
        assert!(load(&[("b.toml", &keep)], &[]).unwrap_err()[0].render().contains("there is no rule `a`"));
    }

    #[test]
    fn an_id_is_unique_across_files() {
        let text = "[[rule]]\nid = 'a'\nreason = 'r'\naction = 'flag'\nmatch = {name = 'x'}\n";
        assert_eq!(
            rendered(&[("a.toml", text), ("b.toml", text)]),
            ["b.toml:2: rule `a` is already in a.toml:2"]
        );
    }

    #[test]
    fn what_is_missing_is_named_at_the_rule() {
        let lines: Vec<String> = rendered(&[("a.toml", "\n[[rule]]\n")]);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("a.toml:2: missing")), "{lines:?}");
    }

    #[test]
    fn a_file_without_rules_is_a_mistake() {
        assert!(
            rendered(&[("a.toml", "# nothing\n")])[0]
                .starts_with("a.toml:1: this file has no rule\n  hint: add one")
        );
    }

    #[test]
    fn causes_go_with_keep_only() {
        let text = "[[rule]]\nid='a'\nreason='r'\naction='flag'\ncauses=['fails']\nmatch={name='x'}\n";
        assert!(
            rendered(&[("a.toml", text)])[0].starts_with("a.toml:5: `causes` does not go with action `flag`")
        );
    }

    #[test]
    fn the_schema_knows_the_keys_and_causes_that_are_read_and_no_other() {
        let schema: serde_json::Value = serde_json::from_str(crate::rules::SCHEMA).unwrap();
        let rule = &schema["properties"]["rule"]["items"]["properties"];
        let names = |value: &serde_json::Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let known =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert_eq!(names(rule), known(&RULE));
        assert_eq!(names(&rule["match"]["properties"]), known(&KEYS));
        assert_eq!(rule["action"]["enum"], serde_json::json!(ACTIONS));
        assert_eq!(rule["causes"]["items"]["anyOf"][0]["enum"], serde_json::json!(known_causes()));
    }
}
