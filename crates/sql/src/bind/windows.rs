//! Window functions: what OVER says, and each function with its arguments.
//!
//! A function becomes a column of the windows' slot. Its arguments become inputs of its window, columns of a slot of its own,
//! so that it can look at any row of the partition. Functions with the same PARTITION BY and ORDER BY share a window.

use super::binder::Binder;
use super::calls;
use super::exists::has_no_subquery;
use crate::catalog::first_double;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::aggregate::{self, AggregateSpec};
use crate::expr::types::Family;
use crate::expr::unify::unify;
use crate::expr::{Expr, ExprType, Kind};
use crate::logical::window::{Bound, Frame, Window, WindowCall, WindowFunction, Windows};
use omnibus_parser::ast::{self, AggregateKind, FrameBound, Ident, Over, WindowFrame, WindowSpec};
use omnibus_value::Value;
use omnibus_value::temporal::{DateTime, IntervalUnit};
use std::sync::Arc;

const UNNAMED: &str = "<unnamed window>";

/// The window functions of a block so far.
#[derive(Debug, Default)]
pub(crate) struct BlockWindows {
    /// Whether they may stand in the clause that is bound.
    allowed: bool,
    /// Whether the arguments of one are bound, or its OVER.
    inside: bool,
    /// WINDOW.
    named: Arc<[(Ident, WindowSpec)]>,
    windows: Vec<Window>,
    slot: Option<u16>,
    results: usize,
}

impl BlockWindows {
    /// All of the block; `row_slots` are those that are read behind them.
    pub(super) fn plan(&mut self, row_slots: impl FnOnce() -> Vec<u16>) -> Option<Windows> {
        let slot = self.slot?;
        let windows = std::mem::take(&mut self.windows);
        Some(Windows { slot, results: self.results, row_slots: row_slots(), windows })
    }
}

/// A window as OVER names it: what it and those that it builds on say.
#[derive(Clone, Default)]
struct Resolved {
    name: Option<Ident>,
    partition: Vec<ast::Expr>,
    order: Vec<ast::OrderItem>,
    frame: Option<WindowFrame>,
}

impl Resolved {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(UNNAMED)
    }

    fn refused(&self, code: u16, why: &str) -> SqlError {
        SqlError::new(code, b"HY000", format!("Window '{}'{why}", self.name()))
    }
}

/// Where a function's results come from.
struct FramePlace {
    window: usize,
    frame: Frame,
}

fn misplaced(name: &str) -> SqlError {
    SqlError::new(3593, b"HY000", format!("You cannot use the window function '{name}' in this context.'"))
}

fn block_windows<'a>(binder: &'a mut Binder<'_>) -> SqlResult<&'a mut BlockWindows> {
    binder.blocks.last_mut().map(|block| &mut block.windows).ok_or_else(SqlError::unknown_error)
}

/// Says whether window functions may stand in what is bound next.
pub(super) fn allow_windows(binder: &mut Binder<'_>, allowed: bool) {
    if let Some(block) = binder.blocks.last_mut() {
        block.windows.allowed = allowed;
    }
}

/// Takes up the WINDOW clause.
///
/// # Errors
/// 3591 for a name that is there twice, 3579 for one that is not there, 3580 for names that go round in a circle.
pub(super) fn name_windows(binder: &mut Binder<'_>, named: &[(Ident, WindowSpec)]) -> SqlResult<()> {
    if named.is_empty() {
        return Ok(());
    }
    if let Some(at) = first_double(named.iter().map(|(name, _)| &**name)) {
        return Err(SqlError::new(3591, b"HY000", format!("Window '{}' is defined twice.", named[at].0)));
    }
    for (_, spec) in named {
        mean_names(binder, spec);
    }
    let block = block_windows(binder)?;
    block.named = named.into();
    for (name, _) in named {
        // Each is looked for.
        binder.session.budget.spend_plan(named.len() as u32)?;
        named_window(binder, name, named.len())?;
    }
    Ok(())
}

