import asyncio
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from gistmill import BadRequest, Judge, JudgeError, Late, Lost, Score, UnknownInstance


@pytest.fixture
def folder(tmp_path):
    program = tmp_path / "gistmill"
    played = Path(__file__).with_name("played.py")
    program.write_text("#!/bin/sh\nexec %s %s \"$@\"\n" % (sys.executable, played))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "dataset").mkdir()
    return tmp_path


def judge(folder, **options):
    return Judge(folder / "dataset", program=folder / "gistmill", **options)


def seen(folder):
    return (folder / "dataset" / "seen").read_text().splitlines()


def starts(folder):
    return (folder / "dataset" / "starts").read_text().splitlines()


def test_a_score_is_the_row_with_words_for_it(folder):
    with judge(folder) as one:
        assert one.about == {"dataset": "made-up", "version": "1", "instances": 2}
        right = one.score("a", "noise", evidence=True)
        wrong = one.score("a", "wrong")
    assert (right.fidelity, right.reward, right.failure, right.rate("trace_recall")) == (True, 1.0, None, 0.5)
    assert right.evidence == {"output": "said"} and wrong.evidence is None
    assert (wrong.reward, wrong.failure) == (0.0, "violation, own-plugin, own-plugin")
    assert right.rate("line_existence") is None


def test_what_has_no_score_is_an_error_that_says_why(folder):
    with judge(folder) as one:
        for text, kind in (("late", Late), ("unknown-instance", UnknownInstance), ("bad-request", BadRequest)):
            with pytest.raises(kind, match="a: no"):
                one.score("a", text)
        with pytest.raises(Lost):
            one.score("a", "lost")
        assert sum(line.endswith("lost") for line in seen(folder)) == 5
        results = one.score_all([("a", "x"), ("a", "late"), ("a", "y")])
    assert [isinstance(result, Score) for result in results] == [True, False, True]


def test_a_judge_that_dies_is_started_again_and_gets_what_had_no_answer(folder):
    with judge(folder) as one:
        futures = [one.submit("a", text) for text in ("never", "x", "dies once", "y", "stops once")]
        for future in futures[1:]:
            assert future.result(30).fidelity
        assert not futures[0].done() and one.restarts == 1
        assert [line for line in seen(folder) if line.endswith("never")] == ["1 never", "2 never"]
        assert sum(line.endswith(" x") for line in seen(folder)) == 1, "what was answered is not handed in again"
    with pytest.raises(JudgeError, match="closed"):
        futures[0].result(5)


def test_a_judge_that_is_killed_is_started_again(folder):
    with judge(folder) as one:
        waiting = one.submit("a", "never")
        assert one.score("a", "x").fidelity
        os.kill(int(starts(folder)[-1]), signal.SIGKILL)
        assert one.score("a", "z").fidelity and one.restarts == 1 and not waiting.done()


def test_a_judge_that_dies_without_one_answer_is_started_again_in_pauses(folder):
    (folder / "dataset" / "dies-when-ready").touch()
    with judge(folder) as one:
        waiting = one.submit("a", "busy once")
        time.sleep(0.5)
        assert len(starts(folder)) <= 4 and not waiting.done()
        (folder / "dataset" / "dies-when-ready").unlink()
        assert waiting.result(30).fidelity


def test_a_judge_that_ends_in_order_is_started_again_as_well(folder):
    with judge(folder) as one:
        assert one.score("a", "stops once").fidelity
    assert [line.split()[0] for line in seen(folder)] == ["1", "2"]


def test_a_submission_that_kills_every_judge_is_lost_and_others_are_not(folder):
    with judge(folder) as one:
        deadly = one.submit("a", "always dies")
        others = [one.submit("a", "beside %d" % number) for number in range(10)]
        with pytest.raises(Lost, match="ended 5 times"):
            deadly.result(60)
        assert all(other.result(30).fidelity for other in others)
        # Whatever was twice with it is handed in alone from then on, and so is it.
        assert [sum(line == "%d always dies" % start for line in seen(folder)) for start in range(1, 6)] == [1] * 5
        assert one.score("a", "x").fidelity


