//! `performance_schema.setup_consumers`: the destinations of what is collected. Statements are counted by digest while `statements_digest`
//! and `global_instrumentation` are on; the other rows are what monitors ask for, and change nothing.

use std::sync::atomic::{AtomicU32, Ordering};

/// MySQL's, in its order, and whether they are on at a start.
const ALL: [(&str, bool); 16] = [
    ("events_stages_current", false),
    ("events_stages_history", false),
    ("events_stages_history_long", false),
    ("events_statements_cpu", false),
    ("events_statements_current", true),
    ("events_statements_history", true),
    ("events_statements_history_long", false),
    ("events_transactions_current", true),
    ("events_transactions_history", true),
    ("events_transactions_history_long", false),
    ("events_waits_current", false),
    ("events_waits_history", false),
    ("events_waits_history_long", false),
    ("global_instrumentation", true),
    ("thread_instrumentation", true),
    ("statements_digest", true),
];
/// The bits of `global_instrumentation` and `statements_digest`, without either of which no digest is counted.
const DIGESTS: u32 = 1 << 13 | 1 << 15;

/// Those that are off, a bit each.
#[derive(Debug)]
pub(crate) struct Consumers(AtomicU32);

impl Default for Consumers {
    fn default() -> Self {
        let off = ALL.iter().enumerate().filter(|(_, (_, on))| !on);
        Consumers(AtomicU32::new(off.fold(0, |bits, (at, _)| bits | 1 << at)))
    }
}

impl Consumers {
    fn is_on(&self, at: usize) -> bool {
        self.0.load(Ordering::Relaxed) >> at & 1 == 0
    }

    /// Whether statements are counted by digest.
    pub(crate) fn digests(&self) -> bool {
        self.0.load(Ordering::Relaxed) & DIGESTS == 0
    }

    /// All, and whether they are on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, bool)> {
        ALL.iter().enumerate().map(|(at, (name, _))| (*name, self.is_on(at)))
    }

    /// Switches one on or off; whether that changed anything.
    pub(crate) fn switch(&self, name: &str, on: bool) -> bool {
        let Some(at) = ALL.iter().position(|(other, _)| *other == name) else { return false };
        let before = match on {
            true => self.0.fetch_and(!(1 << at), Ordering::Relaxed),
            false => self.0.fetch_or(1 << at, Ordering::Relaxed),
        };
        (before >> at & 1 == 0) != on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_counted_unless_they_or_all_are_switched_off() {
        for (name, _) in ALL {
            let consumers = Consumers::default();
            assert!(consumers.digests());
            consumers.switch(name, false);
            assert_eq!(
                consumers.digests(),
                !matches!(name, "global_instrumentation" | "statements_digest"),
                "{name}"
            );
        }
    }
}
