//! SIGNAL, RESIGNAL and GET DIAGNOSTICS.

use super::program::other;
use super::{Parser, Rule};
use crate::ast::{
    AssignTarget, Condition, ConditionItem, DiagnosticsPart, Expr, GetDiagnostics, Signal, Statement,
    StatementItem,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// A number of MySQL's, or SQLSTATE.
    pub(super) fn condition_value(&mut self) -> Rule<Condition> {
        if self.is(Tok::Int) {
            return match u16::try_from(self.number()?) {
                Ok(code) if code != 0 => Ok(Condition::Code(code)),
                _ => Err(other(1525, "HY000", "Incorrect CONDITION value: '0'")),
            };
        }
        self.sqlstate().map(Condition::State)
    }

    /// At SQLSTATE.
    fn sqlstate(&mut self) -> Rule<[u8; 5]> {
        self.expect_kw(Kw::SQLSTATE)?;
        self.eat_word("VALUE");
        let text = self.string()?;
        let state = <[u8; 5]>::try_from(&text[..]).ok();
        let good = |state: &[u8; 5]| {
            let known = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
            !state.starts_with(b"00") && state.iter().all(known)
        };
        state.filter(good).ok_or_else(|| {
            other(1407, "42000", format!("Bad SQLSTATE: '{}'", String::from_utf8_lossy(&text)))
        })
    }

    /// At SIGNAL or RESIGNAL.
    pub(super) fn signal(&mut self) -> Rule<Statement> {
        let resignal = self.is_kw(Kw::RESIGNAL);
        self.advance();
        let mut state = None;
        if self.is_kw(Kw::SQLSTATE) {
            state = Some(self.sqlstate()?);
        } else if self.is_ident() {
            let Condition::State(named) = self.named_condition()? else {
                let message = "SIGNAL/RESIGNAL can only use a CONDITION defined with SQLSTATE";
                return Err(other(1646, "HY000", message));
            };
            state = Some(named);
        } else if !resignal {
            return Err(self.error());
        }
        let mut items: Vec<(ConditionItem, Expr)> = Vec::new();
        if self.eat_kw(Kw::SET) {
            loop {
                let item = self.condition_item()?;
                if item == ConditionItem::ReturnedSqlstate {
                    return Err(self.error());
                }
                if items.iter().any(|(known, _)| *known == item) {
                    let message = format!("Duplicate condition information item '{}'", item.name());
                    return Err(other(1641, "42000", message));
                }
                self.expect(Tok::Eq)?;
                items.push((item, plain_value(self)?));
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        Ok(Statement::Signal(Box::new(Signal { resignal, state, items })))
    }

    fn condition_item(&mut self) -> Rule<ConditionItem> {
        let found = ConditionItem::ALL.iter().find(|(word, _)| self.is_word(word)).map(|(_, item)| *item);
        match found {
            Some(item) => {
                self.advance();
                Ok(item)
            }
            None => Err(self.error()),
        }
    }

    /// At GET.
    pub(super) fn get_diagnostics(&mut self) -> Rule<Statement> {
        self.advance();
        let stacked = self.eat_word("STACKED");
        if !stacked {
            self.eat_word("CURRENT");
        }
        self.expect_word("DIAGNOSTICS")?;
        let what = if self.eat_kw(Kw::CONDITION) {
            let number = plain_value(self)?;
            DiagnosticsPart::Condition(number, self.comma_list(|p| p.diagnostic(Self::condition_item))?)
        } else {
            DiagnosticsPart::Statement(self.comma_list(|p| p.diagnostic(Self::statement_item))?)
        };
        Ok(Statement::GetDiagnostics(Box::new(GetDiagnostics { stacked, what })))
    }

    fn diagnostic<T>(&mut self, item: impl FnOnce(&mut Self) -> Rule<T>) -> Rule<(AssignTarget, T)> {
        let target = self.target()?;
        self.expect(Tok::Eq)?;
        Ok((target, item(self)?))
    }

    fn statement_item(&mut self) -> Rule<StatementItem> {
        match self.eat_any(&["NUMBER", "ROW_COUNT"]) {
            Some("NUMBER") => Ok(StatementItem::Number),
            Some(_) => Ok(StatementItem::RowCount),
            None => Err(self.error()),
        }
    }
}

/// A literal or a variable, which is what these statements have instead of an expression.
fn plain_value(parser: &mut Parser<'_>) -> Rule<Expr> {
    let start = parser.mark();
    let begins = !matches!(parser.token.kind, Tok::LParen | Tok::Minus | Tok::Plus);
    let value = parser.simple_expr()?;
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