def test_what_cannot_be_asked_for_is_a_bad_request_and_never_sent(folder):
    with judge(folder) as one:
        for deadline in (float("inf"), float("nan"), "60", True, 10**400):
            with pytest.raises(BadRequest, match="a: "):
                one.submit("a", "x", deadline=deadline).result(5)
        for instance, text in ((7, "x"), ("a", b"x"), ("a", None), ("a", "\ud800"), ("a", "x" * (16 << 20))):
            with pytest.raises(BadRequest):
                one.submit(instance, text).result(5)
        assert one.score("a", "\u00e4\U0001f600").fidelity and len(seen(folder)) == 1
        results = one.score_all([("a", "x"), (7, "x")])
    assert [isinstance(result, Score) for result in results] == [True, False]


def test_an_answer_without_a_number_leaves_nobody_waiting(folder):
    with judge(folder) as one:
        texts = ["x", "without id", "y", "without id", *("z%d" % number for number in range(20))]
        futures = [one.submit("a", text) for text in texts]
        for text, future in zip(texts, futures):
            if text == "without id":
                with pytest.raises(BadRequest, match="not a request"):
                    future.result(10)
            else:
                assert future.result(10).fidelity


def test_a_judge_that_is_busy_is_asked_again(folder):
    with judge(folder) as one:
        results = one.score_all([("a", "busy once")] * 40)
    assert all(result.fidelity for result in results) and len(seen(folder)) == 80


def test_a_judge_that_never_is_ready_says_what_it_said(folder):
    (folder / "dataset" / "never-ready").touch()
    with pytest.raises(JudgeError, match="no such dataset"):
        judge(folder)
    assert len(starts(folder)) == 3
    with pytest.raises(JudgeError, match="cannot be started"):
        Judge(folder, program=folder / "missing")


def test_tasks_and_threads_ask_at_the_same_time(folder):
    with judge(folder, deadline=7.5) as one:

        async def all_of_them():
            return await asyncio.gather(*(one.ascore("a", "text %d" % number) for number in range(50)))

        assert all(score.fidelity for score in asyncio.run(all_of_them()))
        results = []
        threads = [threading.Thread(target=lambda: results.append(one.score("a", "x"))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(results) == 20


def test_who_gives_up_waits_for_nothing(folder):
    with judge(folder) as one:

        async def impatient():
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(one.ascore("a", "never"), 0.2)
            return await one.ascore("a", "x")

        assert asyncio.run(impatient()).fidelity


def test_a_closed_judge_takes_nothing_and_leaves_no_process(folder):
    one = judge(folder)
    waiting = one.submit("a", "never")
    one.close()
    one.close()
    with pytest.raises(JudgeError):
        waiting.result(5)
    with pytest.raises(JudgeError):
        one.submit("a", "x")
    process = int(starts(folder)[0])
    until = time.monotonic() + 5
    while Path("/proc/%d" % process).exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path("/proc/%d" % process).exists()


def test_a_fork_does_not_talk_to_the_judge_of_its_parent(folder):
    with judge(folder) as one, one._changed:
        child = os.fork()
        if child == 0:
            try:
                one.submit("a", "x")
            except JudgeError:
                one.close()
                os._exit(7)
            os._exit(0)
        assert os.waitpid(child, 0)[1] >> 8 == 7


@pytest.mark.parametrize(
    "row, reward",
    [
        ({"passed": 3, "total": 3}, 1.0),
        ({"passed": 2, "total": 3}, 0.0),
        ({"passed": 0, "total": 0}, 0.0),
        ({"fidelity": False, "passed": 3, "total": 3}, 0.0),
    ],
)
def test_a_masked_file_is_paid_where_all_of_its_cases_pass(row, reward):
    score = Score("a", {"class": "ran", **row}, known=False, milliseconds=1)
    assert score.reward == reward
    assert (score.failure is None) == (reward == 1.0)
