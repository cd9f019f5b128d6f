//! Operators: a Pratt parser over MySQL's exact levels.
//!
//! Loosest to tightest: `:=` (see `primary`), OR `||`, XOR, AND `&&`, NOT, comparisons and IS, predicates
//! (IN, LIKE, BETWEEN, REGEXP), `|`, `&`, shifts, `+ -`, `* / % DIV MOD`, `^`, `||` under PIPES_AS_CONCAT, then the
//! prefix operators. A predicate binds tighter than a comparison: `a = b LIKE c` is `a = (b LIKE c)`.

use super::{Parser, Rule, names, primary, query};
use crate::ast::{BinaryOp, Expr, IntervalUnit, Like, Quantifier, Truth, UnaryOp};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARE: u8 = 5;
const PREDICATE: u8 = 6;
const BIT_OR: u8 = 7;
const BIT_AND: u8 = 8;
const SHIFT: u8 = 9;
const ADD: u8 = 10;
const MUL: u8 = 11;
const BIT_XOR: u8 = 12;
const CONCAT: u8 = 13;
const PREFIX: u8 = 14;

/// AND and OR chains longer than this become balanced trees: the order of evaluation is the same and the
/// height stays small for the thousand-member chains that query builders write.
const BALANCE_FROM: usize = 16;

/// The role of the current token after an operand.
#[derive(Clone, Copy)]
enum Infix {
    Op(BinaryOp, u8),
    /// OR, AND: operators collected as a chain.
    Chain(BinaryOp, u8),
    Is,
    In,
    Like,
    Between,
    Regexp,
    /// NOT before one of the four above.
    Not,
    MemberOf,
    SoundsLike,
    None,
}

/// The meanings of INTERVAL.
pub(super) enum Interval {
    Operand(Expr, IntervalUnit),
    Call(Expr),
}

impl Infix {
    fn level(self) -> u8 {
        match self {
            Self::Op(_, level) | Self::Chain(_, level) => level,
            Self::Is => COMPARE,
            Self::None => 0,
            _ => PREDICATE,
        }
    }
}

/// Any expression.
#[inline]
pub(super) fn expr(p: &mut Parser<'_>) -> Rule<Expr> {
    let literal = matches!(p.token.kind, Tok::Int | Tok::Str | Tok::Decimal | Tok::Float | Tok::Param)
        || p.token.kw == Kw::NULL;
    if !literal {
        return p.nest(|p| binary(p, OR));
    }
    // The members of a multi-row INSERT are mostly literals and nothing more.
    let first = primary::primary(p)?;
    if matches!(p.token.kind, Tok::Comma | Tok::RParen | Tok::Eof | Tok::Semicolon) {
        return Ok(first);
    }
    p.nest(|p| {
        let first = collated(p, first)?;
        binary_rest(p, first, OR)
    })
}

/// An expression that is the whole text.
pub(crate) fn whole_expr(p: &mut Parser<'_>) -> Rule<Expr> {
    let expr = expr(p)?;
    if !p.is(Tok::Eof) {
        return Err(p.error());
    }
    Ok(expr)
}

/// An expression without comparisons or logic: MySQL's `bit_expr`.
pub(super) fn bit_expr(p: &mut Parser<'_>) -> Rule<Expr> {
    p.nest(|p| binary(p, BIT_OR))
}

/// One operand with its prefix operators: MySQL's `simple_expr`.
pub(super) fn simple_expr(p: &mut Parser<'_>) -> Rule<Expr> {
    p.nest(|p| prefix(p, PREFIX))
}

fn binary(p: &mut Parser<'_>, min: u8) -> Rule<Expr> {
    let left = prefix(p, min)?;
    binary_rest(p, left, min)
}

/// A right operand: beside the left one in the tree, so that the higher of them counts.
fn right_operand(p: &mut Parser<'_>, min: u8) -> Rule<Expr> {
    let left = std::mem::take(&mut p.height);
    let right = binary(p, min);
    p.height = p.height.max(left);
    right
}

