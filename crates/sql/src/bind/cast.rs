//! CAST, CONVERT and COLLATE.

use super::Binder;
use super::calls::in_utf8;
use super::operators::{as_text, binary_string, chosen_number, dated_extreme};
use crate::error::{SqlError, SqlResult};
use crate::expr::charset;
use crate::expr::node::{Expr, Kind};
use crate::expr::types::{BINARY, Coercibility, ExprType, Family, bytes, column_type, refuse_fixed};
use omnibus_parser::ast::{self, CastType};
use omnibus_parser::print;
use omnibus_value::{ColumnKind, FixedKind, collation};

/// The type of text of a given length, or of as much as the operand's has.
fn text_type(operand: &ExprType, kind: ColumnKind, length: Option<u32>, collation: u16) -> ExprType {
    match length {
        Some(length) => ExprType {
            column: column_type(kind, false, length, 0, collation),
            nullable: true,
            coercibility: Coercibility::Implicit,
        },
        None => {
            let length = if collation == BINARY { bytes(operand) } else { operand.display_length() };
            ExprType::varchar(length, collation).coercible(Coercibility::Implicit)
        }
    }
}

/// An error of a type whose text has no name yet.
fn named(mut error: SqlError, name: &str) -> SqlError {
    if error.code != 1426 {
        return error;
    }
    error.message = error.message.replacen("''", &format!("'{name}'"), 1);
    error
}

/// The type of `DECIMAL(precision, scale)`.
fn decimal_type(precision: u8, scale: u8) -> SqlResult<ExprType> {
    if scale > precision {
        return Err(SqlError::m_bigger_than_d(""));
    }
    if precision > 65 {
        return Err(SqlError::too_big_precision(i64::from(precision), "", 65));
    }
    if scale > 30 {
        let text = format!("Too big scale {scale} specified for column ''. Maximum is 30.");
        return Err(SqlError::new(1425, b"42000", text));
    }
    Ok(ExprType::decimal(u32::from(precision), scale))
}

/// `CAST(.. AS type)`.
pub(super) fn cast(binder: &mut Binder<'_>, operand: &ast::Expr, target: &CastType) -> SqlResult<Expr> {
    let mut e = binder.expr(operand)?;
    if matches!(target, CastType::Json) {
        e = in_utf8(binder, e);
    }
    if let Some(operation) = number_cast(target) {
        refuse_fixed(&e.ty, operation)?;
        e = dated_extreme(binder, e);
    }
    let nullable = e.ty.nullable;
    let collation = binder.collation();
    if let CastType::Float(Some(digits @ 54..)) = target {
        return Err(SqlError::too_big_precision(i64::from(*digits), "CAST", 53));
    }
    if let CastType::Time(digits @ 7..) | CastType::DateTime(digits @ 7..) = target {
        return Err(SqlError::too_big_precision(i64::from(*digits), "CAST", 6));
    }
    let ty = match target {
        CastType::Signed => ExprType::bigint(),
        CastType::Unsigned => ExprType::ubigint(),
        CastType::Binary(length) => text_type(&e.ty, ColumnKind::Binary, *length, BINARY),
        CastType::Char { length, charset, binary } => {
            let collation = match charset {
                Some(name) => charset_by_name(binder, name)?,
                None => collation,
            };
            let collation = if *binary { charset::binary_of(collation) } else { collation };
            let kind = if collation == BINARY { ColumnKind::Binary } else { ColumnKind::Char };
            text_type(&e.ty, kind, *length, collation)
        }
        CastType::NChar(length) => text_type(&e.ty, ColumnKind::Char, *length, 33),
        CastType::Date => ExprType::date().nullable(true),
        CastType::Time(decimals) => ExprType::time(*decimals).nullable(true),
        CastType::DateTime(decimals) => ExprType::datetime(*decimals).nullable(true),
        CastType::DateTimeAt { .. } => return super::cast_at::bind(binder, operand, e, target),
        CastType::Decimal { precision, scale } => {
            let written = || String::from_utf8_lossy(&print::sql(operand)).into_owned();
            decimal_type(*precision, *scale).map_err(|error| named(error, &written()))?
        }
        CastType::Float(_) => {
            let mut ty = ExprType::double();
            ty.column.kind = ColumnKind::Float;
            ty.column.length = 12;
            ty
        }
        CastType::Double => ExprType::double(),
        CastType::Year => {
            let mut ty = ExprType::int(4).nullable(true);
            ty.column.kind = ColumnKind::Year;
            ty.column.unsigned = true;
            ty
        }
        CastType::Json => ExprType::json().nullable(true),
        CastType::Array(member) => return super::cast_array::bind(binder, e, member),
        CastType::Uuid => ExprType::fixed(FixedKind::Uuid).nullable(true),
        CastType::Inet4 => ExprType::fixed(FixedKind::Inet4).nullable(true),
        CastType::Inet6 => ExprType::fixed(FixedKind::Inet6).nullable(true),
    };
    refuse_endless(binder, target, &ty)?;
    if matches!(target, CastType::Decimal { .. } | CastType::Float(_) | CastType::Double) {
        e = chosen_number(binder, e, &ty);
    }
    // Bytes may be no text.
    let bytes = e.ty.family() == Family::String && e.ty.column.collation == BINARY
        || e.ty.column.kind == ColumnKind::Bit;
    let taken = bytes && ty.family() == Family::String && ty.column.collation != BINARY;
    let nullable = nullable || ty.nullable || taken;
    Ok(binder.fold(Expr { kind: Kind::Cast(Box::new(e)), ty: ty.nullable(nullable) }))
}

