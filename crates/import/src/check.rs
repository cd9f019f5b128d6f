//! Compares tables of source and target, piece by piece, at one moment of both.
//!
//! The source's sessions have a snapshot, or nobody writes there; the target applies nothing meanwhile. Both compute, by the
//! same expression, how many rows a piece has, and a sum and an exclusive or of a checksum of each. Of a piece that differs
//! the rows' checksums are compared one by one, by their keys.

use crate::bounds::{self, KeyValue};
use crate::error::ImportError;
use crate::options::Details;
use crate::pieces::{Piece, Pieces};
use crate::progress::Progress;
use crate::session::{Server, Session};
use crate::table::Table;
use crate::workers;
use omnibus_replication::client::ClientError;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering::Relaxed;

/// Pieces are smaller than those that are copied: what differs is read again.
const SCALE: u64 = 8;
/// The number of rows that a difference names.
const NAMED: usize = 5;

/// A difference between the sides of a table or definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub table: String,
    pub text: String,
}

/// Compares all tables. Returns what differs, at most a few lines for each piece of a table.
pub(crate) fn tables(
    tables: &[Table],
    sources: &mut [Session],
    target: &Server,
    details: &Details,
) -> Result<Vec<Difference>, ImportError> {
    let pieces = Pieces::of(tables, (details.chunk / SCALE).max(1));
    let counts_only = details.quick;
    let found = Mutex::new(Vec::new());
    workers::run("checked", tables, sources, &pieces, |_, source, progress| {
        work(tables, source, target, counts_only, &pieces, progress, &found)
    })?;
    Ok(found.into_inner())
}

