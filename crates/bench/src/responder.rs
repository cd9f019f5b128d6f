//! `omnibus bench responder`: the least work that can answer a writing benchmark durably, as the limit of a machine.
//!
//! It implements enough of the protocol for sysbench's `oltp_update_index`, `oltp_update_non_index`, `oltp_insert` and
//! `oltp_delete`, examines a statement only for whether it writes, and stores no rows: a commit is a number of bytes in
//! a file, shared by the group that they are written with. It has one log thread, a queue behind a mutex, one direct
//! write-through write per group, and a wake-up per waiter; sessions are tasks on as many workers as there are
//! processors, as the server's are.
//!
//! A server's rate beside it, with the same clients on the same disk, is its share of the possible rate.

use clap::Args;
use omnibus_wire::consts::{ColumnFlag, FieldType};
use omnibus_wire::stmt::PrepareOk;
use omnibus_wire::{
    Capability, ColumnDef, Command, Greeting, InBuf, Login, LoginPacket, OkPacket, OutBuf, Status,
};
use parking_lot::{Condvar, Mutex};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

/// Answer writing benchmarks by a durable write and nothing else, until stopped: the limit of this machine.
#[derive(Args, Debug)]
pub struct ResponderArgs {
    /// Unix socket to listen on.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Directory on the device to write to; the file there is removed at once.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Bytes written for each commit, about those of an update of one small row in the binary log.
    #[arg(long, value_name = "BYTES", default_value_t = 400)]
    bytes: usize,
}

/// The alignment of direct writes.
const BLOCK: usize = 4096;
/// The file's length; writing begins again at its start.
const FILE_BYTES: u64 = 64 << 20;
/// So that a group never reaches the end of the file.
const COMMIT_BYTES_MAX: usize = 1 << 16;

/// Runs the command; ends when the process is told to.
#[must_use]
pub fn run(args: ResponderArgs) -> ExitCode {
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omnibus bench responder: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &ResponderArgs) -> Result<(), String> {
    if !(1..=COMMIT_BYTES_MAX).contains(&args.bytes) {
        return Err(format!("bytes go from 1 to {COMMIT_BYTES_MAX}"));
    }
    let file = prepared_file(&args.dir).map_err(|e| format!("{}: {e}", args.dir.display()))?;
    let log = Arc::new(Log::default());
    let writer = log.clone();
    let bytes = args.bytes;
    std::thread::spawn(move || writer.write_groups(&file, bytes));
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener =
            UnixListener::bind(&args.socket).map_err(|e| format!("{}: {e}", args.socket.display()))?;
        println!("ready for connections. Socket: '{}'", args.socket.display());
        let ended = loop {
            tokio::select! {
                arrived = listener.accept() => match arrived {
                    // A client that leaves without a word is its own affair.
                    Ok((stream, _)) => drop(tokio::spawn(Session::new(stream, log.clone()).run())),
                    Err(error) => break Err(error.to_string()),
                },
                _ = tokio::signal::ctrl_c() => break Ok(()),
            }
        };
        let _ = std::fs::remove_file(&args.socket);
        ended
    })
}

/// A file of zeros without a name, for direct writes that are durable when they return.
fn prepared_file(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!(".omnibus-responder-{}", std::process::id()));
    let zeros = File::create_new(&path)?;
    let chunk = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(chunk.len()) {
        zeros.write_all_at(&chunk, at)?;
    }
    zeros.sync_all()?;
    let opened = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | libc::O_DSYNC).open(&path);
    std::fs::remove_file(&path)?;
    opened
}

/// The log, with the clients that wait for the next write.
#[derive(Default)]
struct Log {
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
    some: Condvar,
}

impl Log {
    fn commit(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.push(sender);
        if waiting.len() == 1 {
            self.some.notify_one();
        }
        receiver
    }

    /// Ends with the process. A write that fails leaves its group, and all behind it, without an answer.
    fn write_groups(&self, file: &File, bytes: usize) {
        let mut at = 0;
        let mut buffer = Vec::new();
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.is_empty() {
                self.some.wait(&mut waiting);
            }
            let group = std::mem::take(&mut *waiting);
            drop(waiting);
            let length = (group.len() * bytes).next_multiple_of(BLOCK).min(FILE_BYTES as usize / 2);
            if buffer.len() < length + BLOCK {
                buffer.resize(length + BLOCK, 0x5a_u8);
            }
            let start = buffer.as_ptr().align_offset(BLOCK);
            if at + length as u64 > FILE_BYTES {
                at = 0;
            }
            if let Err(error) = file.write_all_at(&buffer[start..start + length], at) {
                eprintln!("omnibus bench responder: {error}");
                std::process::exit(1);
            }
            at += length as u64;
            for waiter in group {
                // One that has left needs no answer.
                let _ = waiter.send(());
            }
        }
    }
}

struct Session {
    stream: UnixStream,
    log: Arc<Log>,
    input: InBuf,
    out: OutBuf,
    seq: u8,
    caps: Capability,
    /// The kinds of the prepared statements.
    prepared: HashMap<u32, Kind>,
    in_transaction: bool,
    wrote: bool,
}

