//! Columns of tables, and the expressions that read, write and sum them up without loss.
//!
//! Text is read in the bytes of its own character set and written as bytes, so that no conversion touches it. Numbers that
//! a server would show rounded (FLOAT) are read as the doubles that they are; members of ENUM and SET, and bits, are
//! numbers on the way.

use crate::bounds::{KeyColumn, KeyKind};
use crate::error::ImportError;
use crate::quote;
use crate::selection::TableName;
use crate::session::Session;
use std::collections::BTreeMap;

/// The form in which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Digits as they come.
    Number,
    /// Between quotes: dates, doubles, documents.
    Quoted,
    /// Between quotes, as bytes.
    Bytes,
}

/// The character sets that the target has. Text of others becomes UTF-8 there, where it is taken at all.
const KNOWN: [&str; 6] = ["utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "binary"];

/// A column that is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    /// The type's name in lower case, such as `varchar`.
    pub kind: String,
    pub charset: String,
    pub nullable: bool,
    /// It is computed, so that it is compared and not copied.
    pub generated: bool,
}

/// A table's columns, key and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub name: TableName,
    pub columns: Vec<Column>,
    /// The columns of the primary key; empty if there is none that ranges can be made of.
    pub key: Vec<KeyColumn>,
    /// It has a primary key of any kind.
    pub has_key: bool,
    /// The source's estimates.
    pub rows: u64,
    pub bytes: u64,
    /// Some of its rows were copied before, as of another moment.
    pub resumed: bool,
}

impl Column {
    fn is_inexact(&self) -> bool {
        matches!(&*self.kind, "float" | "double")
    }

    /// Its name, or what converts it where the target does not have its character set.
    fn text(&self) -> String {
        let name = quote::name(&self.name);
        if self.is_text() && !KNOWN.contains(&&*self.charset) {
            format!("CONVERT({name} USING utf8mb4)")
        } else {
            name
        }
    }

    fn is_text(&self) -> bool {
        !self.charset.is_empty() && !matches!(&*self.kind, "enum" | "set" | "json")
    }

    /// The form in which values of this column are written.
    pub(crate) fn form(&self) -> Form {
        match &*self.kind {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "bit" | "enum" | "set"
            | "year" => Form::Number,
            "float" | "double" | "date" | "time" | "datetime" | "timestamp" | "json" | "uuid" | "inet4"
            | "inet6" => Form::Quoted,
            _ => Form::Bytes,
        }
    }

    /// The expression that reads it.
    fn read(&self) -> String {
        let name = quote::name(&self.name);
        match &*self.kind {
            "float" => format!("{name} * 1e0"),
            "bit" | "enum" | "set" => format!("CAST({name} AS UNSIGNED)"),
            _ => self.text(),
        }
    }

    /// The expression that stands for it in a sum: a number or a short text.
    fn sum(&self) -> String {
        let name = quote::name(&self.name);
        match &*self.kind {
            "bit" | "enum" | "set" => format!("CAST({name} AS UNSIGNED)"),
            "uuid" | "inet4" | "inet6" => format!("CAST({name} AS CHAR)"),
            _ if self.form() == Form::Bytes || self.kind == "json" => {
                format!("CRC32({})", self.text())
            }
            _ => name,
        }
    }

    fn key(&self) -> Option<KeyColumn> {
        let kind = match &*self.kind {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => KeyKind::Number,
            "date" | "time" | "datetime" | "timestamp" => KeyKind::Quoted,
            "binary" | "varbinary" => KeyKind::Bytes,
            "char" | "varchar" if self.is_text() && KNOWN.contains(&&*self.charset) => {
                KeyKind::Text(self.charset.clone())
            }
            // Compared otherwise than they are ordered, or inexact.
            _ => return None,
        };
        Some(KeyColumn { name: self.name.clone(), kind })
    }
}

impl Table {
    /// The columns that are copied.
    pub(crate) fn copied(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.generated)
    }

    /// The list of expressions that reads the copied columns.
    pub(crate) fn select(&self) -> String {
        self.copied().map(Column::read).collect::<Vec<_>>().join(", ")
    }

    /// The beginning of a statement that writes rows.
    pub(crate) fn insert(&self) -> String {
        let names: Vec<String> = self.copied().map(|column| quote::name(&column.name)).collect();
        // An old row may have a unique value that belongs to another one by now. Its own range is compared, too.
        let verb = if self.resumed { "REPLACE" } else { "INSERT" };
        format!("{verb} INTO {} ({}) VALUES ", self.name.quoted(), names.join(", "))
    }

    /// The list of the key's columns, empty without a key.
    pub(crate) fn key_list(&self) -> String {
        self.key.iter().map(|column| quote::name(&column.name)).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether both servers order its keys alike beyond doubt, so that a range of keys is the same rows on both.
    pub(crate) fn is_ordered_alike(&self) -> bool {
        !self.key.is_empty() && !self.key.iter().any(|column| matches!(column.kind, KeyKind::Text(_)))
    }

    /// The hint that makes a source go along the primary key.
    pub(crate) fn by_key(&self) -> &'static str {
        if self.key.is_empty() { "" } else { " FORCE INDEX (PRIMARY)" }
    }

    /// The expressions that read the inexact numbers, which are compared by the command itself: as parts of a text servers
    /// write them in different forms, as results all write them alike.
    pub(crate) fn inexact(&self) -> Vec<String> {
        self.columns.iter().filter(|column| column.is_inexact()).map(Column::read).collect()
    }

    /// The expression that is equal for rows that are equal but for inexact numbers, and different for different ones but for
    /// one in four billion.
    pub(crate) fn row_sum(&self) -> String {
        let exact = self.columns.iter().filter(|column| !column.is_inexact());
        let mut parts: Vec<String> = exact.map(Column::sum).collect();
        let nulls: Vec<String> = self
            .columns
            .iter()
            .filter(|column| column.nullable)
            .map(|column| format!("ISNULL({})", quote::name(&column.name)))
            .collect();
        if !nulls.is_empty() {
            parts.push(format!("CONCAT({})", nulls.join(", ")));
        }
        if parts.is_empty() {
            return "0".into();
        }
        format!("CRC32(CONCAT_WS('#', {}))", parts.join(", "))
    }
}

