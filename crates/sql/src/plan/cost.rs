//! What reading costs: the constants by which the planner compares ways to the same rows.
//!
//! The unit is a microsecond of the server's CPU on the 2-core machine of docs/benchmarks.md, release build, rows of about 100
//! bytes that are in memory. ROW, LOOKUP and CONDITION are measured, by `bench/queries.py` (its part "constants"), which looks at some of
//! the others too; those are estimates beside them. Only their ratios matter, and a factor of two in one of them changes few plans.

/// A row of a scan along the clustered index: read, decoded as far as a condition needs.
pub const ROW: f64 = 0.25;
/// A row found through a secondary index beside its entry: a search in the clustered one.
pub const LOOKUP: f64 = 3.0;
/// A search by a complete key.
pub const POINT: f64 = 1.0;
/// The beginning of a range: an iterator over the parts of an engine, and its first row.
pub const RANGE: f64 = 2.5;
/// A condition on a row.
pub const CONDITION: f64 = 0.05;
/// A row put into a hash table.
pub const HASH_BUILD: f64 = 0.4;
/// A search in a hash table.
pub const HASH_PROBE: f64 = 0.15;
/// A row given out of a hash table.
pub const HASH_ROW: f64 = 0.1;
/// A row locked: what it keeps others from costs more than locking it.
pub const LOCK: f64 = 3.0;
/// What a scan must save before it is preferred to an index: small tables grow while plans are kept.
pub const GROWTH: f64 = 20.0;
/// Searches by a complete key that are not worth a hash table, whatever is searched.
pub const FEW: f64 = 50.0;

/// All rows of a table.
#[must_use]
pub fn scan(rows: f64) -> f64 {
    RANGE + rows * ROW
}

/// `ranges` pieces of an index with `rows` rows in all.
#[must_use]
pub fn ranges(ranges: f64, rows: f64, clustered: bool) -> f64 {
    ranges * RANGE + rows * (ROW + if clustered { 0.0 } else { LOOKUP })
}

/// A search by a complete unique key.
#[must_use]
pub fn point(clustered: bool) -> f64 {
    if clustered { POINT } else { POINT + LOOKUP }
}
