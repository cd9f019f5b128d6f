//! The target as the source's replica: a channel `omnibus_import`, by file and position, which every kind of source has.
//!
//! GTIDs of a source of the target's own dialect are kept all the same. While tables are copied the channel exists and is
//! stopped, so that its place survives everything; a target that restarts leaves it stopped.

use crate::error::ImportError;
use crate::facts::{Facts, Position};
use crate::progress::{say, time};
use crate::quote;
use crate::session::{Family, Server, Session};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Its name.
const CHANNEL: &str = "omnibus_import";
const FOR: &str = "FOR CHANNEL 'omnibus_import'";
/// Between two looks at a channel.
const LOOK: Duration = Duration::from_millis(200);
/// Between two lines about one.
const LINE: Duration = Duration::from_secs(5);
/// The time after which an applier that does not run counts as stopped.
const IDLE: Duration = Duration::from_secs(20);
/// The longest time that a receiver may take to connect.
const CONNECTS: Duration = Duration::from_secs(60);

/// The source as the target reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// Whether to use TLS, and which authority vouches for the source.
    pub tls: bool,
    pub ca: Option<String>,
}

/// A channel's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub applied: Position,
    pub receives: bool,
    pub applies: bool,
    pub error: Option<String>,
    pub receiver_error: Option<String>,
    pub behind_s: Option<u64>,
}

/// Returns the channel's state; `None` if there is no such channel.
pub(crate) fn status(session: &mut Session) -> Result<Option<Status>, ImportError> {
    let found = match session.named(&format!("SHOW REPLICA STATUS {FOR}")) {
        // There is no such channel.
        Err(error) if matches!(error.code(), Some(3074 | 1617 | 1618)) => None,
        other => other?,
    };
    Ok(found.map(|row| status_of(&row)))
}

fn status_of(row: &BTreeMap<String, String>) -> Status {
    // MySQL's names, and MariaDB's.
    let get = |new: &str, old: &str| row.get(new).or_else(|| row.get(old)).cloned().unwrap_or_default();
    let error = |number: &str, text: &str| {
        let number = get(number, number);
        (number != "0" && !number.is_empty()).then(|| format!("error {number}: {}", get(text, text)))
    };
    Status {
        applied: Position {
            file: get("Relay_Source_Log_File", "Relay_Master_Log_File"),
            offset: get("Exec_Source_Log_Pos", "Exec_Master_Log_Pos").parse().unwrap_or(0),
            gtids: String::new(),
        },
        receives: get("Replica_IO_Running", "Slave_IO_Running") == "Yes",
        applies: get("Replica_SQL_Running", "Slave_SQL_Running") == "Yes",
        error: error("Last_SQL_Errno", "Last_SQL_Error"),
        receiver_error: error("Last_IO_Errno", "Last_IO_Error"),
        behind_s: get("Seconds_Behind_Source", "Seconds_Behind_Master").parse().ok(),
    }
}

/// Makes the channel, or moves it, to a place, and says what has been executed there.
pub(crate) fn place(
    session: &mut Session,
    target: &Server,
    source: &Server,
    facts: &Facts,
    reach: &Reach,
    at: &Position,
) -> Result<(), ImportError> {
    // Names of transactions that are in the copied rows, so that nobody asks for them.
    if source.family == Family::Mysql && target.family == Family::Mysql && !at.gtids.is_empty() {
        let mine = session.value("SELECT @@GLOBAL.gtid_executed")?.replace('\n', "");
        let new = session.value(&format!(
            "SELECT GTID_SUBTRACT({}, {})",
            quote::text(&at.gtids),
            quote::text(&mine)
        ))?;
        if !new.is_empty() {
            session.run(&format!("SET GLOBAL gtid_purged = {}", quote::text(&format!("+{new}"))))?;
        }
    }
    let mut options = vec![
        format!("SOURCE_HOST = {}", quote::text(&reach.host)),
        format!("SOURCE_PORT = {}", reach.port),
        format!("SOURCE_USER = {}", quote::text(&reach.user)),
        format!("SOURCE_PASSWORD = {}", quote::text(&reach.password)),
        format!("SOURCE_LOG_FILE = {}", quote::text(&at.file)),
        format!("SOURCE_LOG_POS = {}", at.offset),
        "SOURCE_CONNECT_RETRY = 5".into(),
        format!("SOURCE_SSL = {}", u8::from(reach.tls)),
    ];
    match &reach.ca {
        Some(ca) => options.push(format!("SOURCE_SSL_CA = {}", quote::text(ca))),
        None if !reach.tls => options.push("GET_SOURCE_PUBLIC_KEY = 1".into()),
        None => {}
    }
    if target.family == Family::Mysql && source.family == Family::Mysql && !facts.gtids {
        let mode = session.known("SELECT @@GLOBAL.gtid_mode")?;
        if mode.as_deref() == Some("ON") {
            options.push("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL".into());
        }
    }
    session.run(&format!("CHANGE REPLICATION SOURCE TO {} {FOR}", options.join(", "))).map(drop)
}

/// Sets the rules about what the channel applies; they last until the target restarts.
pub(crate) fn filter(session: &mut Session, rules: &[String]) -> Result<(), ImportError> {
    const NONE: [&str; 4] = [
        "REPLICATE_DO_TABLE",
        "REPLICATE_IGNORE_TABLE",
        "REPLICATE_WILD_DO_TABLE",
        "REPLICATE_WILD_IGNORE_TABLE",
    ];
    let mut all: Vec<String> = rules.to_vec();
    for name in NONE {
        if !rules.iter().any(|rule| rule.starts_with(name)) {
            all.push(format!("{name} = ()"));
        }
    }
    session.run(&format!("CHANGE REPLICATION FILTER {} {FOR}", all.join(", "))).map(drop)
}

