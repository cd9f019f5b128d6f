//! SHOW CREATE TABLE: a definition as MySQL writes it. Also the form in which definitions are
//! persisted, so everything that matters must be in it and must parse back to the same definition.

use super::codec::text;
use super::{
    Check, Column, ColumnDefault, ForeignKey, Index, IndexKind, NOT_FIXED, ReferenceAction, TableDef, charset,
};
use super::{quote_ident, quote_string};
use omnibus_parser::OWN_VERSION;
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::fmt::Write as _;

/// The readers of a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// This server: hidden columns are there.
    Itself,
    /// This server, as if a user had written it.
    Statement,
    /// A user in MariaDB's dialect: what is the table's is left out.
    MariadbUser,
    /// A user in MySQL's: collations that are their character set's own are left out, others stand on each column.
    MysqlUser,
    /// The same with `sql_mode=ANSI`: the options of the table are left out, so that its columns say its collation.
    AnsiUser,
}

impl Reader {
    fn is_mysql_user(self) -> bool {
        matches!(self, Reader::MysqlUser | Reader::AnsiUser)
    }
}

/// The statement as a user could write it: keys over expressions have these, and the columns for them are not shown.
#[must_use]
pub fn show_table(def: &TableDef, auto_increment: u64, zone: Zone) -> String {
    create_text(def, auto_increment, zone, Reader::Statement)
}

/// The whole statement, hidden columns included. `auto_increment` above 1 is shown. A TIMESTAMP's default is a time in `zone`.
#[must_use]
pub fn show_create_table(def: &TableDef, auto_increment: u64, zone: Zone) -> String {
    create_text(def, auto_increment, zone, Reader::Itself)
}

/// The statement for a reader.
#[must_use]
pub fn create_text(def: &TableDef, auto_increment: u64, zone: Zone, reader: Reader) -> String {
    let hidden = reader == Reader::Itself;
    let mut out = format!("CREATE TABLE {} (\n", quote_ident(&def.name));
    let shown = def.columns.iter().filter(|column| hidden || !column.is_hidden());
    let mut lines: Vec<String> =
        shown.map(|column| column_line(column, def.collation, zone, reader)).collect();
    lines.extend(
        def.indexes
            .iter()
            .filter(|index| !index.parts.is_empty())
            .map(|index| index_line(index, def, hidden)),
    );
    lines.extend(def.foreign_keys.iter().map(|key| foreign_key_text(key, def)));
    lines.extend(def.checks.iter().map(check_line));
    for (at, line) in lines.iter().enumerate() {
        let comma = if at + 1 < lines.len() { "," } else { "" };
        let _ = writeln!(out, "  {line}{comma}");
    }
    out.push(')');
    if reader != Reader::AnsiUser {
        out.push_str(&options_text(def, auto_increment, reader));
    }
    out
}

/// The options of the table, with a space in front.
fn options_text(def: &TableDef, auto_increment: u64, reader: Reader) -> String {
    let mut out = engine_text(&def.engine);
    if auto_increment > 1 {
        let _ = write!(out, " AUTO_INCREMENT={auto_increment}");
    }
    let charset = charset::charset_name(def.collation);
    let _ = write!(out, " DEFAULT CHARSET={charset}");
    // Which of utf8mb4's is its own differs between servers.
    if reader != Reader::MysqlUser || charset == "utf8mb4" || !is_own(def.collation, reader) {
        let _ = write!(out, " COLLATE={}", charset::collation_name(def.collation));
    }
    for option in &def.options {
        let _ = write!(out, " {option}");
    }
    if !def.comment.is_empty() {
        let _ = write!(out, " COMMENT={}", quote_string(&def.comment));
    }
    out
}

/// The ENGINE option with a space before it, in a comment that others skip if only servers of this kind have such an engine.
#[must_use]
pub fn engine_text(engine: &str) -> String {
    match super::is_own_engine(engine) {
        true => format!(" /*!{OWN_VERSION} ENGINE={engine} */"),
        false => format!(" ENGINE={engine}"),
    }
}

/// Whether a collation is its character set's own, in MySQL or here; where only the column says it, in MySQL.
fn is_own(id: u16, reader: Reader) -> bool {
    let ours = !charset::is_not_default(id);
    charset::collation_name(id) == "utf8mb4_0900_ai_ci"
        || ours && (reader != Reader::AnsiUser || id != charset::server_default())
}

/// The mark of a collation that a column has from what it was made of.
#[must_use]
pub fn implied() -> String {
    format!(" /*!{OWN_VERSION} OF SOURCE */")
}

