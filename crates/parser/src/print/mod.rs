//! Expressions back to SQL, the way MySQL prints stored ones: names in backquotes, operators in
//! parentheses, function names in lower case. Used for DEFAULT expressions, generated columns and CHECK; with `query`, `from` and `windows` for the
//! queries of views.
//!
//! The output parses back to the same tree under default options (a long AND/OR chain may be
//! grouped otherwise). Outside of a view's query, subqueries cannot occur and print as `(...)`.

mod calls;
mod facts;
mod from;
mod json;
mod query;
mod shown;
mod view_names;
mod windows;

pub use facts::Facts;
pub use query::{Meaning, ViewText, view_sql};

use bytes::Bytes;
use omnibus_value::literal::{write_escaped, write_name};

use crate::ast::{
    BinaryOp, CastType, ColumnRef, Expr, FunctionCall, Ident, Literal, TrimSide, Truth, UnaryOp, VarScope,
};

/// The expression as SQL bytes; string literals keep their own bytes.
pub fn sql(expr: &Expr) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.expr(expr);
    printer.out
}

/// The expression as a definition keeps it: it means the same whatever the session that reads it.
pub fn stored_sql(expr: &Expr, stored: &Stored<'_>) -> Vec<u8> {
    let mut printer = Printer { stored: Some(stored), ..Printer::default() };
    printer.expr(expr);
    printer.out
}

/// Whether `VALUES(column)` is in it, outside of subqueries.
pub fn reads_values(expr: &Expr) -> bool {
    let mut printer = Printer::default();
    printer.expr(expr);
    printer.facts.values
}

/// Whether a part of it casts to an array.
pub fn has_array(expr: &Expr) -> bool {
    let mut printer = Printer::default();
    printer.expr(expr);
    printer.facts.array
}

/// The names of the columns that it reads, outside of subqueries, once for each time.
pub fn column_names(expr: &Expr) -> Vec<Ident> {
    let mut printer = Printer::default();
    printer.expr(expr);
    printer.columns
}

/// The context in which a stored expression was written.
pub struct Stored<'a> {
    /// The table that it belongs to: its columns need no qualifier.
    pub table: &'a str,
    /// The bytes that the client sent for a literal with an introducer.
    pub written: &'a dyn Fn(&[u8]) -> Vec<u8>,
    /// In MySQL's words: as it is told, rather than as it is kept.
    pub shown: bool,
    /// Text that is not ASCII is written as its bytes: no client's character set changes it then.
    pub bytes: bool,
}

