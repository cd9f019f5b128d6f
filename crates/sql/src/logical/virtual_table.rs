//! Tables whose rows are computed when they are read: information_schema and its kind.
//!
//! Their contents belong to `show`; here is only how a query asks for them.

use super::numbers::Numbers;
use crate::api::ResultColumn;
use crate::catalog::View;
use crate::error::ExecResult;
use crate::expr::functions::VOLATILE;
use crate::expr::types::Family;
use crate::expr::{Context, Expr, Kind, SlotSet};
use crate::rows::Row;
use crate::rows::collected::Rows;
use omnibus_value::Value;
use std::rc::Rc;
use std::sync::Arc;

/// A query's conditions on a table's rows, for a table that can save itself the work for the others. The query checks its
/// conditions all the same.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Where the rows are put for the conditions.
    pub slot: u16,
    /// All of them are asked of every row.
    pub conditions: &'a [Expr],
}

impl<'a> Asked<'a> {
    /// The conditions that read nothing but these columns, compare text and cannot warn, so that asking them twice is not seen.
    #[must_use]
    pub fn only(&self, columns: &[u16]) -> Vec<&'a Expr> {
        self.conditions.iter().filter(|condition| self.reads_only(condition, columns)).collect()
    }

    fn reads_only(&self, condition: &Expr, columns: &[u16]) -> bool {
        let mut only = true;
        condition.walk(&mut |e| {
            let text = e.ty.family() == Family::String || e.ty.is_null();
            only &= match &e.kind {
                Kind::Column { slot, column, .. } => *slot == self.slot && columns.contains(column),
                Kind::And(_) | Kind::Or(_) | Kind::Not(_) | Kind::Compare(..) => true,
                Kind::In { .. } | Kind::Like(_) => true,
                Kind::Const(_) | Kind::Param(_) | Kind::Retype(_) | Kind::Transcode(_) => text,
                Kind::Call(def, _) => text && def.traits & VOLATILE == 0,
                _ => false,
            }
        });
        only
    }

    /// Whether a row of which only some columns are known can meet `conditions`, which read no others.
    pub fn met(&self, conditions: &[&Expr], row: Rc<[Value]>, cx: &mut Context<'_>) -> bool {
        cx.frame[usize::from(self.slot)].row = Row::Values(row);
        // What is wrong with a condition is said where all of them are asked.
        conditions.iter().all(|condition| condition.eval_bool(cx).map_or(true, |met| met == Some(true)))
    }
}

/// One computed table.
pub trait VirtualTable: Send + Sync {
    /// Its columns.
    fn columns(&self) -> Arc<[ResultColumn]>;
    /// Its rows now, at least those that are asked for. `cx` has the session; storage may be asked too.
    ///
    /// # Errors
    /// Whatever producing them meets.
    fn rows(&self, asked: Asked<'_>, cx: &mut Context<'_>) -> ExecResult<Rows>;
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
