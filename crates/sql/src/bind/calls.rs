//! Binding of calls and of expressions with a syntax of their own: functions, aggregates, CASE,
//! CAST, COLLATE, TRIM, VALUES(), DEFAULT(), subqueries.

use super::binder::{Binder, BlockScope, OuterReads};
use super::compare::truth_of_number;
use super::compare::{compare_case, refuse_lossy, refuse_no_dates};
use super::operators::{as_text, binary_string, number_literal};
use crate::api::Priv;
use crate::catalog::sequence;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::aggregate::{self, AggregateSpec};
use crate::expr::functions::{self, COLLATES, MANY, ONE_CHARSET};
use crate::expr::node::{CompareOp, Expr, Kind};
use crate::expr::sequence::{SequenceCall, SequenceFunction};
use crate::expr::slot_set::SlotSet;
use crate::expr::types::{BINARY, Coercibility, ExprType, Family, bytes, column_type, refuse_fixed, unify};
use crate::expr::{charset, interval};
use omnibus_parser::ast::{self, AggregateKind, CastType};
use omnibus_value::{ColumnKind, FixedKind, Value, collation};

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

impl Binder<'_> {
    pub(super) fn function(&mut self, call: &ast::FunctionCall) -> SqlResult<Expr> {
        if let Some(expr) = self.sequence_call(call)? {
            return Ok(expr);
        }
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.expr(arg)?);
        }
        if !self.is_built_in(call) {
            return self.stored_function(call, args);
        }
        let mut bound = self.call_function(&call.name, args)?;
        if let Some(definer) = &self.author.account {
            let text = |text: &str| Kind::Const(Value::Bytes(bytes::Bytes::copy_from_slice(text.as_bytes())));
            if call.name.is("current_user") {
                bound.kind = text(&definer.current_user());
            } else if call.name.is("current_role") && self.session.settings.mariadb {
                bound.kind = definer.role().map_or(Kind::Const(Value::Null), |role| text(role));
            }
        }
        Ok(bound)
    }

    pub(super) fn no_such_function(&self, name: &str, schema: Option<&str>) -> SqlError {
        if schema.is_none() && functions::not_built::is_known(name) {
            return SqlError::not_supported_yet(name.to_ascii_uppercase());
        }
        let db = schema.or(self.session.database.as_deref());
        match db {
            Some(db) => SqlError::sp_does_not_exist("FUNCTION", format!("{db}.{name}")),
            None => SqlError::sp_does_not_exist("FUNCTION", name),
        }
    }

    /// A call of a built-in function with bound arguments.
    pub(crate) fn call_function(&mut self, name: &str, args: Vec<Expr>) -> SqlResult<Expr> {
        let Some(def) = functions::lookup(name) else {
            let upper = name.to_ascii_uppercase();
            if SERVER_FUNCTIONS.contains(&upper.as_str()) {
                self.note(|noted| noted.bits |= super::uses::SYSTEM_FUNCTION);
                let (counts, number) = server_function(&upper);
                if !counts.contains(&args.len()) {
                    return Err(SqlError::wrong_parameter_count_to_native_fct(name));
                }
                let ty = match number {
                    true => ExprType::bigint().nullable(true),
                    false => ExprType::varchar(16_383, self.collation()).nullable(true),
                };
                return Ok(Expr { kind: Kind::ServerCall(upper.into(), args.into()), ty });
            }
            return Err(self.no_such_function(name, None));
        };
        let count = args.len();
        if count < usize::from(def.min) || (def.max != MANY && count > usize::from(def.max)) {
            return Err(SqlError::wrong_parameter_count_to_native_fct(name));
        }
        self.note(|noted| noted.function(def.name, count));
        super::fixed_args::check(def.name, &args)?;
        if def.name == "NULLIF" {
            return self.null_if(args);
        }
        let args = if def.name.starts_with("JSON_") || def.name == "MEMBER_OF" {
            args.into_iter().map(|arg| self.in_utf8(arg)).collect()
        } else if def.traits & (ONE_CHARSET | COLLATES) != 0 {
            self.in_one_charset(args, def.name)?
        } else if def.name == "IF" {
            let mut args = args;
            args[0] = truth_of_number(std::mem::replace(&mut args[0], Expr::null()));
            args
        } else {
            args
        };
        if def.name.starts_with("REGEXP_") {
            return self.regexp_function(def, args);
        }
        let ty = (def.ty)(&args, &self.context())?;
        if def.name == "LOAD_FILE" && self.author.access.check_files().is_err() {
            return Ok(Expr { kind: Kind::Const(Value::Null), ty });
        }
        if matches!(def.name, "IF" | "IFNULL" | "COALESCE" | "LEAST" | "GREATEST") {
            let chosen = args.iter().skip(usize::from(def.name == "IF")).collect::<Vec<_>>();
            refuse_lossy(self, &chosen, ty.column.collation, &def.name.to_lowercase())?;
        }
        Ok(self.fold(Expr { kind: Kind::Call(def, args.into()), ty }))
    }

    /// A function of regular expressions: it reads UTF-8 and gives text in its argument's character set.
    fn regexp_function(&mut self, def: &'static functions::Def, args: Vec<Expr>) -> SqlResult<Expr> {
        let own = args[0].ty.column.collation;
        let collation = charset::in_utf8(own);
        let args: Vec<Expr> = args.into_iter().map(|arg| self.in_collation(arg, collation)).collect();
        let ty = (def.ty)(&args, &self.context())?;
        let e = self.fold(Expr { kind: Kind::Call(def, args.into()), ty });
        Ok(if own == collation { e } else { self.in_collation(e, own) })
    }

    /// Text in the character set that JSON has.
    pub(super) fn in_utf8(&mut self, e: Expr) -> Expr {
        if e.ty.is_null() { e } else { self.in_collation(e, crate::expr::json::COLLATION) }
    }

    /// `NULLIF(a, b)`: CASE WHEN a = b THEN NULL ELSE a END.
    fn null_if(&mut self, args: Vec<Expr>) -> SqlResult<Expr> {
        let [a, b] = <[Expr; 2]>::try_from(args)
            .map_err(|_| SqlError::wrong_parameter_count_to_native_fct("NULLIF"))?;
        refuse_no_dates(self, &a, &b)?;
        let equal = self.compare(CompareOp::Eq, a.clone(), b)?;
        let ty = a.ty.clone().as_chosen().nullable(true);
        let whens = Box::new([(equal, Expr::null())]);
        Ok(self.fold(Expr { kind: Kind::Case { whens, otherwise: Some(Box::new(a)) }, ty }))
    }

    /// String arguments in the character set of the collation that they merge to.
    fn in_one_charset(&mut self, args: Vec<Expr>, name: &str) -> SqlResult<Vec<Expr>> {
        let lower = name.to_lowercase();
        let fallback = self.collation();
        let (collation, _) = crate::expr::mix::merge_all(args.iter().map(|a| &a.ty), fallback, &lower)?;
        refuse_lossy(self, &args.iter().collect::<Vec<_>>(), collation, &lower)?;
        Ok(args.into_iter().map(|a| self.in_collation(a, collation)).collect())
    }

    pub(super) fn aggregate(&mut self, call: &ast::Aggregate) -> SqlResult<Expr> {
        if let Some(over) = &call.over {
            return self.windowed_aggregate(call, over);
        }
        let outer: Vec<OuterReads> = self.blocks.iter().map(|block| block.outer.clone()).collect();
        let was_inside = self.set_in_aggregate(true);
        let bound = self.aggregate_operands(call);
        self.set_in_aggregate(was_inside);
        let (args, order) = bound?;
        let args = self.aggregate_args(call.kind, args)?;
        let at = self.aggregating_block(args.iter().chain(order.iter().map(|(e, _)| e)))?;
        // What is read for an aggregate of an outer block is that block's to read.
        for (block, before) in self.blocks.iter_mut().zip(outer).skip(at + 1) {
            block.outer = before;
        }
        let ty = aggregate::result_type(call.kind, &args, &self.context())?;
        let limit = match &call.limit {
            Some(limit) => {
                let count = self.expr(&limit.count)?;
                let count = self.evaluate(&count);
                match count {
                    Some(Value::Int(n)) => usize::try_from(n).ok(),
                    _ => None,
                }
            }
            None => None,
        };
        let separator = self.separator(call.separator.as_ref(), &ty)?;
        let spec = AggregateSpec {
            kind: call.kind,
            distinct: call.distinct,
            args,
            ty: ty.clone(),
            order,
            separator,
            limit,
        };
        let slot = match self.blocks[at].aggregate_slot {
            Some(slot) => slot,
            None => self.new_slot(),
        };
        let block = &mut self.blocks[at];
        block.aggregate_slot = Some(slot);
        block.aggregates.push(spec);
        let column = (block.aggregates.len() - 1) as u16;
        let result = Expr { kind: Kind::Column { slot, column, utc: false }, ty };
        self.blocks[at + 1..].iter_mut().for_each(|inner| inner.outer.add(&result));
        Ok(result)
    }

    /// What GROUP_CONCAT puts between, in the character set of its result.
    fn separator(&mut self, written: Option<&bytes::Bytes>, ty: &ExprType) -> SqlResult<bytes::Bytes> {
        let comma = bytes::Bytes::from_static(b",");
        let Some(written) = written.filter(|text| !text.is_ascii()) else {
            return Ok(written.cloned().unwrap_or(comma));
        };
        let literal = self.literal(&ast::Literal::Str(written.clone()))?;
        match self.in_collation(literal, ty.column.collation).as_const() {
            Some(Value::Bytes(text)) => Ok(text.clone()),
            _ => Ok(written.clone()),
        }
    }

    /// Arguments as the aggregate takes them.
    pub(super) fn aggregate_args(&mut self, kind: AggregateKind, args: Vec<Expr>) -> SqlResult<Vec<Expr>> {
        if let AggregateKind::JsonArrayAgg | AggregateKind::JsonObjectAgg = kind {
            return Ok(args.into_iter().map(|arg| self.in_utf8(arg)).collect());
        }
        // Labels come in the order of their text, not of their numbers.
        let labels = |e: &Expr| matches!(e.ty.column.kind, ColumnKind::Enum | ColumnKind::Set);
        Ok(match kind {
            AggregateKind::Min | AggregateKind::Max => {
                args.into_iter().map(|arg| if labels(&arg) { as_text(arg) } else { arg }).collect()
            }
            AggregateKind::GroupConcat => self.in_one_charset(args, "group_concat")?,
            _ => args,
        })
    }

    /// The block that computes an aggregate: the innermost one whose columns its arguments read, or the next one further in
    /// where an aggregate may stand; without columns, the block it is written in.
    fn aggregating_block<'e>(&self, args: impl Iterator<Item = &'e Expr>) -> SqlResult<usize> {
        let innermost = self.blocks.len().checked_sub(1).ok_or_else(SqlError::invalid_group_func_use)?;
        let mut slots = SlotSet::default();
        args.for_each(|e| slots.extend(&e.slots()));
        let owns = |block: &BlockScope| {
            block.scope.tables.iter().any(|table| slots.contains(table.slot))
                || block.aggregate_slot.is_some_and(|slot| slots.contains(slot))
        };
        let owner = self.blocks.iter().rposition(owns).unwrap_or(innermost);
        let found = (owner..=innermost).find(|at| self.blocks[*at].aggregates_allowed);
        let at = found.ok_or_else(SqlError::invalid_group_func_use)?;
        let block = &self.blocks[at];
        if block.in_aggregate || block.aggregate_slot.is_some_and(|slot| slots.contains(slot)) {
            return Err(SqlError::invalid_group_func_use());
        }
        Ok(at)
    }

    /// Says whether an aggregate's arguments are bound now, and whether they were before.
    fn set_in_aggregate(&mut self, inside: bool) -> bool {
        self.blocks.last_mut().is_some_and(|block| std::mem::replace(&mut block.in_aggregate, inside))
    }

    #[allow(clippy::type_complexity)]
    fn aggregate_operands(&mut self, call: &ast::Aggregate) -> SqlResult<(Vec<Expr>, Vec<(Expr, bool)>)> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.expr(arg)?);
        }
        let mut order = Vec::with_capacity(call.order_by.len());
        for item in &call.order_by {
            let e = match super::query::position(&item.expr, args.len(), "order clause")? {
                Some(at) => args[at].clone(),
                None => self.expr(&item.expr)?,
            };
            order.push((e, item.descending));
        }
        Ok((args, order))
    }

    pub(super) fn case(&mut self, case: &ast::Case) -> SqlResult<Expr> {
        let mut operand = case.operand.as_ref().map(|e| self.expr(e)).transpose()?;
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        for (condition, result) in &case.whens {
            conditions.push(self.expr(condition)?);
            results.push(self.expr(result)?);
        }
        if let Some(e) = operand.take() {
            let (e, members) = self.in_one_collation(e, conditions, "case")?;
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
                    self.compare(CompareOp::Eq, as_text(operand.clone()), condition)?
                }
                Some(operand) => compare_case(self, operand.clone(), condition)?,
                None => truth_of_number(condition),
            };
            ty = Some(match ty {
                None => result.ty.clone().as_chosen(),
                Some(before) => unify(&before, &result.ty, "case")?,
            });
            whens.push((condition, result));
        }
        let otherwise = case.otherwise.as_ref().map(|e| self.expr(e)).transpose()?;
        let mut ty = ty.unwrap_or_else(ExprType::null);
        match &otherwise {
            Some(e) => ty = unify(&ty, &e.ty, "case")?,
            None => ty.nullable = true,
        }
        let results = whens.iter().map(|(_, result)| result);
        refuse_lossy(self, &results.chain(&otherwise).collect::<Vec<_>>(), ty.column.collation, "case")?;
        let otherwise = otherwise.map(Box::new);
        Ok(self.fold(Expr { kind: Kind::Case { whens: whens.into(), otherwise }, ty }))
    }

    pub(super) fn cast(&mut self, operand: &ast::Expr, target: &CastType) -> SqlResult<Expr> {
        let mut e = self.expr(operand)?;
        if matches!(target, CastType::Json) {
            e = self.in_utf8(e);
        }
        if let Some(operation) = number_cast(target) {
            refuse_fixed(&e.ty, operation)?;
        }
        let nullable = e.ty.nullable;
        let collation = self.collation();
        let string = |kind, length: Option<u32>, collation: u16| -> ExprType {
            match length {
                Some(length) => ExprType {
                    column: column_type(kind, false, length, 0, collation),
                    nullable: true,
                    coercibility: Coercibility::Implicit,
                },
                None => {
                    let length = if collation == BINARY { bytes(&e.ty) } else { e.ty.display_length() };
                    ExprType::varchar(length, collation).coercible(Coercibility::Implicit)
                }
            }
        };
        if let CastType::Time(digits @ 7..) | CastType::DateTime(digits @ 7..) = target {
            return Err(SqlError::too_big_precision(i64::from(*digits), "CAST", 6));
        }
        let ty = match target {
            CastType::Signed => ExprType::bigint(),
            CastType::Unsigned => ExprType::ubigint(),
            CastType::Binary(length) => string(ColumnKind::Binary, *length, BINARY),
            CastType::Char { length, charset } => {
                let collation = match charset {
                    Some(name) => charset_by_name(name)?,
                    None => collation,
                };
                let kind = if collation == BINARY { ColumnKind::Binary } else { ColumnKind::Char };
                string(kind, *length, collation)
            }
            CastType::NChar(length) => string(ColumnKind::Char, *length, 33),
            CastType::Date => ExprType::date().nullable(true),
            CastType::Time(decimals) => ExprType::time(*decimals).nullable(true),
            CastType::DateTime(decimals) => ExprType::datetime(*decimals).nullable(true),
            CastType::DateTimeAt { .. } => return super::cast_at::bind(self, operand, e, target),
            CastType::Decimal { precision, scale } => {
                if scale > precision {
                    return Err(SqlError::m_bigger_than_d(""));
                }
                if *precision > 65 {
                    return Err(SqlError::too_big_precision(i64::from(*precision), "", 65));
                }
                if *scale > 30 {
                    let text = format!("Too big scale {scale} specified for column ''. Maximum is 30.");
                    return Err(SqlError::new(1425, b"42000", text));
                }
                ExprType::decimal(u32::from(*precision), *scale)
            }
            CastType::Float(_) => {
                let mut ty = ExprType::double();
                ty.column.kind = ColumnKind::Float;
                ty.column.length = 12;
                ty
            }
            CastType::Double => ExprType::double(),
            CastType::Year => {
                let mut ty = ExprType::int(4).nullable(true);
                ty.column.kind = ColumnKind::Year;
                ty.column.unsigned = true;
                ty
            }
            CastType::Json => ExprType::json().nullable(true),
            CastType::Uuid => ExprType::fixed(FixedKind::Uuid).nullable(true),
            CastType::Inet4 => ExprType::fixed(FixedKind::Inet4).nullable(true),
            CastType::Inet6 => ExprType::fixed(FixedKind::Inet6).nullable(true),
        };
        // Bytes may be no text.
        let bytes = e.ty.family() == Family::String && e.ty.column.collation == BINARY
            || e.ty.column.kind == ColumnKind::Bit;
        let taken = bytes && ty.family() == Family::String && ty.column.collation != BINARY;
        let nullable = nullable || ty.nullable || taken;
        Ok(self.fold(Expr { kind: Kind::Cast(Box::new(e)), ty: ty.nullable(nullable) }))
    }

    pub(super) fn convert_using(&mut self, operand: &ast::Expr, charset: &str) -> SqlResult<Expr> {
        let e = self.expr(operand)?;
        let collation = charset_by_name(charset)?;
        if collation == BINARY {
            return Ok(binary_string(e));
        }
        let e = as_text(e);
        let mut ty = ExprType::varchar(e.ty.display_length(), collation).nullable(true);
        ty.coercibility = Coercibility::Implicit;
        Ok(self.fold(Expr { kind: Kind::Transcode(Box::new(e)), ty }))
    }

    pub(super) fn collate(&mut self, operand: &ast::Expr, name: &str) -> SqlResult<Expr> {
        let e = as_text(self.expr(operand)?);
        let of = e.ty.column.collation;
        let found = collation::by_name_in(collation::by_id_or_binary(of).charset, name);
        let collation = found.ok_or_else(|| SqlError::unknown_collation(name))?;
        if charset::charset_name(of) != collation.charset.name() && !matches!(e.kind, Kind::Text(_)) {
            return Err(SqlError::new(
                1253,
                b"42000",
                format!(
                    "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                    collation.name,
                    charset::charset_name(of)
                ),
            ));
        }
        let mut ty = e.ty.clone();
        ty.column.collation = collation.id;
        ty.coercibility = Coercibility::Explicit;
        Ok(Expr { kind: Kind::Retype(Box::new(e)), ty })
    }

    pub(super) fn extract(&mut self, unit: omnibus_value::temporal::IntervalUnit, e: Expr) -> Expr {
        use omnibus_value::temporal::IntervalUnit as U;
        let mut ty = ExprType::bigint().nullable(true);
        ty.column.length = match unit {
            U::Quarter => 1,
            U::Year => 4,
            U::YearMonth => 6,
            U::Month | U::Week | U::Day | U::Hour | U::Minute | U::Second => 3,
            _ => 20,
        };
        self.fold(Expr { kind: Kind::Extract(unit, Box::new(e)), ty })
    }

    pub(super) fn date_arith(
        &mut self,
        date: &ast::Expr,
        value: &ast::Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> SqlResult<Expr> {
        let (date, value) = (self.expr(date)?, self.expr(value)?);
        Ok(self.date_plus(date, value, unit, subtract))
    }

    /// A time and an interval.
    pub(super) fn date_plus(
        &mut self,
        date: Expr,
        value: Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Expr {
        let value = number_literal(value);
        let mut ty = interval::date_arith_type(&date, &value, unit, self.session.settings.mariadb);
        if ty.family() == Family::String {
            ty.column.collation = self.collation();
        }
        let args = Box::new([date, value]);
        self.fold(Expr { kind: Kind::DateArith { args, unit, subtract }, ty })
    }

    pub(super) fn trim(&mut self, trim: &ast::Trim) -> SqlResult<Expr> {
        let mut args = vec![self.expr(&trim.from)?];
        if let Some(what) = &trim.what {
            args.push(self.expr(what)?);
        }
        let name = match trim.side {
            ast::TrimSide::Both => "TRIM",
            ast::TrimSide::Leading => "LTRIM",
            ast::TrimSide::Trailing => "RTRIM",
        };
        self.call_function(name, args)
    }

    /// `VALUES(col)`: the row that INSERT wanted to insert, which is the table aliased `VALUES`
    /// in the scope that INSERT opens; NULL anywhere else.
    pub(super) fn values_of(&mut self, column: &ast::ColumnRef) -> SqlResult<Expr> {
        let values = self
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
                self.column(column)?;
                Ok(Expr::null())
            }
        }
    }
}

