//! What one attempt of a group reports, taken apart. It was written in the process of the test, so nothing in it is
//! taken for granted: what the runner could not have written is the trouble of that group.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ending::{ProcessExit, Reached};
use crate::record::execution::Execution;
use crate::record::outcome::{FileChange, Outcome, Wants};
use crate::record::trace::{ExecutedBody, FunctionCalls, MOST_CALLS, check_bodies, check_calls, check_path};

/// Exit codes of pytest after which its report is whole: all passed, some failed, nothing ran.
const FINISHED_CODES: [i32; 3] = [0, 1, 5];
/// Most processes that a case names.
const MOST_PROCESSES: usize = 16;
/// Most files that the runner names.
const MOST_FILES: usize = 1000;
/// Longest that a case takes: thirty years.
const MOST_MILLISECONDS: f64 = 1e12;

/// One attempt as the process that started it reports it.
#[derive(Debug, Clone, Deserialize)]
pub struct Attempted {
    /// Lines of `["<kind>",<value>]` from the process of the test; none when they are not printable text.
    pub report: Option<String>,
    pub exit: ProcessExit,
    #[serde(default)]
    pub leftover: u32,
    #[serde(default)]
    pub raw_output: String,
    pub duration_ms: f64,
    /// Processor time of all its processes.
    #[serde(default)]
    pub processor_ms: f64,
    /// The most memory that one of its processes had at a time.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

/// One attempt of one group.
#[derive(Debug, Clone)]
pub struct GroupDone {
    pub cases: Vec<CaseReport>,
    pub exit: ProcessExit,
    pub leftover: u32,
    pub connections: Vec<String>,
    pub raw_output: String,
    /// Text of pytest's own trouble (INTERNALERROR, `pytest.exit`).
    pub pytest_error: Option<String>,
    pub duration_ms: f64,
    /// Processor time of all its processes.
    pub processor_ms: f64,
    /// The most memory that one of its processes had at a time.
    pub memory_bytes: Option<u64>,
    /// What was traced, or why that cannot be what the tracer wrote.
    pub trace: Option<Result<GroupTrace, String>>,
    /// What the cases reached for.
    pub reached: Reached,
    /// What of the tree ran, where lines are traced.
    pub execution: Option<Execution>,
}

/// One case of an attempt.
#[derive(Debug, Clone, Deserialize)]
pub struct CaseReport {
    /// Index of the item; negative for one that a hook of the repository made up.
    pub index: i64,
    pub outcome: Outcome,
    #[serde(default)]
    pub exception: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default)]
    pub stdout: String,
    #[serde(default)]
    pub stderr: String,
    #[serde(default)]
    pub duration_ms: f64,
    /// Processes the runner knows of, for normalization.
    #[serde(default)]
    pub process_ids: Vec<u32>,
    /// SHA-256 over all bytes of a stream that is cut.
    #[serde(default)]
    pub stdout_sha256: Option<String>,
    #[serde(default)]
    pub stderr_sha256: Option<String>,
    /// Exit status of a command.
    #[serde(default)]
    pub status: Option<i32>,
    /// What a command changed in the tree.
    #[serde(default)]
    pub files: Vec<FileChange>,
    /// What a command asked for and did not get.
    #[serde(default)]
    pub wants: Option<Wants>,
}

/// Calls seen while the cases ran.
#[derive(Debug, Clone, Deserialize)]
pub struct GroupTrace {
    pub functions: Vec<FunctionCalls>,
    /// Module and class bodies that ran meanwhile.
    #[serde(default)]
    pub bodies: Vec<ExecutedBody>,
    #[serde(default)]
    pub total_calls: Option<u64>,
    /// Calls in child interpreters, as far as they were followed.
    #[serde(default)]
    pub child_calls: u64,
    /// Whether the group started threads, as far as the mode of tracing shows it.
    #[serde(default)]
    pub starts_threads: bool,
    /// False when the test took the profiler away.
    #[serde(default = "yes")]
    pub complete: bool,
}

fn yes() -> bool {
    true
}

/// Calls and module bodies seen while the file and its conftests were imported.
#[derive(Debug, Clone, Deserialize)]
pub struct ImportTrace {
    #[serde(default)]
    pub calls: u64,
    /// What was called.
    #[serde(default)]
    pub functions: Vec<FunctionCalls>,
    /// Module and class bodies that ran.
    #[serde(default)]
    pub bodies: Vec<ExecutedBody>,
    #[serde(default)]
    pub files: Vec<String>,
}

impl ImportTrace {
    /// Whether the tracer can have written it.
    ///
    /// # Errors
    /// What it cannot have written, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.calls > MOST_CALLS {
            return Err(format!("{} calls while importing", self.calls));
        }
        check_calls(&self.functions)?;
        check_bodies(&self.bodies)?;
        self.files.iter().try_for_each(|file| check_path(file))
    }
}

