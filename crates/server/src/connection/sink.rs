//! Rows to packets: the receiving end of a statement's result.
//!
//! Inline, everything is collected and a result that grows too large asks to be run again where it may
//! block; there, what was collected is sent whenever enough has come together.

use crate::net::{Room, Stream};
use crate::process::Process;
use omnibus_sql::{Floor, ResultColumn, RowSink, SqlError, SqlResult};
use omnibus_value::collation::{self, Charset};
use omnibus_value::{ColumnKind as K, ColumnType, Value};
use omnibus_wire::binary_row::put_binary_row;
use omnibus_wire::buf::put_lenenc;
use omnibus_wire::column::{display_length, field_type, is_text};
use omnibus_wire::consts::{COLLATION_BINARY, ColumnFlag, FieldType};
use omnibus_wire::reply::encode_eof;
use omnibus_wire::text_row::put_text_row;
use omnibus_wire::{Capability, ColumnDef, OkPacket, OutBuf, OutMark, Status};
use std::borrow::Cow;
use std::time::Duration;

/// The decimals of computed text.
const TEXT_DECIMALS: u8 = 31;
/// A result that is larger than this while inline is run again in blocking mode.
const INLINE_LIMIT: usize = 4 << 20;
/// The bytes of a long row's frame heads, and of its values' heads.
const HEADS: usize = 4096;
/// A buffer of more goes when it has been sent: a row was long.
const KEPT: usize = 1 << 20;
/// In blocking mode, what is sent at once.
const FLUSH_AT: usize = 256 << 10;

/// How the client wants its rows.
#[derive(Clone, Copy, Debug)]
pub struct RowFormat {
    /// Its capabilities.
    pub caps: Capability,
    /// Binary rows (prepared statements).
    pub binary: bool,
    /// Collation id of the results' character set; 0 leaves each column's own.
    pub collation: u16,
    /// Status for the EOF after the columns.
    pub status: Status,
    /// `net_write_timeout`.
    pub write_timeout: Duration,
}

/// The sink of one statement.
pub struct ReplySink<'a> {
    out: &'a mut OutBuf,
    format: RowFormat,
    columns: ResultShape,
    /// Where to send in blocking mode.
    stream: Option<&'a mut Stream>,
    /// Where what was not sent is counted.
    pub room: Option<&'a mut Room>,
    /// The commit that must be durable before rows are sent that way.
    pub floor: Option<&'a Floor>,
    /// The process whose KILL ends a wait for the client.
    pub process: Option<&'a Process>,
    /// The result became too large for inline mode.
    pub overflow: bool,
    /// Bytes that have left already.
    pub flushed: u64,
    /// Rows that came.
    pub rows: u64,
    /// The client could not be written to: a packet may be torn, and the connection must end.
    pub broken: bool,
    /// The results of a procedure.
    pub results: ProcedureResults,
}

/// The columns of the running result.
#[derive(Default)]
struct ResultShape {
    types: Vec<ColumnType>,
    /// Those whose characters the client wants in another set.
    conversions: Vec<(usize, Charset, Charset)>,
    /// A row with these.
    converted: Vec<Value>,
}

/// The results of a procedure, which has several.
#[derive(Default)]
pub struct ProcedureResults {
    /// Where those end that are complete.
    pub complete: Option<OutMark>,
    /// Bytes that had left when the running one began, and whether it has begun.
    began: (u64, bool),
}

impl<'a> ReplySink<'a> {
    /// Into `out`; with `stream` given, large results are sent as they come (blocking mode).
    pub fn new(out: &'a mut OutBuf, format: RowFormat, stream: Option<&'a mut Stream>) -> Self {
        ReplySink {
            out,
            format,
            columns: ResultShape::default(),
            stream,
            room: None,
            floor: None,
            process: None,
            overflow: false,
            flushed: 0,
            rows: 0,
            broken: false,
            results: ProcedureResults::default(),
        }
    }

    /// Asks for a row whose values have so many bytes.
    #[inline]
    fn ask(&mut self, bytes: usize) -> SqlResult<()> {
        let needed = self.out.bytes().len() + bytes;
        let Some(room) = &mut self.room else { return Ok(()) };
        room.grow_to(needed)?;
        if needed > self.out.memory() && bytes > FLUSH_AT {
            self.out.reserve_exact(bytes + HEADS);
        }
        Ok(())
    }

