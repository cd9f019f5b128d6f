//! The thread that writes the logs. Only it waits for their disk, or for the locks and commits of their tables.

use super::entry::{Style, general_text, insert, slow_text};
use super::files::LogKind;
use super::{Entry, QueryLog};
use bytes::Bytes;
use omnibus_sql::{
    AllowAll, Database, Interrupt, KillFlag, Mode, ResultColumn, RowSink, SqlError, SqlResult, SqlSession,
};
use omnibus_value::Value;
use omnibus_value::temporal::Zone;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the thread gets at the end to write what is queued.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// Of entries that are lost for the same reason one message a minute is enough.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// Rows of one INSERT, and bytes after which it ends.
const ROWS: usize = 500;
const ROW_BYTES: usize = 1 << 20;

/// The running thread.
pub(crate) struct Writer {
    log: Arc<QueryLog>,
    kill: Box<dyn Fn() + Send>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts it.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(log: Arc<QueryLog>, database: Arc<Database>) -> std::io::Result<Writer> {
        let flag = Arc::new(KillFlag::default());
        let mut session = SqlSession::new(database, 0, flag.clone());
        session.state.settings.sql_log_bin = false;
        session.state.settings.zone = Zone::Offset(0);
        // What fits no column is cut.
        session.state.settings.sql_mode = 0;
        let waiter = session.watch();
        let kill = Box::new(move || {
            flag.kill_connection();
            waiter.kill();
        });
        let (end, ended) = mpsc::channel();
        let mut work = Work { log: log.clone(), session, complained: None };
        let thread = std::thread::Builder::new().name("query-log".into()).spawn(move || {
            work.run();
            drop(work);
            let _ = end.send(());
        })?;
        Ok(Writer { log, kill, ended, thread: Some(thread) })
    }

    /// Writes what is queued and ends the thread, which is left alone if its disk hangs.
    pub(crate) fn stop(mut self) {
        self.log.queue.stop();
        let over = |ended: &mpsc::Receiver<()>| ended.recv_timeout(LAST_WAIT).is_ok();
        if !over(&self.ended) {
            (self.kill)();
            if !over(&self.ended) {
                tracing::warn!("the query logs could not be written to their end");
                return;
            }
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    log: Arc<QueryLog>,
    session: SqlSession,
    complained: Option<Instant>,
}

impl Work {
    fn run(&mut self) {
        loop {
            let entries = self.log.queue.take();
            if entries.is_empty() {
                return;
            }
            let style = *self.log.style.lock();
            self.write_audit(&entries, style);
            if self.log.to_files.load(Ordering::Relaxed) {
                self.write_files(&entries, style);
            }
            if self.log.to_tables.load(Ordering::Relaxed) {
                self.write_tables(&entries, style);
            }
            self.log.queue.done(entries.len());
        }
    }

    fn write_audit(&mut self, entries: &[Entry], style: Style) {
        let records = entries.iter().filter_map(|entry| match entry {
            Entry::Audit(record) => Some(&**record),
            _ => None,
        });
        if let Some((_, why)) = self.log.audit.write(records, style) {
            self.complain(&why);
        }
    }

    fn write_files(&mut self, entries: &[Entry], style: Style) {
        for kind in LogKind::ALL {
            let chosen = || entries.iter().filter(|entry| is_of(entry, kind));
            let Some(file) = self.log.file(kind).filter(|_| chosen().next().is_some()) else { continue };
            let mut text = Vec::new();
            let mut database = file.database.lock();
            let before = database.clone();
            for entry in chosen() {
                match entry {
                    Entry::General { .. } => general_text(entry, style, &mut text),
                    Entry::Slow(slow) => slow_text(slow, style, &mut database, &mut text),
                    Entry::Audit(_) => {}
                }
            }
            if let Err(error) = file.write(&text) {
                *database = before;
                drop(database);
                self.lost(chosen().count(), &format!("{}: {error}", file.path.display()));
            }
        }
    }

    fn write_tables(&mut self, entries: &[Entry], style: Style) {
        for kind in LogKind::ALL {
            let chosen: Vec<&Entry> = entries.iter().filter(|entry| is_of(entry, kind)).collect();
            for rows in pieces(&chosen) {
                if let Err(error) = self.execute(insert(rows, style)) {
                    self.lost(rows.len(), &error.message);
                }
            }
        }
    }

    fn execute(&mut self, text: Vec<u8>) -> SqlResult<()> {
        let text = Bytes::from(text);
        let (statement, _) = self.session.parse(&text, false)?;
        let done = self.session.execute(&statement, &text, &[], Mode::Blocking, &AllowAll, &mut NoRows);
        let outcome = done.map_err(|interrupt| match interrupt {
            Interrupt::Error(error) => error,
            _ => SqlError::internal("a log table could not be written"),
        })?;
        match outcome.wait {
            Some(ticket) => ticket.wait().map(drop).map_err(SqlError::of_commit),
            None => Ok(()),
        }
    }

    fn lost(&mut self, entries: usize, why: &str) {
        self.log.lose(entries as u64);
        self.complain(why);
    }

    fn complain(&mut self, why: &str) {
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::error!("entries of the query logs are lost: {why}");
        }
    }
}

fn is_of(entry: &Entry, kind: LogKind) -> bool {
    match entry {
        Entry::General { .. } => kind == LogKind::General,
        Entry::Slow(_) => kind == LogKind::Slow,
        Entry::Audit(_) => false,
    }
}

/// In their order, each as much as one INSERT takes.
fn pieces<'a>(entries: &'a [&'a Entry]) -> Vec<&'a [&'a Entry]> {
    let (mut found, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, entry) in entries.iter().enumerate() {
        if at > from && (at - from >= ROWS || bytes + entry.text_len() > ROW_BYTES) {
            found.push(&entries[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += entry.text_len();
    }
    if from < entries.len() {
        found.push(&entries[from..]);
    }
    found
}

struct NoRows;

impl RowSink for NoRows {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, _: &[Value]) -> SqlResult<()> {
        Ok(())
    }
}