/// Notes what the names of a window mean, for a view that keeps it: what is bound is a copy, which has other places in memory.
fn mean_names(binder: &mut Binder<'_>, spec: &WindowSpec) {
    if binder.notes.meaning.is_some() {
        for e in spec.partition_by.iter().chain(spec.order_by.iter().map(|item| &item.expr)) {
            // Whoever binds the copy says what is wrong.
            let _ = binder.expr(e);
        }
    }
}

/// A window of the WINDOW clause; `depth` bounds how many it may build on.
fn named_window(binder: &mut Binder<'_>, name: &Ident, depth: usize) -> SqlResult<Resolved> {
    let named = block_windows(binder)?.named.clone();
    let Some((_, spec)) = named.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)) else {
        return Err(SqlError::new(3579, b"HY000", format!("Window name '{name}' is not defined.")));
    };
    resolve(binder, spec, Some(name), depth)
}

fn resolve(
    binder: &mut Binder<'_>,
    spec: &WindowSpec,
    name: Option<&Ident>,
    depth: usize,
) -> SqlResult<Resolved> {
    let mut found = Resolved { name: name.cloned(), ..Resolved::default() };
    if let Some(base) = &spec.base {
        let Some(depth) = depth.checked_sub(1) else {
            let circle = "There is a circularity in the window dependency graph.";
            return Err(SqlError::new(3580, b"HY000", circle));
        };
        let base = named_window(binder, base, depth)?;
        if !spec.partition_by.is_empty() {
            let why = "A window which depends on another cannot define partitioning.";
            return Err(SqlError::new(3581, b"HY000", why));
        }
        if base.frame.is_some() {
            let why = " has a frame definition, so cannot be referenced by another window.";
            return Err(base.refused(3582, why));
        }
        if !base.order.is_empty() && !spec.order_by.is_empty() {
            let why = format!(" cannot inherit '{}' since both contain an ORDER BY clause.", base.name());
            return Err(found.refused(3583, &why));
        }
        found = Resolved { name: found.name, ..base };
    }
    found.partition.extend(spec.partition_by.iter().cloned());
    found.order.extend(spec.order_by.iter().cloned());
    found.frame = spec.frame.clone();
    Ok(found)
}

