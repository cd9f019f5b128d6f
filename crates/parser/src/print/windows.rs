//! Windows back to SQL: OVER and WINDOW.

use super::{Printer, shown};
use crate::ast::{FrameBound, Over, WindowSpec};

pub(super) fn over(printer: &mut Printer<'_>, over: &Over) {
    printer.facts.aggregate = true;
    printer.put(if shown::is_shown(printer) { " OVER " } else { " over " });
    match over {
        _ if printer.view.is_none() => printer.put("(...)"),
        Over::Name(name) => printer.ident(name),
        Over::Spec(spec) => window(printer, spec),
    }
}

pub(super) fn window(printer: &mut Printer<'_>, spec: &WindowSpec) {
    if shown::is_shown(printer) {
        return shown::shown_window(printer, spec);
    }
    printer.put("(");
    if let Some(base) = &spec.base {
        printer.ident(base);
    }
    if !spec.partition_by.is_empty() {
        printer.put(" partition by ");
        printer.list(&spec.partition_by);
    }
    printer.order_by(" order by ", &spec.order_by);
    if let Some(frame) = &spec.frame {
        printer.put(if frame.rows { " rows " } else { " range " });
        if let Some(end) = &frame.end {
            printer.put("between ");
            bound(printer, &frame.start);
            printer.put(" and ");
            bound(printer, end);
        } else {
            bound(printer, &frame.start);
        }
    }
    printer.put(")");
}

fn bound(printer: &mut Printer<'_>, bound: &FrameBound) {
    match bound {
        FrameBound::CurrentRow => printer.put("current row"),
        FrameBound::UnboundedPreceding => printer.put("unbounded preceding"),
        FrameBound::UnboundedFollowing => printer.put("unbounded following"),
        FrameBound::Preceding(expr) => {
            printer.expr(expr);
            printer.put(" preceding");
        }
        FrameBound::Following(expr) => {
            printer.expr(expr);
            printer.put(" following");
        }
    }
}
