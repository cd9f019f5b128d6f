//! Rows or text: how a data-changing statement is logged, and the text with everything that it needs.
//!
//! Decided once per statement, before it runs (`binlog_format`, isolation, why the statement may be unsafe); under ROW
//! that is one comparison. What the statement reads of the session is kept as it was before it ran, because the statement
//! may change it. Not here: what makes a statement unsafe (`dml::safety`), and the events (`omnibus_replication`).

use super::{Call, StatementContext};
use crate::api::{BinlogFormat, Isolation, SessionSettings, sql_mode};
use crate::bind::uses::{self, Uses};
use crate::dml::{WritePlan, safety};
use crate::error::{SqlError, SqlResult};
use crate::state::{NewInsertId, SessionState};
use crate::storage::LockMode;
use omnibus_format::events::{UserVar, UserVarValue};
use omnibus_parser::ast::{InnerStatement, InsertSource, Statement};
use omnibus_replication::model::{LoadedFile, StatementView};
use omnibus_value::collation::{self, Charset};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::borrow::Cow;

/// The session's values that a statement reads which is logged as text, from before it ran.
pub(super) struct Before {
    last_insert_id: Option<u64>,
    rand: Option<(u64, u64)>,
    variables: Vec<(Box<str>, Value, ColumnType)>,
    insert_id: Option<u64>,
    updated_tables: Option<u64>,
    unsafe_bits: u32,
}

/// How rows that a writing statement only reads are locked: so that what it writes follows from what is there when it
/// commits, and whoever executes its text in the order of the commits reads the same.
pub(super) fn read_lock(cx: &StatementContext<'_>, statement: &Statement) -> LockMode {
    match statement {
        Statement::Insert(tree) if matches!(tree.source, InsertSource::Query(_)) => source_lock(cx),
        Statement::Update(tree) if tree.is_single() => source_lock(cx),
        _ => LockMode::Share,
    }
}

/// As `read_lock` for the statements that InnoDB lets read without locks at READ COMMITTED: what INSERT and CREATE TABLE
/// select, subqueries of an UPDATE.
pub(super) fn source_lock(cx: &StatementContext<'_>) -> LockMode {
    if reads_committed(cx) && !cx.replayed.reads_newest { LockMode::None } else { LockMode::Share }
}

fn reads_committed(cx: &StatementContext<'_>) -> bool {
    cx.trx.transaction.characteristics().0 <= Isolation::ReadCommitted
}

/// Decides how a statement is logged. `None`: as rows.
pub(super) fn choose_format(cx: &mut StatementContext<'_>, plan: &WritePlan) -> SqlResult<Option<Before>> {
    let before = choose_for(cx, &plan.uses, plan.unsafe_bits)?;
    Ok(before.map(|before| Before { updated_tables: plan.updated_tables(), ..before }))
}

/// As `choose_format`, for LOAD DATA, whose rows come in an order that its text does not say.
pub(super) fn choose_load_format(cx: &mut StatementContext<'_>, uses: &Uses) -> SqlResult<Option<Before>> {
    choose_for(cx, uses, safety::LOAD)
}

fn choose_for(cx: &mut StatementContext<'_>, uses: &Uses, unsafe_bits: u32) -> SqlResult<Option<Before>> {
    let settings = &cx.state.settings;
    if settings.binlog_format == BinlogFormat::Row || !settings.sql_log_bin {
        return Ok(None);
    }
    // Whoever executes the text would need the same temporary tables; rows need none.
    if uses.bits & uses::TEMPORARY != 0 {
        return Ok(None);
    }
    let mixed = settings.binlog_format == BinlogFormat::Mixed;
    if reads_committed(cx) {
        return if mixed { Ok(None) } else { Err(row_logging_only()) };
    }
    if mixed && (unsafe_bits != 0 || uses.bits & uses::STORED_FUNCTION != 0) {
        return Ok(None);
    }
    cx.trx.statement.log_as_text();
    Ok(Some(Before::of(cx.state, uses, unsafe_bits)))
}

/// Logs a statement that has run, if it is logged as text; with the file that it read, if it read one.
pub(super) fn log_text(
    cx: &mut StatementContext<'_>,
    before: &Before,
    file: Option<&dyn LoadedFile>,
    call: &Call<'_>,
) -> SqlResult<()> {
    let sql = text_of(cx, call);
    let insert_id =
        before.insert_id.filter(|_| cx.trx.statement.has_forced()).or(cx.trx.statement.first_auto_value());
    let file_collation = cx.state.settings.collation_database.or_else(|| database_collation(cx));
    let view = LoggedStatement { state: cx.state, before, sql: &sql, insert_id, file, file_collation };
    cx.trx.log.log_text(&cx.trx.statement, &view)?;
    for reason in safety::reasons(before.unsafe_bits) {
        cx.state.diagnostics.note(unsafe_statement(reason));
    }
    Ok(())
}

