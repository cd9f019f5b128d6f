//! The server's first packet (protocol version 10), both directions.

use crate::buf::{DecodeError, Reader, put_nul_bytes};
use crate::consts::{Capability, Status};

/// Random bytes that a login answers.
pub type Scramble = [u8; 20];

/// The initial handshake packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Version string, such as `8.4.0-omnibus`.
    pub version: Vec<u8>,
    /// Connection id; KILL takes it.
    pub connection_id: u32,
    /// Salt of the password exchange. No byte is 0, since old clients stop there.
    pub scramble: Scramble,
    /// The server's capabilities.
    pub capabilities: Capability,
    /// The server's default collation, low byte.
    pub collation: u8,
    /// Session status.
    pub status: Status,
    /// Default authentication plugin.
    pub plugin: Vec<u8>,
}

impl Greeting {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(10);
        put_nul_bytes(out, &self.version);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.scramble[..8]);
        out.push(0);
        let caps = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&caps[..2]);
        out.push(self.collation);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&caps[2..]);
        out.push(self.scramble.len() as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.scramble[8..]);
        out.push(0);
        put_nul_bytes(out, &self.plugin);
    }

    /// Reads the payload, as a replica or a test client does.
    pub fn decode(payload: &[u8]) -> Result<Greeting, DecodeError> {
        let mut r = Reader::new(payload);
        if r.u8("protocol version")? != 10 {
            return Err(DecodeError::Malformed("protocol version"));
        }
        let version = r.nul_bytes("server version")?.to_vec();
        let connection_id = r.u32("connection id")?;
        let mut scramble = [0; 20];
        scramble[..8].copy_from_slice(r.take(8, "scramble")?);
        r.u8("filler")?;
        let low = r.u16("capabilities")?;
        let collation = r.u8("collation")?;
        let status = Status(r.u16("status")?);
        let high = r.u16("capabilities")?;
        let capabilities = Capability(u32::from(high) << 16 | u32::from(low));
        let auth_len = r.u8("scramble length")?;
        r.take(10, "filler")?;
        let tail = r.take(usize::from(auth_len.max(21)) - 8, "scramble")?;
        scramble[8..].copy_from_slice(&tail[..12]);
        let plugin = r.nul_or_rest().to_vec();
        Ok(Greeting { version, connection_id, scramble, capabilities, collation, status, plugin })
    }
}