#[derive(Default)]
struct Printer<'a> {
    out: Vec<u8>,
    columns: Vec<Ident>,
    stored: Option<&'a Stored<'a>>,
    /// Set for the query of a view.
    view: Option<&'a ViewText<'a>>,
    facts: Facts,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn ident(&mut self, name: &str) {
        write_name(name.as_bytes(), &mut self.out);
    }

    fn list(&mut self, list: &[Expr]) {
        for (i, expr) in list.iter().enumerate() {
            if i > 0 {
                self.put(",");
            }
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if shown::is_shown(self) && shown::shown(self, expr) {
            return;
        }
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Introduced(pair) => {
                self.put("_");
                self.put(&pair.0);
                let written = match (self.stored, self.view) {
                    (Some(stored), _) => Some(stored.written),
                    (_, Some(view)) => view.written,
                    _ => None,
                };
                match (written, &pair.1) {
                    (Some(_), Literal::Str(text)) if pair.0.is("utf8mb4") => {
                        self.utf8(text, self.stored.is_some_and(|stored| stored.bytes))
                    }
                    (Some(written), Literal::Str(text)) if !text.is_ascii() => {
                        self.put(" ");
                        self.literal(&Literal::Hex(written(text).into()));
                    }
                    (_, Literal::Str(text)) => write_escaped(text, &mut self.out),
                    (_, literal) => {
                        self.put(" ");
                        self.literal(literal);
                    }
                }
            }
            Expr::Param(_) => {
                self.facts.variable = true;
                self.put("?");
            }
            // Nothing that is stored is in a program's scope.
            Expr::Local(number) => self.put(&format!("local#{number}")),
            Expr::Column(column) => self.column(column),
            Expr::UserVar(name) => {
                self.facts.variable = true;
                self.put("@");
                self.ident(name);
            }
            Expr::SysVar { scope, name } => {
                self.facts.variable = true;
                system_variable(self, *scope, name);
            }
            Expr::AssignUserVar(pair) => {
                self.facts.variable = true;
                self.put("(@");
                self.ident(&pair.0);
                self.put(" := ");
                self.expr(&pair.1);
                self.put(")");
            }
            Expr::Unary { op, expr } => self.unary(*op, expr),
            // `||` means OR to whoever reads it under another sql_mode.
            Expr::Binary { op: BinaryOp::Concat, left, right } => {
                self.put("concat(");
                self.expr(left);
                self.put(",");
                self.expr(right);
                self.put(")");
            }
            Expr::Binary { op: op @ (BinaryOp::JsonExtract | BinaryOp::JsonUnquote), left, right }
                if self.stored.is_some() || self.view.is_some() =>
            {
                arrow(self, *op == BinaryOp::JsonUnquote, left, right);
            }
            Expr::Binary { op, left, right } => self.infix(left, op.word(), right),
            Expr::Row(members) => {
                self.put("row(");
                self.list(members);
                self.put(")");
            }
            Expr::Function(call) => self.call(call),
            Expr::Aggregate(call) => calls::aggregate(self, call),
            Expr::Window(call) => calls::window(self, call),
            Expr::Subquery(query) => self.subquery(query),
            Expr::Exists(query) => {
                self.put("exists");
                self.exists(query);
            }
            Expr::Default => self.put("default"),
            Expr::DefaultOf(column) => self.wrapped("default", column),
            Expr::Values(column) => self.wrapped("values", column),
            Expr::Unit(unit) => self.put(unit.word()),
            _ => self.special(expr),
        }
    }

    /// Operators that are words, and calls with a grammar of their own.
    fn special(&mut self, expr: &Expr) {
        match expr {
            Expr::Case(case) => {
                self.put("(case ");
                if let Some(operand) = &case.operand {
                    self.expr(operand);
                    self.put(" ");
                }
                for (when, then) in &case.whens {
                    self.put("when ");
                    self.expr(when);
                    self.put(" then ");
                    self.expr(then);
                    self.put(" ");
                }
                if let Some(otherwise) = &case.otherwise {
                    self.put("else ");
                    self.expr(otherwise);
                    self.put(" ");
                }
                self.put("end)");
            }
            Expr::Cast { expr, ty } => cast(self, expr, ty),
            Expr::ConvertUsing { expr, charset } => {
                self.put("convert(");
                self.expr(expr);
                self.put(" using ");
                self.put(charset);
                self.put(")");
            }
            Expr::Collate { expr, collation } => {
                self.put("(");
                self.expr(expr);
                self.put(" collate ");
                self.put(collation);
                self.put(")");
            }
            Expr::Extract { unit, expr } => {
                self.put("extract(");
                shown::put_unit(self, *unit);
                self.put(" from ");
                self.expr(expr);
                self.put(")");
            }
            Expr::DateArith { expr, value, unit, subtract } => {
                self.put("(");
                self.expr(expr);
                self.put(if *subtract { " - interval " } else { " + interval " });
                self.expr(value);
                self.put(" ");
                shown::put_unit(self, *unit);
                self.put(")");
            }
            Expr::JsonValue(call) => json::json_value(self, call),
            Expr::Trim(trim) => {
                self.put("trim(");
                self.put(match trim.side {
                    TrimSide::Both if trim.what.is_none() => "",
                    TrimSide::Both => "both ",
                    TrimSide::Leading => "leading ",
                    TrimSide::Trailing => "trailing ",
                });
                if let Some(what) = &trim.what {
                    self.expr(what);
                    self.put(" ");
                }
                if trim.what.is_some() || trim.side != TrimSide::Both {
                    self.put("from ");
                }
                self.expr(&trim.from);
                self.put(")");
            }
            Expr::Match(search) => {
                self.put("match (");
                self.list(&search.columns);
                self.put(") against (");
                self.expr(&search.against);
                self.put(if search.boolean { " in boolean mode" } else { "" });
                self.put(if search.query_expansion { " with query expansion" } else { "" });
                self.put(")");
            }
            _ => self.predicate(expr),
        }
    }

    fn predicate(&mut self, expr: &Expr) {
        let not = |negated: bool| if negated { " not" } else { "" };
        match expr {
            Expr::Between { expr, low, high, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(not(*negated));
                self.put(" between ");
                self.expr(low);
                self.put(" and ");
                self.expr(high);
            }
            Expr::In { expr, list, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(not(*negated));
                self.put(" in (");
                self.list(list);
                self.put(")");
            }
            Expr::InSubquery { expr, query, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(not(*negated));
                self.put(" in ");
                self.subquery(query);
            }
            Expr::Quantified { op, quantifier, left, query } => {
                self.put("(");
                self.expr(left);
                self.put(&format!(" {} {quantifier:?} ", op.word()).to_lowercase());
                self.subquery(query);
            }
            Expr::Like(like) => {
                self.put("(");
                self.expr(&like.expr);
                self.put(not(like.negated));
                self.put(" like ");
                self.expr(&like.pattern);
                if let Some(escape) = &like.escape {
                    self.put(" escape ");
                    self.expr(escape);
                }
            }
            Expr::Regexp { expr, pattern, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(not(*negated));
                self.put(" regexp ");
                self.expr(pattern);
            }
            Expr::IsNull { expr, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(if *negated { " is not null" } else { " is null" });
            }
            Expr::IsTruth { expr, truth, negated } => {
                self.put("(");
                self.expr(expr);
                self.put(" is");
                self.put(not(*negated));
                self.put(match truth {
                    Truth::True => " true",
                    Truth::False => " false",
                    Truth::Unknown => " unknown",
                });
            }
            Expr::MemberOf { expr, array } => {
                self.put("(");
                self.expr(expr);
                self.put(" member of (");
                self.expr(array);
                self.put(")");
            }
            _ => self.put("("),
        }
        self.put(")");
    }

    fn infix(&mut self, left: &Expr, op: &str, right: &Expr) {
        self.put("(");
        self.expr(left);
        self.put(" ");
        self.put(op);
        self.put(" ");
        self.expr(right);
        self.put(")");
    }

    fn unary(&mut self, op: UnaryOp, expr: &Expr) {
        let word = match op {
            // `- -1` must not become a comment.
            UnaryOp::Minus if matches!(expr, Expr::Literal(_)) => {
                self.put("-");
                return self.expr(expr);
            }
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "not ",
            UnaryOp::Binary => "binary ",
        };
        self.put("(");
        self.put(word);
        if op == UnaryOp::Minus {
            self.put("(");
            self.expr(expr);
            self.put("))");
        } else {
            self.expr(expr);
            self.put(")");
        }
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.put("NULL"),
            Literal::True => self.put("true"),
            Literal::False => self.put("false"),
            Literal::Int(n) => self.put(&n.to_string()),
            Literal::Decimal(text) => self.out.extend_from_slice(text),
            Literal::Float(f) => self.put(&format!("{f:e}")),
            Literal::Str(text) => match self.stored {
                None => write_escaped(text, &mut self.out),
                Some(stored) => {
                    self.put(if std::str::from_utf8(text).is_ok() { "_utf8mb4" } else { "_binary" });
                    self.utf8(text, stored.bytes);
                }
            },
            Literal::National(text) => {
                self.put("N");
                write_escaped(text, &mut self.out);
            }
            Literal::Hex(bytes) => {
                self.put("x'");
                bytes.iter().for_each(|b| self.put(&format!("{b:02x}")));
                self.put("'");
            }
            Literal::Bit(bytes) => {
                self.put("b'");
                bytes.iter().for_each(|b| self.put(&format!("{b:08b}")));
                self.put("'");
            }
            Literal::Date(text) => temporal(self, "DATE", text),
            Literal::Time(text) => temporal(self, "TIME", text),
            Literal::Timestamp(text) => temporal(self, "TIMESTAMP", text),
        }
    }

    /// A string literal in the character set of definitions.
    fn utf8(&mut self, text: &Bytes, bytes: bool) {
        if std::str::from_utf8(text).is_err() || bytes && !text.is_ascii() {
            self.put(" ");
            self.literal(&Literal::Hex(text.clone()));
        } else {
            write_escaped(text, &mut self.out);
        }
    }

    fn column(&mut self, column: &ColumnRef) {
        self.columns.push(column.name.clone());
        if self.stored.is_some_and(|stored| column.table().is_some_and(|table| table.is(stored.table))) {
            return self.ident(&column.name);
        }
        let meant = self.view.and_then(|view| view.meaning?.column(column));
        let column = meant.unwrap_or(column);
        if let Some(schema) = column.schema().filter(|schema| !self.is_home(schema)) {
            self.ident(schema);
            self.put(".");
        }
        if let Some(table) = column.table() {
            self.ident(table);
            self.put(".");
        }
        self.ident(&column.name);
    }

    fn wrapped(&mut self, word: &str, column: &ColumnRef) {
        self.facts.values |= word == "values";
        self.put(word);
        self.put("(");
        self.column(column);
        self.put(")");
    }

    fn call(&mut self, call: &FunctionCall) {
        let stored = call.written.quoted
            || self.view.is_some_and(|view| view.meaning.is_some_and(|meaning| meaning.is_stored(call)));
        if let Some(schema) = &call.schema {
            self.ident(schema);
            self.put(".");
            self.ident(call.written_name());
        } else if stored {
            self.ident(call.written_name());
        } else if call.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.put(&call.name);
        } else {
            self.ident(&call.name);
        }
        if call.schema.is_none() && !stored && calls::own_grammar(self, call) {
            return;
        }
        self.put("(");
        self.list(&call.args);
        self.put(")");
    }
}

