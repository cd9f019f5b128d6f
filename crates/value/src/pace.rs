//! Bounds the time after which work inside one value stops when its statement must: the work reports its progress at
//! intervals to a callback, which decides whether to continue.

/// Takes how much was done since the last call, in steps of some ten nanoseconds; false: stop, the result is of no use.
pub type Pace<'a> = dyn FnMut(u32) -> bool + 'a;

/// Steps between two calls.
const STEPS: usize = 256;

/// Counts steps, so that asking costs little.
pub struct Paced<'p, 'a> {
    pace: &'p mut Pace<'a>,
    steps: usize,
    stopped: bool,
}

impl std::fmt::Debug for Paced<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paced").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl<'p, 'a> Paced<'p, 'a> {
    /// Wraps `pace`.
    pub fn new(pace: &'p mut Pace<'a>) -> Paced<'p, 'a> {
        Paced { pace, steps: 0, stopped: false }
    }

    /// Counts steps; false: stop, now and ever after.
    #[inline]
    #[must_use]
    pub fn did(&mut self, steps: usize) -> bool {
        self.steps += steps;
        if self.steps >= STEPS {
            let done = u32::try_from(self.steps / 8).unwrap_or(u32::MAX);
            self.stopped |= !(self.pace)(done);
            self.steps = 0;
        }
        !self.stopped
    }
}
