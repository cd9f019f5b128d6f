//! Makes the source's tables in a schema of the target that is removed again: to see what the target refuses, and later what its own tables
//! have become otherwise, where both are told in the target's words.

use crate::check::Difference;
use crate::definitions::{Definitions, Kind, Object, without_counter};
use crate::error::ImportError;
use crate::quote;
use crate::schema::Refusals;
use crate::session::Session;

/// The schema.
const TRIAL: &str = "omnibus_import_trial";

/// Tries every table and sequence.
pub(crate) fn try_tables(session: &mut Session, all: &Definitions) -> Result<Refusals, ImportError> {
    in_trial(session, all, |_, _| Ok(()))
}

/// Compares the whole definition of each table with what its source's makes: defaults, checks, generated columns, comments, options. A
/// table that is not there, or that is refused, is passed over.
pub(crate) fn made_otherwise(
    session: &mut Session,
    all: &Definitions,
) -> Result<Vec<Difference>, ImportError> {
    let mut found = Vec::new();
    in_trial(session, all, |session, table| {
        let made = shown(session, &quote::table(TRIAL, &table.name.table))?;
        let there = shown(session, &table.name.quoted())?;
        if let (Some(made), Some(there)) = (made, there) {
            let mut tell = |side: &str, lines: &[String], others: &[String]| {
                found.extend(lines.iter().filter(|line| !others.contains(line)).map(|line| Difference {
                    table: table.to_string(),
                    text: format!("only in the {side}: {line}"),
                }));
            };
            tell("source", &made, &there);
            tell("target", &there, &made);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Makes the tables and sequences of one database after another, and has `each` look at every table while the others of its database are
/// there. Returns what was refused.
fn in_trial(
    session: &mut Session,
    all: &Definitions,
    mut each: impl FnMut(&mut Session, &Object) -> Result<(), ImportError>,
) -> Result<Refusals, ImportError> {
    let mut refusals = Refusals::default();
    session.run(&format!("DROP DATABASE IF EXISTS {TRIAL}"))?;
    session.run(&format!("CREATE DATABASE {TRIAL}"))?;
    for (database, create) in &all.databases {
        let tail = create.split_once(&*quote::name(database)).map_or("", |(_, tail)| tail);
        session.run(&format!("DROP DATABASE {TRIAL}"))?;
        if let Err(error) = session.run(&format!("CREATE DATABASE {TRIAL}{tail}")) {
            refusals.add(&format!("database {database}"), error)?;
            session.run(&format!("CREATE DATABASE {TRIAL}"))?;
        }
        session.run(&format!("USE {TRIAL}"))?;
        let of_database = || all.objects.iter().filter(|object| object.name.database == *database);
        for object in of_database().filter(|object| matches!(object.kind, Kind::Table | Kind::Sequence)) {
            if let Err(error) = session.run(&object.create) {
                refusals.add(&object.to_string(), error)?;
            }
        }
        for table in of_database().filter(|object| object.kind == Kind::Table) {
            each(session, table)?;
        }
    }
    session.run(&format!("DROP DATABASE {TRIAL}"))?;
    Ok(refusals)
}

/// The lines of a table's definition; `None` if there is none.
fn shown(session: &mut Session, table: &str) -> Result<Option<Vec<String>>, ImportError> {
    match session.texts(&format!("SHOW CREATE TABLE {table}")) {
        Ok(rows) => {
            Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).map(|text| lines(&text)))
        }
        Err(error) if matches!(error.code(), Some(1049 | 1146)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn lines(create: &str) -> Vec<String> {
    without_counter(create).lines().map(|line| line.trim().trim_end_matches(',').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_and_the_order_of_keys_are_no_part_of_a_definition() {
        let a = "CREATE TABLE `t` (\n  `a` int DEFAULT '1',\n  KEY `k` (`a`),\n  KEY `l` (`a`)\n) ENGINE=InnoDB AUTO_INCREMENT=7 COMMENT='x'";
        let b = "CREATE TABLE `t` (\n  `a` int DEFAULT '1',\n  KEY `l` (`a`),\n  KEY `k` (`a`)\n) ENGINE=InnoDB COMMENT='x'";
        let sorted = |text| {
            let mut lines = lines(text);
            lines.sort();
            lines
        };
        assert_eq!(sorted(a), sorted(b));
        assert_eq!(lines(a).last().map(String::as_str), Some(") ENGINE=InnoDB COMMENT='x'"));
    }
}
