//! Binds JSON_VALUE: its type, its path, and the values of DEFAULT.

use super::binder::Binder;
use super::calls;
use super::cast;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::json::failure;
use crate::expr::json_value::{Instead, JsonValue, default_value};
use crate::expr::types::{Coercibility, ExprType};
use crate::expr::{Expr, Kind};
use omnibus_parser::ast::{self, CastType, JsonValueInstead, Literal};
use omnibus_value::collation::BINARY_ID;
use omnibus_value::json::Path;
use omnibus_value::{ColumnKind, ColumnType};

/// The collation of what is returned as text without a character set.
const UTF8MB4_0900_BIN: u16 = 309;

/// A call.
pub(super) fn json_value(binder: &mut Binder<'_>, call: &ast::JsonValue) -> SqlResult<Expr> {
    let doc = binder.expr(&call.doc)?;
    let doc = calls::in_utf8(binder, doc);
    let path = Path::parse(&call.path).map_err(|error| failure(&error, 2, "json_value"))?;
    let ty = returned(binder, call.ty.as_ref())?;
    let column = Column::free("json_value", stored_type(&ty.column));
    let on_empty = json_value_instead(binder, &call.on_empty, &column)?;
    let on_error = json_value_instead(binder, &call.on_error, &column)?;
    let path_text = String::from_utf8_lossy(&call.path).into();
    let call = JsonValue { doc, path, path_text, on_empty, on_error, column };
    let expr = Expr { kind: Kind::JsonValue(Box::new(call)), ty };
    Ok(binder.fold(expr))
}

/// RETURNING; text without a character set is utf8mb4.
fn returned(binder: &mut Binder<'_>, ty: Option<&CastType>) -> SqlResult<ExprType> {
    let text = |length: Option<u32>, collation| {
        let ty = ExprType::varchar(length.unwrap_or(u32::MAX), collation);
        ty.coercible(Coercibility::Implicit).nullable(true)
    };
    Ok(match ty {
        None => text(Some(512), UTF8MB4_0900_BIN),
        Some(CastType::Char { length, charset: None, binary: false }) => text(*length, UTF8MB4_0900_BIN),
        Some(CastType::Binary(None)) => text(None, BINARY_ID),
        Some(ty) => {
            let null = cast::cast(binder, &ast::Expr::Literal(Literal::Null), ty)?;
            match ty {
                CastType::Char { length, .. } | CastType::NChar(length) => {
                    text(*length, null.ty.column.collation)
                }
                _ => null.ty.nullable(true),
            }
        }
    })
}

fn json_value_instead(
    binder: &mut Binder<'_>,
    tree: &JsonValueInstead,
    column: &Column,
) -> SqlResult<Instead> {
    let tree = match tree {
        JsonValueInstead::Null => return Ok(Instead::Null),
        JsonValueInstead::Error => return Ok(Instead::Error),
        JsonValueInstead::Default(tree) => tree,
    };
    let bound = binder.expr(tree)?;
    let value = binder.evaluate(&bound).ok_or_else(|| SqlError::wrong_arguments("DEFAULT"))?;
    default_value(value, &bound.ty.column, column, &mut binder.session.aside()).map(Instead::Default)
}

/// Text that is too long is an error as in a column of its length, and keeps its spaces.
fn stored_type(ty: &ColumnType) -> ColumnType {
    let mut stored = ty.clone();
    stored.kind = match ty.kind {
        ColumnKind::Char | ColumnKind::VarChar if ty.length == u32::MAX => ColumnKind::LongText,
        ColumnKind::Char => ColumnKind::VarChar,
        ColumnKind::Binary | ColumnKind::VarBinary if ty.length == u32::MAX => ColumnKind::LongBlob,
        ColumnKind::Binary => ColumnKind::VarBinary,
        kind => kind,
    };
    stored
}
