//! Foreign keys: what is checked, and what follows, when a row is inserted, changed or deleted.
//!
//! A row that refers to another locks that one's key for sharing; who deletes a row or changes its key holds it
//! exclusively. So the two wait for each other, and none needs a lock on what is not there. Everything is checked at once,
//! row by row, as InnoDB does: NO ACTION is RESTRICT.
//!
//! Rows that follow (CASCADE, SET NULL) are changed before the row that they follow, and their events say that nothing is
//! to be checked: a replica of any kind finds the children as the source left them, and its own cascade has nothing left.

use super::auto::whole_index;
use super::overlay::read_batch;
use super::range::{KeyRange, RowAt};
use super::trx::{Marks, Trx};
use super::write::RowChange;
use crate::catalog::codec::successor;
use crate::catalog::foreign_key_text;
use crate::catalog::{Catalog, Child, ForeignKey, ReferenceAction, Table, TableDef};
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::storage::{LockMode, WaitPolicy};
use bytes::Bytes;
use omnibus_locks::{RowMode, TableMode};
use omnibus_value::Value;
use std::ops::Bound;
use std::sync::Arc;

/// Levels of rows that follow, as in InnoDB.
const MAX_DEPTH: usize = 15;
/// Children read at a time.
const BATCH: usize = 256;

/// The state of foreign keys in an attempt at a statement.
#[derive(Default)]
pub(super) struct ForeignKeys {
    /// `foreign_key_checks`.
    pub checked: bool,
    /// The catalog whose relations hold while the statement has its table locks.
    catalog: Option<Arc<Catalog>>,
    /// Rows whose children are being looked after: table id and key. The last is the innermost.
    open: Vec<(u64, Bytes)>,
    /// Rows that the statement may have chosen have changed or gone for the sake of others.
    followed: bool,
    /// Where to return to if the outermost row is refused after its children have changed.
    undo: Option<Marks>,
}

impl ForeignKeys {
    /// For an attempt that begins.
    pub(super) fn new(checked: bool) -> ForeignKeys {
        ForeignKeys { checked, ..ForeignKeys::default() }
    }

    /// Whether the row that is written now follows another.
    pub(super) fn follows(&self) -> bool {
        !self.open.is_empty()
    }
}

/// A row that goes, or gets another key.
struct Parent<'a> {
    table: &'a Arc<Table>,
    at: &'a RowAt,
    old: &'a [Value],
    new: Option<&'a [Value]>,
}

/// Locks the tables that changes of `table` look at or change, so that the relations stay what they are.
pub(super) fn start_relations(trx: &mut Trx, table: &Arc<Table>) -> ExecResult<()> {
    if !trx.statement.attempt.foreign_keys.checked
        || table.def.foreign_keys.is_empty() && !table.may_be_referenced()
    {
        return Ok(());
    }
    loop {
        let catalog = trx.catalog();
        let mut wanted = vec![(table.def.id, TableMode::IntentExclusive)];
        relations(&catalog, table, &mut wanted);
        for (id, mode) in wanted.drain(1..) {
            trx.locks.lock_relation(trx.statement.waits(), id, mode)?;
        }
        if trx.shared.catalog.version() == catalog.version {
            trx.statement.attempt.foreign_keys.catalog = Some(catalog);
            return Ok(());
        }
    }
}

fn related_catalog(trx: &Trx) -> Arc<Catalog> {
    trx.statement.attempt.foreign_keys.catalog.clone().unwrap_or_else(|| trx.catalog())
}

/// Checks that the rows which `new` refers to are there, and keeps them there. `old` is the row before a change;
/// `following` is the foreign key that the row changes for.
///
/// # Errors
/// 1452; lock waits.
pub(super) fn check_parents(
    trx: &mut Trx,
    table: &Arc<Table>,
    old: Option<&[Value]>,
    new: &[Value],
    following: Option<usize>,
) -> ExecResult<()> {
    if table.def.foreign_keys.is_empty() || !trx.statement.attempt.foreign_keys.checked {
        return Ok(());
    }
    for (at, key) in table.def.foreign_keys.iter().enumerate() {
        let Some(values) = new_parent(key, old, new).filter(|_| following != Some(at)) else { continue };
        if !has_parent(trx, table, key, new, &values, WaitPolicy::Wait)? {
            return Err(no_parent(table, key).into());
        }
    }
    Ok(())
}

