//! Definitions of a source: databases, tables, views, sequences, routines, triggers and events, as the statements that
//! make them.

use crate::error::ImportError;
use crate::quote;
use crate::selection::{Selection, TableName};
use crate::session::{Family, Server, Session};
use crate::table::take;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Table,
    Sequence,
    Function,
    Procedure,
    View,
    Event,
    Trigger,
}

impl Kind {
    /// As it stands in statements.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Table => "TABLE",
            Kind::Sequence => "SEQUENCE",
            Kind::Function => "FUNCTION",
            Kind::Procedure => "PROCEDURE",
            Kind::View => "VIEW",
            Kind::Event => "EVENT",
            Kind::Trigger => "TRIGGER",
        }
    }
}

/// An object, and the statement that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub kind: Kind,
    pub name: TableName,
    pub create: String,
    /// The settings that it was made under; empty for tables.
    pub sql_mode: String,
    pub collation: String,
    pub time_zone: String,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.word().to_lowercase(), self.name)
    }
}

/// All definitions that are chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions {
    /// Databases by name, with the statements that make them.
    pub databases: Vec<(String, String)>,
    pub objects: Vec<Object>,
}

impl Definitions {
    /// The objects of a kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.kind == kind)
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> Vec<TableName> {
        self.of(Kind::Table).map(|object| object.name.clone()).collect()
    }

    /// Returns the names of what differs from another reading. Counters of AUTO_INCREMENT may.
    pub(crate) fn changed_since(&self, earlier: &Definitions) -> Vec<String> {
        let key = |o: &Object| (o.kind, o.name.clone(), without_counter(&o.create));
        let before: std::collections::BTreeSet<_> = earlier.objects.iter().map(key).collect();
        let now: std::collections::BTreeSet<_> = self.objects.iter().map(key).collect();
        let mut changed: Vec<String> = before
            .symmetric_difference(&now)
            .map(|(kind, name, _)| format!("{} {name}", kind.word()))
            .collect();
        if self.databases != earlier.databases {
            changed.push("the list of databases".into());
        }
        changed.dedup();
        changed
    }
}

