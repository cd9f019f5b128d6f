//! Built-in functions, one file per family, and the table that finds them by name.
//!
//! A function is a [`Def`]: how many arguments, what type the result has, how to evaluate it. Not
//! here: syntax with a form of its own (CASE, CAST, BETWEEN, LIKE) and aggregates' accumulation
//! during grouping, which lives in `select`. Called by the binder (types) and by evaluation, on
//! the session's thread.

mod aes;
pub mod aggregate;
mod aggregate_frame;
mod cast_array;
mod compress;
mod control;
mod encode;
mod encrypt;
mod files;
mod group_concat;
mod inet;
mod info;
pub(crate) mod json;
pub(crate) mod json_schema;
mod json_search;
mod key_derivation;
pub(crate) mod not_built;
mod numeric;
mod regexp;
pub(super) mod string;
mod string_search;
mod temporal;
mod temporal_format;
mod temporal_parts;
mod text_lengths;
mod trim_pad;
mod units;
mod xml;

use crate::error::{ExecResult, SqlResult};
use crate::expr::{BindContext, Context, Expr, ExprType};
use bytes::Bytes;
use omnibus_parser::ast::gives_truth;
use omnibus_value::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use cast_array::CAST_ARRAY;
pub(crate) use control::{branches, branches_mut, extreme_date, is_extreme_time};
pub(crate) use info::NEW_INSERT_ID;
pub(crate) use string::fits;
pub(crate) use temporal::CAST_AT_UTC;
pub(crate) use temporal_parts::week_of;

/// How a result's type follows from the arguments.
pub type TypeFn = fn(&[Expr], &BindContext<'_>) -> SqlResult<ExprType>;
/// How a call is evaluated: the arguments, the result type, the running statement.
pub type EvalFn = fn(&[Expr], &ExprType, &mut Context<'_>) -> ExecResult<Value>;

/// A built-in scalar function.
#[derive(Debug)]
pub struct Def {
    /// Upper-case name.
    pub name: &'static str,
    /// Fewest arguments.
    pub min: u8,
    /// Most arguments; `MANY` for no limit.
    pub max: u8,
    /// Result type.
    pub ty: TypeFn,
    /// Evaluation.
    pub eval: EvalFn,
    /// Bits below.
    pub traits: u8,
}

/// No limit on arguments.
pub const MANY: u8 = u8::MAX;
/// The result depends on more than the arguments: never folded into a constant.
pub const VOLATILE: u8 = 1;

/// Whether what a function gives is a truth value and no number.
pub(super) fn is_truth(name: &str) -> bool {
    // STRCMP has three values, one of which no document has as a truth value.
    name == "MEMBER_OF" || name != "STRCMP" && gives_truth(name)
}
/// The result depends on the session: computed when the statement runs, not when it is bound.
pub const SESSION: u8 = 8;
/// String arguments are brought to the result's character set first.
pub const ONE_CHARSET: u8 = 2;
/// String arguments are compared: their collations must agree.
pub const COLLATES: u8 = 4;

impl Def {
    /// A plain function.
    const fn new(name: &'static str, min: u8, max: u8, ty: TypeFn, eval: EvalFn) -> Def {
        Def { name, min, max, ty, eval, traits: 0 }
    }
    /// A function of the session: the same throughout a statement.
    const fn session(name: &'static str, min: u8, max: u8, ty: TypeFn, eval: EvalFn) -> Def {
        Def { name, min, max, ty, eval, traits: SESSION }
    }
    /// A function whose string arguments share a character set.
    const fn strings(name: &'static str, min: u8, max: u8, ty: TypeFn, eval: EvalFn) -> Def {
        Def { name, min, max, ty, eval, traits: ONE_CHARSET }
    }
    /// A function that must be evaluated for each row.
    const fn volatile(name: &'static str, min: u8, max: u8, ty: TypeFn, eval: EvalFn) -> Def {
        Def { name, min, max, ty, eval, traits: VOLATILE }
    }
    /// A function that compares its string arguments.
    const fn collating(name: &'static str, min: u8, max: u8, ty: TypeFn, eval: EvalFn) -> Def {
        Def { name, min, max, ty, eval, traits: ONE_CHARSET | COLLATES }
    }
}

/// The function called `name` (any case), if there is one.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static Def> {
    static TABLE: OnceLock<HashMap<&'static str, &'static Def>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        [
            aes::DEFS,
            cast_array::DEFS,
            compress::DEFS,
            control::DEFS,
            encode::DEFS,
            units::DEFS,
            encrypt::DEFS,
            files::DEFS,
            inet::DEFS,
            info::DEFS,
            json::DEFS,
            json_schema::DEFS,
            json_search::DEFS,
            numeric::DEFS,
            regexp::DEFS,
            string::DEFS,
            string_search::DEFS,
            temporal::DEFS,
            temporal_format::DEFS,
            temporal_parts::DEFS,
            trim_pad::DEFS,
            xml::DEFS,
        ]
        .into_iter()
        .flatten()
        .map(|def| (def.name, def))
        .collect()
    });
    table.get(name.to_ascii_uppercase().as_str()).copied()
}

/// Evaluates an argument of a call as a string. Its length is asked for: what functions make of a text is about as long.
pub(crate) fn text_arg(arg: &Expr, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
    let Some(text) = text_part(arg, cx)? else { return Ok(None) };
    cx.ask(text.len())?;
    Ok(Some(text))
}

/// The same where the caller asks for what it makes.
pub(crate) fn text_part(arg: &Expr, cx: &mut Context<'_>) -> ExecResult<Option<Bytes>> {
    Ok(match arg.eval(cx)? {
        Value::Null => None,
        Value::Bytes(text) => Some(text),
        Value::Json(binary) => {
            cx.ask(omnibus_value::json::memory_of_binary(&binary) + 2 * binary.len())?;
            Some(arg.to_str(&Value::Json(binary)))
        }
        value => Some(crate::expr::convert::text_in(arg, &value, cx)),
    })
}

