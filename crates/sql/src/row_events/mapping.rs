//! From the columns of a row event's table to those of ours, by position.
//!
//! Worked out once per table and kept until either side changes. Columns that only the source has are ignored; those
//! that only we have get their defaults.

use super::convert::{Conversions, Relation, charset_differs, is_unsigned, relation, type_name};
use super::lookup::Lookup;
use super::rows::RowRules;
use crate::catalog::{Catalog, Column, Table, charset};
use crate::dml::RowExpressions;
use crate::dml::defaults::{default_value, implicit_default};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::state::SessionState;
use crate::store::Trx;
use bytes::Bytes;
use omnibus_format::events::ColumnMetadata;
use omnibus_format::field::{FieldType, code};
use omnibus_format::row::{ColumnShape, RowImage, count_bits, is_set};
use omnibus_replication::model::TableView;
use omnibus_value::collation::{self, Charset};
use omnibus_value::convert::StoreContext;
use omnibus_value::temporal::{Date, DateMode, UTC};
use omnibus_value::{ColumnKind, Value};
use std::sync::Arc;

/// One column that both sides have.
struct MappedColumn {
    field: FieldType,
    unsigned: Option<bool>,
    collation: Option<u16>,
    nullable: bool,
    shape: ColumnShape,
    /// The conversion of its values; `None`: they are stored as they are.
    cast: Option<Cast>,
}

struct Cast {
    /// Of string values.
    charset: Charset,
    /// Values that do not fit are clipped.
    lossy: bool,
    /// Labels of ENUM and SET mean the same numbers.
    numbers: bool,
}

/// See the module's text.
pub(super) struct Mapping {
    pub(super) table: Arc<Table>,
    /// All of the source's columns: those past ours are skipped.
    sources: Vec<MappedColumn>,
    /// Full images are rows of ours, byte by byte.
    pub(super) identical: bool,
    conversions: Conversions,
    /// The definition's expressions for columns without a value, once one was missing.
    expressions: Option<Option<RowExpressions>>,
    /// How rows were found last, for which columns.
    pub(super) lookup: Option<(Vec<u8>, Lookup)>,
}

impl Mapping {
    /// Whether it still holds for what the event says and for our table.
    pub(super) fn holds(&self, view: &dyn TableView, rules: &RowRules) -> bool {
        let fields = view.columns();
        !self.table.is_stale()
            && self.conversions == rules.conversions
            && fields.len() == self.sources.len()
            && self.sources.iter().zip(fields).enumerate().all(|(at, (source, field))| {
                let meta = view.metadata(at);
                source.field == *field
                    && source.unsigned == meta.unsigned
                    && source.collation == meta.collation
                    && source.nullable == view.nullable(at)
            })
    }

    /// Of the source's table to ours.
    ///
    /// # Errors
    /// 1677 if a column cannot be converted.
    pub(super) fn new(table: Arc<Table>, view: &dyn TableView, rules: &RowRules) -> SqlResult<Mapping> {
        let mut sources = Vec::with_capacity(view.columns().len());
        for (at, &field) in view.columns().iter().enumerate() {
            let meta = view.metadata(at);
            let column = table.def.columns.get(at);
            let cast = match column {
                Some(column) => cast_of(&table, at, field, meta, column, rules)?,
                None => None,
            };
            let unsigned = match column {
                Some(column) => is_unsigned(field, meta, column, rules.conversions),
                None => meta.unsigned.unwrap_or(false),
            };
            let shape = ColumnShape::new(field, unsigned);
            let shape = match column {
                Some(column) if field == FieldType::of_column(&column.ty) => shape.with_kind(column.ty.kind),
                _ => shape,
            };
            // Without metadata a CHAR is what ours is.
            let known = meta.collation.or(column.map(|column| column.ty.collation)).unwrap_or(0);
            sources.push(MappedColumn {
                field,
                unsigned: meta.unsigned,
                collation: meta.collation,
                nullable: view.nullable(at),
                shape: shape.with_collation(known),
                cast,
            });
        }
        let identical = sources.len() == table.def.columns.len()
            && sources.iter().zip(&table.def.columns).all(|(source, column)| {
                source.cast.is_none()
                    && source.field == FieldType::of_column(&column.ty)
                    && (column.nullable || !source.nullable)
            });
        Ok(Mapping {
            table,
            sources,
            identical,
            conversions: rules.conversions,
            expressions: None,
            lookup: None,
        })
    }

    /// The expressions of our definition, if it has any.
    pub(super) fn expressions(
        &mut self,
        state: &SessionState,
        catalog: &Catalog,
    ) -> SqlResult<Option<&RowExpressions>> {
        if self.expressions.is_none() {
            self.expressions = Some(RowExpressions::bind(&self.table, state, catalog, None)?);
        }
        Ok(self.expressions.as_ref().and_then(Option::as_ref))
    }

    /// The columns of ours that an image has.
    pub(super) fn columns(&self, bits: &[u8]) -> Vec<usize> {
        let ours = self.sources.len().min(self.table.def.columns.len());
        (0..ours).filter(|at| is_set(bits, *at)).collect()
    }

    /// Whether an image's bytes are a whole row of ours.
    fn is_row(&self, image: &RowImage<'_>) -> bool {
        self.identical
            && !image.is_partial()
            && count_bits(image.columns, self.sources.len()) == self.sources.len()
    }

    /// An image's bytes as a row of ours, if they are one.
    pub(super) fn row(&self, image: &RowImage<'_>) -> Option<Bytes> {
        if !self.is_row(image) {
            return None;
        }
        let mut row = image.bytes.to_vec();
        let (bytes, columns) = (self.sources.len().div_ceil(8), self.sources.len() % 8);
        // Bits of the null bitmap that stand for no column: others set them, we do not.
        if columns != 0
            && let Some(last) = bytes.checked_sub(1).and_then(|at| row.get_mut(at))
        {
            *last &= (1 << columns) - 1;
        }
        Some(self.table.rows.of_image(row.into()))
    }

