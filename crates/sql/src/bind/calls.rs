//! Calls of functions, and expressions with a syntax of their own: CASE, EXTRACT, intervals, TRIM, VALUES().

use super::binder::Binder;
use super::compare;
use super::compare::truth_of_number;
use super::compare::{compare_case, refuse_lossy};
use super::operators::{as_text, number_literal};
use super::stored;
use super::times_beside::refuse_no_dates;
use crate::api::Priv;
use crate::catalog::sequence;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::{self, COLLATES, MANY, ONE_CHARSET};
use crate::expr::node::{CompareOp, Expr, Kind};
use crate::expr::sequence::{SequenceCall, SequenceFunction};
use crate::expr::types::{BINARY, ExprType, Family};
use crate::expr::unify::unify;
use crate::expr::{charset, interval};
use omnibus_parser::ast;
use omnibus_value::Value;

/// Functions that the server implements because they are about replication.
pub(super) const SERVER_FUNCTIONS: &[&str] = &[
    "GTID_SUBSET",
    "GTID_SUBTRACT",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
    "MASTER_POS_WAIT",
    "SOURCE_POS_WAIT",
    "MASTER_GTID_WAIT",
    "BINLOG_GTID_POS",
];

/// How many arguments one has, and whether it gives a number.
fn server_function(name: &str) -> (std::ops::RangeInclusive<usize>, bool) {
    match name {
        "GTID_SUBSET" => (2..=2, true),
        "GTID_SUBTRACT" | "BINLOG_GTID_POS" => (2..=2, false),
        "WAIT_FOR_EXECUTED_GTID_SET" | "MASTER_GTID_WAIT" => (1..=2, true),
        _ => (0..=4, true),
    }
}

pub(super) fn function(binder: &mut Binder<'_>, call: &ast::FunctionCall) -> SqlResult<Expr> {
    if let Some(expr) = sequence_call(binder, call)? {
        return Ok(expr);
    }
    if call.name.is("name_const") && !binder.session.settings.mariadb {
        refuse_computed_const(&call.args)?;
    }
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(binder.expr(arg)?);
    }
    if !stored::is_built_in(call) {
        return stored::stored_function(binder, call, args);
    }
    let mut bound = call_function(binder, &call.name, args).map_err(|error| match error.code {
        1582 => SqlError::wrong_parameter_count_to_native_fct(call.written_name()),
        _ => error,
    })?;
    if let Some(definer) = &binder.author.account {
        let text = |text: &str| Kind::Const(Value::Bytes(bytes::Bytes::copy_from_slice(text.as_bytes())));
        if call.name.is("current_user") {
            bound.kind = text(&definer.current_user());
        } else if call.name.is("current_role") && binder.session.settings.mariadb {
            bound.kind = definer.role().map_or(Kind::Const(Value::Null), |role| text(role));
        }
    }
    Ok(bound)
}

/// How the names of functions begin that MySQL's own views alone may call.
const NOT_FOR_USERS: [&str; 4] = ["CAN_ACCESS_", "GET_DD_", "INTERNAL_", "IS_VISIBLE_DD_OBJECT"];

/// Refuses NAME_CONST of what is not written as a constant.
fn refuse_computed_const(args: &[ast::Expr]) -> SqlResult<()> {
    use ast::Literal as L;
    let [name, value] = args else { return Ok(()) };
    // The log has variables of dates and times as their literals.
    let plain = |literal: &L| !matches!(literal, L::True | L::False);
    let written = match value {
        ast::Expr::Literal(literal) => plain(literal),
        ast::Expr::Unary { op: ast::UnaryOp::Minus, expr } => matches!(**expr, ast::Expr::Literal(_)),
        ast::Expr::Collate { expr, .. } => matches!(**expr, ast::Expr::Literal(_) | ast::Expr::Introduced(_)),
        ast::Expr::Introduced(_) => true,
        _ => false,
    };
    let named = matches!(name, ast::Expr::Literal(_) | ast::Expr::Introduced(_));
    if written && named { Ok(()) } else { Err(SqlError::wrong_arguments("NAME_CONST")) }
}

