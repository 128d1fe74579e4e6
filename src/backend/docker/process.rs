//! A job in a container: plan and archive go in over the attached stream, frames come out (see `inside.py`).

use std::io::{PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use futures_util::StreamExt;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::engine::{Engine, Spec, disk_full};
use super::plan::{self, MOST_LEFT, Plan, Sent};
use super::relay::Relay;
use super::unpack::unpack;
use crate::backend::{Finished, Job, LONGEST_END, Process, Tail, sandbox};
use crate::error::{Error, ErrorKind, Result, says_disk_is_full};

/// How long what a job left may take to come back once its driver has closed the channel.
const LAST_WORDS: Duration = Duration::from_mins(5);

/// A job that runs in a container.
pub(super) struct ContainerProcess {
    engine: Arc<Engine>,
    /// Of the container; none once it is removed.
    id: Option<String>,
    input: Option<Input>,
    /// Has the input instead, for a job with a service.
    relay: Option<Arc<Relay>>,
    answers: Option<PipeReader>,
    shared: Arc<Shared>,
    sent: Vec<Sent>,
    channel: bool,
}

impl std::fmt::Debug for ContainerProcess {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ContainerProcess").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What the thread that reads the stream shares with the owner.
#[derive(Debug, Default)]
struct Shared {
    stdout: Tail,
    stderr: Tail,
    ending: Mutex<Ending>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Ending {
    /// The stream is at its end.
    over: bool,
    code: Option<i32>,
    /// What could not be set up.
    trouble: Option<String>,
    /// Why what came cannot be what the program inside sends; nothing that comes after it counts.
    broken: Option<String>,
    /// What the job left, as an archive, and how many bytes it has.
    left: Option<(std::fs::File, u64)>,
}

impl Shared {
    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of the stream, or for what cannot be part of it; false when neither came.
    fn wait(&self, limit: Duration, interruptible: bool) -> Result<bool> {
        let deadline = Instant::now() + limit;
        let mut ending = self.ending();
        while !ending.over && ending.broken.is_none() {
            if interruptible {
                crate::interrupt::check()?;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let pause = left.min(Duration::from_millis(100));
            ending = self.ended.wait_timeout(ending, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(true)
    }
}

/// The container's stdin.
struct Input {
    engine: Arc<Engine>,
    pipe: Pin<Box<dyn AsyncWrite + Send>>,
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.engine.wait(self.pipe.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.engine.wait(self.pipe.flush())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let _ = self.engine.wait(self.pipe.shutdown());
    }
}

impl ContainerProcess {
    /// Starts a container and hands it the plan.
    ///
    /// # Errors
    /// The engine's; nothing is left behind.
    pub(super) fn start(engine: &Arc<Engine>, spec: &Spec<'_>, plan: Plan, job: &Job) -> Result<Self> {
        let (id, attached) = engine.start(spec)?;
        let input = Input { engine: Arc::clone(engine), pipe: attached.input };
        let (input, relay) = match &job.service {
            Some(service) => (None, Some(Relay::new(Arc::clone(service), Box::new(input)))),
            None => (Some(input), None),
        };
        let shared = Arc::new(Shared::default());
        let pipe = job.channel.then(std::io::pipe).transpose();
        let pipe = pipe.map_err(|error| Error::from(error).at("cannot make a pipe"));
        let mut process = ContainerProcess {
            engine: Arc::clone(engine),
            id: Some(id),
            input,
            relay,
            answers: None,
            shared: Arc::clone(&shared),
            sent: plan.sent.clone(),
            channel: job.channel,
        };
        let (reader, writer) = pipe?.unzip();
        process.answers = reader;
        let (stream_engine, mut output) = (Arc::clone(engine), attached.output);
        let relay = process.relay.clone();
        std::thread::spawn(move || {
            let mut frames = Frames { shared: &shared, answers: writer, relay, buffer: Vec::new() };
            stream_engine.wait(async {
                while let Some(Ok(part)) = output.next().await {
                    match part {
                        LogOutput::StdErr { message } => shared.stderr.push(&message),
                        other => frames.feed(&other.into_bytes()),
                    }
                }
            });
            drop(frames);
            shared.ending().over = true;
            shared.ended.notify_all();
        });
        match process.hand_over(&plan) {
            Ok(()) => Ok(process),
            Err(error) => Err(process.explain(error)),
        }
    }

    fn hand_over(&mut self, plan: &Plan) -> Result<()> {
        match (&self.relay, &mut self.input) {
            (Some(relay), _) => send(plan, &mut **relay.input()),
            (None, Some(input)) => send(plan, input),
            (None, None) => Err(Error::internal("the container has no input")),
        }
    }

    /// Adds what the container says about its end to an error of the stream.
    fn explain(&mut self, error: Error) -> Error {
        let _ = self.shared.wait(Duration::from_secs(2), false);
        if let Some(trouble) = self.shared.ending().trouble.take() {
            return not_set_up(&trouble);
        }
        let words = self.id.as_ref().and_then(|id| self.engine.ending(id)).map(|(_, words)| words);
        let log = self.shared.stderr.text();
        match words {
            Some(words) => error.with_detail(format!("{words}\n{log}").trim().to_owned()),
            None => error,
        }
    }

    /// Puts what the job left in place of what it was sent.
    fn take_back(&self, archive: std::fs::File) -> Result<()> {
        let mut archive = archive;
        archive.seek(SeekFrom::Start(0))?;
        put_back(&self.sent, archive)
    }
}

/// Unpacks an archive of what was sent, by the numbers of the entries, and puts it in place of what lies there.
fn put_back(sent: &[Sent], archive: impl Read) -> Result<()> {
    let writable: Vec<(usize, &Sent)> = sent.iter().enumerate().filter(|(_, one)| one.back).collect();
    let Some((_, first)) = writable.first() else { return Ok(()) };
    let near = first.host.parent().unwrap_or(Path::new("/"));
    let aside = tempfile::Builder::new().prefix(".coming-back-").tempdir_in(near)?;
    let unpacked = aside.path().join("new");
    fs_err::create_dir(&unpacked)?;
    let result = exchange(&writable, archive, &unpacked, aside.path());
    make_removable(aside.path());
    result
}

fn exchange(writable: &[(usize, &Sent)], archive: impl Read, unpacked: &Path, aside: &Path) -> Result<()> {
    unpack(std::io::BufReader::new(archive), unpacked).map_err(|error| match error.kind() {
        std::io::ErrorKind::StorageFull => Error::from(error).at("unpacking what a job left"),
        _ => Error::harness("cannot unpack what a job left").with_source(error),
    })?;
    // A link in place of a folder would have the next one who looks there look elsewhere.
    for (number, one) in writable {
        let kind = |path: &Path| fs_err::symlink_metadata(path).map(|metadata| metadata.file_type());
        let (new, old) = (kind(&unpacked.join(number.to_string())), kind(&one.host));
        if !matches!((&new, &old), (Ok(new), Ok(old)) if new == old) {
            return Err(Error::harness(format!(
                "a job did not give {} back as what it was",
                one.host.display()
            )));
        }
    }
    for (number, one) in writable {
        fs_err::rename(&one.host, aside.join(format!("old-{number}")))?;
        fs_err::rename(unpacked.join(number.to_string()), &one.host)?;
    }
    Ok(())
}

/// Writes plan and archive.
fn send(plan: &Plan, input: &mut dyn Write) -> Result<()> {
    let broken = |error| Error::harness("cannot hand the plan to the container").with_source(error);
    let text = serde_json::to_vec(&plan.text)
        .map_err(|error| Error::internal("cannot encode a plan").with_source(error))?;
    let length = u32::try_from(text.len()).map_err(|_| Error::internal("a plan is too long"))?;
    input.write_all(&length.to_be_bytes()).and_then(|()| input.write_all(&text)).map_err(broken)?;
    if !plan.sent.is_empty() {
        plan.pack(plan::chunks(input))?;
    }
    input.write_all(&0_u32.to_be_bytes()).and_then(|()| input.flush()).map_err(broken)
}

/// A job may leave folders that nobody may write to.
fn make_removable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for entry in walkdir::WalkDir::new(folder).into_iter().flatten() {
        if entry.file_type().is_dir() {
            let _ = fs_err::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o755));
        }
    }
}

fn not_set_up(trouble: &str) -> Error {
    // The same words stand for a limit on namespaces where nothing was unpacked.
    if trouble.contains("tar cannot unpack") && says_disk_is_full(trouble) {
        return disk_full("setting up a container", trouble);
    }
    // Where the job is over already.
    if trouble.contains("the job left") {
        return Error::harness("what a job left cannot be taken").with_detail(trouble.to_owned());
    }
    let kind = trouble.contains("/proc").then_some(ErrorKind::NoProcessNamespace);
    Error::harness("the sandbox in the container could not be set up")
        .with_kind(kind)
        .with_detail(trouble.to_owned())
}

impl Process for ContainerProcess {
    fn take_answers(&mut self) -> Option<Box<dyn Read + Send>> {
        self.answers.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)
    }

    fn requests(&mut self) -> Option<&mut dyn Write> {
        self.input.as_mut().map(|input| input as &mut dyn Write)
    }

    fn log(&self) -> String {
        let mut log = self.shared.stderr.text();
        if let Some(trouble) = &self.shared.ending().trouble {
            log.push_str(trouble);
        }
        if let Some((_, words)) = self.id.as_ref().and_then(|id| self.engine.ending(id)) {
            log = format!("{words}\n{log}");
        }
        log
    }

    fn code_inside(&mut self) -> Option<i32> {
        let over = self.shared.wait(LONGEST_END, true).unwrap_or(false);
        if over { self.shared.ending().code } else { None }
    }

    fn wait(mut self: Box<Self>, limit: Duration) -> Result<Finished> {
        let over = self.shared.wait(limit, true)?;
        let (stdout, stderr) = (self.shared.stdout.text(), self.shared.stderr.text());
        if !over {
            self.end();
            return Ok(Finished { code: None, timed_out: true, stdout, stderr });
        }
        let (code, trouble, broken, left) = {
            let mut ending = self.shared.ending();
            (ending.code, ending.trouble.take(), ending.broken.take(), ending.left.take())
        };
        if let Some(words) = broken {
            return Err(Error::harness("what a container sent cannot be taken").with_detail(words));
        }
        if let Some(trouble) = trouble {
            return Err(not_set_up(&trouble));
        }
        let Some(code) = code else {
            return Err(self.explain(Error::harness("a container died")));
        };
        if code == sandbox::SETUP_FAILED && stderr.contains(sandbox::TROUBLE) {
            return Err(not_set_up(&stderr));
        }
        if let Some((left, _)) = left {
            self.take_back(left)?;
        }
        Ok(Finished { code: Some(code).filter(|code| *code < 128), timed_out: false, stdout, stderr })
    }

    fn end(&mut self) {
        self.input = None;
        if let Some(relay) = self.relay.take() {
            relay.end();
        }
        let Some(id) = self.id.take() else { return };
        // What a job with a channel left comes once its requests are closed.
        if self.channel
            && self.sent.iter().any(|one| one.back)
            && self.shared.wait(LAST_WORDS, true).unwrap_or(false)
        {
            let mut ending = self.shared.ending();
            let left = ending.left.take().filter(|_| ending.broken.is_none());
            drop(ending);
            if let Some((left, _)) = left {
                let _ = self.take_back(left);
            }
        }
        self.engine.remove_container(&id);
    }
}

impl Drop for ContainerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes the frames of a stream apart.
struct Frames<'a> {
    shared: &'a Shared,
    answers: Option<PipeWriter>,
    relay: Option<Arc<Relay>>,
    buffer: Vec<u8>,
}

/// A reader that is gone is told nothing more.
fn pass_on(answers: &mut Option<PipeWriter>, data: &[u8]) {
    if answers.as_mut().is_some_and(|pipe| pipe.write_all(data).is_err()) {
        *answers = None;
    }
}

/// Kind and length.
const HEADER: usize = 5;
/// Bytes of a frame; the program inside sends less.
const LONGEST_FRAME: usize = 1 << 20;

impl Frames<'_> {
    fn feed(&mut self, bytes: &[u8]) {
        if self.shared.ending().broken.is_some() {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if let Err(words) = self.take_apart() {
            self.shared.ending().broken = Some(words);
            self.answers = None;
            self.buffer = Vec::new();
        }
    }

    fn take_apart(&mut self) -> Result<(), String> {
        let mut start = 0;
        while let Some(header) = self.buffer[start..].first_chunk::<HEADER>() {
            let (kind, length) =
                (header[0], u32::from_be_bytes([header[1], header[2], header[3], header[4]]));
            let length = length as usize;
            if length > LONGEST_FRAME {
                return Err(format!("a frame of {length} bytes"));
            }
            let Some(data) = self.buffer.get(start + HEADER..start + HEADER + length) else { break };
            match kind {
                b'o' => self.shared.stdout.push(data),
                b'c' => pass_on(&mut self.answers, data),
                b'n' => self.relay.as_ref().ok_or("a connection without a service")?.take(data)?,
                b'f' => self.shared.ending().keep(data, MOST_LEFT)?,
                b'e' => self.shared.ending().trouble = Some(String::from_utf8_lossy(data).into_owned()),
                b'x' => {
                    let code = std::str::from_utf8(data).ok().and_then(|text| text.parse().ok());
                    self.shared.ending().code = Some(code.ok_or("an exit code that is not a number")?);
                    // No answer follows.
                    self.answers = None;
                }
                _ => return Err(format!("a frame of the unknown kind {kind}")),
            }
            start += HEADER + length;
        }
        self.buffer.drain(..start);
        Ok(())
    }
}

impl Ending {
    /// Keeps more of what the job left, at most so many bytes.
    fn keep(&mut self, data: &[u8], most: u64) -> Result<(), String> {
        let unfit = |error| format!("what the job left does not fit into the temporary folder: {error}");
        if self.left.is_none() {
            self.left = Some((tempfile::tempfile().map_err(unfit)?, 0));
        }
        let Some((file, bytes)) = self.left.as_mut() else { return Ok(()) };
        *bytes += data.len() as u64;
        if *bytes > most {
            return Err(format!("the job left more than {} GiB", most >> 30));
        }
        file.write_all(data).map_err(unfit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_wherever_the_stream_is_cut() {
        let mut stream = Vec::new();
        for (kind, data) in [(b'o', b"out".as_slice()), (b'c', b"answer"), (b'f', b"left"), (b'x', b"7")] {
            stream.push(kind);
            stream.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
            stream.extend_from_slice(data);
        }
        for size in [1, 3, 5, 1000] {
            let shared = Shared::default();
            let (mut reader, writer) = std::io::pipe().unwrap();
            let mut frames =
                Frames { shared: &shared, answers: Some(writer), relay: None, buffer: Vec::new() };
            for part in stream.chunks(size) {
                frames.feed(part);
            }
            drop(frames);
            let mut answer = String::new();
            reader.read_to_string(&mut answer).unwrap();
            assert_eq!((answer.as_str(), shared.stdout.text().as_str()), ("answer", "out"));
            let mut ending = shared.ending();
            assert_eq!(ending.code, Some(7));
            let mut left = String::new();
            let (file, _) = ending.left.as_mut().unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            file.read_to_string(&mut left).unwrap();
            assert_eq!(left, "left");
        }
    }

    fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
        [&[kind], &u32::try_from(data.len()).unwrap().to_be_bytes()[..], data].concat()
    }

    #[test]
    fn what_the_program_inside_never_sends_is_the_end_of_the_stream() {
        let cases = [
            (vec![b'o', 0xff, 0xff, 0xff, 0xff], "a frame of 4294967295 bytes"),
            (frame(b'?', b""), "unknown kind"),
            (frame(b'x', b"seven"), "is not a number"),
            (frame(b'n', b"o\0\0\0\x01"), "without a service"),
        ];
        for (stream, words) in cases {
            let shared = Shared::default();
            let mut frames = Frames { shared: &shared, answers: None, relay: None, buffer: Vec::new() };
            frames.feed(&stream);
            frames.feed(&frame(b'x', b"0"));
            assert!(shared.wait(Duration::ZERO, false).unwrap(), "nobody is told");
            let ending = shared.ending();
            assert!(ending.broken.as_ref().is_some_and(|broken| broken.contains(words)), "{ending:?}");
            assert_eq!(ending.code, None);
            assert!(frames.buffer.is_empty());
        }
    }

    #[test]
    fn no_more_is_kept_of_what_a_job_left_than_may_be() {
        let mut ending = Ending::default();
        ending.keep(&[0; 60], 100).unwrap();
        assert!(ending.keep(&[0; 60], 100).unwrap_err().contains("left more than"));
        let (file, _) = ending.left.unwrap();
        assert_eq!(file.metadata().unwrap().len(), 60);
    }

    /// What was sent as `0`: a folder, with `kept` in it.
    fn sent() -> (tempfile::TempDir, Vec<Sent>) {
        let temp = tempfile::tempdir().unwrap();
        let host = temp.path().join("work");
        std::fs::create_dir(&host).unwrap();
        std::fs::write(host.join("kept"), "before").unwrap();
        (temp, vec![Sent { host, back: true }])
    }

    fn archive(kind: tar::EntryType) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(0);
        builder.append_link(&mut header, "0", "/").unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn what_a_job_left_takes_the_place_of_what_it_was_sent() {
        let (_temp, sent) = sent();
        put_back(&sent, archive(tar::EntryType::Directory).as_slice()).unwrap();
        assert!(sent[0].host.is_dir() && !sent[0].host.join("kept").exists());
    }

    #[test]
    fn a_folder_does_not_come_back_as_something_else() {
        let (temp, sent) = sent();
        for bytes in [archive(tar::EntryType::Symlink), archive(tar::EntryType::Regular), Vec::new()] {
            let error = put_back(&sent, bytes.as_slice()).unwrap_err();
            assert!(error.to_string().contains("did not give"), "{error}");
        }
        assert_eq!(std::fs::read(sent[0].host.join("kept")).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
