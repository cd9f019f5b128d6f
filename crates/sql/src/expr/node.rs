//! The compiled expression tree: names resolved to slots, types known, functions looked up.
//!
//! Not the syntax tree (`omnibus_parser::ast::Expr`), which the binder turns into this. Plain data,
//! `Send`, shared by all executions of a plan; evaluation is in `eval`.

use super::comparable::As;
use super::like::LikeMatcher;
use super::regexp::RegexpMatcher;
use super::slot_set::SlotSet;
use super::types::ExprType;
use crate::api::VariableScope;
use crate::expr::functions::Def;
use crate::expr::subquery::{Subquery, SubqueryKind};
use omnibus_value::Value;
use omnibus_value::temporal::IntervalUnit;

/// An expression and its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its operation.
    pub kind: Kind,
    /// The type of its value.
    pub ty: ExprType,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<=>`
    NullSafeEq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%`
    Mod,
}

/// Operators on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// The question of `IS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsKind {
    /// IS NULL, IS UNKNOWN.
    Null,
    /// IS TRUE.
    True,
    /// IS FALSE.
    False,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A constant.
    Const(Value),
    /// `?` number n.
    Param(usize),
    /// A variable of the running stored program.
    Local(u32),
    /// A call of a stored function.
    Stored(Box<super::stored::StoredCall>),
    /// A column of the row in a slot of the statement's frame. `utc`: a stored TIMESTAMP, to be
    /// shown in the session's zone.
    Column {
        /// The table instance.
        slot: u16,
        /// The place of the column in the row.
        column: u16,
        /// Stored as UTC.
        utc: bool,
    },
    /// The clustered key of the row in a slot that is read for changing it.
    RowKey(u16),
    /// Whether an outer join has found a row for a slot.
    Present(u16),
    /// `@name`.
    UserVariable(Box<str>),
    /// `@name := value`.
    Assign(Box<(Box<str>, Expr)>),
    /// `@@name`.
    SystemVariable(Box<(VariableScope, Box<str>)>),
    /// Unary minus.
    Negate(Box<Expr>),
    /// An expression that several aggregates compute of one row; the number is where its value is kept.
    Once(usize, Box<Expr>),
    /// Arithmetic.
    Arith(ArithOp, Box<[Expr; 2]>),
    /// `~`
    BitNot(Box<Expr>),
    /// Bit arithmetic on BIGINT UNSIGNED.
    Bits(BitOp, Box<[Expr; 2]>),
    /// A comparison, strings under this collation.
    Compare(CompareOp, u16, Box<[Expr; 2]>),
    /// AND of two or more.
    And(Box<[Expr]>),
    /// OR of two or more.
    Or(Box<[Expr]>),
    /// XOR.
    Xor(Box<[Expr; 2]>),
    /// NOT.
    Not(Box<Expr>),
    /// IS \[NOT\] ...
    Is {
        /// The operand.
        expr: Box<Expr>,
        /// The question.
        what: IsKind,
        /// NOT.
        negated: bool,
    },
    /// \[NOT\] IN (list): operand first.
    In {
        /// The operand, then the list.
        args: Box<[Expr]>,
        /// Per list member.
        collation: u16,
        /// NOT.
        negated: bool,
    },
    /// \[NOT\] BETWEEN: operand, low, high.
    Between {
        /// Operand, low, high.
        args: Box<[Expr; 3]>,
        /// For strings.
        collation: u16,
        /// NOT.
        negated: bool,
    },
    /// \[NOT\] LIKE.
    Like(Box<LikeExpr>),
    /// \[NOT\] REGEXP.
    Regexp(Box<RegexpExpr>),
    /// CASE. Conditions are truth values: `CASE x WHEN y` has been made `x = y`.
    Case {
        /// (condition, result)
        whens: Box<[(Expr, Expr)]>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// CAST to the expression's own type.
    Cast(Box<Expr>),
    /// As what it is compared with.
    Comparable(As, Box<Expr>),
    /// The label text of an ENUM or SET, or any other value as text.
    Text(Box<Expr>),
    /// A change of character set to the expression's own.
    Transcode(Box<Expr>),
    /// The same value under another type (COLLATE, BINARY).
    Retype(Box<Expr>),
    /// `expr ± INTERVAL value unit`.
    DateArith {
        /// Date, amount.
        args: Box<[Expr; 2]>,
        /// Unit.
        unit: IntervalUnit,
        /// Minus.
        subtract: bool,
    },
    /// MySQL's JSON_VALUE.
    JsonValue(Box<super::json_value::JsonValue>),
    /// EXTRACT(unit FROM expr).
    Extract(IntervalUnit, Box<Expr>),
    /// A unit keyword as an argument.
    Unit(IntervalUnit),
    /// A built-in function.
    Call(&'static Def, Box<[Expr]>),
    /// A function of the server's (replication).
    ServerCall(Box<str>, Box<[Expr]>),
    /// NEXTVAL, LASTVAL, SETVAL.
    Sequence(Box<super::sequence::SequenceCall>),
    /// A row value; only beside another one, which the binder takes apart.
    Row(Box<[Expr]>),
    /// A subquery.
    Subquery(Box<Subquery>),
}

/// LIKE and its pattern, compiled if constant.
#[derive(Clone, Debug)]
pub struct LikeExpr {
    /// The text.
    pub text: Expr,
    /// The pattern.
    pub pattern: Expr,
    /// The pattern if it is constant.
    pub matcher: Option<LikeMatcher>,
    /// The escape character; `None` if there is none.
    pub escape: Option<u32>,
    /// The escape character that each run gives.
    pub given_escape: Option<Expr>,
    /// The collation.
    pub collation: u16,
    /// NOT.
    pub negated: bool,
}

/// REGEXP and its pattern, compiled if constant.
#[derive(Clone, Debug)]
pub struct RegexpExpr {
    /// The text.
    pub text: Expr,
    /// The pattern.
    pub pattern: Expr,
    /// The pattern if it is constant.
    pub matcher: Option<RegexpMatcher>,
    /// The collation.
    pub collation: u16,
    /// NOT.
    pub negated: bool,
}

impl Expr {
    /// A constant.
    #[must_use]
    pub fn constant(value: Value, ty: ExprType) -> Expr {
        Expr { kind: Kind::Const(value), ty }
    }

    /// NULL.
    #[must_use]
    pub fn null() -> Expr {
        Expr::constant(Value::Null, ExprType::null())
    }

    /// An integer constant.
    #[must_use]
    pub fn integer(value: i64) -> Expr {
        Expr::constant(Value::Int(value), ExprType::bigint())
    }

    /// A truth value.
    #[must_use]
    pub fn boolean(kind: Kind, nullable: bool) -> Expr {
        Expr { kind, ty: ExprType::boolean().nullable(nullable) }
    }

    /// A comparison of two expressions whose collation is known.
    #[must_use]
    pub fn compare(op: CompareOp, collation: u16, left: Expr, right: Expr) -> Expr {
        let nullable = op != CompareOp::NullSafeEq && (left.ty.nullable || right.ty.nullable);
        Expr::boolean(Kind::Compare(op, collation, Box::new([left, right])), nullable)
    }

    /// The constant, if it is one.
    #[must_use]
    pub fn as_const(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the value is a truth value: TRUE, FALSE, or what a comparison gives. JSON tells
    /// those from the integers 1 and 0.
    #[must_use]
    pub fn is_truth(&self) -> bool {
        match &self.kind {
            Kind::Compare(..)
            | Kind::And(_)
            | Kind::Or(_)
            | Kind::Xor(_)
            | Kind::Not(_)
            | Kind::Is { .. } => true,
            Kind::In { .. } | Kind::Between { .. } | Kind::Like(_) | Kind::Regexp(_) => true,
            Kind::Const(Value::Int(0 | 1)) => self.ty.column.length == 1,
            Kind::Subquery(subquery) => !matches!(subquery.kind, SubqueryKind::Scalar { .. }),
            Kind::Call(def, _) => super::functions::is_truth(def.name),
            Kind::ServerCall(name, _) => super::functions::is_truth(name),
            _ => false,
        }
    }

    /// Whether the value is the same throughout one execution: no column, no subquery, nothing
    /// that changes between rows.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        let mut fixed = true;
        self.walk(&mut |e| {
            fixed &= match &e.kind {
                Kind::Column { .. } | Kind::RowKey(_) | Kind::Present(_) => false,
                Kind::Subquery(_) | Kind::Assign(_) | Kind::UserVariable(_) => false,
                Kind::ServerCall(..) | Kind::Sequence(_) | Kind::Stored(_) => false,
                Kind::Call(def, _) => def.traits & crate::expr::functions::VOLATILE == 0,
                _ => true,
            }
        });
        fixed
    }

    /// Whether it may be computed once when the statement is bound.
    #[must_use]
    pub fn is_foldable(&self) -> bool {
        let mut foldable = true;
        self.walk(&mut |e| {
            foldable &= match &e.kind {
                Kind::Column { .. }
                | Kind::RowKey(_)
                | Kind::Present(_)
                | Kind::Subquery(_)
                | Kind::Assign(_)
                | Kind::UserVariable(_)
                | Kind::SystemVariable(_)
                | Kind::ServerCall(..)
                | Kind::Sequence(_)
                | Kind::Stored(_)
                | Kind::Local(_)
                | Kind::Row(_)
                | Kind::Unit(_)
                | Kind::Param(_) => false,
                Kind::Call(def, _) => {
                    def.traits & (crate::expr::functions::VOLATILE | crate::expr::functions::SESSION) == 0
                }
                _ => true,
            }
        });
        foldable
    }

    /// Visits this expression and everything below it, not the insides of subqueries.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        self.children(&mut |child| child.walk(visit));
    }

    /// Visits the direct operands.
    pub fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        match &self.kind {
            Kind::Const(_)
            | Kind::Param(_)
            | Kind::Local(_)
            | Kind::Column { .. }
            | Kind::RowKey(_)
            | Kind::Present(_)
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_)
            | Kind::Unit(_) => {}
            Kind::Assign(pair) => visit(&pair.1),
            Kind::Negate(e)
            | Kind::BitNot(e)
            | Kind::Not(e)
            | Kind::Cast(e)
            | Kind::Comparable(_, e)
            | Kind::Text(e)
            | Kind::Transcode(e)
            | Kind::Retype(e)
            | Kind::Once(_, e)
            | Kind::Extract(_, e)
            | Kind::Is { expr: e, .. } => visit(e),
            Kind::Arith(_, pair) | Kind::Bits(_, pair) | Kind::Compare(_, _, pair) | Kind::Xor(pair) => {
                pair.iter().for_each(visit);
            }
            Kind::DateArith { args, .. } => args.iter().for_each(visit),
            Kind::JsonValue(call) => visit(&call.doc),
            Kind::Between { args, .. } => args.iter().for_each(visit),
            Kind::And(list) | Kind::Or(list) | Kind::Row(list) => list.iter().for_each(visit),
            Kind::In { args, .. } | Kind::Call(_, args) | Kind::ServerCall(_, args) => {
                args.iter().for_each(visit)
            }
            Kind::Sequence(call) => call.args.iter().for_each(visit),
            Kind::Stored(call) => call.args.iter().for_each(visit),
            Kind::Like(like) => {
                [&like.text, &like.pattern].into_iter().chain(&like.given_escape).for_each(visit);
            }
            Kind::Regexp(regexp) => [&regexp.text, &regexp.pattern].into_iter().for_each(visit),
            Kind::Case { whens, otherwise } => {
                whens.iter().for_each(|(condition, result)| {
                    visit(condition);
                    visit(result);
                });
                otherwise.iter().for_each(|e| visit(e));
            }
            Kind::Subquery(subquery) => subquery.operands.iter().for_each(visit),
        }
    }

    /// The direct operands, to be replaced.
    pub fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            Kind::Const(_)
            | Kind::Param(_)
            | Kind::Local(_)
            | Kind::Column { .. }
            | Kind::RowKey(_)
            | Kind::Present(_)
            | Kind::UserVariable(_)
            | Kind::SystemVariable(_)
            | Kind::Unit(_) => {}
            Kind::Assign(pair) => visit(&mut pair.1),
            Kind::Negate(e)
            | Kind::BitNot(e)
            | Kind::Not(e)
            | Kind::Cast(e)
            | Kind::Comparable(_, e)
            | Kind::Text(e)
            | Kind::Transcode(e)
            | Kind::Retype(e)
            | Kind::Once(_, e)
            | Kind::Extract(_, e)
            | Kind::Is { expr: e, .. } => visit(e),
            Kind::Arith(_, pair) | Kind::Bits(_, pair) | Kind::Compare(_, _, pair) | Kind::Xor(pair) => {
                pair.iter_mut().for_each(visit);
            }
            Kind::DateArith { args, .. } => args.iter_mut().for_each(visit),
            Kind::JsonValue(call) => visit(&mut call.doc),
            Kind::Between { args, .. } => args.iter_mut().for_each(visit),
            Kind::And(list) | Kind::Or(list) | Kind::Row(list) => list.iter_mut().for_each(visit),
            Kind::In { args, .. } | Kind::Call(_, args) | Kind::ServerCall(_, args) => {
                args.iter_mut().for_each(visit)
            }
            Kind::Sequence(call) => call.args.iter_mut().for_each(visit),
            Kind::Stored(call) => call.args.iter_mut().for_each(visit),
            Kind::Like(like) => {
                [&mut like.text, &mut like.pattern].into_iter().chain(&mut like.given_escape).for_each(visit);
            }
            Kind::Regexp(regexp) => [&mut regexp.text, &mut regexp.pattern].into_iter().for_each(visit),
            Kind::Case { whens, otherwise } => {
                whens.iter_mut().for_each(|(condition, result)| {
                    visit(condition);
                    visit(result);
                });
                otherwise.iter_mut().for_each(|e| visit(e));
            }
            Kind::Subquery(subquery) => subquery.operands.iter_mut().for_each(visit),
        }
    }

    /// The slots that it reads, including those that a subquery inside reads from outside.
    #[must_use]
    pub fn slots(&self) -> SlotSet {
        let mut slots = SlotSet::default();
        self.walk(&mut |e| match &e.kind {
            Kind::Column { slot, .. } | Kind::RowKey(slot) | Kind::Present(slot) => slots.insert(*slot),
            Kind::Subquery(subquery) => slots.extend(&subquery.outer_slots),
            _ => {}
        });
        slots
    }
}

impl CompareOp {
    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::NullSafeEq => "<=>",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// The operator with its sides exchanged.
    #[must_use]
    pub fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            other => other,
        }
    }

    /// Whether an ordering satisfies it.
    #[must_use]
    pub fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        }
    }
}
