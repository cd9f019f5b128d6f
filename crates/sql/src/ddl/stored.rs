//! Definitions from their stored text.

use super::build::{BuildContext, Ids, build_table};
use super::expressions::Writer;
use crate::catalog::{Catalog, ColumnDefault, StoredExpr, TableDef, persist};
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
    let statements = omnibus_parser::parse(text.as_bytes(), &ParseOptions::default())
        .map_err(|error| crate::catalog::unreadable(text, &error))?;
    match statements.into_iter().next().map(|statement| statement.node) {
        Some(Statement::CreateTable(tree)) => Ok(*tree),
        _ => Err(SqlError::internal("a stored definition is not CREATE TABLE")),
    }
}

/// The definition that a stored text describes; ids and spaces are the caller's to fill in.
pub(crate) fn parse_definition(db: &str, text: &str, created: u64) -> SqlResult<TableDef> {
    let tree = parse_create(text)?;
    let def = built(&tree, db, created, false)?;
    // What MySQL's words tell is read back in them.
    if expressions_of(&def).all(|expr| text.contains(&*expr.text)) {
        return Ok(def);
    }
    built(&tree, db, created, true)
}

/// The expressions of a definition.
fn expressions_of(def: &TableDef) -> impl Iterator<Item = &StoredExpr> {
    let of_columns = def.columns.iter().flat_map(|column| {
        let default = match &column.default {
            ColumnDefault::Expression(expr) => Some(expr),
            _ => None,
        };
        default.into_iter().chain(column.generated.as_ref().map(|generated| &generated.expr))
    });
    of_columns.chain(def.checks.iter().map(|check| &check.expr))
}

/// The definition that a tree is, its expressions in MySQL's words if they were `told` so.
fn built(tree: &CreateTable, db: &str, created: u64, told: bool) -> SqlResult<TableDef> {
    let mut diagnostics = Diagnostics::default();
    let mut context = BuildContext {
        db,
        default_collation: crate::catalog::charset::server_default(),
        utf8mb4: crate::catalog::charset::server_default(),
        dates: DateMode { allow_invalid: true, ..DateMode::RELAXED },
        zone: UTC,
        explicit_timestamps: true,
        sql_mode: 0,
        mariadb: false,
        uuids: true,
        engines: Vec::new(),
        ignore_unsupported_constraints: false,
        writer: Writer { client: crate::catalog::charset::server_default(), told },
        default_engine: "",
        created,
        diagnostics: &mut diagnostics,
    };
    let (mut table, mut space) = (0, 0);
    let mut ids = Ids { table: &mut table, space: &mut space };
    Ok(build_table(tree, &mut context, &mut ids)?.def)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn expressions_stay_in_the_words_that_they_are_stored_in() {
        for words in ["substr(`a`,1,2)", "substring(`a`,1,2)", "((0 <> `a`) or (0 <> `b`))", "(`a` or `b`)"] {
            let text = format!("CREATE TABLE `t` (`a` int, `b` int, `g` int GENERATED ALWAYS AS ({words}))");
            let def = parse_definition("d", &text, 0).unwrap();
            assert_eq!(&*expressions_of(&def).next().unwrap().text, words);
        }
    }
}
