//! JSON_TABLE: a table made of a document, whose columns are paths. It reads the tables in front of it in its FROM, so
//! its rows are made for each of theirs.

use super::virtual_table::{Asked, VirtualTable};
use crate::api::{ResultColumn, sql_mode};
use crate::catalog::Column;
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::expr::functions::json::document;
use crate::expr::into_column::into_column;
use crate::expr::node::Expr;
use crate::expr::types::{Family, family};
use crate::expr::{Context, SlotSet, json};
use crate::rows::collected::{Rows, RowsBuilder};
use omnibus_value::json::{Json, Path};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

/// The stand-in for a value that is not there, or is none of the column's type.
#[derive(Debug)]
pub enum Instead {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// This document.
    Default(Json),
}

/// The kind of a column's cells.
#[derive(Debug)]
pub enum CellKind {
    /// FOR ORDINALITY: the number of its level's row.
    Ordinality,
    /// PATH.
    Value {
        /// From the row's document.
        path: Path,
        /// ON EMPTY.
        on_empty: Instead,
        /// ON ERROR.
        on_error: Instead,
    },
    /// EXISTS PATH: 1 or 0.
    Exists(Path),
}

/// A column of a level.
#[derive(Debug)]
pub struct Cell {
    /// Its place among all columns of the table.
    pub at: usize,
    /// Its name and type.
    pub column: Column,
    /// Its kind.
    pub kind: CellKind,
}

/// COLUMNS: a row for each match of the path.
#[derive(Debug)]
pub struct Level {
    /// From the document of the level around it.
    pub path: Path,
    /// Its own columns.
    pub cells: Vec<Cell>,
    /// NESTED PATH.
    pub nested: Vec<Level>,
}

/// The table.
pub struct JsonTable {
    /// The document.
    pub doc: Expr,
    /// The slots that the document reads.
    pub outer: SlotSet,
    /// Its rows.
    pub level: Level,
    /// Its name, for errors.
    pub alias: Arc<str>,
    /// Its columns.
    pub columns: Arc<[ResultColumn]>,
}

impl VirtualTable for JsonTable {
    fn columns(&self) -> Arc<[ResultColumn]> {
        self.columns.clone()
    }

    fn rows(&self, _asked: Asked<'_>, cx: &mut Context<'_>) -> ExecResult<Rows> {
        let working = cx.session.command.working.used();
        let rows = self.read(cx);
        cx.session.command.working.shrink_to(working);
        rows
    }

    fn outer(&self) -> Option<&SlotSet> {
        Some(&self.outer)
    }
}

impl JsonTable {
    fn read(&self, cx: &mut Context<'_>) -> ExecResult<Rows> {
        let Some(doc) = document(std::slice::from_ref(&self.doc), 0, "json_table", cx)? else {
            return Ok(Rows::default());
        };
        let mut rows = RowsBuilder::new(cx);
        self.expand(&self.level, &doc, &vec![Value::Null; self.columns.len()], &mut rows, cx)?;
        Ok(rows.finish()?)
    }

    /// Adds the rows of a level, and whether there are any; `row` has the columns of those around it.
    fn expand(
        &self,
        level: &Level,
        doc: &Json,
        row: &[Value],
        rows: &mut RowsBuilder,
        cx: &mut Context<'_>,
    ) -> ExecResult<bool> {
        let found = cx.paced(|pace| level.path.find(doc, pace))?;
        let any = !found.is_empty();
        for (number, part) in found.into_iter().enumerate() {
            cx.tick()?;
            let mut row = row.to_vec();
            for cell in &level.cells {
                row[cell.at] = self.cell(cell, number as u64 + 1, part, cx)?;
            }
            let mut has_nested = false;
            for nested in &level.nested {
                has_nested |= self.expand(nested, part, &row, rows, cx)?;
            }
            // As an outer join: a row without nested ones stays.
            if !has_nested {
                rows.push(row.into(), cx)?;
            }
        }
        Ok(any)
    }