fn work(
    tables: &[Table],
    source: &mut Session,
    target: &Server,
    counts_only: bool,
    pieces: &Pieces,
    progress: &Progress,
    found: &Mutex<Vec<Difference>>,
) -> Result<(), ImportError> {
    source.run("SET SESSION character_set_results = NULL")?;
    let mut there = target.session()?;
    there.run("SET SESSION character_set_results = NULL")?;
    while let Some(mut piece) = pieces.take() {
        let table = &tables[piece.table];
        pieces.split(source, table, &mut piece)?;
        let ours = sums(source, table, &piece, counts_only)?;
        match sums(&mut there, table, &piece, counts_only) {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) => {
                let text = explain(source, &mut there, table, &piece, &ours, &theirs)?;
                if let Some(text) = text {
                    found.lock().push(Difference { table: table.name.to_string(), text });
                }
            }
            // The table, or a column of it, is not there.
            Err(error) if matches!(error.code(), Some(1049 | 1146 | 1054 | 1176)) => {
                found.lock().push(Difference { table: table.name.to_string(), text: error.to_string() });
            }
            Err(error) => return Err(error),
        }
        let rows = ours.first().and_then(|n| n.parse().ok()).unwrap_or(0);
        progress.add(rows, rows.saturating_mul(table.bytes / table.rows.max(1)));
        if pieces.done(piece.table) {
            progress.tables_done.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

/// The number of rows of a piece, and two sums of their checksums.
pub(crate) fn sums(
    session: &mut Session,
    table: &Table,
    piece: &Piece,
    counts_only: bool,
) -> Result<Vec<String>, ImportError> {
    let from = format!("{}{}{}", table.name.quoted(), table.by_key(), piece.range.condition(&table.key));
    if counts_only {
        return Ok(session.first(&format!("SELECT COUNT(*) FROM {from}"))?.unwrap_or_default());
    }
    let (sum, inexact) = (table.row_sum(), table.inexact());
    if inexact.is_empty() {
        let sql =
            format!("SELECT COUNT(*), COALESCE(BIT_XOR({sum}), 0), COALESCE(SUM({sum}), 0) FROM {from}");
        return Ok(session.first(&sql)?.unwrap_or_default());
    }
    session.begin(&format!("SELECT {sum}, {} FROM {from}", inexact.join(", ")))?;
    let (mut rows, mut either, mut total) = (0u64, 0u64, 0u64);
    while let Some(mut row) = session.next()? {
        let mut hasher = DefaultHasher::new();
        for _ in 0..=inexact.len() {
            plain(row.next_value().map_err(|error| session_error(table, error))?).hash(&mut hasher);
        }
        let hash = hasher.finish();
        rows += 1;
        either ^= hash;
        total = total.wrapping_add(hash);
    }
    Ok(vec![rows.to_string(), either.to_string(), total.to_string()])
}

/// A number without the sign that some servers give a zero.
fn plain(value: Option<&[u8]>) -> Option<&[u8]> {
    value.map(|value| match value.strip_prefix(b"-") {
        Some(rest) if rest.iter().all(|byte| matches!(byte, b'0' | b'.')) => rest,
        _ => value,
    })
}

fn session_error(table: &Table, error: ClientError) -> ImportError {
    ImportError::Server { server: "a server", doing: format!("a row of {}", table.name), error }
}

/// Says what differs in a piece; nothing if only the order of its keys does.
fn explain(
    source: &mut Session,
    target: &mut Session,
    table: &Table,
    piece: &Piece,
    ours: &[String],
    theirs: &[String],
) -> Result<Option<String>, ImportError> {
    let number = |sums: &[String]| sums.first().cloned().unwrap_or_default();
    let head = format!(
        "{}: {} rows in the source, {} in the target",
        piece.range.shown(&table.key),
        number(ours),
        number(theirs)
    );
    if table.key.is_empty() {
        return Ok(Some(head));
    }
    // Servers may order texts differently, so that a border means other rows: the whole table decides then.
    let whole = Piece { table: piece.table, range: bounds::Range::default() };
    if !table.is_ordered_alike() && sums(source, table, &whole, false)? == sums(target, table, &whole, false)?
    {
        return Ok(None);
    }
    let here = by_key(source, table, piece)?;
    let there = by_key(target, table, piece)?;
    let mut parts = vec![head];
    let keys = |wanted: &dyn Fn(&KeyValue) -> bool, of: &HashMap<KeyValue, KeyValue>| {
        let mut keys: Vec<KeyValue> = of.keys().filter(|key| wanted(key)).cloned().collect();
        keys.sort_by(|a, b| {
            (a.iter().map(Vec::len).collect::<Vec<_>>(), a).cmp(&(b.iter().map(Vec::len).collect(), b))
        });
        keys
    };
    for (what, list) in [
        ("missing in the target", keys(&|key| !there.contains_key(key), &here)),
        ("only in the target", keys(&|key| !here.contains_key(key), &there)),
        ("different", keys(&|key| there.get(key).is_some_and(|sum| Some(sum) != here.get(key)), &here)),
    ] {
        if !list.is_empty() {
            let named: Vec<String> =
                list.iter().take(NAMED).map(|key| bounds::shown(&table.key, key)).collect();
            let more = if list.len() > NAMED { ", .." } else { "" };
            parts.push(format!("{what}: {} ({}{more})", list.len(), named.join(", ")));
        }
    }
    Ok(Some(parts.join("; ")))
}

/// The checksum and the inexact numbers of each row of a piece, by its key.
fn by_key(
    session: &mut Session,
    table: &Table,
    piece: &Piece,
) -> Result<HashMap<KeyValue, KeyValue>, ImportError> {
    let mut columns = vec![table.key_list(), table.row_sum()];
    columns.extend(table.inexact());
    let from = format!("{}{}{}", table.name.quoted(), table.by_key(), piece.range.condition(&table.key));
    let rows = session.rows(&format!("SELECT {} FROM {from}", columns.join(", ")))?;
    let split = |row: Vec<Option<Vec<u8>>>| {
        let mut key: KeyValue =
            row.into_iter().map(|value| plain(value.as_deref()).unwrap_or_default().to_vec()).collect();
        let rest = key.split_off(table.key.len());
        (key, rest)
    };
    Ok(rows.into_iter().map(split).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_has_no_sign() {
        assert_eq!(plain(Some(b"-0")), Some(&b"0"[..]));
        assert_eq!(plain(Some(b"-0.00")), Some(&b"0.00"[..]));
        assert_eq!(plain(Some(b"-0.01")), Some(&b"-0.01"[..]));
        assert_eq!(plain(None), None);
    }
}
