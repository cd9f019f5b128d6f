//! An authenticated connection to a source, and queries over it.

use super::auth;
use super::compressing::{CompressionChoice, flag};
use super::error::ClientError;
use super::rows;
use super::tls::TlsSettings;
use super::transport::{Remote, Transport};
use crate::limit::EventLimit;
use omnibus_wire::login::encode_ssl_request;
use omnibus_wire::{Capability, ErrPacket, FrameError, Greeting, InBuf, Login, OutBuf};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The maximum size in bytes of an answer to a query.
pub(super) const MAX_ANSWER: usize = 64 << 20;
/// The number of bytes that surround an event in a packet.
const AROUND_EVENT: usize = 1024;
/// The maximum packet size that the login announces; a source's packets may be larger.
const MAX_PACKET: u32 = 1 << 30;
/// `utf8mb4_general_ci`, which every source knows.
const COLLATION: u16 = 45;
const READ_CHUNK: usize = 64 * 1024;

/// The address of a source, and the credentials for it.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// A socket of this machine, instead of host and port.
    pub socket: Option<PathBuf>,
    /// The local address to connect from; `None` for the system's choice.
    pub bind: Option<String>,
    /// Account.
    pub user: String,
    /// Its password. Never shown.
    pub password: String,
    /// TLS.
    pub tls: TlsSettings,
    /// Ask the source for its RSA key over plain TCP.
    pub ask_public_key: bool,
    /// A file with the source's RSA key.
    pub public_key: Option<PathBuf>,
    /// The compressed protocol.
    pub compression: CompressionChoice,
    /// The maximum duration of connecting.
    pub connect_timeout: Duration,
    /// The maximum time that the source may be silent.
    pub net_timeout: Duration,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

/// A row of an answer; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// An authenticated connection.
pub struct Connection {
    transport: Transport,
    input: InBuf,
    output: OutBuf,
    seq: u8,
    chunk: Vec<u8>,
    pub(super) capabilities: Capability,
    greeting: Greeting,
    event_limit: EventLimit,
}

impl Connection {
    /// Connects and logs in. `given_up` is called while connecting; `opened` receives a handle that can end the
    /// connection.
    ///
    /// # Errors
    /// The source cannot be reached or refuses the login.
    pub fn open(
        endpoint: &Endpoint,
        attributes: &[(&str, &str)],
        given_up: &dyn Fn() -> bool,
        opened: impl FnOnce(Remote),
    ) -> Result<Connection, ClientError> {
        let transport = match &endpoint.socket {
            Some(path) => Transport::connect_local(path)?,
            None => Transport::connect(endpoint, given_up)?,
        };
        transport.set_timeout(endpoint.net_timeout)?;
        opened(transport.remote()?);
        Connection::begin(transport, endpoint, attributes)
    }

    /// Logs in as `user` over a stream that is connected to a server of this process. The server may be silent without
    /// limit.
    ///
    /// # Errors
    /// The server refuses the login.
    pub fn over(
        stream: UnixStream,
        user: &str,
        password: &str,
        attributes: &[(&str, &str)],
    ) -> Result<Connection, ClientError> {
        let endpoint =
            Endpoint { user: user.to_owned(), password: password.to_owned(), ..Endpoint::default() };
        Connection::begin(Transport::of_local(stream), &endpoint, attributes)
    }

    fn begin(
        transport: Transport,
        endpoint: &Endpoint,
        attributes: &[(&str, &str)],
    ) -> Result<Connection, ClientError> {
        let mut connection = Connection {
            transport,
            input: InBuf::new(),
            output: OutBuf::new(),
            seq: 0,
            chunk: vec![0; READ_CHUNK],
            capabilities: Capability::default(),
            greeting: Greeting {
                version: Vec::new(),
                connection_id: 0,
                scramble: [0; 20],
                capabilities: Capability::default(),
                collation: 0,
                status: omnibus_wire::Status::default(),
                plugin: Vec::new(),
            },
            event_limit: EventLimit::default(),
        };
        connection.log_in(endpoint, attributes)?;
        Ok(connection)
    }

