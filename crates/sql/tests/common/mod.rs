//! A database without a log: an engine of maps, commits that are ordered and durable at once, and
//! every committed transaction's events kept for replay.
#![allow(clippy::unwrap_used, dead_code, reason = "shared by several test programs")]

pub mod engine;
pub mod replica;
pub mod server;

use bytes::Bytes;
use engine::MemEngine;
use omnibus_commit::{CacheSettings, CommitError, CommitRequest, LogPosition, ReplayEvent, Ticket, TrxCache};
use omnibus_engine::{CommitNo, Engine};
use omnibus_format::EventHeader;
use omnibus_sql::store::{CommitPort, SnapshotHold};
use omnibus_sql::{
    AllowAll, Database, Interrupt, KillFlag, Mode, Outcome, ResultColumn, RowSink, SqlError, SqlResult,
    SqlSession,
};
use omnibus_value::Value;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub struct TestPort {
    pub engine: Arc<dyn Engine>,
    pub last: Arc<AtomicU64>,
    pub settings: Arc<CacheSettings>,
    /// Events of each transaction, and whether it was logged.
    pub log: Mutex<Vec<(CommitNo, bool, Vec<ReplayEvent>)>>,
    order: Mutex<()>,
    /// Commits that were not to wait for the device.
    pub enrolled: AtomicU64,
    /// The next logged commit is turned away, as one that its session withdraws.
    pub refuse: AtomicBool,
    /// Whether events are kept.
    keep: bool,
}

impl TestPort {
    pub fn new() -> Arc<TestPort> {
        TestPort::over(Arc::new(MemEngine::default()), 0)
    }

    pub fn over(engine: Arc<dyn Engine>, last: u64) -> Arc<TestPort> {
        Arc::new(TestPort {
            engine,
            last: Arc::new(AtomicU64::new(last)),
            settings: Arc::new(CacheSettings::new(std::env::temp_dir())),
            log: Mutex::default(),
            order: Mutex::default(),
            enrolled: AtomicU64::new(0),
            refuse: AtomicBool::new(false),
            keep: true,
        })
    }

    /// Keeps no events: for measuring.
    pub fn quiet(engine: Arc<dyn Engine>) -> Arc<TestPort> {
        Arc::new(TestPort {
            engine,
            last: Arc::default(),
            settings: Arc::new(CacheSettings::new(std::env::temp_dir())),
            log: Mutex::default(),
            order: Mutex::default(),
            enrolled: AtomicU64::new(0),
            refuse: AtomicBool::new(false),
            keep: false,
        })
    }
}

struct Hold(Arc<AtomicU64>);

impl SnapshotHold for Hold {
    fn take(&mut self, at_least: CommitNo) -> CommitNo {
        CommitNo(self.0.load(Ordering::Acquire)).max(at_least)
    }
    fn take_with_position(&mut self) -> (CommitNo, LogPosition) {
        (self.take(CommitNo::ZERO), LogPosition::new(omnibus_log::FileSeq(1), 4))
    }
    fn release(&mut self) {}
}

pub fn events_of(cache: &mut TrxCache) -> Vec<ReplayEvent> {
    let opening = cache.opening_statement().map(|body| ReplayEvent {
        event_type: omnibus_format::EventType::QUERY,
        timestamp: 0,
        body: Bytes::copy_from_slice(body),
    });
    let mut out = Vec::from_iter(opening);
    cache
        .read_events::<omnibus_commit::CacheError>(1 << 20, |mut bytes| {
            while let Ok(header) = EventHeader::decode(bytes) {
                let size = header.size as usize;
                out.push(ReplayEvent {
                    event_type: header.event_type,
                    timestamp: header.timestamp,
                    body: Bytes::copy_from_slice(&bytes[omnibus_format::header::HEADER_LEN..size]),
                });
                bytes = &bytes[size..];
            }
            Ok(())
        })
        .unwrap();
    out
}

