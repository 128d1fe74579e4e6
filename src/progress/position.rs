//! Where a build of several repositories is, and how long it may still take. Pure: it is given the time.

use std::fmt;
use std::time::{Duration, Instant};

/// What takes less was there already, and says nothing about the pace.
const REUSED: Duration = Duration::from_secs(10);

/// Which repository of how many, which stage of how many.
#[derive(Debug)]
pub(super) struct Position {
    repository: usize,
    repositories: usize,
    stage: usize,
    stages: usize,
    /// When the current repository began.
    began: Instant,
    /// What each of those took that had to be worked on.
    took: Vec<Duration>,
}

impl Position {
    /// Before the first repository.
    pub(super) fn new(repositories: usize, stages: usize, now: Instant) -> Self {
        Position { repository: 0, repositories, stage: 0, stages, began: now, took: Vec::new() }
    }

    /// A repository begins, and the one before it is done.
    pub(super) fn begin(&mut self, repository: usize, now: Instant) {
        let took = now.saturating_duration_since(self.began);
        if self.repository > 0 && took >= REUSED {
            self.took.push(took);
        }
        (self.repository, self.stage, self.began) = (repository, 1, now);
    }

    /// A stage of the repository begins.
    pub(super) fn enter(&mut self, stage: usize) {
        self.stage = stage;
    }

    /// Stages that are done, of all repositories.
    pub(super) fn steps(&self) -> usize {
        self.repository.saturating_sub(1) * self.stages + self.stage.saturating_sub(1)
    }

    /// `about 12 min left`, at the mean pace of the repositories so far; none while nothing is known of it.
    pub(super) fn left(&self, now: Instant) -> Option<String> {
        let number = u32::try_from(self.took.len()).ok().filter(|number| *number > 0)?;
        let mean = self.took.iter().sum::<Duration>() / number;
        let waiting = u32::try_from(self.repositories.saturating_sub(self.repository)).ok()?;
        let current = mean.saturating_sub(now.saturating_duration_since(self.began));
        Some(format!("about {} left", rounded(mean * waiting + current)))
    }
}

/// Nobody can know it to the second.
fn rounded(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60).max(1);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { repository, repositories, stage, stages, .. } = self;
        if *repositories > 1 {
            write!(out, "repository {repository} of {repositories}, ")?;
        }
        write!(out, "stage {stage} of {stages}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_repositories_that_were_worked_on() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut position = Position::new(4, 8, start);
        position.begin(1, start);
        assert_eq!((position.left(after(99)), position.steps()), (None, 0));
        position.begin(2, after(1));
        assert_eq!(position.left(after(2)), None, "the first one was there already");
        position.enter(3);
        assert_eq!(
            (position.to_string().as_str(), position.steps()),
            ("repository 2 of 4, stage 3 of 8", 10)
        );
        position.begin(3, after(601));
        assert_eq!(position.left(after(601)).as_deref(), Some("about 20 min left"));
        assert_eq!(position.left(after(901)).as_deref(), Some("about 15 min left"));
        assert_eq!(
            position.left(after(9001)).as_deref(),
            Some("about 10 min left"),
            "the last one is still to come"
        );
    }

    #[test]
    fn one_repository_needs_no_number() {
        let mut position = Position::new(1, 8, Instant::now());
        position.begin(1, Instant::now());
        assert_eq!(position.to_string(), "stage 1 of 8");
        let said = [59, 61, 3_600, 7_260].map(|seconds| rounded(Duration::from_secs(seconds)));
        assert_eq!(said, ["1 min", "2 min", "1 h", "2 h 1 min"]);
    }
}
