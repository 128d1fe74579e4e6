//! Well-known forms in which loggers and servers print when a line was written, and from which port a client came: the
//! kernel gives it one that is free. Pure.
//!
//! A form is recognised by what stands around the time or the port (brackets, a level, a header's name, the request), never
//! by it alone: a test that prints a date or an address of its own shows it.

use std::sync::LazyLock;

use regex::Regex;

/// One form: its name among the counts, an example for people, and what stands in its place.
pub struct Form {
    /// The kind under which replacements are counted.
    pub name: &'static str,
    /// A line as the program prints it.
    pub example: &'static str,
    pub(super) pattern: &'static LazyLock<Regex>,
    /// In the notation of the regex crate.
    pub(super) with: &'static str,
}

const LEVEL: &str = r"(?i:trace|debug|info|success|notice|warn(?:ing)?|error|critical|fatal|exception)\b";
const MONTH: &str = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const TIME: &str = r"\d{2}:\d{2}:\d{2}";
/// Date and time, or the time alone, with parts of a second and a zone where they are given.
const MOMENT: &str =
    r"(?:\d{4}-\d{2}-\d{2}[T ])?\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?";
/// Colours of a terminal.
const COLOUR: &str = r"(?:\x1b\[[0-9;]*m)*";
/// What stands between a time and a level.
const BETWEEN: &str = r"(?:\x1b\[[0-9;]*m|[ \t\[\]|:>-]){1,24}";
/// What stands before the port of a client of this machine.
const LOOPBACK: &str = r"((?:\b127\.0\.0\.1|\blocalhost|::1\]?)(?::|', ))";

macro_rules! form {
    ($($part:expr),+) => {{
        static PATTERN: LazyLock<Regex> = LazyLock::new(|| super::pattern(&[$($part),+].concat()));
        &PATTERN
    }};
}

