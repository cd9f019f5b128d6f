//! From key definitions to indexes: names, order, the choice of the clustered key, limits.

use super::build::Ids;
use crate::catalog::{Column, Index, IndexKind, IndexPart, TableDef, charset, same_name};
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::ast::{self, CreateTable, KeyTarget, TypeName};
use omnibus_value::{ColumnKind, ColumnType};
use std::sync::Arc;

const MAX_KEYS: usize = 64;
const MAX_PARTS: usize = 16;
const MAX_KEY_BYTES: u32 = 3072;

/// All indexes in MySQL's order, the clustered one first. Makes PRIMARY KEY columns NOT NULL.
pub(crate) fn build_indexes(
    tree: &CreateTable,
    columns: &mut [Column],
    ids: &mut Ids<'_>,
    slot: u8,
) -> SqlResult<Vec<Index>> {
    let mut indexes = Vec::new();
    for (at, column) in tree.columns.iter().enumerate() {
        if column.primary_key {
            indexes.push(column_index(IndexKind::Primary, at));
        }
        if column.unique || column.ty.name == TypeName::Serial {
            indexes.push(column_index(IndexKind::Unique, at));
        }
    }
    for key in &tree.indexes {
        indexes.push(build_index(key, columns)?);
    }
    // What a foreign key got for itself goes when there is another.
    let own: Vec<Index> = indexes.extract_if(.., |index| index.of_foreign_key).collect();
    for index in own {
        if !indexes.iter().any(|other| covers(other, &index)) {
            indexes.push(index);
        }
    }
    for key in &tree.foreign_keys {
        let index = foreign_key_index(key, &tree.name.name, columns)?;
        if !indexes.iter().any(|other| covers(other, &index)) {
            indexes.push(index);
        }
    }
    if indexes.iter().filter(|index| index.kind == IndexKind::Primary).count() > 1 {
        return Err(SqlError::multiple_pri_key());
    }
    if indexes.len() > MAX_KEYS {
        return Err(SqlError::too_many_keys(MAX_KEYS));
    }
    make_primary_not_null(tree, &indexes, columns)?;
    for index in &mut indexes {
        check_parts(index, columns)?;
    }
    name_indexes(&mut indexes, columns)?;
    indexes.sort_by_key(|index| (rank(index, columns), has_computed(index, columns)));
    cluster(&mut indexes, columns);
    for index in &mut indexes {
        index.space = ids.space(slot);
    }
    Ok(indexes)
}

fn blank(kind: IndexKind, parts: Vec<IndexPart>) -> Index {
    Index {
        name: Arc::from(""),
        kind,
        parts,
        space: omnibus_engine::SpaceId(0),
        clustered: false,
        invisible: false,
        of_foreign_key: false,
        comment: Arc::from(""),
    }
}

fn column_index(kind: IndexKind, column: usize) -> Index {
    blank(kind, vec![IndexPart { column, prefix: None, descending: false }])
}

fn build_index(key: &ast::IndexDef, columns: &[Column]) -> SqlResult<Index> {
    let kind = match key.kind {
        ast::IndexKind::Primary => IndexKind::Primary,
        ast::IndexKind::Unique => IndexKind::Unique,
        ast::IndexKind::Index => IndexKind::Plain,
        ast::IndexKind::FullText => return Err(SqlError::not_supported_yet("FULLTEXT indexes")),
        ast::IndexKind::Spatial => return Err(SqlError::not_supported_yet("SPATIAL indexes")),
    };
    if let Some(name) = key.name.as_deref().filter(|name| name.is_empty() || name.ends_with(' ')) {
        return Err(SqlError::new(1280, b"42000", format!("Incorrect index name '{name}'")));
    }
    if key.parts.len() > MAX_PARTS {
        return Err(SqlError::too_many_key_parts(MAX_PARTS));
    }
    let mut parts = Vec::with_capacity(key.parts.len());
    for part in &key.parts {
        let KeyTarget::Column { name, prefix } = &part.target else {
            return Err(SqlError::not_supported_yet("functional key parts"));
        };
        let column = columns
            .iter()
            .position(|column| same_name(&column.name, name))
            .ok_or_else(|| SqlError::key_column_does_not_exist(name))?;
        if parts.iter().any(|part: &IndexPart| part.column == column) {
            return Err(SqlError::dup_fieldname(name));
        }
        parts.push(IndexPart { column, prefix: *prefix, descending: part.descending });
    }
    let mut index = blank(kind, parts);
    if kind != IndexKind::Primary
        && let Some(name) = key.name.as_ref().or(key.constraint.as_ref())
    {
        if name.is("primary") || name.is_empty() {
            return Err(SqlError::wrong_name_for_index(name));
        }
        if name.chars().count() > 64 {
            return Err(SqlError::too_long_ident(name));
        }
        index.name = Arc::from(name.as_str());
    }
    index.invisible = key.invisible;
    index.of_foreign_key = key.of_foreign_key;
    index.comment = Arc::from(&*String::from_utf8_lossy(key.comment.as_deref().unwrap_or_default()));
    Ok(index)
}