/// Evaluates an argument as a string, or returns NULL from the function.
macro_rules! str_arg {
    ($args:expr, $i:expr, $cx:expr) => {
        match crate::expr::functions::text_arg(&$args[$i], $cx)? {
            Some(value) => value,
            None => return Ok(omnibus_value::Value::Null),
        }
    };
}
/// Evaluates an argument as an integer wide enough for both signs, or returns NULL.
macro_rules! int_arg {
    ($args:expr, $i:expr, $cx:expr) => {
        match $args[$i].eval_int($cx)? {
            Some(value) => value,
            None => return Ok(omnibus_value::Value::Null),
        }
    };
}
/// Evaluates an argument as a double, or returns NULL.
macro_rules! real_arg {
    ($args:expr, $i:expr, $cx:expr) => {
        match $args[$i].eval_f64($cx)? {
            Some(value) => value,
            None => return Ok(omnibus_value::Value::Null),
        }
    };
}
/// Evaluates an argument as it is, or returns NULL.
macro_rules! value_arg {
    ($args:expr, $i:expr, $cx:expr) => {
        match $args[$i].eval($cx)? {
            omnibus_value::Value::Null => return Ok(omnibus_value::Value::Null),
            value => value,
        }
    };
}
pub(crate) use {int_arg, real_arg, str_arg, value_arg};

/// Common result types.
pub(crate) mod ty {
    use crate::error::SqlResult;
    use crate::expr::mix::merge_all;
    use crate::expr::types::{BINARY, bytes};
    use crate::expr::{BindContext, Expr, ExprType};

    /// Whether any argument may be NULL.
    pub fn any_null(args: &[Expr]) -> bool {
        args.iter().any(|a| a.ty.nullable)
    }
    /// BIGINT, NULL if an argument is.
    pub fn bigint(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::bigint().nullable(any_null(args)))
    }
    /// BIGINT UNSIGNED, NULL if an argument is.
    pub fn ubigint(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::ubigint().nullable(any_null(args)))
    }
    /// A small integer that may be NULL whatever the arguments are.
    pub fn small_int(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::int(4).nullable(true))
    }
    /// A truth value that may be NULL whatever the arguments are.
    pub fn perhaps(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::boolean().nullable(true))
    }
    /// An integer, NULL if an argument is.
    pub fn int(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::int(10).nullable(any_null(args)))
    }
    /// An integer, NULL also if an argument is not what it should be.
    pub fn int_or_null(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(int(args, cx)?.nullable(true))
    }
    /// A BIGINT, NULL also if an argument is not what it should be.
    pub fn bigint_or_null(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(bigint(args, cx)?.nullable(true))
    }
    /// A truth value, NULL if an argument is.
    pub fn boolean(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::boolean().nullable(any_null(args)))
    }
    /// A nullable DOUBLE.
    pub fn double(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::double().nullable(true))
    }
    /// A string as long as the first argument, in the arguments' collation.
    pub fn like_first(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        let length = |length: fn(&ExprType) -> u32| args.first().map_or(0, |a| length(&a.ty));
        let text = string_of(args, length(ExprType::display_length), cx)?;
        if text.column.collation == BINARY { string_of(args, length(bytes), cx) } else { Ok(text) }
    }
    /// A string as long as all arguments together.
    pub fn concatenated(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        let sum =
            |length: fn(&ExprType) -> u32| args.iter().fold(0u32, |n, a| n.saturating_add(length(&a.ty)));
        let text = string_of(args, sum(ExprType::display_length), cx)?;
        if text.column.collation == BINARY { string_of(args, sum(bytes), cx) } else { Ok(text) }
    }
    /// A string of any length, in the arguments' collation.
    pub fn long_string(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        string_of(args, u32::MAX, cx)
    }
    /// A string of `length` in the merged collation of the arguments.
    pub fn string_of(args: &[Expr], length: u32, cx: &BindContext<'_>) -> SqlResult<ExprType> {
        let (collation, coercibility) = merge_all(args.iter().map(|a| &a.ty), cx.collation, "concat")?;
        Ok(ExprType::varchar(length, collation).coercible(coercibility).nullable(true))
    }
    /// A binary string.
    pub fn binary(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        let length = args.first().map_or(0, |a| a.ty.display_length());
        Ok(ExprType::varchar(length, BINARY).nullable(true))
    }
    /// A string of the connection's collation.
    pub fn ascii<const N: u32>(_: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::varchar(N, cx.collation).nullable(true))
    }
    /// A string of utf8mb3, which the server's own names have, that is never NULL.
    pub fn utf8mb3<const N: u32>(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::varchar(N, 33))
    }
    /// A nullable DATE.
    pub fn date(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::date().nullable(true))
    }
    /// JSON.
    pub fn json(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
        Ok(ExprType::json().nullable(true))
    }
}

/// NULL for an argument that is no value of the kind that a function takes, with MySQL's warning.
pub(super) fn no_value(kind: &str, arg: &Expr, function: &str, cx: &mut Context<'_>) -> Value {
    if !cx.session.settings.mariadb {
        let value = crate::expr::print::expr(arg, cx);
        let message = format!("Incorrect {kind} value: '{value}' for function {function}");
        cx.warn(crate::error::SqlError::new(1411, b"HY000", message));
    }
    Value::Null
}

/// A string value.
pub(crate) fn text(value: impl Into<bytes::Bytes>) -> Value {
    Value::Bytes(value.into())
}

/// A truth value.
pub(crate) fn boolean(value: bool) -> Value {
    Value::Int(i64::from(value))
}