    fn log_in(&mut self, endpoint: &Endpoint, attributes: &[(&str, &str)]) -> Result<(), ClientError> {
        let packet = self.read_packet()?;
        if packet.first() == Some(&0xFF) {
            return Err(ErrPacket::decode(packet)?.into());
        }
        self.greeting = Greeting::decode(packet)?;
        let offered = self.greeting.capabilities;
        if !offered.has(Capability::PROTOCOL_41.with(Capability::PLUGIN_AUTH)) {
            return Err(ClientError::Unfit("the source is older than MySQL 5.5".into()));
        }
        self.capabilities = Capability::LONG_PASSWORD
            .with(Capability::LONG_FLAG)
            .with(Capability::PROTOCOL_41)
            .with(Capability::TRANSACTIONS)
            .with(Capability::SECURE_CONNECTION)
            .with(Capability::PLUGIN_AUTH)
            .with(offered.and(Capability::CONNECT_ATTRS))
            .with(offered.and(Capability::PLUGIN_AUTH_LENENC));
        let compression = endpoint.compression.of(offered)?;
        if let Some(compression) = compression {
            self.capabilities = self.capabilities.with(flag(compression.algorithm));
        }
        if endpoint.tls.required {
            self.start_tls(endpoint, offered)?;
        }
        let scramble = self.greeting.scramble.to_vec();
        let mut plugin = self.greeting.plugin.clone();
        let proof = auth::answer(&plugin, endpoint.password.as_bytes(), &scramble).unwrap_or_else(|| {
            // The source will ask for another one if the account needs it.
            plugin = omnibus_wire::auth::NATIVE.into();
            omnibus_wire::auth::native::answer(endpoint.password.as_bytes(), &scramble)
        });
        let login = Login {
            capabilities: self.capabilities,
            max_packet: MAX_PACKET,
            collation: COLLATION,
            user: endpoint.user.clone().into_bytes(),
            auth: proof,
            database: None,
            plugin: Some(plugin.clone()),
            zstd_level: compression.map_or(0, |compression| compression.level),
            attrs: attributes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        };
        self.send(|out| login.encode(out))?;
        auth::finish(self, endpoint, plugin, scramble)?;
        match compression {
            Some(_) if self.input.pending() > 0 => {
                Err(ClientError::Malformed("bytes before compression".into()))
            }
            Some(compression) => {
                self.transport.compress(compression);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn start_tls(&mut self, endpoint: &Endpoint, offered: Capability) -> Result<(), ClientError> {
        if !offered.has(Capability::SSL) {
            return Err(ClientError::Tls("the source does not offer it".into()));
        }
        self.capabilities = self.capabilities.with(Capability::SSL);
        let capabilities = self.capabilities;
        self.send(|out| encode_ssl_request(out, capabilities, MAX_PACKET, COLLATION))?;
        if self.input.pending() > 0 {
            return Err(ClientError::Malformed("bytes before TLS".into()));
        }
        let client = endpoint.tls.client(&endpoint.host)?;
        self.transport.start_tls(client).map_err(|e| ClientError::Tls(e.to_string()))
    }

    /// The version string of the greeting, without the prefix that MariaDB puts there for old replicas.
    #[must_use]
    pub fn version(&self) -> String {
        let version = String::from_utf8_lossy(&self.greeting.version);
        let plain = version.strip_prefix("5.5.5-").filter(|v| v.contains("MariaDB"));
        plain.unwrap_or(&version).to_owned()
    }

    /// The connection's id at the source.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.greeting.connection_id
    }

    /// Returns whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    /// Returns whether a password may be sent in clear text: inside TLS, or within this machine's kernel.
    pub(super) fn is_private(&self) -> bool {
        self.transport.is_tls() || self.transport.is_local()
    }

    /// Sends one packet, numbered behind the last one.
    pub(super) fn send(&mut self, f: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        self.output.set_seq(self.seq);
        self.output.packet(f);
        self.seq = self.output.seq();
        let sent = self.transport.write_all(self.output.bytes());
        self.output.sent();
        sent.map_err(ClientError::from)
    }

    /// Sends a command, whose packet numbers begin at 0.
    pub(super) fn command(&mut self, f: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        self.seq = 0;
        self.send(f)
    }

    /// Returns a handle for another thread, which may end the connection, and acknowledge in a dump.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn remote(&self) -> Result<Remote, ClientError> {
        Ok(self.transport.remote()?)
    }

    /// Reads the next packet.
    pub(super) fn read_packet(&mut self) -> Result<&[u8], ClientError> {
        self.read(MAX_ANSWER, false)
    }

    /// Reads the next packet of a dump. Semi-synchronous sources restart the numbering whenever they get an answer,
    /// some earlier and some later than others, so the numbers are not checked.
    pub(super) fn read_dump_packet(&mut self, semi_sync: bool) -> Result<&[u8], ClientError> {
        let longest = self.event_limit.longest() as usize + AROUND_EVENT;
        self.read(longest, semi_sync)
    }

    /// Limits the length of events in a dump; without it the format's limit holds.
    pub fn limit_events(&mut self, limit: EventLimit) {
        self.event_limit = limit;
    }

    /// Returns whether the next packet has arrived, so that reading it does not wait.
    pub(crate) fn has_packet(&self) -> bool {
        self.input.has_packet()
    }

    /// Reads the next packet, of at most `max` bytes.
    pub(super) fn read(&mut self, max: usize, any_number: bool) -> Result<&[u8], ClientError> {
        // MySQL and MariaDB number the packets in compressed frames as they number the frames, which says nothing of what is missing.
        let any_number = any_number || self.transport.is_compressed();
        loop {
            if any_number && let Some(number) = self.input.front_seq() {
                self.seq = number;
            }
            match self.input.next_packet(&mut self.seq, max) {
                Ok(Some(range)) => return Ok(self.input.payload(range)),
                Ok(None) => {}
                Err(FrameError::TooBig) if max != MAX_ANSWER => return Err(ClientError::TooLong),
                Err(error) => return Err(error.into()),
            }
            let n = self.transport.read(&mut self.chunk)?;
            if n == 0 {
                return Err(ClientError::Lost("the source closed the connection".into()));
            }
            self.input.writable(n).extend_from_slice(&self.chunk[..n]);
        }
    }

    /// Executes a statement and returns its rows; none for a statement without a result.
    ///
    /// # Errors
    /// The source's error, or the connection's.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, ClientError> {
        rows::query_with_names(self, sql).map(|(_, rows)| rows)
    }

    /// Returns the first column of the first row as text.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn ask(&mut self, sql: &str) -> Result<Option<String>, ClientError> {
        let rows = self.query(sql)?;
        let value = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        Ok(value.map(|v| String::from_utf8_lossy(&v).into_owned()))
    }

    /// Executes a command that `f` writes, and to which the source answers OK or an error.
    pub(super) fn expect_ok(&mut self, f: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        self.command(f)?;
        let packet = self.read_packet()?;
        match packet.first() {
            Some(0xFF) => Err(ErrPacket::decode(packet)?.into()),
            Some(0x00) => Ok(()),
            _ => Err(ClientError::Malformed("neither OK nor an error".into())),
        }
    }
}