/// Locks again, at a start, what a row of a prepared branch refers to. Only parents that are there and that no other branch
/// has locked: of anything else the branch did not check that it is there, and it may have checked nothing.
///
/// # Errors
/// The engine's.
pub(super) fn lock_parents_again(
    trx: &mut Trx,
    table: &Arc<Table>,
    old: Option<&[Value]>,
    new: &[Value],
) -> SqlResult<()> {
    trx.statement.attempt.foreign_keys.checked = true;
    without_wait(start_relations(trx, table))?;
    for key in &table.def.foreign_keys {
        if let Some(values) = new_parent(key, old, new) {
            without_wait(has_parent(trx, table, key, new, &values, WaitPolicy::SkipLocked))?;
        }
    }
    Ok(())
}

/// Whether a parent is there, which is locked then. With `SkipLocked` nothing else is: neither the place of a parent that is
/// missing nor one that somebody else has locked.
fn has_parent(
    trx: &mut Trx,
    table: &Arc<Table>,
    key: &ForeignKey,
    row: &[Value],
    values: &[Value],
    wait: WaitPolicy,
) -> ExecResult<bool> {
    let itself = key.refers_to(&table.def.db, &table.def.name);
    let parent = match itself {
        true => Some(table.clone()),
        false => related_catalog(trx).find_table(&key.parent_db, &key.parent).cloned(),
    };
    let Some((parent, columns, index)) = parent.and_then(|parent| {
        let columns = key.positions_in(&parent.def)?;
        let index = parent.def.index_over(&columns)?;
        Some((parent, columns, index))
    }) else {
        return Ok(false);
    };
    if !fit_decimals(values, &columns, &parent.def) {
        return Ok(false);
    }
    let prefix = parent.key_prefix(index, values);
    if itself && parent.key_prefix(index, &picked(row, &columns)) == prefix {
        return Ok(true);
    }
    let definition = &parent.def.indexes[index];
    if definition.unique() && definition.parts.len() == columns.len() {
        // Whoever takes the key away, or is about to bring it, has locked it.
        let key = prefix;
        if wait != WaitPolicy::Wait && trx.view.newest(&mut trx.transaction.writes, &key)?.is_none() {
            return Ok(false);
        }
        trx.transaction.touch(&trx.statement, &trx.locks.rows)?;
        let locked = trx.locks.rows.lock_key(&mut trx.statement, &key, RowMode::Shared, wait)?;
        return Ok(locked && trx.view.newest(&mut trx.transaction.writes, &key)?.is_some());
    }
    let mut range = whole_prefix(prefix);
    loop {
        let mut rows = Vec::new();
        let done = trx.scan(&parent, index, &mut range, LockMode::Share, wait, 1, &mut rows)?;
        if !rows.is_empty() || done {
            return Ok(!rows.is_empty());
        }
    }
}

/// Checks all rows of a table under the definition to be; their number. Both tables are locked against changes.
///
/// # Errors
/// 1452; KILL.
pub(crate) fn verify_foreign_key(
    trx: &mut Trx,
    table: &Arc<Table>,
    key: &ForeignKey,
    parent: &Arc<Table>,
) -> ExecResult<u64> {
    let Some(columns) = key.positions_in(&parent.def) else { return Ok(0) };
    let Some(index) = parent.def.index_over(&columns) else { return Ok(0) };
    let mut count = 0;
    let latest = trx.shared.port.latest();
    let mut range = whole_index(table, 0);
    let mut known: Option<Bytes> = None;
    trx.transaction.writes.settle_all();
    loop {
        trx.budget.kill().check()?;
        let mut rows = Vec::new();
        let done = read_batch(&*latest, &trx.transaction.writes, &range, BATCH, &mut rows)?;
        for (_, row) in &rows {
            count += 1;
            let values = picked(&table.decode(row)?, &key.columns);
            if values.contains(&Value::Null) {
                continue;
            }
            if !fit_decimals(&values, &columns, &parent.def) {
                return Err(no_parent(table, key).into());
            }
            let prefix = parent.key_prefix(index, &values);
            if known.as_ref() == Some(&prefix) {
                continue;
            }
            let mut found = Vec::new();
            read_batch(&*latest, &trx.transaction.writes, &whole_prefix(prefix.clone()), 1, &mut found)?;
            if found.is_empty() {
                return Err(no_parent(table, key).into());
            }
            known = Some(prefix);
        }
        match rows.pop() {
            Some((last, _)) if !done => range.resume_after(last),
            _ => return Ok(count),
        }
    }
}