/// The end of pytest's run.
#[derive(Debug, Deserialize)]
struct End {
    pytest_exit: i32,
    pytest_error: Option<String>,
}

#[derive(Deserialize)]
struct Record<'a>(#[serde(borrow)] Cow<'a, str>, #[serde(borrow)] &'a RawValue);

impl Attempted {
    /// Takes the report apart.
    ///
    /// # Errors
    /// Why it cannot be used, in words: it is malformed, or the runner failed in the process of the test.
    pub fn read(self) -> Result<GroupDone, String> {
        let text = self.report.ok_or("the report of the attempt is malformed: it is not text")?;
        let mut done = GroupDone {
            cases: Vec::new(),
            exit: self.exit,
            leftover: self.leftover,
            connections: Vec::new(),
            raw_output: self.raw_output,
            pytest_error: None,
            duration_ms: self.duration_ms,
            processor_ms: self.processor_ms,
            memory_bytes: self.memory_bytes,
            trace: None,
            reached: Reached::default(),
            execution: None,
        };
        let mut end = None;
        for line in text.lines() {
            done.add(line, &mut end)?;
        }
        if let Some(End { pytest_exit, pytest_error }) = end {
            if done.exit == (ProcessExit::Exited { code: 0 }) {
                let finished = FINISHED_CODES.contains(&pytest_exit);
                done.exit =
                    if finished { ProcessExit::Finished } else { ProcessExit::Exited { code: pytest_exit } };
            }
            done.pytest_error = pytest_error;
        }
        Ok(done)
    }
}

impl GroupDone {
    fn add(&mut self, line: &str, end: &mut Option<End>) -> Result<(), String> {
        let malformed = |error: serde_json::Error| format!("the report of the attempt is malformed: {error}");
        let Record(kind, value) = serde_json::from_str(line).map_err(malformed)?;
        let value = value.get();
        match kind.as_ref() {
            "case" => {
                let case: CaseReport = serde_json::from_str(value).map_err(malformed)?;
                case.check().map_err(|text| format!("the report of the attempt is malformed: {text}"))?;
                self.cases.push(case);
            }
            "end" => *end = Some(serde_json::from_str(value).map_err(malformed)?),
            "imports" => self.reached.imports = serde_json::from_str(value).map_err(malformed)?,
            "opened" => self.reached.opened = serde_json::from_str(value).map_err(malformed)?,
            "execution" if self.execution.is_some() => {
                return Err("the report of the attempt is malformed: it has two executions".to_owned());
            }
            "execution" => {
                let execution: Execution = serde_json::from_str(value).map_err(malformed)?;
                execution
                    .check()
                    .map_err(|text| format!("the report of the attempt is malformed: {text}"))?;
                self.execution = Some(execution);
            }
            "connections" => self.connections = serde_json::from_str(value).map_err(malformed)?,
            "trace" => {
                let trace = serde_json::from_str(value).map_err(|error| error.to_string());
                let trace = trace.and_then(GroupTrace::checked);
                // The tracer writes one.
                self.trace =
                    Some(if self.trace.is_some() { Err("there is more than one".to_owned()) } else { trace });
            }
            "internal" => {
                let traceback: String = serde_json::from_str(value).map_err(malformed)?;
                return Err(format!("the runner failed in the process of the test:\n{traceback}"));
            }
            _ => return Err("the report of the attempt is malformed: an unknown record".to_owned()),
        }
        Ok(())
    }
}

impl CaseReport {
    fn check(&self) -> Result<(), String> {
        if !(0.0..=MOST_MILLISECONDS).contains(&self.duration_ms) {
            return Err(format!("a case took {} ms", self.duration_ms));
        }
        if self.process_ids.len() > MOST_PROCESSES {
            return Err(format!("a case names {} processes", self.process_ids.len()));
        }
        if self.files.len() > MOST_FILES {
            return Err(format!("a command changes {} files", self.files.len()));
        }
        self.files.iter().try_for_each(|file| check_path(&file.path))?;
        let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let of_files = self.files.iter().map(|file| &file.sha256);
        let hashes = [&self.stdout_sha256, &self.stderr_sha256].into_iter().chain(of_files);
        if hashes.flatten().any(|text| !is_hash(text)) {
            return Err("a hash is malformed".to_owned());
        }
        Ok(())
    }
}

