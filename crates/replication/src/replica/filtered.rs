//! A target behind filters: it receives only changes that pass, with the databases' names here.
//!
//! Transactions always pass, empty if need be, because their identity and the position must be applied.

use super::filter::Filters;
use crate::changes::{ApplyError, ApplyTarget, Position};
use crate::model::{LoadedFile, RowsView, StatementView, TableView, TrxHeader};
use omnibus_format::DecodeError;
use omnibus_format::events::{ColumnMetadata, PrimaryKeyPart, RowsKind, UserVar, XaPrepare};
use omnibus_format::field::FieldType;
use omnibus_format::row::{RowChange, RowShape};
use std::ops::ControlFlow;

/// The objects that a statement changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Tables, `(database, table)`; none for a statement that changes no table.
    Tables(Vec<(Vec<u8>, Vec<u8>)>),
    /// A database itself.
    Database(Vec<u8>),
}

/// Finds the objects that a statement changes; the second argument is the default database here.
pub type StatementTables<'a> = &'a dyn Fn(&dyn StatementView, &[u8]) -> Changed;

/// Filters the calls of a target; see the module.
pub struct Filtered<'a, T> {
    /// The target that executes.
    pub inner: &'a mut T,
    /// The rules.
    pub filters: &'a Filters,
    /// Needed for table rules.
    pub tables: StatementTables<'a>,
}

impl<T> Filtered<'_, T> {
    fn passes(&self, statement: &dyn StatementView, database: &[u8]) -> bool {
        if !self.filters.database_passes(database) {
            return false;
        }
        if !self.filters.has_table_rules() && self.filters.rewrite.is_empty() {
            return true;
        }
        match (self.tables)(statement, database) {
            Changed::Tables(tables) => self.filters.tables_pass(&tables),
            // It is called what it is called at the source.
            Changed::Database(name) => self.filters.definition_passes(&name),
        }
    }
}

impl<T: ApplyTarget> ApplyTarget for Filtered<'_, T> {
    type Ticket = T::Ticket;

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        self.inner.begin(trx)
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError> {
        let database = self.filters.rewritten(statement.database());
        if !self.passes(statement, database) {
            return Ok(());
        }
        self.inner.statement(&Renamed { statement, database })
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        let table = rows.table();
        let database = self.filters.rewritten(table.database());
        if !self.filters.database_passes(database) || !self.filters.table_passes(database, table.name()) {
            return Ok(());
        }
        if database == table.database() {
            return self.inner.rows(rows);
        }
        self.inner.rows(&RenamedRows { rows, table: RenamedTable { table, database } })
    }

    fn ends_with(&mut self, position: Option<&Position>) {
        self.inner.ends_with(position);
    }

    fn commit(&mut self, position: Option<&Position>) -> Result<T::Ticket, ApplyError> {
        self.inner.commit(position)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, position: Option<&Position>) -> Result<T::Ticket, ApplyError> {
        self.inner.prepare(xid, position)
    }

    fn rollback(&mut self) {
        self.inner.rollback();
    }
}

struct Renamed<'a> {
    statement: &'a dyn StatementView,
    database: &'a [u8],
}

macro_rules! forward {
    ($field:ident: $($name:ident -> $type:ty;)*) => {
        $(fn $name(&self) -> $type { self.$field.$name() })*
    };
}

impl StatementView for Renamed<'_> {
    fn database(&self) -> &[u8] {
        self.database
    }
    fn user_variables(&self, each: &mut dyn FnMut(UserVar<'_>)) {
        self.statement.user_variables(each);
    }
    forward! { statement:
        sql -> &[u8];
        thread_id -> u32;
        timestamp_us -> i64;
        exec_time_s -> u32;
        error_code -> u16;
        sql_mode -> Option<u64>;
        autocommit -> Option<bool>;
        foreign_key_checks -> Option<bool>;
        check_constraint_checks -> Option<bool>;
        unique_checks -> Option<bool>;
        sql_auto_is_null -> Option<bool>;
        collations -> Option<[u16; 3]>;
        database_collation -> Option<u16>;
        auto_increment -> Option<(u16, u16)>;
        time_zone -> Option<&[u8]>;
        lc_time_names -> Option<u16>;
        default_collation_for_utf8mb4 -> Option<u16>;
        charset_collations -> &[(u16, u16)];
        updated_tables -> Option<u64>;
        last_insert_id -> Option<u64>;
        insert_id -> Option<u64>;
        rand_seeds -> Option<(u64, u64)>;
        uses_temporary_tables -> bool;
        independent_of_database -> bool;
        loaded_file -> Option<&dyn LoadedFile>;
    }
}

struct RenamedTable<'a> {
    table: &'a dyn TableView,
    database: &'a [u8],
}

impl TableView for RenamedTable<'_> {
    fn database(&self) -> &[u8] {
        self.database
    }
    fn nullable(&self, column: usize) -> bool {
        self.table.nullable(column)
    }
    fn metadata(&self, column: usize) -> &ColumnMetadata {
        self.table.metadata(column)
    }
    forward! { table:
        name -> &[u8];
        columns -> &[FieldType];
        primary_key -> &[PrimaryKeyPart];
        shape -> &RowShape;
    }
}

struct RenamedRows<'a> {
    rows: &'a dyn RowsView,
    table: RenamedTable<'a>,
}

impl RowsView for RenamedRows<'_> {
    fn table(&self) -> &dyn TableView {
        &self.table
    }
    fn each(&self, each: &mut dyn FnMut(RowChange<'_>) -> ControlFlow<()>) -> Result<(), DecodeError> {
        self.rows.each(each)
    }
    forward! { rows:
        kind -> RowsKind;
        timestamp_us -> i64;
        columns_before -> &[u8];
        columns_after -> &[u8];
        has_json_diffs -> bool;
        foreign_key_checks -> bool;
        unique_checks -> bool;
        may_replace -> bool;
        expected_rows -> Option<u64>;
        query -> Option<&[u8]>;
        ends_statement -> bool;
    }
}
