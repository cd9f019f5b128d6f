//! Functions of numbers and times refuse UUIDs and addresses, as MariaDB, whose types these are, does: a text that happens to begin with
//! digits would make a number of them.

use crate::error::SqlResult;
use crate::expr::node::Expr;
use crate::expr::types::{Family, illegal_types, refuse_fixed};

/// The function, what an error calls it, and a bit for each argument that is one of these.
#[rustfmt::skip]
const REFUSING: &[(&str, &str, u8)] = &[
    ("ABS", "abs", 0b001),
    ("ACOS", "acos", 0b001),
    ("ASIN", "asin", 0b001),
    ("ATAN", "atan", 0b011),
    ("ATAN2", "atan", 0b011),
    ("BIT_COUNT", "bit_count", 0b001),
    ("CEIL", "ceiling", 0b001),
    ("CEILING", "ceiling", 0b001),
    ("CONVERT_TZ", "convert_tz", 0b001),
    ("COS", "cos", 0b001),
    ("COT", "cot", 0b001),
    ("DATE", "cast_as_date", 0b001),
    ("DATEDIFF", "to_days", 0b011),
    ("DATE_FORMAT", "date_format", 0b001),
    ("DAY", "dayofmonth", 0b001),
    ("DAYOFMONTH", "dayofmonth", 0b001),
    ("DAYOFYEAR", "dayofyear", 0b001),
    ("DEGREES", "degrees", 0b001),
    ("EXP", "exp", 0b001),
    ("FLOOR", "floor", 0b001),
    ("FROM_DAYS", "from_days", 0b001),
    ("FROM_UNIXTIME", "from_unixtime", 0b001),
    ("HOUR", "hour", 0b001),
    ("LAST_DAY", "last_day", 0b001),
    ("LAST_INSERT_ID", "last_insert_id", 0b001),
    ("LN", "ln", 0b001),
    ("LOCATE", "locate", 0b100),
    ("LOG", "log", 0b011),
    ("LOG10", "log10", 0b001),
    ("LOG2", "log2", 0b001),
    ("MAKEDATE", "makedate", 0b011),
    ("MAKETIME", "maketime", 0b111),
    ("MICROSECOND", "microsecond", 0b001),
    ("MINUTE", "minute", 0b001),
    ("PERIOD_ADD", "period_add", 0b011),
    ("PERIOD_DIFF", "period_diff", 0b011),
    ("POW", "pow", 0b011),
    ("POWER", "pow", 0b011),
    ("QUARTER", "quarter", 0b001),
    ("RADIANS", "radians", 0b001),
    ("RAND", "rand", 0b001),
    ("ROUND", "round", 0b001),
    ("SECOND", "second", 0b001),
    ("SEC_TO_TIME", "sec_to_time", 0b001),
    ("SIGN", "sign", 0b001),
    ("SIN", "sin", 0b001),
    ("SQRT", "sqrt", 0b001),
    ("TAN", "tan", 0b001),
    ("TIME", "cast_as_time", 0b001),
    ("TIMEDIFF", "timediff", 0b011),
    ("TIMESTAMP", "timestamp", 0b011),
    ("TIME_FORMAT", "time_format", 0b001),
    ("TO_DAYS", "to_days", 0b001),
    ("TO_SECONDS", "to_seconds", 0b001),
    ("TRUNCATE", "truncate", 0b001),
    ("WEEK", "week", 0b011),
    ("WEEKOFYEAR", "week", 0b001),
    ("YEAR", "year", 0b001),
    ("YEARWEEK", "yearweek", 0b011),
];

/// Functions whose error tells the types of both arguments.
const PAIRED: [(&str, &str); 4] =
    [("ADDTIME", "addtime"), ("MOD", "MOD"), ("STR_TO_DATE", "str_to_date"), ("SUBTIME", "subtime")];

/// Fails for arguments that a function has no use for.
///
/// # Errors
/// 4078, 4079.
pub(super) fn check(name: &str, args: &[Expr]) -> SqlResult<()> {
    if !args.iter().any(|arg| arg.ty.family() == Family::Fixed) {
        return Ok(());
    }
    if let ([a, b], Some((_, operation))) = (args, PAIRED.iter().find(|(own, _)| *own == name)) {
        return Err(illegal_types(&a.ty, &b.ty, operation));
    }
    let Some((_, operation, places)) = REFUSING.iter().find(|(own, ..)| *own == name) else { return Ok(()) };
    let refused = args.iter().enumerate().filter(|(at, _)| *at < 8 && places >> at & 1 == 1);
    refused.map(|(_, arg)| arg).try_for_each(|arg| refuse_fixed(&arg.ty, operation))
}
