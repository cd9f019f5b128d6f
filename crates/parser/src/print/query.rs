//! Queries back to SQL: what a view keeps.
//!
//! The binder of a query says what its names mean ([`Meaning`]), by the places of the tree's nodes in memory; with that, the text
//! means the same wherever it is read: tables and columns have their databases, `*` is a list, NATURAL and USING are conditions.

use super::Printer;
use super::facts::Facts;
use super::shown::{self, is_bare};
use crate::ast::{
    CastType, ColumnRef, Derived, Expr, FrameBound, FunctionCall, Ident, IndexHintKind, IndexHintScope, Join,
    JoinCondition, JoinKind, JsonColumn, JsonInstead, JsonPlace, JsonTable, JsonValue, JsonValueInstead,
    Limit, LockStrength, LockWait, ObjectName, OrderItem, Over, Query, QueryBody, Select, SelectItem, SetOp,
    TableFactor, TableRef, WindowSpec, With,
};
use omnibus_value::literal::{doubled, write_escaped, write_name};
use std::collections::{HashMap, HashSet};

/// The meaning of a query's names. Good for one tree, as long as that stays where it is.
#[derive(Debug, Default)]
pub struct Meaning {
    columns: HashMap<usize, ColumnRef>,
    /// Of select lists: the columns that `*` gives, or the one name that a member has.
    pub(super) items: HashMap<usize, Vec<(Option<ColumnRef>, Ident)>>,
    joins: HashMap<usize, Vec<(ColumnRef, ColumnRef)>>,
    tables: HashMap<usize, Ident>,
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

    fn query(&mut self, query: &Query, named: bool, names: &[Ident]) {
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
    fn name_list(&mut self, names: &[Ident]) {
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
            self.tables(&select.from);
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
            self.window(spec);
        }
    }

    /// A comma is a join.
    fn tables(&mut self, tables: &[TableRef]) {
        if tables.len() > 1 {
            (1..tables.len()).for_each(|_| self.put("("));
        }
        for (at, table) in tables.iter().enumerate() {
            self.put(if at > 0 { " join " } else { "" });
            self.table(table);
            self.put(if at > 0 { ")" } else { "" });
        }
    }

    fn table(&mut self, table: &TableRef) {
        match table {
            TableRef::Table(factor) => self.factor(factor),
            TableRef::Derived(derived) => self.derived(derived),
            TableRef::JsonTable(table) => self.json_table(table),
            TableRef::Group(members) => self.tables(members),
            TableRef::Join(join) => self.join(join),
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        let meant = self.view.and_then(|view| view.meaning?.tables.get(&place(factor)));
        let schema = meant.or(factor.name.schema.as_ref());
        if let Some(schema) = schema {
            self.facts.tables.push((schema.clone(), factor.name.name.clone()));
            if !self.is_home(schema) {
                self.ident(schema);
                self.put(".");
            }
        }
        self.ident(&factor.name.name);
        for (at, partition) in factor.partitions.iter().enumerate() {
            self.put(if at > 0 { "," } else { " PARTITION (" });
            self.ident(partition);
        }
        self.put(if factor.partitions.is_empty() { "" } else { ")" });
        if let Some(alias) = &factor.alias {
            self.put(" ");
            self.ident(alias);
        }
        for hint in &factor.hints {
            self.put(match hint.kind {
                IndexHintKind::Use => " use index ",
                IndexHintKind::Force => " force index ",
                IndexHintKind::Ignore => " ignore index ",
                // Stands in comments alone.
                IndexHintKind::NoRange => continue,
            });
            self.put(match hint.scope {
                IndexHintScope::All => "(",
                IndexHintScope::Join => "for join (",
                IndexHintScope::OrderBy => "for order by (",
                IndexHintScope::GroupBy => "for group by (",
            });
            for (at, index) in hint.indexes.iter().enumerate() {
                self.put(if at > 0 { "," } else { "" });
                self.ident(index);
            }
            self.put(")");
        }
    }

    fn derived(&mut self, derived: &Derived) {
        self.put(if derived.lateral { "lateral (" } else { "(" });
        self.query(&derived.query, true, &[]);
        self.put(")");
        if let Some(alias) = &derived.alias {
            self.put(" ");
            self.ident(alias);
        }
        self.name_list(&derived.columns);
    }

    fn json_table(&mut self, table: &JsonTable) {
        self.put("json_table(");
        self.expr(&table.doc);
        self.put(", ");
        self.json_text(&table.path);
        self.json_columns(&table.columns);
        self.put(")");
        if let Some(alias) = &table.alias {
            self.put(" ");
            self.ident(alias);
        }
    }

    fn json_text(&mut self, text: &[u8]) {
        self.put("'");
        self.put(&doubled(&String::from_utf8_lossy(text)));
        self.put("'");
    }

    pub(super) fn json_value(&mut self, call: &JsonValue) {
        self.put("json_value(");
        self.expr(&call.doc);
        self.put(", ");
        let told = super::shown::is_shown(self);
        self.put(if told && self.stored.is_some() { "_utf8mb4" } else { "" });
        if told {
            write_escaped(&call.path, &mut self.out)
        } else {
            self.json_text(&call.path)
        }
        self.put(" returning ");
        let text = CastType::Char { length: Some(512), charset: None, binary: false };
        super::calls::told_type(self, call.ty.as_ref().unwrap_or(&text));
        for (instead, event) in [(&call.on_empty, " on empty"), (&call.on_error, " on error")] {
            match instead {
                JsonValueInstead::Null => continue,
                JsonValueInstead::Error => self.put(" error"),
                JsonValueInstead::Default(value) => {
                    self.put(" default ");
                    self.expr(value);
                }
            }
            self.put(event);
        }
        self.put(")");
    }

    fn json_columns(&mut self, columns: &[JsonColumn]) {
        self.put(" columns (");
        for (at, column) in columns.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            match column {
                JsonColumn::Ordinality(name) => {
                    self.ident(name);
                    self.put(" for ordinality");
                }
                JsonColumn::Nested { path, columns } => {
                    self.put("nested path ");
                    self.json_text(path);
                    self.json_columns(columns);
                }
                JsonColumn::Place(place) => self.json_place(place),
            }
        }
        self.put(")");
    }

