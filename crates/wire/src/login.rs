//! The client's answer to the greeting: SSLRequest, HandshakeResponse41, and COM_CHANGE_USER, which
//! carries the same facts in another order. Both directions.

use crate::buf::{DecodeError, Reader, put_lenenc, put_lenenc_bytes, put_nul_bytes};
use crate::consts::Capability;

/// Most connection attributes kept from one login; more are read and dropped.
const MAX_ATTRS: usize = 64;

/// A client's login packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The client's capabilities.
    pub capabilities: Capability,
    /// Largest packet the client takes; 0 in COM_CHANGE_USER.
    pub max_packet: u32,
    /// Collation id of the connection.
    pub collation: u16,
    /// Account name.
    pub user: Vec<u8>,
    /// The first answer of the authentication plugin.
    pub auth: Vec<u8>,
    /// Default database.
    pub database: Option<Vec<u8>>,
    /// The plugin that made `auth`.
    pub plugin: Option<Vec<u8>>,
    /// zstd's level, of a client that compresses with it.
    pub zstd_level: u8,
    /// Facts about the client program.
    pub attrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Either of the two packets that may answer a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginPacket {
    /// TLS first; the login comes again inside.
    Ssl(Capability),
    /// A login.
    Login(Box<Login>),
}

impl LoginPacket {
    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<LoginPacket, DecodeError> {
        let mut r = Reader::new(payload);
        let capabilities = Capability(r.u32("capabilities")?);
        if !capabilities.has(Capability::PROTOCOL_41) {
            return Err(DecodeError::Malformed("protocol (older than 4.1)"));
        }
        let max_packet = r.u32("maximum packet")?;
        let collation = u16::from(r.u8("collation")?);
        r.take(23, "filler")?;
        if r.is_empty() && capabilities.has(Capability::SSL) {
            return Ok(LoginPacket::Ssl(capabilities));
        }
        let user = r.nul_bytes("user name")?.to_vec();
        let auth = if capabilities.has(Capability::PLUGIN_AUTH_LENENC) {
            r.lenenc_bytes("authentication data")?.to_vec()
        } else if capabilities.has(Capability::SECURE_CONNECTION) {
            let n = usize::from(r.u8("authentication data")?);
            r.take(n, "authentication data")?.to_vec()
        } else {
            r.nul_or_rest().to_vec()
        };
        let mut login = Login {
            capabilities,
            max_packet,
            collation,
            user,
            auth,
            database: None,
            plugin: None,
            zstd_level: 0,
            attrs: vec![],
        };
        if capabilities.has(Capability::CONNECT_WITH_DB) && !r.is_empty() {
            login.database = Some(r.nul_or_rest().to_vec()).filter(|d| !d.is_empty());
        }
        login.decode_tail(&mut r)?;
        if capabilities.has(Capability::ZSTD_COMPRESSION) {
            login.zstd_level = r.u8("compression level")?;
        }
        Ok(LoginPacket::Login(Box::new(login)))
    }
}

impl Login {
    fn decode_tail(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if self.capabilities.has(Capability::PLUGIN_AUTH) && !r.is_empty() {
            self.plugin = Some(r.nul_or_rest().to_vec());
        }
        if self.capabilities.has(Capability::CONNECT_ATTRS) && !r.is_empty() {
            let mut attrs = Reader::new(r.lenenc_bytes("connection attributes")?);
            while !attrs.is_empty() {
                let key = attrs.lenenc_bytes("connection attribute name")?;
                let value = attrs.lenenc_bytes("connection attribute value")?;
                if self.attrs.len() < MAX_ATTRS {
                    self.attrs.push((key.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Reads COM_CHANGE_USER's payload after the command byte. The capabilities are the session's.
    pub fn decode_change_user(payload: &[u8], capabilities: Capability) -> Result<Login, DecodeError> {
        let mut r = Reader::new(payload);
        let user = r.nul_bytes("user name")?.to_vec();
        let n = usize::from(r.u8("authentication data")?);
        let auth = r.take(n, "authentication data")?.to_vec();
        let database = Some(r.nul_or_rest().to_vec()).filter(|d| !d.is_empty());
        let collation = if r.len() >= 2 { r.u16("collation")? } else { 0 };
        let mut login = Login {
            capabilities,
            max_packet: 0,
            collation,
            user,
            auth,
            database,
            plugin: None,
            zstd_level: 0,
            attrs: vec![],
        };
        login.decode_tail(&mut r)?;
        Ok(login)
    }

    /// Appends the login packet's payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_head(out, self.capabilities, self.max_packet, self.collation);
        put_nul_bytes(out, &self.user);
        if self.capabilities.has(Capability::PLUGIN_AUTH_LENENC) {
            put_lenenc_bytes(out, &self.auth);
        } else if !self.capabilities.has(Capability::SECURE_CONNECTION) {
            put_nul_bytes(out, &self.auth);
        } else {
            out.push(self.auth.len().min(255) as u8);
            out.extend_from_slice(&self.auth[..self.auth.len().min(255)]);
        }
        if self.capabilities.has(Capability::CONNECT_WITH_DB) {
            put_nul_bytes(out, self.database.as_deref().unwrap_or_default());
        }
        if self.capabilities.has(Capability::PLUGIN_AUTH) {
            put_nul_bytes(out, self.plugin.as_deref().unwrap_or_default());
        }
        if self.capabilities.has(Capability::CONNECT_ATTRS) {
            let mut attrs = Vec::new();
            for (key, value) in &self.attrs {
                put_lenenc_bytes(&mut attrs, key);
                put_lenenc_bytes(&mut attrs, value);
            }
            put_lenenc(out, attrs.len() as u64);
            out.extend_from_slice(&attrs);
        }
        if self.capabilities.has(Capability::ZSTD_COMPRESSION) {
            out.push(self.zstd_level);
        }
    }
}

/// Appends an SSLRequest's payload.
pub fn encode_ssl_request(out: &mut Vec<u8>, capabilities: Capability, max_packet: u32, collation: u16) {
    encode_head(out, capabilities.with(Capability::SSL), max_packet, collation);
}

fn encode_head(out: &mut Vec<u8>, capabilities: Capability, max_packet: u32, collation: u16) {
    out.extend_from_slice(&capabilities.0.to_le_bytes());
    out.extend_from_slice(&max_packet.to_le_bytes());
    out.push(collation.min(255) as u8);
    out.extend_from_slice(&[0; 23]);
}