/// The definition without the next value, which every insert changes.
pub(crate) fn without_counter(create: &str) -> String {
    match create.rsplit_once(" AUTO_INCREMENT=") {
        Some((head, tail)) => format!("{head}{}", tail.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => create.to_owned(),
    }
}

/// The next value of AUTO_INCREMENT in a definition.
pub(crate) fn counter(create: &str) -> Option<u64> {
    let (_, tail) = create.rsplit_once(" AUTO_INCREMENT=")?;
    let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    tail[..end].parse().ok()
}

/// Reads everything that is chosen.
pub(crate) fn read(
    server: &Server,
    session: &mut Session,
    selection: &Selection,
) -> Result<Definitions, ImportError> {
    let mut all = Definitions::default();
    for [database] in session.texts("SHOW DATABASES")?.into_iter().map(take) {
        if !selection.has_database(&database) {
            continue;
        }
        let create =
            session.first(&format!("SHOW CREATE DATABASE {}", quote::name(&database)))?.unwrap_or_default();
        let [_, create] = take(create);
        all.objects.extend(tables(session, &database, selection)?);
        if selection.whole_databases() {
            all.objects.extend(routines(session, &database, server.family)?);
            all.objects.extend(events(session, &database)?);
        }
        all.objects.extend(triggers(session, &database, selection)?);
        all.databases.push((database, create));
    }
    Ok(all)
}

fn tables(session: &mut Session, database: &str, selection: &Selection) -> Result<Vec<Object>, ImportError> {
    let mut found = Vec::new();
    for [table, kind] in
        session.texts(&format!("SHOW FULL TABLES FROM {}", quote::name(database)))?.into_iter().map(take)
    {
        let name = TableName { database: database.to_owned(), table };
        if !selection.has(&name) {
            continue;
        }
        let kind = match &*kind {
            "VIEW" => Kind::View,
            "SEQUENCE" => Kind::Sequence,
            _ => Kind::Table,
        };
        let row =
            session.first(&format!("SHOW CREATE {} {}", kind.word(), name.quoted()))?.unwrap_or_default();
        let [_, create, _, collation] = take(row);
        let collation = if kind == Kind::View { collation } else { String::new() };
        found.push(Object {
            kind,
            name,
            create,
            sql_mode: String::new(),
            collation,
            time_zone: String::new(),
        });
    }
    Ok(found)
}

fn routines(session: &mut Session, database: &str, family: Family) -> Result<Vec<Object>, ImportError> {
    let mut found = Vec::new();
    let list = session.texts(&format!(
        "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {} \
         ORDER BY ROUTINE_TYPE, ROUTINE_NAME",
        quote::text(database)
    ))?;
    for [of, name] in list.into_iter().map(take) {
        let kind = if of == "FUNCTION" { Kind::Function } else { Kind::Procedure };
        let name = TableName { database: database.to_owned(), table: name };
        if family == Family::Mariadb && of.starts_with("PACKAGE") {
            return Err(ImportError::Refused(format!(
                "{name} is a package of sql_mode=ORACLE, which is not taken: --exclude {database}, or drop it"
            )));
        }
        let row = session.first(&format!("SHOW CREATE {of} {}", name.quoted()))?.unwrap_or_default();
        let [_, sql_mode, create, _, collation] = take(row);
        if create.is_empty() {
            return Err(ImportError::Refused(format!(
                "the account may not see the text of {} {name}: GRANT SHOW_ROUTINE ON *.* to it (MySQL 8.0.20 and later), or \
                 SELECT ON mysql.*",
                of.to_lowercase()
            )));
        }
        found.push(Object { kind, name, create, sql_mode, collation, time_zone: String::new() });
    }
    Ok(found)
}

fn events(session: &mut Session, database: &str) -> Result<Vec<Object>, ImportError> {
    let mut found = Vec::new();
    let list = session.texts(&format!(
        "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {} ORDER BY EVENT_NAME",
        quote::text(database)
    ))?;
    for [event] in list.into_iter().map(take) {
        let name = TableName { database: database.to_owned(), table: event };
        let row = session.first(&format!("SHOW CREATE EVENT {}", name.quoted()))?.unwrap_or_default();
        let [_, sql_mode, time_zone, create, _, collation] = take(row);
        found.push(Object { kind: Kind::Event, name, create, sql_mode, collation, time_zone });
    }
    Ok(found)
}

fn triggers(
    session: &mut Session,
    database: &str,
    selection: &Selection,
) -> Result<Vec<Object>, ImportError> {
    let mut found = Vec::new();
    // Those of one table and moment in the order in which they fire.
    let list = session.texts(&format!(
        "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {} \
         ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER",
        quote::text(database)
    ))?;
    for [trigger, table] in list.into_iter().map(take) {
        if !selection.has(&TableName { database: database.to_owned(), table }) {
            continue;
        }
        let name = TableName { database: database.to_owned(), table: trigger };
        let row = session.first(&format!("SHOW CREATE TRIGGER {}", name.quoted()))?.unwrap_or_default();
        let [_, sql_mode, create, _, collation] = take(row);
        found.push(Object {
            kind: Kind::Trigger,
            name,
            create,
            sql_mode,
            collation,
            time_zone: String::new(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_no_change_of_a_definition() {
        assert_eq!(
            without_counter("CREATE .. ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT"),
            "CREATE .. ENGINE=InnoDB DEFAULT"
        );
        assert_eq!(counter("CREATE .. ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT"), Some(12));
        assert_eq!(counter("CREATE .. ENGINE=InnoDB"), None);
        let object = |create: &str| Object {
            kind: Kind::Table,
            name: TableName { database: "d".into(), table: "t".into() },
            create: create.into(),
            sql_mode: String::new(),
            collation: String::new(),
            time_zone: String::new(),
        };
        let of = |create: &str| Definitions { databases: Vec::new(), objects: vec![object(create)] };
        assert!(of("a AUTO_INCREMENT=2").changed_since(&of("a AUTO_INCREMENT=1")).is_empty());
        assert_eq!(of("a").changed_since(&of("b")), ["TABLE d.t"]);
    }
}