    fn json_place(&mut self, place: &JsonPlace) {
        self.ident(&place.name);
        self.put(" ");
        let ty = String::from_utf8_lossy(&place.ty_text);
        let told = shown::is_shown(self) && !ty.contains(['\'', '"', '`']);
        self.put(&if told { ty.to_ascii_lowercase().into() } else { ty });
        self.put(if place.exists { " exists path " } else { " path " });
        self.json_text(&place.path);
        for (instead, event) in [(&place.on_empty, " on empty"), (&place.on_error, " on error")] {
            match instead {
                JsonInstead::Null => continue,
                JsonInstead::Error => self.put(" error"),
                JsonInstead::Default(text) => {
                    self.put(" default ");
                    self.json_text(text);
                }
            }
            self.put(event);
        }
    }

    /// A RIGHT join is a LEFT one from the other side.
    fn join(&mut self, join: &Join) {
        let (left, word, right) = match join.kind {
            JoinKind::Inner => (&join.left, " join ", &join.right),
            JoinKind::Straight => (&join.left, " straight_join ", &join.right),
            JoinKind::Left => (&join.left, " left join ", &join.right),
            JoinKind::Right => (&join.right, " left join ", &join.left),
        };
        self.put("(");
        self.table(left);
        self.put(word);
        self.table(right);
        let outer = matches!(join.kind, JoinKind::Left | JoinKind::Right);
        let pairs = self.view.and_then(|view| view.meaning?.joins.get(&place(join)));
        match (&join.condition, pairs) {
            (JoinCondition::On(condition), _) => {
                self.put(" on");
                self.grouped(condition);
            }
            (_, Some(pairs)) if !pairs.is_empty() => {
                self.put(" on(");
                for (at, (a, b)) in pairs.iter().enumerate() {
                    self.put(if at > 0 { " and (" } else { "(" });
                    self.column(a);
                    self.put(" = ");
                    self.column(b);
                    self.put(")");
                }
                self.put(")");
            }
            _ if outer => self.put(" on(true)"),
            _ => {}
        }
        self.put(")");
    }

    /// An expression in one pair of parentheses at least.
    fn grouped(&mut self, expr: &Expr) {
        self.put("(");
        shown::condition(self, expr);
        self.put(")");
    }

    pub(super) fn over(&mut self, over: &Over) {
        self.facts.aggregate = true;
        self.put(if shown::is_shown(self) { " OVER " } else { " over " });
        match over {
            _ if self.view.is_none() => self.put("(...)"),
            Over::Name(name) => self.ident(name),
            Over::Spec(spec) => self.window(spec),
        }
    }

    fn window(&mut self, spec: &WindowSpec) {
        if shown::is_shown(self) {
            return shown::shown_window(self, spec);
        }
        self.put("(");
        if let Some(base) = &spec.base {
            self.ident(base);
        }
        if !spec.partition_by.is_empty() {
            self.put(" partition by ");
            self.list(&spec.partition_by);
        }
        self.order_by(" order by ", &spec.order_by);
        if let Some(frame) = &spec.frame {
            self.put(if frame.rows { " rows " } else { " range " });
            if let Some(end) = &frame.end {
                self.put("between ");
                self.bound(&frame.start);
                self.put(" and ");
                self.bound(end);
            } else {
                self.bound(&frame.start);
            }
        }
        self.put(")");
    }

    fn bound(&mut self, bound: &FrameBound) {
        match bound {
            FrameBound::CurrentRow => self.put("current row"),
            FrameBound::UnboundedPreceding => self.put("unbounded preceding"),
            FrameBound::UnboundedFollowing => self.put("unbounded following"),
            FrameBound::Preceding(expr) => {
                self.expr(expr);
                self.put(" preceding");
            }
            FrameBound::Following(expr) => {
                self.expr(expr);
                self.put(" following");
            }
        }
    }

    fn object(&mut self, name: &ObjectName) {
        if let Some(schema) = name.schema.as_ref().filter(|schema| !self.is_home(schema)) {
            write_name(schema.as_bytes(), &mut self.out);
            self.put(".");
        }
        write_name(name.name.as_bytes(), &mut self.out);
    }
}