pub(super) fn no_such_function(binder: &Binder<'_>, name: &str, schema: Option<&str>) -> SqlError {
    let upper = name.to_ascii_uppercase();
    if schema.is_none()
        && !binder.session.settings.mariadb
        && NOT_FOR_USERS.iter().any(|begin| upper.starts_with(begin))
    {
        return SqlError::new(3566, b"HY000", format!("Access to native function '{upper}' is rejected."));
    }
    if schema.is_none() && functions::not_built::is_known(name) {
        return SqlError::not_supported_yet(upper);
    }
    let db = schema.or(binder.author.database.as_deref());
    match db {
        Some(db) => SqlError::sp_does_not_exist("FUNCTION", format!("{db}.{name}")),
        None => SqlError::sp_does_not_exist("FUNCTION", name),
    }
}

/// The arguments of a search, whose text at `within` decides under which collation it is: what is looked for is put into it.
fn as_searched(binder: &mut Binder<'_>, mut args: Vec<Expr>, within: usize) -> SqlResult<Vec<Expr>> {
    let ty = &args[within].ty;
    let collation = ty.column.collation;
    let text = ty.family() == Family::String && collation != BINARY;
    if text && args[1 - within].ty.family() == Family::String {
        let wanted = std::mem::replace(&mut args[1 - within], Expr::null());
        refuse_lossy(binder, &[&wanted], collation, "locate")?;
        args[1 - within] = compare::in_collation(binder, wanted, collation);
    }
    Ok(args)
}

/// A call of a built-in function with bound arguments.
pub(crate) fn call_function(binder: &mut Binder<'_>, name: &str, args: Vec<Expr>) -> SqlResult<Expr> {
    let Some(def) = functions::lookup(name) else {
        let upper = name.to_ascii_uppercase();
        if SERVER_FUNCTIONS.contains(&upper.as_str()) {
            binder.note(|noted| noted.bits |= super::uses::SYSTEM_FUNCTION);
            let (counts, number) = server_function(&upper);
            if !counts.contains(&args.len()) {
                return Err(SqlError::wrong_parameter_count_to_native_fct(name));
            }
            let ty = match number {
                true if upper == "GTID_SUBSET" => ExprType::boolean().nullable(true),
                true => ExprType::bigint().nullable(true),
                false => ExprType::varchar(16_383, binder.collation()).nullable(true),
            };
            return Ok(Expr { kind: Kind::ServerCall(upper.into(), args.into()), ty });
        }
        return Err(no_such_function(binder, name, None));
    };
    let count = args.len();
    if count < usize::from(def.min) || (def.max != MANY && count > usize::from(def.max)) {
        return Err(SqlError::wrong_parameter_count_to_native_fct(name));
    }
    binder.note(|noted| noted.function(def.name, count));
    super::fixed_args::check(def.name, &args)?;
    if def.name == "NULLIF" {
        return null_if(binder, args);
    }
    if def.name.starts_with("REGEXP_") {
        let texts = &args[..args.len().min(if def.name == "REGEXP_REPLACE" { 3 } else { 2 })];
        refuse_bytes_beside_text(binder, texts, &def.name.to_lowercase())?;
    }
    let args = if def.name.starts_with("JSON_") || def.name == "MEMBER_OF" {
        args.into_iter().map(|arg| in_utf8(binder, arg)).collect()
    } else if matches!(def.name, "INSTR" | "LOCATE" | "POSITION") && !binder.session.settings.mariadb {
        as_searched(binder, args, usize::from(def.name != "INSTR"))?
    } else if def.traits & (ONE_CHARSET | COLLATES) != 0 {
        in_one_charset(binder, args, def.name)?
    } else if def.name == "IF" {
        let mut args = args;
        args[0] = truth_of_number(std::mem::replace(&mut args[0], Expr::null()));
        args
    } else {
        args
    };
    if def.name.starts_with("REGEXP_") {
        return regexp_function(binder, def, args);
    }
    let ty = (def.ty)(&args, &binder.context())?;
    if def.name == "LOAD_FILE" && binder.author.access.check_files().is_err() {
        return Ok(Expr { kind: Kind::Const(Value::Null), ty });
    }
    if matches!(def.name, "IF" | "IFNULL" | "COALESCE" | "LEAST" | "GREATEST") {
        let chosen = args.iter().skip(usize::from(def.name == "IF")).collect::<Vec<_>>();
        refuse_lossy(binder, &chosen, ty.column.collation, &def.name.to_lowercase())?;
    }
    let call = Expr { kind: Kind::Call(def, args.into()), ty };
    // Arithmetic asks which dates it chooses among.
    let timed = functions::extreme_date(&call).is_some() || functions::is_extreme_time(&call);
    if timed && !binder.session.settings.mariadb {
        return Ok(call);
    }
    Ok(binder.fold(call))
}

