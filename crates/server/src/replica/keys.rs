//! The keys of tables here, for write sets: by the catalog, kept until it changes.

use omnibus_replication::replica::{Filters, KeySource, TableKeys};
use omnibus_sql::Database;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

type Known = HashMap<(Vec<u8>, Vec<u8>), Arc<TableKeys>>;

/// Looks tables up by their names at the source. One thread's.
pub(super) struct CatalogKeys {
    pub(super) database: Arc<Database>,
    pub(super) filters: Arc<Filters>,
    /// By database and table name; with the catalog's own id of the table, which a definition changes.
    known: RefCell<Known>,
}

impl CatalogKeys {
    pub(super) fn new(database: Arc<Database>, filters: Arc<Filters>) -> CatalogKeys {
        CatalogKeys { database, filters, known: RefCell::default() }
    }

    /// After a definition: nothing that was looked up is sure.
    pub(super) fn forget(&self) {
        self.known.borrow_mut().clear();
    }
}

impl KeySource for CatalogKeys {
    fn keys(&self, database: &[u8], table: &[u8]) -> Option<Arc<TableKeys>> {
        let name = (database.to_vec(), table.to_vec());
        if let Some(keys) = self.known.borrow().get(&name) {
            return Some(keys.clone());
        }
        let here = std::str::from_utf8(self.filters.rewritten(database)).ok()?;
        let catalog = self.database.catalog();
        let found = catalog.find_table(here, std::str::from_utf8(table).ok()?)?;
        let indexes = found.indexes();
        let clustered = indexes.first()?;
        let unique = indexes.iter().filter(|index| index.unique());
        let hidden = |at: usize| found.columns()[at].is_hidden();
        if unique.clone().flat_map(|index| &index.parts).any(|part| hidden(part.column)) {
            // What is unique is not in the event.
            return None;
        }
        let keys = TableKeys {
            id: u64::from(clustered.space.0),
            types: found
                .columns()
                .iter()
                .filter(|column| !column.is_hidden())
                .map(|column| column.ty.clone())
                .collect(),
            unique: unique
                .map(|index| index.parts.iter().map(|part| (part.column, part.prefix)).collect())
                .collect(),
            has_primary: found.primary().is_some(),
        };
        let keys = Arc::new(keys);
        self.known.borrow_mut().insert(name, keys.clone());
        Some(keys)
    }
}
