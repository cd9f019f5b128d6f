//! A statement and the whole context that it needs to do the same elsewhere.

use omnibus_format::events::UserVar;
use std::io;

/// A statement. `None` means that the form does not say: whoever executes it uses the server's default.
pub trait StatementView {
    /// Its text, in `collations()[0]`'s character set.
    fn sql(&self) -> &[u8];
    /// The default database; empty for none.
    fn database(&self) -> &[u8];
    /// The connection that ran it; temporary tables belong to one.
    fn thread_id(&self) -> u32;
    /// When it began: microseconds since 1970. NOW() is this.
    fn timestamp_us(&self) -> i64;
    /// Seconds it took.
    fn exec_time_s(&self) -> u32 {
        0
    }
    /// The error that it ended with after changing something; 0 for none. It must end so everywhere.
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
    /// Collation ids of `character_set_client` (any of its collations), `collation_connection`, `collation_server`.
    fn collations(&self) -> Option<[u16; 3]> {
        None
    }
    /// Collation id of the default database, for what depends on it: the text of a file that LOAD DATA reads.
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
    /// User and host that it acts for where it asks who that is, as a definition without DEFINER does.
    fn invoker(&self) -> Option<(&[u8], &[u8])> {
        None
    }
    /// Number of `lc_time_names`; 0 is `en_US`. `omnibus_value::locale` has them.
    fn lc_time_names(&self) -> Option<u16> {
        None
    }
    /// `default_collation_for_utf8mb4`: what a definition means by CHARACTER SET utf8mb4 without COLLATE.
    fn default_collation_for_utf8mb4(&self) -> Option<u16> {
        None
    }
    /// MariaDB's `character_set_collations`, where the statement asked for one: ids of a character set's own default and of the
    /// collation that stood for it.
    fn charset_collations(&self) -> &[(u16, u16)] {
        &[]
    }
    /// The tables that a multi-table UPDATE changes: a bitmap of their places in its text, the first in the lowest bit.
    fn updated_tables(&self) -> Option<u64> {
        None
    }
    /// What LAST_INSERT_ID() returns in it.
    fn last_insert_id(&self) -> Option<u64> {
        None
    }
    /// The first AUTO_INCREMENT value it makes.
    fn insert_id(&self) -> Option<u64> {
        None
    }
    /// The seeds of RAND().
    fn rand_seeds(&self) -> Option<(u64, u64)> {
        None
    }
    /// The user variables that it reads, as they were before it.
    fn user_variables(&self, _each: &mut dyn FnMut(UserVar<'_>)) {}
    /// Whether it uses temporary tables.
    fn uses_temporary_tables(&self) -> bool {
        false
    }
    /// Whether it does the same whatever the default database is.
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
    /// Bytes of the statement's text that name the file, from LOCAL or INFILE to before INTO's table clause: whoever
    /// executes it puts a file of its own there.
    fn name_span(&self) -> (u32, u32);
    /// 0 error, 1 IGNORE, 2 REPLACE.
    fn duplicate_handling(&self) -> u8;
    /// Gives the file's bytes in order, a block at a time.
    ///
    /// # Errors
    /// The first one of `each`, or of reading the blocks.
    fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}
