//! COM_REGISTER_SLAVE, COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID on a session. A dump ends its connection.

use super::registry::{DumpGuard, Replica, Tail};
use super::semi_sync::SemiSyncGuard;
use crate::account::Privileges;
use crate::net::NetError;
use crate::process::Stage;
use crate::server::Server;
use crate::session::Session;
use omnibus_format::{Dialect, GtidPosition, GtidSet};
use omnibus_log::{FilePin, FileSeq, LogHandle, LogPosition, Next, ReadError};
use omnibus_replication::source::error::FATAL;
use omnibus_replication::source::stream::SEMI_SYNC_MAGIC;
use omnibus_replication::source::{
    BlockReader, BlockStep, DumpRequest, Filter, Found, MariadbFilter, Peer, Registration, SourceError,
    Stream, find,
};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_wire::OutBuf;
use omnibus_wire::reply::encode_eof;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

/// How much of a file is read at once.
const READ_BYTES: usize = 512 << 10;
/// What is collected before it is sent, if there is more.
const SEND_BYTES: usize = 256 << 10;
/// What a client may send while it is sent the log: acknowledgements.
const MAX_ASIDE: usize = 4096;
/// With heartbeats off.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// Why a dump ended.
#[derive(Debug)]
enum End {
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

/// What a waiting dump was woken by.
enum Woken {
    More,
    Heartbeat,
    Kill,
    Packet,
}

impl Session {
    /// COM_REGISTER_SLAVE.
    pub(crate) fn register_replica(&mut self, payload: &[u8]) -> SqlResult<()> {
        self.access.require(Privileges::REPLICATION_SLAVE)?;
        let registration = Registration::decode(payload).map_err(|_| crate::errors::malformed_packet())?;
        let uuid = self.peer().uuid;
        // The old guard goes first: it would take the new entry with it.
        self.registered = None;
        self.registered = Some(self.server.dumps.register(self.process.id, Replica { registration, uuid }));
        Ok(())
    }

    /// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID. Says whether the connection is over.
    pub(crate) async fn binlog_dump(&mut self, payload: Vec<u8>, by_gtid: bool) -> Result<bool, NetError> {
        if let Err(error) = self.access.require(Privileges::REPLICATION_SLAVE) {
            self.channel.error(&error);
            return Ok(false);
        }
        let request =
            if by_gtid { DumpRequest::decode_gtid(&payload) } else { DumpRequest::decode(&payload) };
        let end = match request {
            Ok(request) => {
                let peer = self.peer();
                // What only recovery reads has changes that were kept out of the log, accounts' among them.
                if peer.whole_files
                    && let Err(error) = self.access.require(Privileges::BACKUP_ADMIN.with(Privileges::RELOAD))
                {
                    self.channel.error(&error);
                    return Ok(false);
                }
                let guard = self.server.dumps.begin(&self.process, request.server_id, &peer.uuid);
                let Err(end) = self.dump(&request, &peer, &guard).await;
                end
            }
            Err(_) => {
                self.channel.error(&crate::errors::malformed_packet());
                return Ok(false);
            }
        };
        self.say_why(end).await?;
        Ok(true)
    }

    /// The last packet.
    async fn say_why(&mut self, end: End) -> Result<(), NetError> {
        match end {
            End::Eof => {
                let status = self.status();
                // An EOF even to clients that know none any more, as ever after a dump.
                self.channel.out.packet(|out| encode_eof(out, 0, status));
            }
            End::Source(error) => {
                tracing::warn!(connection = self.process.id, %error, "sending the binary log to a replica ended");
                self.channel.error(&SqlError::new(FATAL, b"HY000", error.to_string()));
            }
            // Without a word: clients take an error for final and a lost connection for something to mend.
            End::Killed | End::Gone => return Ok(()),
            End::Net(error) => return Err(error),
        }
        let farewell = tokio::time::timeout(Duration::from_secs(1), self.channel.flush()).await;
        farewell.unwrap_or(Ok(()))
    }

