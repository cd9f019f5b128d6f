//! Makes at the target what a source has besides rows.
//!
//! Tables come with all their keys, before the rows; routines, views and events next, so that whatever the target refuses
//! is named before hours of copying; triggers at the end, because they would fire for the rows that are copied. Events are
//! made as those of a replica, which do not run until the cut-over.

use crate::definitions::{Definitions, Kind, Object};
use crate::error::ImportError;
use crate::quote;
use crate::session::{Server, Session};
use std::collections::BTreeSet;

/// Things that the target did not take, with its reasons.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(pub Vec<String>);

impl Refusals {
    /// Adds a target's refusal; another error stays one.
    pub(crate) fn add(&mut self, what: &str, error: ImportError) -> Result<(), ImportError> {
        match &error {
            ImportError::Server { error: inner, .. } if error.code().is_some() && !error.is_lost() => {
                self.0.push(format!("{what}: {inner}"));
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// Creates the databases that are not there.
pub(crate) fn create_databases(session: &mut Session, all: &Definitions) -> Result<(), ImportError> {
    for (_, create) in &all.databases {
        let create = if create.contains("IF NOT EXISTS") {
            create.clone()
        } else {
            create.replacen("CREATE DATABASE ", "CREATE DATABASE IF NOT EXISTS ", 1)
        };
        session.run(&create)?;
    }
    Ok(())
}

/// Drops what an earlier attempt left of all objects but the tables in `keep`.
pub(crate) fn drop_others(
    session: &mut Session,
    all: &Definitions,
    keep: &BTreeSet<String>,
) -> Result<(), ImportError> {
    for object in all.objects.iter().rev() {
        let kept = matches!(object.kind, Kind::Table) && keep.contains(&object.name.to_string());
        if !kept {
            session.run(&format!("DROP {} IF EXISTS {}", object.kind.word(), object.name.quoted()))?;
        }
    }
    Ok(())
}

/// Creates the tables that are not in `keep`, and the sequences.
pub(crate) fn create_tables(
    session: &mut Session,
    all: &Definitions,
    keep: &BTreeSet<String>,
) -> Result<(), ImportError> {
    for object in all.objects.iter().filter(|o| matches!(o.kind, Kind::Table | Kind::Sequence)) {
        if object.kind == Kind::Table && keep.contains(&object.name.to_string()) {
            continue;
        }
        session.run(&format!("USE {}", quote::name(&object.name.database)))?;
        session.run(&object.create)?;
    }
    Ok(())
}

/// Brings sequences to where the source's are.
pub(crate) fn set_sequences(
    source: &mut Session,
    target: &mut Session,
    all: &Definitions,
) -> Result<(), ImportError> {
    for object in all.of(Kind::Sequence) {
        let next = source.value(&format!("SELECT next_not_cached_value FROM {}", object.name.quoted()))?;
        if next.bytes().all(|b| b.is_ascii_digit() || b == b'-') && !next.is_empty() {
            target.run(&format!("SELECT SETVAL({}, {next}, 0)", object.name.quoted()))?;
        }
    }
    Ok(())
}

/// Creates routines, views and events, and tries the triggers. What refers to what is not told, so
/// what fails is tried again while anything succeeds.
pub(crate) fn create_programs(session: &mut Session, all: &Definitions) -> Result<Refusals, ImportError> {
    let mut waiting: Vec<&Object> = Vec::new();
    for kind in [Kind::Function, Kind::Procedure, Kind::View, Kind::Event] {
        waiting.extend(all.of(kind));
    }
    loop {
        let before = waiting.len();
        let mut refusals = Refusals::default();
        let mut failed = Vec::new();
        for object in waiting {
            if let Err(error) = create(session, object) {
                refusals.add(&object.to_string(), error)?;
                failed.push(object);
            }
        }
        if failed.is_empty() || failed.len() == before {
            refusals.0.extend(try_triggers(session, all)?.0);
            settle(session)?;
            return Ok(refusals);
        }
        waiting = failed;
    }
}

/// Creates and drops the triggers: kept, they would fire for every row that is copied.
fn try_triggers(session: &mut Session, all: &Definitions) -> Result<Refusals, ImportError> {
    let mut refusals = Refusals::default();
    let mut made = Vec::new();
    for object in all.of(Kind::Trigger) {
        match create(session, object) {
            Ok(()) => made.push(object),
            Err(error) => refusals.add(&object.to_string(), error)?,
        }
    }
    for object in made {
        session.run(&format!("DROP TRIGGER {}", object.name.quoted()))?;
    }
    Ok(refusals)
}

/// Creates the triggers; nothing that fails, because it was refused before, is new.
pub(crate) fn create_triggers(session: &mut Session, all: &Definitions) -> Result<Refusals, ImportError> {
    let mut refusals = Refusals::default();
    for object in all.of(Kind::Trigger) {
        if let Err(error) = create(session, object) {
            refusals.add(&object.to_string(), error)?;
        }
    }
    settle(session)?;
    Ok(refusals)
}

/// Creates an object under what its source had when it was made.
fn create(session: &mut Session, object: &Object) -> Result<(), ImportError> {
    session.run(&format!("USE {}", quote::name(&object.name.database)))?;
    let mode = if object.kind == Kind::View { "" } else { &*object.sql_mode };
    session.run(&format!("SET SESSION sql_mode = {}", quote::text(&known_modes(mode))))?;
    if !object.collation.is_empty() {
        session
            .optional(&format!("SET SESSION collation_connection = {}", quote::text(&object.collation)))?;
    }
    if !object.time_zone.is_empty() {
        session.optional(&format!("SET SESSION time_zone = {}", quote::text(&object.time_zone)))?;
    }
    let text = if object.kind == Kind::Event { as_a_replicas(&object.create) } else { object.create.clone() };
    let made = session.run(&text).map(drop);
    session.run("SET SESSION time_zone = '+00:00'")?;
    made
}

/// Modes of older servers that change nothing by now, and that newer ones refuse, left out.
fn known_modes(modes: &str) -> String {
    const GONE: [&str; 4] = ["NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"];
    modes.split(',').filter(|mode| !GONE.contains(mode)).collect::<Vec<_>>().join(",")
}

/// Gives the session back the settings that copying takes.
fn settle(session: &mut Session) -> Result<(), ImportError> {
    session.run("SET NAMES utf8mb4")?;
    session.run(TARGET_MODE).map(drop)
}

/// The modes under which rows are written: nothing that a source holds is refused, nothing is changed in silence.
pub(crate) const TARGET_MODE: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'";

/// The event as one that came from another server: it does not run here until it is enabled.
fn as_a_replicas(create: &str) -> String {
    for (state, here) in [
        (" PRESERVE ENABLE", " PRESERVE DISABLE ON SLAVE"),
        (" PRESERVE DISABLE ON SLAVE", " PRESERVE DISABLE"),
        (" PRESERVE DISABLE ON REPLICA", " PRESERVE DISABLE"),
    ] {
        // The state stands before the body, where the first one is.
        if let Some((head, tail)) = create.split_once(state)
            && !head.contains(" DO ")
        {
            return format!("{head}{here}{tail}");
        }
    }
    create.to_owned()
}

/// Enables the events that came from the source. Returns how many.
pub(crate) fn enable_events(session: &mut Session, target: &Server) -> Result<usize, ImportError> {
    let list = session.texts(
        "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS \
         WHERE STATUS IN ('SLAVESIDE_DISABLED', 'REPLICA_SIDE_DISABLED')",
    )?;
    debug_assert!(target.omnibus);
    for [database, event] in list.iter().cloned().map(crate::table::take) {
        session.run(&format!("ALTER EVENT {} ENABLE", quote::table(&database, &event)))?;
    }
    Ok(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_for_the_cut_over() {
        let event = "CREATE DEFINER=`r`@`%` EVENT `e` ON SCHEDULE EVERY 1 DAY ON COMPLETION NOT PRESERVE ENABLE DO SET @a = ' PRESERVE ENABLE'";
        assert_eq!(as_a_replicas(event), event.replacen("ENABLE", "DISABLE ON SLAVE", 1));
        let off = "CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY ON COMPLETION PRESERVE DISABLE DO SET @a = ' PRESERVE ENABLE'";
        assert_eq!(as_a_replicas(off), off);
        assert_eq!(known_modes("NO_AUTO_CREATE_USER,ANSI_QUOTES"), "ANSI_QUOTES");
    }
}
