//! The nearest known word to one that is not known.

/// The known word that was probably meant, if one is near enough.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = normalise(word);
    let best =
        known.iter().copied().min_by_key(|candidate| strsim::osa_distance(&plain, &normalise(candidate)))?;
    let allowed = (plain.chars().count().max(best.chars().count()) / 3).clamp(1, 5);
    (strsim::osa_distance(&plain, &normalise(best)) <= allowed).then_some(best)
}

/// Words between backticks, as a list.
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// The nearest known word as a question, else all of them.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", list(known)),
    }
}

fn normalise(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_slips_find_their_word() {
        let known = ["attempts", "case_timeout", "group_timeout", "seed"];
        for (slip, word) in [("atempts", "attempts"), ("case-timeout", "case_timeout"), ("sede", "seed")] {
            assert_eq!(nearest(slip, &known), Some(word));
        }
        assert_eq!(nearest("colour", &known), None);
    }

    #[test]
    fn nothing_is_near_to_nothing() {
        assert_eq!(nearest("", &["seed"]), None);
        assert_eq!(nearest("seed", &[]), None);
    }
}