/// The operators behind an operand that is already known.
fn binary_rest(p: &mut Parser<'_>, operand: Expr, min: u8) -> Rule<Expr> {
    let mut left = operand;
    loop {
        let infix = infix(p);
        let level = infix.level();
        if level < min || level == 0 {
            return Ok(left);
        }
        left = match infix {
            Infix::Chain(op, level) => chain(p, left, op, level)?,
            Infix::Op(op, COMPARE) => comparison(p, left, op)?,
            Infix::Op(op, level) => operation(p, left, op, level)?,
            Infix::Is => is_test(p, left)?,
            Infix::MemberOf => member_of(p, left)?,
            Infix::SoundsLike => {
                p.expect_words(&["SOUNDS", "LIKE"])?;
                let right = right_operand(p, BIT_OR)?;
                node(BinaryOp::SoundsLike, left, right)
            }
            Infix::Not => {
                p.advance();
                predicate(p, left, true)?
            }
            _ => predicate(p, left, false)?,
        };
        p.grow()?;
    }
}

fn infix(p: &Parser<'_>) -> Infix {
    match p.token.kind {
        Tok::Eq => Infix::Op(BinaryOp::Eq, COMPARE),
        Tok::NullSafeEq => Infix::Op(BinaryOp::NullSafeEq, COMPARE),
        Tok::Ne => Infix::Op(BinaryOp::Ne, COMPARE),
        Tok::Lt => Infix::Op(BinaryOp::Lt, COMPARE),
        Tok::Le => Infix::Op(BinaryOp::Le, COMPARE),
        Tok::Gt => Infix::Op(BinaryOp::Gt, COMPARE),
        Tok::Ge => Infix::Op(BinaryOp::Ge, COMPARE),
        Tok::AmpAmp => Infix::Chain(BinaryOp::And, AND),
        Tok::PipePipe if p.options.pipes_as_concat => Infix::Op(BinaryOp::Concat, CONCAT),
        Tok::PipePipe => Infix::Chain(BinaryOp::Or, OR),
        Tok::Pipe => Infix::Op(BinaryOp::BitOr, BIT_OR),
        Tok::Amp => Infix::Op(BinaryOp::BitAnd, BIT_AND),
        Tok::ShiftLeft => Infix::Op(BinaryOp::ShiftLeft, SHIFT),
        Tok::ShiftRight => Infix::Op(BinaryOp::ShiftRight, SHIFT),
        Tok::Plus => Infix::Op(BinaryOp::Add, ADD),
        Tok::Minus => Infix::Op(BinaryOp::Sub, ADD),
        Tok::Star => Infix::Op(BinaryOp::Mul, MUL),
        Tok::Slash => Infix::Op(BinaryOp::Div, MUL),
        Tok::Percent => Infix::Op(BinaryOp::Mod, MUL),
        Tok::Caret => Infix::Op(BinaryOp::BitXor, BIT_XOR),
        Tok::Word => infix_word(p),
        _ => Infix::None,
    }
}

fn infix_word(p: &Parser<'_>) -> Infix {
    match p.token.kw {
        Kw::OR => Infix::Chain(BinaryOp::Or, OR),
        Kw::XOR => Infix::Op(BinaryOp::Xor, XOR),
        Kw::AND => Infix::Chain(BinaryOp::And, AND),
        Kw::DIV => Infix::Op(BinaryOp::IntDiv, MUL),
        Kw::MOD => Infix::Op(BinaryOp::Mod, MUL),
        Kw::IS => Infix::Is,
        Kw::IN => Infix::In,
        Kw::LIKE => Infix::Like,
        Kw::BETWEEN => Infix::Between,
        Kw::REGEXP | Kw::RLIKE => Infix::Regexp,
        Kw::NOT => match p.peek().kw {
            Kw::IN | Kw::LIKE | Kw::BETWEEN | Kw::REGEXP | Kw::RLIKE => Infix::Not,
            _ => Infix::None,
        },
        Kw::NONE if p.is_word("MEMBER") && member_follows(p) => Infix::MemberOf,
        Kw::NONE if p.is_word("SOUNDS") && p.peek().kw == Kw::LIKE => Infix::SoundsLike,
        _ => Infix::None,
    }
}