    /// Values of our columns, as we store them; `None` for those that the image does not have, or has as changes of a
    /// document.
    pub(super) fn values(&self, image: &RowImage<'_>) -> SqlResult<Vec<Option<Value>>> {
        let ours = &self.table.def.columns;
        let mut documents = 0;
        let mut values: Vec<Option<Value>> = vec![None; ours.len()];
        let mut at = count_bits(image.columns, self.sources.len()).div_ceil(8);
        let mut present = 0;
        for (number, source) in self.sources.iter().enumerate() {
            let mut has_diffs = false;
            if source.field.code == code::JSON {
                has_diffs = image.has_diffs(documents);
                documents += 1;
            }
            if !is_set(image.columns, number) {
                continue;
            }
            let null = is_set(image.bytes, present);
            present += 1;
            if null {
                if let Some(column) = ours.get(number) {
                    values[number] = Some(null_of(column));
                }
                continue;
            }
            let rest = image.bytes.get(at..).unwrap_or_default();
            let len = source.shape.len(rest).ok_or_else(|| damaged("row image"))?;
            if let Some(column) = ours.get(number).filter(|_| !has_diffs) {
                let value = source.shape.decode(&rest[..len], Bytes::copy_from_slice).map_err(damaged)?;
                values[number] = Some(match &source.cast {
                    None => value,
                    Some(cast) => cast.apply(value, column)?,
                });
            }
            at += len;
        }
        Ok(values)
    }

    /// All values of a new row: the image's, and defaults for the rest. And the columns whose values are to be computed.
    pub(super) fn new_row(
        &self,
        image: &RowImage<'_>,
        state: &mut SessionState,
        trx: &mut Trx,
    ) -> ExecResult<(Vec<Value>, Vec<usize>)> {
        let values = self.values(image)?;
        let (mut row, mut computed) = (Vec::with_capacity(values.len()), Vec::new());
        for (number, (column, value)) in self.table.def.columns.iter().zip(values).enumerate() {
            row.push(match value {
                Some(value) => value,
                None if column.auto_increment => {
                    let (step, offset) =
                        (state.settings.auto_increment_increment, state.settings.auto_increment_offset);
                    let (counters, statement) = (&mut trx.counters, &mut trx.statement);
                    let next = counters.take_auto_values(statement, &self.table, 1, step, offset)?;
                    if column.ty.unsigned { Value::UInt(next) } else { Value::Int(next as i64) }
                }
                None if column.is_computed() => {
                    computed.push(number);
                    Value::Null
                }
                None => match default_value(column, state) {
                    // The source has the column, left it out and took the row all the same: it was not strict.
                    Err(_) if number < self.sources.len() => null_of(column),
                    value => value?,
                },
            });
        }
        Ok((row, computed))
    }
}

fn cast_of(
    table: &Table,
    at: usize,
    field: FieldType,
    meta: &ColumnMetadata,
    column: &Column,
    rules: &RowRules,
) -> SqlResult<Option<Cast>> {
    if let Some(id) = meta.collation.filter(|_| crate::catalog::charset::is_character(&column.ty)) {
        charset::known_collation(u64::from(id))?;
    }
    let relation = relation(field, meta, column, rules.conversions);
    let refused = match relation {
        Relation::Same | Relation::Form => false,
        Relation::Wider => !rules.conversions.non_lossy,
        Relation::Lossy => !rules.conversions.lossy,
        Relation::Impossible => true,
    };
    if refused {
        let (db, name) = (&table.def.db, &table.def.name);
        let (theirs, ours) = (type_name(field), crate::catalog::type_text(&column.ty));
        let message = format!(
            "Column {at} of table '{db}.{name}' cannot be converted from type '{theirs}' to type '{ours}'"
        );
        return Err(SqlError::new(1677, b"HY000", message));
    }
    if relation == Relation::Same {
        return Ok(None);
    }
    let ours = collation::by_id_or_binary(column.ty.collation).charset;
    let theirs = match charset_differs(meta, &column.ty) {
        true => meta.collation.map_or(ours, |id| collation::by_id_or_binary(id).charset),
        false => ours,
    };
    // JSON is text in one character set.
    let charset = if column.ty.kind == ColumnKind::Json { Charset::Utf8mb4 } else { theirs };
    let numbers = matches!(field.code, code::ENUM | code::SET);
    Ok(Some(Cast { charset, lossy: relation == Relation::Lossy, numbers }))
}

/// Any date may have come from a server that let it in.
const ANY_DATE: DateMode = DateMode { allow_invalid: true, ..DateMode::RELAXED };

impl Cast {
    fn apply(&self, value: Value, column: &Column) -> SqlResult<Value> {
        if self.numbers {
            return Ok(value);
        }
        let context = StoreContext {
            strict: !self.lossy,
            dates: ANY_DATE,
            charset: self.charset,
            zone: UTC,
            today: Date::ZERO,
        };
        let stored = value.cast_for_column(&column.ty, &context).map_err(|error| {
            let state = error.0.sqlstate().as_bytes().try_into().unwrap_or(*b"HY000");
            SqlError::new(error.0.code(), &state, error.0.message(&column.name, 1, b""))
        })?;
        Ok(stored.value)
    }
}

fn null_of(column: &Column) -> Value {
    if column.nullable { Value::Null } else { implicit_default(&column.ty) }
}

pub(super) fn damaged(what: impl std::fmt::Display) -> SqlError {
    let message = format!("Relay log read failure: the rows of an event cannot be decoded: {what}");
    SqlError::new(1594, b"HY000", message)
}
