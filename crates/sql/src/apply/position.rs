//! Where channels are, as rows of space 3: key is the channel's name, value a version and what the channel stored.
//!
//! APPLY-1: written through the write set of the transaction that it stands behind, in a private event, so that a crash
//! keeps or loses both. Not a table: no row events, no locks; whoever commits last has the last word, and commits are ordered.

use crate::catalog::persist::POSITION_SPACE;
use crate::error::{SqlError, SqlResult};
use crate::session::Database;
use crate::store::write_set_event;
use bytes::Bytes;
use omnibus_commit::CommitRequest;
use omnibus_engine::{SpaceId, WriteSet};
use omnibus_replication::changes::Position;
use std::ops::Bound;

const VERSION: u8 = 1;

fn key(channel: &str) -> Bytes {
    [&POSITION_SPACE.prefix(), channel.as_bytes()].concat().into()
}

/// The pair that stores a position.
pub(super) fn pair(position: &Position) -> (Bytes, Bytes) {
    (key(&position.channel), [&[VERSION], &position.state[..]].concat().into())
}

fn decode(key: &[u8], value: &[u8]) -> SqlResult<Position> {
    let damaged =
        |what: &str| SqlError::internal(format!("a stored replication position is damaged: {what}"));
    let channel = key.get(4..).and_then(|name| std::str::from_utf8(name).ok());
    match (channel, value) {
        (Some(channel), [VERSION, state @ ..]) => {
            Ok(Position { channel: channel.to_owned(), state: state.to_vec() })
        }
        (None, _) => Err(damaged("channel name")),
        _ => Err(damaged("version")),
    }
}

/// The position last committed for a channel.
///
/// # Errors
/// The engine failed, or damage.
pub fn stored_position(database: &Database, channel: &str) -> SqlResult<Option<Vec<u8>>> {
    let key = key(channel);
    let value = database.port().latest().get(&key)?;
    value.map(|value| decode(&key, &value).map(|position| position.state)).transpose()
}

/// Of every channel.
///
/// # Errors
/// As `stored_position`.
pub fn stored_positions(database: &Database) -> SqlResult<Vec<Position>> {
    let (from, to) = (POSITION_SPACE.prefix(), SpaceId(POSITION_SPACE.0 + 1).prefix());
    let latest = database.port().latest();
    let pairs = latest.scan(Bound::Included(&from), Bound::Excluded(&to), false);
    pairs.map(|pair| pair.map_err(SqlError::from).and_then(|(key, value)| decode(&key, &value))).collect()
}

/// Moves a channel by hand (CHANGE REPLICATION SOURCE), durable when it returns. Blocks.
///
/// # Errors
/// The commit failed.
pub fn store_position(database: &Database, position: &Position) -> SqlResult<()> {
    let (key, value) = pair(position);
    let mut writes = WriteSet::default();
    writes.put(key, value);
    commit(database, writes)
}

/// Forgets a channel (RESET REPLICA), durable when it returns. Blocks.
///
/// # Errors
/// The commit failed.
pub fn forget_position(database: &Database, channel: &str) -> SqlResult<()> {
    let mut writes = WriteSet::default();
    writes.delete(key(channel));
    commit(database, writes)
}

fn commit(database: &Database, writes: WriteSet) -> SqlResult<()> {
    let port = database.port();
    let mut cache = port.new_cache();
    write_set_event(&mut cache, &writes)?;
    let now = omnibus_commit::now_us();
    let ticket = port.commit(CommitRequest::new(cache, writes, false, now).inline());
    ticket.wait().map(|_| ()).map_err(SqlError::of_commit)
}
