//! What mini-swe-agent says to its model, in place of the words of its own benchmark. The instances are SWE-bench's.

use super::{Collection, Files, masked, refactoring, text};

pub(super) fn files(collection: &Collection) -> Files {
    let Some(task) = collection.tasks.first() else { return Files::new() };
    if refactoring::is_refactoring(task) {
        return Files::from([("mini-swe-agent.yaml".to_owned(), text(of_refactoring(&task.workdir)))]);
    }
    if masked::is_masked(task) {
        return Files::from([("mini-swe-agent.yaml".to_owned(), text(of_masked(&task.workdir)))]);
    }
    let (workdir, file) = (&task.workdir, &task.judging.submission);
    let config = format!(
        "\
# mini-extra swebench --subset DIR --split test -c swebench.yaml -c DIR/mini-swe-agent.yaml -o RUN
agent:
  step_limit: 50
  instance_template: |
    {{{{task}}}}

    You work in {workdir} by bash tool calls; each runs in a new subshell. When {file} is finished, hand it in by two calls,
    one after the other:

    1. git add -N -f {file} && git diff -- {file} > /tmp/submission.patch
    2. echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/submission.patch
environment:
  cwd: {workdir}
  timeout: 120
"
    );
    Files::from([("mini-swe-agent.yaml".to_owned(), text(config))])
}

/// Where the whole tree is changed.
fn of_refactoring(workdir: &str) -> String {
    format!(
        "\
# mini-extra swebench --subset DIR --split test -c swebench.yaml -c DIR/mini-swe-agent.yaml -o RUN
agent:
  step_limit: 150
  instance_template: |
    {{{{task}}}}

    You work in {workdir} by bash tool calls; each runs in a new subshell. When the refactoring is finished, hand it in by two calls,
    one after the other:

    1. git add -A && git diff --cached --binary \"$(git rev-list --max-parents=0 HEAD | tail -n 1)\" > /tmp/submission.patch
    2. echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/submission.patch
environment:
  cwd: {workdir}
  timeout: 300
  env:
    PAGER: cat
"
    )
}

/// Where each task has a file of its own, which the tree has already.
fn of_masked(workdir: &str) -> String {
    format!(
        "\
# mini-extra swebench --subset DIR --split test -c swebench.yaml -c DIR/mini-swe-agent.yaml -o RUN
agent:
  step_limit: 75
  instance_template: |
    {{{{task}}}}

    You work in {workdir} by bash tool calls; each runs in a new subshell. When the file is finished, hand it in by two calls,
    one after the other:

    1. git diff > /tmp/submission.patch
    2. echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/submission.patch
environment:
  cwd: {workdir}
  timeout: 300
  env:
    PAGER: cat
    MANPAGER: cat
    LESS: -R
    PIP_PROGRESS_BAR: \"off\"
    TQDM_DISABLE: \"1\"
model:
  model_kwargs:
    temperature: 0.0
"
    )
}
