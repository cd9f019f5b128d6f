//! Text where it lies: constants, and columns of the rows in the frame, compared and hashed without a copy of the value.
//!
//! A `Value` of text shares its row's memory, and taking and dropping a share are two atomic operations, more than comparing a
//! short text costs. Everything else is evaluated.

use super::context::{Context, Row, Slot};
use super::functions::string::FixedPart;
use super::node::{CompareOp, Expr, Kind};
use super::{charset, hash_key, in_place_number};
use crate::api::sql_mode;
use crate::error::ExecResult;
use omnibus_value::{ColumnKind, Value};

/// What an expression is without evaluating it.
pub(crate) enum Text<'r> {
    /// Text, or bytes.
    Bytes(&'r [u8]),
    /// NULL.
    Null,
    /// Nobody knows yet.
    Other,
}

impl Context<'_> {
    /// An expression's text, if it lies somewhere.
    #[inline]
    pub(crate) fn text_in_place<'r>(&'r self, e: &'r Expr) -> ExecResult<Text<'r>> {
        match &e.kind {
            Kind::Const(Value::Bytes(text)) => Ok(Text::Bytes(text)),
            Kind::Column { slot, column, .. } if self.is_stored_text(e) => {
                text_of(&self.frame[usize::from(*slot)], *column)
            }
            Kind::Call(def, args) => match FixedPart::of(def, args) {
                Some(part) => Ok(match self.text_in_place(&args[0])? {
                    Text::Bytes(text) => Text::Bytes(part.cut(text, e.ty.column.collation)),
                    other => other,
                }),
                None => Ok(Text::Other),
            },
            _ => Ok(Text::Other),
        }
    }

    #[inline]
    fn is_stored_text(&self, e: &Expr) -> bool {
        use ColumnKind as K;
        match e.ty.column.kind {
            K::Char => self.session.settings.sql_mode & sql_mode::PAD_CHAR_TO_FULL_LENGTH == 0,
            K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText => true,
            K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob => true,
            _ => false,
        }
    }

    /// Gives a column's text to `use_it`, which may do what needs the statement, but reads no row of the same slot. `None` if the text
    /// does not lie in a row.
    pub(crate) fn with_text<T>(
        &mut self,
        e: &Expr,
        use_it: impl FnOnce(Option<&[u8]>, &mut Context<'_>) -> ExecResult<T>,
    ) -> ExecResult<Option<T>> {
        let Kind::Column { slot, column, .. } = &e.kind else { return Ok(None) };
        if !self.is_stored_text(e) {
            return Ok(None);
        }
        let place = usize::from(*slot);
        let held = std::mem::take(&mut self.frame[place]);
        let result = match text_of(&held, *column) {
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
fn text_of(slot: &Slot, column: u16) -> ExecResult<Text<'_>> {
    let image = match &slot.row {
        Row::Image(image) => image,
        Row::Keyed(row) => &row.1,
        Row::Values(values) => {
            return Ok(match values.get(usize::from(column)) {
                Some(Value::Bytes(text)) => Text::Bytes(text),
                Some(Value::Null) | None => Text::Null,
                Some(_) => Text::Other,
            });
        }
        Row::Nulls | Row::Unset => return Ok(Text::Null),
    };
    let Some(table) = &slot.table else { return Ok(Text::Null) };
    Ok(match table.text_of(image, usize::from(column))? {
        None => Text::Other,
        Some(None) => Text::Null,
        Some(Some(text)) => Text::Bytes(text),
    })
}

/// Compares two texts; `None` if they must be evaluated first.
#[inline]
pub(super) fn compare(
    op: CompareOp,
    collation: u16,
    pair: &[Expr; 2],
    cx: &Context<'_>,
) -> ExecResult<Option<Option<bool>>> {
    let left = match cx.text_in_place(&pair[0])? {
        Text::Other => return Ok(None),
        left => left,
    };
    let right = cx.text_in_place(&pair[1])?;
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
    cx: &Context<'_>,
) -> ExecResult<Option<Option<bool>>> {
    let text = match cx.text_in_place(operand)? {
        Text::Other => return Ok(None),
        Text::Null => return Ok(Some(None)),
        Text::Bytes(text) => text,
    };
    let mut unknown = false;
    for member in list {
        cx.tick()?;
        match &member.kind {
            Kind::Const(Value::Bytes(other)) => {
                if charset::compare(text, other, collation).is_eq() {
                    return Ok(Some(Some(true)));
                }
            }
            Kind::Const(Value::Null) => unknown = true,
            _ => return Ok(None),
        }
    }
    Ok(Some(if unknown { None } else { Some(false) }))
}

/// Appends an expression's hash key; whether it is NULL.
pub(crate) fn write_key(
    e: &Expr,
    collation: u16,
    cx: &mut Context<'_>,
    out: &mut Vec<u8>,
) -> ExecResult<bool> {
    match cx.text_in_place(e)? {
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