/// Starts receiver and applier.
pub(crate) fn start(session: &mut Session) -> Result<(), ImportError> {
    session.run(&format!("START REPLICA {FOR}")).map(drop)
}

/// Stops both.
pub(crate) fn stop(session: &mut Session) -> Result<(), ImportError> {
    session.run(&format!("STOP REPLICA {FOR}")).map(drop)
}

/// Stops the channel if there is one, and removes it.
pub(crate) fn remove(session: &mut Session) -> Result<(), ImportError> {
    if status(session)?.is_some() {
        stop(session)?;
        session.run(&format!("RESET REPLICA ALL {FOR}"))?;
    }
    Ok(())
}

/// Starts the receiver alone, to see whether the target is let in at the source.
pub(crate) fn try_receiver(session: &mut Session) -> Result<(), ImportError> {
    session.run(&format!("START REPLICA IO_THREAD {FOR}"))?;
    let deadline = Instant::now() + CONNECTS;
    let outcome = loop {
        let now = status(session)?.unwrap_or_default();
        if let Some(error) = now.receiver_error {
            break Err(error);
        }
        if now.receives {
            // Connected; a refusal of the dump itself comes right behind.
            std::thread::sleep(LOOK);
            let again = status(session)?.unwrap_or_default();
            break again.receiver_error.map_or(Ok(()), Err);
        }
        if Instant::now() > deadline {
            break Err("no answer".into());
        }
        std::thread::sleep(LOOK);
    };
    stop(session)?;
    outcome.map_err(|error| {
        ImportError::Refused(format!(
            "the target cannot follow the source: {error}. Its account needs REPLICATION SLAVE (--source-user, \
             OMNIBUS_SOURCE_PASSWORD), and the target reaches the source at the address of --from unless --source-address says \
             another one. --no-follow copies without following"
        ))
    })
}

/// Applies everything before a place, and stops there.
pub(crate) fn apply_until(session: &mut Session, place: &Position) -> Result<(), ImportError> {
    let before = status(session)?.unwrap_or_default();
    if before.applied.is(place) {
        return stop(session);
    }
    if before.applied.reaches(place) {
        return Err(ImportError::Refused(format!(
            "the channel {CHANNEL} of the target is at {} already, behind {place}",
            before.applied
        )));
    }
    session.run(&format!(
        "START REPLICA UNTIL SOURCE_LOG_FILE = {}, SOURCE_LOG_POS = {} {FOR}",
        quote::text(&place.file),
        place.offset
    ))?;
    wait_applied(session, place)?;
    stop(session)
}

/// Waits until everything before a place is applied. Says how far it is.
pub(crate) fn wait_applied(session: &mut Session, place: &Position) -> Result<(), ImportError> {
    let mut told = Instant::now();
    let mut ran = Instant::now();
    loop {
        let now = status(session)?.unwrap_or_default();
        if now.applied.reaches(place) {
            return Ok(());
        }
        if let Some(error) = stopped(&now) {
            return Err(error);
        }
        if now.applies {
            ran = Instant::now();
        } else if ran.elapsed() > IDLE {
            return Err(ImportError::Refused(format!(
                "the target's channel {CHANNEL} was stopped at {}, before {place}: run this again",
                now.applied
            )));
        }
        if told.elapsed() > LINE {
            told = Instant::now();
            say(&format!("following: at {}, to {place}{}", now.applied, lag(&now)));
        }
        std::thread::sleep(LOOK);
    }
}

/// The error that a channel has stopped with.
pub(crate) fn stopped(now: &Status) -> Option<ImportError> {
    let (who, error) = match (&now.error, &now.receiver_error) {
        (Some(error), _) if !now.applies => ("applies nothing any more", error),
        (_, Some(error)) if !now.receives => ("receives nothing any more", error),
        _ => return None,
    };
    Some(ImportError::Refused(format!(
        "the target {who}: {error}. It stands at {} of the source and goes on from there: mend the cause, then \
         START REPLICA {FOR} there (docs/use/replication.md has what each number means)",
        now.applied
    )))
}

/// The lag, for people.
pub(crate) fn lag(now: &Status) -> String {
    now.behind_s.map_or(String::new(), |seconds| format!(", {} behind", time(seconds as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_name_their_columns() {
        let row =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let new = status_of(&row(&[
            ("Relay_Source_Log_File", "b.000002"),
            ("Exec_Source_Log_Pos", "77"),
            ("Replica_IO_Running", "Yes"),
            ("Replica_SQL_Running", "No"),
            ("Last_SQL_Errno", "1062"),
            ("Last_SQL_Error", "dup"),
            ("Last_IO_Errno", "0"),
        ]));
        assert_eq!((new.applied.to_string(), new.receives, new.applies), ("b.000002:77".into(), true, false));
        assert_eq!(new.error.as_deref(), Some("error 1062: dup"));
        assert!(stopped(&new).is_some() && new.receiver_error.is_none());
        let old = status_of(&row(&[
            ("Relay_Master_Log_File", "b.000003"),
            ("Exec_Master_Log_Pos", "5"),
            ("Slave_SQL_Running", "Yes"),
            ("Seconds_Behind_Master", "3"),
        ]));
        assert_eq!(
            (old.applied.to_string(), old.applies, old.behind_s),
            ("b.000003:5".into(), true, Some(3))
        );
    }
}
