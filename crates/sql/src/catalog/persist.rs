//! The catalog as rows of space 1.
//!
//! | key (after the space) | value |
//! |---|---|
//! | `M` | next table id u64, next space id u32 |
//! | `D` db | default collation u16 |
//! | `P` kind u8, db, 0, name | see `put_program` |
//! | `T` table id u64 | see `encode_table` |
//! | `V` view id u64 | see `encode_view` |
//! | `A` table id u64, counter u64 | empty: the table's AUTO_INCREMENT is at least `counter` |
//!
//! Integers in keys are big-endian, in values little-endian. A table's columns and indexes are kept
//! as the text of SHOW CREATE TABLE: what parses back equal needs no second format. Values begin
//! with a format version. Written only through a transaction's write set, so a crash loses or
//! keeps a definition with the transaction that made it.

mod versions;

use super::{
    Catalog, EventDef, EventTimes, ProgramDef, Schema, Table, TableDef, TableState, View, ViewDef,
    parse_view, show_create_table,
};
use crate::error::{SqlError, SqlResult};
use bytes::{Buf, Bytes};
use omnibus_engine::{Snapshot, SpaceId, Write, WriteSet};
use omnibus_parser::ast::{EventStatus, IntervalUnit, ProgramKind};
use omnibus_value::temporal::UTC;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

/// The catalog's space.
pub const CATALOG_SPACE: SpaceId = SpaceId(1);
/// The space of replication positions (`apply::position`).
pub(crate) const POSITION_SPACE: SpaceId = SpaceId(3);
/// The first space of user tables; the ones below are reserved.
pub const FIRST_SPACE: u32 = 100;
/// The first table id of user tables.
pub const FIRST_TABLE: u64 = 100;
const VERSION: u8 = 1;

fn key(kind: u8, rest: &[u8]) -> Bytes {
    let mut key = Vec::with_capacity(5 + rest.len());
    key.extend_from_slice(&CATALOG_SPACE.prefix());
    key.push(kind);
    key.extend_from_slice(rest);
    key.into()
}

/// The key of a table's counter row.
#[must_use]
pub fn counter_key(table: u64, counter: u64) -> Bytes {
    let mut rest = [0; 16];
    rest[..8].copy_from_slice(&table.to_be_bytes());
    rest[8..].copy_from_slice(&counter.to_be_bytes());
    key(b'A', &rest)
}

/// All counter rows of a table: the greatest counts.
#[must_use]
pub fn counter_range(table: u64) -> (Bytes, Bytes) {
    (key(b'A', &table.to_be_bytes()), key(b'A', &(table + 1).to_be_bytes()))
}

