//! The exchange itself: from the first answer of a client to an account, or to error 1045.

use super::{FastCache, RsaKey};
use crate::account::{AccessTable, Account, Usage};
use crate::errors;
use crate::net::{ClientHost, NetError, PacketStream};
use omnibus_sql::SqlError;
use omnibus_wire::auth::{AuthSwitch, NATIVE, caching_sha2, encode_auth_more, native};
use std::sync::Arc;

/// Largest packet before a login is over.
pub const MAX_LOGIN_PACKET: usize = 64 * 1024;

/// A hash that no password has: an unknown user takes as long as a wrong password (AUTH-1).
const NOBODY: &[u8] = b"$A$005$....................xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// The account and client of a finished login.
#[derive(Debug)]
pub struct Authenticated {
    /// The account whose rights count.
    pub account: Arc<Account>,
    /// The one that matched and proved itself, if it acts as that.
    pub proxy: Option<Arc<Account>>,
}

/// Why nobody did.
#[derive(Debug)]
pub enum AuthFailure {
    /// The client gets this error and is let go.
    Refused(SqlError),
    /// The connection broke.
    Net(NetError),
}

impl From<NetError> for AuthFailure {
    fn from(error: NetError) -> Self {
        AuthFailure::Net(error)
    }
}

/// The parts of the server that the exchange needs.
pub struct Authenticator<'a> {
    /// The accounts.
    pub table: &'a AccessTable,
    /// The fast-authentication cache.
    pub cache: &'a FastCache,
    /// The RSA key.
    pub rsa: &'a RsaKey,
    /// How often accounts were refused.
    pub usage: &'a Usage,
    /// The plugin that the greeting named.
    pub default_plugin: &'a str,
    /// Whether an account with the native plugin acts as the one that it is a proxy for.
    pub proxies: bool,
}

/// One client's side of it.
struct Exchange<'a, 'b> {
    server: &'a Authenticator<'a>,
    packets: &'b mut PacketStream,
    scramble: [u8; 20],
    account: Option<Arc<Account>>,
    used_password: bool,
}

/// Runs the exchange. `answer` is the first answer, made by `plugin` for `scramble`. On success
/// nothing was sent yet: the caller sends OK.
pub async fn authenticate(
    server: &Authenticator<'_>,
    packets: &mut PacketStream,
    scramble: [u8; 20],
    user: &str,
    client: &ClientHost,
    plugin: Option<&[u8]>,
    answer: &[u8],
) -> Result<Authenticated, AuthFailure> {
    let account = server.table.find(user, client);
    let wanted = match &account {
        Some(account) => account.credentials.plugin.clone(),
        None => server.table.decoy_plugin(user).to_owned(),
    };
    let mut exchange = Exchange { server, packets, scramble, account, used_password: !answer.is_empty() };
    let given = plugin.map_or(NATIVE.as_bytes(), |p| p);
    // A client that knows its own plugin but not the greeting's answers with nothing and waits for a scramble (MariaDB
    // replicas do).
    let unasked = answer.is_empty() && given != server.default_plugin.as_bytes();
    let fits = given == wanted.as_bytes() && !unasked;
    let answer = if fits { answer.to_vec() } else { exchange.switch(&wanted).await? };
    exchange.used_password |= !matches!(answer.as_slice(), [] | [0]);
    let good = match wanted.as_str() {
        NATIVE => exchange.native(&answer),
        _ => exchange.caching_sha2(&answer).await?,
    };
    let used = exchange.used_password;
    let denied = || AuthFailure::Refused(errors::access_denied(user, client.name(), used));
    if let Some(account) = &exchange.account {
        let (host, now) = (client.name(), crate::clock::now_us());
        let locked = server.usage.check_lock(account, &host, now);
        locked.and_then(|()| server.usage.login(account, good, &host, now)).map_err(AuthFailure::Refused)?;
    }
    let account = exchange.account.filter(|_| good).ok_or_else(denied)?;
    if account.locked {
        return Err(AuthFailure::Refused(errors::account_locked(user, client.name())));
    }
    if !account.require.is_met(&packets.stream.transport()) {
        return Err(denied());
    }
    let acts_as =
        server.table.proxied_by(&account).filter(|_| server.proxies && account.credentials.plugin == NATIVE);
    Ok(match acts_as {
        Some(other) => Authenticated { account: other, proxy: Some(account) },
        None => Authenticated { account, proxy: None },
    })
}