fn database_collation(cx: &StatementContext<'_>) -> Option<u16> {
    let catalog = cx.database.catalog();
    Some(catalog.schema(cx.state.database.as_deref()?).ok()?.collation)
}

/// The statement with the values of its parameters.
fn text_of<'c>(cx: &StatementContext<'_>, call: &'c Call<'_>) -> Cow<'c, [u8]> {
    let text = super::dispatch::statement_text(call.text);
    match call.inner {
        Some(inner) if !inner.locals.is_empty() => Cow::Owned(with_locals(cx, text, inner)),
        _ => with_params(&cx.state.settings, text, call.params),
    }
}

/// A statement of a program with the values of its variables in their places, under their names.
fn with_locals(cx: &StatementContext<'_>, text: &[u8], inner: &InnerStatement) -> Vec<u8> {
    let (settings, locals) = (&cx.state.settings, &cx.state.programs.locals);
    let begin = inner.statement.span.start;
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut copied = 0;
    for (span, number) in &inner.locals {
        let (from, to) = ((span.start - begin) as usize, (span.end - begin) as usize);
        let (Some(before), Some(column)) = (text.get(copied..from), locals.columns.get(*number as usize))
        else {
            continue;
        };
        out.extend_from_slice(before);
        copied = to;
        let value = locals.values.get(*number as usize).unwrap_or(&Value::Null);
        let plain = match value {
            Value::Enum(_) | Value::Set(_) => &Value::Bytes(value.to_bytes(&column.ty)),
            value => value,
        };
        out.extend_from_slice(b" NAME_CONST('");
        out.extend_from_slice(column.name.replace('\'', "''").as_bytes());
        out.extend_from_slice(b"',");
        let text = matches!(plain, Value::Bytes(_)) && column.ty.collation != 63;
        if text {
            let charset = collation::by_id_or_binary(column.ty.collation).charset.name();
            out.extend_from_slice(format!("_{charset} ").as_bytes());
        }
        match plain {
            Value::Bytes(bytes) if text => omnibus_value::literal::write_hex(bytes, &mut out),
            value => parameter(value, settings, &mut out),
        }
        if text {
            let name = collation::by_id_or_binary(column.ty.collation).name;
            out.extend_from_slice(format!(" COLLATE '{name}'").as_bytes());
        }
        out.push(b')');
    }
    out.extend_from_slice(text.get(copied..).unwrap_or_default());
    out
}

/// A statement's text with values as literals in the places of its `?`.
#[must_use]
pub fn with_params<'c>(settings: &SessionSettings, text: &'c [u8], params: &[Value]) -> Cow<'c, [u8]> {
    if params.is_empty() {
        return Cow::Borrowed(text);
    }
    let fill = |n: usize, out: &mut Vec<u8>| match params.get(n) {
        Some(value) => parameter(value, settings, out),
        None => out.extend_from_slice(b"NULL"),
    };
    Cow::Owned(omnibus_parser::fill_params(text, &settings.parse_options(), fill))
}

impl Before {
    fn of(state: &SessionState, uses: &Uses, unsafe_bits: u32) -> Before {
        let variables = uses.variables.iter().map(|name| match state.values.get(name) {
            Some((value, ty)) => (name.clone(), value.clone(), ty.clone()),
            None => (name.clone(), Value::Null, ColumnType::of(ColumnKind::VarChar)),
        });
        let new = uses.bits & uses::NEW_INSERT_ID != 0 && state.results.new_insert_id != NewInsertId::None;
        let reads_id = uses.bits & uses::LAST_INSERT_ID != 0 || new;
        Before {
            last_insert_id: reads_id.then_some(state.results.last_insert_id),
            rand: (uses.bits & uses::RAND != 0).then_some(state.connection.rand),
            variables: variables.collect(),
            insert_id: state.settings.insert_id,
            updated_tables: None,
            unsafe_bits,
        }
    }
}

/// A statement that the session has just run.
struct LoggedStatement<'a> {
    state: &'a SessionState,
    before: &'a Before,
    sql: &'a [u8],
    insert_id: Option<u64>,
    file: Option<&'a dyn LoadedFile>,
    /// The default database's.
    file_collation: Option<u16>,
}

