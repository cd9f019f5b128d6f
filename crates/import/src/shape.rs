//! Definitions in a form that servers of different kinds and versions have in common, to compare them.

use crate::error::ImportError;
use crate::quote;
use crate::selection::{Selection, TableName};
use crate::session::Session;
use crate::table::take;
use std::collections::{BTreeMap, BTreeSet};

/// The lines that describe each object, by its kind and name.
pub(crate) type Shapes = BTreeMap<String, Vec<String>>;

/// Describes everything that is chosen in a database.
pub(crate) fn describe(
    session: &mut Session,
    database: &str,
    selection: &Selection,
) -> Result<Shapes, ImportError> {
    let mut shapes = Shapes::new();
    let of = quote::text(database);
    let views = views(session, database, selection, &mut shapes)?;
    let mut put = |table: String, line: String| {
        let is_view = views.contains(&table);
        let name = TableName { database: database.to_owned(), table };
        if selection.has(&name) && !is_view {
            shapes.entry(format!("table {name}")).or_default().push(line);
        }
    };
    for [table, column, kind, null, collation, extra] in texts(
        session,
        &format!(
            "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLLATION_NAME, EXTRA FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = {of} ORDER BY TABLE_NAME, ORDINAL_POSITION"
        ),
    )? {
        let kind = plain_type(&kind);
        put(
            table,
            format!("column {column} {kind} {null} {} {}", plain_collation(&collation), plain_extra(&extra)),
        );
    }
    for [table, index, columns, unique] in texts(
        session,
        &format!(
            "SELECT TABLE_NAME, INDEX_NAME, GROUP_CONCAT(COALESCE(COLUMN_NAME, '(expression)'), COALESCE(SUB_PART, '') \
         ORDER BY SEQ_IN_INDEX), MIN(NON_UNIQUE) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {of} \
         AND INDEX_TYPE NOT IN ('FULLTEXT', 'SPATIAL') GROUP BY TABLE_NAME, INDEX_NAME ORDER BY TABLE_NAME, INDEX_NAME"
        ),
    )? {
        put(table, format!("index {index} ({columns}) {}", if unique == "0" { "unique" } else { "" }));
    }
    for [table, constraint, column, schema, to, to_column] in texts(
        session,
        &format!(
            "SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, \
         REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {of} \
         AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
        ),
    )? {
        put(table, format!("foreign key {constraint}: {column} to {schema}.{to}.{to_column}"));
    }
    for [name, table] in texts(
        session,
        &format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {of} ORDER BY 1"
        ),
    )? {
        put(table, format!("trigger {name}"));
    }
    if selection.whole_databases() {
        programs(session, database, &mut shapes)?;
    }
    Ok(shapes)
}

/// Adds the views, and returns their names. Nothing else is compared of them: their columns are shown to those only who may use
/// everything in them.
fn views(
    session: &mut Session,
    database: &str,
    selection: &Selection,
    shapes: &mut Shapes,
) -> Result<BTreeSet<String>, ImportError> {
    let views = session.texts(&format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'VIEW'",
        quote::text(database)
    ))?;
    let views: BTreeSet<String> = views.into_iter().flatten().collect();
    for table in views.iter().cloned() {
        let name = TableName { database: database.to_owned(), table };
        if selection.has(&name) {
            shapes.insert(format!("view {name}"), Vec::new());
        }
    }
    Ok(views)
}

/// Adds the names of routines and events.
fn programs(session: &mut Session, database: &str, shapes: &mut Shapes) -> Result<(), ImportError> {
    let of = quote::text(database);
    let routines = format!(
        "SELECT CONCAT(LOWER(ROUTINE_TYPE), ' ', ROUTINE_NAME) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {of}"
    );
    let events = format!(
        "SELECT CONCAT('event ', EVENT_NAME) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {of}"
    );
    for sql in [routines, events] {
        for [name] in texts(session, &sql)? {
            shapes.insert(format!("{name} of {database}"), Vec::new());
        }
    }
    Ok(())
}

fn texts<const N: usize>(session: &mut Session, sql: &str) -> Result<Vec<[String; N]>, ImportError> {
    Ok(session.texts(sql)?.into_iter().map(take).collect())
}

/// A type without the width in which integers are shown, which newer servers do not tell.
fn plain_type(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let integer = ["tinyint", "smallint", "mediumint", "int", "bigint", "year"].iter().any(|name| {
        kind.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', ' ']))
    });
    if !integer || kind.contains("zerofill") {
        return kind;
    }
    match (kind.find('('), kind.find(')')) {
        (Some(from), Some(to)) => format!("{}{}", &kind[..from], &kind[to + 1..]),
        _ => kind,
    }
}

/// A collation under one of its names: `utf8` is `utf8mb3`.
fn plain_collation(collation: &str) -> String {
    match collation.strip_prefix("utf8_") {
        Some(rest) => format!("utf8mb3_{rest}"),
        None => collation.to_owned(),
    }
}

/// Keeps the words about a column that all servers have.
fn plain_extra(extra: &str) -> String {
    let extra = extra.to_lowercase();
    ["auto_increment", "virtual generated", "stored generated", "on update current_timestamp", "invisible"]
        .into_iter()
        .filter(|word| extra.contains(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns what differs between two descriptions, each with its object.
pub(crate) fn differences(source: &Shapes, target: &Shapes) -> Vec<String> {
    let mut found = Vec::new();
    for (name, lines) in source {
        let Some(there) = target.get(name) else {
            found.push(format!("{name}: not in the target"));
            continue;
        };
        found.extend(
            lines
                .iter()
                .filter(|l| !there.contains(l))
                .map(|l| format!("{name}: only in the source: {}", l.trim_end())),
        );
        found.extend(
            there
                .iter()
                .filter(|l| !lines.contains(l))
                .map(|l| format!("{name}: only in the target: {}", l.trim_end())),
        );
    }
    found.extend(
        target
            .keys()
            .filter(|name| !source.contains_key(*name))
            .map(|name| format!("{name}: not in the source")),
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_the_same_in_different_words() {
        assert_eq!(plain_type("int(11) unsigned"), "int unsigned");
        assert_eq!(plain_type("INT(5) unsigned zerofill"), "int(5) unsigned zerofill");
        assert_eq!(plain_type("decimal(10,2)"), "decimal(10,2)");
        assert_eq!(plain_type("year(4)"), "year");
        assert_eq!(plain_collation("utf8_bin"), "utf8mb3_bin");
        assert_eq!(
            plain_extra("DEFAULT_GENERATED on update CURRENT_TIMESTAMP"),
            "on update current_timestamp"
        );
    }

    #[test]
    fn what_differs_is_named() {
        let of = |lines: &[(&str, &[&str])]| -> Shapes {
            lines.iter().map(|(k, v)| ((*k).into(), v.iter().map(|l| (*l).into()).collect())).collect()
        };
        let found =
            differences(&of(&[("t", &["a", "b"]), ("u", &[])]), &of(&[("t", &["a", "c"]), ("v", &[])]));
        assert_eq!(
            found,
            [
                "t: only in the source: b",
                "t: only in the target: c",
                "u: not in the target",
                "v: not in the source"
            ]
        );
    }
}
