//! The status variables of QUERY: the session state a statement needs to run the same elsewhere.
//!
//! A list of code byte + value with no lengths, so a reader must stop at the first code it does
//! not know. They are therefore written in rising code order, the ones old readers lack last.

use crate::cursor::Reader;
use crate::error::DecodeError;

/// Bits of `flags2`.
pub mod flags2 {
    /// `sql_auto_is_null`.
    pub const AUTO_IS_NULL: u32 = 1 << 14;
    /// MariaDB: `check_constraint_checks` is off.
    pub const NO_CHECK_CONSTRAINT_CHECKS: u32 = 1 << 15;
    /// `autocommit` is off.
    pub const NOT_AUTOCOMMIT: u32 = 1 << 19;
    /// `foreign_key_checks` is off.
    pub const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    /// `unique_checks` is off.
    pub const RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
    /// MariaDB: `IF EXISTS` is implied.
    pub const IF_EXISTS: u32 = 1 << 28;
}

/// Decoded status variables; absent ones are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusVars {
    /// `flags2::*` bits.
    pub flags2: Option<u32>,
    /// `sql_mode` bits.
    pub sql_mode: Option<u64>,
    /// Catalog name, always `std`.
    pub catalog: Option<Vec<u8>>,
    /// `auto_increment_increment` and `_offset`; written only when not both 1.
    pub auto_increment: Option<(u16, u16)>,
    /// Collation ids of `character_set_client`, `collation_connection`, `collation_server`.
    pub charset: Option<[u16; 3]>,
    /// `time_zone`, when the statement depends on it.
    pub time_zone: Option<Vec<u8>>,
    /// `lc_time_names` number, when not en_US.
    pub lc_time_names: Option<u16>,
    /// `collation_database` id.
    pub charset_database: Option<u16>,
    /// The tables that a multi-table UPDATE writes, as a bitmap.
    pub table_map_for_update: Option<u64>,
    /// Definer user and host.
    pub invoker: Option<(Vec<u8>, Vec<u8>)>,
    /// Databases touched; `None` inside means more than 16.
    pub updated_databases: Option<Option<Vec<Vec<u8>>>>,
    /// Microseconds of the statement's start time.
    pub microseconds: Option<u32>,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// Transaction number of an atomic DDL statement.
    pub ddl_xid: Option<u64>,
    /// `default_collation_for_utf8mb4` id.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// `sql_require_primary_key`.
    pub sql_require_primary_key: Option<u8>,
    /// `default_table_encryption`.
    pub default_table_encryption: Option<u8>,
    /// MariaDB: fraction of the start time, microseconds.
    pub mariadb_hrnow: Option<u32>,
    /// MariaDB: transaction number of an atomic DDL statement.
    pub mariadb_xid: Option<u64>,
    /// MariaDB: more flags of the GTID; two of them are followed by the number of the ALTER that ends.
    pub mariadb_flags: Option<(u8, Option<u64>)>,
    /// MariaDB: `character_set_collations`, ids of a character set's default collation and of the one in its place.
    pub charset_collations: Vec<(u16, u16)>,
    /// Bytes from the first unknown code on.
    pub unknown: Vec<u8>,
}

/// COMMIT_ALTER and ROLLBACK_ALTER.
const ENDS_ALTER: u8 = 4 | 8;

const OVER_MAX_DATABASES: u8 = 254;
/// The maximum number of named databases.
const MAX_DATABASES: usize = 16;

