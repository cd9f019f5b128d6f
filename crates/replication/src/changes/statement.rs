//! QUERY and EXECUTE_LOAD_QUERY events, with the INTVAR, RAND and USER_VAR events before them, as a statement's view.

use crate::model::{LoadedFile, StatementView};
use omnibus_format::events::{
    INTVAR_INSERT_ID, INTVAR_LAST_INSERT_ID, IntVar, Query, Rand, StatusVars, UserVar, flags2,
};
use omnibus_format::header::{FLAG_SUPPRESS_USE, FLAG_THREAD_SPECIFIC};
use omnibus_format::{DecodeError, EventHeader};

/// The collation id with which MariaDB names utf8mb4 in `character_set_collations`.
const UTF8MB4_GENERAL: u16 = 45;

/// The context from the events before a statement.
#[derive(Clone, Debug, Default)]
pub struct StatementVariables {
    last_insert_id: Option<u64>,
    insert_id: Option<u64>,
    rand: Option<(u64, u64)>,
    /// Bodies of USER_VAR events, which have been checked.
    user_variables: Vec<Vec<u8>>,
}

impl StatementVariables {
    /// Takes an INTVAR event.
    pub(super) fn intvar(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let var = IntVar::decode(body)?;
        match var.kind {
            INTVAR_LAST_INSERT_ID => self.last_insert_id = Some(var.value),
            INTVAR_INSERT_ID => self.insert_id = Some(var.value),
            _ => return Err(DecodeError::new(0, "intvar type")),
        }
        Ok(())
    }

    /// Takes a RAND event.
    pub(super) fn rand(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let Rand(first, second) = Rand::decode(body)?;
        self.rand = Some((first, second));
        Ok(())
    }

    /// Takes a USER_VAR event.
    pub(super) fn user_variable(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        UserVar::decode(body)?;
        self.user_variables.push(body.to_vec());
        Ok(())
    }
}

/// A statement from binlog events.
pub struct EventStatement<'a> {
    query: Query<'a>,
    vars: StatusVars,
    header: EventHeader,
    context: &'a StatementVariables,
    file: Option<&'a dyn LoadedFile>,
}

/// The bits of `sql_mode` that MariaDB has in common; its higher bits have other meanings.
const COMMON_SQL_MODES: u64 = 0xffff_ffff;

impl<'a> EventStatement<'a> {
    /// Creates the view of a QUERY event; `mariadb` is true if such a server wrote it.
    ///
    /// # Errors
    /// The event's status variables are damaged.
    pub fn new(
        header: EventHeader,
        query: Query<'a>,
        context: &'a StatementVariables,
        mariadb: bool,
    ) -> Result<EventStatement<'a>, DecodeError> {
        let mut vars = query.status_vars()?;
        if mariadb {
            vars.sql_mode = vars.sql_mode.map(|mode| mode & COMMON_SQL_MODES);
        }
        Ok(EventStatement { query, vars, header, context, file: None })
    }

    /// Adds the file that the statement reads.
    #[must_use]
    pub fn with_file(mut self, file: &'a dyn LoadedFile) -> Self {
        self.file = Some(file);
        self
    }

    fn flag(&self, bit: u32) -> Option<bool> {
        self.vars.flags2.map(|flags| flags & bit != 0)
    }
}

impl StatementView for EventStatement<'_> {
    fn sql(&self) -> &[u8] {
        self.query.sql
    }
    fn database(&self) -> &[u8] {
        self.query.database
    }
    fn thread_id(&self) -> u32 {
        self.query.thread_id
    }
    fn timestamp_us(&self) -> i64 {
        let fraction = self.vars.microseconds.or(self.vars.mariadb_hrnow).unwrap_or(0);
        i64::from(self.header.timestamp) * 1_000_000 + i64::from(fraction)
    }
    fn exec_time_s(&self) -> u32 {
        self.query.exec_time
    }
    fn error_code(&self) -> u16 {
        self.query.error_code
    }
    fn sql_mode(&self) -> Option<u64> {
        self.vars.sql_mode
    }
    fn autocommit(&self) -> Option<bool> {
        self.flag(flags2::NOT_AUTOCOMMIT).map(|off| !off)
    }
    fn foreign_key_checks(&self) -> Option<bool> {
        self.flag(flags2::NO_FOREIGN_KEY_CHECKS).map(|off| !off)
    }
    fn check_constraint_checks(&self) -> Option<bool> {
        self.flag(flags2::NO_CHECK_CONSTRAINT_CHECKS).map(|off| !off)
    }
    fn unique_checks(&self) -> Option<bool> {
        self.flag(flags2::RELAXED_UNIQUE_CHECKS).map(|off| !off)
    }
    fn sql_auto_is_null(&self) -> Option<bool> {
        self.flag(flags2::AUTO_IS_NULL)
    }
    fn collations(&self) -> Option<[u16; 3]> {
        self.vars.charset
    }
    fn database_collation(&self) -> Option<u16> {
        self.vars.charset_database
    }
    fn auto_increment(&self) -> Option<(u16, u16)> {
        // Absent means both are 1, unless there are no status variables at all.
        self.vars.auto_increment.or(self.vars.flags2.map(|_| (1, 1)))
    }
    fn time_zone(&self) -> Option<&[u8]> {
        self.vars.time_zone.as_deref()
    }
    fn invoker(&self) -> Option<(&[u8], &[u8])> {
        self.vars.invoker.as_ref().map(|(user, host)| (user.as_slice(), host.as_slice()))
    }
    fn lc_time_names(&self) -> Option<u16> {
        self.vars.lc_time_names.or(self.vars.flags2.map(|_| 0))
    }
    fn default_collation_for_utf8mb4(&self) -> Option<u16> {
        let other = |(from, to): &(u16, u16)| (*from == UTF8MB4_GENERAL).then_some(*to);
        self.vars.default_collation_for_utf8mb4.or(self.vars.charset_collations.iter().find_map(other))
    }
    fn charset_collations(&self) -> &[(u16, u16)] {
        &self.vars.charset_collations
    }
    fn updated_tables(&self) -> Option<u64> {
        self.vars.table_map_for_update
    }
    fn last_insert_id(&self) -> Option<u64> {
        self.context.last_insert_id
    }
    fn insert_id(&self) -> Option<u64> {
        self.context.insert_id
    }
    fn rand_seeds(&self) -> Option<(u64, u64)> {
        self.context.rand
    }
    fn user_variables(&self, each: &mut dyn FnMut(UserVar<'_>)) {
        for body in &self.context.user_variables {
            if let Ok(variable) = UserVar::decode(body) {
                each(variable);
            }
        }
    }
    fn uses_temporary_tables(&self) -> bool {
        self.header.flags & FLAG_THREAD_SPECIFIC != 0
    }
    fn independent_of_database(&self) -> bool {
        self.header.flags & FLAG_SUPPRESS_USE != 0
    }
    fn loaded_file(&self) -> Option<&dyn LoadedFile> {
        self.file
    }
}
