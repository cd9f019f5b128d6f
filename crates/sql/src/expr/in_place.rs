//! Text where it lies: constants, and columns of the rows in the frame, compared and hashed without a copy of the value.
//!
//! A `Value` of text shares its row's memory, and taking and dropping a share are two atomic operations, more than comparing a
//! short text costs. Everything else is evaluated.

use super::context::{Context, Row, Slot};
use super::functions::string::FixedPart;
use super::in_place_number::Number;
use super::node::{CompareOp, Expr, Kind};
use super::{charset, hash_key, in_place_number};
use crate::api::sql_mode;
use crate::catalog::Table;
use crate::error::ExecResult;
use omnibus_value::{ColumnKind, Value};

/// The text of an expression where it lies, without evaluating it.
pub(crate) enum Text<'r> {
    /// Text, or bytes.
    Bytes(&'r [u8]),
    /// NULL.
    Null,
    /// Nobody knows yet.
    Other,
}

/// Where rows lie, and what a session says of how they are read: a running statement, or a row that storage shows ([`super::sieve`]).
pub(crate) trait Rows {
    /// The row in a slot.
    fn row(&self, slot: u16) -> Lying<'_>;
    /// CHAR columns are shown with their padding.
    fn pads(&self) -> bool;
    /// Counts a comparison.
    ///
    /// # Errors
    /// As `Context::tick`.
    fn tick(&self) -> ExecResult<()>;
}

/// A row where it lies.
pub(crate) enum Lying<'r> {
    /// As it is stored.
    Image(&'r Table, &'r [u8]),
    Values(&'r [Value]),
    /// All columns are NULL.
    Nulls,
    /// Its columns must be evaluated.
    Elsewhere,
}

impl Rows for Context<'_> {
    #[inline]
    fn row(&self, slot: u16) -> Lying<'_> {
        self.frame[usize::from(slot)].lying()
    }

    #[inline]
    fn pads(&self) -> bool {
        self.session.settings.sql_mode & sql_mode::PAD_CHAR_TO_FULL_LENGTH != 0
    }

    #[inline]
    fn tick(&self) -> ExecResult<()> {
        Context::tick(self)
    }
}

impl Slot {
    /// The row in the slot.
    #[inline]
    pub(super) fn lying(&self) -> Lying<'_> {
        let image = match &self.row {
            Row::Image(image) => image,
            Row::Keyed(row) => &row.1,
            Row::Values(values) => return Lying::Values(values),
            Row::Nulls | Row::Unset => return Lying::Nulls,
        };
        self.table.as_ref().map_or(Lying::Nulls, |table| Lying::Image(table, image))
    }
}

/// An expression's text, if it lies somewhere.
#[inline]
pub(super) fn text<'r>(e: &'r Expr, rows: &'r impl Rows) -> ExecResult<Text<'r>> {
    match &e.kind {
        Kind::Const(Value::Bytes(text)) => Ok(Text::Bytes(text)),
        Kind::Column { slot, column, .. } if is_stored_text(e, rows) => text_of(rows.row(*slot), *column),
        Kind::Call(def, args) => match FixedPart::of(def, args) {
            Some(part) => Ok(match text(&args[0], rows)? {
                Text::Bytes(text) => Text::Bytes(part.cut(text, e.ty.column.collation)),
                other => other,
            }),
            None => Ok(Text::Other),
        },
        _ => Ok(Text::Other),
    }
}

#[inline]
fn is_stored_text(e: &Expr, rows: &impl Rows) -> bool {
    use ColumnKind as K;
    match e.ty.column.kind {
        K::Char => !rows.pads(),
        K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText => true,
        K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob => true,
        _ => false,
    }
}

