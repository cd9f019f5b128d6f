//! Queries: SELECT, VALUES, TABLE, set operations and the clauses around them.

use super::program::other;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    CommonTable, Expr, Into, Limit, Literal, LockStrength, LockWait, Locking, OrderItem, Query, QueryBody,
    Select, SelectItem, SelectOptions, SetOp, With,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;
use std::sync::Arc;

/// A select list; also RETURNING's. Only its first member may be a star without a table.
pub(super) fn select_items(parser: &mut Parser<'_>) -> Rule<Vec<SelectItem>> {
    let first = if parser.eat(Tok::Star) { SelectItem::Wildcard } else { parser.select_item()? };
    let mut items = vec![first];
    while parser.eat(Tok::Comma) {
        items.push(parser.select_item()?);
    }
    Ok(items)
}

impl Parser<'_> {
    /// A query inside of a statement: its rows go to what stands around it, and nowhere else.
    pub(super) fn query(&mut self) -> Rule<Query> {
        let query = self.whole_query()?;
        match query.into {
            None => Ok(query),
            Some(_) => Err(misplaced_into()),
        }
    }

    /// A query expression with all its clauses: a statement.
    pub(super) fn whole_query(&mut self) -> Rule<Query> {
        self.nest(|p| {
            let with = p.with()?;
            let (first, into) = p.query_term()?;
            let mut query = p.finish_query(first, into)?;
            if with.is_some() {
                // `WITH .. (SELECT ..)`: the parenthesised query may have had its own WITH.
                if query.with.is_some() {
                    query = plain_query(QueryBody::Nested(Box::new(query)));
                }
                query.with = with;
            }
            Ok(query)
        })
    }

    /// `( query )`, at its parenthesis.
    pub(super) fn paren_query(&mut self) -> Rule<Query> {
        self.expect(Tok::LParen)?;
        let query = self.query()?;
        self.expect(Tok::RParen)?;
        Ok(query)
    }

    /// The rest of a query whose first term is known.
    pub(super) fn query_after(&mut self, first: QueryBody) -> Rule<Query> {
        self.nest(|p| p.finish_query(first, None))
    }

    /// Whether the current `(` opens a query (and not an expression or a table reference in parentheses; more
    /// parentheses are the caller's question).
    pub(super) fn query_follows_paren(&self) -> bool {
        let mut lexer = self.lexer;
        let next = lexer.next();
        match next.kw {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => lexer.next().kw == Kw::ROW,
            _ => false,
        }
    }

    /// Whether the current token starts a query.
    pub(super) fn at_query(&self) -> bool {
        matches!(self.token.kw, Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE) || self.is(Tok::LParen)
    }

    /// Whether the current token continues a query after one of its terms.
    pub(super) fn query_goes_on(&self) -> bool {
        matches!(self.token.kw, Kw::UNION | Kw::EXCEPT | Kw::INTERSECT | Kw::ORDER | Kw::LIMIT)
    }

    pub(super) fn with(&mut self) -> Rule<Option<Box<With>>> {
        if !self.eat_kw(Kw::WITH) {
            return Ok(None);
        }
        let recursive = self.eat_kw(Kw::RECURSIVE);
        let tables = self.comma_list(|p| {
            let name = p.ident()?;
            let columns = if p.is(Tok::LParen) { p.ident_list()? } else { Vec::new() };
            p.expect_kw(Kw::AS)?;
            Ok(CommonTable { name, columns, query: Arc::new(p.paren_query()?) })
        })?;
        Ok(Some(Box::new(With { recursive, tables })))
    }

    fn finish_query(&mut self, first: QueryBody, mut into: Option<Box<Into>>) -> Rule<Query> {
        let body = self.set_operations(first, &mut into, false)?;
        let order_by = self.order_by()?;
        let limit = self.limit()?;
        let bare = order_by.is_empty() && limit.is_none() && into.is_none();
        if bare && !matches!(self.token.kw, Kw::FOR | Kw::LOCK | Kw::INTO) {
            // Parentheses around a whole query mean nothing.
            if let QueryBody::Nested(inner) = body {
                return Ok(*inner);
            }
        }
        if into.is_none() {
            into = self.into()?;
        }
        let mut locking = Vec::new();
        while matches!(self.token.kw, Kw::FOR | Kw::LOCK)
            && let Some(lock) = self.locking()?
        {
            locking.push(lock);
        }
        if into.is_none() {
            into = self.into()?;
        }
        Ok(Query { with: None, body, order_by, limit, locking, into })
    }

    /// INTERSECT binds tighter than UNION and EXCEPT; all lean left.
    ///
    /// `into` is what stood behind the last term so far: what another term follows was misplaced.
    fn set_operations(
        &mut self,
        first: QueryBody,
        into: &mut Option<Box<Into>>,
        only_intersect: bool,
    ) -> Rule<QueryBody> {
        let mut left = first;
        loop {
            let op = match self.token.kw {
                Kw::INTERSECT => SetOp::Intersect,
                Kw::UNION if !only_intersect => SetOp::Union,
                Kw::EXCEPT if !only_intersect => SetOp::Except,
                _ => return Ok(left),
            };
            if into.is_some() {
                return Err(misplaced_into());
            }
            self.advance();
            let all = self.eat_kw(Kw::ALL);
            if !all {
                self.eat_kw(Kw::DISTINCT);
            }
            let (mut right, behind) = self.query_term()?;
            *into = behind;
            if op != SetOp::Intersect {
                right = self.set_operations(right, into, true)?;
            }
            left = QueryBody::SetOperation { op, all, left: Box::new(left), right: Box::new(right) };
            self.grow()?;
        }
    }

    /// SELECT, VALUES, TABLE, or a query in parentheses.
    fn query_term(&mut self) -> Rule<(QueryBody, Option<Box<Into>>)> {
        match self.token.kw {
            Kw::SELECT => self.select(),
            Kw::VALUES => {
                self.advance();
                let rows = self.comma_list(|p| {
                    p.expect_kw(Kw::ROW)?;
                    if p.is(Tok::LParen) && p.peek().kind == Tok::RParen {
                        p.advance();
                        p.advance();
                        return Ok(Vec::new());
                    }
                    p.paren_list(Self::expr)
                })?;
                Ok((QueryBody::Values(rows), None))
            }
            Kw::TABLE => {
                self.advance();
                Ok((QueryBody::Table(self.object_name()?), None))
            }
            _ if self.is(Tok::LParen) => {
                // Around a whole statement they mean nothing, and its INTO is the statement's.
                self.expect(Tok::LParen)?;
                let mut query = self.whole_query()?;
                self.expect(Tok::RParen)?;
                let into = query.into.take();
                Ok((QueryBody::Nested(Box::new(query)), into))
            }
            _ => Err(self.error()),
        }
    }

    fn select(&mut self) -> Rule<(QueryBody, Option<Box<Into>>)> {
        self.advance();
        let hints = self.hints();
        let options = self.select_options()?;
        let items = select_items(self)?;
        let mut into = self.into()?;
        let from = if self.eat_kw(Kw::FROM) { self.tables_clause()? } else { Vec::new() };
        let filter = self.filter()?;
        let (group_by, with_rollup) = self.group_by()?;
        let having = if self.eat_kw(Kw::HAVING) { Some(self.expr()?) } else { None };
        let windows = if self.eat_kw(Kw::WINDOW) {
            self.comma_list(|p| {
                let name = p.ident()?;
                p.expect_kw(Kw::AS)?;
                Ok((name, p.window_spec()?))
            })?
        } else {
            Vec::new()
        };
        if into.is_none() {
            into = self.into()?;
        }
        let select = Select { options, hints, items, from, filter, group_by, with_rollup, having, windows };
        Ok((QueryBody::Select(Box::new(select)), into))
    }

    fn select_options(&mut self) -> Rule<SelectOptions> {
        let mut options = SelectOptions::default();
        let mut all = false;
        loop {
            if all && options.distinct {
                return Err(other(1221, "HY000", "Incorrect usage of ALL and DISTINCT".to_owned()));
            }
            match self.token.kw {
                Kw::ALL => all = true,
                Kw::DISTINCT | Kw::DISTINCTROW => options.distinct = true,
                Kw::HIGH_PRIORITY => options.high_priority = true,
                Kw::STRAIGHT_JOIN => options.straight_join = true,
                Kw::SQL_SMALL_RESULT => options.small_result = true,
                Kw::SQL_BIG_RESULT => options.big_result = true,
                Kw::SQL_CALC_FOUND_ROWS => options.calc_found_rows = true,
                Kw::NONE if self.is_word("SQL_NO_CACHE") => options.no_cache = true,
                Kw::NONE if self.is_word("SQL_BUFFER_RESULT") => options.buffer_result = true,
                Kw::NONE if self.is_word("SQL_CACHE") && self.peek().kind != Tok::Comma => {}
                _ => return Ok(options),
            }
            self.advance();
        }
    }

    fn select_item(&mut self) -> Rule<SelectItem> {
        if self.is_ident()
            && let Some(item) = self.table_wildcard()?
        {
            return Ok(item);
        }
        let start = self.token.start;
        let expr = self.expr()?;
        let text = match &expr {
            Expr::Column(_) => bytes::Bytes::new(),
            _ => self.text_since(start),
        };
        let alias = if self.eat_kw(Kw::AS) || self.is(Tok::Str) || self.is_alias() {
            let alias = self.ident_or_text()?;
            // A name begins with something that is seen.
            let seen = alias.trim_start_matches(|c: char| c.is_ascii_control() || c == ' ');
            Some(if seen.len() < alias.len() { seen.into() } else { alias })
        } else {
            None
        };
        Ok(SelectItem::Expr { expr, alias, text })
    }

    /// Whether an identifier here is an alias without AS.
    pub(super) fn is_alias(&self) -> bool {
        self.is_ident() && !self.is_word("RETURNING")
    }

    /// `t.*` or `s.t.*`, else nothing consumed.
    fn table_wildcard(&mut self) -> Rule<Option<SelectItem>> {
        let mut lexer = self.lexer;
        if lexer.next().kind != Tok::Dot {
            return Ok(None);
        }
        let mut next = lexer.next();
        if next.kind != Tok::Star {
            if lexer.next().kind != Tok::Dot {
                return Ok(None);
            }
            next = lexer.next();
            if next.kind != Tok::Star {
                return Ok(None);
            }
            let name = self.object_name()?;
            self.advance();
            self.advance();
            return Ok(Some(SelectItem::TableWildcard(name)));
        }
        let name = crate::ast::ObjectName { schema: None, name: self.reference()? };
        self.advance();
        self.advance();
        Ok(Some(SelectItem::TableWildcard(name)))
    }

    /// WHERE.
    pub(super) fn filter(&mut self) -> Rule<Option<Expr>> {
        if self.eat_kw(Kw::WHERE) { self.expr().map(Some) } else { Ok(None) }
    }

    fn group_by(&mut self) -> Rule<(Vec<OrderItem>, bool)> {
        if !self.eat_kw(Kw::GROUP) {
            return Ok((Vec::new(), false));
        }
        self.expect_kw(Kw::BY)?;
        if !self.options.mariadb && self.is_word("ROLLUP") && self.peek().kind == Tok::LParen {
            self.advance();
            return Ok((self.paren_list(grouped)?, true));
        }
        let list = self.comma_list(grouped)?;
        Ok((list, self.eat_words(&["WITH", "ROLLUP"])))
    }

    /// ORDER BY or nothing.
    pub(super) fn order_by(&mut self) -> Rule<Vec<OrderItem>> {
        if !self.eat_kw(Kw::ORDER) {
            return Ok(Vec::new());
        }
        self.expect_kw(Kw::BY)?;
        self.comma_list(Self::order_item)
    }

    pub(super) fn order_item(&mut self) -> Rule<OrderItem> {
        let expr = self.expr()?;
        let descending = self.eat_kw(Kw::DESC);
        if !descending {
            self.eat_kw(Kw::ASC);
        }
        Ok(OrderItem { expr, descending })
    }

    /// LIMIT or nothing.
    pub(super) fn limit(&mut self) -> Rule<Option<Limit>> {
        if !self.eat_kw(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.eat(Tok::Comma) {
            let count = self.limit_value()?;
            return Ok(Some(Limit { count, offset: Some(first) }));
        }
        let offset = if self.eat_word("OFFSET") { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { count: first, offset }))
    }

    fn limit_value(&mut self) -> Rule<Expr> {
        match self.token.kind {
            Tok::Int | Tok::HexNum => Ok(Expr::Literal(Literal::Int(self.number()?))),
            Tok::Param => self.simple_expr(),
            _ if self.program.is_some() && self.at_local() => self.simple_expr(),
            _ => Err(self.error()),
        }
    }

    /// At FOR or LOCK; `None` when they belong to someone else.
    fn locking(&mut self) -> Rule<Option<Locking>> {
        if self.eat_words(&["LOCK", "IN", "SHARE", "MODE"]) {
            let wait = self.lock_wait()?;
            return Ok(Some(Locking { strength: LockStrength::Share, tables: Vec::new(), wait }));
        }
        let strength = if self.eat_words(&["FOR", "UPDATE"]) {
            LockStrength::Update
        } else if self.eat_words(&["FOR", "SHARE"]) {
            LockStrength::Share
        } else {
            return Ok(None);
        };
        let tables = if self.eat_kw(Kw::OF) { self.comma_list(Self::object_name)? } else { Vec::new() };
        Ok(Some(Locking { strength, tables, wait: self.lock_wait()? }))
    }

    fn lock_wait(&mut self) -> Rule<LockWait> {
        if self.eat_word("NOWAIT") {
            return Ok(LockWait::NoWait);
        }
        if self.eat_words(&["SKIP", "LOCKED"]) {
            return Ok(LockWait::SkipLocked);
        }
        if self.eat_word("WAIT") {
            return Ok(LockWait::Seconds(self.number()?));
        }
        Ok(LockWait::Wait)
    }

    /// INTO or nothing.
    fn into(&mut self) -> Rule<Option<Box<Into>>> {
        if !self.eat_kw(Kw::INTO) {
            return Ok(None);
        }
        if self.eat_kw(Kw::OUTFILE) {
            let file = self.string()?;
            let charset = self.type_charset()?;
            let format = self.file_format()?;
            return Ok(Some(Box::new(Into::Outfile { file, charset, format })));
        }
        if self.eat_word("DUMPFILE") {
            return Ok(Some(Box::new(Into::Dumpfile(self.string()?))));
        }
        Ok(Some(Box::new(Into::Variables(self.comma_list(Self::target)?))))
    }
}

/// A member of GROUP BY. MySQL has no direction there since 8.0; MariaDB sorts by it.
fn grouped(parser: &mut Parser<'_>) -> Rule<OrderItem> {
    match parser.options.mariadb {
        true => parser.order_item(),
        false => Ok(OrderItem { expr: parser.expr()?, descending: false }),
    }
}

fn misplaced_into() -> ParseError {
    let message = "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.";
    other(3954, "42000", message)
}

/// A query of a body alone.
fn plain_query(body: QueryBody) -> Query {
    Query { with: None, body, order_by: Vec::new(), limit: None, locking: Vec::new(), into: None }
}
