"""An environment for verifiers: `load_environment(dataset)` gives a `SingleTurnEnv` whose rubric asks a judge.

Without a model, through the rubric itself:

    python examples/training/verifiers_environment.py output/gistify/2026.11
"""

import argparse
import asyncio
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from gistmill import Judge, JudgeError
from tasks import file_of, scripted, tasks


def rewards(judge: Judge) -> List[Any]:
    """Functions for a rubric: the reward, and a rate that is shown beside it."""

    async def score(completion: Any, info: Any, state: Dict[str, Any]) -> Optional[Any]:
        answer = completion if isinstance(completion, str) else completion[-1]["content"]
        if "score" not in state:
            state["score"] = await judge.ascore(info["instance_id"], file_of(answer))
        return state["score"]

    async def fidelity(completion: Any, info: Any, state: Dict[str, Any]) -> float:
        try:
            return (await score(completion, info, state)).reward
        except JudgeError as error:
            state["error"] = error  # nothing is said about the policy: leave the rollout out
            return 0.0

    async def trace_recall(completion: Any, info: Any, state: Dict[str, Any]) -> float:
        try:
            return (await score(completion, info, state)).rate("trace_recall") or 0.0
        except JudgeError:
            return 0.0

    return [fidelity, trace_recall]


def rows(dataset: Path) -> List[Dict[str, Any]]:
    return [
        {
            "prompt": [{"role": "user", "content": task["prompt"]}],
            "info": {"instance_id": task["instance_id"]},
        }
        for task in tasks(dataset)
    ]


def load_environment(dataset: str, options: Sequence[str] = ()) -> Any:
    """What verifiers calls. Needs `verifiers` and `datasets`."""
    import verifiers as vf
    from datasets import Dataset

    rubric = vf.Rubric(funcs=rewards(Judge(dataset, options=options)), weights=[1.0, 0.0])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows(Path(dataset))), rubric=rubric)


async def play(dataset: Path, number: int, options: Sequence[str]) -> None:
    """Answers of the scripted policy, all at the same time, and what the rubric's functions give."""
    with Judge(dataset, options=options) as judge:
        functions = rewards(judge)

        async def rollout(task: Dict[str, Any], sample: int) -> str:
            completion = [{"role": "assistant", "content": scripted(dataset, task, sample)}]
            state: Dict[str, Any] = {}
            info = {"instance_id": task["instance_id"]}
            values = [await function(completion=completion, info=info, state=state) for function in functions]
            named = ("%s %.2f" % (one.__name__, value) for one, value in zip(functions, values))
            return "%s sample %d: %s" % (task["instance_id"], sample, ", ".join(named))

        chosen = tasks(dataset)[:number]
        for line in await asyncio.gather(*(rollout(task, sample) for task in chosen for sample in range(2))):
            print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--instances", type=int, default=4)
    arguments, options = parser.parse_known_args()
    asyncio.run(play(arguments.dataset, arguments.instances, options))


if __name__ == "__main__":
    main()
