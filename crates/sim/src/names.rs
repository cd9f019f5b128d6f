//! Identifies the author of changes: transactions and XA branches by the names in keys, events and statements.

use omnibus_engine::{CommitNo, Held, WriteSet};
use omnibus_format::EventType;
use omnibus_format::events::{Query, RowsQuery};

/// The first letters of keys, by slot: the top bits of a key's first byte say which engine it is in.
pub(crate) const LETTERS: [&str; 2] = ["#", "r"];

/// The first bytes of the private event of an unlogged transaction.
pub(crate) const PRIVATE: &[u8] = b"OMNI\x01\x01";

/// The first letters of a branch's name, followed by its number in eight digits.
const NAME: &[u8] = b"branch";
/// Returns the text of a transaction's first row in the log, behind its letter.
pub(crate) fn row_text(id: u64) -> Vec<u8> {
    format!("{id:08}.0=").into_bytes()
}

/// Returns the transaction of an event of the log, if the event names it.
pub(crate) fn id_of_event(kind: EventType, body: &[u8]) -> Option<u64> {
    match kind {
        EventType::ROWS_QUERY => id_of(RowsQuery::decode(body).ok()?.0),
        EventType::MARIADB_ANNOTATE_ROWS => id_of(body),
        EventType::IGNORABLE => id_of(body.strip_prefix(PRIVATE)?),
        EventType::XA_PREPARE => branch_of(body),
        EventType::QUERY => Some(branch_ended_by(Query::decode(body).ok()?.sql)? + 1),
        _ => None,
    }
}

/// The numbers of transactions that make the tables, which no request has.
const FOUNDING: u64 = 1 << 40;

/// Returns whether a transaction's number is that of a request.
pub(crate) fn is_named(id: u64) -> bool {
    id < FOUNDING
}

/// Returns the transaction that makes these writes, if they name it. A prepared XA branch writes its name, and its end
/// removes it.
pub(crate) fn who(no: CommitNo, writes: &WriteSet) -> u64 {
    let name = |held: Held<'_>| Some(branch_of(held.key())? + u64::from(held.is_delete()));
    let all = || writes.in_memory(..);
    let first = all().next().and_then(|held| id_of(held.key()));
    first.or_else(|| all().find_map(name)).unwrap_or(FOUNDING + no.0)
}

/// Returns the author of a row, from its key.
pub(crate) fn id_of(key: &[u8]) -> Option<u64> {
    let key = key.split(|byte| *byte == b'.').next()?;
    let key = std::str::from_utf8(key).ok()?;
    LETTERS.iter().find_map(|letter| key.strip_prefix(letter))?.parse().ok()
}

/// Returns the branch that a key, a name or a statement refers to.
pub(crate) fn branch_of(text: &[u8]) -> Option<u64> {
    let at = text.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    std::str::from_utf8(text.get(at..at + 8)?).ok()?.parse().ok()
}

/// As `branch_of`, for a statement that names it in hexadecimal digits.
pub(crate) fn branch_ended_by(sql: &[u8]) -> Option<u64> {
    let sql = std::str::from_utf8(sql).ok()?;
    let digits = sql.strip_prefix("XA COMMIT X'").or_else(|| sql.strip_prefix("XA ROLLBACK X'"))?;
    let digits = digits.split('\'').next()?;
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    branch_of(&(0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()?)
}

/// A branch, as a statement names it.
pub(crate) fn branch_name(id: u64) -> String {
    format!("'{}{id:08}'", String::from_utf8_lossy(NAME))
}