/// Fails in MySQL's dialect if the primary key, or the first unique key that is never NULL where there is none, is not seen.
///
/// # Errors
/// 3522.
pub(super) fn check_visible(columns: &[Column], indexes: &[Index], mariadb: bool) -> SqlResult<()> {
    let never_null = |index: &&Index| {
        index.unique()
            && !index.parts.is_empty()
            && index.parts.iter().all(|part| !columns[part.column].nullable)
    };
    let primary = indexes.iter().find(|index| index.kind == IndexKind::Primary && !index.parts.is_empty());
    match primary.or_else(|| indexes.iter().find(never_null)) {
        Some(index) if index.invisible && !mariadb => {
            Err(SqlError::new(3522, b"HY000", "A primary key index cannot be invisible"))
        }
        _ => Ok(()),
    }
}

/// The index that a foreign key has unless another one will do.
fn foreign_key_index(key: &ast::ForeignKey, table: &str, columns: &[Column]) -> SqlResult<Index> {
    let given = key.constraint.clone().filter(|name| super::foreign_keys::generated(name, table).is_none());
    let part = |name: &ast::Ident| ast::KeyPart {
        target: KeyTarget::Column { name: name.clone(), prefix: None },
        descending: false,
    };
    let index = ast::IndexDef {
        kind: ast::IndexKind::Index,
        if_not_exists: false,
        constraint: None,
        name: given.or_else(|| key.name.clone()),
        parts: key.columns.iter().map(part).collect(),
        algorithm: None,
        comment: None,
        invisible: false,
        key_block_size: None,
        parser: None,
        of_foreign_key: true,
    };
    build_index(&index, columns)
}

/// Whether an index begins with another's columns.
fn covers(index: &Index, wanted: &Index) -> bool {
    let same = |(a, b): (&IndexPart, &IndexPart)| a.column == b.column && a.prefix.is_none();
    index.parts.len() >= wanted.parts.len() && index.parts.iter().zip(&wanted.parts).all(same)
}

fn make_primary_not_null(tree: &CreateTable, indexes: &[Index], columns: &mut [Column]) -> SqlResult<()> {
    for index in indexes.iter().filter(|index| index.kind == IndexKind::Primary) {
        for part in &index.parts {
            if tree.columns[part.column].nullable == Some(true) {
                return Err(SqlError::primary_cant_have_null());
            }
            columns[part.column].nullable = false;
        }
    }
    Ok(())
}

fn check_parts(index: &mut Index, columns: &[Column]) -> SqlResult<()> {
    let mut total = 0;
    for part in &mut index.parts {
        let column = &columns[part.column];
        if column.ty.kind == ColumnKind::Json {
            let message = format!(
                "JSON column '{}' supports indexing only via generated columns on a specified JSON path.",
                column.name
            );
            return Err(SqlError::new(3152, b"42000", message));
        }
        match part.prefix {
            Some(0) => {
                return Err(SqlError::new(
                    1391,
                    b"HY000",
                    format!("Key part '{}' length cannot be 0", column.name),
                ));
            }
            // The whole of a number or time is no prefix.
            Some(length) if own_bytes(&column.ty) == Some(length) => part.prefix = None,
            // A text of no characters has nothing to look for.
            None if column.is_string() && !column.is_blob() && column.ty.length == 0 => {
                let message = format!("The used storage engine can't index column '{}'", column.name);
                return Err(SqlError::new(1167, b"42000", message));
            }
            Some(_) if !column.is_string() => return Err(SqlError::wrong_sub_key()),
            Some(length) if is_tiny(column) && length * charset::max_len(column.ty.collation) > 255 => {
                return Err(SqlError::too_long_key(255));
            }
            Some(length) if !column.is_blob() && length > column.ty.length => {
                return Err(SqlError::wrong_sub_key());
            }
            Some(length) if !column.is_blob() && length == column.ty.length => part.prefix = None,
            None if column.is_blob() => {
                let message = format!(
                    "BLOB/TEXT column '{}' used in key specification without a key length",
                    column.name
                );
                return Err(SqlError::new(1170, b"42000", message));
            }
            _ => {}
        }
        let bytes = match part.prefix {
            Some(length) => length.saturating_mul(charset::max_len(column.ty.collation)),
            // The bytes that say how long it is are no part of a key.
            None => match column.ty.kind {
                ColumnKind::VarChar | ColumnKind::VarBinary => stored_len(&column.ty) - 2,
                _ => stored_len(&column.ty),
            },
        };
        if bytes > MAX_KEY_BYTES {
            return Err(SqlError::too_long_key(MAX_KEY_BYTES));
        }
        total += bytes;
    }
    if total > MAX_KEY_BYTES { Err(SqlError::too_long_key(MAX_KEY_BYTES)) } else { Ok(()) }
}