/// Binds what stands inside a window function.
fn inside<T>(
    binder: &mut Binder<'_>,
    name: &str,
    work: impl FnOnce(&mut Binder<'_>) -> SqlResult<T>,
) -> SqlResult<T> {
    let in_aggregate = binder.blocks.last().is_some_and(|block| block.in_aggregate);
    let windows = block_windows(binder).map_err(|_| misplaced(name))?;
    if !windows.allowed || windows.inside || in_aggregate {
        return Err(misplaced(name));
    }
    windows.inside = true;
    let done = work(binder);
    block_windows(binder)?.inside = false;
    done
}

/// ROW_NUMBER, LAG and their kind.
pub(super) fn window(binder: &mut Binder<'_>, call: &ast::WindowCall) -> SqlResult<Expr> {
    if call.ignore_nulls {
        return Err(SqlError::not_supported_yet("IGNORE NULLS"));
    }
    let name: &str = &call.name;
    inside(binder, name, |binder| {
        let count = match name {
            "ntile" | "first_value" | "last_value" => 1..=1,
            "lag" | "lead" => 1..=3,
            "nth_value" => 2..=2,
            _ => 0..=0,
        };
        if !count.contains(&call.args.len()) {
            return Err(SqlError::wrong_parameter_count_to_native_fct(name));
        }
        let args = call.args.iter().map(|arg| binder.expr(arg)).collect::<SqlResult<Vec<Expr>>>()?;
        let place = place(binder, &call.over)?;
        placed(binder, name, args, place)
    })
}

/// An aggregate with OVER.
pub(super) fn windowed_aggregate(
    binder: &mut Binder<'_>,
    call: &ast::Aggregate,
    over: &Over,
) -> SqlResult<Expr> {
    if call.distinct {
        return Err(SqlError::not_supported_yet("<window function>(DISTINCT ..)"));
    }
    if call.kind == AggregateKind::GroupConcat {
        return Err(SqlError::not_supported_yet("group_concat as window function"));
    }
    inside(binder, call.kind.name(), |binder| {
        let args = call.args.iter().map(|arg| binder.expr(arg)).collect::<SqlResult<Vec<Expr>>>()?;
        let args = super::aggregate::aggregate_args(binder, call.kind, args)?;
        let ty = aggregate::result_type(call.kind, &args, &binder.context())?;
        let place = place(binder, over)?;
        let mut inputs = Vec::with_capacity(args.len());
        for arg in args {
            let (input, e) = input(binder, &place, arg)?;
            inputs.push((input, e));
        }
        let spec = AggregateSpec {
            kind: call.kind,
            distinct: false,
            args: inputs.into_iter().map(|(_, e)| e).collect(),
            ty: ty.clone(),
            order: Vec::new(),
            separator: bytes::Bytes::new(),
            limit: None,
        };
        result(binder, place, WindowCall::Aggregate(spec), ty)
    })
}

fn placed(binder: &mut Binder<'_>, name: &str, args: Vec<Expr>, place: FramePlace) -> SqlResult<Expr> {
    let mariadb = binder.session.settings.mariadb;
    let count = || {
        let mut ty = if mariadb { ExprType::bigint() } else { ExprType::ubigint() };
        ty.column.length = 21;
        ty
    };
    let share = || {
        let mut ty = ExprType::double();
        if mariadb {
            (ty.column.length, ty.column.decimals) = (23, 10);
        }
        ty
    };
    let mut args = args.into_iter();
    let Some(value) = args.next() else {
        let (call, ty) = match name {
            "row_number" => (WindowCall::RowNumber, count()),
            "rank" => (WindowCall::Rank, count()),
            "dense_rank" => (WindowCall::DenseRank, count()),
            "percent_rank" => (WindowCall::PercentRank, share()),
            "cume_dist" => (WindowCall::CumeDist, share()),
            _ => return Err(SqlError::not_supported_yet(name)),
        };
        return result(binder, place, call, ty);
    };
    let mut ty = value.ty.clone().nullable(true);
    let (second, third) = (args.next(), args.next());
    let counting = if name == "ntile" { Some(&value) } else { second.as_ref() };
    if !mariadb && counting.is_some_and(|e| matches!(name, "ntile" | "lag" | "lead") && !is_count(e)) {
        return Err(SqlError::wrong_arguments(name));
    }
    if let Some(default) = &third {
        ty = unify(&ty, &default.ty, name)?.nullable(true);
    }
    let (value, _) = input(binder, &place, value)?;
    let mut more = |e: Option<Expr>| e.map(|e| input(binder, &place, e).map(|(at, _)| at)).transpose();
    let (second, third) = (more(second)?, more(third)?);
    let call = match (name, second) {
        ("ntile", _) => {
            ty = count();
            WindowCall::Ntile(value)
        }
        ("lag" | "lead", distance) => {
            WindowCall::Other { value, distance, default: third, before: name == "lag" }
        }
        ("first_value", _) => WindowCall::First(value),
        ("last_value", _) => WindowCall::Last(value),
        ("nth_value", Some(which)) => WindowCall::Nth(value, which),
        _ => return Err(SqlError::not_supported_yet(name)),
    };
    result(binder, place, call, ty)
}

/// Whether a number of rows or buckets may be what it gives, as far as that is known.
fn is_count(e: &Expr) -> bool {
    match &e.kind {
        Kind::Const(Value::UInt(n)) => i64::try_from(*n).is_ok(),
        Kind::UserVariable(_) => !e.ty.is_null() && e.ty.family() == Family::Integer,
        _ => true,
    }
}

/// The window of an OVER, and the frame in it.
fn place(binder: &mut Binder<'_>, over: &Over) -> SqlResult<FramePlace> {
    let depth = block_windows(binder)?.named.len();
    let said = match over {
        Over::Name(name) => named_window(binder, name, depth)?,
        Over::Spec(spec) => {
            mean_names(binder, spec);
            resolve(binder, spec, None, depth)?
        }
    };
    let mut partition = Vec::with_capacity(said.partition.len());
    for e in &said.partition {
        partition.extend(sorted_by(binder, e, &said)?);
    }
    let mut order = Vec::with_capacity(said.order.len());
    for item in &said.order {
        order.extend(sorted_by(binder, &item.expr, &said)?.map(|e| (e, item.descending)));
    }
    let window = window_of(binder, partition, order)?;
    let frame = frame(binder, window, &said)?;
    Ok(FramePlace { window, frame })
}

/// A member of PARTITION BY or ORDER BY; `None` for a constant, which sorts nothing.
fn sorted_by(binder: &mut Binder<'_>, e: &ast::Expr, said: &Resolved) -> SqlResult<Option<Expr>> {
    if matches!(e, ast::Expr::Literal(ast::Literal::Int(_))) && !binder.session.settings.mariadb {
        let why = ": ORDER BY or PARTITION BY uses legacy position indication which is not supported, use expression.";
        return Err(said.refused(3592, why));
    }
    let e = binder.expr(e)?;
    if !binder.session.settings.mariadb {
        refuse_outer(binder, &e)?;
    }
    Ok(e.as_const().is_none().then_some(e))
}

/// Refuses a mere column of a block around this one.
fn refuse_outer(binder: &Binder<'_>, e: &Expr) -> SqlResult<()> {
    let Some((_, around)) = binder.blocks.split_last() else { return Ok(()) };
    let Kind::Column { slot, column, .. } = e.kind else { return Ok(()) };
    let mut tables = around.iter().flat_map(|block| &block.scope.tables);
    let Some(table) = tables.find(|table| table.slot == slot) else { return Ok(()) };
    let name = format!("{}.{}.{}", table.schema, table.alias, table.column_name(usize::from(column)));
    let message = format!("Outer reference {name} in window's ORDER BY or PARTITION BY clause not allowed.");
    Err(SqlError::new(6432, b"HY000", message))
}

/// The number of a window of the block, which is made if there is none like it.
fn window_of(binder: &mut Binder<'_>, partition: Vec<Expr>, order: Vec<(Expr, bool)>) -> SqlResult<usize> {
    let same = |window: &Window| {
        let alike = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b));
        let ordered = window.order.len() == order.len()
            && window.order.iter().zip(&order).all(|(a, b)| a.1 == b.1 && a.0.same(&b.0));
        ordered && alike(&window.partition, &partition)
    };
    if let Some(at) = block_windows(binder)?.windows.iter().position(same) {
        return Ok(at);
    }
    let input_slot = binder.new_slot();
    let windows = &mut block_windows(binder)?.windows;
    windows.push(Window { partition, order, input_slot, inputs: Vec::new(), functions: Vec::new() });
    Ok(windows.len() - 1)
}

