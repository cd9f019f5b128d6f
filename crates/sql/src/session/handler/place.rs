//! Where a READ begins and which way it goes, as keys of the index.

use crate::catalog::Table;
use crate::catalog::codec::successor;
use crate::state::Place;
use crate::storage::Scan;
use bytes::Bytes;
use omnibus_parser::ast::{BinaryOp, HandlerStep};
use omnibus_value::Value;

/// A scan for the rows of one READ: `key` are the values of a READ by key. Behind it the table is read up to what `rest` returns.
pub(super) fn scan(
    table: &Table,
    index: Option<usize>,
    step: &HandlerStep,
    key: &[Value],
    before: Option<&Place>,
) -> Scan {
    let before = before.filter(|place| place.index == index);
    let index = index.unwrap_or(0);
    let whole = table.whole_index(index);
    let (range, reverse) = match (step, before) {
        (HandlerStep::Next, Some(place)) => ((after(place), whole.1), false),
        (HandlerStep::Previous, Some(place)) => ((whole.0, place.key.clone()), true),
        (HandlerStep::First | HandlerStep::Next, _) => (whole, false),
        (HandlerStep::Last | HandlerStep::Previous, _) => (whole, true),
        (HandlerStep::Key { op, .. }, _) => {
            let prefix = table.key_prefix(index, key);
            let behind = successor(&prefix).unwrap_or_else(|| whole.1.clone());
            match op {
                BinaryOp::Eq => ((prefix, behind), false),
                BinaryOp::Ge => ((prefix, whole.1), false),
                BinaryOp::Gt => ((behind, whole.1), false),
                BinaryOp::Le => ((whole.0, behind), true),
                _ => ((whole.0, prefix), true),
            }
        }
    };
    Scan { reverse, ..Scan::new(index, range) }
}

/// The place behind a READ that has come to the end of what it looked for.
pub(super) fn end_of(index: Option<usize>, scan: &Scan) -> Place {
    let key = if scan.reverse { scan.from.clone() } else { scan.to.clone() };
    Place { index, key, is_row: false }
}

/// The place of a row.
pub(super) fn of_row(table: &Table, index: Option<usize>, values: &[Value], clustered: &Bytes) -> Place {
    let key = match index {
        None | Some(0) => clustered.clone(),
        Some(index) => table.keys[index].entry(values, clustered).key,
    };
    Place { index, key, is_row: true }
}

/// The first key behind a place.
fn after(place: &Place) -> Bytes {
    if !place.is_row {
        return place.key.clone();
    }
    let mut key = place.key.to_vec();
    key.push(0);
    key.into()
}
