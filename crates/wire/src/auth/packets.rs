//! AuthSwitchRequest and AuthMoreData, both directions.

use crate::buf::{DecodeError, Reader, put_nul_bytes};

/// The server asks for another authentication plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSwitch {
    /// Plugin name.
    pub plugin: Vec<u8>,
    /// Its first data: a scramble, without the final NUL.
    pub data: Vec<u8>,
}

impl AuthSwitch {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(0xFE);
        put_nul_bytes(out, &self.plugin);
        out.extend_from_slice(&self.data);
        out.push(0);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<AuthSwitch, DecodeError> {
        let mut r = Reader::new(payload);
        if r.u8("authentication switch header")? != 0xFE {
            return Err(DecodeError::Malformed("authentication switch header"));
        }
        let plugin = r.nul_bytes("authentication plugin")?.to_vec();
        let data = r.take_rest();
        Ok(AuthSwitch { plugin, data: data.strip_suffix(&[0]).unwrap_or(data).to_vec() })
    }
}

/// Appends a packet of plugin data from the server.
pub fn encode_auth_more(out: &mut Vec<u8>, data: &[u8]) {
    out.push(0x01);
    out.extend_from_slice(data);
}

/// Reads a packet of plugin data.
pub fn decode_auth_more(payload: &[u8]) -> Result<&[u8], DecodeError> {
    payload.strip_prefix(&[0x01]).ok_or(DecodeError::Malformed("authentication data"))
}
