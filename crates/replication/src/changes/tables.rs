//! The table maps of a transaction, kept decoded from one transaction to the next, because most transactions repeat
//! them.
//!
//! Rows may only refer to tables that their own transaction has mapped. One per [`super::EventDecoder`]; the scheduler
//! of a replica has one more, with its information about each table.

use super::EventTable;
use omnibus_format::DecodeError;
use omnibus_format::cursor::Reader;
use omnibus_format::events::TableMap;
use std::collections::HashMap;

/// The maximum number of tables kept; beyond it the cache is emptied.
const KEPT: usize = 1024;

/// A cache of decoded table maps; see the module.
#[derive(Default)]
pub(crate) struct Tables<T = ()> {
    /// The tables by the number that row events use.
    known: HashMap<u64, Known<T>>,
    /// The number of the present transaction.
    trx: u64,
}

struct Known<T> {
    /// The event's body.
    body: Vec<u8>,
    table: EventTable,
    more: T,
    /// The last transaction that mapped the table.
    trx: u64,
}

impl<T> Tables<T> {
    /// Ends the transaction: the following one has to map its tables itself.
    pub(crate) fn end(&mut self) {
        self.trx += 1;
        if self.known.len() > KEPT {
            self.known.clear();
        }
    }

    /// Empties the cache.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Takes a TABLE_MAP. The result of `more` for a table is kept with it. If `more` returns nothing, the table is not
    /// kept, and the result is `false`.
    ///
    /// # Errors
    /// The event is damaged.
    pub(crate) fn say_with(
        &mut self,
        body: &[u8],
        mariadb: bool,
        more: impl FnOnce(&TableMap) -> Option<T>,
    ) -> Result<bool, DecodeError> {
        let id = Reader::new(body).uint(6, "table id")?;
        if let Some(known) = self.known.get_mut(&id)
            && known.body == body
        {
            known.trx = self.trx;
            return Ok(true);
        }
        let map = TableMap::decode_dialect(body, mariadb)?;
        let Some(more) = more(&map) else {
            self.known.remove(&id);
            return Ok(false);
        };
        let known = Known { body: body.to_vec(), table: EventTable::new(map), more, trx: self.trx };
        self.known.insert(id, known);
        Ok(true)
    }

    /// Returns the table of this number, if the transaction has mapped it.
    pub(crate) fn get_with(&self, id: u64) -> Option<(&EventTable, &T)> {
        let known = self.known.get(&id).filter(|known| known.trx == self.trx)?;
        Some((&known.table, &known.more))
    }
}

impl Tables {
    /// Takes a TABLE_MAP.
    ///
    /// # Errors
    /// The event is damaged.
    pub(crate) fn say(&mut self, body: &[u8], mariadb: bool) -> Result<(), DecodeError> {
        self.say_with(body, mariadb, |_| Some(())).map(drop)
    }

    /// Returns the table of this number, if the transaction has mapped it.
    pub(crate) fn get(&self, id: u64) -> Option<&EventTable> {
        self.get_with(id).map(|(table, ())| table)
    }
}
