//! How UPDATE and DELETE find their rows, locked exclusively.
//!
//! A WHERE clause that gives every column of a unique key a value becomes a point lookup, which
//! has a short path; others read along the path that SELECT would choose. Tables with a hidden key
//! are scanned, because their rows do not say where they are.

use super::Run;
use super::chosen::{ChosenRows, Finding};
use super::plan::TargetTable;
use crate::error::ExecResult;
use crate::expr::SlotSet;
use crate::expr::exec::{Exec, Row, Slot};

use crate::expr::node::{CompareOp, Expr, Kind};
use crate::select::RowReader;
use crate::select::access::{self, TableAccess};
use crate::select::condition;
use crate::select::storage::{LockMode, WaitPolicy};
use crate::store::{RowAt, whole_index};
use bytes::Bytes;
use omnibus_value::{ColumnKind, ColumnType, Value};

/// Rows per batch of a scan.
const BATCH: usize = 256;

/// A unique key given by the WHERE clause.
#[derive(Debug)]
struct Point {
    /// Which index.
    pub index: usize,
    /// One expression a part, in key order.
    pub values: Vec<Expr>,
    /// Whether the key says everything that the WHERE clause says.
    pub complete: bool,
}

/// How the rows of a WHERE clause are found.
#[derive(Debug)]
pub(crate) struct Finder {
    point: Option<Point>,
    /// For tables whose keys can be made from their rows.
    path: Option<TableAccess>,
    filter: Option<Expr>,
    /// IGNORE: bad data in it is worth a warning in strict mode too.
    ignore: bool,
}

impl Finder {
    /// Chooses.
    pub(crate) fn new(target: &TargetTable, filter: Option<Expr>, ignore: bool) -> Finder {
        let point = find_point(target, filter.as_ref());
        let path = (!target.table.def.hidden_key).then(|| {
            let mut terms = Vec::new();
            if let Some(filter) = &filter {
                condition::conjuncts(filter.clone(), &mut terms);
            }
            access::choose(&target.table, target.slot, terms, &SlotSet::of(target.slot), &[])
        });
        Finder { point, path, filter, ignore }
    }

    /// Whether no key bounds what is read.
    pub(crate) fn reads_all(&self) -> bool {
        let bounded = |path: &TableAccess| !matches!(path.access, access::Access::Full { .. });
        self.point.is_none() && !self.path.as_ref().is_some_and(bounded)
    }

    /// An execution that looks for rows of the target.
    pub(crate) fn exec<'r>(&self, target: &TargetTable, run: &'r mut Run<'_>) -> Exec<'r> {
        let strict = run.state.settings.strict_search() && !self.ignore;
        let mut exec = target.exec(run, Row::Unset);
        exec.strict = strict;
        exec
    }
}

/// Finds a unique key whose every column the filter compares with something known.
fn find_point(target: &TargetTable, filter: Option<&Expr>) -> Option<Point> {
    let mut terms = Vec::new();
    conjuncts(filter?, &mut terms);
    let table = &target.table;
    let equals: Vec<(usize, &Expr)> = terms.iter().filter_map(|term| equality(term, target)).collect();
    for (at, index) in table.def.indexes.iter().enumerate() {
        let usable =
            index.unique() && !index.parts.is_empty() && index.parts.iter().all(|part| part.prefix.is_none());
        if !usable {
            continue;
        }
        let value =
            |column: usize| equals.iter().find(|(of, _)| *of == column).map(|(_, value)| (*value).clone());
        let values: Option<Vec<Expr>> = index.parts.iter().map(|part| value(part.column)).collect();
        if let Some(values) = values {
            let complete = terms.len() == values.len();
            return Some(Point { index: at, values, complete });
        }
    }
    None
}

fn conjuncts<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &expr.kind {
        Kind::And(list) => list.iter().for_each(|expr| conjuncts(expr, out)),
        _ => out.push(expr),
    }
}

/// `column = value` of the target, either way round.
fn equality<'e>(expr: &'e Expr, target: &TargetTable) -> Option<(usize, &'e Expr)> {
    let Kind::Compare(CompareOp::Eq, collation, pair) = &expr.kind else { return None };
    for (column, value) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
        let Kind::Column { slot, column, .. } = &column.kind else { continue };
        if *slot != target.slot || !value.is_fixed() {
            continue;
        }
        let ty = &target.table.def.columns[usize::from(*column)].ty;
        let comparable = ty.kind.is_integer() || (is_text(ty.kind) && ty.collation == *collation);
        if comparable {
            return Some((usize::from(*column), value));
        }
    }
    None
}

