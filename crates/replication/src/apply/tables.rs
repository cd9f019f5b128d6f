//! The table maps of a transaction, kept decoded from one transaction to the next: most say the same tables again.
//!
//! Rows may only name tables that their own transaction has said. One per [`super::EventDecoder`]; the scheduler of a
//! replica has one more, with what it knows of each table.

use super::EventTable;
use omnibus_format::DecodeError;
use omnibus_format::cursor::Reader;
use omnibus_format::events::TableMap;
use std::collections::HashMap;

/// Tables kept at most: a source with more of them begins anew now and then.
const KEPT: usize = 1024;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Tables<T = ()> {
    /// By the number that row events use.
    known: HashMap<u64, Known<T>>,
    /// Counts transactions.
    trx: u64,
}

struct Known<T> {
    /// The event's body.
    body: Vec<u8>,
    table: EventTable,
    more: T,
    /// The transaction that said it last.
    trx: u64,
}

impl<T> Tables<T> {
    /// The transaction is over: what follows has to say its tables itself.
    pub(crate) fn end(&mut self) {
        self.trx += 1;
        if self.known.len() > KEPT {
            self.known.clear();
        }
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Takes a TABLE_MAP. What `more` finds for a table is kept with it; where it finds nothing the table is not, and
    /// `false` comes back.
    ///
    /// # Errors
    /// Damage.
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

    /// The table of this number, if the transaction has said it.
    pub(crate) fn get_with(&self, id: u64) -> Option<(&EventTable, &T)> {
        let known = self.known.get(&id).filter(|known| known.trx == self.trx)?;
        Some((&known.table, &known.more))
    }
}

impl Tables {
    /// Takes a TABLE_MAP.
    ///
    /// # Errors
    /// Damage.
    pub(crate) fn say(&mut self, body: &[u8], mariadb: bool) -> Result<(), DecodeError> {
        self.say_with(body, mariadb, |_| Some(())).map(drop)
    }

    /// The table of this number, if the transaction has said it.
    pub(crate) fn get(&self, id: u64) -> Option<&EventTable> {
        self.get_with(id).map(|(table, ())| table)
    }
}