/// All forms, in the order in which they are replaced.
pub static FORMS: [Form; 9] = [
    Form {
        name: "timestamp-http-server",
        example: "127.0.0.1 - - [31/Dec/2026 23:59:59] \"GET / HTTP/1.1\" 200 -",
        pattern: form!(r"\[\d{2}/", MONTH, r"/\d{4} ", TIME, r"\]"),
        with: "[<time>]",
    },
    Form {
        name: "timestamp-common-log",
        example: "127.0.0.1 - - [31/Dec/2026:23:59:59 +0000] \"GET / HTTP/1.1\" 200 17",
        pattern: form!(r"\[\d{2}/", MONTH, r"/\d{4}:", TIME, r" [+-]\d{4}\]"),
        with: "[<time>]",
    },
    Form {
        name: "timestamp-gunicorn",
        example: "[2026-12-31 23:59:59 +0000] [4711] [INFO] Booting worker",
        pattern: form!(r"(?m)^\[\d{4}-\d{2}-\d{2} ", TIME, r" [+-]\d{4}\] \[\d+\] \[(", LEVEL, r")\]"),
        with: "[<time>] [<pid>] [$1]",
    },
    Form {
        name: "timestamp-logging",
        example: "2026-12-31 23:59:59,123 - shop - sold out",
        pattern: form!(r"\b\d{4}-\d{2}-\d{2} ", TIME, r",\d{3}(\]?[ \t:|-]{1,4}\S)"),
        with: "<time>$1",
    },
    Form {
        name: "timestamp-log-line",
        example: "2026-12-31T23:59:59.123456Z [info     ] sold out",
        pattern: form!(r"(?m)^(", COLOUR, r"\[?", COLOUR, ")", MOMENT, "(", BETWEEN, LEVEL, ")"),
        with: "$1<time>$2",
    },
    Form {
        name: "timestamp-glog",
        example: "I1231 23:59:59.123456 4711 shop.py:12] sold out",
        pattern: form!(r"(?m)^([IWEF])\d{4} ", TIME, r"\.\d{6} +\d+ (\S+:\d+\])"),
        with: "$1<time> <thread> $2",
    },
    Form {
        name: "timestamp-tornado",
        example: "[I 261231 23:59:59 web:2271] 200 GET /",
        pattern: form!(r"\[([DIWEC]) \d{6} ", TIME, r" (\S+:\d+\])"),
        with: "[$1 <time> $2",
    },
    Form {
        name: "timestamp-http-date",
        example: "header: Date: Thu, 31 Dec 2026 23:59:59 GMT",
        pattern: form!(
            r"(?i:\b(date: ))(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} ",
            MONTH,
            r" \d{4} ",
            TIME,
            " GMT"
        ),
        with: "$1<time>",
    },
    Form {
        name: "client-port",
        example: "INFO:     127.0.0.1:42042 - \"GET / HTTP/1.1\" 200 OK",
        pattern: form!(LOOPBACK, r"\d{4,5}\b('?\)? - (?:- \[|", COLOUR, r#""(?:[A-Z]+|WebSocket) /))"#),
        with: "$1<port>$2",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let replace = |text: String, form: &Form| form.pattern.replace_all(&text, form.with).into_owned();
        FORMS.iter().fold(text.to_owned(), replace)
    }

    #[test]
    fn every_form_takes_what_changes_out_of_its_example_and_nothing_else() {
        let masked = FORMS.each_ref().map(|form| masked(form.example));
        assert_eq!(
            masked,
            [
                "127.0.0.1 - - [<time>] \"GET / HTTP/1.1\" 200 -",
                "127.0.0.1 - - [<time>] \"GET / HTTP/1.1\" 200 17",
                "[<time>] [<pid>] [INFO] Booting worker",
                "<time> - shop - sold out",
                "<time> [info     ] sold out",
                "I<time> <thread> shop.py:12] sold out",
                "[I <time> web:2271] 200 GET /",
                "header: Date: <time>",
                "INFO:     127.0.0.1:<port> - \"GET / HTTP/1.1\" 200 OK",
            ]
        );
    }

    #[test]
    fn every_form_knows_its_own_example_only_by_its_own_pattern_or_an_earlier_one() {
        for (at, form) in FORMS.iter().enumerate() {
            assert!(form.pattern.is_match(form.example), "{}", form.name);
            let earlier = FORMS[..at].iter().find(|other| other.pattern.is_match(form.example));
            assert!(earlier.is_none(), "{} is taken by {}", form.name, earlier.unwrap().name);
        }
    }

    #[test]
    fn lines_of_further_loggers_have_one_of_the_forms() {
        for (line, expected) in [
            (
                "2026-12-31 23:59:59.123 | INFO     | shop:sell:3 - sold",
                "<time> | INFO     | shop:sell:3 - sold",
            ),
            ("2026-12-31 23:59:59 [warning  ] sold", "<time> [warning  ] sold"),
            (
                "\u{1b}[2m2026-12-31T23:59:59Z\u{1b}[0m [\u{1b}[32minfo",
                "\u{1b}[2m<time>\u{1b}[0m [\u{1b}[32minfo",
            ),
            ("23:59:59 DEBUG sold", "<time> DEBUG sold"),
            (
                "127.0.0.1:42042 - - [31/Dec/2026:23:59:59 +0000] \"GET /",
                "127.0.0.1:<port> - - [<time>] \"GET /",
            ),
            (
                "('127.0.0.1', 42042) - \"WebSocket /\" [accepted]",
                "('127.0.0.1', <port>) - \"WebSocket /\" [accepted]",
            ),
            (
                "[::1]:42042 - \u{1b}[1m\"POST /a HTTP/1.1\u{1b}[0m\" ",
                "[::1]:<port> - \u{1b}[1m\"POST /a HTTP/1.1\u{1b}[0m\" ",
            ),
            ("[2026-12-31 23:59:59,123] ERROR in app: sold", "[<time>] ERROR in app: sold"),
            ("first\n2026-12-31 23:59:59 INFO sold", "first\n<time> INFO sold"),
        ] {
            assert_eq!(masked(line), expected);
        }
    }

    #[test]
    fn a_time_or_a_port_that_a_test_prints_stays() {
        for text in [
            "2026-12-31 23:59:59.123456",
            "2026-12-31 23:59:59,123",
            "2026-12-31T23:59:59Z",
            "sold at 23:59:59 with no information",
            "2026-12-31 23:59:59 informal",
            "23:59:59",
            "Thu, 31 Dec 2026 23:59:59 GMT",
            "[31/Dec/2026]",
            "I1231 23:59:59",
            "http://127.0.0.1:42042/",
            "127.0.0.1:42042 - sold",
            "10.0.0.1:42042 - \"GET / HTTP/1.1\"",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
