//! Tables whose rows are computed when they are read: information_schema and its kind.
//!
//! Their contents belong to `show`; here is only how a query asks for them.

use super::numbers::Numbers;
use crate::api::ResultColumn;
use crate::catalog::View;
use crate::error::ExecResult;
use crate::exec::rows::Rows;
use crate::expr::{Exec, SlotSet};
use std::sync::Arc;

/// One computed table.
pub trait VirtualTable: Send + Sync {
    /// Its columns.
    fn columns(&self) -> Arc<[ResultColumn]>;
    /// All its rows now. `cx` has the session; storage may be asked too.
    ///
    /// # Errors
    /// Whatever producing them meets.
    fn rows(&self, cx: &mut Exec<'_>) -> ExecResult<Rows>;
    /// The tables that its rows depend on; none: they are the same for the whole statement.
    fn outer(&self) -> Option<&SlotSet> {
        None
    }
    /// The rows of a table that has nothing but numbers in one column.
    fn numbers(&self) -> Option<Numbers> {
        None
    }
}

/// Finds computed tables by name.
pub trait VirtualTables: Send + Sync {
    /// The table, if `schema` and `name` (any case) are one.
    fn find(&self, schema: &str, name: &str) -> Option<Arc<dyn VirtualTable>>;
    /// The view that is everywhere, if they name one.
    fn view(&self, _schema: &str, _name: &str) -> Option<Arc<View>> {
        None
    }
}

/// No computed tables at all.
#[derive(Debug, Default)]
pub struct NoVirtualTables;

impl VirtualTables for NoVirtualTables {
    fn find(&self, _schema: &str, _name: &str) -> Option<Arc<dyn VirtualTable>> {
        None
    }
}
