//! COLUMNS: stored tables and the computed ones themselves.

use super::computed::{Def, Reader, Ty, all, column_type, expression_text, text, yes_no};
use crate::api::SessionSettings;
use crate::bind::Outline;
use crate::catalog::type_text;
use crate::catalog::{Column, ColumnDefault, Table, View, charset};
use crate::error::ExecResult;
use crate::expr::types::{Family, family};
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) const DEFS: &[Def] = &[Def {
    schema: "information_schema",
    name: "COLUMNS",
    columns: &[
        ("TABLE_CATALOG", Ty::Text(64)),
        ("TABLE_SCHEMA", Ty::Name),
        ("TABLE_NAME", Ty::Name),
        ("COLUMN_NAME", Ty::Text(64)),
        ("ORDINAL_POSITION", Ty::UInt),
        ("COLUMN_DEFAULT", Ty::Long),
        ("IS_NULLABLE", Ty::Text(3)),
        ("DATA_TYPE", Ty::Long),
        ("CHARACTER_MAXIMUM_LENGTH", Ty::Int),
        ("CHARACTER_OCTET_LENGTH", Ty::Int),
        ("NUMERIC_PRECISION", Ty::UInt),
        ("NUMERIC_SCALE", Ty::UInt),
        ("DATETIME_PRECISION", Ty::UInt),
        ("CHARACTER_SET_NAME", Ty::Text(64)),
        ("COLLATION_NAME", Ty::Text(64)),
        ("COLUMN_TYPE", Ty::Long),
        ("COLUMN_KEY", Ty::Text(3)),
        ("EXTRA", Ty::Text(256)),
        ("PRIVILEGES", Ty::Text(154)),
        ("COLUMN_COMMENT", Ty::Text(1024)),
        ("GENERATION_EXPRESSION", Ty::Long),
        ("SRS_ID", Ty::UInt),
    ],
    rows: columns,
}];

/// The rows of one table's columns.
type Described = Vec<Vec<Value>>;

/// The columns of the computed tables, which never change.
static COMPUTED: LazyLock<HashMap<(&str, &str), Described>> =
    LazyLock::new(|| all().map(|def| ((def.schema, def.name), computed_columns(def))).collect());

fn computed_columns(def: &'static Def) -> Described {
    let columns = def.columns.iter().enumerate();
    columns
        .map(|(at, (name, ty))| {
            let place = [text("def"), text(def.schema), text(def.name), text(name)];
            let facts = Facts {
                default: Value::Null,
                nullable: true,
                key: "",
                extra: String::new(),
                comment: "",
                generation: Cow::Borrowed(""),
            };
            row(place, at, &column_type(*ty), facts)
        })
        .collect()
}

fn columns(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let (mariadb, zone) = (reader.cx.session.settings.mariadb, reader.cx.session.settings.zone);
    for def in reader.computed() {
        rows.extend(COMPUTED.get(&(def.schema, def.name)).into_iter().flatten().cloned());
    }
    let computed = rows.len();
    rows.append(&mut reader.of_tables(|_, table, rows| {
        for (at, column) in table.columns().iter().enumerate().filter(|(_, column)| !column.is_hidden()) {
            let place = [text("def"), text(&table.def.db), text(&table.def.name), text(&column.name)];
            let facts = Facts {
                default: default_value(column, mariadb, zone),
                nullable: column.nullable,
                key: key_of(table, at),
                extra: extra(column),
                comment: &column.comment,
                generation: column
                    .generated
                    .as_ref()
                    .map_or(Cow::Borrowed(""), |generated| expression_text(&generated.expr, mariadb)),
            };
            rows.push(row(place, at, &column.ty, facts));
        }
    })?);
    for (view, outline) in reader.views()? {
        let from = rows.len();
        match outline {
            Ok(outline) => rows.extend(of_view(&view, &outline, &reader.cx.session.settings)),
            Err(error) => reader.cx.warn(error),
        }
        reader.made(&rows[from..])?;
    }
    // The catalog has tables and views apart. The sort keeps the order of columns.
    rows[computed..].sort_by(|a, b| match (&a[1], &a[2], &b[1], &b[2]) {
        (Value::Bytes(a), Value::Bytes(t), Value::Bytes(b), Value::Bytes(u)) => (a, t).cmp(&(b, u)),
        _ => std::cmp::Ordering::Equal,
    });
    // Who has rights on some columns knows of those.
    let mut at = 0;
    rows.retain_mut(|row| {
        at += 1;
        at <= computed || own_rights(reader, row)
    });
    Ok(rows)
}