impl CommitPort for TestPort {
    fn new_cache(&self) -> TrxCache {
        TrxCache::new(self.settings.clone())
    }
    fn hold(&self) -> Box<dyn SnapshotHold> {
        Box::new(Hold(self.last.clone()))
    }
    fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }
    fn commit(&self, mut request: CommitRequest) -> Ticket {
        if !request.inline {
            self.enrolled.fetch_add(1, Ordering::Relaxed);
        }
        let _order = self.order.lock();
        if request.logged && self.refuse.swap(false, Ordering::Relaxed) {
            return Ticket::done(Err(CommitError::Withdrawn));
        }
        let no = CommitNo(self.last.load(Ordering::Acquire) + 1);
        self.engine.prepare_ordered(no, std::mem::take(&mut request.writes));
        if self.keep {
            self.log.lock().push((no, request.logged, events_of(&mut request.cache)));
        }
        self.last.store(no.0, Ordering::Release);
        if let Some(ordered) = request.on_ordered.take() {
            ordered(no);
        }
        self.engine.commit_ordered(no);
        Ticket::done(Ok(no))
    }
    fn wait_published(&self, no: CommitNo) -> Ticket {
        Ticket::done(Ok(no))
    }
    fn published(&self) -> CommitNo {
        CommitNo(self.last.load(Ordering::Acquire))
    }
    fn numbered(&self) -> CommitNo {
        self.published()
    }
    fn installed(&self) -> CommitNo {
        self.published()
    }
    fn deleted_floor(&self, _: &[u8]) -> CommitNo {
        CommitNo::ZERO
    }
}

/// Keeps a result.
#[derive(Default)]
pub struct Rows {
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<Vec<Value>>,
}

impl RowSink for Rows {
    fn columns(&mut self, columns: &[ResultColumn]) -> SqlResult<()> {
        self.columns = columns.to_vec();
        self.rows.clear();
        Ok(())
    }
    fn row(&mut self, values: &[Value]) -> SqlResult<()> {
        self.rows.push(values.to_vec());
        Ok(())
    }
}

impl Rows {
    pub fn text(&self) -> Vec<Vec<String>> {
        let cell = |(value, column): (&Value, &ResultColumn)| match value {
            Value::Null => "NULL".to_owned(),
            value => String::from_utf8_lossy(&value.to_bytes(&column.ty)).into_owned(),
        };
        self.rows.iter().map(|row| row.iter().zip(&self.columns).map(cell).collect()).collect()
    }
}

/// A database and one session.
pub struct Client {
    pub session: SqlSession,
}

pub fn database() -> (Arc<TestPort>, Arc<Database>) {
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    (port, database)
}

impl Client {
    pub fn new(database: &Arc<Database>) -> Client {
        static ID: AtomicU64 = AtomicU64::new(1);
        let id = ID.fetch_add(1, Ordering::Relaxed) as u32;
        let mut client =
            Client { session: SqlSession::new(database.clone(), id, Arc::new(KillFlag::default())) };
        client.session.state.database = Some("test".into());
        client
    }

    /// Runs one statement, waiting for whatever it must.
    pub fn run(&mut self, sql: &str) -> Result<(Outcome, Rows), SqlError> {
        self.run_mode(sql, Mode::Inline).or_else(|interrupt| match interrupt {
            Interrupt::Error(error) => Err(error),
            Interrupt::LockWait(wait) => {
                drop(wait);
                self.run_mode(sql, Mode::Blocking).map_err(error_of)
            }
            Interrupt::NeedBlocking => self.run_mode(sql, Mode::Blocking).map_err(error_of),
            Interrupt::Server(_) => panic!("there is no server"),
            Interrupt::NeedFile(_) => panic!("no client has a file here"),
        })
    }

    pub fn run_mode(&mut self, sql: &str, mode: Mode) -> Result<(Outcome, Rows), Interrupt> {
        let text = Bytes::copy_from_slice(sql.as_bytes());
        let read = self.session.read(&text).map_err(Interrupt::Error)?;
        let (text, mut rows) = (text.slice_ref(read.span.of(&text)), Rows::default());
        let run = self.session.execute(&read.statement, &text, &read.values, mode, &AllowAll, &mut rows);
        let mut outcome = run?;
        if let Some(ticket) = outcome.wait.take() {
            ticket.wait().map_err(|error| {
                self.session.trx().commit_is_over(false);
                SqlError::of_commit(error)
            })?;
        }
        Ok((outcome, rows))
    }

    /// Must succeed.
    pub fn ok(&mut self, sql: &str) -> Outcome {
        match self.run(sql) {
            Ok((outcome, _)) => outcome,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// Must fail; the error's code and message.
    pub fn error(&mut self, sql: &str) -> (u16, String) {
        match self.run(sql) {
            Ok(_) => panic!("{sql}: should have failed"),
            Err(error) => (error.code, error.message),
        }
    }

    /// Rows as text.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        match self.run(sql) {
            Ok((_, rows)) => rows.text(),
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

pub fn error_of(interrupt: Interrupt) -> SqlError {
    match interrupt {
        Interrupt::Error(error) => error,
        other => panic!("unexpected {other:?}"),
    }
}
