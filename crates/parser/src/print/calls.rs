//! Calls back to SQL: aggregates, windows, casts, and functions with a grammar of their own.

use super::{Printer, windows};
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
    windows::over(printer, over);
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
            cast_type(printer, &CastType::Char { length: *length, charset: None, binary: false });
            printer.put(&format!(" character set {charset}"));
        }
        ty => cast_type(printer, ty),
    }
}

pub(super) fn aggregate(printer: &mut Printer<'_>, call: &Aggregate) {
    let Aggregate { kind, distinct, star, args, order_by, separator, limit, over } = call;
    printer.facts.aggregate = true;
    printer.put(kind.name());
    printer.put("(");
    printer.put(if *distinct { "distinct " } else { "" });
    printer.put(if *star { "*" } else { "" });
    printer.list(args);
    printer.order_by(" order by ", order_by);
    printer.put(if super::shown::is_shown(printer) && order_by.last().is_some_and(|item| !item.descending) {
        " ASC"
    } else {
        ""
    });
    if let Some(separator) = separator {
        printer.put(" separator ");
        write_escaped(separator, &mut printer.out);
    }
    printer.limit(limit.as_ref());
    printer.put(")");
    if let Some(over) = over {
        windows::over(printer, over);
    }
}

pub(super) fn cast_type(printer: &mut Printer<'_>, ty: &CastType) {
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
        CastType::Float(Some(25..)) if super::shown::is_shown(printer) => "double".into(),
        CastType::Float(_) if super::shown::is_shown(printer) => "float".into(),
        CastType::Float(n) => sized("float", n.map(u32::from)),
        CastType::Double => "double".into(),
        CastType::Year => "year".into(),
        CastType::Json => "json".into(),
        CastType::Array(member) => {
            printer.facts.array = true;
            told_type(printer, member);
            " array".into()
        }
        CastType::Uuid => "uuid".into(),
        CastType::Inet4 => "inet4".into(),
        CastType::Inet6 => "inet6".into(),
    };
    printer.put(&text);
}
