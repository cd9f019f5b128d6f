//! Ranges of an index by whole numbers where they lie, without values: a join asks for one for each row.

use crate::catalog::Table;
use crate::expr::{Context, in_place};
use crate::plan::physical::key;
use crate::plan::physical::path::{IndexRanges, Part};
use bytes::Bytes;

/// The one piece that ranges are, where it is the rows of a whole number for each of some leading parts: what most joins ask for.
pub(super) fn range(table: &Table, ranges: &IndexRanges, cx: &Context<'_>) -> Option<(Bytes, Bytes)> {
    let [interval] = &ranges.intervals[..] else { return None };
    let (parts, definition) = (interval.parts.len(), &table.indexes()[ranges.index]);
    // A complete unique key is looked up.
    let whole = definition.unique() && parts == definition.parts.len();
    if parts == 0 || whole || !interval.is_equality() {
        return None;
    }
    key::of_numbers(table, ranges.index, parts, &mut |at| match &interval.parts[at] {
        Part::One(equal) => in_place::whole_number(&equal.expr, cx),
        Part::Any(_) | Part::Among(_) => None,
    })
}
