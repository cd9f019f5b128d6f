//! The type that holds the values of several expressions: of UNION's columns, and of what CASE and its kin choose among.
//!
//! Integers get the narrowest type that holds both; reals keep fixed decimals if all have them. Pure, used when a statement is bound.

use super::mix::merge_collations;
use super::types::{BINARY, Coercibility, ExprType, Family, NOT_FIXED, bytes, illegal_types, string_column};
use crate::error::{SqlError, SqlResult};
use omnibus_value::ColumnKind;

/// The type that holds values of both: UNION, CASE, IF, COALESCE, GREATEST.
pub fn unify(a: &ExprType, b: &ExprType, operation: &str) -> SqlResult<ExprType> {
    if operation != "UNION" && (a.has_labels() || b.has_labels()) {
        return unify(&a.clone().as_chosen(), &b.clone().as_chosen(), operation);
    }
    if a.is_null() {
        return Ok(chosen(b.clone(), operation).nullable(true));
    }
    if b.is_null() {
        return Ok(chosen(a.clone(), operation).nullable(true));
    }
    let nullable = a.nullable || b.nullable;
    if a.column == b.column {
        let coercibility = a.coercibility.min(b.coercibility);
        return Ok(chosen(a.clone(), operation).nullable(nullable).coercible(coercibility));
    }
    Ok(match (a.family(), b.family()) {
        (Family::Fixed, Family::String) => a.clone().nullable(true),
        (Family::String, Family::Fixed) => b.clone().nullable(true),
        (Family::Fixed, _) | (_, Family::Fixed) => return Err(illegal_types(a, b, operation)),
        (Family::Integer, Family::Integer) => unify_integers(a, b),
        (Family::Integer | Family::Decimal, Family::Integer | Family::Decimal) => {
            let scale = a.scale().max(b.scale());
            ExprType::decimal(whole_digits(a).max(whole_digits(b)) + u32::from(scale), scale)
        }
        (
            Family::Integer | Family::Decimal | Family::Real,
            Family::Integer | Family::Decimal | Family::Real,
        ) => unify_reals(a, b),
        (Family::Date, Family::Date) => ExprType::date(),
        (Family::Time, Family::Time) => ExprType::time(a.column.decimals.max(b.column.decimals)),
        (Family::Date | Family::DateTime | Family::Time, Family::Date | Family::DateTime | Family::Time) => {
            let mut ty = ExprType::datetime(a.column.decimals.max(b.column.decimals));
            if [a.column.kind, b.column.kind] == [ColumnKind::Timestamp; 2] {
                ty.column.kind = ColumnKind::Timestamp;
            }
            ty
        }
        (Family::Json, Family::Json) => ExprType::json(),
        _ => unify_strings(a, b, operation)?,
    }
    .nullable(nullable || a.family() == Family::Fixed || b.family() == Family::Fixed))
}

/// The type of values that all have it: what is chosen fills nothing with zeros, and a DECIMAL has a sign.
fn alone(mut ty: ExprType) -> ExprType {
    ty.column.zerofill = false;
    match ty.column.kind {
        ColumnKind::Int | ColumnKind::BigInt => {
            ty.column.kind = integer_kind(&ty);
            ty.column.length = ty.display_length();
        }
        ColumnKind::Decimal => ty.column.unsigned = false,
        _ => {}
    }
    ty
}

/// The type of one value of several that all have it, as functions choose it: of variable length.
fn chosen(ty: ExprType, operation: &str) -> ExprType {
    let mut ty = alone(ty);
    if matches!(operation, "UNION" | "VALUES") || ty.family() != Family::String {
        return ty;
    }
    let length = if ty.column.kind.is_lob() { u32::MAX } else { ty.column.length };
    ty.column = string_column(length, ty.column.collation);
    ty
}

/// Whether an integer is one that is written or computed, whose type says how wide it is.
fn is_narrow(ty: &ExprType) -> bool {
    ty.column.kind == ColumnKind::Int && integer_kind(ty) == ColumnKind::BigInt
}

/// Characters of a value, of a computed integer those of its digits.
fn characters(ty: &ExprType) -> u32 {
    if is_narrow(ty) { ty.column.length.saturating_sub(1).max(1) } else { ty.display_length() }
}

/// Digits before the decimal point.
fn whole_digits(ty: &ExprType) -> u32 {
    match ty.column.kind {
        ColumnKind::Bit => ty.column.length,
        _ if is_narrow(ty) => characters(ty),
        _ => ty.integer_part(),
    }
}

/// The kind of an integer. What an expression gives is a BIGINT, though it says by its width that an INT could hold it.
fn integer_kind(ty: &ExprType) -> ColumnKind {
    match ty.column.kind {
        ColumnKind::Int if !ty.is_unsigned() && ty.column.length <= 10 => ColumnKind::BigInt,
        kind => kind,
    }
}

