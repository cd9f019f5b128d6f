//! `ignore_unsupported_constraints`: what a definition asks for and the table does without.
//!
//! Partitions, encryption where the server has none, FULLTEXT and SPATIAL indexes are left out; a column of a spatial type is a LONGBLOB, and text of a character set that is
//! not had is utf8mb4, which has all its characters. What was asked for stays in the definition, as an option in a comment that
//! only servers of this kind read: SHOW CREATE TABLE shows it, and a dump keeps it.

use super::build::BuildContext;
use crate::api::tables_are_encrypted;
use crate::catalog::{quote_ident, quote_string};
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::OWN_VERSION;
use omnibus_parser::ast::{
    ColumnDef, CreateTable, DatabaseOptions, Ident, IndexDef, IndexKind, KeyTarget, TableOption, TypeName,
};
use std::borrow::Cow;
use std::sync::Arc;

/// Character sets of MySQL and MariaDB that are not had.
const CHARSETS: &[&str] = &[
    "armscii8", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8",
    "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r",
    "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis",
    "utf16", "utf16le", "utf32",
];

/// As a definition keeps it among its options.
pub(super) fn option(text: &str) -> Arc<str> {
    // The end of a comment in it would be the end of this one.
    format!("/*!{OWN_VERSION} NOT_BUILT={} */", quote_string(&text.replace("*/", "* /"))).into()
}

/// Takes out of a definition what is not built; that is an error, unless somebody has said that the table will do without it.
pub(super) fn without_unsupported<'t>(
    tree: &'t CreateTable,
    context: &mut BuildContext<'_>,
) -> SqlResult<Cow<'t, CreateTable>> {
    let mut out = Cow::Borrowed(tree);
    let mut found = Found { context, kept: Vec::new() };
    if tree.options.iter().any(is_foreign_option) {
        let options = found.table_charset(&tree.options)?;
        out.to_mut().options = options;
    }
    for (at, column) in tree.columns.iter().enumerate() {
        if let Some(column) = found.column(column)? {
            out.to_mut().columns[at] = column;
        }
    }
    for key in tree.indexes.iter().filter(|key| is_unsupported(key)) {
        let kind = if key.kind == IndexKind::FullText { "FULLTEXT" } else { "SPATIAL" };
        found.without(&format!("{kind} indexes"), index_text(kind, key))?;
    }
    if let Some(partition) = &tree.partition {
        found.without("PARTITION BY", String::from_utf8_lossy(partition).trim().to_owned())?;
    }
    let kept = found.kept;
    if !kept.is_empty() {
        let out = out.to_mut();
        out.partition = None;
        out.indexes.retain(|key| !is_unsupported(key));
        let kept =
            kept.into_iter().map(|text| TableOption::Other { name: "NOT_BUILT".into(), value: text.into() });
        out.options.extend(kept);
    }
    Ok(out)
}

/// The options without those that say whether a table is encrypted: all are, or none is, as the server was started. Where none is, to ask
/// for it is error 3185, unless somebody has said that the table will do without it.
pub(super) fn without_encryption<'t>(
    tree: &'t CreateTable,
    state: &mut SessionState,
) -> SqlResult<Cow<'t, CreateTable>> {
    let mut out = Cow::Borrowed(tree);
    for option in &tree.options {
        let TableOption::Other { name, value } = option else { continue };
        if !name.is("ENCRYPTION") && !name.is("ENCRYPTED") {
            continue;
        }
        let value = String::from_utf8_lossy(value).trim_matches(['\'', '"']).to_ascii_uppercase();
        let asks = matches!(&*value, "Y" | "YES");
        if name.is("ENCRYPTION") && tree.temporary {
            let text = "ENCRYPTION clause is not valid for temporary tablespace.";
            return Err(SqlError::new(3833, b"HY000", text));
        }
        if name.is("ENCRYPTION") && !matches!(&*value, "Y" | "N") {
            return Err(SqlError::new(3184, b"HY000", "Invalid encryption option."));
        }
        let options = &mut out.to_mut().options;
        options.retain(|other| other != option);
        if !asks || tables_are_encrypted(&*state.connection.host) {
            continue;
        }
        if !state.settings.ignore_unsupported_constraints {
            return Err(match name.is("ENCRYPTED") {
                true => wrong_create_options(tree, state),
                false => SqlError::no_master_key(),
            });
        }
        let text = format!("{name}={}", quote_string(&value));
        options.push(TableOption::Other { name: "NOT_BUILT".into(), value: text.into() });
        let message = "encryption: the table is made without (ignore_unsupported_constraints=ON)";
        state.diagnostics.warn(SqlError::new(1235, b"42000", message));
    }
    Ok(out)
}

