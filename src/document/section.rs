//! One table of a TOML file: typed values with their places, unknown keys refused.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Problems, suggest};
use crate::redact::{quote, redact};

/// A value and its byte offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub value: T,
    pub at: usize,
}

/// What a section says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field<T> {
    Missing,
    /// Given with a wrong type, which is already among the problems.
    Refused,
    Given(Located<T>),
}

impl<T> Field<T> {
    /// The value, if a usable one is given.
    pub(crate) fn given(self) -> Option<Located<T>> {
        match self {
            Field::Given(located) => Some(located),
            Field::Missing | Field::Refused => None,
        }
    }

    /// Whether the key is in the file, with whatever value.
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self, Field::Missing)
    }

    /// Where a usable value is.
    pub(crate) fn at(&self) -> Option<usize> {
        if let Field::Given(located) = self { Some(located.at) } else { None }
    }

    /// What is made of a usable value.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Field::Missing => Field::Missing,
            Field::Refused => Field::Refused,
            Field::Given(Located { value, at }) => Field::Given(Located { value: make(value), at }),
        }
    }

    /// What can be made of a usable value; what is wrong with it becomes a problem.
    pub(crate) fn check<U>(
        self,
        problems: &mut Problems<'_>,
        check: impl FnOnce(T) -> Checked<U>,
    ) -> Field<U> {
        let Field::Given(Located { value, at }) = self else { return absent(&self) };
        match check(value) {
            Ok(value) => Field::Given(Located { value, at }),
            Err((message, hint)) => {
                problems.add(at, message, hint);
                Field::Refused
            }
        }
    }
}

impl<T: Clone> Field<T> {
    /// Itself, or the other one when the key is not in the file.
    pub(crate) fn or(&self, other: &Self) -> Self {
        if self.is_present() { self.clone() } else { other.clone() }
    }
}

/// A value, or a message about it with the way out where one is known.
pub(crate) type Checked<T> = Result<T, (String, Option<String>)>;

/// Types that a key can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Text,
    Duration,
    Integer,
    Number,
    Flag,
    Texts,
    Table,
    Tables,
    Bytes,
    Date,
}

impl Wanted {
    fn describe(self) -> &'static str {
        match self {
            Wanted::Text => "a string",
            Wanted::Duration => "a string like \"60s\"",
            Wanted::Integer => "an integer",
            Wanted::Number => "a number",
            Wanted::Flag => "true or false",
            Wanted::Texts => "a list of strings",
            Wanted::Table => "a table",
            Wanted::Tables => "a list of tables",
            Wanted::Bytes => "a number of bytes, or a string like \"512MiB\"",
            Wanted::Date => "a date or a time",
        }
    }

    /// How the value that was given would be written in the wanted type.
    fn hint(self, key: &str, value: &DeValue<'_>) -> Option<String> {
        let written = match (self, value) {
            (Wanted::Text, DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_)) => {
                format!("\"{}\"", plain(value)?)
            }
            (Wanted::Duration, DeValue::Integer(number)) => format!("\"{number}s\""),
            (Wanted::Integer, DeValue::String(text)) => text.parse::<i64>().ok()?.to_string(),
            (Wanted::Number, DeValue::String(text)) => text.parse::<f64>().ok()?.to_string(),
            (Wanted::Flag, DeValue::String(text)) => text.parse::<bool>().ok()?.to_string(),
            (Wanted::Texts, DeValue::String(text)) => format!("[\"{}\"]", quote(text).trim_matches('`')),
            (Wanted::Table, DeValue::Array(list)) => {
                return Some(pairs(key, list).unwrap_or_else(|| format!("write one `[{key}]`")));
            }
            (Wanted::Tables, DeValue::Table(_)) => {
                return Some(format!("write `[[{key}]]`, with two brackets"));
            }
            _ => return None,
        };
        Some(format!("write {} = {written}", redact(key)))
    }
}

/// How a list of `"NAME=value"` is written as a table; values may be secrets, and are left out.
fn pairs(key: &str, list: &[Spanned<DeValue<'_>>]) -> Option<String> {
    let name = |item: &Spanned<DeValue<'_>>| {
        let (name, _) = item.get_ref().as_str()?.split_once('=')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_plain)).then(|| format!("{name} = \"…\""))
    };
    let names: Option<Vec<String>> = list.iter().map(name).collect();
    Some(format!("write {key} = {{ {} }}", names.filter(|names| !names.is_empty())?.join(", ")))
}

/// A plain value as it was typed.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A number of bytes as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes<'a> {
    Number(i128),
    Text(&'a str),
}