/// The default collation of a character set.
fn charset_by_name(name: &str) -> SqlResult<u16> {
    collation::Charset::by_name(name)
        .map(|set| set.default_collation().id)
        .ok_or_else(|| SqlError::unknown_character_set(name))
}

/// What MariaDB calls a cast to a number or a time.
fn number_cast(target: &CastType) -> Option<&'static str> {
    Some(match target {
        CastType::Signed => "cast_as_signed",
        CastType::Unsigned => "cast_as_unsigned",
        CastType::Decimal { .. } => "decimal_typecast",
        CastType::Float(_) | CastType::Double => "double_typecast",
        CastType::Date => "cast_as_date",
        CastType::Time(_) => "cast_as_time",
        CastType::DateTime(_) => "cast_as_datetime",
        _ => return None,
    })
}

impl Binder<'_> {
    /// NEXTVAL, LASTVAL or SETVAL, if it is one: the first argument is the name of a sequence.
    fn sequence_call(&mut self, call: &ast::FunctionCall) -> SqlResult<Option<Expr>> {
        let Some(what) = SequenceFunction::named(&call.name).filter(|_| call.schema.is_none()) else {
            return Ok(None);
        };
        let counts = if what == SequenceFunction::SetVal { 2..=4 } else { 1..=1 };
        let Some(ast::Expr::Column(name)) = call.args.first().filter(|_| counts.contains(&call.args.len()))
        else {
            return Err(SqlError::wrong_parameter_count_to_native_fct(&call.name));
        };
        let db = match (name.table(), &self.session.database) {
            (Some(db), _) => db.as_str(),
            (None, Some(current)) => current,
            (None, None) => return Err(SqlError::no_db()),
        };
        let asks = if what == SequenceFunction::LastVal { Priv::Select } else { Priv::Insert };
        self.author.access.check(db, Some(&name.name), asks)?;
        let table = match self.catalog.find_table(db, &name.name) {
            Some(table) if table.def.is_sequence() => table.clone(),
            Some(table) => return Err(sequence::not_sequence(table)),
            None if !self.session.settings.mariadb => return Err(SqlError::not_supported_yet("sequences")),
            None => return Err(sequence::unknown(&name.name)),
        };
        self.note(|noted| noted.bits |= super::uses::SYSTEM_FUNCTION);
        // A plan with it is made anew when its definition changes.
        self.tables.push(table.clone());
        let mut args = Vec::with_capacity(call.args.len() - 1);
        for arg in &call.args[1..] {
            args.push(self.expr(arg)?);
        }
        let kind = Kind::Sequence(Box::new(SequenceCall { table, what, args: args.into() }));
        Ok(Some(Expr { kind, ty: ExprType::bigint().nullable(true) }))
    }
}
