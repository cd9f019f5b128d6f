//! INSERT, REPLACE, UPDATE, DELETE.

use super::query::select_items;
use super::{Parser, Rule};
use crate::ParseError;
use crate::ast::{
    Assignment, Delete, Expr, Ident, Insert, InsertSource, ObjectName, Priority, Query, QueryBody, RowAlias,
    SelectItem, Statement, TableRef, Update, With,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

impl Parser<'_> {
    /// At INSERT or REPLACE.
    pub(super) fn insert(&mut self) -> Rule<Statement> {
        let replace = self.advance().kw == Kw::REPLACE;
        let hints = self.hints();
        let priority = self.priority();
        let ignore = self.eat_kw(Kw::IGNORE);
        self.eat_kw(Kw::INTO);
        let table = self.object_name()?;
        let partitions = self.partitions()?;
        let (columns, mut source) = self.insert_source()?;
        if let InsertSource::Query(query) = &mut source
            && let Some(select) = query.body.first_select_mut()
        {
            let of_tables = hints.iter().filter(|hint| hint.is_of_tables()).cloned();
            select.hints.splice(0..0, of_tables);
        }
        let row_alias = self.row_alias()?;
        let on_duplicate = if !replace && self.eat_words(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            self.assignments()?
        } else {
            Vec::new()
        };
        let returning = self.returning()?;
        Ok(Statement::Insert(Box::new(Insert {
            replace,
            hints,
            priority,
            ignore,
            table,
            partitions,
            columns,
            source,
            row_alias,
            on_duplicate,
            returning,
        })))
    }

    fn priority(&mut self) -> Priority {
        let priority = match self.token.kw {
            Kw::LOW_PRIORITY => Priority::Low,
            Kw::HIGH_PRIORITY => Priority::High,
            Kw::DELAYED => Priority::Delayed,
            _ => return Priority::Normal,
        };
        self.advance();
        priority
    }

    fn insert_source(&mut self) -> Rule<(Vec<Ident>, InsertSource)> {
        if self.eat_kw(Kw::SET) {
            let mut columns = Vec::new();
            let mut row = Vec::new();
            for Assignment { column, value } in self.assignments()? {
                columns.push(column.name);
                row.push(value);
            }
            return Ok((columns, InsertSource::Values(vec![row])));
        }
        let mut columns = Vec::new();
        if self.is(Tok::LParen) && !self.query_follows_paren() && self.peek().kind != Tok::LParen {
            self.advance();
            while !self.eat(Tok::RParen) {
                if !columns.is_empty() {
                    self.expect(Tok::Comma)?;
                }
                columns.push(self.column_ref()?.name);
            }
        }
        let values = self.is_kw(Kw::VALUES) && self.peek().kw != Kw::ROW;
        if values || self.is_word("VALUE") {
            self.advance();
            return Ok((columns, InsertSource::Values(self.value_rows()?)));
        }
        if !self.at_query() {
            return Err(self.error());
        }
        let query = self.query()?;
        let bare = query.with.is_none() && query.order_by.is_empty() && query.limit.is_none();
        Ok((
            columns,
            match query.body {
                // `VALUES ROW(..)`, whose values may be DEFAULT here.
                QueryBody::Values(rows) if bare => InsertSource::Values(rows),
                body => InsertSource::Query(Box::new(Query { body, ..query })),
            },
        ))
    }

    /// `(..), (..), ...`
    fn value_rows(&mut self) -> Rule<Vec<Vec<Expr>>> {
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        loop {
            self.expect(Tok::LParen)?;
            let mut row = Vec::with_capacity(rows.last().map_or(4, Vec::len));
            if !self.eat(Tok::RParen) {
                loop {
                    row.push(self.expr()?);
                    match self.token.kind {
                        Tok::Comma => self.advance(),
                        Tok::RParen => break,
                        _ => return Err(self.error()),
                    };
                }
                self.advance();
            }
            rows.push(row);
            if !self.eat(Tok::Comma) {
                return Ok(rows);
            }
        }
    }

    fn row_alias(&mut self) -> Rule<Option<RowAlias>> {
        if !self.eat_kw(Kw::AS) {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = if self.is(Tok::LParen) { self.ident_list()? } else { Vec::new() };
        Ok(Some(RowAlias { name, columns }))
    }

    /// `column = value, ...`
    pub(super) fn assignments(&mut self) -> Rule<Vec<Assignment>> {
        self.comma_list(|p| {
            let column = p.column_ref()?;
            if !p.eat(Tok::Assign) {
                p.expect(Tok::Eq)?;
            }
            Ok(Assignment { column, value: p.expr()? })
        })
    }

    fn returning(&mut self) -> Rule<Vec<SelectItem>> {
        if self.eat_word("RETURNING") { select_items(self) } else { Ok(Vec::new()) }
    }

    /// At UPDATE.
    pub(super) fn update(&mut self, with: Option<Box<With>>) -> Rule<Statement> {
        self.advance();
        let hints = self.hints();
        let low_priority = self.eat_kw(Kw::LOW_PRIORITY);
        let ignore = self.eat_kw(Kw::IGNORE);
        let tables = self.table_refs()?;
        self.expect_kw(Kw::SET)?;
        let assignments = self.assignments()?;
        let filter = self.filter()?;
        let order_by = self.order_by()?;
        let limit = self.limit()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            hints,
            low_priority,
            ignore,
            tables,
            assignments,
            filter,
            order_by,
            limit,
        })))
    }

    /// At DELETE.
    pub(super) fn delete(&mut self, with: Option<Box<With>>) -> Rule<Statement> {
        self.advance();
        let mut delete = Delete {
            with,
            hints: self.hints(),
            low_priority: false,
            quick: false,
            ignore: false,
            targets: Vec::new(),
            from: Vec::new(),
            filter: None,
            order_by: Vec::new(),
            limit: None,
            returning: Vec::new(),
        };
        loop {
            if self.eat_kw(Kw::LOW_PRIORITY) {
                delete.low_priority = true;
            } else if self.eat_kw(Kw::IGNORE) {
                delete.ignore = true;
            } else if self.is_word("QUICK")
                && (Self::token_is_ident(&self.peek()) || self.peek().kw != Kw::NONE)
            {
                self.advance();
                delete.quick = true;
            } else {
                break;
            }
        }
        if self.eat_kw(Kw::FROM) {
            self.delete_from(&mut delete)?;
        } else {
            delete.targets = self.comma_list(Self::delete_target)?;
            self.expect_kw(Kw::FROM)?;
            delete.from = self.table_refs()?;
            // MariaDB's DELETE HISTORY FROM t: nothing that is called so is read.
            if is_history(&delete) {
                return Err(ParseError::NotSupported("DELETE HISTORY"));
            }
        }
        delete.filter = self.filter()?;
        if delete.targets.is_empty() {
            delete.order_by = self.order_by()?;
            delete.limit = self.limit()?;
            delete.returning = self.returning()?;
        }
        Ok(Statement::Delete(Box::new(delete)))
    }

    /// Behind DELETE FROM: one table, or targets and USING.
    fn delete_from(&mut self, delete: &mut Delete) -> Rule<()> {
        let start = self.mark();
        let first = self.delete_target()?;
        if self.is(Tok::Comma) || self.is_kw(Kw::USING) {
            delete.targets.push(first);
            while self.eat(Tok::Comma) {
                delete.targets.push(self.delete_target()?);
            }
            self.expect_kw(Kw::USING)?;
            delete.from = self.table_refs()?;
            return Ok(());
        }
        self.reset(start);
        let name = self.object_name()?;
        let mut table = self.named_table(name)?;
        if let TableRef::Table(factor) = &mut table
            && factor.partitions.is_empty()
        {
            // MySQL writes the alias before PARTITION here.
            factor.partitions = self.partitions()?;
        }
        delete.from.push(table);
        Ok(())
    }

    /// `t`, `s.t`, `t.*`, `s.t.*`
    fn delete_target(&mut self) -> Rule<ObjectName> {
        let first = self.ident()?;
        if !self.eat(Tok::Dot) {
            return Ok(ObjectName { schema: None, name: first });
        }
        if self.eat(Tok::Star) {
            return Ok(ObjectName { schema: None, name: first });
        }
        let name = self.ident_after_dot()?;
        if self.eat(Tok::Dot) {
            self.expect(Tok::Star)?;
        }
        Ok(ObjectName { schema: Some(first), name })
    }
}

/// Whether a DELETE of several tables names as its only target `history`, and reads one table of another name.
fn is_history(delete: &Delete) -> bool {
    let ([target], [TableRef::Table(from)]) = (&*delete.targets, &*delete.from) else { return false };
    let known_as = from.alias.as_ref().unwrap_or(&from.name.name);
    target.schema.is_none()
        && target.name.eq_ignore_ascii_case("history")
        && !known_as.eq_ignore_ascii_case("history")
}
