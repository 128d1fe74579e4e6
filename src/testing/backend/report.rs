//! What the scripted runner tells about files and attempts.

use serde_json::{Value, json};

use crate::testing::script::{Act, FakeFile, FakeGroup};

/// The file whose function `work` every test calls once for each case.
pub(crate) const PACKAGE: &str = "made.py";

/// Items of a file, by itself or in a collection of everything.
pub(super) fn items(file: &FakeFile, alone: bool) -> Vec<Value> {
    let cases = file.groups.iter().flat_map(|group| {
        group.names(alone).map(|(name, parameters)| (group.function.as_str(), name, parameters))
    });
    let item = |(index, (function, name, parameters)): (usize, (&str, String, Option<&str>))| {
        json!({
            "index": index,
            "node_id": format!("{}::{name}", file.path),
            "file": file.path,
            "classes": [],
            "function": function,
            "parameters": parameters,
            "kind": "function",
        })
    };
    cases.enumerate().map(item).collect()
}

/// What pytest says about groups that have other cases when their file is collected alone.
pub(super) fn errors(file: &FakeFile) -> Vec<Value> {
    let error = |group: &FakeGroup| {
        let text = format!("E   {} is another", group.function);
        json!({"file": file.path, "kind": "error", "text": text})
    };
    file.groups.iter().filter(|group| !group.is_alike_alone()).map(error).collect()
}

/// The end of a process by a signal.
pub(super) fn signaled(signal: i32) -> Value {
    json!({"kind": "signaled", "signal": signal})
}

/// An attempt that was made.
pub(super) struct Made<'a> {
    pub(super) path: &'a str,
    pub(super) function: &'a str,
    pub(super) items: &'a [u64],
    pub(super) traced: bool,
    /// How many attempts of the group there were before.
    pub(super) number: u32,
}

impl Made<'_> {
    /// What the file process tells about it.
    pub(super) fn told(&self, act: &Act) -> Value {
        let whole = json!({"kind": "exited", "code": 0});
        let (report, exit) = match act {
            Act::Signaled(signal) => (String::new(), signaled(*signal)),
            Act::TimesOut => (String::new(), json!({"kind": "timed_out", "scope": "group", "index": null})),
            Act::Unreadable => ("no report".to_owned(), whole),
            Act::Fails => (self.report("failed", "", 1), whole),
            Act::Prints(text) => (self.report("passed", text, 0), whole),
            Act::PrintsCount => (self.report("passed", &self.number.to_string(), 0), whole),
            _ => (self.report("passed", "", 0), whole),
        };
        json!({"type": "group_done", "report": report, "exit": exit, "duration_ms": 1.0})
    }

    fn report(&self, outcome: &str, stdout: &str, pytest_exit: i32) -> String {
        let case = |index| json!(["case", {"index": index, "outcome": outcome, "stdout": stdout, "duration_ms": 1.0}]);
        let mut lines: Vec<Value> = self.items.iter().map(case).collect();
        if self.traced {
            let call = |file: &str, function: &str, order| {
                let calls = self.items.len();
                json!({"file": file, "function": function, "line": 1, "calls": calls, "order": order, "lines": [2]})
            };
            let functions = [call(self.path, self.function, 0), call(PACKAGE, "work", 1)];
            lines.push(json!(["trace", {"functions": functions, "total_calls": 2 * self.items.len()}]));
        }
        lines.push(json!(["end", {"pytest_exit": pytest_exit, "pytest_error": null}]));
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}