fn wrong_create_options(tree: &CreateTable, state: &SessionState) -> SqlError {
    let schema = crate::state::schema_of(state, &tree.name).unwrap_or_default();
    let table = format!("`{schema}`.`{}`", tree.name.name);
    SqlError::new(1005, b"HY000", format!("Can't create table {table} (errno: 140 \"Wrong create options\")"))
}

/// Whether an option of a definition is one of these.
pub(super) fn is_kept(option: &TableOption) -> bool {
    matches!(option, TableOption::Other { name, .. } if name.is("NOT_BUILT"))
}

/// The warning of an option that says where or how rows are kept, and that changes nothing here.
pub(super) fn passed_over(name: &Ident, value: &[u8]) -> Option<SqlError> {
    let value = String::from_utf8_lossy(value).trim_matches(['\'', '"', '`']).to_ascii_uppercase();
    let usual = match name.to_ascii_uppercase().as_str() {
        "DATA DIRECTORY" | "INDEX DIRECTORY" | "UNION" => false,
        "TABLESPACE" => value == "INNODB_FILE_PER_TABLE",
        "CONNECTION" => value.is_empty(),
        "COMPRESSION" => matches!(&*value, "" | "NONE"),
        "PAGE_COMPRESSED" => matches!(&*value, "0" | "OFF" | "NO" | "DEFAULT"),
        "INSERT_METHOD" => value == "NO",
        "SECONDARY_ENGINE" => value == "NULL",
        _ => true,
    };
    (!usual).then(|| SqlError::new(1618, b"HY000", format!("<{name}> option ignored")))
}

/// The character set and collation of a database, if they are not had.
pub(super) fn database_charset(options: &DatabaseOptions) -> Option<(String, DatabaseOptions)> {
    let said: Vec<&str> = [&options.charset, &options.collation]
        .into_iter()
        .flatten()
        .filter(|name| is_foreign(name))
        .map(|name| &**name)
        .collect();
    let mut out = options.clone();
    out.charset = Some("utf8mb4".into());
    out.collation = options.collation.as_ref().map(instead_of);
    (!said.is_empty()).then(|| (said.join(", "), out))
}

struct Found<'c, 'x> {
    context: &'c mut BuildContext<'x>,
    /// The options that were asked for.
    kept: Vec<String>,
}

impl Found<'_, '_> {
    /// Something is left out.
    fn without(&mut self, what: &str, text: String) -> SqlResult<()> {
        self.instead(what, "the table is made without", text)
    }

    /// Something else is made.
    fn instead(&mut self, what: &str, made: &str, text: String) -> SqlResult<()> {
        if !self.context.ignore_unsupported_constraints {
            let hint = format!("with ignore_unsupported_constraints=ON {made}");
            return Err(SqlError::not_supported_yet(format!("{what}; {hint}")));
        }
        let message = format!("{what}: {made} (ignore_unsupported_constraints=ON)");
        self.context.diagnostics.warn(SqlError::new(1235, b"42000", message));
        self.kept.push(text);
        Ok(())
    }