    /// What the client said about itself.
    fn peer(&self) -> Peer {
        let variables = &self.runner.state().user_variables;
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

    async fn dump(
        &mut self,
        request: &DumpRequest,
        peer: &Peer,
        guard: &DumpGuard,
    ) -> Result<std::convert::Infallible, End> {
        let Some(log) = self.server.log.handle() else {
            return Err(SourceError::Io("there is no binary log".into()).into());
        };
        let (start, filter) = begin_at(&self.server.clone(), &log, request, peer).await?;
        let server_id = self.server.globals.named("server_id").as_u64() as u32;
        let mut stream =
            Stream::new(peer, request, log.names().clone(), server_id, start).with_filter(filter);
        let (reader, mut pin, head) = open(&log, start).await?;
        stream.begin(head.as_deref(), &mut self.channel.out)?;
        let tail = self.server.dumps.tail(&log).map_err(|error| SourceError::Io(error.to_string()))?;
        tracing::info!(
            connection = self.process.id,
            server_id = request.server_id,
            uuid = peer.uuid,
            file = log.names().log(start.file),
            position = start.offset.0,
            "sending the binary log"
        );
        let mut waiting = Waiting::new(&tail, peer);
        let coordinator = self.server.log.coordinator().filter(|_| peer.semi_sync);
        let mut acks =
            coordinator.map(|c| Acknowledging::new(self.server.dumps.semi_sync.connect(c, self.process.id)));
        // There while this dump reads by itself.
        let mut reader = Some(OwnReader::Idle(reader));
        loop {
            self.check_end(&stream, guard)?;
            waiting.see();
            self.process.stage(Stage::SendingEvents);
            // Who wants what there is and no more must not end where the feeder happens to be.
            if !request.ends_at_end() && !matches!(tail.hub().find(stream.position()), Found::Elsewhere) {
                reader = None;
            }
            let found = match &mut reader {
                Some(own) => {
                    self.server.dumps.count_own_read();
                    match own.next().await?.map_err(|error| read_error(&log, &error))? {
                        BlockStep::Block(block) => Found::Block(Arc::new(block)),
                        BlockStep::NextFile(file) => Found::NextFile(file),
                        BlockStep::CaughtUp => Found::AtEnd,
                    }
                }
                None => tail.hub().find(stream.position()),
            };
            if pin.is_stale() {
                return Err(SourceError::Reset(stream.file_name()).into());
            }
            match found {
                Found::Block(block) => {
                    // The disk works while the network does.
                    reader.iter_mut().for_each(OwnReader::read_ahead);
                    stream.block(&block, &mut self.channel.out)?;
                    drop(block);
                    if self.channel.out.bytes().len() >= SEND_BYTES {
                        self.flush_unless_killed().await?;
                        stream.sent();
                        waiting.sent();
                    }
                }
                Found::NextFile(file) => {
                    // The new pin before the old one goes.
                    pin = FilePin::new(&log, file).map_err(|error| read_error(&log, &error))?;
                    stream.next_file(file, &mut self.channel.out);
                }
                Found::Elsewhere => reader = Some(OwnReader::Idle(open(&log, stream.position()).await?.0)),
                Found::AtEnd => {
                    stream.settle(&mut self.channel.out);
                    if request.ends_at_end() || stream.until_reached(&mut self.channel.out) {
                        return Err(End::Eof);
                    }
                    if let Some(acks) = &mut acks {
                        acks.at_end(&mut stream, &mut self.channel.out);
                    }
                    if !self.channel.out.is_empty() {
                        self.flush_unless_killed().await?;
                        stream.sent();
                        waiting.sent();
                    }
                    self.process.stage(Stage::WaitingForEvents);
                    // One large event must not be paid for as long as the client is here.
                    self.channel.out.shrink();
                    match self.wait(&mut waiting).await? {
                        Woken::Heartbeat => {
                            stream.heartbeat(&mut self.channel.out);
                            self.flush_unless_killed().await?;
                            stream.sent();
                            waiting.sent();
                        }
                        Woken::Packet => acks.iter_mut().for_each(Acknowledging::acknowledged),
                        Woken::More | Woken::Kill => {}
                    }
                }
            }
        }
    }

    fn check_end(&self, stream: &Stream, guard: &DumpGuard) -> Result<(), End> {
        if self.process.kill.check().is_ok() {
            return Ok(());
        }
        if guard.is_replaced() && !self.process.kill.connection_killed() {
            let (file, position) = (stream.file_name(), stream.position().offset.0);
            return Err(SourceError::Replaced { file, position }.into());
        }
        Err(End::Killed)
    }

    /// Sends what was collected. A client that does not read must not keep a KILL waiting.
    async fn flush_unless_killed(&mut self) -> Result<(), End> {
        let process = self.process.clone();
        tokio::select! {
            biased;
            sent = self.channel.flush() => sent.map_err(End::from),
            () = killed(&process) => Err(End::Gone),
        }
    }

    async fn wait(&mut self, waiting: &mut Waiting) -> Result<Woken, End> {
        let process = self.process.clone();
        let woken = tokio::select! {
            _ = waiting.moved.changed() => Woken::More,
            () = tokio::time::sleep_until(waiting.heartbeat_at) => Woken::Heartbeat,
            () = killed(&process) => Woken::Kill,
            read = self.channel.read_aside(MAX_ASIDE) => match read {
                // COM_QUIT, or anything else that is no acknowledgement.
                Ok(range) if self.channel.payload(range.clone()).first() != Some(&SEMI_SYNC_MAGIC) => return Err(End::Gone),
                Ok(_) => Woken::Packet,
                Err(_) => return Err(End::Gone),
            },
        };
        Ok(woken)
    }
}

async fn killed(process: &crate::process::Process) {
    while process.kill.check().is_ok() {
        process.killed.notified().await;
    }
}

/// What a semi-synchronous replica was asked for and has not answered yet; it answers in order.
struct Acknowledging {
    guard: SemiSyncGuard,
    asked: VecDeque<(LogPosition, Instant)>,
    /// All of the log up to here was asked for, or had nothing to send.
    up_to: Option<LogPosition>,
}

impl Acknowledging {
    fn new(guard: SemiSyncGuard) -> Acknowledging {
        Acknowledging { guard, asked: VecDeque::new(), up_to: None }
    }

