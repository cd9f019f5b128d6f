//! Queries back to SQL: what a view keeps.
//!
//! The binder of a query says what its names mean ([`Meaning`]), by the places of the tree's nodes in memory; with that, the text
//! means the same wherever it is read: tables and columns have their databases, `*` is a list, NATURAL and USING are conditions.

use super::facts::Facts;
use super::shown::{self, is_bare};
use super::{Printer, from, windows};
use crate::ast::{
    ColumnRef, Expr, FunctionCall, Ident, Join, Limit, LockStrength, LockWait, ObjectName, OrderItem, Query,
    QueryBody, Select, SelectItem, SetOp, TableFactor, With,
};
use omnibus_value::literal::write_name;
use std::collections::{HashMap, HashSet};

/// The meaning of a query's names. Good for one tree, as long as that stays where it is.
#[derive(Debug, Default)]
pub struct Meaning {
    columns: HashMap<usize, ColumnRef>,
    /// Of select lists: the columns that `*` gives, or the one name that a member has.
    pub(super) items: HashMap<usize, Vec<(Option<ColumnRef>, Ident)>>,
    pub(super) joins: HashMap<usize, Vec<(ColumnRef, ColumnRef)>>,
    pub(super) tables: HashMap<usize, Ident>,
    stored: HashSet<usize>,
}

pub(super) fn place<T>(node: &T) -> usize {
    std::ptr::from_ref(node) as usize
}

impl Meaning {
    /// A column's full name.
    pub fn set_column(&mut self, node: &ColumnRef, full: ColumnRef) {
        self.columns.insert(place(node), full);
    }

    /// Sets the columns of a member of a select list, with their names.
    pub fn set_item(&mut self, node: &SelectItem, columns: Vec<(Option<ColumnRef>, Ident)>) {
        self.items.insert(place(node), columns);
    }

    /// The columns that a NATURAL join, or one with USING, compares.
    pub fn set_join(&mut self, node: &Join, pairs: Vec<(ColumnRef, ColumnRef)>) {
        self.joins.insert(place(node), pairs);
    }

    /// The database of a table.
    pub fn set_table(&mut self, node: &TableFactor, schema: Ident) {
        self.tables.insert(place(node), schema);
    }

    /// That a call is of a stored function, in the view's own database if it names none.
    pub fn set_stored(&mut self, node: &FunctionCall) {
        self.stored.insert(place(node));
    }

    pub(super) fn is_stored(&self, node: &FunctionCall) -> bool {
        self.stored.contains(&place(node))
    }

    pub(super) fn column(&self, node: &ColumnRef) -> Option<&ColumnRef> {
        self.columns.get(&place(node))
    }
}

/// The bytes that a client sent for some text.
pub type Written<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// How a view's query is written.
#[derive(Default)]
pub struct ViewText<'a> {
    /// The meaning of its names; none for a tree that has full names already.
    pub meaning: Option<&'a Meaning>,
    /// Names of the outermost select list that take the place of its own.
    pub columns: &'a [Ident],
    /// The database that is left out.
    pub home: Option<&'a str>,
    /// The bytes that the client sent for a literal with an introducer.
    pub written: Option<Written<'a>>,
    /// In MySQL's words.
    pub shown: bool,
    /// The character set of CAST .. AS CHAR without one, where that is shown.
    pub charset: Option<&'a str>,
}

/// A query as a view keeps it.
pub fn view_sql(query: &Query, text: &ViewText<'_>) -> (Vec<u8>, Facts) {
    let mut printer = Printer { view: Some(text), ..Printer::default() };
    printer.query(query, true, text.columns);
    (printer.out, printer.facts)
}

