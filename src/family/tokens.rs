//! Numbers of tokens, as the encoding cl100k_base counts them; marks of special tokens are plain text.

/// The tokens of a text. None where the tokenizer fails: a number that is not known stops nothing.
pub fn count(text: &str) -> Option<u64> {
    let encoding = tiktoken_rs::cl100k_base_singleton();
    Some(encoding.encode_ordinary(text).len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_text_has_its_number_of_tokens() {
        assert_eq!(count("def f():\n    return 1\n"), Some(8));
        assert_eq!(count("tiktoken is great!"), Some(6));
        assert_eq!(count("<|endoftext|>"), count("<|endoftext|>x").map(|tokens| tokens - 1), "plain text");
    }
}
