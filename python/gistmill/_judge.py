"""A judge in the background, and what it says."""

import asyncio
import collections
import itertools
import json
import math
import numbers
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Deque, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

# Judges that end before they are ready, in a row, after which nothing more is tried.
_MOST_STARTS = 3
# How often the judge may die with a submission, and how often it may lose it.
_MOST_DEATHS, _MOST_LOSSES = 5, 5
# Deaths after which a submission is handed in alone: it is the only one then that a further death can come from.
_SUSPECT = 2
# Longest request that the judge reads.
_LONGEST_LINE = 16 << 20
# Lines of the judge's messages that an error quotes.
_MOST_MESSAGES = 40
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# Pause before a judge that ended without one answer is started again; it doubles.
_FIRST_REST, _LONGEST_REST = 0.1, 10.0


class JudgeError(Exception):
    """A submission has no score: nothing is said about it."""


class UnknownInstance(JudgeError):
    """The dataset has no such instance."""


class Late(JudgeError):
    """The deadline came before the score."""


class Lost(JudgeError):
    """The machine could not judge it, however often it was handed in."""


class BadRequest(JudgeError):
    """The judge does not take this, such as a text that is too long."""


@dataclass(frozen=True)
class Score:
    """What the referee says of a submission."""

    instance_id: str
    #: The row of ``scores.jsonl``, as ``gistmill score`` writes it.
    row: Mapping[str, Any]
    #: Whether the same text was judged before.
    known: bool
    milliseconds: int
    #: What the row follows from; only where it was asked for.
    evidence: Optional[Mapping[str, Any]] = field(default=None, repr=False)

    @property
    def fidelity(self) -> bool:
        """Whether the submission does what the original does, by the rules: of a masked file, whether all cases pass."""
        if "fidelity" in self.row:
            return self.row["fidelity"] is True
        return 0 < self.row.get("total", 0) == self.row.get("passed")

    @property
    def reward(self) -> float:
        """1 for fidelity, else 0."""
        return 1.0 if self.fidelity else 0.0

    @property
    def failure(self) -> Optional[str]:
        """What is wrong with it: class, detail and violations; none where nothing is."""
        if self.fidelity:
            return None
        words = [self.row.get("class"), self.row.get("detail"), *self.row.get("violations", ())]
        return ", ".join(word for word in words if word) or "unknown"

    def rate(self, name: str) -> Optional[float]:
        """A rate of the row, such as ``line_existence``; none where it is not known."""
        value = self.row.get(name)
        return None if value is None else float(value)


class _Asked:
    """A submission on its way."""

    def __init__(self, instance_id: str) -> None:
        self.line = b""
        self.instance_id = str(instance_id)
        self.future: "Future[Score]" = Future()
        self.deaths = 0
        self.losses = 0
        self.pause = _FIRST_PAUSE

    def is_suspect(self) -> bool:
        return self.deaths >= _SUSPECT