impl GroupTrace {
    fn checked(self) -> Result<Self, String> {
        check_calls(&self.functions)?;
        check_bodies(&self.bodies)?;
        for calls in [self.child_calls, self.total_calls.unwrap_or(0)] {
            if calls > MOST_CALLS {
                return Err(format!("{calls} calls"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(report: &str, exit: ProcessExit) -> Result<GroupDone, String> {
        let report = Some(report.to_owned());
        Attempted {
            report,
            exit,
            leftover: 0,
            raw_output: String::new(),
            duration_ms: 1.0,
            processor_ms: 1.0,
            memory_bytes: None,
        }
        .read()
    }

    const CASE: &str = r#"["case",{"index":0,"outcome":"passed","process_ids":[7]}]"#;

    #[test]
    fn a_report_that_came_to_its_end_is_finished_and_pytest_s_own_exit_counts() {
        for (pytest_exit, expected) in [
            (0, ProcessExit::Finished),
            (1, ProcessExit::Finished),
            (5, ProcessExit::Finished),
            (2, ProcessExit::Exited { code: 2 }),
        ] {
            let end = format!(r#"["end",{{"pytest_exit":{pytest_exit},"pytest_error":null}}]"#);
            let done = read(&format!("{CASE}\n{end}\n"), ProcessExit::Exited { code: 0 }).expect("is whole");
            assert_eq!((done.exit, done.cases.len()), (expected, 1));
        }
        let killed = ProcessExit::Signaled { signal: 11 };
        let done = read(CASE, killed.clone()).expect("can be read");
        assert_eq!((done.exit, done.cases.len()), (killed, 1));
        let left = read(CASE, ProcessExit::Exited { code: 0 }).expect("can be read");
        assert_eq!(left.exit, ProcessExit::Exited { code: 0 }, "it left before pytest came to an end");
    }

    #[test]
    fn what_the_runner_cannot_have_written_is_malformed() {
        let deep = "[".repeat(100_000);
        let case = |more: &str| format!(r#"["case",{{"index":0,"outcome":"passed",{more}}}]"#);
        let many = format!(r#""process_ids":{:?}"#, [1; 99]);
        for line in [
            "5",
            "[5]",
            "[]",
            r#"["case",5]"#,
            r#"["case",null]"#,
            r#"["other",5]"#,
            r#"["case",{"index":0,"outcome":"passed"}"#,
            r#"["end",{"pytest_exit":1180591620717411303424,"pytest_error":null}]"#,
            r#"["connections",[7]]"#,
            &deep,
            &case(r#""duration_ms":NaN"#),
            &case(r#""duration_ms":1e999"#),
            &case(r#""duration_ms":-1"#),
            &case(r#""duration_ms":1e25"#),
            &case(r#""stdout":"\ud800""#),
            &case(r#""process_ids":[-1]"#),
            &case(r#""stdout_sha256":"no hash""#),
            &case(&many),
            r#"["case",{"index":1180591620717411303424,"outcome":"passed"}]"#,
        ] {
            let told = read(line, ProcessExit::Exited { code: 0 }).expect_err(line);
            assert!(told.starts_with("the report of the attempt is malformed: "), "{line}: {told}");
            assert!(told.len() < 300, "{told}");
        }
        let told = Attempted { report: None, ..attempted() }.read().expect_err("no text");
        assert!(told.contains("not text"), "{told}");
    }

    fn attempted() -> Attempted {
        serde_json::from_str(r#"{"report":"","exit":{"kind":"finished"},"duration_ms":1.0}"#)
            .expect("a frame")
    }

    #[test]
    fn a_forged_trace_is_refused_and_the_attempt_is_not() {
        let function = |file: &str, calls: u64, order: u32| serde_json::json!({"file": file, "function": "f", "line": 1, "calls": calls, "order": order, "lines": null});
        let trace = |functions: Vec<serde_json::Value>| {
            let line = serde_json::json!(["trace", {"functions": functions, "complete": true}]).to_string();
            read(&line, ProcessExit::Exited { code: 0 }).expect("the attempt counts").trace.expect("is there")
        };
        assert!(trace(vec![function("a/b.py", 2, 0), function("c.py", 1, 1)]).is_ok());
        for file in ["/dev/zero", "../a.py", "a/../../b.py", "", "a//b.py", "./a.py", "a\0.py", "a/"] {
            trace(vec![function(file, 1, 0)]).expect_err(file);
        }
        trace(vec![function("a.py", u64::MAX, 0), function("b.py", u64::MAX, 1)]).expect_err("too many");
        trace(vec![function("a.py", MOST_CALLS, 0), function("b.py", 1, 1)]).expect_err("too many together");
        trace(vec![function("a.py", 1, 7)]).expect_err("no order");
        for forged in [r#"["trace",5]"#, r#"["trace",{"functions":[],"child_calls":18446744073709551615}]"#] {
            let done = read(forged, ProcessExit::Exited { code: 0 }).expect("the attempt counts");
            assert!(matches!(done.trace, Some(Err(_))), "{forged}");
        }
        let one = r#"["trace",{"functions":[]}]"#;
        let done =
            read(&format!("{one}\n{one}"), ProcessExit::Exited { code: 0 }).expect("the attempt counts");
        assert!(matches!(done.trace, Some(Err(_))), "which of the two is the tracer's?");
        let imported = ImportTrace {
            calls: 1,
            files: vec!["/etc/passwd".into()],
            functions: Vec::new(),
            bodies: Vec::new(),
        };
        imported.check().expect_err("an absolute path");
    }
}
