//! Session state changes inside an OK packet (CLIENT_SESSION_TRACK). Encoding only.

use crate::buf::put_lenenc_bytes;

/// One change of the session's state that a client tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A system variable got a value.
    SystemVariable {
        /// Its name.
        name: &'a [u8],
        /// Its text.
        value: &'a [u8],
    },
    /// The default database changed.
    Schema(&'a [u8]),
    /// GTIDs of what the session committed (`session_track_gtids`).
    Gtids(&'a [u8]),
}

impl StateChange<'_> {
    /// Appends type, length and data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match self {
            StateChange::SystemVariable { name, value } => {
                put_lenenc_bytes(&mut data, name);
                put_lenenc_bytes(&mut data, value);
                0
            }
            StateChange::Schema(name) => {
                put_lenenc_bytes(&mut data, name);
                1
            }
            StateChange::Gtids(set) => {
                data.push(0); // encoding: plain text
                put_lenenc_bytes(&mut data, set);
                3
            }
        };
        out.push(kind);
        put_lenenc_bytes(out, &data);
    }
}