fn is_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Char | ColumnKind::VarChar | ColumnKind::Binary | ColumnKind::VarBinary)
}

/// What a key value turns out to be at execution.
enum KeyValue {
    /// Look it up.
    Value(Value),
    /// No row can be equal to it.
    Nothing,
    /// It does not compare like the column does: scan.
    Scan,
}

fn key_value(value: Value, ty: &ColumnType) -> KeyValue {
    match value {
        Value::Null => KeyValue::Nothing,
        Value::Int(_) | Value::UInt(_) if ty.kind.is_integer() => integer_key(&value, ty),
        Value::Bytes(text) if is_text(ty.kind) => {
            let longest = ty.length as usize * crate::catalog::charset::max_len(ty.collation) as usize;
            // A longer text could still be equal but for trailing spaces.
            if text.len() > longest || ty.kind == ColumnKind::Binary {
                KeyValue::Scan
            } else {
                KeyValue::Value(Value::Bytes(text))
            }
        }
        _ => KeyValue::Scan,
    }
}

fn integer_key(value: &Value, ty: &ColumnType) -> KeyValue {
    let wide = match value {
        Value::Int(value) => i128::from(*value),
        Value::UInt(value) => i128::from(*value),
        _ => return KeyValue::Scan,
    };
    let bits = 8 * ty.kind.integer_bytes() as u32;
    let (low, high) =
        if ty.unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) };
    match ((low..=high).contains(&wide), ty.unsigned) {
        (false, _) => KeyValue::Nothing,
        (true, true) => KeyValue::Value(Value::UInt(wide as u64)),
        (true, false) => KeyValue::Value(Value::Int(wide as i64)),
    }
}

/// The key of a point for this execution.
enum PointKey {
    /// Look this key up.
    Key(Bytes),
    /// There is no such row.
    Nothing,
    /// Scan instead.
    Scan,
}

impl Point {
    /// Evaluates the key.
    fn key(&self, target: &TargetTable, run: &mut Run<'_>, ignore: bool) -> ExecResult<PointKey> {
        let table = &target.table;
        let strict = !ignore && run.state.settings.strict_search();
        let mut values: [Value; 2] = Default::default();
        let mut more = Vec::new();
        for (at, (expr, part)) in self.values.iter().zip(&table.def.indexes[self.index].parts).enumerate() {
            let value = evaluate(expr, run, strict)?;
            let value = match key_value(value, &table.def.columns[part.column].ty) {
                KeyValue::Value(value) => value,
                KeyValue::Nothing => return Ok(PointKey::Nothing),
                KeyValue::Scan => return Ok(PointKey::Scan),
            };
            // Keys of one or two columns need no vector.
            match values.get_mut(at).filter(|_| self.values.len() <= 2) {
                Some(slot) => *slot = value,
                None => more.push(value),
            }
        }
        let values = if self.values.len() <= 2 { &values[..self.values.len()] } else { &more };
        Ok(PointKey::Key(table.keys[self.index].whole(values)))
    }
}

/// A value that no row is needed for; `strict` as in [`Exec`].
pub(crate) fn evaluate(expr: &Expr, run: &mut Run<'_>, strict: bool) -> ExecResult<Value> {
    match &expr.kind {
        Kind::Const(value) => Ok(value.clone()),
        Kind::Param(at) => Ok(run.params.get(*at).cloned().unwrap_or_default()),
        _ => {
            let mut exec = Exec::new(run.state, run.trx, run.params);
            exec.strict = strict;
            expr.eval(&mut exec)
        }
    }
}

impl TargetTable {
    /// An execution whose frame has the target's row in its slot.
    pub(crate) fn exec<'r>(&self, run: &'r mut Run<'_>, row: Row) -> Exec<'r> {
        let mut exec = Exec::new(run.state, run.trx, run.params);
        if self.subqueries > 0 {
            exec.reserve(self.slots, self.subqueries);
        }
        exec.frame = self.frame(row);
        exec
    }

    /// A frame with the target's row in its slot.
    pub(crate) fn frame(&self, row: Row) -> Vec<Slot> {
        let mut frame = vec![Slot::default(); self.slots.max(1)];
        frame[usize::from(self.slot)] = Slot { table: Some(self.table.clone()), row };
        frame
    }

