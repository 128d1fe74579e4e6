//! Values that are made once for each key, however many threads ask at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

type Slot<V> = Arc<Mutex<Option<V>>>;

/// What was made, by key. Whoever asks for what is being made waits for it; other keys do not.
#[derive(Debug)]
pub(super) struct Once<K, V>(Mutex<HashMap<K, Slot<V>>>);

impl<K, V> Default for Once<K, V> {
    fn default() -> Self {
        Once(Mutex::default())
    }
}

impl<K: Hash + Eq, V: Clone> Once<K, V> {
    /// The value of a key; made by the first who asks. What cannot be made is tried again by the next one.
    pub(super) fn get<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let slot = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*value {
            Some(value) => Ok(value.clone()),
            None => make().inspect(|made| *value = Some(made.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_value_is_made_once_and_a_failure_is_tried_again() {
        let (once, made) = (Once::<u8, usize>::default(), AtomicUsize::new(0));
        assert_eq!(once.get(1, || Err::<usize, _>("not yet")), Err("not yet"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| once.get(1, || Ok::<_, ()>(made.fetch_add(1, Ordering::SeqCst))));
            }
        });
        assert_eq!(once.get(1, || Err("made already")), Ok(0));
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
