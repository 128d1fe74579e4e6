"""What both examples share: tasks of a dataset, the file in an answer, and a policy that is no model."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List

_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)\n?```", re.DOTALL)


def tasks(dataset: Path) -> List[Dict[str, Any]]:
    """Instances that a submission is judged for, each with its prompt."""
    lines = (dataset / "instances.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if json.loads(line).get("test_function")]


def file_of(answer: str) -> str:
    """The file in an answer: its longest fenced block, else the answer itself."""
    return max(_FENCE.findall(answer), key=len, default=answer)


def scripted(dataset: Path, task: Dict[str, Any], sample: int) -> str:
    """An answer without a model: the witness of the instance in one sample, and something lazy in the next one."""
    witness = dataset / "witnesses" / (task["instance_id"] + ".py")
    if sample % 2 == 0 and witness.exists():
        return "Here it is.\n```python\n%s\n```\n" % witness.read_text(encoding="utf-8")
    return "```python\ndef %s():\n    pass\n```\n" % task["test_function"]
