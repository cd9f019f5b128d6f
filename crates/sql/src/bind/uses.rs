//! A statement's dependencies beside its rows, as the binary log must know them: user variables, seeds, LAST_INSERT_ID,
//! and whatever gives another server other values.
//!
//! Gathered while a statement is bound and kept with its plan. [`Uses`] says what there is; whether that matters is
//! decided when the statement is logged (`session::statement_log`).

use crate::catalog::View;
use crate::error::SqlError;
use std::cell::RefCell;
use std::sync::Arc;

/// RAND() without a seed.
pub const RAND: u32 = 1;
/// LAST_INSERT_ID() without an argument.
pub const LAST_INSERT_ID: u32 = 1 << 1;
/// A stored table is read by a query inside the statement.
pub const READS: u32 = 1 << 2;
/// `@a := value`.
pub const ASSIGNS: u32 = 1 << 3;
/// A temporary table is read or changed.
pub const TEMPORARY: u32 = 1 << 4;
/// LAST_INSERT_ID is read if it is new (`sql_auto_is_null`).
pub const NEW_INSERT_ID: u32 = 1 << 5;
/// A stored function, or a trigger.
pub const STORED_FUNCTION: u32 = 1 << 6;
/// A function whose value another server would not have.
pub const SYSTEM_FUNCTION: u32 = 1 << 8;
/// A system variable that no event carries.
pub const SYSTEM_VARIABLE: u32 = 1 << 9;
/// A table of `information_schema` or `performance_schema`.
pub const SYSTEM_TABLE: u32 = 1 << 10;

/// See the module's remarks.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The constants of this module.
    pub bits: u32,
    /// User variables that it reads, by lower-case name, each once.
    pub variables: Vec<Box<str>>,
    /// Views that it reads or changes through.
    pub views: Vec<Arc<View>>,
    /// Stored tables that it names, by id.
    pub tables: Vec<u64>,
    /// Stored tables that its subqueries read, but for what derived tables read.
    pub subquery_reads: Vec<SubqueryRead>,
    /// Warnings of its names.
    pub warnings: Vec<SqlError>,
}

/// A stored table that a subquery reads.
#[derive(Clone, Debug)]
pub struct SubqueryRead {
    /// Its id.
    pub table: u64,
    /// Its name there.
    pub alias: Box<str>,
    /// The view that it is behind, and the name of that in the statement.
    pub through: Option<(u64, Box<str>)>,
}

/// Where a binder puts what it meets.
pub type UsesCell = RefCell<Uses>;

/// Functions that another server would answer otherwise.
const SYSTEM_FUNCTIONS: [&str; 20] = [
    "CURRENT_ROLE",
    "CURRENT_USER",
    "FOUND_ROWS",
    "GET_LOCK",
    "IS_FREE_LOCK",
    "IS_USED_LOCK",
    "LOAD_FILE",
    "MYSQL_QUERY_ATTRIBUTE_STRING",
    "RANDOM_BYTES",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_COUNT",
    "SESSION_USER",
    "SLEEP",
    "SYSDATE",
    "SYSTEM_USER",
    "USER",
    "UUID",
    "UUID_SHORT",
    "VERSION",
];

/// System variables that events carry, so that they have the same value everywhere.
const CARRIED: [&str; 19] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_server",
    "check_constraint_checks",
    "collation_connection",
    "collation_database",
    "collation_server",
    "foreign_key_checks",
    "identity",
    "last_insert_id",
    "lc_time_names",
    "pseudo_thread_id",
    "sql_auto_is_null",
    "sql_mode",
    "time_zone",
    "timestamp",
];

impl Uses {
    /// A function of this name (upper case) is called with so many arguments.
    pub fn function(&mut self, name: &str, arguments: usize) {
        match name {
            "RAND" if arguments == 0 => self.bits |= RAND,
            "LAST_INSERT_ID" if arguments == 0 => self.bits |= LAST_INSERT_ID,
            name if SYSTEM_FUNCTIONS.binary_search(&name).is_ok() => self.bits |= SYSTEM_FUNCTION,
            _ => {}
        }
    }

    /// A user variable is read.
    pub fn variable(&mut self, name: &str) {
        if !self.variables.iter().any(|known| **known == *name) {
            self.variables.push(name.into());
        }
    }

    /// A system variable (lower case) is read.
    pub fn system_variable(&mut self, name: &str, global: bool) {
        if matches!(name, "last_insert_id" | "identity") {
            self.bits |= LAST_INSERT_ID;
        }
        if global || !(CARRIED.contains(&name) || name == "unique_checks") {
            self.bits |= SYSTEM_VARIABLE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are_looked_up() {
        assert!(SYSTEM_FUNCTIONS.is_sorted());
        let mut uses = Uses::default();
        for name in SYSTEM_FUNCTIONS {
            let mut uses = Uses::default();
            uses.function(name, 0);
            assert_eq!(uses.bits, SYSTEM_FUNCTION, "{name}");
        }
        uses.function("RAND", 1);
        uses.function("NOW", 0);
        uses.system_variable("time_zone", false);
        assert_eq!(uses.bits, 0);
        uses.system_variable("time_zone", true);
        assert_eq!(uses.bits, SYSTEM_VARIABLE);
    }
}