/// Looks after the rows that refer to one that goes, or that gets another key: refuses, or changes them first.
///
/// # Errors
/// 1451, 1761, 3008; lock waits.
pub(super) fn follow(
    trx: &mut Trx,
    table: &Arc<Table>,
    at: &RowAt,
    old: &[Value],
    new: Option<&[Value]>,
) -> ExecResult<()> {
    if !table.may_be_referenced() || !trx.statement.attempt.foreign_keys.checked {
        return Ok(());
    }
    let mut children = related_catalog(trx).children(&table.def.db, &table.def.name);
    if children.is_empty() {
        return Ok(());
    }
    // InnoDB's order: it decides which error tells of a change that several refuse.
    children.sort_by(|a, b| a.foreign_key().name.cmp(&b.foreign_key().name));
    let parent = Parent { table, at, old, new };
    trx.statement.attempt.foreign_keys.open.push((table.def.id, at.key.clone()));
    let done = children.iter().try_for_each(|child| follow_child(trx, &parent, child));
    trx.statement.attempt.foreign_keys.open.pop();
    if trx.statement.attempt.foreign_keys.open.is_empty()
        && let Some(marks) = trx.statement.attempt.foreign_keys.undo.take()
        && done.is_err()
    {
        trx.rollback_statement(marks)?;
    }
    done
}

fn follow_child(trx: &mut Trx, parent: &Parent<'_>, child: &Child) -> ExecResult<()> {
    let key = child.foreign_key();
    let Some(columns) = key.positions_in(&parent.table.def) else { return Ok(()) };
    let values = picked(parent.old, &columns);
    let replaced = parent.new.map(|new| picked(new, &columns));
    if values.contains(&Value::Null) || replaced.as_ref() == Some(&values) {
        return Ok(());
    }
    let Some(index) = child.table.def.index_over(&key.columns) else { return Ok(()) };
    if !fit_decimals(&values, &key.columns, &child.table.def) {
        // No child can have it.
        return Ok(());
    }
    let mut action = action(key, replaced.is_some());
    // A change that comes round to a table that it has come from is refused.
    if replaced.is_some()
        && trx.statement.attempt.foreign_keys.open.iter().any(|(table, _)| *table == child.table.def.id)
    {
        action = ReferenceAction::Restrict;
    }
    let lock = if action.changes_rows() { LockMode::Exclusive } else { LockMode::Share };
    // The first one that is in the way is enough: no others are locked.
    let batch = if action.changes_rows() { BATCH } else { 1 };
    let prefix = child.table.key_prefix(index, &values);
    let mut range = whole_prefix(prefix.clone());
    loop {
        let mut rows = Vec::new();
        let done = trx.scan(&child.table, index, &mut range, lock, WaitPolicy::Wait, batch, &mut rows)?;
        let deep = trx.statement.attempt.foreign_keys.open.len() > MAX_DEPTH;
        if deep && action.changes_rows() && !rows.is_empty() {
            let message = format!("Foreign key cascade delete/update exceeds max depth of {MAX_DEPTH}.");
            return Err(SqlError::new(3008, b"HY000", message).into());
        }
        for row in rows {
            follow_row(trx, parent, child, action, row, replaced.as_deref().map(|new| (&*values, new)))?;
        }
        if done {
            return Ok(());
        }
    }
}

/// A row that was chosen before others were changed, as it is now: a foreign key may have changed it along, or
/// deleted it.
///
/// # Errors
/// The engine's.
pub fn chosen_row(trx: &mut Trx, at: RowAt) -> ExecResult<Option<RowAt>> {
    if !trx.statement.attempt.foreign_keys.followed {
        return Ok(Some(at));
    }
    let row = trx.view.newest(&mut trx.transaction.writes, &at.key)?;
    Ok(row.map(|row| RowAt { key: at.key, row }))
}

