//! XA branches of the simulation: what sessions do with them, in SQL, and what a server shows of them.
//!
//! A branch inserts a few rows of its own and adds 1 to a counter that all branches share, if the counter is not
//! locked. Its name identifies it in statements, in events and in the engine's keys. The statements are the server's
//! own, and so is the code that replays them: `omnibus-sql` over this simulation's engine and log. The oracle sees
//! replies only.

use crate::engine::FIRST;
use crate::names::{branch_name, branch_of};
use crate::plan::SERVER_ID;
use bytes::Bytes;
use omnibus_sql::{
    AllowAll, Database, Interrupt, KillFlag, Mode, ResultColumn, RowSink, SqlError, SqlResult, SqlSession,
};
use omnibus_value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tables with the rows of branches.
const TABLES: [&str; 2] = ["t", "u"];
/// Counters that branches share.
const COUNTERS: u64 = 4;
/// The error of a statement of XA about a branch that is not there.
const UNKNOWN: u16 = 1397;

/// A branch that a session wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    /// The end of the branch, as a transaction, is the next number.
    pub(crate) id: u64,
    /// None: it changes nothing.
    pub(crate) rows: usize,
    pub(crate) row_bytes: usize,
    /// The counter that it adds to.
    pub(crate) counter: Option<u64>,
}

/// A request of a session.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// The first phase.
    Prepare(Branch),
    /// XA COMMIT, or XA ROLLBACK.
    Finish { id: u64, commit: bool },
    /// XA RECOVER.
    List,
    /// The rows of all branches.
    Read,
}

/// A reply to a session.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Success; the reply to a prepare names the counter that it has added to.
    Done { counter: Option<u64> },
    /// There is no such branch.
    Unknown,
    /// Names of branches.
    Branches(BTreeSet<u64>),
    /// Rows of each branch.
    Rows(BTreeMap<u64, u64>),
    /// Another error: it may be done, or not.
    Failed,
}

/// The branches that a recovered server shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownBranches {
    /// The branches that XA RECOVER lists.
    pub(crate) listed: BTreeSet<u64>,
    /// Rows of each branch, by primary key and with what they hold.
    pub(crate) rows: BTreeMap<u64, u64>,
    pub(crate) counters: BTreeMap<u64, u64>,
    /// The counters that are not locked.
    pub(crate) free: BTreeSet<u64>,
}

/// A session.
struct Client(SqlSession);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Default)]
struct Kept(Vec<Vec<Value>>);

impl RowSink for Kept {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        self.0.clear();
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.0.push(values.to_vec());
        Ok(())
    }
}

fn whole(value: &Value) -> u64 {
    match value {
        Value::Int(number) => u64::try_from(*number).unwrap_or(u64::MAX),
        Value::UInt(number) => *number,
        _ => u64::MAX,
    }
}

impl Client {
    fn new(database: &Arc<Database>) -> Client {
        let mut session = SqlSession::new(Arc::clone(database), 1, Arc::new(KillFlag::default()));
        session.state.database = Some("sim".into());
        session.state.settings.server_id = SERVER_ID;
        Client(session)
    }

    /// Rows of a statement, when its reply may leave (SESSION-1).
    fn run(&mut self, sql: &str) -> SqlResult<Vec<Vec<Value>>> {
        let text = Bytes::copy_from_slice(sql.as_bytes());
        let (statement, _) = self.0.parse(&text, false)?;
        let mut rows = Kept::default();
        let done = self.0.execute(&statement, &text, &[], Mode::Blocking, &AllowAll, &mut rows);
        if let Some(ticket) = self.0.trx().floor().ticket() {
            ticket.wait().map_err(SqlError::of_commit)?;
        }
        match done {
            Ok(outcome) => {
                outcome
                    .wait
                    .map_or(Ok(()), |ticket| ticket.wait().map(|_| ()))
                    .map_err(SqlError::of_commit)?;
                Ok(rows.0)
            }
            Err(Interrupt::Error(error)) => Err(error),
            Err(other) => Err(SqlError::internal(format!("{sql}: {other:?}"))),
        }
    }

    /// The counter that was added to, if it was free.
    fn prepare(&mut self, branch: &Branch) -> SqlResult<Option<u64>> {
        let Branch { id, rows, row_bytes, counter } = *branch;
        let (name, mut added) = (branch_name(id), None);
        self.run(&format!("XA START {name}"))?;
        for part in 0..rows {
            let value = format!("{id}{}", "v".repeat(row_bytes));
            let table = TABLES[part % TABLES.len()];
            self.run(&format!("INSERT INTO {table} VALUES ({id}, {part}, '{value}')"))?;
        }
        if let Some(counter) = counter {
            let lock = format!("SELECT n FROM counters WHERE id = {counter} FOR UPDATE SKIP LOCKED");
            if !self.run(&lock)?.is_empty() {
                self.run(&format!("UPDATE counters SET n = n + 1 WHERE id = {counter}"))?;
                added = Some(counter);
            }
        }
        self.run(&format!("XA END {name}"))?;
        self.run(&format!("XA PREPARE {name}"))?;
        Ok(added)
    }

