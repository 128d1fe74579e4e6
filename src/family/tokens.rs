//! Numbers of tokens, as the encoding cl100k_base counts them; marks of special tokens are plain text.

/// Longer blanks make the tokenizer's pattern fail, in bytes.
const LONGEST_BLANK: usize = 500_000;

/// The tokens of a text. None where the tokenizer fails: a number that is not known stops nothing.
pub fn count(text: &str) -> Option<u64> {
    let blanks = text.split(|c: char| !c.is_whitespace()).map(str::len).max();
    let encoding = tiktoken_rs::cl100k_base_singleton();
    blanks.is_none_or(|most| most < LONGEST_BLANK).then(|| encoding.encode_ordinary(text).len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_text_has_its_number_of_tokens() {
        assert_eq!(count("def f():\n    return 1\n"), Some(8));
        assert_eq!(count("tiktoken is great!"), Some(6));
        assert_eq!(count(&format!("a{}b", " ".repeat(1_100_000))), None, "the tokenizer would panic");
        assert_eq!(count("<|endoftext|>"), count("<|endoftext|>x").map(|tokens| tokens - 1), "plain text");
    }
}