    /// Everything up to the stream's position is sent, or is about to be.
    fn at_end(&mut self, stream: &mut Stream, out: &mut OutBuf) {
        let position = stream.position();
        if self.up_to == Some(position) || !self.guard.is_wanted() {
            return;
        }
        self.up_to = Some(position);
        if stream.ask(out) {
            self.asked.push_back((position, Instant::now()));
        } else if let Some((asked, _)) = self.asked.back_mut() {
            // What came since is nothing that the replica gets.
            *asked = position;
        } else {
            self.guard.acknowledged(position, None);
        }
    }

    fn acknowledged(&mut self) {
        if let Some((position, since)) = self.asked.pop_front() {
            self.guard.acknowledged(position, Some(since.elapsed()));
        }
    }
}

/// When to wake.
struct Waiting {
    moved: tokio::sync::watch::Receiver<()>,
    period: Duration,
    heartbeat_at: Instant,
    _tail: Arc<Tail>,
}

impl Waiting {
    fn new(tail: &Arc<Tail>, peer: &Peer) -> Waiting {
        let period = peer.heartbeat.unwrap_or(LONG).min(LONG);
        let heartbeat_at = Instant::now() + period;
        Waiting { moved: tail.subscribe(), period, heartbeat_at, _tail: tail.clone() }
    }

    /// The durable end is about to be read: what moved it until now is no news.
    fn see(&mut self) {
        self.moved.borrow_and_update();
    }

    /// Something was sent: the client knows that we are here.
    fn sent(&mut self) {
        self.heartbeat_at = Instant::now() + self.period;
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
            return Err(SourceError::NoGtids(format!("this server has GTID_MODE = {}", mode.as_str())));
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
        let purged = coordinator.gtid_purged().map_err(|error| read_error(&log, &error))?;
        let own = find::Own { uuid, executed: coordinator.gtid_executed(), purged };
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
        let (file, before) = find::by_position(&log, &position, &coordinator.binlog_state())?;
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
async fn open(
    log: &LogHandle,
    start: LogPosition,
) -> Result<(BlockReader, FilePin, Option<Vec<u8>>), SourceError> {
    let handle = log.clone();
    let opened = blocking(move || {
        let pin = FilePin::new(&handle, start.file)?;
        let reader = BlockReader::open(&handle, start)?;
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

/// A reader of files, which reads on the blocking pool.
enum OwnReader {
    Idle(BlockReader),
    Reading(JoinHandle<(BlockReader, Result<BlockStep, ReadError>)>),
    /// A read broke off.
    Gone,
}

impl OwnReader {
    /// Begins to read what is next.
    fn read_ahead(&mut self) {
        *self = match std::mem::replace(self, OwnReader::Gone) {
            OwnReader::Idle(mut reader) => OwnReader::Reading(tokio::task::spawn_blocking(move || {
                let step = reader.next(READ_BYTES);
                (reader, step)
            })),
            other => other,
        };
    }

    async fn next(&mut self) -> Result<Result<BlockStep, ReadError>, SourceError> {
        self.read_ahead();
        let OwnReader::Reading(reading) = self else {
            return Err(SourceError::Io("a read broke off".into()));
        };
        let (reader, step) = reading.await.map_err(|error| SourceError::Io(error.to_string()))?;
        *self = OwnReader::Idle(reader);
        Ok(step)
    }
}

/// Runs what waits for a disk on the blocking pool.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, SourceError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| SourceError::Io(error.to_string()))
}

fn read_error(log: &LogHandle, error: &ReadError) -> SourceError {
    SourceError::of_read(error, |position| log.names().log(position.file))
}
