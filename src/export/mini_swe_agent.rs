//! What mini-swe-agent says to its model, in place of the words of its own benchmark. The instances are SWE-bench's.

use super::{Collection, Files, masked, refactoring, text};

/// What the agent's commands may not do in a terminal that nobody looks at.
const PLAIN: &str = "  env:
    PAGER: cat
";

pub(super) fn files(collection: &Collection) -> Files {
    let Some(task) = collection.tasks.first() else { return Files::new() };
    let file = &task.judging.submission;
    let config = if refactoring::is_refactoring(task) {
        let diff =
            "git add -A && git diff --cached --binary \"$(git rev-list --max-parents=0 HEAD | tail -n 1)\"";
        config(&task.workdir, (150, 300), ("the refactoring", diff), PLAIN)
    } else if masked::is_masked(task) {
        // The file is in the tree already.
        let further = "    MANPAGER: cat
    LESS: -R
    PIP_PROGRESS_BAR: \"off\"
    TQDM_DISABLE: \"1\"
model:
  model_kwargs:
    temperature: 0.0
";
        config(&task.workdir, (75, 300), ("the file", "git diff"), &[PLAIN, further].concat())
    } else {
        let diff = format!("git add -N -f {file} && git diff -- {file}");
        config(&task.workdir, (50, 120), (file, &diff), "")
    };
    Files::from([("mini-swe-agent.yaml".to_owned(), text(config))])
}

/// Steps and seconds are limits; what is handed in has a name, and a command that prints the patch.
fn config(workdir: &str, (steps, seconds): (u32, u32), (what, diff): (&str, &str), further: &str) -> String {
    format!(
        "\
# mini-extra swebench --subset DIR --split test -c swebench.yaml -c DIR/mini-swe-agent.yaml -o RUN
agent:
  step_limit: {steps}
  instance_template: |
    {{{{task}}}}

    You work in {workdir} by bash tool calls; each runs in a new subshell. When {what} is finished, hand it in by two calls,
    one after the other:

    1. {diff} > /tmp/submission.patch
    2. echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/submission.patch
environment:
  cwd: {workdir}
  timeout: {seconds}
{further}"
    )
}
