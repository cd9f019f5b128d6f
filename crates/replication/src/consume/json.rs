//! `JsonLines`: one JSON object per line for each beginning, statement, run of rows and end. The schema is in
//! docs/use/json.md; the lines can be executed again without loss.

use super::json_rows::rows_line;
use super::json_value::{Line, bytes_or_text};
use super::{Consumer, End, FilePosition};
use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::events::{UserVar, UserVarValue};
use std::io::{self, Write};

/// Writes lines to `W`.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    line: Line,
}

impl<W: Write> JsonLines<W> {
    /// Creates a writer of lines into `out`, which should be buffered.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out, line: Line::default() }
    }

    /// The output.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(self.line.finish())
    }
}

impl<W: Write> Consumer for JsonLines<W> {
    type Error = io::Error;

    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> io::Result<()> {
        let line = &mut self.line;
        line.begin("begin");
        put_place(line, place);
        match &trx.gtid {
            Some(gtid) => line.key("gtid").text(&gtid.to_string()),
            None => line.key("gtid").raw("null"),
        }
        line.key("server_id").number(trx.server_id);
        line.key("timestamp").number(trx.timestamp);
        line.key("original_commit_us").number(trx.original_commit_us);
        line.key("original_version").number(trx.original_version);
        line.key("last_committed").number(trx.last_committed);
        line.key("sequence_number").number(trx.sequence_number);
        if let Some(id) = trx.group_commit_id {
            line.key("group_commit_id").number(id);
        }
        line.key("standalone").boolean(trx.standalone);
        self.write()
    }

    fn statement(&mut self, statement: &dyn StatementView) -> io::Result<()> {
        self.line.begin("statement");
        put_statement(&mut self.line, statement)?;
        self.write()
    }

    fn rows(&mut self, rows: &dyn RowsView) -> io::Result<()> {
        self.line.begin("rows");
        rows_line(&mut self.line, rows)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        self.write()
    }

    fn end(&mut self, end: End<'_>, place: Option<FilePosition<'_>>) -> io::Result<()> {
        let line = &mut self.line;
        match end {
            End::Commit => line.begin("commit"),
            End::Prepare(xid) => {
                line.begin("prepare");
                line.key("xid").open('{');
                line.key("format_id").number(xid.format_id);
                line.key("gtrid").base64(xid.gtrid);
                line.key("bqual").base64(xid.bqual);
                line.close('}');
            }
        }
        put_place(line, place);
        self.write()
    }

    fn undo(&mut self) -> io::Result<()> {
        self.line.begin("rollback");
        self.write()
    }
}

fn put_place(line: &mut Line, place: Option<FilePosition<'_>>) {
    if let Some(place) = place {
        line.key("file").text(place.file);
        line.key("position").number(place.offset);
    }
}

fn put_statement(line: &mut Line, statement: &dyn StatementView) -> io::Result<()> {
    bytes_or_text(line.key("sql"), statement.sql());
    bytes_or_text(line.key("database"), statement.database());
    line.key("thread_id").number(statement.thread_id());
    line.key("timestamp_us").number(statement.timestamp_us());
    line.key("exec_time_s").number(statement.exec_time_s());
    line.key("error_code").number(statement.error_code());
    if let Some(mode) = statement.sql_mode() {
        line.key("sql_mode").number(mode);
    }
    for (name, flag) in [
        ("autocommit", statement.autocommit()),
        ("foreign_key_checks", statement.foreign_key_checks()),
        ("check_constraint_checks", statement.check_constraint_checks().filter(|on| !on)),
        ("unique_checks", statement.unique_checks()),
        ("sql_auto_is_null", statement.sql_auto_is_null()),
        ("temporary_tables", statement.uses_temporary_tables().then_some(true)),
        ("independent_of_database", statement.independent_of_database().then_some(true)),
    ] {
        if let Some(flag) = flag {
            line.key(name).boolean(flag);
        }
    }
    if let Some(collations) = statement.collations() {
        line.key("collations").numbers(collations);
    }
    if let Some(collation) = statement.database_collation() {
        line.key("database_collation").number(collation);
    }
    if let Some((increment, offset)) = statement.auto_increment() {
        line.key("auto_increment").numbers([increment, offset]);
    }
    if let Some(zone) = statement.time_zone() {
        bytes_or_text(line.key("time_zone"), zone);
    }
    if let Some(number) = statement.lc_time_names() {
        line.key("lc_time_names").number(number);
    }
    if let Some(collation) = statement.default_collation_for_utf8mb4() {
        line.key("default_collation_for_utf8mb4").number(collation);
    }
    if let Some(tables) = statement.updated_tables() {
        line.key("updated_tables").number(tables);
    }
    if let Some(id) = statement.last_insert_id() {
        line.key("last_insert_id").number(id);
    }
    if let Some(id) = statement.insert_id() {
        line.key("insert_id").number(id);
    }
    if let Some((first, second)) = statement.rand_seeds() {
        line.key("rand_seeds").numbers([first, second]);
    }
    let mut variables = 0;
    statement.user_variables(&mut |variable| {
        if variables == 0 {
            line.key("user_variables").open('[');
        }
        variables += 1;
        put_variable(line, &variable);
    });
    if variables > 0 {
        line.close(']');
    }
    if let Some(file) = statement.loaded_file() {
        line.key("file").open('{');
        let (from, to) = file.name_span();
        line.key("name_span").numbers([from, to]);
        line.key("duplicates").number(file.duplicate_handling());
        let mut data = Vec::new();
        file.blocks(&mut |block| {
            data.extend_from_slice(block);
            Ok(())
        })?;
        line.key("data").base64(&data);
        line.close('}');
    }
    Ok(())
}

fn put_variable(line: &mut Line, variable: &UserVar<'_>) {
    line.element().open('{');
    bytes_or_text(line.key("name"), variable.name);
    let kind = match variable.value {
        UserVarValue::Null => "null",
        UserVarValue::String(_) => "string",
        UserVarValue::Real(_) => "real",
        UserVarValue::Int { unsigned: false, .. } => "int",
        UserVarValue::Int { unsigned: true, .. } => "unsigned",
        UserVarValue::Decimal(_) => "decimal",
    };
    line.key("type").text(kind);
    let value = line.key("value");
    match variable.value {
        UserVarValue::Null => value.raw("null"),
        UserVarValue::String(bytes) => bytes_or_text(value, bytes),
        UserVarValue::Real(n) => value.double(n),
        UserVarValue::Int { bits, unsigned: true } => value.number(bits),
        UserVarValue::Int { bits, unsigned: false } => value.number(bits as i64),
        UserVarValue::Decimal(bytes) => match UserVarValue::decimal_text(bytes) {
            Some(text) => bytes_or_text(value, &text),
            None => value.base64(bytes),
        },
    }
    line.key("collation").number(variable.collation);
    line.close('}');
}
