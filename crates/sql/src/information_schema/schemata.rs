//! SCHEMATA.

use super::computed::{Def, Reader, SCHEMAS, TEXT_COLLATION, Ty, text};
use crate::api::tables_are_encrypted;
use crate::catalog::charset;
use crate::error::ExecResult;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[Def {
    schema: "information_schema",
    name: "SCHEMATA",
    columns: &[
        ("CATALOG_NAME", Ty::Text(64)),
        ("SCHEMA_NAME", Ty::Name),
        ("DEFAULT_CHARACTER_SET_NAME", Ty::Text(64)),
        ("DEFAULT_COLLATION_NAME", Ty::Text(64)),
        ("SQL_PATH", Ty::Text(512)),
        ("DEFAULT_ENCRYPTION", Ty::Text(3)),
    ],
    rows: schemata,
}];

/// The collation of the texts of `information_schema`, as Connector/J takes it from here and compares them with it.
fn computed_collation(schema: &str) -> u16 {
    if schema == "information_schema" { TEXT_COLLATION } else { charset::server_default() }
}

fn schemata(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let stored = reader.schemas().map(|schema| (&*schema.name, schema.collation));
    let computed = SCHEMAS.iter().map(|name| (*name, computed_collation(name)));
    let mut all: Vec<(&str, u16)> =
        stored.chain(computed).filter(|(name, _)| reader.sees(name, None)).collect();
    all.sort_unstable();
    let encrypted = if tables_are_encrypted(&*reader.cx.session.connection.host) { "YES" } else { "NO" };
    let row = |(name, collation): (&str, u16)| {
        vec![
            text("def"),
            text(name),
            text(charset::charset_name(collation)),
            text(charset::collation_name(collation)),
            Value::Null,
            text(encrypted),
        ]
    };
    Ok(all.into_iter().map(row).collect())
}
