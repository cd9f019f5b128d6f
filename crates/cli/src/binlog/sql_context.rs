//! SET statements for what a statement's context has and the last one's had not.

use std::io::{self, Write};

use omnibus_format::events::{UserVar, UserVarValue};
use omnibus_replication::model::StatementView;
use omnibus_value::{collation, literal};

/// The known settings of the session that executes the output.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    database: Vec<u8>,
    timestamp_us: i64,
    flags: Option<[bool; 4]>,
    thread_id: Option<u32>,
    sql_mode: Option<u64>,
    auto_increment: Option<(u16, u16)>,
    constraint_checks: Option<bool>,
    collations: Option<[u16; 3]>,
    time_zone: Option<Vec<u8>>,
    lc_time_names: Option<u16>,
    database_collation: Option<Option<u16>>,
    utf8mb4: Option<u16>,
}

const END: &str = "\n/*!*/;\n";

impl Context {
    /// After a statement was printed: a database that it dropped is not the reader's any more, also if it comes back.
    pub(super) fn executed(&mut self, sql: &[u8]) {
        let head = &sql[..sql.len().min(4096)];
        let has = |word: &[u8]| head.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        if has(b"drop") && (has(b"database") || has(b"schema")) {
            self.database.clear();
        }
    }

    /// Prints what has changed.
    pub(super) fn set(
        &mut self,
        view: &dyn StatementView,
        in_transaction: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let database = view.database();
        if !database.is_empty() && !view.independent_of_database() && self.database != database {
            self.database = database.to_vec();
            let mut name = Vec::new();
            literal::write_name(database, &mut name);
            write!(out, "use ")?;
            out.write_all(&name)?;
            write!(out, "{END}")?;
        }
        if self.thread_id.replace(view.thread_id()) != Some(view.thread_id()) {
            write!(out, "SET @@session.pseudo_thread_id={}{END}", view.thread_id())?;
        }
        if self.timestamp_us != view.timestamp_us() {
            self.timestamp_us = view.timestamp_us();
            let (seconds, fraction) = (self.timestamp_us / 1_000_000, self.timestamp_us % 1_000_000);
            match fraction {
                0 => write!(out, "SET TIMESTAMP={seconds}{END}")?,
                _ => write!(out, "SET TIMESTAMP={seconds}.{fraction:06}{END}")?,
            }
        }
        self.variables(view, in_transaction, out)
    }

    /// Prints what has changed beside the database and the time.
    pub(super) fn variables(
        &mut self,
        view: &dyn StatementView,
        in_transaction: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        // Setting it would end the transaction, and it means nothing in one.
        let autocommit = match self.flags {
            Some([.., before]) if in_transaction => before,
            _ => view.autocommit().unwrap_or(true),
        };
        let flags = [
            view.foreign_key_checks().unwrap_or(true),
            view.sql_auto_is_null().unwrap_or(false),
            view.unique_checks().unwrap_or(true),
            autocommit,
        ];
        if self.flags.replace(flags) != Some(flags) {
            let [foreign, null, unique, auto] = flags.map(u8::from);
            write!(
                out,
                "SET @@session.foreign_key_checks={foreign}, @@session.sql_auto_is_null={null}, \
                 @@session.unique_checks={unique}, @@session.autocommit={auto}{END}"
            )?;
        }
        let checks = view.check_constraint_checks().unwrap_or(true);
        if self.constraint_checks.replace(checks).unwrap_or(true) != checks {
            write!(out, "SET @@session.check_constraint_checks={}{END}", u8::from(checks))?;
        }
        let mode = view.sql_mode().unwrap_or(0);
        if self.sql_mode.replace(mode) != Some(mode) {
            write!(out, "SET @@session.sql_mode={mode}{END}")?;
        }
        let pair = view.auto_increment().unwrap_or((1, 1));
        if self.auto_increment.replace(pair) != Some(pair) {
            let (increment, offset) = pair;
            write!(
                out,
                "SET @@session.auto_increment_increment={increment}, @@session.auto_increment_offset={offset}{END}"
            )?;
        }
        if let Some(collations) = view.collations()
            && self.collations.replace(collations) != Some(collations)
        {
            let [client, connection, server] = collations;
            if let Some(charset) = collation::by_id(client) {
                // A word to the command-line client: how it must read what follows.
                write!(out, "/*!\\C {} */{END}", charset.charset.name())?;
            }
            write!(
                out,
                "SET @@session.character_set_client={client},@@session.collation_connection={connection},\
                 @@session.collation_server={server}{END}"
            )?;
        }
        if let Some(zone) = view.time_zone()
            && self.time_zone.as_deref() != Some(zone)
        {
            self.time_zone = Some(zone.to_vec());
            let mut text = Vec::new();
            omnibus_value::literal::write_quoted(zone, &mut text);
            out.write_all(b"SET @@session.time_zone=")?;
            out.write_all(&text)?;
            out.write_all(END.as_bytes())?;
        }
        let names = view.lc_time_names().unwrap_or(0);
        if self.lc_time_names.replace(names) != Some(names) {
            write!(out, "SET @@session.lc_time_names={names}{END}")?;
        }
        let database = view.database_collation();
        if self.database_collation.replace(database) != Some(database) {
            match database {
                Some(id) => write!(out, "SET @@session.collation_database={id}{END}")?,
                None => write!(out, "SET @@session.collation_database=DEFAULT{END}")?,
            }
        }
        if let Some(id) = view.default_collation_for_utf8mb4()
            && self.utf8mb4.replace(id) != Some(id)
        {
            write!(out, "/*!80011 SET @@session.default_collation_for_utf8mb4={id} */{END}")?;
            if let Some(found) = collation::by_id(id) {
                let name = found.name;
                write!(out, "/*M!110201 SET @@session.character_set_collations='utf8mb4={name}' */{END}")?;
            }
        }
        Ok(())
    }
}

/// `SET @a := ..` with exactly the value of the event.
pub(super) fn user_variable(variable: &UserVar<'_>, out: &mut impl Write) -> io::Result<()> {
    let name = literal::name(&String::from_utf8_lossy(variable.name));
    write!(out, "SET @{name}:=")?;
    match variable.value {
        UserVarValue::Null => write!(out, "NULL")?,
        UserVarValue::Real(real) => write!(out, "{real:e}")?,
        UserVarValue::Int { bits, unsigned: true } => write!(out, "{bits}")?,
        UserVarValue::Int { bits, unsigned: false } => write!(out, "{}", bits as i64)?,
        UserVarValue::Decimal(bytes) => match UserVarValue::decimal_text(bytes) {
            Some(text) => out.write_all(&text)?,
            None => write!(out, "NULL /* damaged */")?,
        },
        UserVarValue::String(bytes) => {
            let known = u16::try_from(variable.collation).ok().and_then(collation::by_id);
            let mut text = Vec::new();
            omnibus_value::literal::write_hex(bytes, &mut text);
            if let Some(known) = known {
                write!(out, "_{} ", known.charset.name())?;
            }
            out.write_all(&text)?;
            if let Some(known) = known {
                write!(out, " COLLATE `{}`", known.name)?;
            }
        }
    }
    write!(out, "{END}")
}
