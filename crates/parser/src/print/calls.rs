//! Calls back to SQL: aggregates, windows, casts, and functions with a grammar of their own.

use super::Printer;
use crate::ast::{Aggregate, CastType, Expr, FunctionCall, Literal, WindowCall};
use omnibus_value::literal::write_escaped;

/// The arguments of calls that have a grammar of their own; false for others.
pub(super) fn own_grammar(printer: &mut Printer<'_>, call: &FunctionCall) -> bool {
    match (&*call.name, &call.args[..]) {
        // Its second argument is a length, which stands behind the first in words.
        ("weight_string", [text, length]) => {
            printer.put("(");
            printer.expr(text);
            printer.put(" as char(");
            printer.expr(length);
            printer.put("))");
        }
        // Its first argument is a word.
        ("get_format", [Expr::Literal(Literal::Str(kind)), format]) => {
            printer.put("(");
            printer.put(&String::from_utf8_lossy(kind));
            printer.put(", ");
            printer.expr(format);
            printer.put(")");
        }
        // A bound of a window's frame.
        ("interval", [value, Expr::Unit(unit)]) => {
            printer.put(" ");
            printer.expr(value);
            printer.put(" ");
            printer.put(unit.word());
        }
        // MariaDB's function has the path as an expression; a literal there would be read back as MySQL's form.
        ("json_value", [document, path @ Expr::Literal(Literal::Str(_))]) => {
            printer.put("(");
            printer.expr(document);
            printer.put(",(");
            printer.expr(path);
            printer.put("))");
        }
        _ => return false,
    }
    true
}

/// A function that exists only over a window.
pub(super) fn window(printer: &mut Printer<'_>, call: &WindowCall) {
    let WindowCall { name, args, ignore_nulls, over } = call;
    printer.put(name);
    printer.put("(");
    printer.list(args);
    printer.put(if *ignore_nulls { ") ignore nulls" } else { ")" });
    printer.over(over);
}

/// A type in the form in which MySQL shows that of an array and of JSON_VALUE.
pub(super) fn told_type(printer: &mut Printer<'_>, ty: &CastType) {
    match ty {
        CastType::Decimal { precision, scale } if super::shown::is_shown(printer) => {
            printer.put(&format!("decimal({precision}, {scale})"));
        }
        CastType::Char { length, charset: Some(charset), binary: false }
            if super::shown::is_shown(printer) =>
        {
            printer.cast_type(&CastType::Char { length: *length, charset: None, binary: false });
            printer.put(&format!(" character set {charset}"));
        }
        ty => printer.cast_type(ty),
    }
}

impl Printer<'_> {
    pub(super) fn aggregate(&mut self, call: &Aggregate) {
        let Aggregate { kind, distinct, star, args, order_by, separator, limit, over } = call;
        self.facts.aggregate = true;
        self.put(kind.name());
        self.put("(");
        self.put(if *distinct { "distinct " } else { "" });
        self.put(if *star { "*" } else { "" });
        self.list(args);
        self.order_by(" order by ", order_by);
        self.put(if super::shown::is_shown(self) && order_by.last().is_some_and(|item| !item.descending) {
            " ASC"
        } else {
            ""
        });
        if let Some(separator) = separator {
            self.put(" separator ");
            write_escaped(separator, &mut self.out);
        }
        self.limit(limit.as_ref());
        self.put(")");
        if let Some(over) = over {
            self.over(over);
        }
    }

    pub(super) fn cast_type(&mut self, ty: &CastType) {
        let sized = |word: &str, length: Option<u32>| match length {
            Some(n) => format!("{word}({n})"),
            None => word.to_owned(),
        };
        let text = match ty {
            CastType::Signed => "signed".into(),
            CastType::Unsigned => "unsigned".into(),
            CastType::Binary(n) => sized("binary", *n),
            CastType::Char { length, charset, binary } => {
                let mut text = sized("char", *length);
                if let Some(charset) = charset {
                    text += &format!(" charset {charset}");
                }
                if *binary {
                    text += " binary";
                }
                text
            }
            CastType::NChar(n) => sized("nchar", *n),
            CastType::Date => "date".into(),
            CastType::Time(n) => sized("time", (*n > 0).then_some(u32::from(*n))),
            CastType::DateTime(n) | CastType::DateTimeAt { decimals: n, .. } => {
                sized("datetime", (*n > 0).then_some(u32::from(*n)))
            }
            CastType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            CastType::Float(Some(25..)) if super::shown::is_shown(self) => "double".into(),
            CastType::Float(_) if super::shown::is_shown(self) => "float".into(),
            CastType::Float(n) => sized("float", n.map(u32::from)),
            CastType::Double => "double".into(),
            CastType::Year => "year".into(),
            CastType::Json => "json".into(),
            CastType::Array(member) => {
                self.facts.array = true;
                told_type(self, member);
                " array".into()
            }
            CastType::Uuid => "uuid".into(),
            CastType::Inet4 => "inet4".into(),
            CastType::Inet6 => "inet6".into(),
        };
        self.put(&text);
    }
}