fn column_line(column: &Column, table_collation: u16, zone: Zone, reader: Reader) -> String {
    let mut out = format!("{} {}", quote_ident(&column.name), type_text(&column.ty));
    let text = charset::is_character(&column.ty);
    let explicit = column.explicit_collation && reader != Reader::MariadbUser;
    if text && (explicit || column.ty.collation != table_collation) {
        let id = column.ty.collation;
        let charset = charset::charset_name(id);
        let _ = write!(out, " CHARACTER SET {charset}");
        // Which of utf8mb4's is its own differs between servers.
        if explicit || !reader.is_mysql_user() || charset == "utf8mb4" || !is_own(id, reader) {
            let _ = write!(out, " COLLATE {}", charset::collation_name(id));
            if !explicit && matches!(reader, Reader::Itself | Reader::Statement) {
                out.push_str(&implied());
            }
        }
    } else if text && reader.is_mysql_user() && !is_own(table_collation, reader) {
        let _ = write!(out, " COLLATE {}", charset::collation_name(table_collation));
    }
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        let _ = write!(out, " GENERATED ALWAYS AS ({}) {kind}", generated.expr.text);
    }
    let timestamp = column.ty.kind == ColumnKind::Timestamp;
    if !column.nullable {
        out.push_str(" NOT NULL");
    } else if timestamp {
        out.push_str(" NULL");
    }
    if column.auto_increment {
        out.push_str(" AUTO_INCREMENT");
    }
    out.push_str(&defaults_text(column, zone));
    if column.invisible {
        out.push_str(" /*!80023 INVISIBLE */");
    }
    out.push_str(&comment_text(column));
    out
}

/// DEFAULT and ON UPDATE, with a space in front.
pub fn defaults_text(column: &Column, zone: Zone) -> String {
    let mut out = String::new();
    if let Some(default) = default_text(column, zone) {
        let _ = write!(out, " DEFAULT {default}");
    }
    if column.on_update_now {
        let _ = write!(out, " ON UPDATE {}", now_text(column.ty.decimals));
    }
    out
}

/// COMMENT, with a space in front.
pub fn comment_text(column: &Column) -> String {
    if column.comment.is_empty() {
        String::new()
    } else {
        format!(" COMMENT {}", quote_string(&column.comment))
    }
}

fn now_text(digits: u8) -> String {
    if digits == 0 { "CURRENT_TIMESTAMP".into() } else { format!("CURRENT_TIMESTAMP({digits})") }
}

/// The text behind DEFAULT, if the column shows one.
fn default_text(column: &Column, zone: Zone) -> Option<String> {
    match &column.default {
        ColumnDefault::None => None,
        ColumnDefault::CurrentTimestamp => Some(now_text(column.ty.decimals)),
        ColumnDefault::Expression(expr) => Some(format!("({})", expr.text)),
        ColumnDefault::Value(Value::Null) if column.is_blob() && column.ty.kind != ColumnKind::Json => None,
        ColumnDefault::Value(Value::Null) => Some("NULL".into()),
        ColumnDefault::Value(Value::Bit(bits)) => Some(format!("b'{bits:b}'")),
        ColumnDefault::Value(Value::Bytes(bytes))
            if column.ty.collation == 63 && std::str::from_utf8(bytes).is_err() =>
        {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            Some(format!("0x{hex}"))
        }
        ColumnDefault::Value(Value::DateTime(at)) if column.ty.kind == ColumnKind::Timestamp => {
            let local = at.utc_to_local(zone).unwrap_or(*at);
            Some(quote_string(&text(&Value::DateTime(local), &column.ty)))
        }
        ColumnDefault::Value(value) => Some(quote_string(&text(value, &column.ty))),
    }
}

fn index_line(index: &Index, def: &TableDef, hidden: bool) -> String {
    let mut out = match index.kind {
        IndexKind::Primary => "PRIMARY KEY".to_owned(),
        IndexKind::Unique => format!("UNIQUE KEY {}", quote_ident(&index.name)),
        IndexKind::Plain => format!("KEY {}", quote_ident(&index.name)),
    };
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|part| {
            let prefix = part.prefix.map_or(String::new(), |length| format!("({length})"));
            let order = if part.descending { " DESC" } else { "" };
            let column = &def.columns[part.column];
            match &column.generated {
                Some(generated) if !hidden && column.is_hidden() => {
                    format!("({}){order}", generated.expr.text)
                }
                _ => format!("{}{prefix}{order}", quote_ident(&column.name)),
            }
        })
        .collect();
    let _ = write!(out, " ({})", parts.join(","));
    if !index.comment.is_empty() {
        let _ = write!(out, " COMMENT {}", quote_string(&index.comment));
    }
    if index.invisible {
        out.push_str(" /*!80000 INVISIBLE */");
    }
    if hidden && index.of_foreign_key {
        let _ = write!(out, " /*!{OWN_VERSION} OF FOREIGN KEY */");
    }
    out
}

