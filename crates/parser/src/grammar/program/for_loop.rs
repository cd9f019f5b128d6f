//! MariaDB's FOR over numbers.

use super::super::{Parser, Rule};
use super::super::{expr, names, program};
use crate::ast::{
    BinaryOp, Block, DataType, Declared, Expr, Ident, Literal, LoopKind, ProgramNode, TypeName,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// At FOR: MariaDB's `FOR i IN [REVERSE] low .. high DO .. END FOR`, as a block with the variable and the bound that ends it, each computed once.
pub(super) fn for_node(p: &mut Parser<'_>, name: Option<Ident>) -> Rule<ProgramNode> {
    let label = program::push_label(p, name.as_ref(), true);
    p.advance();
    let variable = names::ident(p)?;
    p.expect_kw(Kw::IN)?;
    let reverse = p.eat_word("REVERSE");
    let low = expr::expr(p)?;
    p.expect(Tok::DotDot)?;
    let high = expr::expr(p)?;
    p.expect_word("DO")?;
    let (first, last) = if reverse { (high, low) } else { (low, high) };
    let Some(scopes) = &mut p.program else { return Err(p.error()) };
    let seen = scopes.visible.len();
    let number = scopes.variables.len() as u32;
    scopes.visible.push((variable.clone(), number));
    // The bound is found by no name.
    scopes.variables.extend([(variable, true), (Ident::from(""), true)]);
    let body = program::program_statements(p)?;
    p.expect_words(&["END", "FOR"])?;
    if let Some(scopes) = &mut p.program {
        scopes.visible.truncate(seen);
    }
    program::end_label(p, name.as_ref())?;
    let kind = counting(number, reverse);
    let body = vec![ProgramNode::Loop { label, kind, body }];
    let declared =
        |first, value| Declared { first, count: 1, ty: DataType::of(TypeName::BigInt), default: Some(value) };
    let variables = vec![declared(number, first), declared(number + 1, last)];
    Ok(ProgramNode::Block(Box::new(Block { variables, body, ..Block::default() })))
}

/// How FOR counts: variable `number`, up to the one behind it, or down.
fn counting(number: u32, reverse: bool) -> LoopKind {
    let binary = |op, left, right| Expr::Binary { op, left: Box::new(left), right: Box::new(right) };
    let (step, compare) = if reverse { (BinaryOp::Sub, BinaryOp::Ge) } else { (BinaryOp::Add, BinaryOp::Le) };
    LoopKind::For {
        variable: number,
        next: binary(step, Expr::Local(number), Expr::Literal(Literal::Int(1))),
        condition: binary(compare, Expr::Local(number), Expr::Local(number + 1)),
    }
}