impl Printer<'_> {
    pub(super) fn is_home(&self, schema: &str) -> bool {
        self.view.is_some_and(|view| view.home == Some(schema))
    }

    /// A subquery of an expression.
    pub(super) fn subquery(&mut self, query: &Query) {
        self.facts.subquery = true;
        if self.view.is_none() {
            return self.put("(...)");
        }
        self.put("(");
        self.query(query, false, &[]);
        self.put(")");
    }

    /// The subquery of EXISTS: `*` stands for nothing there.
    pub(super) fn exists(&mut self, query: &Query) {
        let QueryBody::Select(select) = &query.body else { return self.subquery(query) };
        if self.view.is_none() || !matches!(select.items[..], [SelectItem::Wildcard]) {
            return self.subquery(query);
        }
        self.facts.subquery = true;
        self.put("(");
        self.with(query.with.as_deref());
        self.put("select 1");
        self.select_tail(select);
        self.tail(query);
        self.put(")");
    }

    pub(super) fn query(&mut self, query: &Query, named: bool, names: &[Ident]) {
        self.facts.into |= query.into.is_some();
        self.with(query.with.as_deref());
        self.body(&query.body, named, names);
        self.tail(query);
    }

    fn with(&mut self, with: Option<&With>) {
        let Some(with) = with else { return };
        self.put(if with.recursive { "with recursive " } else { "with " });
        for (at, table) in with.tables.iter().enumerate() {
            self.put(if at > 0 { "," } else { "" });
            self.ident(&table.name);
            self.name_list(&table.columns);
            self.put(" as (");
            self.query(&table.query, true, &[]);
            self.put(")");
        }
        self.put(" ");
    }

    /// ` (a,b)`, or nothing.
    pub(super) fn name_list(&mut self, names: &[Ident]) {
        for (at, name) in names.iter().enumerate() {
            self.put(if at > 0 { "," } else { " (" });
            self.ident(name);
        }
        self.put(if names.is_empty() { "" } else { ")" });
    }

    fn tail(&mut self, query: &Query) {
        self.order_by(" order by ", &query.order_by);
        self.limit(query.limit.as_ref());
        let locks = if shown::is_shown(self) { &[][..] } else { &query.locking[..] };
        for locking in locks {
            self.put(match locking.strength {
                LockStrength::Update => " for update",
                LockStrength::Share => " for share",
            });
            for (at, table) in locking.tables.iter().enumerate() {
                self.put(if at > 0 { "," } else { " of " });
                self.object(table);
            }
            self.put(match locking.wait {
                LockWait::NoWait | LockWait::Seconds(0) => " nowait",
                LockWait::SkipLocked => " skip locked",
                LockWait::Wait | LockWait::Seconds(_) => "",
            });
        }
    }

    pub(super) fn order_by(&mut self, words: &str, items: &[OrderItem]) {
        for (at, item) in items.iter().enumerate() {
            self.put(if at > 0 { "," } else { words });
            self.expr(&item.expr);
            self.put(if item.descending { " desc" } else { "" });
        }
    }

    pub(super) fn limit(&mut self, limit: Option<&Limit>) {
        let Some(limit) = limit else { return };
        self.put(" limit ");
        if let Some(offset) = &limit.offset {
            self.expr(offset);
            self.put(",");
        }
        self.expr(&limit.count);
    }

    fn body(&mut self, body: &QueryBody, named: bool, names: &[Ident]) {
        match body {
            QueryBody::Select(select) => self.select(select, named, names),
            QueryBody::Values(rows) => {
                self.put("values ");
                for (at, row) in rows.iter().enumerate() {
                    self.put(if at > 0 { ",row(" } else { "row(" });
                    self.list(row);
                    self.put(")");
                }
            }
            QueryBody::Table(name) => {
                self.facts.table = true;
                self.put("table ");
                self.object(name);
            }
            QueryBody::Nested(query) if shown::is_shown(self) && is_bare(query) => {
                self.query(query, named, names);
            }
            QueryBody::Nested(query) => {
                self.put("(");
                self.query(query, named, names);
                self.put(")");
            }
            QueryBody::SetOperation { op, all, left, right } => {
                self.body(left, named, names);
                self.put(match op {
                    SetOp::Union => " union ",
                    SetOp::Intersect => " intersect ",
                    SetOp::Except => " except ",
                });
                self.put(if *all { "all " } else { "" });
                self.body(right, named, &[]);
            }
        }
    }

    fn select(&mut self, select: &Select, named: bool, names: &[Ident]) {
        self.put("select ");
        let options = &select.options;
        for (set, word) in [
            (options.distinct, "distinct "),
            (options.high_priority, "high_priority "),
            (options.straight_join, "straight_join "),
            (options.small_result, "sql_small_result "),
            (options.big_result, "sql_big_result "),
            (options.buffer_result, "sql_buffer_result "),
            (options.calc_found_rows, "sql_calc_found_rows "),
        ] {
            self.put(if set { word } else { "" });
        }
        let mut names = names.iter();
        for (at, item) in select.items.iter().enumerate() {
            self.put(if at > 0 { "," } else { "" });
            self.item(item, named, &mut names);
        }
        self.select_tail(select);
    }

    /// A select list's member: with its name where somebody may ask for it.
    fn item(&mut self, item: &SelectItem, named: bool, names: &mut std::slice::Iter<'_, Ident>) {
        let meant = self.view.and_then(|view| view.meaning?.items.get(&place(item)));
        match (item, meant) {
            (SelectItem::Expr { expr, alias, .. }, meant) => {
                self.expr(expr);
                let own = alias.as_ref().or_else(|| Some(&meant?.first()?.1).filter(|_| named));
                if let Some(name) = names.next().or(own) {
                    self.alias(name);
                }
            }
            (_, Some(columns)) => {
                for (at, (column, own)) in columns.iter().enumerate() {
                    self.put(if at > 0 { "," } else { "" });
                    if let Some(column) = column {
                        self.column(column);
                    }
                    if let Some(name) = names.next().or(Some(own).filter(|_| named)) {
                        self.alias(name);
                    }
                }
            }
            (SelectItem::TableWildcard(name), None) => {
                self.object(name);
                self.put(".*");
            }
            (SelectItem::Wildcard, None) => self.put("*"),
        }
    }

    fn alias(&mut self, name: &str) {
        self.put(" AS ");
        self.ident(name);
    }

    /// Everything behind the select list.
    fn select_tail(&mut self, select: &Select) {
        if !select.from.is_empty() {
            self.put(" from ");
            from::list_of_tables(self, &select.from);
        }
        if let Some(filter) = &select.filter {
            self.put(" where ");
            shown::condition(self, filter);
        }
        self.order_by(" group by ", &select.group_by);
        self.put(if select.with_rollup { " with rollup" } else { "" });
        if let Some(having) = &select.having {
            self.put(" having ");
            shown::condition(self, having);
        }
        for (at, (name, spec)) in select.windows.iter().enumerate() {
            self.put(if at > 0 { "," } else { " window " });
            self.ident(name);
            self.put(if shown::is_shown(self) { " AS " } else { " as " });
            windows::window(self, spec);
        }
    }

    /// An expression in one pair of parentheses at least.
    pub(super) fn grouped(&mut self, expr: &Expr) {
        self.put("(");
        shown::condition(self, expr);
        self.put(")");
    }

    fn object(&mut self, name: &ObjectName) {
        if let Some(schema) = name.schema.as_ref().filter(|schema| !self.is_home(schema)) {
            write_name(schema.as_bytes(), &mut self.out);
            self.put(".");
        }
        write_name(name.name.as_bytes(), &mut self.out);
    }
}