/// Reads what a source says of all tables of a database.
pub(crate) fn describe(session: &mut Session, database: &str) -> Result<Vec<Table>, ImportError> {
    let of = quote::text(database);
    let mut columns: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for row in session.texts(&format!(
        "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, IS_NULLABLE, EXTRA FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = {of} ORDER BY TABLE_NAME, ORDINAL_POSITION"
    ))? {
        let [table, name, kind, charset, nullable, extra] = take(row);
        let extra = extra.to_ascii_uppercase();
        let column = Column {
            name,
            kind: kind.to_ascii_lowercase(),
            charset,
            nullable: nullable == "YES",
            generated: extra.contains("VIRTUAL GENERATED") || extra.contains("STORED GENERATED"),
        };
        columns.entry(table).or_default().push(column);
    }
    let mut keys: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    for row in session.texts(&format!(
        "SELECT TABLE_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = {of} AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_NAME, SEQ_IN_INDEX"
    ))? {
        let [table, name, part] = take(row);
        keys.entry(table).or_default().push((name, part.is_empty()));
    }
    let mut tables = Vec::new();
    for row in session.texts(&format!(
        "SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = {of} AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME"
    ))? {
        let [table, rows, bytes] = take(row);
        let columns = columns.remove(&table).unwrap_or_default();
        let parts = keys.remove(&table).unwrap_or_default();
        let part = |(name, whole): &(String, bool)| {
            columns.iter().find(|column| column.name == *name).filter(|_| *whole)?.key()
        };
        let key = parts.iter().map(part).collect::<Option<Vec<_>>>().unwrap_or_default();
        tables.push(Table {
            name: TableName { database: database.to_owned(), table },
            has_key: !parts.is_empty(),
            key,
            columns,
            rows: rows.parse().unwrap_or(0),
            bytes: bytes.parse().unwrap_or(0),
            resumed: false,
        });
    }
    Ok(tables)
}

/// The first values of a row.
pub(crate) fn take<const N: usize>(row: Vec<String>) -> [String; N] {
    let mut values = row.into_iter();
    std::array::from_fn(|_| values.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, charset: &str, nullable: bool, generated: bool) -> Column {
        Column { name: name.into(), kind: kind.into(), charset: charset.into(), nullable, generated }
    }

    #[test]
    fn columns_are_read_written_and_summed_without_loss() {
        let columns = vec![
            column("id", "bigint", "", false, false),
            column("f", "float", "", true, false),
            column("s", "varchar", "latin1", true, false),
            column("e", "enum", "utf8mb4", false, false),
            column("j", "json", "", true, false),
            column("g", "int", "", true, true),
        ];
        let key = vec![columns[0].key().unwrap_or(KeyColumn { name: String::new(), kind: KeyKind::Bytes })];
        let name = TableName { database: "d".into(), table: "t".into() };
        let table = Table { name, key, columns, has_key: true, rows: 0, bytes: 0, resumed: false };
        assert_eq!(table.select(), "`id`, `f` * 1e0, `s`, CAST(`e` AS UNSIGNED), `j`");
        assert_eq!(table.insert(), "INSERT INTO `d`.`t` (`id`, `f`, `s`, `e`, `j`) VALUES ");
        assert_eq!(
            table.row_sum(),
            "CRC32(CONCAT_WS('#', `id`, CRC32(`s`), CAST(`e` AS UNSIGNED), CRC32(`j`), `g`, \
             CONCAT(ISNULL(`f`), ISNULL(`s`), ISNULL(`j`), ISNULL(`g`))))"
        );
        assert_eq!(table.inexact(), ["`f` * 1e0"]);
        let forms: Vec<Form> = table.columns.iter().map(Column::form).collect();
        assert_eq!(
            forms,
            [Form::Number, Form::Quoted, Form::Bytes, Form::Number, Form::Quoted, Form::Number]
        );
        assert_eq!((table.key_list(), table.by_key()), ("`id`".into(), " FORCE INDEX (PRIMARY)"));
    }

    #[test]
    fn text_of_other_character_sets_is_converted() {
        let text = column("s", "text", "gbk", true, false);
        assert_eq!(text.read(), "CONVERT(`s` USING utf8mb4)");
        assert_eq!(text.sum(), "CRC32(CONVERT(`s` USING utf8mb4))");
    }

    #[test]
    fn keys_that_ranges_cannot_be_made_of_are_none() {
        assert!(column("e", "enum", "utf8mb4", false, false).key().is_none());
        assert!(column("s", "varchar", "gbk", false, false).key().is_none());
        assert!(column("f", "double", "", false, false).key().is_none());
        let text = column("s", "char", "latin1", false, false).key();
        assert_eq!(text.map(|k| k.kind), Some(KeyKind::Text("latin1".into())));
    }
}