fn member_follows(p: &Parser<'_>) -> bool {
    let next = p.peek();
    next.kw == Kw::OF || next.kind == Tok::LParen
}

/// `left op right op right ...` of one associative logical operator.
fn chain(p: &mut Parser<'_>, left: Expr, op: BinaryOp, level: u8) -> Rule<Expr> {
    p.advance();
    let right = right_operand(p, level + 1)?;
    let again = |p: &Parser<'_>| matches!(infix(p), Infix::Chain(next, _) if next == op);
    if !again(p) {
        return Ok(node(op, left, right));
    }
    let mut members = vec![left, right];
    while again(p) {
        p.advance();
        members.push(right_operand(p, level + 1)?);
    }
    if members.len() < BALANCE_FROM {
        p.height += members.len() as u32;
    } else {
        p.height += members.len().ilog2() + 1;
    }
    Ok(join_members(members, op))
}

fn operation(p: &mut Parser<'_>, left: Expr, op: BinaryOp, level: u8) -> Rule<Expr> {
    p.advance();
    if level == ADD && p.is_kw(Kw::INTERVAL) {
        return match interval(p)? {
            Interval::Operand(value, unit) => {
                let subtract = op == BinaryOp::Sub;
                Ok(Expr::DateArith { expr: Box::new(left), value: Box::new(value), unit, subtract })
            }
            Interval::Call(call) => {
                let right = binary_rest(p, call, level + 1)?;
                Ok(node(op, left, right))
            }
        };
    }
    let right = right_operand(p, level + 1)?;
    Ok(node(op, left, right))
}

/// At INTERVAL: a value and its unit, or a call of the function INTERVAL(a, b, ..).
pub(super) fn interval(p: &mut Parser<'_>) -> Rule<Interval> {
    p.advance();
    let value = if p.is(Tok::LParen) && !query::query_follows_paren(p) {
        p.advance();
        let first = expr(p)?;
        if p.is(Tok::Comma) {
            let mut args = vec![first];
            while p.eat(Tok::Comma) {
                args.push(expr(p)?);
            }
            p.expect(Tok::RParen)?;
            return Ok(Interval::Call(super::function::function("interval", args)));
        }
        p.expect(Tok::RParen)?;
        p.nest(|p| binary_rest(p, first, OR))?
    } else {
        expr(p)?
    };
    Ok(Interval::Operand(value, primary::interval_unit(p)?))
}

fn comparison(p: &mut Parser<'_>, left: Expr, op: BinaryOp) -> Rule<Expr> {
    p.advance();
    let quantifier = if p.is_kw(Kw::ALL) {
        Some(Quantifier::All)
    } else if p.is_word("ANY") || p.is_word("SOME") {
        (p.peek().kind == Tok::LParen).then_some(Quantifier::Any)
    } else {
        None
    };
    if let Some(quantifier) = quantifier {
        p.advance();
        let query = Box::new(query::paren_query(p)?);
        return Ok(Expr::Quantified { op, quantifier, left: Box::new(left), query });
    }
    let right = right_operand(p, PREDICATE)?;
    Ok(node(op, left, right))
}

fn is_test(p: &mut Parser<'_>, left: Expr) -> Rule<Expr> {
    p.advance();
    let negated = p.eat_kw(Kw::NOT);
    let expr = Box::new(left);
    let truth = match p.token.kw {
        Kw::NULL => {
            p.advance();
            return Ok(Expr::IsNull { expr, negated });
        }
        Kw::TRUE => Truth::True,
        Kw::FALSE => Truth::False,
        _ if p.is_word("UNKNOWN") => Truth::Unknown,
        _ => return Err(p.error()),
    };
    p.advance();
    Ok(Expr::IsTruth { expr, truth, negated })
}

