//! Expressions that give a truth value, and no number that stands for one.

use super::{BinaryOp, Expr, Literal, UnaryOp};

/// Functions that do.
const FUNCTIONS: [&str; 14] = [
    "gtid_subset",
    "is_ipv4",
    "is_ipv4_compat",
    "is_ipv4_mapped",
    "is_ipv6",
    "is_uuid",
    "isnull",
    "json_contains",
    "json_contains_path",
    "json_overlaps",
    "json_schema_valid",
    "json_valid",
    "regexp_like",
    "strcmp",
];

/// Whether a function gives a truth value.
pub fn gives_truth(function: &str) -> bool {
    FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function))
}

impl Expr {
    /// Whether its value is a truth value.
    pub fn is_truth(&self) -> bool {
        use BinaryOp as B;
        match self {
            Expr::Literal(literal) => matches!(literal, Literal::True | Literal::False),
            Expr::Unary { op, .. } => *op == UnaryOp::Not,
            Expr::Binary { op, .. } => matches!(
                op,
                B::Or
                    | B::Xor
                    | B::And
                    | B::Eq
                    | B::NullSafeEq
                    | B::Ne
                    | B::Lt
                    | B::Le
                    | B::Gt
                    | B::Ge
                    | B::SoundsLike
            ),
            Expr::Function(call) => call.schema.is_none() && gives_truth(&call.name),
            Expr::Between { .. }
            | Expr::In { .. }
            | Expr::InSubquery { .. }
            | Expr::Exists(_)
            | Expr::Quantified { .. }
            | Expr::Like(_)
            | Expr::Regexp { .. }
            | Expr::IsNull { .. }
            | Expr::IsTruth { .. }
            | Expr::MemberOf { .. } => true,
            _ => false,
        }
    }
}
