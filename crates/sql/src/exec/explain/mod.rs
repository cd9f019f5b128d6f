//! EXPLAIN and ANALYZE: a plan for people, as a table, a tree or JSON, with what happened if it has run.
//!
//! `describe` walks the operators of a plan and makes a line of each (`crate::expr::outline`), with `paths` for those that read tables. Each form is
//! printed from these lines alone: `tree` as they are, `table` and `json` by what `parts` finds in them.

pub(super) mod describe;
mod json;
mod parts;
mod paths;
mod table;
mod tree;

use crate::api::{ResultColumn, RowSink};
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Expr;
use crate::expr::profile::Profile;
use crate::expr::types::string_column;
use crate::plan::QueryPlan;
use crate::plan::physical::FrameOperator;
use omnibus_value::Value;
use std::sync::Arc;

/// How a plan is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A row for each table.
    Table,
    /// Operators.
    Tree,
    /// MySQL's document.
    Json,
    /// MariaDB's document.
    MariadbJson,
}

impl Form {
    /// By its name after FORMAT=.
    ///
    /// # Errors
    /// 1791.
    pub fn named(name: &str, mariadb: bool) -> SqlResult<Form> {
        match name.to_ascii_lowercase().as_str() {
            "traditional" | "default" => Ok(Form::Table),
            "tree" if !mariadb => Ok(Form::Tree),
            "json" if mariadb => Ok(Form::MariadbJson),
            "json" => Ok(Form::Json),
            _ => {
                let word = if mariadb { "EXPLAIN/ANALYZE" } else { "EXPLAIN" };
                Err(SqlError::new(1791, b"HY000", format!("Unknown {word} format name: '{name}'")))
            }
        }
    }
}

/// The subject of an EXPLAIN.
pub(crate) enum Subject<'p> {
    /// A query.
    Query(&'p QueryPlan),
    /// A query whose tables a statement changes: which ones, and what it does with them.
    Changing(&'p QueryPlan, Vec<(&'p str, &'static str)>),
    /// A statement that changes one table.
    Change(TableChange<'p>),
}

/// A statement that changes a table.
pub(crate) struct TableChange<'p> {
    /// INSERT, REPLACE, UPDATE, DELETE.
    pub kind: &'static str,
    /// The table.
    pub table: &'p Arc<Table>,
    /// The operator that finds its rows, and whether they are sorted then; `None` if they are made.
    pub rows: Option<(&'p FrameOperator, bool)>,
    /// The other expressions that are evaluated.
    pub exprs: Vec<&'p Expr>,
    /// Where the rows come from.
    pub query: Option<&'p QueryPlan>,
}

/// Writes how a statement is run into a sink; `profile` is of a run of it.
///
/// # Errors
/// Those of the sink.
pub(crate) fn explain(
    subject: &Subject<'_>,
    form: Form,
    profile: Option<&Profile>,
    sink: &mut dyn RowSink,
) -> ExecResult<()> {
    let (line, queries) = describe::statement(subject, profile);
    let ran = profile.is_some();
    let text = match form {
        Form::Table => return table::write(&line, queries, ran, sink),
        Form::Tree => tree::text(&line),
        Form::Json => json::document(&line, false, ran),
        Form::MariadbJson => json::document(&line, true, ran),
    };
    let none: Arc<str> = "".into();
    let name = if ran && form == Form::MariadbJson { "ANALYZE" } else { "EXPLAIN" };
    let column = ResultColumn {
        schema: none.clone(),
        table: none.clone(),
        org_table: none.clone(),
        name: name.into(),
        org_name: none,
        ty: string_column(1 << 20, 45),
        flags: 0,
    };
    sink.columns(&[column])?;
    sink.row(&[Value::Bytes(text.into())])?;
    Ok(())
}
