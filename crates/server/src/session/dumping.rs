//! COM_REGISTER_SLAVE, COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID on a session. A dump ends its connection.

use super::Session;
use super::sending::{Acknowledging, Sending, Waiting};
use crate::account::Privileges;
use crate::connection::{Client, status};
use crate::dump::{DumpGuard, Replica};
use crate::net::NetError;
use crate::server::Server;
use omnibus_format::{Dialect, GtidPosition, GtidSet, GtidState};
use omnibus_log::{FilePin, FileSeq, LogHandle, LogPosition, Next, ReadError};
use omnibus_replication::source::error::FATAL;
use omnibus_replication::source::{
    BlockReader, DumpRequest, Filter, MariadbFilter, Peer, Registration, SourceError, Stream, WantedChecksum,
    find,
};
use omnibus_sql::{SessionState, SqlError, SqlResult};
use omnibus_wire::Status;
use omnibus_wire::reply::encode_eof;
use std::sync::Arc;
use std::time::Duration;

/// Why a dump ended.
#[derive(Debug)]
pub(super) enum End {
    /// At the log's end, as the client wanted.
    Eof,
    /// Error 1236.
    Source(SourceError),
    /// KILL or shutdown.
    Killed,
    /// The client is gone.
    Gone,
    /// The connection failed.
    Net(NetError),
}

impl From<SourceError> for End {
    fn from(error: SourceError) -> End {
        End::Source(error)
    }
}

impl From<NetError> for End {
    fn from(error: NetError) -> End {
        End::Net(error)
    }
}

/// A connection that is sent the log.
pub(super) struct Dump<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) client: &'a mut Client,
}

/// COM_REGISTER_SLAVE.
pub(super) fn register_replica(session: &mut Session, payload: &[u8]) -> SqlResult<()> {
    let registration = Registration::decode(payload).map_err(|_| crate::errors::malformed_packet())?;
    let uuid = peer(&session.sql.state).uuid;
    // The old guard goes first: it would take the new entry with it.
    session.client.registered = None;
    session.client.registered =
        Some(session.server.dumps.register(session.client.process.id, Replica { registration, uuid }));
    Ok(())
}

/// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID. Says whether the connection is over.
pub(super) async fn binlog_dump(
    session: &mut Session,
    payload: Vec<u8>,
    by_gtid: bool,
) -> Result<bool, NetError> {
    let request = if by_gtid { DumpRequest::decode_gtid(&payload) } else { DumpRequest::decode(&payload) };
    let end = match request {
        Ok(request) => {
            let peer = peer(&session.sql.state);
            // What only recovery reads has changes that were kept out of the log, accounts' among them.
            if peer.whole_files
                && let Err(error) = session.login.access.require(Privileges::BACKUP_ADMIN)
            {
                session.client.packets.error(&error);
                return Ok(false);
            }
            let guard = session.server.dumps.begin(&session.client.process, request.server_id, &peer.uuid);
            let marked = session.sql.state.settings.skip_replication;
            let mut dump = Dump { server: &session.server, client: &mut session.client };
            let Err(end) = dump.dump(&request, &peer, &guard, marked).await;
            end
        }
        Err(_) => {
            session.client.packets.error(&crate::errors::malformed_packet());
            return Ok(false);
        }
    };
    let status = status(&session.sql);
    Dump { server: &session.server, client: &mut session.client }.say_why(end, status).await?;
    Ok(true)
}

/// The attributes that the client sent at its login.
fn peer(state: &SessionState) -> Peer {
    let variables = &state.values;
    Peer::from_variables(|name| {
        let (value, ty) = variables.get(name)?;
        let mut text = Vec::new();
        if matches!(value, omnibus_value::Value::Null) {
            return None;
        }
        value.write_text(ty, &mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    })
}

impl Dump<'_> {
    /// The last packet.
    async fn say_why(&mut self, end: End, status: Status) -> Result<(), NetError> {
        match end {
            End::Eof => {
                // An EOF even to clients that know none any more, as ever after a dump.
                self.client.packets.out.packet(|out| encode_eof(out, 0, status));
            }
            End::Source(error) => {
                tracing::warn!(connection = self.client.process.id, %error, "sending the binary log to a replica ended");
                self.client.packets.error(&SqlError::new(FATAL, b"HY000", error.to_string()));
            }
            // Without a word: clients take an error for final and a lost connection for something to mend.
            End::Killed | End::Gone => return Ok(()),
            End::Net(error) => return Err(error),
        }
        let farewell = tokio::time::timeout(Duration::from_secs(1), self.client.packets.flush()).await;
        farewell.unwrap_or(Ok(()))
    }

    async fn dump(
        &mut self,
        request: &DumpRequest,
        peer: &Peer,
        guard: &DumpGuard,
        without_marked: bool,
    ) -> Result<std::convert::Infallible, End> {
        let Some(log) = self.server.log.handle() else {
            return Err(SourceError::Io("there is no binary log".into()).into());
        };
        let (start, filter) = begin_at(self.server, &log, request, peer).await?;
        let server_id = self.server.globals.named("server_id").as_u64() as u32;
        let mut stream = Stream::new(peer, request, log.names().clone(), server_id, start)
            .with_filter(filter)
            .without_marked(without_marked);
        // Who gets events with their checksums looks at those. Who acknowledges events acknowledges whole ones.
        let verify = peer.checksum != WantedChecksum::Crc32
            || peer.semi_sync
            || self.server.globals.named("source_verify_checksum").as_bool();
        let (reader, pin, head) = open(&log, start, verify).await?;
        stream.begin(head.as_deref(), &mut self.client.packets.out)?;
        let tail = self.server.dumps.tail(&log).map_err(|error| SourceError::Io(error.to_string()))?;
        tracing::info!(
            connection = self.client.process.id,
            server_id = request.server_id,
            uuid = peer.uuid,
            file = log.names().log(start.file),
            position = start.offset.0,
            "sending the binary log"
        );
        let waiting = Waiting::new(&tail, peer);
        let coordinator = self.server.log.coordinator().filter(|_| peer.semi_sync);
        let acks = coordinator
            .map(|c| Acknowledging::new(self.server.dumps.semi_sync.connect(c, self.client.process.id)));
        let reader = Some(reader);
        self.send_log(Sending { request, guard, log, stream, verify, reader, pin, tail, waiting, acks }).await
    }
}

