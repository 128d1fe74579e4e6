//! Requests to models that answer in one go: an instruction, and the context pack.

/// The setting of a plain answer, and that of one with thoughts before.
pub const FULL_CONTEXT: &str = "full-context";
pub const FULL_CONTEXT_COT: &str = "full-context-cot";
/// Tokens that an answer may have, of each.
pub const TOKENS: u32 = 8_192;
pub const TOKENS_COT: u32 = 16_384;

/// The request of a setting.
pub fn full_context(setting: &str, repository: &str, target: &str, context: &str) -> String {
    let task = format!(
        "Below are the README, the dependencies and the files of the repository {repository}. In its file `{target}` all imports \
         are gone, and the body of every function is `raise NotImplementedError()`, after its docstring where it has one.\n\nWrite \
         the file again: every import, and every body. What remains says how: signatures and docstrings of the file, the README, \
         the dependencies, and the other files, which import from it and call into it. Keep names, signatures and everything else \
         that the file has. The file is judged by tests of the repository that reach it."
    );
    let answer = if setting == FULL_CONTEXT_COT {
        "First say what of it matters for this file, each part between tags of its name: `<readme>`, `<dependencies>`, \
         `<implementations>` and `<file>` (what each function has to do). Then write the line `FINAL_OUTPUT:`, and after it the \
         whole file in one block that begins with ```python and ends with ```."
    } else {
        "Answer with the whole file in one block that begins with ```python and ends with ```, and nothing else."
    };
    format!("{task}\n\n{answer}\n\n{context}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::recube::answer::code_of_answer;

    #[test]
    fn each_setting_asks_for_an_answer_that_is_read() {
        let plain = full_context(FULL_CONTEXT, "a/b", "c.py", "<readme>\n");
        let cot = full_context(FULL_CONTEXT_COT, "a/b", "c.py", "<readme>\n");
        assert!(
            plain.contains("`c.py`") && plain.ends_with("\n\n<readme>\n") && !plain.contains("FINAL_OUTPUT")
        );
        assert!(cot.contains("`FINAL_OUTPUT:`"));
        for answer in [
            "```python\nx = 1\n```",
            "<file>```python\nx = 0\n```</file>\nFINAL_OUTPUT:\n```python\nx = 1\n```",
        ] {
            assert_eq!(code_of_answer(answer), ("x = 1\n".to_owned(), true));
        }
    }
}
