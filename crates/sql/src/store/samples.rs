//! Rows of tables that the planner judges conditions by (`plan::cost::sampled`): those that stand at the keys which were sampled of the
//! clustered index. Read when a table is counted, and once more for each definition of it; in memory only.

use super::auto::whole_index;
use super::range::by_ref;
use crate::catalog::{RowSample, Table};
use bytes::Bytes;
use omnibus_engine::{EngineError, Snapshot};
use std::ops::Bound;

/// Rows of a sample at most.
const MOST_ROWS: usize = 128;
/// Bytes that are read for it at most: a sample of a table of long rows has fewer.
const MOST_BYTES: usize = 1 << 16;

/// Gives a table a sample, if what was counted of it is newer than the one that it has.
pub(crate) fn refresh(snapshot: &dyn Snapshot, table: &Table) -> Result<bool, EngineError> {
    let Some(counted) = table.statistics().filter(|counted| !table.is_sampled_for(counted)) else {
        return Ok(false);
    };
    let known = counted.indexes.get(&table.def.indexes[0].space.0);
    let keys = known.map_or(&[][..], |known| &known.samples[..]);
    let range = whole_index(table, 0);
    let Bound::Included(begin) = &range.from else { return Ok(false) };
    let mut rows = Vec::new();
    let mut bytes = 0;
    let step = keys.len().div_ceil(MOST_ROWS).max(1);
    // In an order in which any number of the first ones is spread over the table.
    for at in spread(keys.len().div_ceil(step)) {
        let from = [&begin[..4], &keys[at * step]].concat();
        snapshot.visit(Bound::Included(&from), by_ref(&range.to), &mut |_, row| {
            bytes += row.len();
            rows.push(Bytes::copy_from_slice(&row));
            false
        })?;
        if bytes > MOST_BYTES {
            break;
        }
    }
    table.set_sample(RowSample::new(rows, &counted));
    Ok(true)
}

/// The numbers below `count`, those first that halve what is left.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = move |at: usize| if bits == 0 { at } else { at.reverse_bits() >> (usize::BITS - bits) };
    (0..count.next_power_of_two()).map(reversed).filter(move |at| *at < count)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sample_that_ends_early_is_spread_over_the_table() {
        let order: Vec<usize> = super::spread(6).collect();
        assert_eq!(order, [0, 4, 2, 1, 5, 3]);
        assert_eq!(super::spread(1).collect::<Vec<_>>(), [0]);
        assert_eq!(super::spread(0).count(), 0);
    }
}
