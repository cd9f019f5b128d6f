//! An apply target that asks every question of what it is given, and executes nothing.

use omnibus_format::events::XaPrepare;
use omnibus_replication::changes::{ApplyError, ApplyTarget, Position};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};
use std::ops::ControlFlow;

/// See the module.
#[derive(Default)]
pub(crate) struct Sink;

impl ApplyTarget for Sink {
    type Ticket = ();

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        std::hint::black_box(trx.origin());
        Ok(())
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError> {
        statement.user_variables(&mut |variable| {
            std::hint::black_box(variable.name.len());
        });
        std::hint::black_box((statement.insert_id(), statement.rand_seeds(), statement.sql().len()));
        if let Some(file) = statement.loaded_file() {
            let _ = file.blocks(&mut |_| Ok(()));
        }
        Ok(())
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        let shape = rows.table().shape();
        let mut result = Ok(());
        rows.each(&mut |change| {
            for image in [change.before, change.after].into_iter().flatten() {
                let diffs = image.json_diffs(shape).map(|_| ());
                if let Err(error) = image.decode(shape).map(|_| ()).and(diffs) {
                    result = Err(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        result.map_err(ApplyError::from)
    }

    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        Ok(())
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, _: Option<&Position>) -> Result<(), ApplyError> {
        std::hint::black_box(xid.gtrid.len());
        Ok(())
    }

    fn rollback(&mut self) {}
}
