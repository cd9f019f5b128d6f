//! SET STATEMENT .. FOR of a MariaDB source, whose log has the text as it was written.
//!
//! Most of what it sets is in the statement's context as well, or changes nothing but how the source did it. The rest is set here.

use crate::api::SessionSettings;
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{Expr, Literal, SetItem, SetValue};

/// Sets what the context does not carry and what changes the statement's outcome.
///
/// # Errors
/// 1235 for a variable that would, and that a replica cannot set.
pub(super) fn set(settings: &mut SessionSettings, items: &[SetItem]) -> SqlResult<()> {
    for item in items {
        let SetItem::System { name, value, .. } = item else { continue };
        let name = name.to_ascii_lowercase();
        let number = || match value {
            SetValue::Expr(Expr::Literal(Literal::Int(number))) => Ok(*number),
            _ => {
                Err(SqlError::not_supported_yet(format!("SET STATEMENT {name} = (expression) from a source")))
            }
        };
        match name.as_str() {
            "group_concat_max_len" => settings.group_concat_max_len = number()?.max(4),
            "div_precision_increment" => {
                settings.div_precision_increment = u8::try_from(number()?).unwrap_or(30).min(30);
            }
            "max_recursive_iterations" | "cte_max_recursion_depth" => {
                settings.cte_max_recursion_depth = number()?;
            }
            "default_week_format" => settings.default_week_format = number()?.min(7) as u8,
            "old_mode" | "sql_select_limit" => {
                return Err(SqlError::not_supported_yet(format!("SET STATEMENT {name} from a source")));
            }
            _ => {}
        }
    }
    Ok(())
}