/// Puts in what the account may do with a column; whether that is anything.
fn own_rights(reader: &Reader<'_, '_>, row: &mut [Value]) -> bool {
    let name = |at: usize| match &row[at] {
        Value::Bytes(name) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    };
    let rights = reader.cx.session.connection.host.column_rights(&name(1), &name(2), &name(3));
    let seen = !rights.is_empty();
    row[PRIVILEGES] = text(&rights);
    seen
}

fn of_view(view: &View, outline: &Outline, settings: &SessionSettings) -> Vec<Vec<Value>> {
    let mut rows = Vec::with_capacity(outline.columns.len());
    for (at, column) in outline.columns.iter().enumerate() {
        let place = [text("def"), text(&view.def.db), text(&view.def.name), text(&column.name)];
        let default = match &column.base {
            Some((table, at)) => default_value(&table.columns()[*at], settings.mariadb, settings.zone),
            None if column.nullable => Value::Null,
            None => match family(column.ty.kind) {
                Family::Integer | Family::Decimal | Family::Real => text("0"),
                Family::String => text(""),
                _ => Value::Null,
            },
        };
        let facts = Facts {
            default,
            nullable: column.nullable,
            key: "",
            extra: String::new(),
            comment: "",
            generation: Cow::Borrowed(""),
        };
        rows.push(row(place, at, &column.ty, facts));
    }
    rows
}

struct Facts<'a> {
    default: Value,
    nullable: bool,
    key: &'static str,
    extra: String,
    comment: &'a str,
    generation: Cow<'a, str>,
}

/// Where a row has the privileges.
const PRIVILEGES: usize = 18;

fn row(place: [Value; 4], at: usize, ty: &ColumnType, facts: Facts<'_>) -> Vec<Value> {
    let mut row = Vec::with_capacity(22);
    row.extend(place);
    row.extend([Value::UInt(at as u64 + 1), facts.default, yes_no(facts.nullable)]);
    row.extend(type_facts(ty));
    row.extend([
        text(facts.key),
        text(facts.extra),
        text("select,insert,update,references"),
        text(facts.comment),
        text(&*facts.generation),
        Value::Null,
    ]);
    row
}

/// DATA_TYPE, the lengths, the precisions, character set and collation, and the whole type.
pub(super) fn type_facts(ty: &ColumnType) -> [Value; 9] {
    let full = type_text(ty);
    let base = full.split(['(', ' ']).next().unwrap_or_default();
    let (characters, octets) = lengths(ty);
    let (precision, scale) = numeric(ty);
    let named = charset::is_character(ty);
    let fraction = match ty.kind {
        ColumnKind::Time | ColumnKind::DateTime | ColumnKind::Timestamp => {
            Value::UInt(u64::from(ty.decimals))
        }
        _ => Value::Null,
    };
    [
        text(base),
        characters.map_or(Value::Null, Value::Int),
        octets.map_or(Value::Null, Value::Int),
        precision.map_or(Value::Null, Value::UInt),
        scale.map_or(Value::Null, Value::UInt),
        fraction,
        if named { text(charset::charset_name(ty.collation)) } else { Value::Null },
        if named { text(charset::collation_name(ty.collation)) } else { Value::Null },
        text(&full),
    ]
}

/// CHARACTER_MAXIMUM_LENGTH and CHARACTER_OCTET_LENGTH.
fn lengths(ty: &ColumnType) -> (Option<i64>, Option<i64>) {
    use ColumnKind as K;
    let max_len = i64::from(charset::max_len(ty.collation));
    let bytes = |n: i64| (Some(n), Some(n));
    match ty.kind {
        K::Char | K::VarChar => (Some(i64::from(ty.length)), Some(i64::from(ty.length) * max_len)),
        K::Binary | K::VarBinary => bytes(i64::from(ty.length)),
        K::TinyBlob => bytes(255),
        K::Blob => bytes(65_535),
        K::MediumBlob => bytes(16_777_215),
        K::LongBlob => bytes(4_294_967_295),
        // As MySQL says it: bytes in both, whatever the character set.
        K::TinyText => bytes(255),
        K::Text => bytes(65_535),
        K::MediumText => bytes(16_777_215),
        K::LongText => bytes(4_294_967_295),
        K::Enum => {
            let longest = ty.labels.iter().map(|label| characters(label, ty.collation)).max().unwrap_or(0);
            (Some(longest), Some(longest * max_len))
        }
        K::Set => {
            let labels: i64 = ty.labels.iter().map(|label| characters(label, ty.collation)).sum();
            let all = labels + (ty.labels.len() as i64 - 1).max(0);
            (Some(all), Some(all * max_len))
        }
        _ => (None, None),
    }
}