/// Has a window evaluate an expression for each row: its place among the inputs, and how functions read it.
fn input(binder: &mut Binder<'_>, place: &FramePlace, e: Expr) -> SqlResult<(usize, Expr)> {
    input_of(binder, place.window, e)
}

fn input_of(binder: &mut Binder<'_>, window: usize, e: Expr) -> SqlResult<(usize, Expr)> {
    let window = &mut block_windows(binder)?.windows[window];
    let at = window.inputs.iter().position(|input| input.same(&e)).unwrap_or_else(|| {
        window.inputs.push(e.clone());
        window.inputs.len() - 1
    });
    let kind = Kind::Column { slot: window.input_slot, column: at as u16, utc: false };
    Ok((at, Expr { kind, ty: e.ty }))
}

/// Adds a function to its window: the expression that has its value.
fn result(binder: &mut Binder<'_>, place: FramePlace, call: WindowCall, ty: ExprType) -> SqlResult<Expr> {
    let slot = match block_windows(binder)?.slot {
        Some(slot) => slot,
        None => binder.new_slot(),
    };
    let windows = block_windows(binder)?;
    windows.slot = Some(slot);
    let result = windows.results;
    windows.results += 1;
    windows.windows[place.window].functions.push(WindowFunction { result, call, frame: place.frame });
    Ok(Expr { kind: Kind::Column { slot, column: result as u16, utc: false }, ty })
}

