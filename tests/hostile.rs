//! Hostile tests in the local sandbox; `tests/docker` has them in containers.

use crate::common::hostile::{SETTINGS, TREE, assert_contained};

#[test]
fn hostile_tests_get_their_verdicts_and_touch_nothing_else() {
    let built = assert_contained(|bench| bench.configure(SETTINGS, &[TREE]));
    assert!(!built.dataset().instances().is_empty(), "nothing was published");
}