fn characters(label: &bytes::Bytes, collation: u16) -> i64 {
    charset::to_utf8(label, collation).chars().count() as i64
}

/// NUMERIC_PRECISION and NUMERIC_SCALE.
fn numeric(ty: &ColumnType) -> (Option<u64>, Option<u64>) {
    use ColumnKind as K;
    let fixed = ty.decimals < 31;
    match ty.kind {
        K::TinyInt => (Some(3), Some(0)),
        K::SmallInt => (Some(5), Some(0)),
        K::MediumInt => (Some(7), Some(0)),
        K::Int => (Some(10), Some(0)),
        K::BigInt => (Some(if ty.unsigned { 20 } else { 19 }), Some(0)),
        K::Decimal => (Some(u64::from(ty.length)), Some(u64::from(ty.decimals))),
        K::Float | K::Double if fixed => (Some(u64::from(ty.length)), Some(u64::from(ty.decimals))),
        K::Float => (Some(12), None),
        K::Double => (Some(22), None),
        K::Bit => (Some(u64::from(ty.length)), None),
        _ => (None, None),
    }
}

fn default_value(column: &Column, mariadb: bool, zone: Zone) -> Value {
    let digits = column.ty.decimals;
    match &column.default {
        ColumnDefault::None | ColumnDefault::Value(Value::Null) => Value::Null,
        ColumnDefault::CurrentTimestamp if digits == 0 => text("CURRENT_TIMESTAMP"),
        ColumnDefault::CurrentTimestamp => text(format!("CURRENT_TIMESTAMP({digits})")),
        ColumnDefault::Expression(expr) => text(&*expression_text(expr, mariadb)),
        ColumnDefault::Value(Value::Bit(bits)) => text(format!("b'{bits:b}'")),
        ColumnDefault::Value(Value::Bytes(bytes))
            if matches!(column.ty.kind, ColumnKind::Binary | ColumnKind::VarBinary) =>
        {
            // MySQL takes the bytes for a text that ends at the first zero.
            let shown = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            let hex: String = shown.iter().map(|byte| format!("{byte:02X}")).collect();
            text(if hex.is_empty() { hex } else { format!("0x{hex}") })
        }
        ColumnDefault::Value(Value::DateTime(at)) if column.ty.kind == ColumnKind::Timestamp => {
            let local = at.utc_to_local(zone).unwrap_or(*at);
            text(charset::text(&Value::DateTime(local), &column.ty))
        }
        ColumnDefault::Value(value) => text(charset::text(value, &column.ty)),
    }
}

/// PRI, UNI, MUL or nothing.
fn key_of(table: &Table, column: usize) -> &'static str {
    let clustered = table.indexes().first().filter(|_| !table.def.hidden_key);
    // A unique key that stands in for the primary key shows as one.
    if clustered.is_some_and(|index| index.parts.iter().any(|part| part.column == column)) {
        return "PRI";
    }
    let leads =
        table.indexes().iter().filter(|index| index.parts.first().is_some_and(|part| part.column == column));
    let mut found = "";
    for index in leads {
        if index.unique() && index.parts.len() == 1 {
            return "UNI";
        }
        found = "MUL";
    }
    found
}

fn extra(column: &Column) -> String {
    let mut words: Vec<String> = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".into());
    }
    if matches!(column.default, ColumnDefault::CurrentTimestamp | ColumnDefault::Expression(_)) {
        words.push("DEFAULT_GENERATED".into());
    }
    if let Some(generated) = &column.generated {
        words.push(if generated.stored { "STORED GENERATED" } else { "VIRTUAL GENERATED" }.into());
    }
    if column.on_update_now {
        let digits = column.ty.decimals;
        words.push("on update".into());
        words.push(if digits == 0 {
            "CURRENT_TIMESTAMP".into()
        } else {
            format!("CURRENT_TIMESTAMP({digits})")
        });
    }
    if column.invisible {
        words.push("INVISIBLE".into());
    }
    words.join(" ")
}
