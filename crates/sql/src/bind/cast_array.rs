//! `CAST(document AS type ARRAY)`: what a multi-valued index is over, and nothing else may have.

use super::binder::Binder;
use super::block::Clause;
use super::calls;
use super::cast::cast;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, ExprType, functions};
use omnibus_parser::ast::{self, CastType};
use omnibus_value::Value;

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
    if matches!(member, C::Json | C::Array(_) | C::Year | C::Float(_) | C::Double) {
        return Err(SqlError::not_supported_yet("CAST-ing data to array of this type"));
    }
    let ty: ExprType = cast(binder, &ast::Expr::Literal(ast::Literal::Null), member)?.ty;
    let typed = Expr::constant(Value::Null, ty);
    calls::call_function(binder, functions::CAST_ARRAY, vec![document, typed])
}
