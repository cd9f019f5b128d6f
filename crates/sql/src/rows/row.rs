//! A row of a table instance, as it stands in a frame or is kept.

use bytes::Bytes;
use omnibus_value::Value;
use std::rc::Rc;

/// The row now in a slot.
#[derive(Clone, Debug, Default)]
pub enum Row {
    /// None yet.
    #[default]
    Unset,
    /// All columns NULL (the missing side of an outer join).
    Nulls,
    /// A stored row image, decoded column by column on demand.
    Image(Bytes),
    /// A stored row with its clustered key in front, where somebody asks for the key.
    Keyed(Rc<(Bytes, Bytes)>),
    /// Computed values.
    Values(Rc<[Value]>),
}
