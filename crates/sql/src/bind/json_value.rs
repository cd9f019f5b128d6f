//! Binds JSON_VALUE: its type, its path, and the values of DEFAULT.

use super::binder::Binder;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::json::failure;
use crate::expr::json_value::{Instead, JsonValue, default_value};
use crate::expr::types::{Coercibility, ExprType};
use crate::expr::{Expr, Kind, json};
use omnibus_parser::ast::{self, CastType, JsonValueInstead, Literal};
use omnibus_value::collation::BINARY_ID;
use omnibus_value::json::Path;
use omnibus_value::{ColumnKind, ColumnType};

impl Binder<'_> {
    /// A call.
    pub(super) fn json_value(&mut self, call: &ast::JsonValue) -> SqlResult<Expr> {
        let doc = self.expr(&call.doc)?;
        let doc = self.in_utf8(doc);
        let path = Path::parse(&call.path).map_err(|error| failure(&error, 2, "json_value"))?;
        let ty = self.returned(call.ty.as_ref())?;
        let column = Column::free("json_value", stored_type(&ty.column));
        let on_empty = self.json_value_instead(&call.on_empty, &column)?;
        let on_error = self.json_value_instead(&call.on_error, &column)?;
        let path_text = String::from_utf8_lossy(&call.path).into();
        let call = JsonValue { doc, path, path_text, on_empty, on_error, column };
        let expr = Expr { kind: Kind::JsonValue(Box::new(call)), ty };
        Ok(self.fold(expr))
    }

    /// RETURNING; text without a character set is utf8mb4.
    fn returned(&mut self, ty: Option<&CastType>) -> SqlResult<ExprType> {
        let text = |length: Option<u32>, collation| {
            let ty = ExprType::varchar(length.unwrap_or(u32::MAX), collation);
            ty.coercible(Coercibility::Implicit).nullable(true)
        };
        Ok(match ty {
            None => text(Some(512), json::COLLATION),
            Some(CastType::Char { length, charset: None }) => text(*length, json::COLLATION),
            Some(CastType::Binary(None)) => text(None, BINARY_ID),
            Some(ty) => {
                let null = self.cast(&ast::Expr::Literal(Literal::Null), ty)?;
                match ty {
                    CastType::Char { length, .. } | CastType::NChar(length) => {
                        text(*length, null.ty.column.collation)
                    }
                    _ => null.ty.nullable(true),
                }
            }
        })
    }

    fn json_value_instead(&mut self, tree: &JsonValueInstead, column: &Column) -> SqlResult<Instead> {
        let tree = match tree {
            JsonValueInstead::Null => return Ok(Instead::Null),
            JsonValueInstead::Error => return Ok(Instead::Error),
            JsonValueInstead::Default(tree) => tree,
        };
        let bound = self.expr(tree)?;
        let value = self.evaluate(&bound).ok_or_else(|| SqlError::wrong_arguments("DEFAULT"))?;
        default_value(value, &bound.ty.column, column, &mut self.session.aside()).map(Instead::Default)
    }
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