    fn full(&mut self) -> SqlResult<()> {
        let Some(stream) = self.stream.as_deref_mut() else {
            if self.out.bytes().len() > INLINE_LIMIT {
                self.overflow = true;
                return Err(SqlError::internal("result too large for inline mode"));
            }
            return Ok(());
        };
        // SESSION-1: its end is still to come, but these rows may tell of what is not durable yet.
        if let Some(ticket) = self.floor.and_then(Floor::ticket) {
            match self.process {
                // Nothing was told yet.
                Some(process) => process.kill.wait(ticket).map(drop)?,
                None => ticket.wait().map(drop).map_err(SqlError::of_commit)?,
            }
        }
        let bytes = self.out.bytes();
        let write = crate::net::send(stream, bytes, self.format.write_timeout);
        let process = self.process;
        let sent = tokio::runtime::Handle::current().block_on(async {
            // KILL and shutdown end a session whose client does not read.
            let killed = async {
                match process {
                    Some(process) => process.interrupted(false).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                sent = write => sent,
                () = killed => Err(std::io::ErrorKind::ConnectionAborted.into()),
            }
        });
        self.broken = sent.is_err();
        sent.map_err(|e| SqlError {
            code: 1160,
            state: *b"08S01",
            message: format!("Got an error writing communication packets: {e}"),
        })?;
        self.flushed += bytes.len() as u64;
        self.out.sent();
        if self.out.memory() > KEPT {
            self.out.shrink();
            self.room.iter_mut().for_each(|room| room.clear());
        }
        Ok(())
    }
}

/// How many bytes a value may take in a reply, and on its way there.
fn shown(value: &Value) -> usize {
    match value {
        Value::Bytes(text) => text.len() + 16,
        // Each byte of a text may have to be escaped.
        Value::Json(binary) => omnibus_value::json::memory_of_binary(binary) + 4 * binary.len(),
        _ => 32,
    }
}

/// A row with the text of some columns in another character set.
fn convert(
    values: &[Value],
    types: &[ColumnType],
    conversions: &[(usize, Charset, Charset)],
    row: &mut Vec<Value>,
) {
    row.clear();
    row.extend_from_slice(values);
    for (i, from, to) in conversions {
        let (Some(value), Some(ty)) = (row.get_mut(*i), types.get(*i)) else { continue };
        if matches!(value, Value::Bytes(_) | Value::Enum(_) | Value::Set(_)) {
            let mut text = Vec::new();
            from.convert(*to, &value.to_bytes(ty), &mut text);
            *value = Value::Bytes(text.into());
        }
    }
}

/// The columns that need another character set, with both sets.
fn conversions(types: &[ColumnType], collation: u16) -> Vec<(usize, Charset, Charset)> {
    let Some(to) = collation::by_id(collation).map(|c| c.charset) else { return Vec::new() };
    if to == Charset::Binary {
        return Vec::new();
    }
    let text = types.iter().enumerate().filter(|(_, ty)| is_text(ty));
    text.filter_map(|(i, ty)| {
        let from = collation::by_id(ty.collation)?.charset;
        (from != to && !from.converts_as_is(to)).then_some((i, from, to))
    })
    .collect()
}

/// Appends the definition of a result column.
pub fn put_column(out: &mut OutBuf, column: &ResultColumn, result_collation: u16) {
    let def = definition(column, result_collation);
    out.packet(|out| def.encode(out));
}

/// A name in the results' character set.
fn in_results(name: &str, result_collation: u16) -> Cow<'_, [u8]> {
    let charset = collation::by_id_or_binary(result_collation).charset;
    if name.is_ascii() || Charset::Utf8mb4.converts_as_is(charset) {
        return name.as_bytes().into();
    }
    let mut out = Vec::with_capacity(name.len());
    Charset::Utf8mb4.convert(charset, name.as_bytes(), &mut out);
    out.into()
}

/// The type of text that is computed, which goes by its length; labels, addresses and UUIDs stay what they are.
fn computed_type(kind: K, length: u32) -> FieldType {
    match (kind, length) {
        (K::Enum | K::Set | K::Uuid | K::Inet4 | K::Inet6, _) => field_type(kind),
        (_, ..=0xFFFF) => FieldType::VarString,
        (_, ..=0xFF_FFFF) => FieldType::MediumBlob,
        _ => FieldType::LongBlob,
    }
}

