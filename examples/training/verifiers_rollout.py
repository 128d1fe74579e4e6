"""A rollout of verifiers in the containers of an export, with a scripted model: an endpoint on this machine that answers as a
model with a shell would, so that no real one is needed.

    gistmill export DATASET --to verifiers --output run
    mkdir -p ~/.cache/harbor && ln -s "$PWD/run/tasks" ~/.cache/harbor/mine_1
    python examples/training/verifiers_rollout.py run/tasks --port 8700 &
    vf-eval harbor --env.taskset.dataset mine@1 --env.agent.harness.id bash --env.agent.runtime.type docker \\
        -m scripted --client.base-url http://127.0.0.1:8700/v1 -n 2 --no-push --no-rich

The first reply writes the solution of the task whose prompt it is, the second one says that it is done; a task without a solution
gets a file with an empty test, which is paid nothing.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Dict, List


def solutions(tasks: Path) -> Dict[str, str]:
    """A shell command for each prompt: what the oracle of the task does, or something lazy."""
    found = {}
    for task in sorted(tasks.iterdir()):
        script = task / "solution" / "solve.sh"
        if (task / "instruction.md").exists():
            lazy = "echo 'def test_nothing(): pass' > concise.py"
            prompt = (task / "instruction.md").read_text(encoding="utf-8")
            files = {path.name: path.read_text(encoding="utf-8") for path in task.glob("solution/*")}
            found[prompt.strip()] = written(files) if script.exists() else lazy
    return found


def written(files: Dict[str, str]) -> str:
    """A command that puts files below /solution and runs their script, as a harness does for an oracle."""
    steps = ["mkdir -p /solution"]
    for name, text in sorted(files.items()):
        steps.append("cat > /solution/%s <<'END-OF-SOLUTION'\n%s\nEND-OF-SOLUTION" % (name, text))
    return "\n".join([*steps, "bash /solution/solve.sh"])


def reply(messages: List[Dict[str, Any]], known: Dict[str, str]) -> Dict[str, Any]:
    """The next message of the assistant."""
    if any(message["role"] == "tool" for message in messages):
        return {"role": "assistant", "content": "concise.py is written."}
    said = "\n".join(text_of(message["content"]) for message in messages if message["role"] == "user")
    command = next(command for prompt, command in known.items() if prompt in said)
    call = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call-1", "type": "function", "function": call}],
    }


def text_of(content: Any) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


def server(tasks: Path, port: int) -> ThreadingHTTPServer:
    """An endpoint of chat completions."""
    known = solutions(tasks)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = reply(asked["messages"], known)
            reason = "tool_calls" if "tool_calls" in message else "stop"
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer: Dict[str, Any] = {"id": "scripted", "created": 0, "model": asked["model"], "usage": usage}
            if asked.get("stream"):
                for at, call in enumerate(message.get("tool_calls", [])):
                    call["index"] = at
                answer["object"] = "chat.completion.chunk"
                answer["choices"] = [{"index": 0, "delta": message, "finish_reason": reason}]
                body, kind = "data: %s\n\ndata: [DONE]\n\n" % json.dumps(answer), "text/event-stream"
            else:
                answer["object"] = "chat.completion"
                answer["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
                body, kind = json.dumps(answer), "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", type=Path, help="the folder tasks/ of an export")
    parser.add_argument("--port", type=int, default=8700)
    arguments = parser.parse_args()
    server(arguments.tasks, arguments.port).serve_forever()


if __name__ == "__main__":
    main()
