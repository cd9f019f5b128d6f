//! JSON_TABLE and JSON_VALUE back to SQL.

use super::{Printer, calls, shown};
use crate::ast::{CastType, JsonColumn, JsonInstead, JsonPlace, JsonTable, JsonValue, JsonValueInstead};
use omnibus_value::literal::{doubled, write_escaped};

pub(super) fn json_table(printer: &mut Printer<'_>, table: &JsonTable) {
    printer.put("json_table(");
    printer.expr(&table.doc);
    printer.put(", ");
    json_text(printer, &table.path);
    json_columns(printer, &table.columns);
    printer.put(")");
    if let Some(alias) = &table.alias {
        printer.put(" ");
        printer.ident(alias);
    }
}

fn json_text(printer: &mut Printer<'_>, text: &[u8]) {
    printer.put("'");
    printer.put(&doubled(&String::from_utf8_lossy(text)));
    printer.put("'");
}

pub(super) fn json_value(printer: &mut Printer<'_>, call: &JsonValue) {
    printer.put("json_value(");
    printer.expr(&call.doc);
    printer.put(", ");
    let told = shown::is_shown(printer);
    printer.put(if told && printer.stored.is_some() { "_utf8mb4" } else { "" });
    if told {
        write_escaped(&call.path, &mut printer.out)
    } else {
        json_text(printer, &call.path)
    }
    printer.put(" returning ");
    let text = CastType::Char { length: Some(512), charset: None, binary: false };
    calls::told_type(printer, call.ty.as_ref().unwrap_or(&text));
    for (instead, event) in [(&call.on_empty, " on empty"), (&call.on_error, " on error")] {
        match instead {
            JsonValueInstead::Null => continue,
            JsonValueInstead::Error => printer.put(" error"),
            JsonValueInstead::Default(value) => {
                printer.put(" default ");
                printer.expr(value);
            }
        }
        printer.put(event);
    }
    printer.put(")");
}

fn json_columns(printer: &mut Printer<'_>, columns: &[JsonColumn]) {
    printer.put(" columns (");
    for (at, column) in columns.iter().enumerate() {
        printer.put(if at > 0 { ", " } else { "" });
        match column {
            JsonColumn::Ordinality(name) => {
                printer.ident(name);
                printer.put(" for ordinality");
            }
            JsonColumn::Nested { path, columns } => {
                printer.put("nested path ");
                json_text(printer, path);
                json_columns(printer, columns);
            }
            JsonColumn::Place(place) => json_place(printer, place),
        }
    }
    printer.put(")");
}

fn json_place(printer: &mut Printer<'_>, place: &JsonPlace) {
    printer.ident(&place.name);
    printer.put(" ");
    let ty = String::from_utf8_lossy(&place.ty_text);
    let told = shown::is_shown(printer) && !ty.contains(['\'', '"', '`']);
    printer.put(&if told { ty.to_ascii_lowercase().into() } else { ty });
    printer.put(if place.exists { " exists path " } else { " path " });
    json_text(printer, &place.path);
    for (instead, event) in [(&place.on_empty, " on empty"), (&place.on_error, " on error")] {
        match instead {
            JsonInstead::Null => continue,
            JsonInstead::Error => printer.put(" error"),
            JsonInstead::Default(text) => {
                printer.put(" default ");
                json_text(printer, text);
            }
        }
        printer.put(event);
    }
}