/// The counter in a counter row's key.
#[must_use]
pub fn counter_value(key: &[u8]) -> u64 {
    key.get(13..21).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// The keys of definitions: every engine of a set keeps them.
#[must_use]
pub fn definition_keys() -> std::ops::Range<Bytes> {
    key(b'A' + 1, &[])..Bytes::copy_from_slice(&SpaceId(CATALOG_SPACE.0 + 1).prefix())
}

/// Whether a key is the catalog's (and a definition, not a counter).
#[must_use]
pub fn is_definition(key: &[u8]) -> bool {
    key.starts_with(&CATALOG_SPACE.prefix()) && key.get(4) != Some(&b'A')
}

/// Whether a key is an AUTO_INCREMENT counter row's.
#[must_use]
pub fn is_counter(key: &[u8]) -> bool {
    key.starts_with(&CATALOG_SPACE.prefix()) && key.get(4) == Some(&b'A')
}

/// Whether a key is a position's.
pub(crate) fn is_position(key: &[u8]) -> bool {
    key.starts_with(&POSITION_SPACE.prefix())
}

/// Writes the id counters.
pub fn put_ids(writes: &mut WriteSet, catalog: &Catalog) {
    let mut value = vec![VERSION];
    value.extend_from_slice(&catalog.next_table_id.to_le_bytes());
    value.extend_from_slice(&catalog.next_space_id.to_le_bytes());
    writes.put(key(b'M', &[]), value.into());
}

/// Writes a schema.
pub fn put_schema(writes: &mut WriteSet, schema: &Schema) {
    let mut value = vec![VERSION];
    value.extend_from_slice(&schema.collation.to_le_bytes());
    writes.put(key(b'D', schema.name.as_bytes()), value.into());
}

/// Removes a schema.
pub fn delete_schema(writes: &mut WriteSet, name: &str) {
    writes.delete(key(b'D', name.as_bytes()));
}

/// Writes a table.
pub fn put_table(writes: &mut WriteSet, def: &TableDef) {
    writes.put(key(b'T', &def.id.to_be_bytes()), encode_table(def).into());
}

/// Removes a table.
pub fn delete_table(writes: &mut WriteSet, id: u64) {
    writes.delete(key(b'T', &id.to_be_bytes()));
}

/// Writes a view.
pub fn put_view(writes: &mut WriteSet, def: &ViewDef) {
    writes.put(key(b'V', &def.id.to_be_bytes()), encode_view(def).into());
}

/// Removes a view.
pub fn delete_view(writes: &mut WriteSet, id: u64) {
    writes.delete(key(b'V', &id.to_be_bytes()));
}

/// Version, creation time u64, collations of the client and the connection u16 each, schema name and statement text (u32 length
/// each).
fn encode_view(def: &ViewDef) -> Vec<u8> {
    let text = def.show_create(None, false);
    let mut out = vec![VERSION];
    out.extend_from_slice(&def.created.to_le_bytes());
    out.extend_from_slice(&def.client.to_le_bytes());
    out.extend_from_slice(&def.connection.to_le_bytes());
    for part in [def.db.as_bytes(), text.as_bytes()] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

fn decode_view(id: u64, mut value: &[u8]) -> SqlResult<ViewDef> {
    let bad = |_| damaged("view row");
    if value.try_get_u8().map_err(bad)? != VERSION {
        return Err(damaged("view row of an unknown version"));
    }
    let created = value.try_get_u64_le().map_err(bad)?;
    let client = value.try_get_u16_le().map_err(bad)?;
    let connection = value.try_get_u16_le().map_err(bad)?;
    let db = take_text(&mut value)?;
    let text = take_text(&mut value)?;
    Ok(ViewDef { id, created, client, connection, ..parse_view(&db, &text)? })
}

fn program_row_key(program: &ProgramDef) -> Bytes {
    let (kind, name) = program.key();
    key(b'P', &[&[kind as u8], program.db.as_bytes(), &[0], name.as_bytes()].concat())
}

/// Writes a stored program: version, creation and change i64, `sql_mode` and place u64, three collations u16, name and text
/// (u32 length each).
pub fn put_program(writes: &mut WriteSet, program: &ProgramDef) {
    let mut value = vec![VERSION];
    value.extend_from_slice(&program.created_us.to_le_bytes());
    value.extend_from_slice(&program.modified_us.to_le_bytes());
    value.extend_from_slice(&program.sql_mode.to_le_bytes());
    value.extend_from_slice(&program.order.to_le_bytes());
    for collation in [program.client, program.connection, program.database] {
        value.extend_from_slice(&collation.to_le_bytes());
    }
    for part in [program.name.as_bytes(), program.text.as_bytes()] {
        value.extend_from_slice(&(part.len() as u32).to_le_bytes());
        value.extend_from_slice(part);
    }
    if let Some(event) = &program.event {
        put_event(&mut value, event);
    }
    writes.put(program_row_key(program), value.into());
}

/// An event's part behind them: its moments i64 (AT, or STARTS and ENDS; `i64::MIN` for none) and amount i64, unit, status and
/// ON COMPLETION a byte each, origin u32, last execution i64, time zone (u32 length).
fn put_event(value: &mut Vec<u8>, event: &EventDef) {
    const NONE: i64 = i64::MIN;
    let (numbers, unit) = match event.times {
        EventTimes::At(at) => ([at, NONE, NONE, 0], 0),
        EventTimes::Every { amount, unit, starts, ends } => {
            ([NONE, starts, ends.unwrap_or(NONE), amount], unit as u8)
        }
    };
    numbers.iter().for_each(|number| value.extend_from_slice(&number.to_le_bytes()));
    value.extend_from_slice(&[unit, event.status as u8, u8::from(event.preserve)]);
    value.extend_from_slice(&event.originator.to_le_bytes());
    value.extend_from_slice(&event.executed().to_le_bytes());
    value.extend_from_slice(&(event.zone.len() as u32).to_le_bytes());
    value.extend_from_slice(event.zone.as_bytes());
}

fn take_event(value: &mut &[u8]) -> SqlResult<EventDef> {
    use EventStatus as S;
    let bad = || damaged("event row");
    let mut number = || value.try_get_i64_le().map_err(|_| bad());
    let [at, starts, ends, amount] = [number()?, number()?, number()?, number()?];
    let mut byte = || value.try_get_u8().map_err(|_| bad());
    let (unit, status, preserve) = (byte()?, byte()?, byte()? != 0);
    let times = if at == i64::MIN {
        let unit = IntervalUnit::from_number(unit).ok_or_else(bad)?;
        EventTimes::Every { amount, unit, starts, ends: Some(ends).filter(|ends| *ends != i64::MIN) }
    } else {
        EventTimes::At(at)
    };
    let statuses = [S::Enabled, S::Disabled, S::ReplicaSideDisabled];
    let status = statuses.into_iter().find(|known| *known as u8 == status).ok_or_else(bad)?;
    let originator = value.try_get_u32_le().map_err(|_| bad())?;
    let executed = Arc::new(AtomicI64::new(value.try_get_i64_le().map_err(|_| bad())?));
    let zone = take_text(value)?.into();
    Ok(EventDef { times, status, preserve, zone, originator, executed })
}

/// Removes a stored program.
pub fn delete_program(writes: &mut WriteSet, program: &ProgramDef) {
    writes.delete(program_row_key(program));
}

fn program_kind(byte: u8) -> SqlResult<ProgramKind> {
    use ProgramKind as K;
    let kinds = [K::Procedure, K::Function, K::Trigger, K::Event];
    kinds.into_iter().find(|kind| *kind as u8 == byte).ok_or_else(|| damaged("kind of a program"))
}

fn apply_program(catalog: &mut Catalog, rest: &[u8], write: &Write) -> SqlResult<()> {
    let bad = || damaged("program row");
    let (kind, rest) = rest.split_first().ok_or_else(bad)?;
    let kind = program_kind(*kind)?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or_else(bad)?;
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(Arc::<str>::from).map_err(|_| bad());
    let (db, name) = (text(&rest[..end])?, text(&rest[end + 1..])?);
    let Some(value) = write else {
        catalog.remove_program(&db, &(kind, name));
        return Ok(());
    };
    let mut value = &value[..];
    if value.try_get_u8().map_err(|_| bad())? != VERSION {
        return Err(damaged("program row of an unknown version"));
    }
    let mut program = ProgramDef { kind: Some(kind), db, ..ProgramDef::default() };
    program.created_us = value.try_get_i64_le().map_err(|_| bad())?;
    program.modified_us = value.try_get_i64_le().map_err(|_| bad())?;
    program.sql_mode = value.try_get_u64_le().map_err(|_| bad())?;
    program.order = value.try_get_u64_le().map_err(|_| bad())?;
    program.client = value.try_get_u16_le().map_err(|_| bad())?;
    program.connection = value.try_get_u16_le().map_err(|_| bad())?;
    program.database = value.try_get_u16_le().map_err(|_| bad())?;
    program.name = take_text(&mut value)?.into();
    program.set_text(take_text(&mut value)?);
    if program.kind() == ProgramKind::Event {
        program.event = Some(take_event(&mut value)?);
    }
    catalog.put_program(Arc::new(program));
    Ok(())
}

/// Version, creation time u64, schema name and statement text (u32 length each), then the spaces of
/// the indexes in order (u16 count, u32 each). Behind them, if rows have had other forms: `versions`.
fn encode_table(def: &TableDef) -> Vec<u8> {
    let text = show_create_table(def, 0, UTC);
    let mut out = vec![VERSION];
    out.extend_from_slice(&def.created.to_le_bytes());
    for part in [def.db.as_bytes(), text.as_bytes()] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&(def.indexes.len() as u16).to_le_bytes());
    for index in &def.indexes {
        out.extend_from_slice(&index.space.0.to_le_bytes());
    }
    if !def.versions.earlier.is_empty() {
        versions::put(def, &mut out);
    }
    out
}

fn damaged(what: &str) -> SqlError {
    tracing::error!(what, "the stored catalog is damaged");
    SqlError::internal(format!("the stored catalog is damaged: {what}"))
}

/// Makes the definition that a text of SHOW CREATE TABLE describes: schema, text, time of creation. The catalog keeps texts and
/// knows no grammar.
pub type ParseDefinition = fn(&str, &str, u64) -> SqlResult<TableDef>;

fn decode_table(id: u64, mut value: &[u8], parse: ParseDefinition) -> SqlResult<TableDef> {
    let bad = || damaged("table row");
    if value.try_get_u8().map_err(|_| bad())? != VERSION {
        return Err(damaged("table row of an unknown version"));
    }
    let created = value.try_get_u64_le().map_err(|_| bad())?;
    let db = take_text(&mut value)?;
    let text = take_text(&mut value)?;
    let mut def = parse(&db, &text, created)?;
    def.id = id;
    let count = usize::from(value.try_get_u16_le().map_err(|_| bad())?);
    if count != def.indexes.len() {
        return Err(damaged("number of indexes"));
    }
    for index in &mut def.indexes {
        index.space = SpaceId(value.try_get_u32_le().map_err(|_| bad())?);
    }
    if !value.is_empty() {
        def.versions = versions::take(&mut value, &def, parse)?;
    }
    Ok(def)
}

fn take_text(value: &mut &[u8]) -> SqlResult<String> {
    let length = value.try_get_u32_le().map_err(|_| damaged("text length"))? as usize;
    if value.len() < length {
        return Err(damaged("text length"));
    }
    let (text, rest) = value.split_at(length);
    *value = rest;
    String::from_utf8(text.to_vec()).map_err(|_| damaged("text"))
}

/// Reads the whole catalog.
///
/// # Errors
/// The engine, or damage.
pub fn load(snapshot: &dyn Snapshot, parse: ParseDefinition) -> SqlResult<Catalog> {
    let mut catalog =
        Catalog { version: 1, next_table_id: FIRST_TABLE, next_space_id: FIRST_SPACE, ..Catalog::default() };
    let from = key(0, &[]);
    let to = SpaceId(CATALOG_SPACE.0 + 1).prefix();
    // `D` sorts before `T` and `V`, so schemas are there when their tables and views come.
    for pair in snapshot.scan(Bound::Included(&from), Bound::Excluded(&to), false) {
        let (key, value) = pair?;
        // Each of them once: to look for an earlier one would take quadratic time.
        match (key.get(4), key.get(5..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes)) {
            (Some(b'T'), Some(id)) => put_stored_table(&mut catalog, id, &value, Arc::default(), parse)?,
            (Some(b'V'), Some(id)) => catalog.put_view(Arc::new(View::new(decode_view(id, &value)?))),
            _ => apply(&mut catalog, &key, &Some(value), parse)?,
        }
    }
    Ok(catalog)
}

/// Applies one catalog row to the catalog in memory. Counter rows mean nothing here.
///
/// # Errors
/// Damage.
pub fn apply(catalog: &mut Catalog, key: &[u8], write: &Write, parse: ParseDefinition) -> SqlResult<()> {
    let (Some(kind), Some(rest)) = (key.get(4), key.get(5..)) else { return Err(damaged("short key")) };
    match (kind, write) {
        (b'M', Some(value)) => {
            let mut value = &value[..];
            let bad = |_| damaged("id row");
            if value.try_get_u8().map_err(bad)? != VERSION {
                return Err(damaged("id row of an unknown version"));
            }
            catalog.next_table_id = value.try_get_u64_le().map_err(bad)?;
            catalog.next_space_id = value.try_get_u32_le().map_err(bad)?;
        }
        (b'D', write) => apply_schema(catalog, rest, write)?,
        (b'P', write) => apply_program(catalog, rest, write)?,
        (b'T', write) => {
            let id = u64::from_be_bytes(rest.try_into().map_err(|_| damaged("table key"))?);
            apply_table(catalog, id, write, parse)?;
        }
        (b'V', write) => {
            let id = u64::from_be_bytes(rest.try_into().map_err(|_| damaged("view key"))?);
            apply_view(catalog, id, write)?;
        }
        _ => {}
    }
    Ok(())
}

fn apply_schema(catalog: &mut Catalog, name: &[u8], write: &Write) -> SqlResult<()> {
    let name: Arc<str> = Arc::from(std::str::from_utf8(name).map_err(|_| damaged("schema name"))?);
    let Some(value) = write else {
        catalog.remove_schema(&name);
        return Ok(());
    };
    let collation = value.get(1..3).and_then(|bytes| bytes.try_into().ok()).map(u16::from_le_bytes);
    let collation = collation.ok_or_else(|| damaged("schema row"))?;
    match catalog.schemas.get_mut(&name) {
        Some(schema) => Arc::make_mut(schema).collation = collation,
        None => {
            catalog.schemas.insert(name.clone(), Arc::new(Schema::new(name, collation)));
        }
    }
    Ok(())
}

fn apply_table(catalog: &mut Catalog, id: u64, write: &Write, parse: ParseDefinition) -> SqlResult<()> {
    let old = catalog.tables().find(|table| table.def.id == id).cloned();
    if let Some(old) = &old {
        catalog.remove_table(&old.def.db, &old.def.name);
    }
    if let Some(value) = write {
        let state = old.map_or_else(Arc::default, |old| old.state.clone());
        put_stored_table(catalog, id, value, state, parse)?;
    }
    Ok(())
}

fn put_stored_table(
    catalog: &mut Catalog,
    id: u64,
    value: &[u8],
    state: Arc<TableState>,
    parse: ParseDefinition,
) -> SqlResult<()> {
    catalog.put_table(Arc::new(Table::new(decode_table(id, value, parse)?, state)));
    Ok(())
}

fn apply_view(catalog: &mut Catalog, id: u64, write: &Write) -> SqlResult<()> {
    let old = catalog.views().find(|view| view.def.id == id).map(|view| view.def.clone());
    if let Some(old) = old {
        catalog.remove_view(&old.db, &old.name);
    }
    if let Some(value) = write {
        catalog.put_view(Arc::new(View::new(decode_view(id, value)?)));
    }
    Ok(())
}
