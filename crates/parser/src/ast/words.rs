//! The words of enumerations: aggregates, operators, to and from text.

use super::{AggregateKind, BinaryOp};

/// (kind, its name as printed, other names)
const AGGREGATES: &[(AggregateKind, &str, &[&str])] = &[
    (AggregateKind::Count, "count", &[]),
    (AggregateKind::Sum, "sum", &[]),
    (AggregateKind::Avg, "avg", &[]),
    (AggregateKind::Min, "min", &[]),
    (AggregateKind::Max, "max", &[]),
    (AggregateKind::BitAnd, "bit_and", &[]),
    (AggregateKind::BitOr, "bit_or", &[]),
    (AggregateKind::BitXor, "bit_xor", &[]),
    (AggregateKind::StdDevPop, "std", &["stddev", "stddev_pop"]),
    (AggregateKind::StdDevSamp, "stddev_samp", &[]),
    (AggregateKind::VarPop, "variance", &["var_pop"]),
    (AggregateKind::VarSamp, "var_samp", &[]),
    (AggregateKind::GroupConcat, "group_concat", &[]),
    (AggregateKind::JsonArrayAgg, "json_arrayagg", &[]),
    (AggregateKind::JsonObjectAgg, "json_objectagg", &[]),
];

impl AggregateKind {
    /// From its lower-case name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let same = |n: &str| n.as_bytes() == name;
        AGGREGATES.iter().find(|(_, n, more)| same(n) || more.iter().any(|n| same(n))).map(|(k, ..)| *k)
    }

    /// Its name, lower case.
    pub fn name(self) -> &'static str {
        AGGREGATES.iter().find(|(k, ..)| *k == self).map_or("", |(_, n, _)| n)
    }
}

impl BinaryOp {
    /// As written in SQL, without spaces.
    pub fn word(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::Xor => "xor",
            Self::And => "and",
            Self::Eq => "=",
            Self::NullSafeEq => "<=>",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::BitOr => "|",
            Self::BitAnd => "&",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::IntDiv => "DIV",
            Self::Mod => "%",
            Self::BitXor => "^",
            Self::Concat => "||",
            Self::JsonExtract => "->",
            Self::JsonUnquote => "->>",
            Self::SoundsLike => "sounds like",
        }
    }
}
