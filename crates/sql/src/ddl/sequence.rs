//! CREATE, ALTER and DROP SEQUENCE.

use super::exec::Ddl;
use super::stored::parse_create;
use crate::api::{Outcome, Priv};
use crate::catalog::quote_ident;
use crate::catalog::sequence::{COLUMNS, SequenceRow, not_sequence, unknown};
use crate::error::{ExecResult, SqlError};
use crate::store::{Names, sequence_key, sequence_row};
use omnibus_parser::ast::{AlterSequence, CreateSequence, DropTable, SequenceOptions, TableOption};

/// CREATE SEQUENCE: a table and its row.
pub(crate) fn create_sequence(ddl: &mut Ddl<'_>, tree: &CreateSequence) -> ExecResult<Outcome> {
    let db = ddl.schema_of(&tree.name)?;
    let row = first_row(&tree.options).filter(SequenceRow::is_sound);
    let row = row.ok_or_else(|| out_of_range(&db, &tree.name.name))?;
    let mut table = parse_create(&format!("CREATE TABLE {} ({COLUMNS})", quote_ident(&tree.name.name)))?;
    table.name.schema = Some(db.as_str().into());
    table.or_replace = tree.or_replace;
    table.if_not_exists = tree.if_not_exists;
    table.options.clone_from(&tree.table);
    table.options.push(TableOption::Sequence);
    let Some(change) = super::table::new_table(ddl, &table)? else { return Ok(Outcome::ok()) };
    let made = change.fresh.last().ok_or_else(SqlError::unknown_error)?;
    let image = made.rows.encode(&row.values())?;
    let key = sequence_key(made);
    ddl.trx.transaction.writes.put(key, image);
    ddl.commit(change)
}

/// ALTER SEQUENCE: another row. What was taken and not given is given to nobody.
pub(crate) fn alter_sequence(ddl: &mut Ddl<'_>, tree: &AlterSequence) -> ExecResult<Outcome> {
    let db = ddl.schema_of(&tree.name)?;
    let name = tree.name.name.as_str();
    ddl.check(&db, Some(name), Priv::Alter)?;
    let mut change = ddl.begin(Names::Tables(&[(db.clone(), name.to_owned())]))?;
    let Some(table) = change.next.find_table(&db, name).cloned() else {
        let error = unknown(name);
        if !tree.if_exists {
            return Err(error.into());
        }
        ddl.state.diagnostics.note(error);
        ddl.trx.rollback();
        return Ok(Outcome::ok());
    };
    if !table.def.is_sequence() {
        return Err(not_sequence(&table).into());
    }
    let row = altered(sequence_row(ddl.trx, &table)?, &tree.options);
    let row = row.filter(SequenceRow::is_sound).ok_or_else(|| out_of_range(&db, name))?;
    let image = table.rows.encode(&row.values())?;
    ddl.trx.transaction.writes.put(sequence_key(&table), image);
    let state = table.state.clone();
    change.hooks.push(Box::new(move |_| state.sequence.changed()));
    ddl.commit(change)
}

/// DROP SEQUENCE.
pub(crate) fn drop_sequences(ddl: &mut Ddl<'_>, tree: &DropTable) -> ExecResult<Outcome> {
    let catalog = ddl.trx.catalog();
    let mut there = DropTable { temporary: false, if_exists: false, tables: Vec::new() };
    let mut missing = Vec::new();
    for name in &tree.tables {
        let db = ddl.schema_of(name)?;
        match catalog.find_table(&db, &name.name) {
            Some(table) if !table.def.is_sequence() => {
                let message = format!("'{db}.{}' is not a SEQUENCE", name.name);
                return Err(SqlError::new(4090, b"42S02", message).into());
            }
            Some(_) => there.tables.push(name.clone()),
            None => {
                ddl.check(&db, Some(&name.name), Priv::Drop)?;
                missing.push(format!("{db}.{}", name.name));
            }
        }
    }
    if !missing.is_empty() {
        let error = unknown(&missing.join(","));
        if !tree.if_exists {
            return Err(error.into());
        }
        ddl.state.diagnostics.note(error);
    }
    if there.tables.is_empty() {
        return Ok(Outcome::ok());
    }
    super::table::drop_tables(ddl, &there)
}

fn out_of_range(db: &str, name: &str) -> SqlError {
    SqlError::new(4085, b"HY000", format!("Sequence '{db}.{name}' has out of range value for options"))
}

/// The row that CREATE makes of its options.
fn first_row(options: &SequenceOptions) -> Option<SequenceRow> {
    if options.restart.is_some() {
        return None;
    }
    let increment = options.increment.unwrap_or(1);
    let (least, most) = if increment < 0 { (-i64::MAX, -1) } else { (1, i64::MAX - 1) };
    let minimum = options.minimum.flatten().unwrap_or(least);
    let maximum = options.maximum.flatten().unwrap_or(most);
    let start = options.start.unwrap_or(if increment < 0 { maximum } else { minimum });
    Some(SequenceRow {
        next: start,
        minimum,
        maximum,
        start,
        increment,
        cache: options.cache.unwrap_or(1000),
        cycle: options.cycle.unwrap_or(false),
        round: 0,
    })
}

/// The row that ALTER makes of another.
fn altered(mut row: SequenceRow, options: &SequenceOptions) -> Option<SequenceRow> {
    row.increment = options.increment.unwrap_or(row.increment);
    let (least, most) = if row.increment < 0 { (-i64::MAX, -1) } else { (1, i64::MAX - 1) };
    if let Some(minimum) = options.minimum {
        row.minimum = minimum.unwrap_or(least);
    }
    if let Some(maximum) = options.maximum {
        row.maximum = maximum.unwrap_or(most);
    }
    row.start = options.start.unwrap_or(row.start);
    row.cache = options.cache.unwrap_or(row.cache);
    row.cycle = options.cycle.unwrap_or(row.cycle);
    if let Some(restart) = options.restart {
        row.next = restart.unwrap_or(row.start);
        if restart.is_some_and(|restart| !(row.minimum..=row.maximum).contains(&restart)) {
            return None;
        }
    }
    // A bound that came closer leaves nothing, as if the numbers had been taken.
    row.next = row.next.clamp(row.minimum.checked_sub(1)?, row.maximum.checked_add(1)?);
    Some(row)
}