    fn cell(&self, cell: &Cell, number: u64, part: &Json, cx: &mut Context<'_>) -> ExecResult<Value> {
        match &cell.kind {
            CellKind::Ordinality if cell.column.ty.unsigned => Ok(Value::UInt(number)),
            CellKind::Ordinality => Ok(Value::Int(number as i64)),
            CellKind::Exists(path) => {
                let found = !cx.paced(|pace| path.find(part, pace))?.is_empty();
                Ok(self.converted(cell, &Json::Int(found.into()), cx).unwrap_or(Value::Null))
            }
            CellKind::Value { path, on_empty, on_error } => {
                let found = cx.paced(|pace| path.find(part, pace))?;
                if found.is_empty() {
                    return self.instead(cell, on_empty, cx, |name| {
                        SqlError::new(3665, b"22035", format!("Missing value for JSON_TABLE column '{name}'"))
                    });
                }
                match self.matched(cell, &found, cx) {
                    Err(Interrupt::Error(error)) => self.instead(cell, on_error, cx, |_| error.clone()),
                    other => other,
                }
            }
        }
    }

    fn instead(
        &self,
        cell: &Cell,
        instead: &Instead,
        cx: &mut Context<'_>,
        error: impl Fn(&str) -> SqlError,
    ) -> ExecResult<Value> {
        match instead {
            Instead::Null => Ok(Value::Null),
            Instead::Error => Err(error(&cell.column.name).into()),
            Instead::Default(value) => self.converted(cell, value, cx),
        }
    }

    fn matched(&self, cell: &Cell, found: &[&Json], cx: &mut Context<'_>) -> ExecResult<Value> {
        match found {
            [one] => self.converted(cell, one, cx),
            many if cell.column.ty.kind == ColumnKind::Json => {
                let all = many.iter().map(|one| (*one).clone()).collect();
                Ok(json::made(&Json::Array(all))?)
            }
            _ => Err(self.no_scalar(cell).into()),
        }
    }

    fn no_scalar(&self, cell: &Cell) -> SqlError {
        let (column, table) = (&cell.column.name, &self.alias);
        let message = format!(
            "Can't store an array or an object in the scalar column '{column}' of JSON_TABLE '{table}'."
        );
        SqlError::new(3666, b"2203F", message)
    }

    /// A part of the document as a value of the column's type; what does not fit is an error whatever `sql_mode` says.
    fn converted(&self, cell: &Cell, part: &Json, cx: &mut Context<'_>) -> ExecResult<Value> {
        let column = &cell.column;
        if matches!(part, Json::Null) {
            return Ok(Value::Null);
        }
        if column.ty.kind == ColumnKind::Json {
            return Ok(json::to_value(part));
        }
        let text =
            |text: Vec<u8>| (Value::Bytes(text.into()), ColumnType::string(ColumnKind::LongText, 0, 46));
        let is_text = family(column.ty.kind) == Family::String;
        let (value, ty) = match part {
            Json::Array(_) | Json::Object(_) => return Err(self.no_scalar(cell).into()),
            Json::Bool(is) if !is_text => (Value::Int((*is).into()), ColumnType::of(ColumnKind::BigInt)),
            Json::Int(n) if !is_text => (Value::Int(*n), ColumnType::of(ColumnKind::BigInt)),
            Json::UInt(n) if !is_text => (Value::UInt(*n), ColumnType::of(ColumnKind::BigInt).unsigned()),
            Json::Double(n) if !is_text => (Value::Double(*n), ColumnType::of(ColumnKind::Double)),
            Json::Opaque(_, bytes) if is_text => {
                let ty = ColumnType::string(column.ty.kind, 0, column.ty.collation);
                (Value::Bytes(bytes.clone()), ty)
            }
            other => {
                let mut out = Vec::new();
                other.unquote(&mut out);
                text(out)
            }
        };
        let mode = cx.session.settings.sql_mode;
        cx.session.settings.sql_mode |= sql_mode::STRICT_ALL_TABLES;
        let stored = into_column(value, &ty, column, 1, false, cx.session);
        cx.session.settings.sql_mode = mode;
        Ok(stored.map_err(|error| no_value(error, column))?)
    }
}

/// Makes MySQL's error for a part that is no value of its column's type.
fn no_value(error: SqlError, column: &Column) -> SqlError {
    let name = &column.name;
    let out_of_range = || {
        let message = format!("Value is out of range for JSON_TABLE's column '{name}'");
        SqlError::new(3669, b"22003", message)
    };
    let number = match family(column.ty.kind) {
        Family::Integer => "INTEGER",
        Family::Decimal => "DECIMAL",
        Family::Real => "DOUBLE",
        _ => return if matches!(error.code, 1292 | 1264 | 1265) { out_of_range() } else { error },
    };
    match error.code {
        1366 | 1265 | 1292 => {
            let message = format!("Invalid JSON value for CAST to {number} from column {name} at row 1");
            SqlError::new(3156, b"22018", message)
        }
        1264 => out_of_range(),
        _ => error,
    }
}
