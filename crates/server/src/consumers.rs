//! `performance_schema.setup_consumers` and `setup_instruments`: what is collected, and for whom. Statements are counted by digest while
//! `statements_digest`, `global_instrumentation` and the instrument `statement/sql` are on, transactions are told of while `transaction` is; the
//! other consumers are what monitors ask for, and change nothing.

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
/// The instruments that can be switched off, whose bits are behind those.
const INSTRUMENTS: [&str; 2] = ["statement/sql", "transaction"];
/// The bits of `global_instrumentation`, `statements_digest` and `statement/sql`, without any of which no digest is counted.
const DIGESTS: u32 = 1 << 13 | 1 << 15 | 1 << ALL.len();

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

    /// Whether an instrument is on; most always are.
    pub(crate) fn is_instrument_on(&self, name: &str) -> bool {
        bit_of_instrument(name).is_none_or(|at| self.is_on(at))
    }

    /// Switches a consumer on or off; whether that changed anything.
    pub(crate) fn switch(&self, name: &str, on: bool) -> bool {
        ALL.iter().position(|(other, _)| *other == name).is_some_and(|at| self.set(at, on))
    }

    /// The same for an instrument. One that is always on stays so.
    pub(crate) fn switch_instrument(&self, name: &str, on: bool) -> bool {
        bit_of_instrument(name).is_some_and(|at| self.set(at, on))
    }

    fn set(&self, at: usize, on: bool) -> bool {
        let before = match on {
            true => self.0.fetch_and(!(1 << at), Ordering::Relaxed),
            false => self.0.fetch_or(1 << at, Ordering::Relaxed),
        };
        (before >> at & 1 == 0) != on
    }
}

fn bit_of_instrument(name: &str) -> Option<usize> {
    INSTRUMENTS.iter().position(|other| *other == name).map(|at| ALL.len() + at)
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
        for name in INSTRUMENTS {
            let consumers = Consumers::default();
            assert!(consumers.switch_instrument(name, false) && !consumers.is_instrument_on(name));
            assert_eq!(consumers.digests(), name != "statement/sql");
        }
        assert!(!Consumers::default().switch_instrument("memory/sql/statements", false));
    }
}
