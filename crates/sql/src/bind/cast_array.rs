//! `CAST(document AS type ARRAY)`: what a multi-valued index is over, and nothing else may have.

use super::binder::Binder;
use super::block::Clause;
use super::calls;
use super::cast::cast;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, ExprType, functions};
use omnibus_parser::ast::{self, CastType};
use omnibus_value::Value;

/// Characters of the longest VARCHAR of utf8mb4.
const LONGEST: u32 = 16383;

/// Binds it where an index is defined.
///
/// # Errors
/// 1235 elsewhere.
pub(super) fn bind(binder: &mut Binder<'_>, document: Expr, member: &CastType) -> SqlResult<Expr> {
    if binder
        .blocks
        .last()
        .is_none_or(|block| !matches!(block.clause, Clause::Generated | Clause::Functional))
    {
        let what = "Use of CAST( .. AS .. ARRAY) outside of functional index in CREATE(non-SELECT)/ALTER TABLE or in general expressions";
        return Err(SqlError::not_supported_yet(what));
    }
    use CastType as C;
    let refused = match member {
        C::Json | C::Array(_) => Some("this type"),
        C::Year => Some("YEAR"),
        C::Float(_) => Some("FLOAT"),
        C::Double => Some("DOUBLE"),
        C::Char { charset: Some(_), .. } => {
            return Err(SqlError::not_supported_yet("specifying charset for multi-valued index"));
        }
        C::Char { length, .. } | C::Binary(length) | C::NChar(length)
            if length.is_none_or(|length| length > LONGEST) =>
        {
            Some("char/binary BLOBs")
        }
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(SqlError::not_supported_yet(format!("CAST-ing data to array of {refused}")));
    }
    let ty: ExprType = cast(binder, &ast::Expr::Literal(ast::Literal::Null), member)?.ty;
    let typed = Expr::constant(Value::Null, ty);
    calls::call_function(binder, functions::CAST_ARRAY, vec![document, typed])
}