/// Where the stream begins, and what it leaves out.
async fn begin_at(
    server: &Server,
    log: &LogHandle,
    request: &DumpRequest,
    peer: &Peer,
) -> Result<(LogPosition, Filter), SourceError> {
    let mariadb = server.log.dialect() == Dialect::Mariadb;
    if let Some(executed) = &request.executed {
        if mariadb {
            return Err(SourceError::NoGtids("this server's GTIDs are MariaDB's".into()));
        }
        let mode = server.globals.named("gtid_mode");
        if mode.as_str() != "ON" {
            let why = format!("this server has GTID_MODE = {} instead of ON.", mode.as_str());
            return Err(SourceError::NoGtids(why));
        }
        return begin_by_set(server, log, executed.clone()).await;
    }
    match &peer.connect_state {
        Some(state) if mariadb && peer.is_mariadb() => begin_by_position(server, log, state, peer).await,
        _ => Ok((start_of(log, request)?, Filter::All)),
    }
}

async fn begin_by_set(
    server: &Server,
    log: &LogHandle,
    executed: GtidSet,
) -> Result<(LogPosition, Filter), SourceError> {
    let Some(coordinator) = server.log.coordinator().cloned() else {
        return Err(SourceError::NoGtids("there is no binary log".into()));
    };
    let uuid = server.globals.named("server_uuid").as_str().parse().unwrap_or_default();
    let log = log.clone();
    blocking(move || {
        let purged = coordinator.gtids().purged().map_err(|error| read_error(&log, &error))?;
        let GtidState::Mysql(executed_here) = coordinator.gtids().logged() else {
            return Err(SourceError::NoGtids("this server's GTIDs are MariaDB's".into()));
        };
        let own = find::Own { uuid, executed: executed_here, purged };
        let file = find::by_set(&log, &executed, &own)?;
        Ok((LogPosition::new(file, 4), Filter::Mysql(executed)))
    })
    .await?
}

async fn begin_by_position(
    server: &Server,
    log: &LogHandle,
    state: &str,
    peer: &Peer,
) -> Result<(LogPosition, Filter), SourceError> {
    let Some(coordinator) = server.log.coordinator().cloned() else {
        return Err(SourceError::NoGtids("there is no binary log".into()));
    };
    let parse = |text: &str| {
        text.parse::<GtidPosition>().map_err(|_| SourceError::Malformed(format!("GTID position '{text}'")))
    };
    let (position, strict, log) = (parse(state)?, peer.strict, log.clone());
    let until = peer.until_gtid.as_deref().map(parse).transpose()?;
    blocking(move || {
        let GtidState::Mariadb(logged) = coordinator.gtids().logged() else {
            return Err(SourceError::NoGtids("this server's GTIDs are MySQL's".into()));
        };
        let (file, before) = find::by_position(&log, &position, &logged)?;
        let filter = MariadbFilter::new(position, &before, strict, until);
        Ok((LogPosition::new(file, 4), Filter::Mariadb(filter)))
    })
    .await?
}

/// The place that a request names.
fn start_of(log: &LogHandle, request: &DumpRequest) -> Result<LogPosition, SourceError> {
    let files = log.list();
    let entry = if request.file.is_empty() {
        files.first()
    } else {
        let seq = log.names().parse(&request.file);
        files.iter().find(|entry| Some(entry.file) == seq)
    };
    let entry = entry.ok_or_else(|| SourceError::NoSuchFile(request.file.clone()))?;
    if request.position < 4 {
        return Err(SourceError::PositionTooSmall);
    }
    if request.position > entry.size {
        let (file, size, position) = (entry.name.clone(), entry.size, request.position);
        return Err(SourceError::PositionTooLarge { file, size, position });
    }
    Ok(LogPosition::new(entry.file, request.position))
}

/// A reader at `start`, a pin of its file, and the file's FORMAT_DESCRIPTION if the reader would not come across that.
pub(super) async fn open(
    log: &LogHandle,
    start: LogPosition,
    verify: bool,
) -> Result<(BlockReader, FilePin, Option<Vec<u8>>), SourceError> {
    let handle = log.clone();
    let opened = blocking(move || {
        let pin = FilePin::new(&handle, start.file)?;
        let reader = BlockReader::open(&handle, start, verify)?;
        let head = if start.offset.0 > 4 { format_description(&handle, start.file)? } else { None };
        Ok((reader, pin, head))
    });
    opened.await?.map_err(|error| read_error(log, &error))
}

fn format_description(log: &LogHandle, file: FileSeq) -> Result<Option<Vec<u8>>, ReadError> {
    Ok(match log.read(file)?.next()? {
        Next::Event(event) => Some(event.bytes.to_vec()),
        Next::End(_) => None,
    })
}

/// Runs what waits for a disk on the blocking pool.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, SourceError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| SourceError::Io(error.to_string()))
}

pub(super) fn read_error(log: &LogHandle, error: &ReadError) -> SourceError {
    SourceError::of_read(error, |position| log.names().log(position.file))
}