/// A table with its name and place.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    table: &'a DeTable<'a>,
    /// As a reader knows it: `[screen]`, `[[repo]]`, or `the file`.
    pub name: String,
    pub at: usize,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn root(table: &'a DeTable<'a>) -> Self {
        Section { table, name: "the file".to_owned(), at: 0 }
    }

    /// Refuses keys other than these; `elsewhere` names the section to which a key belongs instead.
    pub(crate) fn refuse_unknown(
        &self,
        known: &[&str],
        elsewhere: impl Fn(&str) -> Option<String>,
        problems: &mut Problems<'_>,
    ) {
        for (key, value) in self.table {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                continue;
            }
            let what = if value.get_ref().is_table() { "section" } else { "key" };
            // The plural of a key that is known here is a slip, whatever else has that name.
            let is_plural = word.strip_suffix('s').is_some_and(|one| known.contains(&one));
            let hint = match elsewhere(word).filter(|_| !is_plural) {
                Some(section) => format!("`{word}` belongs to {section}"),
                None => suggest::hint(word, known),
            };
            problems.add(
                key.span().start,
                format!("unknown {what} {} in {}", quote(word), self.name),
                Some(hint),
            );
        }
    }

    /// Whether the key exists.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether the key exists, and not an empty list.
    pub(crate) fn has_some(&self, key: &str) -> bool {
        let is_empty = |value: &DeValue<'_>| value.as_array().is_some_and(|list| list.is_empty());
        self.table.get(key).is_some_and(|value| !is_empty(value.get_ref()))
    }

    /// A string.
    pub(crate) fn text(&self, key: &str, problems: &mut Problems<'_>) -> Field<&'a str> {
        self.read(key, Wanted::Text, problems, DeValue::as_str)
    }

    /// A string that means a duration.
    pub(crate) fn duration(&self, key: &str, problems: &mut Problems<'_>) -> Field<&'a str> {
        self.read(key, Wanted::Duration, problems, DeValue::as_str)
    }

    /// An integer; those that no machine can hold become the largest one.
    pub(crate) fn integer(&self, key: &str, problems: &mut Problems<'_>) -> Field<i128> {
        self.read(key, Wanted::Integer, problems, whole)
    }

    /// An integer or a decimal number.
    pub(crate) fn number(&self, key: &str, problems: &mut Problems<'_>) -> Field<f64> {
        self.read(key, Wanted::Number, problems, |value| match value {
            DeValue::Float(number) => number.as_str().parse().ok(),
            #[expect(clippy::cast_precision_loss, reason = "the ranges asked for are far below 2^53")]
            other => whole(other).map(|number| number as f64),
        })
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str, problems: &mut Problems<'_>) -> Field<bool> {
        self.read(key, Wanted::Flag, problems, DeValue::as_bool)
    }

    /// A number of bytes, plain or with a unit.
    pub(crate) fn bytes(&self, key: &str, problems: &mut Problems<'_>) -> Field<Bytes<'a>> {
        self.read(key, Wanted::Bytes, problems, |value| match value {
            DeValue::String(text) => Some(Bytes::Text(text)),
            other => whole(other).map(Bytes::Number),
        })
    }

    /// A date or time, quoted or not, as text.
    pub(crate) fn date(&self, key: &str, problems: &mut Problems<'_>) -> Field<String> {
        self.read(key, Wanted::Date, problems, |value| match value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Datetime(time) => Some(time.to_string()),
            _ => None,
        })
    }

    /// A list of strings.
    pub(crate) fn texts(&self, key: &str, problems: &mut Problems<'_>) -> Field<Vec<Located<&'a str>>> {
        let list = self.read(key, Wanted::Texts, problems, DeValue::as_array);
        let Field::Given(Located { value: list, at }) = list else { return absent(&list) };
        let mut texts = Vec::new();
        for item in list {
            if let Some(value) = item.get_ref().as_str() {
                texts.push(Located { value, at: item.span().start });
            } else {
                let what = describe(item.get_ref());
                problems.add(item.span().start, format!("`{key}` must hold strings only, not {what}"), None);
            }
        }
        if texts.len() == list.len() { Field::Given(Located { value: texts, at }) } else { Field::Refused }
    }

    /// A string, or a list of strings.
    pub(crate) fn text_or_texts(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Field<Vec<Located<&'a str>>> {
        match self.table.get(key).map(|value| value.get_ref().as_str()) {
            Some(Some(_)) => match self.text(key, problems) {
                Field::Given(text) => Field::Given(Located { value: vec![text], at: text.at }),
                other => absent(&other),
            },
            _ => self.texts(key, problems),
        }
    }

    /// A table of strings, in the order of its keys.
    pub(crate) fn pairs(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Field<Vec<(Located<&'a str>, Located<&'a str>)>> {
        let table = self.read(key, Wanted::Table, problems, DeValue::as_table);
        let Field::Given(Located { value: table, at }) = table else { return absent(&table) };
        let mut pairs = Vec::new();
        for (name, value) in table {
            let name = Located { value: &**name.get_ref(), at: name.span().start };
            if let Some(text) = value.get_ref().as_str() {
                pairs.push((name, Located { value: text, at: value.span().start }));
            } else {
                let message =
                    format!("{} must be a string, not {}", quote(name.value), describe(value.get_ref()));
                let hint = Wanted::Text.hint(name.value, value.get_ref());
                problems.add(value.span().start, message, hint);
            }
        }
        if pairs.len() == table.len() { Field::Given(Located { value: pairs, at }) } else { Field::Refused }
    }

    /// A table within this one.
    pub(crate) fn section(&self, key: &str, problems: &mut Problems<'_>) -> Field<Section<'a>> {
        let table = self.read(key, Wanted::Table, problems, DeValue::as_table);
        let Field::Given(Located { value: table, at }) = table else { return absent(&table) };
        Field::Given(Located { value: Section { table, name: format!("[{key}]"), at }, at })
    }

    /// The tables within the table `key`, by their names; empty when missing.
    pub(crate) fn named_sections(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Vec<(Located<&'a str>, Section<'a>)> {
        let Some(parent) = self.section(key, problems).given() else { return Vec::new() };
        let mut sections = Vec::new();
        for (name, value) in parent.value.table {
            let word: &str = name.get_ref();
            let at = name.span().start;
            if let Some(table) = value.get_ref().as_table() {
                let shown = format!("[{key}.{}]", redact(word));
                sections.push((Located { value: word, at }, Section { table, name: shown, at }));
            } else {
                let message =
                    format!("{} in [{key}] must be a table, not {}", quote(word), describe(value.get_ref()));
                problems.add(
                    value.span().start,
                    message,
                    Some(format!("write `[{key}.<name>]`, one section each")),
                );
            }
        }
        sections
    }

    /// An array of tables; empty when missing.
    pub(crate) fn sections(&self, key: &str, problems: &mut Problems<'_>) -> Vec<Section<'a>> {
        let list = self.read(key, Wanted::Tables, problems, DeValue::as_array);
        let mut sections = Vec::new();
        for item in list.given().map(|list| list.value.iter()).into_iter().flatten() {
            let at = item.span().start;
            if let Some(table) = item.get_ref().as_table() {
                sections.push(Section { table, name: format!("[[{key}]]"), at });
            } else {
                let message = format!("`{key}` must hold tables only, not {}", describe(item.get_ref()));
                problems.add(at, message, Some(format!("write `[[{key}]]`, with two brackets")));
            }
        }
        sections
    }

    fn read<T>(
        &self,
        key: &str,
        wanted: Wanted,
        problems: &mut Problems<'_>,
        pick: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Field<T> {
        let Some(spanned) = self.table.get(key) else { return Field::Missing };
        let (value, at) = (spanned.get_ref(), spanned.span().start);
        if let Some(found) = pick(value) {
            let texts = value.as_str().map(|text| (text, at));
            let items = value.as_array().into_iter().flatten();
            let items = items.filter_map(|item| Some((item.get_ref().as_str()?, item.span().start)));
            let odd = texts.into_iter().chain(items).find_map(|(text, at)| Some((control(text)?, at)));
            let Some((odd, at)) = odd else { return Field::Given(Located { value: found, at }) };
            let message = format!("`{key}` has the control character U+{:04X}", u32::from(odd));
            problems.add(at, message, Some("take it out".to_owned()));
            return Field::Refused;
        }
        let message = format!("`{key}` must be {}, not {}", wanted.describe(), describe(value));
        problems.add(at, message, wanted.hint(key, value));
        Field::Refused
    }
}

/// A character that nobody means to write: lines and tabs are meant in longer texts.
fn control(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

fn whole(value: &DeValue<'_>) -> Option<i128> {
    let number = value.as_integer()?;
    let saturated = if number.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(saturated))
}

/// A field without a value as one of another type: refused or missing, as it was.
fn absent<A, B>(field: &Field<A>) -> Field<B> {
    if field.is_present() { Field::Refused } else { Field::Missing }
}