/// Bytes are not matched with text, but those of a BLOB: 3995 in MySQL.
pub(super) fn refuse_bytes_beside_text(binder: &Binder<'_>, args: &[Expr], name: &str) -> SqlResult<()> {
    let Some((first, others)) = args.split_first() else { return Ok(()) };
    let is_string = |e: &Expr| e.ty.family() == Family::String && !e.ty.is_null();
    let is_bytes = |e: &Expr| e.ty.column.collation == BINARY && !e.ty.column.kind.is_lob();
    let is_text = |e: &Expr| e.ty.column.collation != BINARY;
    let clashes = |other: &&Expr| {
        is_string(other) && (is_bytes(first) && is_text(other) || is_text(first) && is_bytes(other))
    };
    match others.iter().find(clashes) {
        Some(other) if is_string(first) && !binder.session.settings.mariadb => {
            let [first, other] = [first, other].map(|e| charset::collation_name(e.ty.column.collation));
            Err(SqlError::new(
                3995,
                b"HY000",
                format!(
                    "Character set '{first}' cannot be used in conjunction with '{other}' in call to {name}."
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// A function of regular expressions: it reads UTF-8 and gives text in its argument's character set.
fn regexp_function(
    binder: &mut Binder<'_>,
    def: &'static functions::Def,
    args: Vec<Expr>,
) -> SqlResult<Expr> {
    let own = args[0].ty.column.collation;
    let collation = charset::in_utf8(own);
    let args: Vec<Expr> = args.into_iter().map(|arg| compare::in_collation(binder, arg, collation)).collect();
    let ty = (def.ty)(&args, &binder.context())?;
    let e = binder.fold(Expr { kind: Kind::Call(def, args.into()), ty });
    Ok(if own == collation { e } else { compare::in_collation(binder, e, own) })
}

/// Text in the character set that JSON has.
pub(super) fn in_utf8(binder: &mut Binder<'_>, e: Expr) -> Expr {
    if e.ty.is_null() { e } else { compare::in_collation(binder, e, crate::expr::json::COLLATION) }
}

/// `NULLIF(a, b)`: CASE WHEN a = b THEN NULL ELSE a END.
fn null_if(binder: &mut Binder<'_>, args: Vec<Expr>) -> SqlResult<Expr> {
    let [a, b] =
        <[Expr; 2]>::try_from(args).map_err(|_| SqlError::wrong_parameter_count_to_native_fct("NULLIF"))?;
    refuse_no_dates(binder, &a, &b)?;
    let equal = compare::compare(binder, CompareOp::Eq, a.clone(), b)?;
    let ty = a.ty.clone().as_chosen().nullable(true);
    let whens = Box::new([(equal, Expr::null())]);
    Ok(binder.fold(Expr { kind: Kind::Case { whens, otherwise: Some(Box::new(a)) }, ty }))
}

/// String arguments in the character set of the collation that they merge to.
pub(super) fn in_one_charset(binder: &mut Binder<'_>, args: Vec<Expr>, name: &str) -> SqlResult<Vec<Expr>> {
    let lower = name.to_lowercase();
    let fallback = binder.collation();
    let (collation, _) = crate::expr::mix::merge_all(args.iter().map(|a| &a.ty), fallback, &lower)?;
    refuse_lossy(binder, &args.iter().collect::<Vec<_>>(), collation, &lower)?;
    Ok(args.into_iter().map(|a| compare::in_collation(binder, a, collation)).collect())
}

pub(super) fn case(binder: &mut Binder<'_>, case: &ast::Case) -> SqlResult<Expr> {
    let mut operand = case.operand.as_ref().map(|e| binder.expr(e)).transpose()?;
    let (mut conditions, mut results) = (Vec::new(), Vec::new());
    for (condition, result) in &case.whens {
        conditions.push(binder.expr(condition)?);
        results.push(binder.expr(result)?);
    }
    if let Some(e) = operand.take() {
        let (e, members) = compare::in_one_collation(binder, e, conditions, "case")?;
        (operand, conditions) = (Some(e), members);
    }
    let mut whens = Vec::with_capacity(case.whens.len());
    let mut ty: Option<ExprType> = None;
    for (condition, result) in conditions.into_iter().zip(results) {
        let condition = match &operand {
            // Documents are compared with text as text here: CASE d WHEN 'null' meets the document null.
            Some(operand)
                if operand.ty.family() == Family::Json && condition.ty.family() == Family::String =>
            {
                compare::compare(binder, CompareOp::Eq, as_text(operand.clone()), condition)?
            }
            Some(operand) => compare_case(binder, operand.clone(), condition)?,
            None => truth_of_number(condition),
        };
        ty = Some(match ty {
            None => result.ty.clone().as_chosen(),
            Some(before) => unify(&before, &result.ty, "case")?,
        });
        whens.push((condition, result));
    }
    let otherwise = case.otherwise.as_ref().map(|e| binder.expr(e)).transpose()?;
    let mut ty = ty.unwrap_or_else(ExprType::null);
    match &otherwise {
        Some(e) => ty = unify(&ty, &e.ty, "case")?,
        None => ty.nullable = true,
    }
    let results = whens.iter().map(|(_, result)| result);
    refuse_lossy(binder, &results.chain(&otherwise).collect::<Vec<_>>(), ty.column.collation, "case")?;
    let otherwise = otherwise.map(Box::new);
    Ok(binder.fold(Expr { kind: Kind::Case { whens: whens.into(), otherwise }, ty }))
}

pub(super) fn extract(binder: &mut Binder<'_>, unit: omnibus_value::temporal::IntervalUnit, e: Expr) -> Expr {
    use omnibus_value::temporal::IntervalUnit as U;
    let mut ty = ExprType::bigint().nullable(true);
    ty.column.length = match unit {
        U::Quarter => 1,
        U::Year => 4,
        U::YearMonth => 6,
        U::Month | U::Week | U::Day | U::Hour | U::Minute | U::Second => 3,
        _ => 20,
    };
    binder.fold(Expr { kind: Kind::Extract(unit, Box::new(e)), ty })
}

pub(super) fn date_arith(
    binder: &mut Binder<'_>,
    date: &ast::Expr,
    value: &ast::Expr,
    unit: ast::IntervalUnit,
    subtract: bool,
) -> SqlResult<Expr> {
    let (date, value) = (binder.expr(date)?, binder.expr(value)?);
    Ok(date_plus(binder, date, value, unit, subtract))
}

/// A time and an interval.
pub(super) fn date_plus(
    binder: &mut Binder<'_>,
    date: Expr,
    value: Expr,
    unit: ast::IntervalUnit,
    subtract: bool,
) -> Expr {
    let value = number_literal(value);
    let mut ty = interval::date_arith_type(&date, &value, unit, binder.session.settings.mariadb);
    if ty.family() == Family::String {
        ty.column.collation = binder.collation();
    }
    let args = Box::new([date, value]);
    binder.fold(Expr { kind: Kind::DateArith { args, unit, subtract }, ty })
}

pub(super) fn trim(binder: &mut Binder<'_>, trim: &ast::Trim) -> SqlResult<Expr> {
    let mut args = vec![binder.expr(&trim.from)?];
    if let Some(what) = &trim.what {
        args.push(binder.expr(what)?);
    }
    let name = match trim.side {
        ast::TrimSide::Both => "TRIM",
        ast::TrimSide::Leading => "LTRIM",
        ast::TrimSide::Trailing => "RTRIM",
    };
    call_function(binder, name, args)
}

/// `VALUES(col)`: the row that INSERT wanted to insert, which is the table aliased `VALUES`
/// in the scope that INSERT opens; NULL anywhere else.
pub(super) fn values_of(binder: &mut Binder<'_>, column: &ast::ColumnRef) -> SqlResult<Expr> {
    let values = binder
        .blocks
        .iter()
        .flat_map(|block| &block.scope.tables)
        .find(|table| table.is_values_row())
        .cloned();
    match values {
        Some(table) => match table.find(&column.name) {
            Some(at) => Ok(table.expr(at)),
            None => Err(SqlError::bad_field(&*column.name, "field list")),
        },
        None => {
            binder.column(column)?;
            Ok(Expr::null())
        }
    }
}

/// NEXTVAL, LASTVAL or SETVAL, if it is one: the first argument is the name of a sequence.
fn sequence_call(binder: &mut Binder<'_>, call: &ast::FunctionCall) -> SqlResult<Option<Expr>> {
    let Some(what) = SequenceFunction::named(&call.name).filter(|_| call.schema.is_none()) else {
        return Ok(None);
    };
    let counts = if what == SequenceFunction::SetVal { 2..=4 } else { 1..=1 };
    let Some(ast::Expr::Column(name)) = call.args.first().filter(|_| counts.contains(&call.args.len()))
    else {
        return Err(SqlError::wrong_parameter_count_to_native_fct(&call.name));
    };
    let current = binder.author.database.clone();
    let db = match (name.table(), &current) {
        (Some(db), _) => db.as_str(),
        (None, Some(current)) => current,
        (None, None) => return Err(SqlError::no_db()),
    };
    binder.mean(|meaning| {
        let qualifier = Some(Box::new(ast::Qualifier { schema: None, table: db.into() }));
        meaning.set_column(name, ast::ColumnRef { qualifier, name: name.name.clone() });
    });
    let asks = if what == SequenceFunction::LastVal { Priv::Select } else { Priv::Insert };
    binder.author.access.check(db, Some(&name.name), asks)?;
    let table = match binder.objects.catalog.find_table(db, &name.name) {
        Some(table) if table.def.is_sequence() => table.clone(),
        Some(table) => return Err(sequence::not_sequence(table)),
        None if !binder.session.settings.mariadb => return Err(SqlError::not_supported_yet("sequences")),
        None => return Err(sequence::unknown(&name.name)),
    };
    binder.note(|noted| noted.bits |= super::uses::SYSTEM_FUNCTION);
    // A plan with it is made anew when its definition changes.
    binder.collected.tables.push(table.clone());
    let mut args = Vec::with_capacity(call.args.len() - 1);
    for arg in &call.args[1..] {
        args.push(binder.expr(arg)?);
    }
    let kind = Kind::Sequence(Box::new(SequenceCall { table, what, args: args.into() }));
    Ok(Some(Expr { kind, ty: ExprType::bigint().nullable(true) }))
}
