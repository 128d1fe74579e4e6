//! What keys of `repos.toml` take: a kind reads a value, holds it against its bounds, and describes itself to editors.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::document::section::{Bytes, Checked, Field, Located, Section};
use crate::document::{Problems, suggest, units};
use crate::record::trace::check_path;
use crate::redact::quote;

/// Most processors that can be meant.
const MOST_CPUS: f64 = 4096.0;

/// What a key takes.
pub(super) trait Kind {
    type Value<'a>;

    /// The value of a key; what cannot be used is among the problems.
    fn read<'a>(
        &self,
        section: &Section<'a>,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Field<Self::Value<'a>>;

    /// What a JSON schema says of its values.
    fn schema(&self) -> Value;

    /// A value as JSON, as it would be typed.
    fn typed(&self, value: &Self::Value<'static>) -> Value
    where
        Self::Value<'static>: Serialize,
    {
        json!(value)
    }
}

/// Kinds whose values are only of a type: what they mean is checked elsewhere.
macro_rules! plain {
    ($($(#[$about:meta])* $kind:ident: $value:ty = $read:ident, $schema:tt;)+) => {$(
        $(#[$about])*
        pub(super) struct $kind;

        impl Kind for $kind {
            type Value<'a> = $value;

            fn read<'a>(
                &self,
                section: &Section<'a>,
                key: &str,
                problems: &mut Problems<'_>,
            ) -> Field<Self::Value<'a>> {
                section.$read(key, problems)
            }

            fn schema(&self) -> Value {
                json!($schema)
            }
        }
    )+};
}

plain! {
    Flag: bool = flag, {"type": "boolean"};
    Text: &'a str = text, {"type": "string"};
    Texts: Vec<Located<&'a str>> = texts, {"type": "array", "items": {"type": "string"}};
    /// One text, or a list of them.
    TextOrTexts: Vec<Located<&'a str>> = text_or_texts,
        {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]};
    /// Variables of an environment.
    Pairs: Vec<(Located<&'a str>, Located<&'a str>)> = pairs,
        {"type": "object", "additionalProperties": {"type": "string"}};
    /// A date or time; TOML has a type for them, JSON has none.
    Date: String = date, {};
    /// Any number.
    Number: f64 = number, {"type": "number"};
}

/// A text whose form editors check by this pattern; what the program asks of it is said elsewhere.
pub(super) struct Formed(pub &'static str);

impl Kind for Formed {
    type Value<'a> = &'a str;

    fn read<'a>(&self, section: &Section<'a>, key: &str, problems: &mut Problems<'_>) -> Field<&'a str> {
        section.text(key, problems)
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": self.0})
    }
}

/// A whole number, at least so large.
pub(super) struct Count(pub u32);

impl Kind for Count {
    type Value<'a> = u32;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<u32> {
        let range = self.0.into()..=u32::MAX.into();
        section.integer(key, problems).check(problems, |value| Ok(whole(key, value, &range)? as u32))
    }

    fn schema(&self) -> Value {
        json!({"type": "integer", "minimum": self.0, "maximum": u32::MAX})
    }
}

/// A whole number that may need more bits, at most so large.
pub(super) struct Whole(pub u64);

impl Kind for Whole {
    type Value<'a> = u64;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<u64> {
        section.integer(key, problems).check(problems, |value| whole(key, value, &(0..=self.0)))
    }

    fn schema(&self) -> Value {
        let bounded = json!({"type": "integer", "minimum": 0, "maximum": self.0});
        if self.0 < u64::MAX { bounded } else { json!({"type": "integer", "minimum": 0}) }
    }
}

fn whole(key: &str, value: i128, range: &RangeInclusive<u64>) -> Checked<u64> {
    match u64::try_from(value) {
        Ok(number) if range.contains(&number) => Ok(number),
        _ if value < i128::from(*range.start()) => {
            Err((format!("`{key}` must be at least {}, not {value}", range.start()), None))
        }
        _ => Err((format!("`{key}` must be at most {}", range.end()), None)),
    }
}

/// The exit status of a command.
pub(super) struct Status;

impl Kind for Status {
    type Value<'a> = u8;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<u8> {
        section.integer(key, problems).check(problems, |value| {
            u8::try_from(value).map_err(|_| {
                let hint = "a status is a number from 0 to 255".to_owned();
                (format!("{key} {value} is not an exit status"), Some(hint))
            })
        })
    }

    fn schema(&self) -> Value {
        json!({"type": "integer", "minimum": 0, "maximum": 255})
    }
}

/// A number from 0 to the second, called like the first.
pub(super) struct Part(pub &'static str, pub u32);

impl Kind for Part {
    type Value<'a> = f64;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<f64> {
        let Part(what, most) = self;
        section.number(key, problems).check(problems, |value| {
            let is_in = (0.0..=f64::from(*most)).contains(&value);
            let message = || format!("`{key}` must be a {what} from 0 to {most}, not {value}");
            if is_in { Ok(value) } else { Err((message(), None)) }
        })
    }

    fn schema(&self) -> Value {
        json!({"type": "number", "minimum": 0, "maximum": self.1})
    }

    fn typed(&self, value: &f64) -> Value {
        if value.fract() == 0.0 { json!(*value as u32) } else { json!(value) }
    }
}

