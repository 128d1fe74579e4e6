//! Several things at the same time.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;

/// Does several at the same time; begins none after one has failed, and gives its error when the others have ended.
pub(super) fn several<W: Send, D: Send>(
    wanted: Vec<W>,
    jobs: usize,
    one: &(dyn Fn(W) -> Result<D> + Sync),
) -> Result<Vec<D>> {
    let (queue, failed) = (Mutex::new(wanted.into_iter()), Mutex::new(None));
    let next = || {
        let is_over = failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_over { None } else { queue.lock().unwrap_or_else(PoisonError::into_inner).next() }
    };
    let work = || {
        let mut done = Vec::new();
        while let Some(wanted) = next() {
            match one(wanted) {
                Ok(it) => done.push(it),
                Err(error) => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
        done
    };
    let done: Vec<D> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let ended = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect()
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(done),
    }
}
