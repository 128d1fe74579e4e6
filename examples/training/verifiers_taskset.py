"""A taskset for verifiers 0.4 and later: a task for each instance, with a reward that asks a judge.

As `taskset` of an environment: `GistmillTaskset(GistmillConfig(dataset="output/gistify/2026.11"))`. Without a model, through
verifiers' own tasks and traces with scripted replies:

    python examples/training/verifiers_taskset.py output/gistify/2026.11
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import verifiers.v1 as vf
from gistmill import Judge, Score
from tasks import file_of, scripted, tasks
from verifiers.v1.state import state_cls
from verifiers.v1.trace import Trace, TraceTask

# One judge for each dataset and its options; it serves all rollouts of the process.
_JUDGES: Dict[Tuple[str, ...], Judge] = {}


class GistmillTaskConfig(vf.TaskConfig):
    dataset: str = ""
    options: List[str] = []
    """Further options of `gistmill serve`."""


class GistmillConfig(vf.TasksetConfig):
    task: GistmillTaskConfig = GistmillTaskConfig()
    dataset: str = ""
    options: List[str] = []


class GistmillData(vf.TaskData):
    instance_id: str


class GistmillTask(vf.Task[GistmillData, vf.State, GistmillTaskConfig]):
    @property
    def key(self) -> str:
        return self.data.instance_id

    async def judged(self, trace: Trace) -> Score:
        """The score of the last reply. What has none raises: nothing is said about the policy, and no reward is recorded."""
        place = (self.config.dataset, *self.config.options)
        judge = _JUDGES.get(place)
        if judge is None:
            judge = _JUDGES[place] = Judge(self.config.dataset, options=self.config.options)
        return await judge.ascore(self.data.instance_id, file_of(trace.last_reply))

    @vf.reward
    async def fidelity(self, trace: Trace) -> float:
        score = await self.judged(trace)
        if score.failure is not None:
            trace.info["failure"] = score.failure
        return score.reward

    @vf.metric
    async def trace_recall(self, trace: Trace) -> float:
        # The same text: the judge knows it, or judges it at this moment.
        return (await self.judged(trace)).rate("trace_recall") or 0.0


class GistmillTaskset(vf.Taskset[GistmillTask, GistmillConfig]):
    def load(self) -> Iterator[GistmillTask]:
        update = {"dataset": self.config.dataset, "options": self.config.options}
        config = self.config.task.model_copy(update=update)
        for task in tasks(Path(self.config.dataset)):
            data = GistmillData(prompt=task["prompt"], id=task["instance_id"], instance_id=task["instance_id"])
            yield GistmillTask(data, config)


async def play(dataset: Path, number: int, options: List[str]) -> None:
    """Scores scripted replies as verifiers scores those of a model."""
    known = {task["instance_id"]: task for task in tasks(dataset)}
    taskset = GistmillTaskset(GistmillConfig(dataset=str(dataset), options=options))

    async def rollout(task: GistmillTask, sample: int) -> str:
        recorded = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        agent: Any = vf.AgentInfo(config=vf.AgentConfig(), name="scripted", trainable=False)
        trace = Trace(task=recorded, state=state_cls(type(task))(), agent=agent)
        trace.root_reply = scripted(dataset, known[task.data.instance_id], sample)
        await task.score(trace)
        return "%s sample %d: reward %.1f, %s, %s" % (task.key, sample, trace.reward, trace.metrics, trace.info)

    rollouts = [rollout(task, sample) for task in taskset.take(number) for sample in range(2)]
    for line in await asyncio.gather(*rollouts):
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--instances", type=int, default=4)
    arguments, options = parser.parse_known_args()
    asyncio.run(play(arguments.dataset, arguments.instances, options))
    for judge in _JUDGES.values():
        judge.close()


if __name__ == "__main__":
    main()
