//! The runner's side of the pipe: requests are written to it, and answered at once.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::State;
use super::report::{Made, errors, items, signaled};
use crate::attempt::world::base_environment;
use crate::backend::Places;
use crate::testing::script::{Act, Opening, Start};

/// A conversation with one runner.
#[derive(Debug)]
pub(super) struct Talk {
    state: Arc<Mutex<State>>,
    start: Start,
    /// The environment of its world.
    variables: BTreeMap<String, String>,
    /// None once it has ended.
    answers: Option<Sender<Vec<u8>>>,
    token: String,
    received: Vec<u8>,
    /// The levels of the stack that are open.
    directory: Option<String>,
    file: Option<String>,
    traced: bool,
    /// Exit code of its interpreter.
    code: Option<i32>,
}

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.answers.is_none() {
            return Err(Error::from(ErrorKind::BrokenPipe));
        }
        self.received.extend_from_slice(bytes);
        while let Some((length, rest)) = self.received.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(text) = rest.get(..length) else { break };
            let request: Value = serde_json::from_slice(text)?;
            self.received.drain(..4 + length);
            self.take(&request);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Talk {
    /// A runner that was just started in a world with these variables.
    pub(super) fn new(
        state: Arc<Mutex<State>>,
        start: Start,
        variables: BTreeMap<String, String>,
        answers: Sender<Vec<u8>>,
    ) -> Self {
        Talk {
            state,
            start,
            variables,
            answers: Some(answers),
            token: String::new(),
            received: Vec::new(),
            directory: None,
            file: None,
            traced: false,
            code: None,
        }
    }

    /// Exit code of the interpreter; none while it runs.
    pub(super) fn code(&self) -> Option<i32> {
        self.code
    }

    /// Ends the interpreter with this exit code, unless it has ended.
    pub(super) fn end(&mut self, code: i32) {
        if self.answers.take().is_some() {
            self.code = Some(code);
        }
    }

    fn take(&mut self, request: &Value) {
        let id = &request["id"];
        let file = || request["file"].as_str().expect("names a file").to_owned();
        let level = (self.directory.is_some(), self.file.is_some());
        match (request["op"].as_str().expect("has an operation"), level) {
            ("hello", _) => self.hello(id, request),
            ("discover", (false, _)) => self.discover(id),
            ("open_directory", (false, _)) => {
                self.traced = request["trace"] != "off";
                self.open_directory(id, &file());
            }
            ("open_file", (true, false)) => self.open_file(id, &file()),
            ("run", (_, true)) => self.run(id, request),
            ("close", _) => self.close(id),
            (other, _) => {
                let reason = format!("{other}: not possible at this level");
                self.answer(id, &json!({"type": "refused", "reason": reason}));
            }
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.lock().unwrap())
    }

    fn note(&self, line: String) {
        self.with(|state| state.log.push(line));
    }

    fn answer(&mut self, id: &Value, answer: &Value) {
        let (kind, text) = (answer["type"].as_str().expect("has a kind"), answer.to_string());
        let frame =
            format!("\n@gistmill {} {id} {} {} {text}\n", self.token, kind.replace(' ', "_"), text.len());
        if let Some(answers) = &self.answers {
            // Nobody reads any more: the runner was let go.
            let _ = answers.send(frame.into_bytes());
        }
    }

    /// Whether a variable has another value than in the base world.
    fn differs(&self, variable: &str) -> bool {
        let base = base_environment(&Places::in_sandbox(), &BTreeMap::new());
        self.variables.get(variable) != base.get(variable)
    }

    fn hello(&mut self, id: &Value, request: &Value) {
        request["token"].as_str().expect("brings a token").clone_into(&mut self.token);
        match self.start {
            Start::Ready => self.answer(id, &json!({"type": "hello", "python": "3.12.1", "pytest": "8.4.2"})),
            Start::Refused(reason) => self.answer(id, &json!({"type": "refused", "reason": reason})),
            Start::Ends | Start::Fails(_) => self.end(1),
        }
    }

    fn discover(&mut self, id: &Value) {
        self.note("discover".to_owned());
        let mut all: Vec<Value> =
            self.with(|state| state.files.iter().flat_map(|file| items(file, false)).collect());
        for (index, item) in all.iter_mut().enumerate() {
            item["index"] = index.into();
        }
        self.answer(id, &json!({"type": "discovered", "items": all, "errors": []}));
    }

    fn open_directory(&mut self, id: &Value, path: &str) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        self.note(format!("directory {directory}"));
        let opening = self.with(|state| state.file(path).directory.next());
        if self.opens(id, "directory", &opening) {
            self.directory = Some(directory);
            self.answer(id, &json!({"type": "directory_ready"}));
        }
    }

    fn open_file(&mut self, id: &Value, path: &str) {
        self.note(format!("file {path}"));
        let opening = self.with(|state| {
            let file = state.file(path);
            let refused = file.refused_where.is_some_and(|variable| self.differs(variable));
            if refused { Opening::Refused("not in this world") } else { file.opening.next() }
        });
        if self.opens(id, "file", &opening) {
            let (items, errors) =
                self.with(|state| (items(state.file(path), true), errors(state.file(path))));
            self.file = Some(path.to_owned());
            let mut ready = json!({"type": "file_ready", "items": items, "errors": errors});
            if self.traced {
                ready["import"] = json!({"calls": 1, "files": [path]});
            }
            self.answer(id, &ready);
        }
    }

    /// Whether a level opens; everything else is answered.
    fn opens(&mut self, id: &Value, level: &str, opening: &Opening) -> bool {
        let answer = match opening {
            Opening::Ready => return true,
            Opening::Refused(text) => {
                json!({"type": "failed", "stage": if level == "directory" { "configure" } else { "collect" }, "error": {"exception": "ImportError", "text": text}})
            }
            Opening::Dies(signal) => json!({"type": "died", "level": level, "exit": signaled(*signal)}),
            Opening::TimesOut => json!({"type": "timed_out", "level": level}),
            Opening::Unreadable => json!({"type": "no such answer"}),
            Opening::FailsInternally => json!({"type": "internal_error", "traceback": "scripted"}),
            Opening::Breaks => json!({"type": "broken", "level": level, "traceback": "scripted"}),
            Opening::EndsRunner(code) => {
                self.end(*code);
                return false;
            }
        };
        self.answer(id, &answer);
        false
    }

    fn run(&mut self, id: &Value, request: &Value) {
        let wanted: Vec<u64> = serde_json::from_value(request["items"].clone()).expect("items");
        let repeat = request["repeat"].as_u64().expect("says how often");
        let path = self.file.clone().expect("a file is open");
        let all = self.with(|state| items(state.file(&path), true));
        let function = all[wanted[0] as usize]["function"].as_str().expect("has a name").to_owned();
        self.note(format!("run {function} {repeat}"));
        for attempt in 0..repeat {
            let (act, number) = self.with(|state| {
                let group = state.file(&path).groups.iter_mut().find(|group| group.function == function);
                group.expect("is in the file").next(|variable| self.differs(variable))
            });
            if let Act::Waits(time) = act {
                std::thread::sleep(time);
            }
            let mut told = match act {
                Act::EndsRunner(code) => return self.end(code),
                Act::TakesDown(signal) => {
                    self.file = None;
                    let died = json!({"type": "died", "level": "file", "exit": signaled(signal)});
                    return self.answer(id, &died);
                }
                Act::FailsInternally => {
                    self.file = None;
                    let broken = json!({"type": "broken", "level": "file", "traceback": "scripted"});
                    return self.answer(id, &broken);
                }
                act => Made { path: &path, function: &function, items: &wanted, traced: self.traced, number }
                    .told(&act),
            };
            told["attempt"] = attempt.into();
            self.answer(id, &told);
        }
    }

    fn close(&mut self, id: &Value) {
        self.note("close".to_owned());
        if let Some(path) = self.file.take() {
            if let Some(code) = self.with(|state| state.file(&path).closing.next()) {
                return self.end(code);
            }
        } else if self.directory.take().is_none() {
            self.answer(id, &json!({"type": "closed"}));
            return self.end(0);
        }
        self.answer(id, &json!({"type": "closed"}));
    }
}