impl Exchange<'_, '_> {
    /// Asks for another plugin's answer, to a new scramble.
    async fn switch(&mut self, plugin: &str) -> Result<Vec<u8>, AuthFailure> {
        self.scramble = super::new_scramble();
        let packet = AuthSwitch { plugin: plugin.as_bytes().to_vec(), data: self.scramble.to_vec() };
        self.packets.out.packet(|out| packet.encode(out));
        self.read().await
    }

    async fn read(&mut self) -> Result<Vec<u8>, AuthFailure> {
        self.packets.flush().await?;
        let range = self.packets.read(MAX_LOGIN_PACKET).await?;
        Ok(self.packets.payload(range).to_vec())
    }

    /// Its stored passwords: the first, and the second if there is one; none without an account.
    fn stored(&self) -> Vec<Vec<u8>> {
        let Some(account) = &self.account else { return Vec::new() };
        let second = Some(&account.credentials.second_auth).filter(|second| !second.is_empty());
        [Some(&account.credentials.auth), second].into_iter().flatten().cloned().collect()
    }

    fn native(&self, answer: &[u8]) -> bool {
        self.stored().iter().any(|stored| match stored.as_slice() {
            [] => answer.is_empty(),
            stored => {
                native::parse_hash(stored).is_some_and(|hash| native::check(&hash, &self.scramble, answer))
            }
        })
    }

    async fn caching_sha2(&mut self, answer: &[u8]) -> Result<bool, AuthFailure> {
        let empty = matches!(answer, [] | [0]);
        let mut stored = self.stored();
        if empty {
            return Ok(stored.iter().any(Vec::is_empty));
        }
        stored.retain(|stored| !stored.is_empty());
        let name = self.account.as_ref().map_or_else(String::new, |a| a.plain());
        if stored.iter().any(|stored| self.server.cache.check(&name, stored, &self.scramble, answer)) {
            self.more(&[caching_sha2::FAST_AUTH_OK]);
            return Ok(true);
        }
        self.more(&[caching_sha2::FULL_AUTH]);
        let Some(password) = self.password().await? else { return Ok(false) };
        let found = crate::net::blocking(|| {
            // An account without a password refuses one as slowly as others refuse a wrong one.
            if stored.is_empty() {
                let _ = caching_sha2::check_full(NOBODY, &password);
            }
            stored.iter().find(|stored| caching_sha2::check_full(stored, &password))
        });
        if let Some(stored) = found {
            self.server.cache.remember(&name, stored, &password);
        }
        Ok(found.is_some())
    }

    fn more(&mut self, data: &[u8]) {
        self.packets.out.packet(|out| encode_auth_more(out, data));
    }

    /// The password itself (AUTH-2), without the NUL that clients end it with.
    async fn password(&mut self) -> Result<Option<Vec<u8>>, AuthFailure> {
        let mut packet = self.read().await?;
        // Asserts AUTH-2: from elsewhere only what the key has encrypted is taken.
        if !self.packets.stream.is_private() {
            let Some(key) = self.server.rsa.get().await else { return Ok(None) };
            if packet == [caching_sha2::REQUEST_PUBLIC_KEY] {
                self.more(key.public_pem().as_bytes());
                packet = self.read().await?;
            }
            let Some(plain) = crate::net::blocking(|| key.decrypt(&packet)) else { return Ok(None) };
            packet = plain;
            caching_sha2::mask(&mut packet, &self.scramble);
        }
        Ok(packet.strip_suffix(&[0]).map(<[u8]>::to_vec))
    }
}
