//! The schema `sys`: views over `performance_schema` and `information_schema` that say what people ask most, with MySQL's names and
//! columns. Those whose names begin with `x$` have numbers where the others have amounts with units.
//!
//! They are the paragraphs of `sys.sql`, and belong to nobody: who reads them needs the rights of what they read. They are in no list
//! of views, so that no copy of a server takes them along.

use crate::catalog::{View, ViewDef, charset, parse_view};
use crate::error::SqlResult;
use std::sync::{Arc, LazyLock};

/// Its name.
const SYS: &str = "sys";

/// Functions of the plain form, which the other has not.
const UNITS: [&str; 2] = ["FORMAT_PICO_TIME(", "FORMAT_BYTES("];

static VIEWS: LazyLock<Vec<Arc<View>>> = LazyLock::new(|| {
    let named = |text: &'static str| text.strip_prefix("VIEW ")?.split_once(" AS\n");
    let forms = |(name, query): (&str, &str)| {
        let raw = UNITS.iter().fold(query.to_owned(), |raw, unit| raw.replace(unit, "("));
        let raw = (raw != query).then(|| (format!("x${name}"), raw));
        std::iter::once((name.to_owned(), query.to_owned())).chain(raw)
    };
    let all = include_str!("sys.sql").split("\n\n").filter_map(named).flat_map(forms);
    // Numbers far from those of stored ones, which begin at 1.
    let views = all.zip(1..).filter_map(|((name, query), at)| view(&name, &query, u64::MAX - at).ok());
    views.map(Arc::new).collect()
});

fn view(name: &str, query: &str, id: u64) -> SqlResult<View> {
    let text = format!("CREATE DEFINER=`mysql.sys`@localhost SQL SECURITY INVOKER VIEW `{name}` AS {query}");
    let (client, connection) = (charset::server_default(), charset::server_default());
    Ok(View::new(ViewDef { id, client, connection, ..parse_view(SYS, &text)? }))
}

/// One of them, by names in any case.
pub(super) fn find(schema: &str, name: &str) -> Option<Arc<View>> {
    let ours = schema.eq_ignore_ascii_case(SYS);
    ours.then(|| VIEWS.iter().find(|view| view.def.name.eq_ignore_ascii_case(name)).cloned()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_a_view() {
        let paragraphs = include_str!("sys.sql").split("\n\n").filter(|text| text.contains("VIEW ")).count();
        let with_units = include_str!("sys.sql").split("\n\n");
        let with_units = with_units.filter(|text| UNITS.iter().any(|unit| text.contains(unit))).count();
        assert_eq!(VIEWS.len(), paragraphs + with_units);
        assert!(find("SYS", "X$Statement_Analysis").is_some());
    }
}