fn check_line(check: &Check) -> String {
    let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
    format!("CONSTRAINT {} CHECK ({}){enforced}", quote_ident(&check.name), check.expr.text)
}

/// A foreign key of a definition, as its line in CREATE TABLE and as errors show it.
#[must_use]
pub fn foreign_key_text(key: &ForeignKey, def: &TableDef) -> String {
    let list = |names: Vec<String>| names.join(", ");
    let own = list(key.columns.iter().map(|&column| quote_ident(&def.columns[column].name)).collect());
    let theirs = list(key.parent_columns.iter().map(|name| quote_ident(name)).collect());
    let mut parent = quote_ident(&key.parent);
    if key.parent_db != def.db {
        parent = format!("{}.{parent}", quote_ident(&key.parent_db));
    }
    let name = quote_ident(&key.name);
    let mut out = format!("CONSTRAINT {name} FOREIGN KEY ({own}) REFERENCES {parent} ({theirs})");
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ReferenceAction::NoAction {
            let _ = write!(out, " ON {event} {}", action.name());
        }
    }
    out
}

/// A column type as SHOW COLUMNS and SHOW CREATE TABLE write it.
#[must_use]
pub fn type_text(ty: &ColumnType) -> String {
    use ColumnKind as K;
    let mut out = match ty.kind {
        K::TinyInt if ty.length == 1 && !ty.unsigned => "tinyint(1)".into(),
        K::TinyInt => integer("tinyint", ty),
        K::SmallInt => integer("smallint", ty),
        K::MediumInt => integer("mediumint", ty),
        K::Int => integer("int", ty),
        K::BigInt => integer("bigint", ty),
        K::Float => floating("float", ty),
        K::Double => floating("double", ty),
        K::Decimal => format!("decimal({},{})", ty.length, ty.decimals),
        K::Bit => format!("bit({})", ty.length),
        K::Year => "year".into(),
        K::Date => "date".into(),
        K::Time => temporal("time", ty),
        K::DateTime => temporal("datetime", ty),
        K::Timestamp => temporal("timestamp", ty),
        K::Char => format!("char({})", ty.length),
        K::VarChar => format!("varchar({})", ty.length),
        K::Binary => format!("binary({})", ty.length),
        K::VarBinary => format!("varbinary({})", ty.length),
        K::TinyText => "tinytext".into(),
        K::Text => "text".into(),
        K::MediumText => "mediumtext".into(),
        K::LongText => "longtext".into(),
        K::TinyBlob => "tinyblob".into(),
        K::Blob => "blob".into(),
        K::MediumBlob => "mediumblob".into(),
        K::LongBlob => "longblob".into(),
        K::Enum => labels("enum", ty),
        K::Set => labels("set", ty),
        K::Json => "json".into(),
        K::Geometry => "geometry".into(),
        K::Uuid => "uuid".into(),
        K::Inet4 => "inet4".into(),
        K::Inet6 => "inet6".into(),
    };
    if ty.unsigned && !matches!(ty.kind, K::Bit | K::Year) {
        out.push_str(" unsigned");
    }
    if ty.zerofill {
        out.push_str(" zerofill");
    }
    out
}

/// Display widths are shown only where they still mean something.
fn integer(name: &str, ty: &ColumnType) -> String {
    if ty.zerofill { format!("{name}({})", ty.length) } else { name.into() }
}

fn floating(name: &str, ty: &ColumnType) -> String {
    if ty.decimals < NOT_FIXED { format!("{name}({},{})", ty.length, ty.decimals) } else { name.into() }
}

fn temporal(name: &str, ty: &ColumnType) -> String {
    if ty.decimals == 0 { name.into() } else { format!("{name}({})", ty.decimals) }
}

fn labels(name: &str, ty: &ColumnType) -> String {
    let labels: Vec<String> =
        ty.labels.iter().map(|label| quote_string(&charset::to_utf8(label, ty.collation))).collect();
    format!("{name}({})", labels.join(","))
}
