//! KEYWORDS and PLUGINS: what the server is made of.

use super::computed::{Def, Reader, Ty, text};
use crate::error::ExecResult;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "KEYWORDS",
        columns: &[("WORD", Ty::Text(128)), ("RESERVED", Ty::Int4)],
        rows: keywords,
    },
    Def {
        schema: "information_schema",
        name: "PLUGINS",
        columns: &[
            ("PLUGIN_NAME", Ty::Text(64)),
            ("PLUGIN_VERSION", Ty::Text(20)),
            ("PLUGIN_STATUS", Ty::Text(10)),
            ("PLUGIN_TYPE", Ty::Text(80)),
            ("PLUGIN_TYPE_VERSION", Ty::Text(20)),
            ("PLUGIN_LIBRARY", Ty::Text(64)),
            ("PLUGIN_LIBRARY_VERSION", Ty::Text(20)),
            ("PLUGIN_AUTHOR", Ty::Text(64)),
            ("PLUGIN_DESCRIPTION", Ty::Long),
            ("PLUGIN_LICENSE", Ty::Text(80)),
            ("LOAD_OPTION", Ty::Text(64)),
        ],
        rows: plugins,
    },
];

/// The words of MySQL's grammar; which of them are reserved is what our own says.
fn keywords(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let row = |word: &str| vec![text(word), Value::Int(i64::from(omnibus_parser::is_reserved(word)))];
    Ok(crate::api::keywords().map(row).collect())
}

/// Lists the server's parts that clients look for by the names of plugins; none is loaded.
fn plugins(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let authentication = ["mysql_native_password", "caching_sha2_password"];
    let engines = reader.engines.iter().map(|engine| (engine.name, "STORAGE ENGINE"));
    let parts = std::iter::once(("binlog", "STORAGE ENGINE"))
        .chain(authentication.map(|name| (name, "AUTHENTICATION")))
        .chain(engines);
    let row = |(name, kind): (&str, &str)| {
        vec![
            text(name),
            text("1.0"),
            text("ACTIVE"),
            text(kind),
            text("1.0"),
            Value::Null,
            Value::Null,
            text("Omnibus"),
            text(""),
            text("MIT OR Apache-2.0"),
            text("FORCE"),
        ]
    };
    Ok(parts.map(row).collect())
}