fn frame(binder: &mut Binder<'_>, window: usize, said: &Resolved) -> SqlResult<Frame> {
    let Some(written) = &said.frame else {
        // Without an order all rows are equal.
        let (start, end) = (Bound::Partition, Bound::Current);
        return Ok(Frame { rows: false, start, end, by_value: None });
    };
    let end = written.end.clone().unwrap_or(FrameBound::CurrentRow);
    if matches!(written.start, FrameBound::UnboundedFollowing) {
        return Err(said.refused(3584, ": frame start cannot be UNBOUNDED FOLLOWING."));
    }
    if matches!(end, FrameBound::UnboundedPreceding) {
        return Err(said.refused(3585, ": frame end cannot be UNBOUNDED PRECEDING."));
    }
    let backwards = matches!(
        (&written.start, &end),
        (FrameBound::Following(_), FrameBound::CurrentRow | FrameBound::Preceding(_))
            | (FrameBound::CurrentRow, FrameBound::Preceding(_))
    );
    if backwards {
        return Err(said.refused(3586, BAD_BOUND));
    }
    let far = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    let mut by_value = None;
    if !written.rows && (far(&written.start) || far(&end)) {
        let order = &block_windows(binder)?.windows[window].order;
        let numeric = |e: &Expr| {
            use Family as F;
            matches!(e.ty.family(), F::Integer | F::Decimal | F::Real | F::Date | F::Time | F::DateTime)
        };
        let [(e, descending)] = &order[..] else { return Err(said.refused(3587, ONE_ORDER)) };
        if !numeric(e) {
            return Err(said.refused(3587, ONE_ORDER));
        }
        let (e, descending) = (e.clone(), *descending);
        let (at, e) = input_of(binder, window, e)?;
        by_value = Some((at, descending, e));
    }
    let value = by_value.as_ref().map(|(_, descending, e)| (e.clone(), *descending));
    let start = bound(binder, &written.start, written.rows, value.clone(), said)?;
    let end = bound(binder, &end, written.rows, value, said)?;
    Ok(Frame {
        rows: written.rows,
        start,
        end,
        by_value: by_value.map(|(at, descending, _)| (at, descending)),
    })
}