class Judge:
    """Judges submissions for the instances of a dataset.

    :param dataset: The directory of the dataset.
    :param options: Further options of ``gistmill serve``, such as ``["--jobs", "4", "--source", "a/b=../b"]``.
    :param deadline: What a submission may take, in seconds, waiting included.
    :param program: The program; by default the one that was installed with this module, or is on the path.
    """

    def __init__(
        self,
        dataset: Union[str, "os.PathLike[str]"],
        options: Sequence[str] = (),
        deadline: Optional[float] = None,
        program: Optional[Union[str, "os.PathLike[str]"]] = None,
    ) -> None:
        found = os.fspath(program) if program is not None else _program()
        self._command = [found, "serve", os.fspath(dataset), "--stdio", "--quiet", *options]
        self._deadline = deadline
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._ready: Deque[Tuple[int, _Asked]] = collections.deque()
        self._suspects: Deque[Tuple[int, _Asked]] = collections.deque()
        self._resting: List[Tuple[float, int, _Asked]] = []
        self._sent: Dict[int, _Asked] = {}
        # What the judge said of requests whose number it could not read: as many of those that are sent get no answer.
        self._unnamed: List[str] = []
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._window = 0
        self._failed_starts = 0
        self._ends_in_vain = 0
        self._messages: Deque[str] = collections.deque(maxlen=_MOST_MESSAGES)
        self._trouble: Optional[str] = None
        self._closed = False
        self._owner = os.getpid()
        #: What the judge says of itself: dataset, version, number of instances.
        self.about: Mapping[str, Any] = {}
        #: How often the judge was started again.
        self.restarts = 0
        self._start()
        threading.Thread(target=self._send_all, name="gistmill-send", daemon=True).start()
        with self._changed:
            while not self.about and self._trouble is None:
                self._changed.wait()
            if self._trouble is not None:
                self._closed = True
                raise JudgeError(self._trouble)

    def score(
        self, instance_id: str, text: str, *, evidence: bool = False, deadline: Optional[float] = None
    ) -> Score:
        """Judges a submission.

        :raises JudgeError: It has no score.
        """
        return self.submit(instance_id, text, evidence=evidence, deadline=deadline).result()

    def score_all(
        self, submissions: Iterable[Tuple[str, str]], *, evidence: bool = False, deadline: Optional[float] = None
    ) -> List[Union[Score, JudgeError]]:
        """Judges pairs of instance and text at the same time; what has no score has an error in its place."""
        asked = [self.submit(one, text, evidence=evidence, deadline=deadline) for one, text in submissions]
        results: List[Union[Score, JudgeError]] = []
        for future in asked:
            try:
                results.append(future.result())
            except JudgeError as error:
                results.append(error)
        return results

    async def ascore(
        self, instance_id: str, text: str, *, evidence: bool = False, deadline: Optional[float] = None
    ) -> Score:
        """The same for asyncio.

        :raises JudgeError: It has no score.
        """
        return await asyncio.wrap_future(self.submit(instance_id, text, evidence=evidence, deadline=deadline))

    def submit(
        self, instance_id: str, text: str, *, evidence: bool = False, deadline: Optional[float] = None
    ) -> "Future[Score]":
        """Hands a submission in, and gives its score as a future; what cannot be asked for is the future's `BadRequest`."""
        if os.getpid() != self._owner:
            raise JudgeError("this judge belongs to another process: make one after the fork")
        seconds = self._deadline if deadline is None else deadline
        number = next(self._numbers)
        asked = _Asked(instance_id)
        try:
            asked.line = _line(number, instance_id, text, evidence, seconds)
        except (TypeError, ValueError, OverflowError) as error:
            _settle(asked, BadRequest("%s: %s" % (asked.instance_id, error)))
            return asked.future
        with self._changed:
            if self._trouble is not None:
                raise JudgeError(self._trouble)
            if self._closed:
                raise JudgeError("the judge is closed")
            self._ready.append((number, asked))
            self._changed.notify_all()
        return asked.future

    def close(self) -> None:
        """Ends the judge. What has no score yet gets none. After a fork the judge is the parent's, and nothing happens."""
        # A fork may have copied the lock while a thread had it, which the child has not.
        if os.getpid() != self._owner:
            return
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._fail_all("the judge is closed")
            process = self._process
            self._changed.notify_all()
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> "Judge":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    # What follows runs in threads of the judge.

    def _start(self) -> None:
        """Starts the program, and reads what it says."""
        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise JudgeError("%s cannot be started: %s" % (self._command[0], error)) from error
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self._messages.clear()
        messages = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        messages.start()
        threading.Thread(
            target=self._read, args=(process, process.stdout, messages), name="gistmill-read", daemon=True
        ).start()

    def _listen(self, messages: IO[bytes]) -> None:
        for line in messages:
            self._messages.append(line.decode("utf-8", "replace").rstrip())

    def _read(self, process: "subprocess.Popen[bytes]", lines: IO[bytes], messages: threading.Thread) -> None:
        """Gives answers to whoever waits for them, until the process ends."""
        for line in lines:
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # half a line is what a kill leaves
            if isinstance(answer, dict):
                with self._changed:
                    self._take(answer)
                    self._changed.notify_all()
        process.wait()
        messages.join(5)
        self._ended(process)

    def _take(self, answer: Dict[str, Any]) -> None:
        status = answer.get("status")
        if status == "ready":
            self.about = {key: answer.get(key) for key in ("dataset", "version", "instances")}
            # A client may have half of the queue.
            self._window = max(1, int(answer.get("queue", 2)) // 2)
            return
        number = answer.get("id")
        if number is None and status == "bad-request":
            self._unnamed.append(str(answer.get("message", status)))
        elif isinstance(number, int):
            self._failed_starts = self._ends_in_vain = 0
            asked = self._sent.pop(number, None)
            if asked is not None and not asked.future.done():
                self._give(number, asked, answer)
        if self._unnamed and len(self._sent) <= len(self._unnamed):
            # Nothing else is left that they can be about.
            for refused, message in zip(self._sent.values(), self._unnamed):
                _settle(refused, BadRequest("%s: %s" % (refused.instance_id, message)))
            self._sent.clear()
            self._unnamed.clear()

    def _give(self, number: int, asked: _Asked, answer: Dict[str, Any]) -> None:
        status = answer.get("status")
        if status in ("busy", "stopping"):
            return self._rest(number, asked)
        if status == "lost":
            asked.losses += 1
            if asked.losses < _MOST_LOSSES:
                return self._rest(number, asked)
        message = "%s: %s" % (asked.instance_id, answer.get("message", status))
        if status == "judged":
            row, evidence = answer["score"], answer.get("evidence")
            known, took = bool(answer.get("known")), int(answer.get("milliseconds", 0))
            _settle(asked, Score(asked.instance_id, row, known, took, evidence))
        else:
            kinds = {"late": Late, "lost": Lost, "unknown-instance": UnknownInstance}
            _settle(asked, kinds.get(str(status), BadRequest)(message))

    def _rest(self, number: int, asked: _Asked) -> None:
        """Hands it in again after a while."""
        self._resting.append((time.monotonic() + asked.pause, number, asked))
        asked.pause = min(2 * asked.pause, _LONGEST_PAUSE)

    def _ended(self, process: "subprocess.Popen[bytes]") -> None:
        """The program has ended: starts it again, and hands in what had no answer."""
        with self._changed:
            if self._closed or process is not self._process:
                return
            was_ready, self._window = self._window > 0, 0
            self._failed_starts += 0 if was_ready else 1
            said = "\n".join(self._messages)
            if self._failed_starts >= _MOST_STARTS or (not was_ready and process.returncode == 2):
                self._trouble = "the judge ends with %s before it is ready:\n%s" % (process.returncode, said)
                self._fail_all(self._trouble)
                self._changed.notify_all()
                return
            for number, asked in sorted(self._sent.items(), reverse=True):
                asked.deaths += 1
                if asked.deaths >= _MOST_DEATHS:
                    text = "%s: the judge ended %d times while it had this\n%s"
                    _settle(asked, Lost(text % (asked.instance_id, asked.deaths, said)))
                else:
                    (self._suspects if asked.is_suspect() else self._ready).appendleft((number, asked))
            self._sent.clear()
            self._unnamed.clear()
            pause = min(_FIRST_REST * 2 ** min(self._ends_in_vain, 10), _LONGEST_REST)
            self._ends_in_vain += 1
            self._changed.wait_for(lambda: self._closed, pause)
            if self._closed:
                return
            self.restarts += 1
            try:
                self._start()
            except JudgeError as error:
                self._trouble = str(error)
                self._fail_all(self._trouble)
            self._changed.notify_all()

    def _fail_all(self, message: str) -> None:
        waiting = [asked for _, asked in (*self._suspects, *self._ready)]
        for asked in waiting + [asked for _, _, asked in self._resting] + list(self._sent.values()):
            _settle(asked, JudgeError("%s: %s" % (asked.instance_id, message)))
        self._suspects.clear()
        self._ready.clear()
        self._resting.clear()
        self._sent.clear()

    def _send_all(self) -> None:
        """Hands in what is ready, as much at once as the judge takes of one client."""
        while True:
            with self._changed:
                found = None
                while not self._closed and self._trouble is None and found is None:
                    found = self._next()
                    if found is None:
                        self._changed.wait(self._until_the_next())
                if self._closed or self._trouble is not None or found is None:
                    return
                number, asked = found
                if asked.future.cancelled():
                    continue
                self._sent[number] = asked
                process = self._process
            assert process is not None and process.stdin is not None
            try:
                process.stdin.write(asked.line)
                process.stdin.flush()
            except OSError:
                pass  # it ends, and whoever reads what it says starts another one

    def _next(self) -> Optional[Tuple[int, _Asked]]:
        """What is handed in now. Suspects go first, and each of them alone."""
        now = time.monotonic()
        rested = [one for one in self._resting if one[0] <= now]
        if rested:
            self._resting = [one for one in self._resting if one[0] > now]
            for _, number, asked in rested:
                (self._suspects if asked.is_suspect() else self._ready).append((number, asked))
        # Of what was refused without its number more is known once what is sent has its answers.
        if not self._window or self._unnamed:
            return None
        if self._suspects:
            return None if self._sent else self._suspects.popleft()
        if any(asked.is_suspect() for asked in itertools.islice(self._sent.values(), 1)):
            return None
        return self._ready.popleft() if self._ready and len(self._sent) < self._window else None

    def _until_the_next(self) -> Optional[float]:
        if not self._resting:
            return None
        return max(0.01, min(one[0] for one in self._resting) - time.monotonic())


def _line(number: int, instance_id: str, text: str, evidence: bool, seconds: Optional[float]) -> bytes:
    """A request as the judge reads it."""
    for name, value, kind in (("instance_id", instance_id, str), ("text", text, str), ("evidence", evidence, bool)):
        if not isinstance(value, kind):
            raise TypeError("%s has to be %s, not %s" % (name, kind.__name__, type(value).__name__))
    request: Dict[str, Any] = {"id": number, "instance_id": instance_id, "submission": text, "evidence": evidence}
    if seconds is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real) or not math.isfinite(seconds):
            raise TypeError("deadline has to be a number of seconds, not %r" % (seconds,))
        request["deadline_seconds"] = float(seconds)
    line = json.dumps(request, allow_nan=False, ensure_ascii=False).encode("utf-8")
    if len(line) > _LONGEST_LINE:
        raise ValueError("a request has %d MiB at most" % (_LONGEST_LINE >> 20))
    return line + b"\n"


def _settle(asked: _Asked, result: Union[Score, JudgeError]) -> None:
    """Gives a result, unless nobody wants it any more."""
    if asked.future.done() or not asked.future.set_running_or_notify_cancel():
        return
    if isinstance(result, Score):
        asked.future.set_result(result)
    else:
        asked.future.set_exception(result)


def _program() -> str:
    """The program that was installed with this module, or is on the path."""
    own = Path(sysconfig.get_path("scripts")) / "gistmill"
    beside = Path(sys.executable).with_name("gistmill")
    for place in (own, beside):
        if os.access(str(place), os.X_OK):
            return str(place)
    found = shutil.which("gistmill")
    if found is None:
        raise JudgeError("gistmill is not on the path: install it, or name it with `program`")
    return found