/// Unnamed keys are called after their first column, `_2` and so on if that is taken.
fn name_indexes(indexes: &mut [Index], columns: &[Column]) -> SqlResult<()> {
    for at in 0..indexes.len() {
        if indexes[at].kind == IndexKind::Primary {
            indexes[at].name = Arc::from("PRIMARY");
            continue;
        }
        let given = indexes[at].name.clone();
        if !given.is_empty() {
            if indexes[..at].iter().any(|other| same_name(&other.name, &given)) {
                return Err(SqlError::dup_keyname(&given));
            }
            continue;
        }
        let base = columns[indexes[at].parts[0].column].name.clone();
        // A name that a later key has by the statement is not seen yet: that key is refused then, as in MySQL.
        let taken = |name: &str| indexes[..at].iter().any(|other| same_name(&other.name, name));
        let name = match taken(&base) || same_name(&base, "PRIMARY") {
            false => base,
            true => (2..).map(|n| format!("{base}_{n}")).find(|name| !taken(name)).map_or(base, Arc::from),
        };
        indexes[at].name = name;
    }
    Ok(())
}

fn has_null(index: &Index, columns: &[Column]) -> bool {
    index.parts.iter().any(|part| columns[part.column].nullable)
}

/// Whether a key has columns that are not stored: it stands behind others of its rank, as MySQL sorts them.
fn has_computed(index: &Index, columns: &[Column]) -> bool {
    index.parts.iter().any(|part| columns[part.column].generated.as_ref().is_some_and(|made| !made.stored))
}

fn rank(index: &Index, columns: &[Column]) -> u8 {
    match index.kind {
        IndexKind::Primary => 0,
        IndexKind::Unique if !has_null(index, columns) => 1,
        IndexKind::Unique => 2,
        IndexKind::Plain => 3,
    }
}

/// The primary key, else the first UNIQUE key of whole NOT NULL columns, else a hidden row id.
fn cluster(indexes: &mut Vec<Index>, columns: &[Column]) {
    let chosen = indexes.iter().position(|index| {
        rank(index, columns) == 0
            || rank(index, columns) == 1 && index.parts.iter().all(|part| part.prefix.is_none())
    });
    match chosen {
        Some(at) => {
            // A UNIQUE key with prefix parts may stand before it.
            let mut index = indexes.remove(at);
            index.clustered = true;
            indexes.insert(0, index);
        }
        None => {
            let mut hidden = blank(IndexKind::Unique, Vec::new());
            hidden.clustered = true;
            hidden.invisible = true;
            indexes.insert(0, hidden);
        }
    }
}

/// The most bytes a value takes in a row, blobs counting as pointers.
pub(crate) fn stored_len(ty: &ColumnType) -> u32 {
    use ColumnKind as K;
    match ty.kind {
        K::TinyInt | K::Year => 1,
        K::SmallInt | K::Enum => 2,
        K::MediumInt | K::Date => 3,
        K::Int | K::Float => 4,
        K::BigInt | K::Double | K::Set | K::Bit => 8,
        K::Decimal => ty.length / 2 + 2,
        K::Time => 6,
        K::Timestamp => 7,
        K::DateTime => 8,
        K::Char => ty.length * charset::max_len(ty.collation),
        K::VarChar => ty.length * charset::max_len(ty.collation) + 2,
        K::Binary => ty.length,
        K::VarBinary => ty.length + 2,
        _ => 12,
    }
}

fn is_tiny(column: &Column) -> bool {
    matches!(column.ty.kind, ColumnKind::TinyText | ColumnKind::TinyBlob)
}

/// Bytes of a number or time in MySQL's rows.
fn own_bytes(ty: &ColumnType) -> Option<u32> {
    use ColumnKind as K;
    let fraction = u32::from(ty.decimals.min(6)).div_ceil(2);
    Some(match ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt => ty.kind.integer_bytes() as u32,
        K::Year => 1,
        K::Date => 3,
        K::Time => 3 + fraction,
        K::Timestamp => 4 + fraction,
        K::DateTime => 5 + fraction,
        K::Float => 4,
        K::Double => 8,
        K::Decimal => omnibus_value::decimal::binlog_size(ty.length.min(65) as u8, ty.decimals) as u32,
        K::Bit => ty.length.div_ceil(8),
        _ => return None,
    })
}

/// Warns of each index that is new in a definition and another one's double.
pub(super) fn warn_of_duplicates(state: &mut SessionState, def: &TableDef, old: Option<&TableDef>) {
    let is_new = |index: &Index| {
        old.is_none_or(|old| !old.indexes.iter().any(|known| same_name(&known.name, &index.name)))
    };
    let alike = |a: &Index, b: &Index| {
        let pairs = || a.parts.iter().zip(&b.parts);
        a.kind == b.kind
            && a.parts.len() == b.parts.len()
            && pairs().all(|(a, b)| (a.column, a.prefix, a.descending) == (b.column, b.prefix, b.descending))
    };
    for (at, index) in def.indexes.iter().enumerate() {
        let others = def.indexes.iter().enumerate();
        let mut before = others.filter(|(other, index)| *other < at || !is_new(index));
        if is_new(index) && before.any(|(other, double)| other != at && alike(double, index)) {
            let message = format!(
                "Duplicate index '{}' defined on the table '{}.{}'. This is deprecated and will be disallowed in a future release.",
                index.name, def.db, def.name
            );
            state.diagnostics.warn(SqlError::new(1831, b"HY000", message));
        }
    }
}
