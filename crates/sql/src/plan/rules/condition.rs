//! Conditions as indexes see them: what a conjunct says about one column.

use crate::catalog::{Column, Table};
use crate::expr::SlotSet;
use crate::expr::node::{CompareOp, Expr, IsKind, Kind};
use crate::expr::subquery::{Member, Subquery};
use crate::expr::types::Family;
use omnibus_value::ColumnKind;

/// The meaning of a condition for one column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Says<'e> {
    Equal(&'e Expr, bool),
    Low(&'e Expr, bool),
    High(&'e Expr, bool),
    Between(&'e Expr, &'e Expr),
    In(&'e [Expr]),
    Like(&'e Expr, Option<u32>),
}

/// Finds the column of slot `slot` that `condition` is about and its meaning for it, in terms of slots that are not in `missing`: those not read by then, itself among them.
pub(crate) fn says<'e>(
    condition: &'e Expr,
    slot: u16,
    missing: &SlotSet,
    table: &Table,
) -> Option<(usize, Says<'e>)> {
    let column_of = |e: &Expr| match &e.kind {
        Kind::Column { slot: s, column, .. } if *s == slot => Some(usize::from(*column)),
        _ => None,
    };
    let usable = |column: usize, value: &Expr, collation: u16| {
        !value.slots().meets(missing)
            && !calls_anew(value)
            && orders(&table.columns()[column], value, collation)
    };
    match &condition.kind {
        Kind::Compare(op, collation, pair) => {
            let [left, right] = &**pair;
            let (column, value, op) = match (column_of(left), column_of(right)) {
                (Some(column), _) if usable(column, right, *collation) => (column, right, *op),
                (_, Some(column)) if usable(column, left, *collation) => (column, left, op.flipped()),
                _ => return None,
            };
            let says = match op {
                CompareOp::Eq => Says::Equal(value, false),
                CompareOp::NullSafeEq => Says::Equal(value, true),
                CompareOp::Lt => Says::High(value, false),
                CompareOp::Le => Says::High(value, true),
                CompareOp::Gt => Says::Low(value, false),
                CompareOp::Ge => Says::Low(value, true),
                CompareOp::Ne => return None,
            };
            Some((column, says))
        }
        Kind::Between { args, collation, negated: false } => {
            let column = column_of(&args[0])?;
            let both = usable(column, &args[1], *collation) && usable(column, &args[2], *collation);
            both.then_some((column, Says::Between(&args[1], &args[2])))
        }
        Kind::In { args, collation, negated: false } => {
            let column = column_of(&args[0])?;
            let all = args[1..].iter().all(|value| usable(column, value, *collation));
            all.then_some((column, Says::In(&args[1..])))
        }
        Kind::Like(like) if !like.negated && like.given_escape.is_none() => {
            let column = column_of(&like.text)?;
            let begins = like.matcher.as_ref().is_none_or(|matcher| !matcher.prefix().is_empty());
            let text = crate::expr::types::family(table.columns()[column].ty.kind) == Family::String;
            let usable = text && begins && usable(column, &like.pattern, like.collation);
            usable.then_some((column, Says::Like(&like.pattern, like.escape)))
        }
        Kind::Is { expr, what: IsKind::Null, negated: false } => {
            let column = column_of(expr)?;
            Some((column, Says::Equal(null_constant(), true)))
        }
        _ => None,
    }
}

/// Whether an index on a column has its values in the order in which they are compared with `value`.
fn orders(column: &Column, value: &Expr, collation: u16) -> bool {
    match crate::expr::types::family(column.ty.kind) {
        Family::String if column.ty.kind == ColumnKind::Enum => value.ty.column.kind == ColumnKind::Enum,
        Family::String => {
            let text = value.ty.family() == Family::String || value.ty.is_null();
            text && (collation == column.ty.collation || value.ty.is_null())
        }
        _ => true,
    }
}

/// The values that a subquery gives, to be looked up.
pub(crate) struct Listed<'e> {
    pub subquery: &'e Subquery,
    /// The cost of having it, if the condition could be asked without.
    pub cost: f64,
    /// Columns of the table, and which columns of the subquery they are among.
    pub columns: Vec<(usize, usize)>,
}

/// `.. IN (SELECT ..)`, or an EXISTS that can be put so, whose values can be looked up through indexes of the table in slot `slot`.
pub(crate) fn among<'e>(condition: &'e Expr, slot: u16, table: &Table) -> Option<Listed<'e>> {
    let Kind::Subquery(subquery) = &condition.kind else { return None };
    let (subquery, cost) = match &subquery.set {
        Some(set) => (&set.list, set.cost),
        None if subquery.is_list() => (&**subquery, 0.0),
        None => return None,
    };
    let of = |(number, (operand, member)): (usize, (&Expr, &Member))| {
        let Kind::Column { slot: s, column, .. } = &operand.kind else { return None };
        let column = usize::from(*column);
        let usable = *s == slot && finds(&table.columns()[column], &member.compared, member.collation);
        usable.then_some((column, number))
    };
    let columns: Vec<_> =
        subquery.operands.iter().zip(&subquery.members).enumerate().filter_map(of).collect();
    (!columns.is_empty()).then_some(Listed { subquery, cost, columns })
}

/// Whether the rows with a value are where an index on the column has that value, whatever the value is: what it cannot hold is not
/// there.
fn finds(column: &Column, value: &Expr, collation: u16) -> bool {
    use ColumnKind as K;
    match column.ty.kind {
        K::Float | K::Set | K::Enum | K::Bit | K::Year | K::Json | K::Geometry => false,
        K::Decimal => {
            value.ty.family() == Family::Integer
                || value.ty.family() == Family::Decimal && value.ty.column.decimals <= column.ty.decimals
        }
        _ => orders(column, value, collation),
    }
}

/// The NULL of IS NULL, as an expression to compare with.
fn null_constant() -> &'static Expr {
    static NULL: std::sync::OnceLock<Expr> = std::sync::OnceLock::new();
    NULL.get_or_init(Expr::null)
}

/// Whether a value may change from row to row although it reads no column.
fn calls_anew(e: &Expr) -> bool {
    let mut anew = false;
    e.walk(&mut |e| {
        anew |= match &e.kind {
            Kind::Call(def, _) => def.traits & crate::expr::functions::VOLATILE != 0,
            Kind::Assign(_) | Kind::ServerCall(..) | Kind::Sequence(_) | Kind::Stored(_) => true,
            Kind::Subquery(subquery) => subquery.plan.is_volatile(),
            _ => false,
        };
    });
    anew
}
