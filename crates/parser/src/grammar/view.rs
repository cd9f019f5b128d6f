//! CREATE VIEW and ALTER VIEW, and the clauses that they share with stored programs.

use super::{Parser, Rule};
use crate::ast::{CheckOption, CreateView, Security, Statement, UserName, ViewAlgorithm};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// `DEFINER = account`, or nothing.
    pub(super) fn definer(&mut self) -> Rule<Option<UserName>> {
        if !self.is_word("DEFINER") || self.peek().kind != Tok::Eq {
            return Ok(None);
        }
        self.advance();
        self.advance();
        self.definer_name().map(Some)
    }

    /// `SQL SECURITY DEFINER | INVOKER`, or nothing.
    pub(super) fn security(&mut self) -> Rule<Option<Security>> {
        if !self.eat_kw(Kw::SQL) {
            return Ok(None);
        }
        self.expect_word("SECURITY")?;
        match self.eat_any(&["DEFINER", "INVOKER"]) {
            Some("DEFINER") => Ok(Some(Security::Definer)),
            Some(_) => Ok(Some(Security::Invoker)),
            None => Err(self.error()),
        }
    }

    /// `ALGORITHM = word`, or nothing.
    pub(super) fn view_algorithm(&mut self) -> Rule<Option<ViewAlgorithm>> {
        if !self.is_word("ALGORITHM") {
            return Ok(None);
        }
        self.advance();
        self.expect(Tok::Eq)?;
        match self.eat_any(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
            Some("MERGE") => Ok(Some(ViewAlgorithm::Merge)),
            Some("TEMPTABLE") => Ok(Some(ViewAlgorithm::TempTable)),
            Some(_) => Ok(Some(ViewAlgorithm::Undefined)),
            None => Err(self.error()),
        }
    }

    /// Whether what has been read of CREATE or ALTER goes on as that of a view.
    pub(super) fn at_view(&self) -> bool {
        self.is_word("VIEW") || self.is_kw(Kw::SQL)
    }

    /// At SQL SECURITY or VIEW.
    pub(super) fn view(
        &mut self,
        or_replace: bool,
        alter: bool,
        algorithm: Option<ViewAlgorithm>,
        definer: Option<UserName>,
    ) -> Rule<Statement> {
        let security = self.security()?;
        self.expect_word("VIEW")?;
        let if_not_exists = !alter && (self.options.mariadb || !or_replace) && self.if_not_exists();
        let name = self.object_name()?;
        let columns = if self.is(Tok::LParen) { self.ident_list()? } else { Vec::new() };
        self.expect_kw(Kw::AS)?;
        let start = self.token.start;
        let query = Box::new(self.whole_query()?);
        let text = self.text_since(start);
        let mut check = None;
        if self.eat_kw(Kw::WITH) {
            let local = self.eat_any(&["LOCAL", "CASCADED"]) == Some("LOCAL");
            self.expect_words(&["CHECK", "OPTION"])?;
            check = Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
        }
        let view = CreateView {
            or_replace,
            if_not_exists,
            alter,
            algorithm,
            definer,
            security,
            name,
            columns,
            query,
            text,
            check,
        };
        Ok(Statement::CreateView(Box::new(view)))
    }
}