    fn list(&mut self) -> SqlResult<BTreeSet<u64>> {
        let rows = self.run("XA RECOVER")?;
        let name = |row: Vec<Value>| match row.last() {
            Some(Value::Bytes(name)) => branch_of(name).unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        Ok(rows.into_iter().map(name).collect())
    }

    fn read(&mut self) -> SqlResult<BTreeMap<u64, u64>> {
        let mut counts = BTreeMap::new();
        for row in self.run("SELECT id FROM t UNION ALL SELECT id FROM u")? {
            *counts.entry(whole(&row[0])).or_default() += 1;
        }
        Ok(counts)
    }

    /// Rows of each branch; the error says which are not what they should be.
    fn check(&mut self) -> SqlResult<BTreeMap<u64, u64>> {
        let mut all = Vec::new();
        for table in TABLES {
            let rows = self.run(&format!("SELECT id, part, v FROM {table} ORDER BY id, part"))?;
            let by_index =
                format!("SELECT id, part FROM {table} FORCE INDEX (k) WHERE part >= 0 ORDER BY part, id");
            let mut indexed = self.run(&by_index)?;
            indexed.sort_by_key(|row| (whole(&row[0]), whole(&row[1])));
            let keys = |rows: &[Vec<Value>]| -> Vec<(u64, u64)> {
                rows.iter().map(|row| (whole(&row[0]), whole(&row[1]))).collect()
            };
            if keys(&rows) != keys(&indexed) {
                return Err(SqlError::internal("RECOVER-2: an index has other rows than its table"));
            }
            all.extend(rows);
        }
        let mut counts = BTreeMap::new();
        for row in all {
            let id = whole(&row[0]);
            let right = matches!(&row[2], Value::Bytes(v) if v.starts_with(id.to_string().as_bytes()));
            if !right {
                return Err(SqlError::internal(format!(
                    "RECOVER-2: a row of branch {id} has another's value"
                )));
            }
            *counts.entry(id).or_default() += 1;
        }
        Ok(counts)
    }

    fn show(&mut self) -> SqlResult<ShownBranches> {
        let listed = self.list()?;
        let rows = self.check()?;
        let counters = self.run("SELECT id, n FROM counters")?;
        self.run("BEGIN")?;
        let free = self.run("SELECT id FROM counters FOR UPDATE SKIP LOCKED")?;
        self.run("ROLLBACK")?;
        Ok(ShownBranches {
            listed,
            rows,
            counters: counters.iter().map(|row| (whole(&row[0]), whole(&row[1]))).collect(),
            free: free.iter().map(|row| whole(&row[0])).collect(),
        })
    }
}

impl Branch {
    /// Creates a branch from the four numbers that the seed chose.
    pub(crate) fn new(id: u64, rows: usize, row_bytes: usize, counter: u64) -> Branch {
        Branch { id, rows, row_bytes, counter: (rows > 0 && counter < COUNTERS).then_some(counter) }
    }
}

/// Makes the tables, on a device that does not fail. Rows of a branch are in two of them by turns, of which one, and the counters, are
/// in `engine`.
pub(crate) fn found(database: &Arc<Database>, engine: &str) -> Result<(), String> {
    let mut client = Client::new(database);
    let mut run = |sql: &str| client.run(sql).map(|_| ()).map_err(|error| format!("{sql}: {error}"));
    run("CREATE DATABASE sim")?;
    for (table, engine) in TABLES.into_iter().zip([FIRST, engine]) {
        let columns = "id BIGINT, part INT, v VARCHAR(4000), PRIMARY KEY (id, part), KEY k (part)";
        run(&format!("CREATE TABLE {table} ({columns}) ENGINE={engine}"))?;
    }
    run(&format!("CREATE TABLE counters (id INT PRIMARY KEY, n BIGINT) ENGINE={engine}"))?;
    run("INSERT INTO counters VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
}

/// Does what is asked for, and waits until the answer may leave. May block.
pub(crate) fn answer(database: &Arc<Database>, ask: &Ask) -> Answer {
    let mut client = Client::new(database);
    let answer = match ask {
        Ask::Prepare(branch) => client.prepare(branch).map(|counter| Answer::Done { counter }),
        Ask::Finish { id, commit } => {
            let verb = if *commit { "COMMIT" } else { "ROLLBACK" };
            client.run(&format!("XA {verb} {}", branch_name(*id))).map(|_| Answer::Done { counter: None })
        }
        Ask::List => client.list().map(Answer::Branches),
        Ask::Read => client.read().map(Answer::Rows),
    };
    answer.unwrap_or_else(|error| if error.code == UNKNOWN { Answer::Unknown } else { Answer::Failed })
}

/// Returns what the database contains after recovery.
pub(crate) fn show(database: &Arc<Database>) -> Result<ShownBranches, String> {
    Client::new(database).show().map_err(|error| error.to_string())
}
