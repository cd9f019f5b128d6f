//! Definitions from their stored text.

use super::build::{BuildContext, Ids, build_table};
use crate::catalog::{Catalog, TableDef, persist};
use crate::error::{Diagnostics, SqlError, SqlResult};
use omnibus_engine::Snapshot;
use omnibus_parser::ParseOptions;
use omnibus_parser::ast::{CreateTable, Statement};
use omnibus_value::temporal::{DateMode, UTC};

/// The catalog that an engine keeps.
///
/// # Errors
/// The engine, or damage.
pub fn load_catalog(snapshot: &dyn Snapshot) -> SqlResult<Catalog> {
    persist::load(snapshot, parse_definition)
}

/// The tree of a CREATE TABLE text.
pub(crate) fn parse_create(text: &str) -> SqlResult<CreateTable> {
    let statements = omnibus_parser::parse(text.as_bytes(), &ParseOptions::default()).map_err(|error| {
        tracing::error!(%error, text, "a stored definition does not parse");
        SqlError::internal(format!("a stored definition does not parse: {error}"))
    })?;
    match statements.into_iter().next().map(|statement| statement.node) {
        Some(Statement::CreateTable(tree)) => Ok(*tree),
        _ => Err(SqlError::internal("a stored definition is not CREATE TABLE")),
    }
}

/// The definition that a stored text describes; ids and spaces are the caller's to fill in.
pub(crate) fn parse_definition(db: &str, text: &str, created: u64) -> SqlResult<TableDef> {
    let tree = parse_create(text)?;
    let mut diagnostics = Diagnostics::default();
    let mut context = BuildContext {
        db,
        default_collation: crate::catalog::charset::server_default(),
        utf8mb4: crate::catalog::charset::server_default(),
        dates: DateMode { allow_invalid: true, ..DateMode::RELAXED },
        zone: UTC,
        explicit_timestamps: true,
        no_engine_substitution: false,
        mariadb: false,
        uuids: true,
        engines: Vec::new(),
        ignore_unsupported_constraints: false,
        client: crate::catalog::charset::server_default(),
        default_engine: "",
        created,
        diagnostics: &mut diagnostics,
    };
    let (mut table, mut space) = (0, 0);
    let mut ids = Ids { table: &mut table, space: &mut space };
    Ok(build_table(&tree, &mut context, &mut ids)?.def)
}
