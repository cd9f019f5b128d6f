//! SAVEPOINT: named points of a transaction to which its writes and events can be undone. Locks stay.

use super::memory::{Room, TrxMemory};
use super::transaction::Transaction;
use super::trx::{Marks, Trx};
use crate::error::{SqlError, SqlResult};
use crate::memory::Account;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A named savepoint.
struct Savepoint {
    /// In lower case.
    name: Arc<str>,
    marks: Marks,
}

/// The savepoints of a transaction: found by name, and undone by age. There may be as many as memory holds.
#[derive(Default)]
pub(crate) struct Savepoints {
    by_age: BTreeMap<u64, Savepoint>,
    ages: HashMap<Arc<str>, u64>,
    /// The age of the next one.
    next: u64,
    account: Option<Account>,
    /// Bytes that the account has.
    bytes: usize,
}

/// Bytes of a savepoint beside its name, in a tree and a table that are half full.
const SAVEPOINT: usize = 2 * (size_of::<Savepoint>() + size_of::<(Arc<str>, u64, u64)>()) + 16;

impl Savepoints {
    /// SAVEPOINT: an older one of the same name goes.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    fn add(&mut self, name: &str, marks: Marks, memory: &TrxMemory, room: &Room) -> SqlResult<()> {
        let name: Arc<str> = name.to_ascii_lowercase().into();
        if let Some(older) = self.ages.remove(&name) {
            self.by_age.remove(&older);
            self.bytes -= SAVEPOINT + name.len();
        }
        let bytes = self.bytes + SAVEPOINT + name.len();
        self.account.get_or_insert_with(|| memory.account()).resize(bytes, room.limits)?;
        self.bytes = bytes;
        self.ages.insert(name.clone(), self.next);
        self.by_age.insert(self.next, Savepoint { name, marks });
        self.next += 1;
        Ok(())
    }

    /// Drops those of this age and younger ones.
    fn drop_from(&mut self, age: u64) {
        while let Some(last) = self.by_age.last_entry().filter(|last| *last.key() >= age) {
            let name = last.remove().name;
            self.ages.remove(&name);
            self.bytes -= SAVEPOINT + name.len();
        }
        self.ages.shrink_to(2 * self.by_age.len());
        if let Some(account) = &mut self.account {
            account.shrink_to(self.bytes as u64);
        }
    }

    fn find(&self, name: &str) -> SqlResult<u64> {
        let age = self.ages.get(name.to_ascii_lowercase().as_str());
        age.copied().ok_or_else(|| SqlError::sp_does_not_exist("SAVEPOINT", name))
    }

    /// ROLLBACK TO SAVEPOINT: the later ones go. Where to return to.
    ///
    /// # Errors
    /// 1305.
    fn rollback_to(&mut self, name: &str) -> SqlResult<Marks> {
        let age = self.find(name)?;
        self.drop_from(age + 1);
        Ok(self.by_age[&age].marks)
    }

    /// RELEASE SAVEPOINT: it and the later ones go.
    ///
    /// # Errors
    /// 1305.
    pub fn release(&mut self, name: &str) -> SqlResult<()> {
        let age = self.find(name)?;
        self.drop_from(age);
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