impl StatementView for LoggedStatement<'_> {
    fn sql(&self) -> &[u8] {
        self.sql
    }
    fn database(&self) -> &[u8] {
        self.state.database.as_deref().unwrap_or_default().as_bytes()
    }
    fn thread_id(&self) -> u32 {
        self.state.thread_id()
    }
    fn timestamp_us(&self) -> i64 {
        self.state.statement.now_us
    }
    fn exec_time_s(&self) -> u32 {
        let began = self.state.settings.timestamp_us.map_or(self.state.statement.now_us, |_| i64::MAX);
        u32::try_from((omnibus_commit::now_us() as i64).saturating_sub(began) / 1_000_000).unwrap_or(0)
    }
    fn sql_mode(&self) -> Option<u64> {
        Some(self.state.settings.sql_mode)
    }
    /// Neither MySQL nor MariaDB logs that it was off. A MySQL replica that is told so of a BEGIN stops at the next transaction (1778).
    fn autocommit(&self) -> Option<bool> {
        Some(true)
    }
    fn foreign_key_checks(&self) -> Option<bool> {
        Some(self.state.settings.foreign_key_checks)
    }
    fn check_constraint_checks(&self) -> Option<bool> {
        Some(self.state.settings.check_constraint_checks)
    }
    fn unique_checks(&self) -> Option<bool> {
        Some(self.state.settings.unique_checks)
    }
    fn sql_auto_is_null(&self) -> Option<bool> {
        Some(self.state.settings.sql_auto_is_null)
    }
    fn lc_time_names(&self) -> Option<u16> {
        Some(self.state.settings.lc_time_names.number)
    }
    fn database_collation(&self) -> Option<u16> {
        // Nothing else depends on it.
        self.file.and(self.file_collation)
    }
    fn updated_tables(&self) -> Option<u64> {
        self.before.updated_tables
    }
    fn collations(&self) -> Option<[u16; 3]> {
        let settings = &self.state.settings;
        Some([settings.collation_client, settings.collation_connection, settings.collation_server])
    }
    fn auto_increment(&self) -> Option<(u16, u16)> {
        let settings = &self.state.settings;
        Some((settings.auto_increment_increment as u16, settings.auto_increment_offset as u16))
    }
    fn time_zone(&self) -> Option<&[u8]> {
        Some(self.state.settings.time_zone.as_bytes())
    }
    fn last_insert_id(&self) -> Option<u64> {
        self.before.last_insert_id
    }
    fn insert_id(&self) -> Option<u64> {
        self.insert_id
    }
    fn loaded_file(&self) -> Option<&dyn LoadedFile> {
        self.file
    }
    fn rand_seeds(&self) -> Option<(u64, u64)> {
        self.before.rand
    }
    fn user_variables(&self, each: &mut dyn FnMut(UserVar<'_>)) {
        let connection = self.state.settings.collation_connection;
        for (name, value, ty) in &self.before.variables {
            variable(name, value, ty, connection, each);
        }
    }
}

/// A user variable as an event has it.
fn variable(name: &str, value: &Value, ty: &ColumnType, connection: u16, each: &mut dyn FnMut(UserVar<'_>)) {
    let name = name.as_bytes();
    let mut give = |value: UserVarValue<'_>, collation: u16| {
        each(UserVar { name, value, collation: u32::from(collation) });
    };
    match value {
        Value::Null => give(UserVarValue::Null, 63),
        Value::Int(n) => give(UserVarValue::Int { bits: *n as u64, unsigned: false }, 63),
        Value::UInt(n) => give(UserVarValue::Int { bits: *n, unsigned: true }, 63),
        Value::Float(n) => give(UserVarValue::Real(f64::from(*n)), 63),
        Value::Double(n) => give(UserVarValue::Real(*n), 63),
        Value::Decimal(n) => {
            let (precision, scale) = (n.precision().max(1), n.scale());
            let mut bytes = vec![precision.max(scale), scale];
            n.to_binlog(precision.max(scale), scale, &mut bytes);
            give(UserVarValue::Decimal(&bytes), 63);
        }
        Value::Bytes(bytes) => give(UserVarValue::String(bytes), ty.collation),
        other => give(UserVarValue::String(&other.to_bytes(ty)), connection),
    }
}