fn follow_row(
    trx: &mut Trx,
    parent: &Parent<'_>,
    child: &Child,
    action: ReferenceAction,
    row: RowAt,
    replaced: Option<(&[Value], &[Value])>,
) -> ExecResult<()> {
    let (table, key) = (&child.table, child.foreign_key());
    // One of those before it may have taken it along.
    let Some(row) = chosen_row(trx, row)? else { return Ok(()) };
    let row = &row;
    if trx
        .statement
        .attempt
        .foreign_keys
        .open
        .iter()
        .any(|(id, open)| *id == table.def.id && *open == row.key)
    {
        // It goes itself, or changes itself and must not go on naming what it was.
        let names_old = parent.new.is_some_and(|new| {
            row.key == parent.at.key && picked(new, &key.columns) == picked(parent.old, &key.columns)
        });
        let refused = names_old || parent.new.is_none() && !action.changes_rows();
        return if refused { Err(has_children(table, key).into()) } else { Ok(()) };
    }
    if !action.changes_rows() {
        return Err(has_children(table, key).into());
    }
    if trx.statement.attempt.foreign_keys.undo.is_none() {
        trx.log.events.finish(&mut trx.log.cache)?;
        trx.statement.attempt.foreign_keys.undo = Some(trx.marks());
    }
    trx.statement.attempt.foreign_keys.followed = true;
    let old = table.decode(&row.row)?;
    if action == ReferenceAction::Cascade && replaced.is_none() {
        return trx.delete_row(table, row, &old);
    }
    let mut new = old.clone();
    for (nth, &column) in key.columns.iter().enumerate() {
        match replaced.filter(|_| action == ReferenceAction::Cascade) {
            // The child may write 'A' where the parent has 'a': what does not change stays.
            Some((before, after)) if before[nth] == after[nth] => continue,
            Some((_, after)) => new[column] = after[nth].clone(),
            None => new[column] = Value::Null,
        }
        let def = &table.def.columns[column];
        let missing = matches!(new[column], Value::Null) && !def.nullable;
        if missing || !fits(&new[column], &def.ty) {
            return Err(has_children(table, key).into());
        }
    }
    let new_row = table.rows.encode(&new)?;
    let changed = key.columns.iter().fold(0, |bits, column| bits | 1 << (column % 64));
    let following = Some(child.key);
    let change = RowChange { at: row, old: &old, new: &new, new_row: &new_row, changed, following };
    match trx.update_row(table, &change)? {
        None => Ok(()),
        Some(duplicate) => {
            let message = format!(
                "Foreign key constraint for table '{}' would lead to a duplicate entry in table '{}', key '{}'",
                parent.table.def.name, table.def.name, table.def.indexes[duplicate.index].name
            );
            Err(SqlError::new(1761, b"23000", message).into())
        }
    }
}

/// Passes on the error of an attempt to lock. A wait ends here, so that the next attempt may begin another (LOCK-3).
fn without_wait<T>(locked: ExecResult<T>) -> SqlResult<()> {
    match locked {
        Err(Interrupt::Error(error)) => Err(error),
        _ => Ok(()),
    }
}

fn action(key: &ForeignKey, changes: bool) -> ReferenceAction {
    if changes { key.on_update } else { key.on_delete }
}

/// A parent's column may be longer than the child's.
fn fits(value: &Value, ty: &omnibus_value::ColumnType) -> bool {
    use omnibus_value::ColumnKind as K;
    match (value, ty.kind) {
        (Value::Bytes(bytes), K::Binary | K::VarBinary) => bytes.len() <= ty.length as usize,
        (Value::Bytes(bytes), K::Char | K::VarChar) => {
            bytes.len() <= ty.length as usize
                || crate::catalog::charset::to_utf8(bytes, ty.collation).chars().count() <= ty.length as usize
        }
        (Value::Enum(number), K::Enum) => usize::from(*number) <= ty.labels.len(),
        (Value::Set(bits), K::Set) => ty.labels.len() >= 64 || bits >> ty.labels.len() == 0,
        (Value::Bit(bits), K::Bit) => ty.length >= 64 || bits >> ty.length == 0,
        (Value::Float(n), K::Float) => !ty.unsigned || *n >= 0.0,
        (Value::Double(n), K::Double) => !ty.unsigned || *n >= 0.0,
        (Value::Time(time), K::Time) => time.micros() % 10u32.pow(6 - u32::from(ty.decimals.min(6))) == 0,
        (Value::DateTime(time), K::DateTime | K::Timestamp) => time.truncate(ty.decimals) == *time,
        _ => fits_decimal(value, ty),
    }
}

