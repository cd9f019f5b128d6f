//! Only the changes of one database, for any consumer.

use omnibus_replication::consume::{Consumer, End, FilePosition};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};

/// Passes on the changes of the database; everything if there is none. Transactions are passed on even if they are then
/// empty, so that the reader knows how far the log has been read.
pub(super) struct ByDatabase<C> {
    inner: C,
    database: Option<Vec<u8>>,
}

impl<C> ByDatabase<C> {
    pub(super) fn new(inner: C, database: Option<Vec<u8>>) -> ByDatabase<C> {
        ByDatabase { inner, database }
    }

    pub(super) fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    fn wants(&self, database: &[u8]) -> bool {
        self.database.as_ref().is_none_or(|wanted| wanted == database)
    }
}

impl<C: Consumer> Consumer for ByDatabase<C> {
    type Error = C::Error;

    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> Result<(), C::Error> {
        self.inner.begin(trx, place)
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), C::Error> {
        if self.wants(statement.database()) { self.inner.statement(statement) } else { Ok(()) }
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), C::Error> {
        if self.wants(rows.table().database()) { self.inner.rows(rows) } else { Ok(()) }
    }

    fn end(&mut self, end: End<'_>, place: Option<FilePosition<'_>>) -> Result<(), C::Error> {
        self.inner.end(end, place)
    }

    fn undo(&mut self) -> Result<(), C::Error> {
        self.inner.undo()
    }
}
