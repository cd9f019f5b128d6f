//! A lock that a test asks for, and what goes together: the reference that real grants are compared with.

use crate::{Request, RowMode, TableMode, TrxLocks};
use bytes::Bytes;
use rand::Rng;
use rand::rngs::StdRng;
use std::ops::Bound::{Excluded, Included};

pub(crate) const SPACE: u32 = 7;
pub(crate) const KEYS: u8 = 5;
pub(crate) const TABLES: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lock {
    Record { key: u8, exclusive: bool, insert: bool },
    Range { from: u8, to: u8 },
    Table { table: u64, mode: TableMode },
}

/// The key with this number.
pub(crate) fn name(key: u8) -> Bytes {
    Bytes::copy_from_slice(&[b'r', b'o', b'o', b'm', key])
}

impl Lock {
    /// Returns whether `self`, wanted, must wait for `held`.
    pub(crate) fn waits_for(self, held: Lock) -> bool {
        use TableMode::{IntentExclusive, IntentShared, Shared};
        match (self, held) {
            (Lock::Table { table, mode }, Lock::Table { table: other, mode: held }) => {
                let together = matches!(
                    (mode, held),
                    (IntentShared, IntentShared | IntentExclusive | Shared)
                        | (IntentExclusive | Shared, IntentShared)
                        | (IntentExclusive, IntentExclusive)
                        | (Shared, Shared)
                );
                table == other && !together
            }
            (Lock::Record { key, exclusive, .. }, Lock::Record { key: other, exclusive: x, .. }) => {
                key == other && (exclusive || x)
            }
            (Lock::Record { key, insert: true, .. }, Lock::Range { from, to })
            | (Lock::Range { from, to }, Lock::Record { key, insert: true, .. }) => (from..to).contains(&key),
            _ => false,
        }
    }

    pub(crate) fn ask(self, trx: &TrxLocks) -> Request {
        match self {
            Lock::Record { key, insert: true, .. } => trx.lock_insert(SPACE, &name(key)),
            Lock::Record { key, exclusive, .. } => {
                let mode = if exclusive { RowMode::Exclusive } else { RowMode::Shared };
                trx.lock_record(SPACE, &name(key), mode)
            }
            Lock::Range { from, to } => trx.lock_range(SPACE, Included(&name(from)), Excluded(&name(to))),
            Lock::Table { table, mode } => trx.lock_table(table, mode),
        }
    }

    /// Of the first so many keys and tables.
    pub(crate) fn random(rng: &mut StdRng, keys: u8, tables: u64) -> Lock {
        let key = rng.random_range(0..keys);
        match rng.random_range(0..13) {
            0..3 => Lock::Record { key, exclusive: false, insert: false },
            3..6 => Lock::Record { key, exclusive: true, insert: false },
            6..8 => Lock::Record { key, exclusive: true, insert: true },
            8..11 => Lock::Table {
                table: rng.random_range(0..tables),
                mode: [
                    TableMode::IntentShared,
                    TableMode::IntentExclusive,
                    TableMode::Shared,
                    TableMode::Exclusive,
                ][rng.random_range(0..4)],
            },
            _ => Lock::Range { from: key, to: rng.random_range(key..=keys) },
        }
    }
}
