//! Operators: a Pratt parser over MySQL's exact levels.
//!
//! Loosest to tightest: `:=` (see `primary`), OR `||`, XOR, AND `&&`, NOT, comparisons and IS, predicates
//! (IN, LIKE, BETWEEN, REGEXP), `|`, `&`, shifts, `+ -`, `* / % DIV MOD`, `^`, `||` under PIPES_AS_CONCAT, then the
//! prefix operators. A predicate binds tighter than a comparison: `a = b LIKE c` is `a = (b LIKE c)`.

use super::{Parser, Rule};
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

impl Parser<'_> {
    /// Any expression.
    #[inline]
    pub(super) fn expr(&mut self) -> Rule<Expr> {
        let literal = matches!(self.token.kind, Tok::Int | Tok::Str | Tok::Decimal | Tok::Float | Tok::Param)
            || self.token.kw == Kw::NULL;
        if !literal {
            return self.nest(|p| p.binary(OR));
        }
        // The members of a multi-row INSERT are mostly literals and nothing more.
        let first = self.primary()?;
        if matches!(self.token.kind, Tok::Comma | Tok::RParen | Tok::Eof | Tok::Semicolon) {
            return Ok(first);
        }
        self.nest(|p| {
            let first = p.collated(first)?;
            p.binary_rest(first, OR)
        })
    }

    /// An expression that is the whole text.
    pub(crate) fn whole_expr(&mut self) -> Rule<Expr> {
        let expr = self.expr()?;
        self.expect_end()?;
        Ok(expr)
    }

    /// An expression without comparisons or logic: MySQL's `bit_expr`.
    pub(super) fn bit_expr(&mut self) -> Rule<Expr> {
        self.nest(|p| p.binary(BIT_OR))
    }

    /// One operand with its prefix operators: MySQL's `simple_expr`.
    pub(super) fn simple_expr(&mut self) -> Rule<Expr> {
        self.nest(|p| p.prefix(PREFIX))
    }

    fn binary(&mut self, min: u8) -> Rule<Expr> {
        let left = self.prefix(min)?;
        self.binary_rest(left, min)
    }

    /// A right operand: beside the left one in the tree, so that the higher of them counts.
    fn right(&mut self, min: u8) -> Rule<Expr> {
        let left = std::mem::take(&mut self.height);
        let right = self.binary(min);
        self.height = self.height.max(left);
        right
    }

    /// The operators behind an operand that is already known.
    fn binary_rest(&mut self, operand: Expr, min: u8) -> Rule<Expr> {
        let mut left = operand;
        loop {
            let infix = self.infix();
            let level = infix.level();
            if level < min || level == 0 {
                return Ok(left);
            }
            left = match infix {
                Infix::Chain(op, level) => self.chain(left, op, level)?,
                Infix::Op(op, COMPARE) => self.comparison(left, op)?,
                Infix::Op(op, level) => self.operation(left, op, level)?,
                Infix::Is => self.is_test(left)?,
                Infix::MemberOf => self.member_of(left)?,
                Infix::SoundsLike => {
                    self.expect_words(&["SOUNDS", "LIKE"])?;
                    let right = self.right(BIT_OR)?;
                    node(BinaryOp::SoundsLike, left, right)
                }
                Infix::Not => {
                    self.advance();
                    self.predicate(left, true)?
                }
                _ => self.predicate(left, false)?,
            };
            self.grow()?;
        }
    }

    fn infix(&self) -> Infix {
        match self.token.kind {
            Tok::Eq => Infix::Op(BinaryOp::Eq, COMPARE),
            Tok::NullSafeEq => Infix::Op(BinaryOp::NullSafeEq, COMPARE),
            Tok::Ne => Infix::Op(BinaryOp::Ne, COMPARE),
            Tok::Lt => Infix::Op(BinaryOp::Lt, COMPARE),
            Tok::Le => Infix::Op(BinaryOp::Le, COMPARE),
            Tok::Gt => Infix::Op(BinaryOp::Gt, COMPARE),
            Tok::Ge => Infix::Op(BinaryOp::Ge, COMPARE),
            Tok::AmpAmp => Infix::Chain(BinaryOp::And, AND),
            Tok::PipePipe if self.options.pipes_as_concat => Infix::Op(BinaryOp::Concat, CONCAT),
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
            Tok::Word => self.infix_word(),
            _ => Infix::None,
        }
    }

    fn infix_word(&self) -> Infix {
        match self.token.kw {
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
            Kw::NOT => match self.peek().kw {
                Kw::IN | Kw::LIKE | Kw::BETWEEN | Kw::REGEXP | Kw::RLIKE => Infix::Not,
                _ => Infix::None,
            },
            Kw::NONE if self.is_word("MEMBER") && self.member_follows() => Infix::MemberOf,
            Kw::NONE if self.is_word("SOUNDS") && self.peek().kw == Kw::LIKE => Infix::SoundsLike,
            _ => Infix::None,
        }
    }

    fn member_follows(&self) -> bool {
        let next = self.peek();
        next.kw == Kw::OF || next.kind == Tok::LParen
    }

    /// `left op right op right ...` of one associative logical operator.
    fn chain(&mut self, left: Expr, op: BinaryOp, level: u8) -> Rule<Expr> {
        self.advance();
        let right = self.right(level + 1)?;
        let again = |p: &Self| matches!(p.infix(), Infix::Chain(next, _) if next == op);
        if !again(self) {
            return Ok(node(op, left, right));
        }
        let mut members = vec![left, right];
        while again(self) {
            self.advance();
            members.push(self.right(level + 1)?);
        }
        if members.len() < BALANCE_FROM {
            self.height += members.len() as u32;
        } else {
            self.height += members.len().ilog2() + 1;
        }
        Ok(join_members(members, op))
    }

    fn operation(&mut self, left: Expr, op: BinaryOp, level: u8) -> Rule<Expr> {
        self.advance();
        if level == ADD && self.is_kw(Kw::INTERVAL) {
            return match self.interval()? {
                Interval::Operand(value, unit) => {
                    let subtract = op == BinaryOp::Sub;
                    Ok(Expr::DateArith { expr: Box::new(left), value: Box::new(value), unit, subtract })
                }
                Interval::Call(call) => {
                    let right = self.binary_rest(call, level + 1)?;
                    Ok(node(op, left, right))
                }
            };
        }
        let right = self.right(level + 1)?;
        Ok(node(op, left, right))
    }

    /// At INTERVAL: a value and its unit, or a call of the function INTERVAL(a, b, ..).
    pub(super) fn interval(&mut self) -> Rule<Interval> {
        self.advance();
        let value = if self.is(Tok::LParen) && !self.query_follows_paren() {
            self.advance();
            let first = self.expr()?;
            if self.is(Tok::Comma) {
                let mut args = vec![first];
                while self.eat(Tok::Comma) {
                    args.push(self.expr()?);
                }
                self.expect(Tok::RParen)?;
                return Ok(Interval::Call(super::function::function("interval", args)));
            }
            self.expect(Tok::RParen)?;
            self.nest(|p| p.binary_rest(first, OR))?
        } else {
            self.expr()?
        };
        Ok(Interval::Operand(value, self.interval_unit()?))
    }

    fn comparison(&mut self, left: Expr, op: BinaryOp) -> Rule<Expr> {
        self.advance();
        let quantifier = if self.is_kw(Kw::ALL) {
            Some(Quantifier::All)
        } else if self.is_word("ANY") || self.is_word("SOME") {
            (self.peek().kind == Tok::LParen).then_some(Quantifier::Any)
        } else {
            None
        };
        if let Some(quantifier) = quantifier {
            self.advance();
            let query = Box::new(self.paren_query()?);
            return Ok(Expr::Quantified { op, quantifier, left: Box::new(left), query });
        }
        let right = self.right(PREDICATE)?;
        Ok(node(op, left, right))
    }

    fn is_test(&mut self, left: Expr) -> Rule<Expr> {
        self.advance();
        let negated = self.eat_kw(Kw::NOT);
        let expr = Box::new(left);
        let truth = match self.token.kw {
            Kw::NULL => {
                self.advance();
                return Ok(Expr::IsNull { expr, negated });
            }
            Kw::TRUE => Truth::True,
            Kw::FALSE => Truth::False,
            _ if self.is_word("UNKNOWN") => Truth::Unknown,
            _ => return Err(self.error()),
        };
        self.advance();
        Ok(Expr::IsTruth { expr, truth, negated })
    }

    fn member_of(&mut self, left: Expr) -> Rule<Expr> {
        self.advance();
        self.eat_kw(Kw::OF);
        self.expect(Tok::LParen)?;
        let array = self.expr()?;
        self.expect(Tok::RParen)?;
        Ok(Expr::MemberOf { expr: Box::new(left), array: Box::new(array) })
    }

    /// At IN, LIKE, BETWEEN or REGEXP.
    fn predicate(&mut self, left: Expr, negated: bool) -> Rule<Expr> {
        let keyword = self.advance().kw;
        match keyword {
            Kw::IN => self.in_list(left, negated),
            Kw::LIKE => {
                let pattern = self.right(BIT_OR)?;
                let escape = if self.eat_word("ESCAPE") { Some(self.simple_expr()?) } else { None };
                Ok(Expr::Like(Box::new(Like { expr: left, pattern, escape, negated })))
            }
            Kw::BETWEEN => {
                let low = Box::new(self.right(BIT_OR)?);
                self.expect_kw(Kw::AND)?;
                let high = Box::new(self.nest(|p| p.binary(PREDICATE))?);
                Ok(Expr::Between { expr: Box::new(left), low, high, negated })
            }
            _ => {
                let pattern = Box::new(self.right(BIT_OR)?);
                Ok(Expr::Regexp { expr: Box::new(left), pattern, negated })
            }
        }
    }

    fn in_list(&mut self, left: Expr, negated: bool) -> Rule<Expr> {
        if !self.is(Tok::LParen) {
            return Err(self.error());
        }
        let expr = Box::new(left);
        let mut list = self.paren_members()?;
        if let [Expr::Subquery(_)] = list.as_slice()
            && let Some(Expr::Subquery(query)) = list.pop()
        {
            return Ok(Expr::InSubquery { expr, query, negated });
        }
        Ok(Expr::In { expr, list, negated })
    }

    /// An operand with its prefix operators. `min` says whether NOT may start it.
    fn prefix(&mut self, min: u8) -> Rule<Expr> {
        let op = match self.token.kind {
            Tok::Minus => UnaryOp::Minus,
            Tok::Plus => UnaryOp::Plus,
            Tok::Tilde => UnaryOp::BitNot,
            Tok::Bang => UnaryOp::Not,
            Tok::Word => match self.token.kw {
                Kw::NOT if self.options.high_not_precedence => UnaryOp::Not,
                Kw::NOT if min <= NOT => {
                    self.advance();
                    let expr = Box::new(self.nest(|p| p.binary(NOT))?);
                    return Ok(Expr::Unary { op: UnaryOp::Not, expr });
                }
                Kw::BINARY => UnaryOp::Binary,
                _ => return self.operand(),
            },
            _ => return self.operand(),
        };
        self.advance();
        let expr = Box::new(self.simple_expr()?);
        Ok(Expr::Unary { op, expr })
    }

    /// A primary expression and its COLLATE clauses.
    fn operand(&mut self) -> Rule<Expr> {
        let expr = self.primary()?;
        self.collated(expr)
    }

    fn collated(&mut self, mut expr: Expr) -> Rule<Expr> {
        while self.is_kw(Kw::COLLATE) {
            self.advance();
            let collation = self.charset_name()?;
            expr = Expr::Collate { expr: Box::new(expr), collation };
            self.grow()?;
        }
        Ok(expr)
    }
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
