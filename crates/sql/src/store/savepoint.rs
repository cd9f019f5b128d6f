//! SAVEPOINT: named points of a transaction to which its writes and events can be undone. Locks stay.

use super::trx::{Marks, Trx};
use crate::error::{SqlError, SqlResult};

/// A named savepoint.
pub(super) struct Savepoint {
    name: String,
    marks: Marks,
}

impl Trx {
    /// SAVEPOINT: an older one of the same name goes.
    pub fn savepoint(&mut self, name: &str) {
        self.savepoints.retain(|savepoint| !savepoint.name.eq_ignore_ascii_case(name));
        let marks = self.marks();
        self.savepoints.push(Savepoint { name: name.to_owned(), marks });
    }

    fn find_savepoint(&self, name: &str) -> SqlResult<usize> {
        self.savepoints
            .iter()
            .position(|savepoint| savepoint.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::sp_does_not_exist("SAVEPOINT", name))
    }

    /// ROLLBACK TO SAVEPOINT. Locks stay.
    ///
    /// # Errors
    /// 1305, or the spill file failed.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at + 1);
        self.undo(self.savepoints[at].marks)
    }

    /// RELEASE SAVEPOINT: it and the later ones go.
    ///
    /// # Errors
    /// 1305.
    pub fn release_savepoint(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at);
        Ok(())
    }
}
