//! Values that occur often, each once: what the page embeds refers to them by number.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Serialize, Serializer};

/// Values in the order of their first occurrence; encoded as their list.
#[derive(Debug)]
pub(crate) struct Dictionary<T> {
    pub(crate) values: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T> Default for Dictionary<T> {
    fn default() -> Self {
        Dictionary { values: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Serialize> Serialize for Dictionary<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values.serialize(serializer)
    }
}

impl<T: Clone + Eq + Hash> Dictionary<T> {
    /// The number of a value.
    pub(crate) fn place(&mut self, value: T) -> usize {
        *self.places.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            self.values.len() - 1
        })
    }

    /// The number of a value, for lists that hold negative numbers as well.
    pub(crate) fn number(&mut self, value: T) -> i64 {
        i64::try_from(self.place(value)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_number() {
        let mut words = Dictionary::default();
        assert_eq!(["a", "b", "a", "c", "b"].map(|word| words.place(word)), [0, 1, 0, 2, 1]);
        assert_eq!(words.values, ["a", "b", "c"]);
    }
}
