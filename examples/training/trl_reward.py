"""A reward for TRL: `GRPOTrainer(reward_funcs=[Reward(dataset)], train_dataset=Dataset.from_list(rows(dataset)), ...)`.

Columns of the training set reach a reward function by their names; `instance_id` is one. Without a model:

    python examples/training/trl_reward.py output/gistify/2026.11
"""

import argparse
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from gistmill import Judge, Score
from tasks import file_of, scripted, tasks

# Plain text, or the messages of a conversation.
Completion = Union[str, Sequence[Dict[str, str]]]


class Reward:
    """Fidelity, and a part of the rate of lines that run for whoever is not there yet."""

    __name__ = "gistmill"  # what the trainer calls it in its logs

    def __init__(self, dataset: Path, partial: float = 0.0, options: Sequence[str] = ()) -> None:
        self.judge = Judge(dataset, options=options)
        self.partial = partial

    def __call__(
        self, completions: List[Completion], instance_id: List[str], **_: Any
    ) -> List[Optional[float]]:
        texts = [one if isinstance(one, str) else one[-1]["content"] for one in completions]
        scores = self.judge.score_all(zip(instance_id, map(file_of, texts)))
        # None is no reward at all: what the machine lost says nothing about the policy.
        return [self.reward(score) if isinstance(score, Score) else None for score in scores]

    def reward(self, score: Score) -> float:
        if score.fidelity or not self.partial or score.row.get("violations"):
            return score.reward
        return self.partial * (score.rate("trace_recall") or 0.0)


def rows(dataset: Path) -> List[Dict[str, Any]]:
    """The training set."""
    return [
        {"prompt": [{"role": "user", "content": task["prompt"]}], "instance_id": task["instance_id"]}
        for task in tasks(dataset)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--instances", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    arguments, options = parser.parse_known_args()
    reward = Reward(arguments.dataset, partial=0.1, options=options)
    for task in tasks(arguments.dataset)[: arguments.instances]:
        answers = [scripted(arguments.dataset, task, sample) for sample in range(arguments.samples)]
        completions: List[Completion] = [[{"role": "assistant", "content": answer}] for answer in answers]
        ids = [task["instance_id"]] * len(answers)
        print(task["instance_id"], reward(completions=completions, instance_id=ids, prompts=[""] * len(ids)))
    reward.judge.close()


if __name__ == "__main__":
    main()