fn bound(
    binder: &mut Binder<'_>,
    bound: &FrameBound,
    rows: bool,
    value: Option<(Expr, bool)>,
    said: &Resolved,
) -> SqlResult<Bound> {
    let (written, preceding) = match bound {
        FrameBound::CurrentRow => return Ok(Bound::Current),
        FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => return Ok(Bound::Partition),
        FrameBound::Preceding(e) => (e, true),
        FrameBound::Following(e) => (e, false),
    };
    let interval = match written {
        ast::Expr::Function(call) if &*call.name == "interval" => match &call.args[..] {
            [value, ast::Expr::Unit(unit)] => Some((value, *unit)),
            _ => None,
        },
        _ => None,
    };
    if let Some((amount, unit)) = interval {
        let Some((e, descending)) = value.filter(|_| !rows) else {
            return Err(said.refused(3596, ": INTERVAL can only be used with RANGE frames."));
        };
        if !matches!(e.ty.family(), Family::Date | Family::Time | Family::DateTime) {
            let why = " with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
            return Err(said.refused(3589, why));
        }
        let amount = binder.expr(amount)?;
        if !amount.slots().is_empty() || !has_no_subquery(&amount) {
            return Err(said.refused(3590, NOT_CONSTANT));
        }
        if !binder.session.settings.mariadb && goes_back(binder, &amount, unit) {
            return Err(said.refused(3586, BAD_BOUND));
        }
        let moved = calls::date_plus(binder, e, amount, unit, preceding != descending);
        return Ok(Bound::Value(moved));
    }
    if let Some((e, _)) = &value
        && matches!(e.ty.family(), Family::Date | Family::Time | Family::DateTime)
    {
        let why =
            " with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
        return Err(said.refused(3588, why));
    }
    let by = binder.expr(written)?;
    if !by.slots().is_empty() {
        return Err(said.refused(3590, NOT_CONSTANT));
    }
    let bad = match by.as_const() {
        Some(Value::Null) => true,
        Some(Value::Int(n)) => *n < 0,
        Some(Value::Decimal(n)) => rows || n.is_negative(),
        Some(Value::Double(n)) => rows || *n < 0.0,
        Some(Value::Bytes(_)) => true,
        _ => false,
    };
    if bad {
        return Err(said.refused(3586, BAD_BOUND));
    }
    Ok(Bound::Distance { preceding, by })
}

/// Whether a constant interval is NULL or leads backwards, of parameters with the values that they have now.
fn goes_back(binder: &mut Binder<'_>, amount: &Expr, unit: IntervalUnit) -> bool {
    let mut amount = amount.clone();
    give_values(binder, &mut amount);
    if !amount.is_foldable() {
        return false;
    }
    let epoch = DateTime::from_unix(0, 0).unwrap_or(DateTime::ZERO);
    let start = Expr::constant(Value::DateTime(epoch), ExprType::datetime(6));
    let moved = calls::date_plus(binder, start, amount, unit, false);
    match binder.evaluate(&moved) {
        Some(Value::DateTime(at)) => at < epoch,
        _ => true,
    }
}

/// Puts the values of parameters, if they are known, into the places of these: the plan is for these values then.
fn give_values(binder: &mut Binder<'_>, e: &mut Expr) {
    if let Kind::Param(number) = e.kind {
        binder.collected.untyped_params = true;
        if let Some(value) = binder.params.and_then(|params| params.get(number)) {
            *e = Expr::constant(value.clone(), e.ty.clone());
        }
    }
    e.children_mut(&mut |child| give_values(binder, child));
}

/// Whether an expression has a window function of the innermost block.
pub(super) fn is_windowed(binder: &Binder<'_>, e: &Expr) -> bool {
    let slot = binder.blocks.last().and_then(|block| block.windows.slot);
    slot.is_some_and(|slot| e.slots().contains(slot))
}

/// Refuses an alias of an expression with a window function, where rows are not grouped yet.
pub(super) fn refuse_windowed(binder: &Binder<'_>, e: &Expr) -> SqlResult<()> {
    let Some(block) = binder.blocks.last().filter(|_| is_windowed(binder, e)) else { return Ok(()) };
    let named = block.scope.aliases.iter().find(|(_, aliased)| aliased.same(e));
    let name = named.map_or("", |(name, _)| name);
    let why = format!(
        "You cannot use the alias '{name}' of an expression containing a window function in this context.'"
    );
    Err(SqlError::new(3594, b"HY000", why))
}

const NOT_CONSTANT: &str = " has a non-constant frame bound.";
const BAD_BOUND: &str = ": frame start or end is negative, NULL or of non-integral type";
const ONE_ORDER: &str = " with RANGE N PRECEDING/FOLLOWING frame requires exactly one deterministic ORDER BY expression, of numeric or temporal type";
