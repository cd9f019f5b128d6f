//! A statement and the whole context that it needs to have the same effect elsewhere.

use omnibus_format::events::UserVar;
use std::io;

/// A statement. `None` means that the form does not have the value: the executing server uses its default.
pub trait StatementView {
    /// The statement's text, in the character set of `collations()[0]`.
    fn sql(&self) -> &[u8];
    /// The default database; empty for none.
    fn database(&self) -> &[u8];
    /// The id of the connection that executed it; temporary tables belong to one.
    fn thread_id(&self) -> u32;
    /// The statement's start in microseconds since 1970, which is the value of NOW().
    fn timestamp_us(&self) -> i64;
    /// The duration in seconds.
    fn exec_time_s(&self) -> u32 {
        0
    }
    /// The error with which it ended after changing something; 0 for none. It must end the same way everywhere.
    fn error_code(&self) -> u16 {
        0
    }
    /// `sql_mode`: MySQL's bits, of which MariaDB has the lower 32 in common.
    fn sql_mode(&self) -> Option<u64> {
        None
    }
    /// `autocommit`.
    fn autocommit(&self) -> Option<bool> {
        None
    }
    /// `foreign_key_checks`.
    fn foreign_key_checks(&self) -> Option<bool> {
        None
    }
    /// `check_constraint_checks`.
    fn check_constraint_checks(&self) -> Option<bool> {
        None
    }
    /// `unique_checks`.
    fn unique_checks(&self) -> Option<bool> {
        None
    }
    /// `sql_auto_is_null`.
    fn sql_auto_is_null(&self) -> Option<bool> {
        None
    }
    /// The collation ids of `character_set_client` (any of its collations), `collation_connection` and
    /// `collation_server`.
    fn collations(&self) -> Option<[u16; 3]> {
        None
    }
    /// The collation id of the default database, which determines the character set of a file that LOAD DATA reads.
    fn database_collation(&self) -> Option<u16> {
        None
    }
    /// `auto_increment_increment` and `auto_increment_offset`.
    fn auto_increment(&self) -> Option<(u16, u16)> {
        None
    }
    /// `time_zone`: `SYSTEM`, an offset such as `+02:00`, or a name.
    fn time_zone(&self) -> Option<&[u8]> {
        None
    }
    /// The user and host as whom it runs where its invoker matters, as in a definition without DEFINER.
    fn invoker(&self) -> Option<(&[u8], &[u8])> {
        None
    }
    /// Number of `lc_time_names`; 0 is `en_US`. `omnibus_value::locale` has them.
    fn lc_time_names(&self) -> Option<u16> {
        None
    }
    /// `default_collation_for_utf8mb4`: the collation of CHARACTER SET utf8mb4 without COLLATE in a definition.
    fn default_collation_for_utf8mb4(&self) -> Option<u16> {
        None
    }
    /// MariaDB's `character_set_collations`, if the statement used it: ids of a character set's own default and of the
    /// collation in its place.
    fn charset_collations(&self) -> &[(u16, u16)] {
        &[]
    }
    /// The tables that a multi-table UPDATE changes: a bitmap of their places in its text, the first in the lowest bit.
    fn updated_tables(&self) -> Option<u64> {
        None
    }
    /// The result of LAST_INSERT_ID() in the statement.
    fn last_insert_id(&self) -> Option<u64> {
        None
    }
    /// The first AUTO_INCREMENT value that it generates.
    fn insert_id(&self) -> Option<u64> {
        None
    }
    /// The seeds of RAND().
    fn rand_seeds(&self) -> Option<(u64, u64)> {
        None
    }
    /// Passes the user variables that it reads, with their values before it, to the callback.
    fn user_variables(&self, _each: &mut dyn FnMut(UserVar<'_>)) {}
    /// Returns whether it uses temporary tables.
    fn uses_temporary_tables(&self) -> bool {
        false
    }
    /// Returns whether its effect is independent of the default database.
    fn independent_of_database(&self) -> bool {
        false
    }
    /// The file that LOAD DATA reads.
    fn loaded_file(&self) -> Option<&dyn LoadedFile> {
        None
    }
}

/// The contents of a file that a LOAD DATA statement reads.
pub trait LoadedFile {
    /// The byte range of the file in the statement's text, from LOCAL or INFILE to before INTO's table clause. The
    /// executing server puts a file of its own there.
    fn name_span(&self) -> (u32, u32);
    /// 0 error, 1 IGNORE, 2 REPLACE.
    fn duplicate_handling(&self) -> u8;
    /// Passes the file's bytes in order to `each`, a block at a time.
    ///
    /// # Errors
    /// The first error of `each`, or of reading the blocks.
    fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}
