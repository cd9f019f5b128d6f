//! SAVEPOINT: named points of a transaction to which its writes and events can be undone. Locks stay.

use super::memory::{Room, TrxMemory};
use super::transaction::Transaction;
use super::trx::{Marks, Trx};
use crate::error::{SqlError, SqlResult};
use crate::memory::Account;

/// A named savepoint.
pub(super) struct Savepoint {
    name: String,
    marks: Marks,
}

/// The savepoints of a transaction, in order.
#[derive(Default)]
pub(crate) struct Savepoints {
    list: Vec<Savepoint>,
    account: Option<Account>,
}

/// What a savepoint takes, in a list that grows by doubling.
const SAVEPOINT: usize = 2 * size_of::<Savepoint>() + 64;

impl Savepoints {
    /// SAVEPOINT: an older one of the same name goes.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    fn add(&mut self, name: &str, marks: Marks, memory: &TrxMemory, room: &Room) -> SqlResult<()> {
        self.list.retain(|savepoint| !savepoint.name.eq_ignore_ascii_case(name));
        let account = self.account.get_or_insert_with(|| memory.account());
        account.resize((self.list.len() + 1) * SAVEPOINT, room.limits)?;
        self.list.push(Savepoint { name: name.to_owned(), marks });
        Ok(())
    }

    fn shorten(&mut self, length: usize) {
        self.list.truncate(length);
        self.list.shrink_to(2 * length);
        if let Some(account) = &mut self.account {
            account.shrink_to((length * SAVEPOINT) as u64);
        }
    }

    fn find(&self, name: &str) -> SqlResult<usize> {
        self.list
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
        self.shorten(at + 1);
        Ok(self.list[at].marks)
    }

    /// RELEASE SAVEPOINT: it and the later ones go.
    ///
    /// # Errors
    /// 1305.
    pub fn release(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find(name)?;
        self.shorten(at);
        Ok(())
    }
}

impl Trx {
    /// SAVEPOINT.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    pub fn savepoint(&mut self, name: &str) -> SqlResult<()> {
        let marks = self.marks();
        let Transaction { savepoints, memory, .. } = &mut self.transaction;
        savepoints.add(name, marks, memory, &self.statement.attempt.room)
    }

    /// ROLLBACK TO SAVEPOINT. Locks stay.
    ///
    /// # Errors
    /// 1305, or the spill file failed.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> SqlResult<()> {
        let marks = self.transaction.savepoints.rollback_to(name)?;
        self.rollback_statement(marks)
    }
}
