//! FROM: tables, derived tables, joins.

use super::{Parser, Rule};
use crate::ast::{
    Derived, Ident, IndexHint, IndexHintKind, IndexHintScope, Join, JoinCondition, JoinKind, ObjectName,
    Query, QueryBody, TableFactor, TableRef,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

/// The content of a parenthesis in FROM.
enum InParens {
    Query(Query),
    Tables(TableRef),
}

/// A join without its condition yet.
struct Waiting {
    kind: JoinKind,
    table: TableRef,
    /// How many joins were put on top of `table` since: the length of its left edge.
    spine: usize,
}

/// Joins `right` onto the last waiting table, or onto the base when none waits.
fn combine(
    base: &mut TableRef,
    waiting: &mut [Waiting],
    kind: JoinKind,
    natural: bool,
    right: TableRef,
    condition: JoinCondition,
) {
    let target = match waiting.last_mut() {
        Some(join) => {
            join.spine += 1;
            &mut join.table
        }
        None => base,
    };
    let left = std::mem::replace(target, TableRef::Group(Vec::new()));
    *target = TableRef::Join(Box::new(Join { kind, natural, left, right, condition }));
}

/// Joins `base` with the leftmost table of a join that never got a condition.
fn put_leftmost(base: TableRef, join: Waiting) -> TableRef {
    let Waiting { kind, mut table, spine } = join;
    let mut at = &mut table;
    for _ in 0..spine {
        if let TableRef::Join(inner) = at {
            at = &mut inner.left;
        } else {
            break;
        }
    }
    let right = std::mem::replace(at, TableRef::Group(Vec::new()));
    *at = TableRef::Join(Box::new(Join {
        kind,
        natural: false,
        left: base,
        right,
        condition: JoinCondition::None,
    }));
    table
}

impl Parser<'_> {
    /// Everything behind FROM; DUAL is nothing.
    pub(super) fn tables_clause(&mut self) -> Rule<Vec<TableRef>> {
        if self.eat_kw(Kw::DUAL) {
            return Ok(Vec::new());
        }
        self.table_refs()
    }

    /// Comma-separated table references.
    pub(super) fn table_refs(&mut self) -> Rule<Vec<TableRef>> {
        self.comma_list(Self::table_ref)
    }

    fn table_ref(&mut self) -> Rule<TableRef> {
        self.nest(|p| {
            let first = p.table_factor()?;
            p.joins(first)
        })
    }

    /// Joins onto a table reference.
    ///
    /// An inner join need not have a condition, so whose an ON is shows only later: `a JOIN b JOIN c ON x ON y` is
    /// `a JOIN (b JOIN c ON x) ON y`, but `a JOIN b JOIN c ON x` is `(a JOIN b) JOIN c ON x`. Joins wait in a stack
    /// for their condition; an ON takes the last; those that never get one are put under what they wait on.
    fn joins(&mut self, first: TableRef) -> Rule<TableRef> {
        let mut base = first;
        let mut waiting: Vec<Waiting> = Vec::new();
        loop {
            if let Some((kind, natural)) = self.join_words()? {
                let table = self.table_factor()?;
                if natural {
                    combine(&mut base, &mut waiting, kind, true, table, JoinCondition::None);
                } else {
                    waiting.push(Waiting { kind, table, spine: 0 });
                }
            } else if matches!(self.token.kw, Kw::ON | Kw::USING)
                && let Some(join) = waiting.pop()
            {
                let condition = self.join_condition()?;
                combine(&mut base, &mut waiting, join.kind, false, join.table, condition);
            } else {
                break;
            }
            self.grow()?;
        }
        for join in waiting {
            if matches!(join.kind, JoinKind::Left | JoinKind::Right) {
                return Err(self.error());
            }
            base = put_leftmost(base, join);
        }
        Ok(base)
    }

    fn at_join(&self) -> bool {
        matches!(
            self.token.kw,
            Kw::JOIN | Kw::INNER | Kw::CROSS | Kw::LEFT | Kw::RIGHT | Kw::NATURAL | Kw::STRAIGHT_JOIN
        )
    }

    /// The words of a join, or nothing.
    fn join_words(&mut self) -> Rule<Option<(JoinKind, bool)>> {
        if !self.at_join() {
            return Ok(None);
        }
        if self.eat_kw(Kw::STRAIGHT_JOIN) {
            return Ok(Some((JoinKind::Straight, false)));
        }
        let natural = self.eat_kw(Kw::NATURAL);
        let kind = match self.token.kw {
            Kw::LEFT => JoinKind::Left,
            Kw::RIGHT => JoinKind::Right,
            _ => JoinKind::Inner,
        };
        if kind == JoinKind::Inner {
            let _ = self.eat_kw(Kw::INNER) || self.eat_kw(Kw::CROSS);
        } else {
            self.advance();
            self.eat_kw(Kw::OUTER);
        }
        self.expect_kw(Kw::JOIN)?;
        Ok(Some((kind, natural)))
    }

    fn join_condition(&mut self) -> Rule<JoinCondition> {
        if self.eat_kw(Kw::ON) {
            return Ok(JoinCondition::On(self.expr()?));
        }
        if self.eat_kw(Kw::USING) {
            return Ok(JoinCondition::Using(self.ident_list()?));
        }
        Ok(JoinCondition::None)
    }

    fn table_factor(&mut self) -> Rule<TableRef> {
        if self.is(Tok::LParen) {
            return match self.parenthesised()? {
                InParens::Query(query) => self.derived(query, false),
                InParens::Tables(tables) => Ok(tables),
            };
        }
        if self.eat_kw(Kw::LATERAL) {
            let query = self.paren_query()?;
            return self.derived(query, true);
        }
        if self.is(Tok::LBrace) {
            // ODBC: { OJ table_reference }
            self.advance();
            self.expect(Tok::Word)?;
            let tables = self.table_ref()?;
            self.expect(Tok::RBrace)?;
            return Ok(tables);
        }
        if self.is_kw(Kw::JSON_TABLE) {
            return self.json_table();
        }
        let name = self.object_name()?;
        self.named_table(name)
    }

    /// A table's name is consumed: partitions, alias, hints.
    pub(super) fn named_table(&mut self, name: ObjectName) -> Rule<TableRef> {
        let partitions = self.partitions()?;
        let alias = self.table_alias()?;
        let mut hints = Vec::new();
        while let Some(hint) = self.index_hint()? {
            hints.push(hint);
        }
        Ok(TableRef::Table(Box::new(TableFactor { name, alias, partitions, hints })))
    }

    /// At `(` in FROM: a query, or table references, told apart without trying twice.
    fn parenthesised(&mut self) -> Rule<InParens> {
        let is_query = self.query_follows_paren();
        self.nest(|p| {
            p.expect(Tok::LParen)?;
            let first = if is_query {
                InParens::Query(p.query()?)
            } else if p.is(Tok::LParen) {
                match p.parenthesised()? {
                    InParens::Query(query) if p.query_goes_on() => {
                        InParens::Query(p.query_after(QueryBody::Nested(Box::new(query)))?)
                    }
                    InParens::Query(query) if p.is(Tok::RParen) => InParens::Query(query),
                    InParens::Query(query) => InParens::Tables(p.derived(query, false)?),
                    tables => tables,
                }
            } else {
                InParens::Tables(p.table_factor()?)
            };
            let result = match first {
                InParens::Tables(table) => {
                    let first = p.joins(table)?;
                    if p.is(Tok::Comma) {
                        let mut members = vec![first];
                        while p.eat(Tok::Comma) {
                            members.push(p.table_ref()?);
                        }
                        InParens::Tables(TableRef::Group(members))
                    } else {
                        InParens::Tables(first)
                    }
                }
                query => query,
            };
            p.expect(Tok::RParen)?;
            Ok(result)
        })
    }

    fn derived(&mut self, query: Query, lateral: bool) -> Rule<TableRef> {
        let alias = self.table_alias()?;
        let columns = if alias.is_some() && self.is(Tok::LParen) { self.ident_list()? } else { Vec::new() };
        Ok(TableRef::Derived(Box::new(Derived { lateral, query, alias, columns })))
    }

    /// `[AS] alias` or nothing.
    pub(super) fn table_alias(&mut self) -> Rule<Option<Ident>> {
        if self.eat_kw(Kw::AS) {
            return self.ident_or_text().map(Some);
        }
        if self.is_alias() { self.reference().map(Some) } else { Ok(None) }
    }

    /// `PARTITION (p, ...)` or nothing.
    pub(super) fn partitions(&mut self) -> Rule<Vec<Ident>> {
        if self.eat_kw(Kw::PARTITION) { self.ident_list() } else { Ok(Vec::new()) }
    }

    fn index_hint(&mut self) -> Rule<Option<IndexHint>> {
        let kind = match self.token.kw {
            Kw::USE => IndexHintKind::Use,
            Kw::FORCE => IndexHintKind::Force,
            Kw::IGNORE => IndexHintKind::Ignore,
            _ => return Ok(None),
        };
        if !matches!(self.peek().kw, Kw::INDEX | Kw::KEY) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let scope = if !self.eat_kw(Kw::FOR) {
            IndexHintScope::All
        } else if self.eat_kw(Kw::JOIN) {
            IndexHintScope::Join
        } else if self.eat_kw(Kw::ORDER) {
            self.expect_kw(Kw::BY)?;
            IndexHintScope::OrderBy
        } else {
            self.expect_kw(Kw::GROUP)?;
            self.expect_kw(Kw::BY)?;
            IndexHintScope::GroupBy
        };
        self.expect(Tok::LParen)?;
        let mut indexes = Vec::new();
        // USE of no index is a hint; FORCE and IGNORE name one.
        let may_be_empty = kind == IndexHintKind::Use || self.options.mariadb;
        while (indexes.is_empty() && !may_be_empty) || !self.eat(Tok::RParen) {
            if !indexes.is_empty() {
                self.expect(Tok::Comma)?;
            }
            indexes.push(if self.eat_kw(Kw::PRIMARY) { Ident::from("PRIMARY") } else { self.ident()? });
        }
        Ok(Some(IndexHint { kind, scope, indexes }))
    }
}