    /// A table's options, with utf8mb4 in the place of a character set that is not had.
    fn table_charset(&mut self, options: &[TableOption]) -> SqlResult<Vec<TableOption>> {
        let mut out = options.to_vec();
        if !self.context.ignore_unsupported_constraints {
            return Ok(out);
        }
        let mut said = Vec::new();
        for option in &mut out {
            match option {
                TableOption::Charset(name) if is_foreign(name) => {
                    said.push(format!("DEFAULT CHARSET={name}"));
                    *name = "utf8mb4".into();
                }
                TableOption::Collate(name) if is_foreign(name) => {
                    said.push(format!("COLLATE={name}"));
                    *name = instead_of(name);
                }
                _ => {}
            }
        }
        let said = said.join(" ");
        self.instead(&said, "the table is made with utf8mb4", said.clone())?;
        Ok(out)
    }

    /// A column as it is made, if that is not as it is written.
    fn column(&mut self, column: &ColumnDef) -> SqlResult<Option<ColumnDef>> {
        let mut out = column.clone();
        let name = quote_ident(&column.name);
        if let Some(spatial) = spatial(column.ty.name) {
            let srid = column.srid.map_or(String::new(), |srid| format!(" SRID {srid}"));
            self.instead(
                &format!("{spatial} columns"),
                "the column is a LONGBLOB",
                format!("{name} {spatial}{srid}"),
            )?;
            out.ty.name = TypeName::LongBlob;
            out.srid = None;
            return Ok(Some(out));
        }
        let foreign = |name: &Option<Ident>| name.as_ref().is_some_and(is_foreign);
        if !self.context.ignore_unsupported_constraints
            || !(foreign(&column.ty.charset) || foreign(&column.ty.collation))
        {
            return Ok(None);
        }
        let mut said = name;
        if let Some(charset) = column.ty.charset.as_ref().filter(|name| is_foreign(name)) {
            said.push_str(&format!(" CHARACTER SET {charset}"));
            out.ty.charset = Some("utf8mb4".into());
        }
        if let Some(collation) = column.ty.collation.as_ref().filter(|name| is_foreign(name)) {
            said.push_str(&format!(" COLLATE {collation}"));
            out.ty.charset = Some("utf8mb4".into());
            out.ty.collation = Some(instead_of(collation));
        }
        self.instead(&said.clone(), "the column is utf8mb4", said)?;
        Ok(Some(out))
    }
}

fn is_unsupported(key: &IndexDef) -> bool {
    matches!(key.kind, IndexKind::FullText | IndexKind::Spatial)
}

fn is_foreign_option(option: &TableOption) -> bool {
    matches!(option, TableOption::Charset(name) | TableOption::Collate(name) if is_foreign(name))
}

/// A character set, or a collation of one.
fn is_foreign(name: &Ident) -> bool {
    let name = name.to_ascii_lowercase();
    CHARSETS.contains(&name.split('_').next().unwrap_or_default())
}

/// Binary ones compare code points, the others as most do.
fn instead_of(collation: &Ident) -> Ident {
    let binary = collation.to_ascii_lowercase().ends_with("_bin");
    if binary { "utf8mb4_bin".into() } else { "utf8mb4_general_ci".into() }
}

fn spatial(ty: TypeName) -> Option<&'static str> {
    Some(match ty {
        TypeName::Geometry => "GEOMETRY",
        TypeName::Point => "POINT",
        TypeName::LineString => "LINESTRING",
        TypeName::Polygon => "POLYGON",
        TypeName::MultiPoint => "MULTIPOINT",
        TypeName::MultiLineString => "MULTILINESTRING",
        TypeName::MultiPolygon => "MULTIPOLYGON",
        TypeName::GeometryCollection => "GEOMETRYCOLLECTION",
        _ => return None,
    })
}

/// As CREATE TABLE writes it.
fn index_text(kind: &str, key: &IndexDef) -> String {
    let name = key.name.as_ref().map_or(String::new(), |name| format!(" {}", quote_ident(name)));
    let parts = key.parts.iter().map(|part| match &part.target {
        KeyTarget::Column { name, .. } => quote_ident(name),
        KeyTarget::Expression(_) => "(..)".into(),
    });
    let parser =
        key.parser.as_ref().map_or(String::new(), |parser| format!(" WITH PARSER {}", quote_ident(parser)));
    format!("{kind} KEY{name} ({}){parser}", parts.collect::<Vec<_>>().join(","))
}
