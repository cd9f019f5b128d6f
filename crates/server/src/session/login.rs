//! From accept to the account: greeting, SSLRequest, login packet, authentication.

use crate::account::Account;
use crate::auth::{AuthFailure, Authenticated, MAX_LOGIN_PACKET, authenticate, new_scramble};
use crate::connection::{ConnectionPlace, has_to_change_password};
use crate::errors;
use crate::net::ClientHost;
use crate::net::Gate;
use crate::net::{NetError, PacketStream};
use crate::process::{Activity, Process};
use crate::query_log::{Entry, Operation, Record};
use crate::refusals::Shown;
use crate::server::Server;
use bytes::Bytes;
use omnibus_format::Dialect;
use omnibus_sql::SqlError;
use omnibus_wire::compressed::{Algorithm, Compression};
use omnibus_wire::{Capability, Greeting, Login, LoginPacket, Status};
use std::sync::Arc;

/// A finished login, with the client's wishes.
pub struct LoggedIn {
    /// The account.
    pub account: Arc<Account>,
    /// The one that proved itself, if it acts as that.
    pub proxy: Option<Arc<Account>>,
    /// Name the client gave.
    pub user: String,
    /// Default database asked for.
    pub database: Option<String>,
    /// Collation of the connection.
    pub collation: u16,
    /// How everything behind the login is compressed, and the level that was asked for.
    pub compression: Option<Compression>,
    /// The client's description of itself.
    pub attributes: crate::process::Attributes,
    /// Its password is over.
    pub must_change_password: bool,
    /// Where it is.
    pub place: ConnectionPlace,
}

/// Why nobody did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The client was told.
    Refused,
    /// It went away, or broke the protocol.
    BrokenOff,
}

/// The capabilities that the server offers.
pub const SERVER_CAPABILITIES: Capability = Capability::LONG_PASSWORD
    .with(Capability::FOUND_ROWS)
    .with(Capability::LONG_FLAG)
    .with(Capability::CONNECT_WITH_DB)
    .with(Capability::IGNORE_SPACE)
    .with(Capability::PROTOCOL_41)
    .with(Capability::INTERACTIVE)
    .with(Capability::TRANSACTIONS)
    .with(Capability::SECURE_CONNECTION)
    .with(Capability::LOCAL_FILES)
    .with(Capability::MULTI_STATEMENTS)
    .with(Capability::MULTI_RESULTS)
    .with(Capability::PS_MULTI_RESULTS)
    .with(Capability::PLUGIN_AUTH)
    .with(Capability::CONNECT_ATTRS)
    .with(Capability::PLUGIN_AUTH_LENENC)
    .with(Capability::EXPIRED_PASSWORDS)
    .with(Capability::SESSION_TRACK)
    .with(Capability::DEPRECATE_EOF);

/// Runs the login. On failure the client has been told what it may know, and the caller only closes.
pub async fn login(
    server: &Arc<Server>,
    packets: &mut PacketStream,
    process: &Arc<Process>,
    client: &ClientHost,
    port: u16,
    gate: Gate,
) -> Result<LoggedIn, Failed> {
    let host = match port {
        0 => client.name(),
        port => format!("{}:{port}", client.name()),
    };
    process.identity.lock().host = host;
    let mut user = String::new();
    match attempt(server, packets, client, process.id, gate, &mut user).await {
        Ok(logged_in) => {
            let mut identity = process.identity.lock();
            (identity.user, identity.account) = (logged_in.user.clone(), logged_in.account.plain());
            drop(identity);
            Ok(logged_in)
        }
        Err(AuthFailure::Refused(error)) => {
            let error = errors::in_dialect(error, server.log.dialect());
            log_refusal(server, process.id, client, &user, &error);
            packets.refuse(&error).await;
            Err(Failed::Refused)
        }
        Err(AuthFailure::Net(error)) => {
            tracing::debug!(id = process.id, %error, "login broken off");
            if let NetError::Frame(frame) = error {
                let answer = match frame {
                    omnibus_wire::FrameError::TooBig => errors::packet_too_large(),
                    _ => errors::packets_out_of_order(),
                };
                packets.refuse(&answer).await;
            }
            Err(Failed::BrokenOff)
        }
    }
}

/// `user`: the name that the client gave, as far as it came.
fn log_refusal(server: &Server, id: u32, client: &ClientHost, user: &str, error: &SqlError) {
    if server.query_log.audit.has_connects() {
        for (operation, code) in [(Operation::FailedConnect, error.code), (Operation::Disconnect, 0)] {
            server.query_log.put(Entry::Audit(Box::new(Record {
                at_us: crate::clock::now_us(),
                user: user.into(),
                host: client.name().into(),
                id,
                query: 0,
                operation,
                database: None,
                text: Bytes::new(),
                code,
            })));
        }
    }
    if server.query_log.logs_all() {
        let (at_us, who) = (crate::clock::now_us(), format!("[] @ {} []", client.name()).into());
        let (command, text) = (Activity::Connect.text(), error.message.clone().into());
        server.query_log.put(Entry::General { at_us, who, id, command, text });
    }
    let Shown::Yes(held_back) = server.refusals.note(crate::clock::now_us()) else { return };
    if held_back > 0 {
        tracing::info!("{held_back} more connections were refused before the next one");
    }
    tracing::info!(id, host = client.name(), code = error.code, "connection refused: {}", error.message);
}