fn member_of(p: &mut Parser<'_>, left: Expr) -> Rule<Expr> {
    p.advance();
    p.eat_kw(Kw::OF);
    p.expect(Tok::LParen)?;
    let array = expr(p)?;
    p.expect(Tok::RParen)?;
    Ok(Expr::MemberOf { expr: Box::new(left), array: Box::new(array) })
}

/// At IN, LIKE, BETWEEN or REGEXP.
fn predicate(p: &mut Parser<'_>, left: Expr, negated: bool) -> Rule<Expr> {
    let keyword = p.advance().kw;
    match keyword {
        Kw::IN => in_list(p, left, negated),
        Kw::LIKE => {
            let pattern = right_operand(p, BIT_OR)?;
            let escape = if p.eat_word("ESCAPE") { Some(simple_expr(p)?) } else { None };
            Ok(Expr::Like(Box::new(Like { expr: left, pattern, escape, negated })))
        }
        Kw::BETWEEN => {
            let low = Box::new(right_operand(p, BIT_OR)?);
            p.expect_kw(Kw::AND)?;
            let high = Box::new(p.nest(|p| binary(p, PREDICATE))?);
            Ok(Expr::Between { expr: Box::new(left), low, high, negated })
        }
        _ => {
            let pattern = Box::new(right_operand(p, BIT_OR)?);
            Ok(Expr::Regexp { expr: Box::new(left), pattern, negated })
        }
    }
}

fn in_list(p: &mut Parser<'_>, left: Expr, negated: bool) -> Rule<Expr> {
    if !p.is(Tok::LParen) {
        return Err(p.error());
    }
    let expr = Box::new(left);
    let mut list = primary::paren_members(p)?;
    if let [Expr::Subquery(_)] = list.as_slice()
        && let Some(Expr::Subquery(query)) = list.pop()
    {
        return Ok(Expr::InSubquery { expr, query, negated });
    }
    Ok(Expr::In { expr, list, negated })
}

/// An operand with its prefix operators. `min` says whether NOT may start it.
fn prefix(p: &mut Parser<'_>, min: u8) -> Rule<Expr> {
    let op = match p.token.kind {
        Tok::Minus => UnaryOp::Minus,
        Tok::Plus => UnaryOp::Plus,
        Tok::Tilde => UnaryOp::BitNot,
        Tok::Bang => UnaryOp::Not,
        Tok::Word => match p.token.kw {
            Kw::NOT if p.options.high_not_precedence => UnaryOp::Not,
            Kw::NOT if min <= NOT => {
                p.advance();
                let expr = Box::new(p.nest(|p| binary(p, NOT))?);
                return Ok(Expr::Unary { op: UnaryOp::Not, expr });
            }
            Kw::BINARY => UnaryOp::Binary,
            _ => return operand(p),
        },
        _ => return operand(p),
    };
    p.advance();
    let expr = Box::new(simple_expr(p)?);
    Ok(Expr::Unary { op, expr })
}

/// A primary expression and its COLLATE clauses.
fn operand(p: &mut Parser<'_>) -> Rule<Expr> {
    let expr = primary::primary(p)?;
    collated(p, expr)
}

fn collated(p: &mut Parser<'_>, mut expr: Expr) -> Rule<Expr> {
    while p.is_kw(Kw::COLLATE) {
        p.advance();
        let collation = names::charset_name(p)?;
        expr = Expr::Collate { expr: Box::new(expr), collation };
        p.grow()?;
    }
    Ok(expr)
}

fn node(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

/// Joins the members of a chain: leaning left when short, as a balanced tree when long.
fn join_members(members: Vec<Expr>, op: BinaryOp) -> Expr {
    let mut layer = members;
    if layer.len() < BALANCE_FROM {
        return layer.into_iter().reduce(|left, right| node(op, left, right)).expect("a chain has members");
    }
    while layer.len() > 1 {
        let mut next = Vec::with_capacity(layer.len().div_ceil(2));
        let mut members = layer.into_iter();
        while let Some(left) = members.next() {
            next.push(match members.next() {
                Some(right) => node(op, left, right),
                None => left,
            });
        }
        layer = next;
    }
    layer.pop().expect("a chain has members")
}