/// Fails if the bytes of a text of a given length do not fit 32 bits.
fn refuse_endless(binder: &Binder<'_>, target: &CastType, ty: &ExprType) -> SqlResult<()> {
    let (CastType::Char { length: Some(length), .. } | CastType::NChar(Some(length))) = target else {
        return Ok(());
    };
    let most = collation::by_id_or_binary(ty.column.collation).charset.max_len() as u64;
    match !binder.session.settings.mariadb && u64::from(*length) * most > u64::from(u32::MAX) {
        true => Err(SqlError::new(1690, b"22003", "char(n) value is out of range in 'cast_as_char'")),
        false => Ok(()),
    }
}

pub(super) fn convert_using(binder: &mut Binder<'_>, operand: &ast::Expr, charset: &str) -> SqlResult<Expr> {
    let e = binder.expr(operand)?;
    let collation = charset_by_name(binder, charset)?;
    if collation == BINARY {
        return Ok(binary_string(e));
    }
    let e = as_text(e);
    let mut ty = ExprType::varchar(e.ty.display_length(), collation).nullable(true);
    ty.coercibility = Coercibility::Implicit;
    Ok(binder.fold(Expr { kind: Kind::Transcode(Box::new(e)), ty }))
}

pub(super) fn collate(binder: &mut Binder<'_>, operand: &ast::Expr, name: &str) -> SqlResult<Expr> {
    let e = as_text(binder.expr(operand)?);
    let of = e.ty.column.collation;
    let found = collation::by_name_in(collation::by_id_or_binary(of).charset, name);
    let collation = found.ok_or_else(|| SqlError::unknown_collation(name))?;
    if charset::charset_name(of) != collation.charset.name() && !matches!(e.kind, Kind::Text(_)) {
        return Err(SqlError::new(
            1253,
            b"42000",
            format!(
                "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                collation.name,
                charset::charset_name(of)
            ),
        ));
    }
    let mut ty = e.ty.clone();
    ty.column.collation = collation.id;
    ty.coercibility = Coercibility::Explicit;
    Ok(Expr { kind: Kind::Retype(Box::new(e)), ty })
}

/// The default collation of a character set.
/// The collation that a character set's name stands for in an expression.
pub(super) fn charset_by_name(binder: &Binder<'_>, name: &str) -> SqlResult<u16> {
    match collation::Charset::by_name(name) {
        Some(collation::Charset::Utf8mb4) => Ok(binder.session.settings.default_collation_for_utf8mb4),
        Some(set) => Ok(set.default_collation().id),
        None => Err(SqlError::unknown_character_set(name)),
    }
}

/// MariaDB's name of a cast to a number or a time.
fn number_cast(target: &CastType) -> Option<&'static str> {
    Some(match target {
        CastType::Signed => "cast_as_signed",
        CastType::Unsigned => "cast_as_unsigned",
        CastType::Decimal { .. } => "decimal_typecast",
        CastType::Float(_) | CastType::Double => "double_typecast",
        CastType::Date => "cast_as_date",
        CastType::Time(_) => "cast_as_time",
        CastType::DateTime(_) => "cast_as_datetime",
        _ => return None,
    })
}