fn refused(error: SqlError) -> AuthFailure {
    AuthFailure::Refused(error)
}

async fn attempt(
    server: &Arc<Server>,
    packets: &mut PacketStream,
    client: &ClientHost,
    id: u32,
    gate: Gate,
    named: &mut String,
) -> Result<LoggedIn, AuthFailure> {
    let table = server.accounts.table();
    if !table.knows_host(client) && !server.skips_grants() {
        return Err(refused(errors::host_not_allowed(client.name())));
    }
    let plugin = server.default_plugin();
    let scramble = new_scramble();
    let offered = offered(server);
    let greeting = Greeting {
        version: server.globals.named("version").as_str().into(),
        connection_id: id,
        scramble,
        capabilities: offered,
        collation: server.greeting_collation(),
        status: Status::AUTOCOMMIT,
        plugin: plugin.as_bytes().to_vec(),
    };
    packets.out.packet(|out| greeting.encode(out));
    packets.flush().await?;
    let login = read_login(server, packets).await?;
    let user = String::from_utf8_lossy(&login.user).into_owned();
    let database = login.database.as_ref().map(|name| String::from_utf8_lossy(name).into_owned());
    named.clone_from(&user);
    packets.caps = login.capabilities.and(offered);
    let compression = compression(server, &login, offered).map_err(refused)?;
    if server.requires_secure_transport() && !packets.stream.is_private() {
        return Err(refused(errors::secure_transport_required()));
    }
    let Authenticated { account, proxy } = if server.skips_grants() {
        Authenticated { account: Arc::new(Account::anybody()), proxy: None }
    } else {
        let authenticator = server.authenticator(&table, &plugin);
        let given = login.plugin.as_deref();
        authenticate(&authenticator, packets, scramble, &user, client, given, &login.auth).await?
    };
    let must_change_password =
        has_to_change_password(server, proxy.as_ref().unwrap_or(&account), login.capabilities)
            .map_err(refused)?;
    let place = ConnectionPlace::admit(server, &account, gate).map_err(refused)?;
    let attributes = server.kept_attributes(&login.attrs);
    Ok(LoggedIn {
        attributes,
        account,
        proxy,
        user,
        database,
        collation: login.collation,
        compression,
        must_change_password,
        place,
    })
}

/// Whether `protocol_compression_algorithms` has it.
fn allows(server: &Server, algorithm: &str) -> bool {
    server.globals.named("protocol_compression_algorithms").as_str().split(',').any(|name| name == algorithm)
}

fn offered(server: &Server) -> Capability {
    let mut offered = SERVER_CAPABILITIES;
    if server.tls.is_some() {
        offered = offered.with(Capability::SSL);
    }
    if allows(server, Algorithm::Zlib.name()) {
        offered = offered.with(Capability::COMPRESS);
    }
    // MariaDB's protocol has no such bits.
    if server.log.dialect() == Dialect::Mysql {
        offered = offered.with(Capability::QUERY_ATTRIBUTES);
        if allows(server, Algorithm::Zstd.name()) {
            offered = offered.with(Capability::ZSTD_COMPRESSION);
        }
    }
    offered
}

/// The compression that the client has chosen. It takes for granted what it asks for, so what was not offered is refused.
fn compression(server: &Server, login: &Login, offered: Capability) -> Result<Option<Compression>, SqlError> {
    let asked = |flag: Capability| login.capabilities.has(flag);
    let may = |flag: Capability, algorithm: Algorithm| match offered.has(flag) {
        true => Ok(()),
        false => Err(errors::wrong_compression_algorithm(algorithm.name())),
    };
    if asked(Capability::COMPRESS) {
        may(Capability::COMPRESS, Algorithm::Zlib)?;
        return Ok(Some(Compression::ZLIB));
    }
    if asked(Capability::ZSTD_COMPRESSION) {
        may(Capability::ZSTD_COMPRESSION, Algorithm::Zstd)?;
        if !(1..=22).contains(&login.zstd_level) {
            return Err(errors::wrong_compression_level(login.zstd_level));
        }
        return Ok(Some(Compression { algorithm: Algorithm::Zstd, level: login.zstd_level }));
    }
    match allows(server, "uncompressed") {
        true => Ok(None),
        false => Err(errors::wrong_compression_algorithm("uncompressed")),
    }
}

/// The login packet, inside TLS if the client asked for that first.
async fn read_login(server: &Arc<Server>, packets: &mut PacketStream) -> Result<Login, AuthFailure> {
    let mut secured = false;
    loop {
        let range = packets.read(MAX_LOGIN_PACKET).await?;
        match LoginPacket::decode(packets.payload(range)) {
            Ok(LoginPacket::Login(login)) => return Ok(*login),
            Ok(LoginPacket::Ssl(_)) if !secured => {
                let acceptor = server.tls.as_ref().ok_or_else(|| refused(errors::handshake()))?;
                let early = packets.take_early();
                packets.stream.upgrade(acceptor, early).await.map_err(NetError::Io)?;
                secured = true;
            }
            Ok(LoginPacket::Ssl(_)) | Err(_) => return Err(refused(errors::handshake())),
        }
    }
}
