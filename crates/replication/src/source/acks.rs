//! The acknowledgements of semi-synchronous replicas: a position counts once enough of them have it. Pure.

use omnibus_log::LogPosition;
use std::collections::BTreeMap;

/// The acknowledged positions; see the module.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    /// The positions by connection; `None` before a connection's first acknowledgement.
    replicas: BTreeMap<u32, Option<LogPosition>>,
}

impl Acks {
    /// Adds a replica that acknowledges.
    pub fn connect(&mut self, connection: u32) {
        self.replicas.insert(connection, None);
    }

    /// Removes a replica. Its acknowledgements no longer count.
    pub fn disconnect(&mut self, connection: u32) {
        self.replicas.remove(&connection);
    }

    /// Records that a replica has everything before `position`.
    pub fn acknowledge(&mut self, connection: u32, position: LogPosition) {
        if let Some(known) = self.replicas.get_mut(&connection) {
            *known = (*known).max(Some(position));
        }
    }

    /// The number of replicas.
    #[must_use]
    pub fn count(&self) -> usize {
        self.replicas.len()
    }

    /// Returns the position that at least `enough` replicas have.
    #[must_use]
    pub fn reached(&self, enough: usize) -> Option<LogPosition> {
        let mut known: Vec<_> = self.replicas.values().flatten().collect();
        known.sort_unstable();
        let at = known.len().checked_sub(enough.max(1))?;
        known.get(at).copied().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omnibus_log::FileSeq;

    #[test]
    fn a_position_counts_once_enough_replicas_have_it() {
        let at = |offset| LogPosition::new(FileSeq(1), offset);
        let mut acks = Acks::default();
        for connection in 1..=3 {
            acks.connect(connection);
        }
        assert_eq!(acks.reached(1), None);
        acks.acknowledge(1, at(100));
        assert_eq!((acks.reached(1), acks.reached(2)), (Some(at(100)), None));
        acks.acknowledge(2, at(300));
        assert_eq!((acks.reached(1), acks.reached(2)), (Some(at(300)), Some(at(100))));
        acks.acknowledge(2, at(200));
        assert_eq!(acks.reached(1), Some(at(300)), "an acknowledgement is not taken back");
        acks.acknowledge(9, at(900));
        assert_eq!(acks.reached(1), Some(at(300)), "nobody we know");
        acks.disconnect(2);
        assert_eq!((acks.reached(1), acks.count()), (Some(at(100)), 2));
    }
}
