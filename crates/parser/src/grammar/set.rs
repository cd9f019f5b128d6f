//! SET.

use super::{Parser, Rule};
use crate::ast::{
    Expr, Ident, Isolation, PasswordValue, SetItem, SetStatement, SetValue, Statement, VarScope,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At SET.
    pub(super) fn set(&mut self) -> Rule<Statement> {
        self.advance();
        if self.is_word("STATEMENT") && self.peek().kind == Tok::Word {
            return self.set_for_statement();
        }
        if self.eat_words(&["RESOURCE", "GROUP"]) {
            return Ok(self.unsupported("SET RESOURCE GROUP", "set_resource_group"));
        }
        if self.is_word("ROLE") || (self.is_kw(Kw::DEFAULT) && self.peek_is_word("ROLE")) {
            return self.set_role();
        }
        let mut items = Vec::new();
        let mut scope = None;
        loop {
            let item = self.set_item(&mut scope)?;
            items.push(item);
            if !self.eat(Tok::Comma) {
                return Ok(Statement::Set(items));
            }
        }
    }

    /// At STATEMENT: names of variables of the session, and the statement that they are for.
    fn set_for_statement(&mut self) -> Rule<Statement> {
        self.advance();
        let items = self.comma_list(|p| {
            let name = p.ident()?;
            p.assign()?;
            Ok(SetItem::System { scope: None, name, value: p.set_value()? })
        })?;
        self.expect_kw(Kw::FOR)?;
        let start = self.token.start;
        self.nest(Self::statement)?;
        Ok(Statement::SetStatement(Box::new(SetStatement { items, text: self.text_since(start) })))
    }

    /// One member. A scope word holds for the members after it too, until the next one.
    fn set_item(&mut self, sticky: &mut Option<VarScope>) -> Rule<SetItem> {
        match self.token.kind {
            Tok::UserVar => {
                let name = self.user_var()?;
                self.assign()?;
                return Ok(SetItem::User { name, value: self.expr()? });
            }
            Tok::AtAt => {
                let (scope, name) = self.system_variable_name()?;
                self.assign()?;
                return Ok(SetItem::System { scope, name, value: self.set_value()? });
            }
            _ => {}
        }
        let token = self.token;
        let next = self.peek();
        if matches!(next.kind, Tok::Eq | Tok::Assign) && self.at_local() {
            let name = self.ident()?;
            let Some(local) = self.variable_named(&name) else { return Err(self.error()) };
            self.assign()?;
            return Ok(SetItem::Local { local, value: self.expr()? });
        }
        if next.kind == Tok::Dot && self.in_trigger() && (self.is_word("NEW") || self.is_word("OLD")) {
            let row = self.ident()?;
            self.advance();
            let column = self.new_column(&row)?;
            self.assign()?;
            return Ok(SetItem::NewColumn { column, value: self.expr()? });
        }
        if !matches!(next.kind, Tok::Eq | Tok::Assign | Tok::Dot) {
            if let Some(item) = self.special_item()? {
                return Ok(item);
            }
            if let Some(scope) = self.scope_word(&token) {
                self.advance();
                *sticky = Some(scope);
                if self.is_word("TRANSACTION") && !matches!(self.peek().kind, Tok::Eq | Tok::Assign) {
                    return self.set_transaction(Some(scope));
                }
            } else if self.is_word("TRANSACTION") {
                return self.set_transaction(None);
            }
        } else if self.is_word("PASSWORD") && next.kind != Tok::Dot {
            return self.set_password();
        }
        let mut name: Ident = self.ident_after_dot()?;
        while self.eat(Tok::Dot) {
            let part = self.ident_after_dot()?;
            name = Ident::from(format!("{name}.{part}"));
        }
        self.assign()?;
        Ok(SetItem::System { scope: *sticky, name, value: self.set_value()? })
    }

    fn assign(&mut self) -> Rule<()> {
        if self.eat(Tok::Assign) {
            return Ok(());
        }
        self.expect(Tok::Eq).map(|_| ())
    }

    /// NAMES, CHARACTER SET, PASSWORD FOR.
    fn special_item(&mut self) -> Rule<Option<SetItem>> {
        if self.eat_word("NAMES") {
            let charset = self.charset_or_default()?;
            let collation = if self.eat_kw(Kw::COLLATE) { self.charset_or_default()? } else { None };
            return Ok(Some(SetItem::Names { charset, collation }));
        }
        if self.eat_words(&["CHARACTER", "SET"])
            || self.eat_words(&["CHAR", "SET"])
            || self.eat_word("CHARSET")
        {
            return Ok(Some(SetItem::CharacterSet(self.charset_or_default()?)));
        }
        if self.is_word("PASSWORD") {
            return self.set_password().map(Some);
        }
        Ok(None)
    }

    fn charset_or_default(&mut self) -> Rule<Option<Ident>> {
        if self.eat_kw(Kw::DEFAULT) { Ok(None) } else { self.charset_name().map(Some) }
    }

    /// At PASSWORD.
    fn set_password(&mut self) -> Rule<SetItem> {
        self.advance();
        let user = if self.eat_kw(Kw::FOR) { Some(self.user_name()?) } else { None };
        if self.eat_kw(Kw::TO) {
            self.expect_word("RANDOM")?;
            let value = PasswordValue::Random;
            return Ok(SetItem::Password { user, value, replaces: None, retain_current: false });
        }
        self.assign()?;
        let value = if self.is_word("PASSWORD") || self.is_word("OLD_PASSWORD") {
            self.advance();
            self.expect(Tok::LParen)?;
            let text = self.string()?;
            self.expect(Tok::RParen)?;
            PasswordValue::Clear(text)
        } else {
            PasswordValue::Text(self.string()?)
        };
        let replaces = if self.eat_kw(Kw::REPLACE) { Some(self.string()?) } else { None };
        let retain_current = self.eat_words(&["RETAIN", "CURRENT", "PASSWORD"]);
        Ok(SetItem::Password { user, value, replaces, retain_current })
    }

    /// At TRANSACTION.
    fn set_transaction(&mut self, scope: Option<VarScope>) -> Rule<SetItem> {
        self.advance();
        let (mut isolation, mut read_only) = (None, None);
        loop {
            if isolation.is_none() && self.eat_words(&["ISOLATION", "LEVEL"]) {
                isolation = Some(self.isolation()?);
            } else if read_only.is_none() && self.eat_words(&["READ", "ONLY"]) {
                read_only = Some(true);
            } else if read_only.is_none() && self.eat_words(&["READ", "WRITE"]) {
                read_only = Some(false);
            } else {
                return Err(self.error());
            }
            if !self.eat(Tok::Comma) {
                return Ok(SetItem::Transaction { scope, isolation, read_only });
            }
        }
    }

    fn isolation(&mut self) -> Rule<Isolation> {
        if self.eat_words(&["READ", "UNCOMMITTED"]) {
            Ok(Isolation::ReadUncommitted)
        } else if self.eat_words(&["READ", "COMMITTED"]) {
            Ok(Isolation::ReadCommitted)
        } else if self.eat_words(&["REPEATABLE", "READ"]) {
            Ok(Isolation::RepeatableRead)
        } else if self.eat_word("SERIALIZABLE") {
            Ok(Isolation::Serializable)
        } else {
            Err(self.error())
        }
    }

    /// The right side of a system variable's assignment.
    fn set_value(&mut self) -> Rule<SetValue> {
        let token = self.token;
        if token.kind == Tok::Word && self.value_ends_after() {
            match token.kw {
                Kw::DEFAULT => {
                    self.advance();
                    return Ok(SetValue::Default);
                }
                Kw::ON | Kw::ALL | Kw::BINARY | Kw::ROW | Kw::SYSTEM | Kw::FORCE => {
                    let word = self.ident_of(&token)?;
                    self.advance();
                    return Ok(SetValue::Word(word));
                }
                _ => {}
            }
        }
        Ok(match self.expr()? {
            Expr::Column(column) if column.qualifier.is_none() => SetValue::Word(column.name),
            expr => SetValue::Expr(expr),
        })
    }

    fn value_ends_after(&self) -> bool {
        let next = self.peek();
        matches!(next.kind, Tok::Comma | Tok::Semicolon | Tok::Eof) || next.kw == Kw::FOR
    }
}