/// The kind of a statement, as far as it matters here.
#[derive(Clone, Copy)]
enum Kind {
    Begin,
    Commit,
    Write,
    Other,
}

impl Kind {
    fn of(text: &[u8]) -> Kind {
        let word = text.split(|b| !b.is_ascii_alphabetic()).find(|word| !word.is_empty()).unwrap_or_default();
        match word.to_ascii_uppercase().as_slice() {
            b"BEGIN" | b"START" => Kind::Begin,
            b"COMMIT" => Kind::Commit,
            b"INSERT" | b"UPDATE" | b"DELETE" | b"REPLACE" => Kind::Write,
            _ => Kind::Other,
        }
    }
}

/// The definition of a parameter.
fn marker() -> ColumnDef<'static> {
    let empty = || Cow::Borrowed(&b""[..]);
    ColumnDef {
        schema: empty(),
        table: empty(),
        org_table: empty(),
        name: Cow::Borrowed(b"?"),
        org_name: empty(),
        collation: 63,
        length: 0,
        field_type: FieldType::VarString,
        flags: ColumnFlag::default(),
        decimals: 0,
    }
}

impl Session {
    fn new(stream: UnixStream, log: Arc<Log>) -> Session {
        Session {
            stream,
            log,
            input: InBuf::new(),
            out: OutBuf::new(),
            seq: 0,
            caps: Capability::default(),
            prepared: HashMap::new(),
            in_transaction: false,
            wrote: false,
        }
    }

    async fn run(mut self) {
        // How it ends matters to nobody.
        let _ = self.answer_all().await;
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        self.log_in().await?;
        loop {
            self.seq = 0;
            let payload = self.packet().await?;
            match Command::decode(&payload).map_err(io::Error::other)? {
                Command::Quit => return Ok(()),
                Command::StmtClose(id) => {
                    self.prepared.remove(&id);
                    continue;
                }
                Command::StmtSendLongData { .. } => continue,
                Command::StmtPrepare(text) => self.prepare(text),
                Command::StmtExecute(payload) => {
                    let id = payload.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                    self.execute(self.prepared.get(&id).copied().unwrap_or(Kind::Other)).await?;
                }
                Command::Query(text) => self.execute(Kind::of(text)).await?,
                _ => self.ok(),
            }
            self.flush().await?;
        }
    }

    async fn log_in(&mut self) -> io::Result<()> {
        let greeting = Greeting {
            version: b"8.4.0-omnibus-responder".to_vec(),
            connection_id: 1,
            scramble: [b'x'; 20],
            capabilities: Capability::PROTOCOL_41
                .with(Capability::SECURE_CONNECTION)
                .with(Capability::PLUGIN_AUTH)
                .with(Capability::CONNECT_WITH_DB)
                .with(Capability::DEPRECATE_EOF),
            collation: 45,
            status: Status::AUTOCOMMIT,
            plugin: b"mysql_native_password".to_vec(),
        };
        self.caps = greeting.capabilities;
        self.out.packet(|out| greeting.encode(out));
        self.flush().await?;
        self.seq = 1;
        let payload = self.packet().await?;
        let Ok(LoginPacket::Login(login)) = LoginPacket::decode(&payload) else {
            return Err(io::Error::other("no login without TLS"));
        };
        let Login { capabilities, .. } = *login;
        self.caps = self.caps.and(capabilities);
        self.ok();
        self.flush().await
    }

    async fn packet(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let found = self.input.next_packet(&mut self.seq, usize::MAX).map_err(io::Error::other)?;
            if let Some(range) = found {
                self.out.set_seq(self.seq);
                return Ok(self.input.payload(range).to_vec());
            }
            let room = self.input.wanted();
            if self.stream.read_buf(self.input.writable(room)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(self.out.bytes()).await?;
        self.out.sent();
        Ok(())
    }

    fn prepare(&mut self, text: &[u8]) {
        let id = self.prepared.keys().max().map_or(1, |id| id + 1);
        let params = text.iter().filter(|&&b| b == b'?').count() as u16;
        self.prepared.insert(id, Kind::of(text));
        self.out.packet(|out| PrepareOk { id, columns: 0, params, warnings: 0 }.encode(out));
        for _ in 0..params {
            self.out.packet(|out| marker().encode(out));
        }
        if params > 0 && !self.caps.has(Capability::DEPRECATE_EOF) {
            self.out.packet(|out| omnibus_wire::reply::encode_eof(out, 0, Status::AUTOCOMMIT));
        }
    }

    async fn execute(&mut self, kind: Kind) -> io::Result<()> {
        let commits = match kind {
            Kind::Begin => {
                self.in_transaction = true;
                false
            }
            Kind::Commit => {
                self.in_transaction = false;
                std::mem::take(&mut self.wrote)
            }
            Kind::Write => {
                self.wrote |= self.in_transaction;
                !self.in_transaction
            }
            Kind::Other => false,
        };
        if commits {
            self.log.commit().await.map_err(io::Error::other)?;
        }
        self.ok();
        Ok(())
    }

    fn ok(&mut self) {
        let packet = OkPacket { affected: 1, status: Status::AUTOCOMMIT, ..OkPacket::default() };
        let caps = self.caps;
        self.out.packet(|out| packet.encode(out, caps, false));
    }
}