impl Context<'_> {
    /// Gives a column's text to `use_it`, which may do what needs the statement, but reads no row of the same slot. `None` if the text
    /// does not lie in a row.
    pub(crate) fn with_text<T>(
        &mut self,
        e: &Expr,
        use_it: impl FnOnce(Option<&[u8]>, &mut Context<'_>) -> ExecResult<T>,
    ) -> ExecResult<Option<T>> {
        let Kind::Column { slot, column, .. } = &e.kind else { return Ok(None) };
        if !is_stored_text(e, self) {
            return Ok(None);
        }
        let place = usize::from(*slot);
        let held = std::mem::take(&mut self.frame[place]);
        let result = match text_of(held.lying(), *column) {
            Ok(Text::Other) => Ok(None),
            Ok(Text::Null) => use_it(None, self).map(Some),
            Ok(Text::Bytes(text)) => use_it(Some(text), self).map(Some),
            Err(error) => Err(error),
        };
        self.frame[place] = held;
        result
    }
}

#[inline]
fn text_of(row: Lying<'_>, column: u16) -> ExecResult<Text<'_>> {
    Ok(match row {
        Lying::Image(table, image) => match table.text_of(image, usize::from(column))? {
            None => Text::Other,
            Some(None) => Text::Null,
            Some(Some(text)) => Text::Bytes(text),
        },
        Lying::Values(values) => match values.get(usize::from(column)) {
            Some(Value::Bytes(text)) => Text::Bytes(text),
            Some(Value::Null) | None => Text::Null,
            Some(_) => Text::Other,
        },
        Lying::Nulls => Text::Null,
        Lying::Elsewhere => Text::Other,
    })
}

/// Compares two texts; `None` if they must be evaluated first.
#[inline]
pub(super) fn compare(
    op: CompareOp,
    collation: u16,
    pair: &[Expr; 2],
    rows: &impl Rows,
) -> ExecResult<Option<Option<bool>>> {
    let left = match text(&pair[0], rows)? {
        Text::Other => return Ok(None),
        left => left,
    };
    let right = text(&pair[1], rows)?;
    Ok(match (left, right) {
        (_, Text::Other) => None,
        (Text::Bytes(left), Text::Bytes(right)) => {
            Some(Some(op.accepts(charset::compare(left, right, collation))))
        }
        _ => Some(None),
    })
}

/// Looks a text up in a list of constant ones; `None` if something must be evaluated.
pub(super) fn is_in(
    operand: &Expr,
    list: &[Expr],
    collation: u16,
    rows: &impl Rows,
) -> ExecResult<Option<Option<bool>>> {
    let text = match text(operand, rows)? {
        Text::Other => return Ok(None),
        Text::Null => return Ok(Some(None)),
        Text::Bytes(text) => text,
    };
    let collation = charset::collation(collation);
    let mut unknown = false;
    for member in list {
        rows.tick()?;
        match &member.kind {
            Kind::Const(Value::Bytes(other)) => {
                if collation.eq(text, other) {
                    return Ok(Some(Some(true)));
                }
            }
            Kind::Const(Value::Null) => unknown = true,
            _ => return Ok(None),
        }
    }
    Ok(Some(if unknown { None } else { Some(false) }))
}

/// The whole number that an expression is, if it lies somewhere.
#[inline]
pub(crate) fn whole_number(e: &Expr, rows: &impl Rows) -> Option<i64> {
    match in_place_number::number(e, rows) {
        Ok(Number::Integer(n)) => Some(n),
        _ => None,
    }
}

/// Appends an expression's hash key; whether it is NULL.
pub(crate) fn write_key(
    e: &Expr,
    collation: u16,
    cx: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> ExecResult<bool> {
    match text(e, cx)? {
        Text::Bytes(text) => {
            hash_key::write_text(text, collation, out);
            return Ok(false);
        }
        Text::Null | Text::Other => {}
    }
    if in_place_number::write_key(e, cx, out)? {
        return Ok(false);
    }
    let value = e.eval(cx)?;
    hash_key::write(&value, collation, out);
    Ok(matches!(value, Value::Null))
}
