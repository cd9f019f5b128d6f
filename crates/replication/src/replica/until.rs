//! START REPLICA UNTIL: the condition at which applying ends.

use super::group::Received;
use super::position::SourcePosition;
use omnibus_format::{AnyGtid, GtidPosition, GtidSet};
use std::cmp::Ordering;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// SOURCE_LOG_FILE and SOURCE_LOG_POS: stop at the first transaction at or behind it.
    Source(SourcePosition),
    /// SQL_BEFORE_GTIDS: stop before the first of these.
    BeforeGtids(GtidSet),
    /// SQL_AFTER_GTIDS: stop when all of these are applied.
    AfterGtids(GtidSet),
    /// SQL_AFTER_MTS_GAPS: this server never has gaps.
    NoGaps,
    /// master_gtid_pos: stop when every domain has reached its GTID.
    MariadbGtids(GtidPosition),
}

impl Until {
    /// Until_Condition of SHOW REPLICA STATUS.
    #[must_use]
    pub fn name(&self, old_names: bool) -> &'static str {
        match self {
            Until::Source(_) if old_names => "Master",
            Until::Source(_) => "Source",
            Until::BeforeGtids(_) => "SQL_BEFORE_GTIDS",
            Until::AfterGtids(_) => "SQL_AFTER_GTIDS",
            Until::NoGaps => "SQL_AFTER_MTS_GAPS",
            Until::MariadbGtids(_) => "Gtid",
        }
    }

    /// Returns whether the condition is met at `at`, with nothing more to apply.
    #[must_use]
    pub fn is_reached(
        &self,
        at: &SourcePosition,
        gtids: &GtidPosition,
        executed: &dyn Fn() -> GtidSet,
    ) -> bool {
        match self {
            Until::Source(until) => {
                matches!(at.compare(until), Some(Ordering::Equal | Ordering::Greater))
            }
            Until::BeforeGtids(_) => false,
            Until::AfterGtids(set) => executed().contains_set(set),
            Until::NoGaps => true,
            Until::MariadbGtids(until) => until
                .0
                .values()
                .all(|gtid| gtids.0.get(&gtid.domain).is_some_and(|at| at.sequence >= gtid.sequence)),
        }
    }

    /// Returns whether applying must end before this transaction.
    #[must_use]
    pub fn ends_before(&self, next: &Received) -> bool {
        match (self, next.trx.gtid) {
            (Until::Source(until), _) => {
                matches!(next.start.compare(until), Some(Ordering::Equal | Ordering::Greater))
            }
            (Until::BeforeGtids(set), Some(AnyGtid::Mysql { source, gno })) => set.contains(source, gno),
            _ => false,
        }
    }

    /// Returns whether this transaction is behind the end of its domain, while other domains have not reached theirs.
    #[must_use]
    pub fn is_beyond(&self, next: &Received) -> bool {
        match (self, next.trx.gtid) {
            (Until::MariadbGtids(until), Some(AnyGtid::Mariadb(gtid))) => {
                until.0.get(&gtid.domain).is_none_or(|end| gtid.sequence > end.sequence)
            }
            _ => false,
        }
    }
}