impl StatusVars {
    /// Decodes the block; an unknown code ends it and keeps the rest raw.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(block: &[u8]) -> Result<Self, DecodeError> {
        let mut vars = Self::default();
        let mut r = Reader::new(block);
        while !r.is_empty() {
            let at = r.position();
            let code = r.u8("status variable")?;
            if !vars.decode_one(code, &mut r)? {
                vars.unknown = block[at..].to_vec();
                break;
            }
        }
        Ok(vars)
    }

    fn decode_one(&mut self, code: u8, r: &mut Reader<'_>) -> Result<bool, DecodeError> {
        match code {
            0 => self.flags2 = Some(r.u32("flags2")?),
            1 => self.sql_mode = Some(r.u64("sql_mode")?),
            2 => {
                self.catalog = Some(r.short_bytes("catalog")?.to_vec());
                r.u8("catalog end")?;
            }
            3 => {
                self.auto_increment =
                    Some((r.u16("auto_increment_increment")?, r.u16("auto_increment_offset")?));
            }
            4 => {
                let mut ids = [0; 3];
                for id in &mut ids {
                    *id = r.u16("charset")?;
                }
                self.charset = Some(ids);
            }
            5 => self.time_zone = Some(r.short_bytes("time_zone")?.to_vec()),
            6 => self.catalog = Some(r.short_bytes("catalog")?.to_vec()),
            7 => self.lc_time_names = Some(r.u16("lc_time_names")?),
            8 => self.charset_database = Some(r.u16("charset_database")?),
            9 => self.table_map_for_update = Some(r.u64("table_map_for_update")?),
            // Size of the event on the original source, only ever in old relay logs.
            10 => drop(r.u32("master_data_written")?),
            11 => {
                let user = r.short_bytes("invoker user")?.to_vec();
                self.invoker = Some((user, r.short_bytes("invoker host")?.to_vec()));
            }
            12 => self.updated_databases = Some(decode_databases(r)?),
            13 => self.microseconds = Some(r.uint(3, "microseconds")? as u32),
            16 => {
                let on = r.u8("explicit_defaults_for_timestamp")? != 0;
                self.explicit_defaults_for_timestamp = Some(on);
            }
            17 => self.ddl_xid = Some(r.u64("ddl xid")?),
            18 => {
                self.default_collation_for_utf8mb4 = Some(r.u16("default collation for utf8mb4")?);
            }
            19 => self.sql_require_primary_key = Some(r.u8("sql_require_primary_key")?),
            20 => self.default_table_encryption = Some(r.u8("default_table_encryption")?),
            128 => self.mariadb_hrnow = Some(r.uint(3, "hrnow")? as u32),
            129 => self.mariadb_xid = Some(r.u64("xid")?),
            130 => {
                let flags = r.u8("GTID flags")?;
                let alter = if flags & ENDS_ALTER != 0 { Some(r.u64("number of an ALTER")?) } else { None };
                self.mariadb_flags = Some((flags, alter));
            }
            131 => {
                for _ in 0..r.u8("count of collations")? {
                    self.charset_collations.push((r.u16("collation")?, r.u16("collation")?));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the block in rising code order, then `unknown`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, 0, self.flags2.map(u32::to_le_bytes));
        put(out, 1, self.sql_mode.map(u64::to_le_bytes));
        put_short(out, 6, self.catalog.as_deref().map(|c| [c]));
        if let Some((increment, offset)) = self.auto_increment {
            put(out, 3, Some(increment.to_le_bytes()));
            out.extend_from_slice(&offset.to_le_bytes());
        }
        if let Some([client, connection, server]) = self.charset {
            put(out, 4, Some(client.to_le_bytes()));
            out.extend_from_slice(&connection.to_le_bytes());
            out.extend_from_slice(&server.to_le_bytes());
        }
        put_short(out, 5, self.time_zone.as_deref().map(|z| [z]));
        put(out, 7, self.lc_time_names.map(u16::to_le_bytes));
        put(out, 8, self.charset_database.map(u16::to_le_bytes));
        put(out, 9, self.table_map_for_update.map(u64::to_le_bytes));
        put_short(out, 11, self.invoker.as_ref().map(|(u, h)| [u.as_slice(), h.as_slice()]));
        if let Some(databases) = &self.updated_databases {
            encode_databases(out, databases.as_deref());
        }
        put(out, 13, self.microseconds.map(|us| [us as u8, (us >> 8) as u8, (us >> 16) as u8]));
        put(out, 16, self.explicit_defaults_for_timestamp.map(|on| [u8::from(on)]));
        put(out, 17, self.ddl_xid.map(u64::to_le_bytes));
        put(out, 18, self.default_collation_for_utf8mb4.map(u16::to_le_bytes));
        put(out, 19, self.sql_require_primary_key.map(|v| [v]));
        put(out, 20, self.default_table_encryption.map(|v| [v]));
        put(out, 128, self.mariadb_hrnow.map(|us| [us as u8, (us >> 8) as u8, (us >> 16) as u8]));
        put(out, 129, self.mariadb_xid.map(u64::to_le_bytes));
        if let Some((flags, alter)) = self.mariadb_flags {
            put(out, 130, Some([flags]));
            out.extend(alter.map(u64::to_le_bytes).into_iter().flatten());
        }
        if !self.charset_collations.is_empty() {
            let kept = &self.charset_collations[..self.charset_collations.len().min(255)];
            put(out, 131, Some([kept.len() as u8]));
            kept.iter().flat_map(|(from, to)| [*from, *to]).for_each(|id| out.extend(id.to_le_bytes()));
        }
        out.extend_from_slice(&self.unknown);
    }
}

fn put<const N: usize>(out: &mut Vec<u8>, code: u8, value: Option<[u8; N]>) {
    if let Some(value) = value {
        out.push(code);
        out.extend_from_slice(&value);
    }
}

/// Strings with one-byte lengths; longer ones are cut, which no server-made value reaches.
fn put_short<const N: usize>(out: &mut Vec<u8>, code: u8, values: Option<[&[u8]; N]>) {
    let Some(values) = values else { return };
    out.push(code);
    for value in values {
        let value = &value[..value.len().min(255)];
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }
}

fn decode_databases(r: &mut Reader<'_>) -> Result<Option<Vec<Vec<u8>>>, DecodeError> {
    let count = r.u8("database count")?;
    if count == OVER_MAX_DATABASES {
        return Ok(None);
    }
    let names = (0..count).map(|_| r.until_nul("database name").map(<[u8]>::to_vec));
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    Ok(Some(names).filter(|names| names.len() <= MAX_DATABASES))
}

fn encode_databases(out: &mut Vec<u8>, databases: Option<&[Vec<u8>]>) {
    out.push(12);
    match databases {
        Some(names) if names.len() <= MAX_DATABASES => {
            out.push(names.len() as u8);
            for name in names {
                out.extend_from_slice(name);
                out.push(0);
            }
        }
        _ => out.push(OVER_MAX_DATABASES),
    }
}
