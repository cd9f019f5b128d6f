//! LOAD DATA LOCAL: asks the client for a file and collects it before the statement runs.
//!
//! The file is kept, in memory or on disk (`Spool`), because a statement that meets a lock reads it again.
//! Whatever goes wrong on this side, the client sends to the end: the rest is read and thrown away, so that
//! its next command is understood.

use super::client::Client;
use super::host::SessionShared;
use crate::errors;
use crate::net::NetError;
use crate::process::Stage;
use omnibus_sql::load::{LoadInput, Spool};
use omnibus_sql::{SqlError, SqlResult, SqlSession};

/// Bytes collected between two writes to the spool.
const BATCH: usize = 1 << 20;
/// The byte that asks for a file, in front of its name.
const LOCAL_INFILE: u8 = 0xfb;

impl Client {
    /// The client's file of this name.
    pub(crate) async fn file(
        &mut self,
        sql: &mut SqlSession,
        shared: &SessionShared,
        name: &[u8],
    ) -> SqlResult<LoadInput> {
        self.process.stage(Stage::ReadingFile);
        let received = self.receive_file(sql, shared, name).await;
        self.process.stage(Stage::Executing);
        match received {
            Ok(file) => file,
            Err(error) => {
                // What comes next on this connection cannot be told from the rest of the file.
                tracing::debug!(id = self.process.id, %error, "LOAD DATA LOCAL broken off");
                self.cut();
                Err(errors::net_read())
            }
        }
    }

    async fn receive_file(
        &mut self,
        sql: &mut SqlSession,
        shared: &SessionShared,
        name: &[u8],
    ) -> Result<SqlResult<LoadInput>, NetError> {
        // To be asked for a file tells that the table is there.
        let start = self.reply_start();
        if !self.settle(sql, start).await {
            return Err(NetError::Closed);
        }
        self.packets.out.packet(|out| {
            out.push(LOCAL_INFILE);
            out.extend_from_slice(name);
        });
        self.packets.flush().await?;
        let limit = shared.timeouts().read;
        let max = shared.max_allowed_packet();
        let folder = crate::sysvars::temp_folder(&self.server.globals);
        let mut file = Collected { spool: Spool::in_folder(&folder), ..Collected::default() };
        loop {
            let range = tokio::select! {
                biased;
                read = self.packets.read(max) => read?,
                () = self.process.killed.notified() => {
                    if let Err(error) = self.process.kill.check() {
                        if self.process.kill.connection_killed() {
                            return Err(NetError::Closed);
                        }
                        file.fail(error);
                    }
                    continue;
                }
                () = tokio::time::sleep(limit) => {
                    return Err(NetError::Io(std::io::ErrorKind::TimedOut.into()));
                }
            };
            if range.is_empty() {
                return Ok(file.finish());
            }
            file.add(self.packets.payload(range));
        }
    }
}

/// The part of a file that has come so far.
#[derive(Default)]
struct Collected {
    spool: Spool,
    batch: Vec<u8>,
    failed: Option<SqlError>,
}

impl Collected {
    fn add(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.batch.extend_from_slice(bytes);
        if self.batch.len() >= BATCH {
            self.write();
        }
    }

    fn write(&mut self) {
        let Collected { spool, batch, .. } = self;
        let written = if spool.in_memory(batch.len()) {
            spool.write(batch)
        } else {
            crate::net::blocking(|| spool.write(batch))
        };
        self.batch.clear();
        if let Err(error) = written {
            tracing::error!(%error, "the temporary file of LOAD DATA LOCAL failed");
            self.fail(errors::temporary_file(error));
        }
    }

    fn fail(&mut self, error: SqlError) {
        self.failed.get_or_insert(error);
        self.batch = Vec::new();
        self.spool = Spool::default();
    }

    fn finish(mut self) -> SqlResult<LoadInput> {
        if self.failed.is_none() {
            self.write();
        }
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.spool.finish()),
        }
    }
}