fn cast(printer: &mut Printer<'_>, expr: &Expr, ty: &CastType) {
    printer.put("cast(");
    printer.expr(expr);
    if let CastType::DateTimeAt { zone, .. } = ty {
        // MySQL knows one zone here, by two names, and prints this one.
        let zone = if zone.eq_ignore_ascii_case("UTC") { "+00:00" } else { zone };
        printer.put(" AT TIME ZONE ");
        write_escaped(zone.as_bytes(), &mut printer.out);
    }
    printer.put(" as ");
    calls::cast_type(printer, ty);
    printer.put(")");
}

/// `->` and `->>` as functions, which is how MySQL keeps them: the path of an arrow can have no introducer.
fn arrow(printer: &mut Printer<'_>, unquoted: bool, document: &Expr, path: &Expr) {
    printer.put(if unquoted { "json_unquote(json_extract(" } else { "json_extract(" });
    printer.expr(document);
    printer.put(",");
    printer.expr(path);
    printer.put(if unquoted { "))" } else { ")" });
}

fn system_variable(printer: &mut Printer<'_>, scope: Option<VarScope>, name: &Ident) {
    printer.put(match scope {
        None => "@@",
        Some(VarScope::Global) => "@@global.",
        Some(VarScope::Session) => "@@session.",
        Some(VarScope::Persist) => "@@persist.",
        Some(VarScope::PersistOnly) => "@@persist_only.",
    });
    match name.split_once('.') {
        Some((component, part)) => {
            printer.ident(component);
            printer.put(".");
            printer.ident(part);
        }
        None => printer.ident(name),
    }
}

fn temporal(printer: &mut Printer<'_>, word: &str, text: &[u8]) {
    printer.put(word);
    write_escaped(text, &mut printer.out);
}
