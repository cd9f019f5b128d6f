//! The pauses of a program that follows a log between its attempts to go on.

use std::fmt;
use std::time::Duration;

/// The pause after a first failure; each further one doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause: somebody who has mended the cause does not wait longer than this.
const LONGEST: Duration = Duration::from_secs(30);

/// A count of failures in a row, from which pauses grow.
#[derive(Clone, Debug, Default)]
pub struct BackOff {
    failures: u32,
}

/// A pause before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The number of attempts that have failed in a row.
    pub attempt: u32,
    /// The time until the next one.
    pub time: Duration,
}

impl BackOff {
    /// Counts a failure, and returns the pause behind it.
    pub fn failed(&mut self) -> Pause {
        self.failures = self.failures.saturating_add(1);
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failures - 1));
        Pause { attempt: self.failures, time: doubled.min(LONGEST) }
    }

    /// Forgets the failures: an attempt has succeeded.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

impl Pause {
    /// Blocks for the time of the pause.
    pub fn sleep(&self) {
        std::thread::sleep(self.time);
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} failed, trying again in {} s", self.attempt, self.time.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew_after_a_success() {
        let mut back_off = BackOff::default();
        let seconds: Vec<u64> = (0..8).map(|_| back_off.failed().time.as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(back_off.failed().to_string(), "attempt 9 failed, trying again in 30 s");
        back_off.succeeded();
        assert_eq!(back_off.failed(), Pause { attempt: 1, time: FIRST });
        assert_eq!(BackOff { failures: u32::MAX }.failed().time, LONGEST);
    }
}