/// Processors, which a reader gets in thousandths.
pub(super) struct Cpus;

impl Kind for Cpus {
    type Value<'a> = u64;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<u64> {
        section.number(key, problems).check(problems, |value| {
            if value == 0.0 || (0.01..=MOST_CPUS).contains(&value) {
                return Ok((value * 1000.0).round() as u64);
            }
            let hint = "write a number such as 2 or 0.5; 0 sets no limit".to_owned();
            Err((format!("`{key}` must be from 0.01 to {MOST_CPUS}, not {value}"), Some(hint)))
        })
    }

    fn schema(&self) -> Value {
        json!({"type": "number", "minimum": 0, "maximum": MOST_CPUS as u32})
    }
}

/// How long something may take.
pub(super) struct Span;

impl Kind for Span {
    type Value<'a> = Duration;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<Duration> {
        section.duration(key, problems).check(problems, |text| {
            let said = |problem| {
                (format!("{key} {} {problem}", quote(text)), Some(units::DURATION_EXAMPLES.to_owned()))
            };
            units::parse_duration(text).map_err(said)
        })
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": r"^(\d+(h|ms|m|s))+$"})
    }

    fn typed(&self, value: &Duration) -> Value {
        json!(units::format_duration(*value))
    }
}

/// A number of bytes; a positive one below this is taken for a forgotten unit.
pub(super) struct Size(pub u64);

impl Kind for Size {
    type Value<'a> = u64;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<u64> {
        section.bytes(key, problems).check(problems, |value| {
            let (message, rest) = match bytes(key, value) {
                Ok(bytes) if bytes == 0 || bytes >= self.0 => return Ok(bytes),
                Ok(bytes) => {
                    let least = units::format_size(self.0);
                    let message = format!("`{key}` of {bytes} bytes is too small, the least is {least}");
                    (message, "; 0 sets no limit")
                }
                Err(message) => (message, ""),
            };
            Err((message, Some(format!("{}{rest}", units::SIZE_EXAMPLES))))
        })
    }

    fn schema(&self) -> Value {
        let text = json!({"type": "string", "pattern": r"^\d+(\.\d+)? ?([KMGTkmgt]?[iI]?[bB]?)$"});
        json!({"oneOf": [{"type": "integer", "minimum": 0}, text]})
    }

    fn typed(&self, value: &u64) -> Value {
        if *value == 0 { json!(0) } else { json!(units::format_size(*value)) }
    }
}

fn bytes(key: &str, value: Bytes<'_>) -> Result<u64, String> {
    match value {
        Bytes::Number(number) => u64::try_from(number).map_err(|_| format!("`{key}` must not be {number}")),
        Bytes::Text(text) => {
            units::parse_size(text).map_err(|problem| format!("{key} {} {problem}", quote(text)))
        }
    }
}

/// One of these values by its spelling; the message about another has `{}` where that is named.
pub(super) struct Choice<T: 'static>(pub &'static str, pub &'static [T], pub fn(T) -> &'static str);

impl<T: Copy> Choice<T> {
    fn names(&self) -> Vec<&'static str> {
        self.1.iter().map(|one| self.2(*one)).collect()
    }

    fn find(&self, text: &str) -> Checked<T> {
        self.1
            .iter()
            .copied()
            .find(|one| self.2(*one) == text)
            .ok_or_else(|| (self.0.replace("{}", &quote(text)), Some(suggest::hint(text, &self.names()))))
    }
}

impl<T: Copy> Kind for Choice<T> {
    type Value<'a> = T;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<T> {
        section.text(key, problems).check(problems, |text| self.find(text))
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "enum": self.names()})
    }
}

/// Some of the values of a choice.
pub(super) struct Choices<T: 'static>(pub Choice<T>);

impl<T: Copy> Kind for Choices<T> {
    type Value<'a> = Vec<T>;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<Vec<T>> {
        let texts = section.texts(key, problems);
        let mut find = |text| Field::Given(text).check(problems, |text| self.0.find(text)).given();
        let found =
            texts.map(|texts| texts.into_iter().map(|text| Some(find(text)?.value)).collect::<Vec<_>>());
        match found {
            Field::Given(found) if found.value.iter().any(Option::is_none) => Field::Refused,
            found => found.map(|found| found.into_iter().flatten().collect()),
        }
    }

    fn schema(&self) -> Value {
        json!({"type": "array", "items": self.0.schema()})
    }
}

/// Globs of paths in the tree.
pub(super) struct Globs;

impl Kind for Globs {
    type Value<'a> = Vec<String>;

    fn read(&self, section: &Section<'_>, key: &str, problems: &mut Problems<'_>) -> Field<Vec<String>> {
        let texts = section.texts(key, problems);
        for text in texts.clone().given().into_iter().flat_map(|list| list.value) {
            if check_path(&text.value.replace(['*', '?'], "x")).is_err() {
                let shown = quote(text.value);
                let message = format!("`{key}` names {shown}, which no path inside the tree fits");
                problems.add(
                    text.at,
                    message,
                    Some("write it from the root of the tree, with `/`".to_owned()),
                );
            }
        }
        texts.map(|texts| texts.into_iter().map(|text| text.value.to_owned()).collect())
    }

    fn schema(&self) -> Value {
        Texts.schema()
    }
}