fn unify_reals(a: &ExprType, b: &ExprType) -> ExprType {
    use ColumnKind as K;
    // INT and DECIMAL have more digits than a FLOAT; that BIGINT has them, too, is minded in front of it alone.
    let is_single = |ty: &ExprType| {
        matches!(ty.column.kind, K::Float | K::TinyInt | K::SmallInt | K::MediumInt | K::Year)
    };
    let mut ty = ExprType::double();
    if is_single(a) && (is_single(b) || integer_kind(b) == K::BigInt) {
        (ty.column.kind, ty.column.length) = (K::Float, 12);
    }
    let (x, y) = (a.fixed_decimals(), b.fixed_decimals());
    if x < NOT_FIXED && y < NOT_FIXED {
        let whole = |ty: &ExprType, decimals: u8| {
            let length = if ty.family() == Family::Real { ty.column.length } else { characters(ty) };
            length.saturating_sub(decimals.into())
        };
        ty.column.decimals = x.max(y);
        ty.column.length = whole(a, x).max(whole(b, y)) + u32::from(ty.column.decimals);
    }
    ty
}

fn unify_integers(a: &ExprType, b: &ExprType) -> ExprType {
    use ColumnKind as K;
    let kinds = [integer_kind(a), integer_kind(b)];
    let wide = if integer_bytes(kinds[0]) >= integer_bytes(kinds[1]) { kinds[0] } else { kinds[1] };
    let mixed = a.is_unsigned() != b.is_unsigned();
    let kind = match wide {
        _ if kinds == [K::Bit, K::Bit] => K::Bit,
        _ if kinds.contains(&K::Bit) && mixed => {
            return ExprType::decimal(whole_digits(a).max(whole_digits(b)), 0);
        }
        _ if kinds.contains(&K::Bit) => K::BigInt,
        K::Year | K::TinyInt if kinds.contains(&K::Year) => K::SmallInt,
        // A signed type must hold the unsigned one.
        kind if mixed && (if a.is_unsigned() { kinds[0] } else { kinds[1] }) == kind => match kind {
            K::TinyInt => K::SmallInt,
            K::SmallInt => K::MediumInt,
            K::MediumInt => K::Int,
            K::Int => K::BigInt,
            _ => return ExprType::decimal(20, 0),
        },
        kind => kind,
    };
    let unsigned = !mixed && a.is_unsigned() && kind != K::Bit;
    let mut ty = ExprType::bigint();
    (ty.column.kind, ty.column.unsigned) = (kind, unsigned);
    ty.column.length = match kind {
        K::Bit => a.column.length.max(b.column.length),
        K::BigInt => 20,
        _ => ty.display_length(),
    };
    ty
}

fn integer_bytes(kind: ColumnKind) -> u8 {
    match kind {
        ColumnKind::TinyInt | ColumnKind::Year => 1,
        ColumnKind::SmallInt => 2,
        ColumnKind::MediumInt => 3,
        ColumnKind::Int => 4,
        _ => 8,
    }
}

fn unify_strings(a: &ExprType, b: &ExprType, operation: &str) -> SqlResult<ExprType> {
    let bits = |ty: &ExprType| ty.column.kind == ColumnKind::Bit;
    let string = |ty: &ExprType| ty.family() == Family::String || bits(ty);
    // Bits are bytes where text is wanted.
    let side = |ty: &ExprType| match bits(ty) {
        true => (BINARY, Coercibility::Implicit),
        false => (ty.column.collation, ty.coercibility),
    };
    let json = |ty: &ExprType| ty.family() == Family::Json;
    let is_bytes = |ty: &ExprType| string(ty) && side(ty).0 == BINARY;
    let (collation, coercibility) = match (string(a), string(b)) {
        // A document's text compares by bytes.
        _ if json(a) && !is_bytes(b) || json(b) && !is_bytes(a) => {
            (crate::expr::json::COLLATION, Coercibility::Implicit)
        }
        (true, true) => match merge_collations(side(a), side(b), operation) {
            Ok((_, Coercibility::None)) | Err(_) if operation == "UNION" => {
                return Err(SqlError::cant_aggregate_ncollations(operation));
            }
            merged => merged?,
        },
        (true, false) => side(a),
        (false, true) => side(b),
        (false, false) => (crate::catalog::charset::server_default(), Coercibility::Literal),
    };
    let length = |ty| if collation == BINARY { bytes(ty) } else { characters(ty) };
    let mut length = length(a).max(length(b));
    // A choice among long texts is as long as text can be.
    if !matches!(operation, "UNION" | "VALUES") && (a.column.kind.is_lob() || b.column.kind.is_lob()) {
        length = u32::MAX;
    }
    Ok(ExprType { column: string_column(length, collation), nullable: false, coercibility })
}