fn definition(column: &ResultColumn, result_collation: u16) -> ColumnDef<'_> {
    let ty = &column.ty;
    let text = is_text(ty);
    let collation = match (text, result_collation) {
        (false, _) => COLLATION_BINARY,
        (true, 0 | COLLATION_BINARY) => ty.collation,
        (true, id) => id,
    };
    let char_bytes = crate::charset::by_id(collation).map_or(4, |c| c.max_bytes);
    let bytes =
        matches!(ty.kind, K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob);
    // Text that is computed has no decimals to speak of.
    let computed_text = column.org_name.is_empty() && (text || bytes);
    let length = display_length(ty, char_bytes);
    let mut flags = ColumnFlag(column.flags).with(omnibus_wire::column::type_flags(ty));
    if computed_text {
        flags = ColumnFlag(flags.0 & !ColumnFlag::BLOB.0);
    }
    ColumnDef {
        schema: in_results(&column.schema, result_collation),
        table: in_results(&column.table, result_collation),
        org_table: in_results(&column.org_table, result_collation),
        name: in_results(&column.name, result_collation),
        org_name: in_results(&column.org_name, result_collation),
        collation,
        length,
        field_type: if computed_text { computed_type(ty.kind, length) } else { field_type(ty.kind) },
        flags,
        decimals: if computed_text { TEXT_DECIMALS } else { ty.decimals },
    }
}

impl RowSink for ReplySink<'_> {
    fn result_begins(&mut self) {
        self.results.complete = Some(self.out.mark());
        self.results.began = (self.flushed, false);
    }

    fn result_ends(&mut self, warnings: u16, out: bool) -> SqlResult<()> {
        let status = self.format.status.with(Status::MORE_RESULTS);
        let status = if out { status.with(Status::PS_OUT_PARAMS) } else { status };
        if self.format.caps.has(Capability::DEPRECATE_EOF) {
            let (packet, caps) = (OkPacket { status, warnings, ..OkPacket::default() }, self.format.caps);
            self.out.packet(|packet_out| packet.encode(packet_out, caps, true));
        } else {
            self.out.packet(|packet_out| encode_eof(packet_out, warnings, status));
        }
        self.results.complete = Some(self.out.mark());
        Ok(())
    }

    fn result_fails(&mut self) -> bool {
        let (flushed, begun) = self.results.began;
        if begun && flushed == self.flushed {
            if let Some(mark) = self.results.complete {
                self.out.rollback(mark);
            }
            self.results.began.1 = false;
        }
        flushed == self.flushed
    }

    fn columns(&mut self, columns: &[ResultColumn]) -> SqlResult<()> {
        self.results.began.1 = true;
        self.columns.types = columns.iter().map(|c| c.ty.clone()).collect();
        self.columns.conversions = conversions(&self.columns.types, self.format.collation);
        self.out.packet(|out| put_lenenc(out, columns.len() as u64));
        for column in columns {
            put_column(self.out, column, self.format.collation);
        }
        if !self.format.caps.has(Capability::DEPRECATE_EOF) {
            let status = self.format.status;
            self.out.packet(|out| encode_eof(out, 0, status));
        }
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.rows += 1;
        let mut converted = std::mem::take(&mut self.columns.converted);
        let plain = |(i, ..): &(usize, Charset, Charset)| match values.get(*i) {
            Some(Value::Bytes(text)) => text.is_ascii(),
            Some(Value::Enum(_) | Value::Set(_)) => false,
            _ => true,
        };
        self.ask(values.iter().map(shown).sum())?;
        // Every character set here has ASCII as it is, and most text is ASCII.
        let values = if self.columns.conversions.iter().all(plain) {
            values
        } else {
            convert(values, &self.columns.types, &self.columns.conversions, &mut converted);
            &converted
        };
        let types = &self.columns.types;
        let binary = self.format.binary;
        self.out.packet(|out| {
            if binary {
                put_binary_row(out, values, types.iter());
            } else {
                put_text_row(out, values, types.iter());
            }
        });
        self.columns.converted = converted;
        if self.out.bytes().len() > FLUSH_AT { self.full() } else { Ok(()) }
    }
}

/// Appends a definition as COM_FIELD_LIST wants it: with an empty default value behind it.
pub fn put_field(out: &mut OutBuf, column: &ResultColumn, result_collation: u16) {
    let def = definition(column, result_collation);
    out.packet(|out| {
        def.encode(out);
        out.push(0xFB);
    });
}
