//! SIGNAL, RESIGNAL and GET DIAGNOSTICS.

use super::{Parser, Rule, expr, names, program};
use crate::ParseError;
use crate::ast::{
    AssignTarget, Condition, ConditionItem, DiagnosticsPart, Expr, GetDiagnostics, Signal, Statement,
    StatementItem,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// A number of MySQL's, or SQLSTATE.
pub(super) fn condition_value(p: &mut Parser<'_>) -> Rule<Condition> {
    if p.is(Tok::Int) {
        return match u16::try_from(names::number(p)?) {
            Ok(code) if code != 0 => Ok(Condition::Code(code)),
            _ => Err(ParseError::other(1525, "HY000", "Incorrect CONDITION value: '0'")),
        };
    }
    sqlstate(p).map(Condition::State)
}

/// At SQLSTATE.
fn sqlstate(p: &mut Parser<'_>) -> Rule<[u8; 5]> {
    p.expect_kw(Kw::SQLSTATE)?;
    p.eat_word("VALUE");
    let text = names::string(p)?;
    let state = <[u8; 5]>::try_from(&text[..]).ok();
    let good = |state: &[u8; 5]| {
        let known = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
        !state.starts_with(b"00") && state.iter().all(known)
    };
    state.filter(good).ok_or_else(|| {
        ParseError::other(1407, "42000", format!("Bad SQLSTATE: '{}'", String::from_utf8_lossy(&text)))
    })
}

/// At SIGNAL or RESIGNAL.
pub(super) fn signal(p: &mut Parser<'_>) -> Rule<Statement> {
    let resignal = p.is_kw(Kw::RESIGNAL);
    p.advance();
    let mut state = None;
    if p.is_kw(Kw::SQLSTATE) {
        state = Some(sqlstate(p)?);
    } else if names::is_ident(p) {
        let Condition::State(named) = program::named_condition(p)? else {
            let message = "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
            return Err(ParseError::other(1646, "HY000", message));
        };
        state = Some(named);
    } else if !resignal {
        return Err(p.error());
    }
    let mut items: Vec<(ConditionItem, Expr)> = Vec::new();
    if p.eat_kw(Kw::SET) {
        loop {
            let item = condition_item(p)?;
            if item == ConditionItem::ReturnedSqlstate {
                return Err(p.error());
            }
            if items.iter().any(|(known, _)| *known == item) {
                let message = format!("Duplicate condition information item '{}'", item.name());
                return Err(ParseError::other(1641, "42000", message));
            }
            p.expect(Tok::Eq)?;
            items.push((item, plain_value(p)?));
            if !p.eat(Tok::Comma) {
                break;
            }
        }
    }
    Ok(Statement::Signal(Box::new(Signal { resignal, state, items })))
}

fn condition_item(p: &mut Parser<'_>) -> Rule<ConditionItem> {
    let found = ConditionItem::ALL.iter().find(|(word, _)| p.is_word(word)).map(|(_, item)| *item);
    match found {
        Some(item) => {
            p.advance();
            Ok(item)
        }
        None => Err(p.error()),
    }
}

/// At GET.
pub(super) fn get_diagnostics(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let stacked = p.eat_word("STACKED");
    if !stacked {
        p.eat_word("CURRENT");
    }
    p.expect_word("DIAGNOSTICS")?;
    let what = if p.eat_kw(Kw::CONDITION) {
        let number = plain_value(p)?;
        DiagnosticsPart::Condition(number, p.comma_list(|p| diagnostic(p, condition_item))?)
    } else {
        DiagnosticsPart::Statement(p.comma_list(|p| diagnostic(p, statement_item))?)
    };
    Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { stacked, what })))
}

fn diagnostic<T>(
    p: &mut Parser<'_>,
    item: impl FnOnce(&mut Parser<'_>) -> Rule<T>,
) -> Rule<(AssignTarget, T)> {
    let target = program::target(p)?;
    p.expect(Tok::Eq)?;
    Ok((target, item(p)?))
}

fn statement_item(p: &mut Parser<'_>) -> Rule<StatementItem> {
    match p.eat_any(&["NUMBER", "ROW_COUNT"]) {
        Some("NUMBER") => Ok(StatementItem::Number),
        Some(_) => Ok(StatementItem::RowCount),
        None => Err(p.error()),
    }
}

/// A literal or a variable, which is what these statements have instead of an expression.
fn plain_value(parser: &mut Parser<'_>) -> Rule<Expr> {
    let start = parser.mark();
    let begins = !matches!(parser.token.kind, Tok::LParen | Tok::Minus | Tok::Plus);
    let value = expr::simple_expr(parser)?;
    let plain = matches!(
        value,
        Expr::Literal(_)
            | Expr::Introduced(_)
            | Expr::Param(_)
            | Expr::Column(_)
            | Expr::UserVar(_)
            | Expr::SysVar { .. }
            | Expr::Local(_)
    );
    if begins && plain {
        return Ok(value);
    }
    parser.reset(start);
    Err(parser.error())
}