/// Whether a DECIMAL column can have a value: the columns of a foreign key may have other digits.
fn fits_decimal(value: &Value, ty: &omnibus_value::ColumnType) -> bool {
    let Value::Decimal(n) = value else { return true };
    if ty.kind != omnibus_value::ColumnKind::Decimal {
        return true;
    }
    let is_exact = n.fit(ty.length.min(65) as u8, ty.decimals).is_ok_and(|(kept, _)| kept == *n);
    is_exact && !(ty.unsigned && n.is_negative())
}

/// Whether a table's columns can have the values of a key, which are others' for the encoding of a key rounds.
fn fit_decimals(values: &[Value], columns: &[usize], table: &TableDef) -> bool {
    values.iter().zip(columns).all(|(value, &column)| fits_decimal(value, &table.columns[column].ty))
}

/// The values of the parent's key that a row refers to, if it did not before.
fn new_parent(key: &ForeignKey, old: Option<&[Value]>, new: &[Value]) -> Option<Vec<Value>> {
    let values = picked(new, &key.columns);
    let stays = old.is_some_and(|old| picked(old, &key.columns) == values);
    (!stays && !values.contains(&Value::Null)).then_some(values)
}

fn picked(row: &[Value], columns: &[usize]) -> Vec<Value> {
    columns.iter().map(|&column| row[column].clone()).collect()
}

fn whole_prefix(prefix: Bytes) -> KeyRange {
    let to = successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
    KeyRange { from: Bound::Included(prefix), to, reverse: false }
}

/// The tables that a change of a table's rows looks at (parents, children) or changes (children, and theirs). Level by level: rows
/// follow no further than `MAX_DEPTH`, and a chain of tables may be longer than any stack.
fn relations(catalog: &Catalog, table: &Arc<Table>, found: &mut Vec<(u64, TableMode)>) {
    let mut level = vec![table.clone()];
    for _ in 0..MAX_DEPTH + 2 {
        let mut next = Vec::new();
        level.iter().for_each(|table| related(catalog, table, found, &mut next));
        level = next;
    }
}

/// One level of them; `next`: those whose rows change.
fn related(catalog: &Catalog, table: &Table, found: &mut Vec<(u64, TableMode)>, next: &mut Vec<Arc<Table>>) {
    for key in &table.def.foreign_keys {
        if let Some(parent) = catalog.find_table(&key.parent_db, &key.parent)
            && !found.iter().any(|(id, _)| *id == parent.def.id)
        {
            found.push((parent.def.id, TableMode::IntentShared));
        }
    }
    for child in catalog.children(&table.def.db, &table.def.name) {
        let key = child.foreign_key();
        let changes = key.on_delete.changes_rows() || key.on_update.changes_rows();
        let mode = if changes { TableMode::IntentExclusive } else { TableMode::IntentShared };
        let id = child.table.def.id;
        match found.iter_mut().find(|(other, _)| *other == id) {
            Some((_, held)) if *held == mode || !changes => continue,
            Some((_, held)) => *held = mode,
            None => found.push((id, mode)),
        }
        if changes {
            next.push(child.table);
        }
    }
}

fn constraint(table: &Table, key: &ForeignKey) -> String {
    let quote = crate::catalog::quote_ident;
    let names = (quote(&table.def.db), quote(&table.def.name));
    format!("({}.{}, {})", names.0, names.1, foreign_key_text(key, &table.def))
}

fn no_parent(table: &Table, key: &ForeignKey) -> SqlError {
    let what = "Cannot add or update a child row: a foreign key constraint fails";
    SqlError::new(1452, b"23000", format!("{what} {}", constraint(table, key)))
}

/// Error 1451: rows of `table` refer to what is to go or to change.
pub(crate) fn has_children(table: &Table, key: &ForeignKey) -> SqlError {
    let what = "Cannot delete or update a parent row: a foreign key constraint fails";
    SqlError::new(1451, b"23000", format!("{what} {}", constraint(table, key)))
}
