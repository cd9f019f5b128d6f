//! Collations of operands that stand together: which decides, and the errors of those that conflict.
//!
//! Not the types of results (`types`), which ask here. Pure.

use super::types::{BINARY, Coercibility, ExprType, Family};
use crate::error::{SqlError, SqlResult};
use omnibus_value::ColumnKind;

/// The collation of an operation on two strings, and its strength; error 1267 if they conflict.
pub fn merge_collations(
    a: (u16, Coercibility),
    b: (u16, Coercibility),
    operation: &str,
) -> SqlResult<(u16, Coercibility)> {
    let conflict =
        || SqlError::cant_aggregate_2collations(describe_collation(a), describe_collation(b), operation);
    let merged = match () {
        () if a.0 == b.0 => (a.0, a.1.min(b.1)),
        () if a.1 != b.1 => {
            let (stronger, weaker) = if a.1 < b.1 { (a, b) } else { (b, a) };
            if !takes_in(stronger, weaker) {
                return Err(conflict());
            }
            stronger
        }
        () if a.0 == BINARY || b.0 == BINARY => (BINARY, a.1),
        () => {
            let same_set = super::charset::charset_name(a.0) == super::charset::charset_name(b.0);
            match super::charset::prefer(a.0, b.0) {
                _ if same_set && a.1 == Coercibility::Explicit => return Err(conflict()),
                Some(collation) => (collation, a.1),
                None if a.1 >= Coercibility::Literal => a,
                // Text of two collations may be put together, but has none to be compared under.
                None if same_set => (super::charset::binary_of(a.0), Coercibility::None),
                None => return Err(conflict()),
            }
        }
    };
    if merged.1 == Coercibility::None && COMPARING.contains(&operation) {
        return Err(conflict());
    }
    Ok(merged)
}

/// Whether text of the weaker collation may be converted for the stronger one: to Unicode and among bytes always, else only what
/// is weak by nature, as literals are.
fn takes_in(stronger: (u16, Coercibility), weaker: (u16, Coercibility)) -> bool {
    use super::charset::charset_name;
    let set = charset_name(stronger.0);
    let other = charset_name(weaker.0);
    weaker.1 >= Coercibility::SystemConstant
        || set == other
        || set.starts_with("utf8")
        || [set, other].contains(&"binary")
        || other == "ascii"
}

/// The name of an operation that only puts text together.
const TOGETHER: &str = "";

/// The error of operands whose collations conflict.
pub fn mixed(texts: &[(u16, Coercibility)], operation: &str) -> SqlError {
    let described: Vec<String> = texts.iter().map(|text| describe_collation(*text)).collect();
    match &described[..] {
        [a, b] => SqlError::cant_aggregate_2collations(a, b, operation),
        [a, b, c] => SqlError::cant_aggregate_3collations(a, b, c, operation),
        _ => SqlError::cant_aggregate_ncollations(operation),
    }
}

/// Operations that need a collation; the others only put text together.
const COMPARING: [&str; 17] = [
    "=",
    "case",
    "in",
    "between",
    "field",
    "find_in_set",
    "instr",
    "locate",
    "position",
    "regexp_instr",
    "regexp_like",
    "replace",
    "strcmp",
    "substring_index",
    "trim",
    "ltrim",
    "rtrim",
];

fn describe_collation((id, coercibility): (u16, Coercibility)) -> String {
    let strength = match coercibility {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::None => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SystemConstant => "SYSCONST",
        Coercibility::Literal => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    };
    format!("{},{strength}", super::charset::collation_name(id))
}

/// The collation of several string arguments: those that are strings decide; with none of them,
/// `fallback`.
pub fn merge_all<'a>(
    types: impl IntoIterator<Item = &'a ExprType>,
    fallback: u16,
    operation: &str,
) -> SqlResult<(u16, Coercibility)> {
    let mut merged: Option<(u16, Coercibility)> = None;
    let (mut only_null, mut texts, mut conflict) = (None, Vec::new(), false);
    for ty in types {
        only_null = Some(only_null.unwrap_or(true) && ty.is_null());
        let this = match ty.family() {
            // Bits are bytes where text is wanted.
            _ if ty.column.kind == ColumnKind::Bit => (BINARY, Coercibility::Implicit),
            Family::String | Family::Json if !ty.is_null() => (ty.column.collation, ty.coercibility),
            _ => continue,
        };
        texts.push(this);
        merged = match merged {
            None => Some(this),
            Some(before) => match merge_collations(before, this, TOGETHER) {
                Ok(both) => Some(both),
                Err(_) => {
                    conflict = true;
                    merged
                }
            },
        };
    }
    let compared = COMPARING.contains(&operation);
    if conflict || compared && merged.is_some_and(|(_, strength)| strength == Coercibility::None) {
        return Err(mixed(&texts, operation));
    }
    Ok(merged.unwrap_or(match only_null {
        Some(true) => (BINARY, Coercibility::Ignorable),
        _ => (fallback, Coercibility::Literal),
    }))
}
