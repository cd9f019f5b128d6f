//! SAVEPOINT: named points of a transaction to which its writes and events can be undone. Locks stay.

use super::trx::{Marks, Trx};
use crate::error::{SqlError, SqlResult};

/// A named savepoint.
pub(super) struct Savepoint {
    name: String,
    marks: Marks,
}

/// The savepoints of a transaction, in order.
#[derive(Default)]
pub(crate) struct Savepoints(Vec<Savepoint>);

impl Savepoints {
    /// SAVEPOINT: an older one of the same name goes.
    fn add(&mut self, name: &str, marks: Marks) {
        self.0.retain(|savepoint| !savepoint.name.eq_ignore_ascii_case(name));
        self.0.push(Savepoint { name: name.to_owned(), marks });
    }

    /// The transaction is over.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }

    fn find(&self, name: &str) -> SqlResult<usize> {
        self.0
            .iter()
            .position(|savepoint| savepoint.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::sp_does_not_exist("SAVEPOINT", name))
    }

    /// ROLLBACK TO SAVEPOINT: the later ones go. Where to return to.
    ///
    /// # Errors
    /// 1305.
    fn rollback_to(&mut self, name: &str) -> SqlResult<Marks> {
        let at = self.find(name)?;
        self.0.truncate(at + 1);
        Ok(self.0[at].marks)
    }

    /// RELEASE SAVEPOINT: it and the later ones go.
    ///
    /// # Errors
    /// 1305.
    pub fn release(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.0.truncate(at);
        Ok(())
    }
}

impl Trx {
    /// SAVEPOINT.
    pub fn savepoint(&mut self, name: &str) {
        let marks = self.marks();
        self.savepoints.add(name, marks);
    }

    /// ROLLBACK TO SAVEPOINT. Locks stay.
    ///
    /// # Errors
    /// 1305, or the spill file failed.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> SqlResult<()> {
        let marks = self.savepoints.rollback_to(name)?;
        self.undo(marks)
    }
}
