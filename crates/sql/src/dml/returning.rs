//! MariaDB's RETURNING: what a statement gives back of each row that it has inserted or deleted. Kept until the statement is over, for one that
//! fails has given nothing.

use super::{Run, TargetTable};
use crate::api::{ResultColumn, RowSink};
use crate::bind::{Binder, query};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::Row;
use crate::expr::node::Expr;
use crate::rows::collected::{Rows, RowsBuilder};
use omnibus_parser::ast::SelectItem;
use omnibus_value::Value;
use std::rc::Rc;
use std::sync::Arc;

/// RETURNING, compiled.
pub(crate) struct Returning {
    outputs: Vec<Expr>,
    /// Of the result set.
    pub columns: Arc<[ResultColumn]>,
}

/// The rows of RETURNING so far.
#[derive(Default)]
pub(crate) struct Returned(Option<RowsBuilder>);

impl Returning {
    /// Binds it where the target's columns are in sight; `None` without one.
    pub(super) fn bind(binder: &mut Binder<'_>, items: &[SelectItem]) -> SqlResult<Option<Returning>> {
        if items.is_empty() {
            return Ok(None);
        }
        let settings = &binder.session.settings;
        if !settings.mariadb && !settings.replicated {
            return Err(SqlError::not_supported_yet("RETURNING"));
        }
        let (outputs, columns) = query::returning(binder, items)?;
        Ok(Some(Returning { outputs, columns: columns.into() }))
    }

    /// Takes a row, as it is stored.
    pub(super) fn take(
        &self,
        target: &TargetTable,
        run: &mut Run<'_>,
        values: &[Value],
        returned: &mut Returned,
    ) -> ExecResult<()> {
        let mut exec = target.exec(run, Row::Values(values.into()));
        let row = self.outputs.iter().map(|e| Ok(crate::expr::eval::own(e.eval(&mut exec)?)));
        let row = row.collect::<ExecResult<Rc<[Value]>>>()?;
        let rows = returned.0.get_or_insert_with(|| RowsBuilder::new(&exec));
        rows.push(row, &mut exec)
    }

    /// Sends the rows of a statement that has succeeded.
    pub(crate) fn send(&self, rows: Option<Rows>, sink: &mut dyn RowSink) -> ExecResult<()> {
        sink.columns(&self.columns)?;
        let Some(rows) = rows else { return Ok(()) };
        let mut reader = Rc::new(rows).read();
        while let Some(row) = reader.next_row()? {
            sink.row(&row)?;
        }
        Ok(())
    }
}

impl Returned {
    /// All of them.
    pub(super) fn finish(self) -> SqlResult<Option<Rows>> {
        self.0.map(RowsBuilder::finish).transpose()
    }
}