/// A parameter's value as a literal that means the same in the same session.
fn parameter(value: &Value, settings: &SessionSettings, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::UInt(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Float(n) => out.extend_from_slice(format!("{:e}", f64::from(*n)).as_bytes()),
        Value::Double(n) => out.extend_from_slice(format!("{n:e}").as_bytes()),
        Value::Decimal(_) => out.extend_from_slice(&value.to_bytes(&ColumnType::of(ColumnKind::VarChar))),
        Value::Bytes(bytes) => string(bytes, settings, out),
        Value::Date(date) => {
            date_like(b"DATE", date.year() != 0 && date.month() != 0 && date.day() != 0, out);
            quoted_text(out, |out| date.write_text(out));
        }
        Value::DateTime(at) => {
            date_like(
                b"TIMESTAMP",
                at.date().year() != 0 && at.date().month() != 0 && at.date().day() != 0,
                out,
            );
            quoted_text(out, |out| at.write_text(if at.micros() == 0 { 0 } else { 6 }, out));
        }
        Value::Time(time) => {
            out.extend_from_slice(b"TIME");
            quoted_text(out, |out| time.write_text(6, out));
        }
        other => string(&other.to_bytes(&ColumnType::of(ColumnKind::VarChar)), settings, out),
    }
}

/// The keyword that gives a literal its type. Dates that `sql_mode` may refuse go without.
fn date_like(keyword: &[u8], whole: bool, out: &mut Vec<u8>) {
    if whole {
        out.extend_from_slice(keyword);
    }
}

fn quoted_text(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'\'');
    text(out);
    out.push(b'\'');
}

/// A string: in quotes where the connection's character set can be read byte by byte, else in hexadecimal.
fn string(bytes: &[u8], settings: &SessionSettings, out: &mut Vec<u8>) {
    let charset = collation::by_id_or_binary(settings.collation_connection).charset;
    let plain = match charset {
        // Readers convert literals that are not in the client's set.
        _ if settings.collation_client != settings.collation_connection
            && collation::by_id_or_binary(settings.collation_client).charset != charset =>
        {
            bytes.is_ascii()
        }
        Charset::Binary => bytes.is_ascii(),
        Charset::Utf8mb4 | Charset::Utf8mb3 => std::str::from_utf8(bytes).is_ok(),
        other => other.max_len() == 1 || bytes.is_ascii(),
    };
    if !plain {
        if charset != Charset::Binary && charset.well_formed_len(bytes) == bytes.len() {
            out.push(b'_');
            out.extend_from_slice(charset.name().as_bytes());
            out.push(b' ');
        }
        omnibus_value::literal::write_hex(bytes, out);
    } else if settings.sql_mode & sql_mode::NO_BACKSLASH_ESCAPES != 0 {
        out.push(b'\'');
        for &byte in bytes {
            out.push(byte);
            if byte == b'\'' {
                out.push(byte);
            }
        }
        out.push(b'\'');
    } else {
        omnibus_value::literal::write_quoted(bytes, out);
    }
}

fn row_logging_only() -> SqlError {
    let message = "Cannot execute statement: impossible to write to binary log since BINLOG_FORMAT = STATEMENT and at \
                   least one table uses a storage engine limited to row-based logging when the transaction isolation \
                   level is READ COMMITTED or READ UNCOMMITTED.";
    SqlError::new(1665, b"HY000", message)
}

fn unsafe_statement(reason: &str) -> SqlError {
    let message = format!(
        "Unsafe statement written to the binary log using statement format since BINLOG_FORMAT = STATEMENT. {reason}"
    );
    SqlError::new(1592, b"HY000", message)
}

/// Where a LOAD DATA statement's text names its file.
pub(super) fn file_span(state: &SessionState, call: &Call<'_>) -> (u32, u32) {
    let text = super::dispatch::statement_text(call.text);
    omnibus_parser::load_file_span(text, &state.settings.parse_options()).unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;

    fn literal(value: Value, change: impl Fn(&mut SessionSettings)) -> String {
        let mut settings = SessionSettings::default();
        change(&mut settings);
        let mut out = Vec::new();
        parameter(&value, &settings, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parameters_are_exact() {
        let plain = |value| literal(value, |_| {});
        assert_eq!(plain(Value::Double(0.1)), "1e-1");
        assert_eq!(plain(Value::Float(0.1)), "1.0000000149011612e-1");
        assert_eq!(plain(Value::Int(-5)), "-5");
        let bytes = |bytes: &'static [u8]| Value::Bytes(Bytes::from_static(bytes));
        assert_eq!(plain(bytes("it's \\ \0 ü".as_bytes())), "'it''s \\\\ \\0 ü'");
        assert_eq!(plain(bytes(b"\xff\x00")), "X'FF00'");
        let ansi = |s: &mut SessionSettings| s.sql_mode |= sql_mode::NO_BACKSLASH_ESCAPES;
        assert_eq!(literal(bytes(b"it's \\"), ansi), "'it''s \\'");
    }
}