    /// The rows that a statement changes, locked, in the order they were found; `limit` of them at
    /// most.
    pub(crate) fn matching(&self, run: &mut Run<'_>, finder: &Finder, limit: u64) -> ExecResult<ChosenRows> {
        run.trx.start_write(&self.table)?;
        if limit == 0 {
            return Ok(Vec::new().into());
        }
        if let Some(point) = &finder.point {
            match point.key(self, run, finder.ignore)? {
                PointKey::Nothing => return Ok(Vec::new().into()),
                PointKey::Scan => {}
                PointKey::Key(key) => {
                    let late = !point.complete && self.locks_late(run);
                    let lock = if late { LockMode::None } else { LockMode::Exclusive };
                    let found = run.trx.get_unique(&self.table, point.index, &key, lock, WaitPolicy::Wait)?;
                    let mut rows: Vec<RowAt> = found.into_iter().collect();
                    if !point.complete {
                        self.keep_matching(run, finder, &mut rows, 0)?;
                    }
                    if late {
                        self.lock_matching(run, finder, &mut rows, 0, 1)?;
                    }
                    return Ok(rows.into());
                }
            }
        }
        match &finder.path {
            Some(path) => self.read_path(run, finder, path, limit),
            None => self.scan_matching(run, finder, limit),
        }
    }

    /// Reads along an access path. Rows come as images; their keys are made from them.
    fn read_path(
        &self,
        run: &mut Run<'_>,
        finder: &Finder,
        path: &TableAccess,
        limit: u64,
    ) -> ExecResult<ChosenRows> {
        let mut exec = finder.exec(self, run);
        let read_limit = usize::try_from(limit).ok().filter(|_| limit != u64::MAX);
        let mut reader =
            RowReader::open(&self.table, path, LockMode::Exclusive, WaitPolicy::Wait, read_limit, &mut exec)?;
        let mut rows = Finding::new();
        while rows.count() < limit {
            let Some(row) = reader.next(self.slot, &mut exec)? else { break };
            rows.push(RowAt { key: self.table.clustered_key(&row)?, row }, &mut exec)?;
        }
        Ok(rows.finish()?)
    }

    fn scan_matching(&self, run: &mut Run<'_>, finder: &Finder, limit: u64) -> ExecResult<ChosenRows> {
        let late = self.locks_late(run);
        let lock = if late { LockMode::None } else { LockMode::Exclusive };
        let mut range = whole_index(&self.table, 0);
        run.trx.begin_scan(&self.table, &range, lock)?;
        let mut found = Finding::new();
        let mut rows = Vec::new();
        loop {
            let left = usize::try_from(limit - found.count()).unwrap_or(usize::MAX);
            let want = if finder.filter.is_none() { left.min(BATCH) } else { BATCH };
            rows.clear();
            let done = run.trx.scan(&self.table, 0, &mut range, lock, WaitPolicy::Wait, want, &mut rows)?;
            self.keep_matching(run, finder, &mut rows, 0)?;
            if late {
                self.lock_matching(run, finder, &mut rows, 0, left)?;
            }
            rows.truncate(left);
            let mut exec = finder.exec(self, run);
            for row in rows.drain(..) {
                found.push(row, &mut exec)?;
            }
            if done || found.count() >= limit {
                return Ok(found.finish()?);
            }
        }
    }

    fn locks_late(&self, run: &Run<'_>) -> bool {
        run.trx.locks_matches_only(&self.table, LockMode::Exclusive)
    }

    /// Locks rows from `from` on that matched without locks, up to `limit` in all, and drops those that no longer do.
    fn lock_matching(
        &self,
        run: &mut Run<'_>,
        finder: &Finder,
        rows: &mut Vec<RowAt>,
        from: usize,
        limit: usize,
    ) -> ExecResult<()> {
        let Run { trx, state, params } = run;
        trx.lock_matches(&self.table, rows, from, limit, &mut |trx, row| {
            let Some(filter) = &finder.filter else { return Ok(true) };
            let mut run = Run { trx, state, params };
            let mut exec = finder.exec(self, &mut run);
            exec.frame[usize::from(self.slot)].row = Row::Image(row.clone());
            Ok(filter.eval_bool(&mut exec)? == Some(true))
        })
    }

    /// Drops rows from `from` on that the filter does not accept.
    fn keep_matching(
        &self,
        run: &mut Run<'_>,
        finder: &Finder,
        rows: &mut Vec<RowAt>,
        from: usize,
    ) -> ExecResult<()> {
        let Some(filter) = &finder.filter else { return Ok(()) };
        let mut exec = finder.exec(self, run);
        let mut kept = from;
        for at in from..rows.len() {
            exec.frame[usize::from(self.slot)].row = Row::Image(rows[at].row.clone());
            if filter.eval_bool(&mut exec)? == Some(true) {
                rows.swap(kept, at);
                kept += 1;
            }
        }
        rows.truncate(kept);
        Ok(())
    }
}
