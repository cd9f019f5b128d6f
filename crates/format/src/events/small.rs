//! Events with small bodies: XID, ROTATE, INTVAR, RAND, ROWS_QUERY, INCIDENT, heartbeats, XA.

use crate::cursor::Reader;
use crate::error::DecodeError;

/// XID: the transaction is committed. Last event of a transactional commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid(pub u64);

impl Xid {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(Reader::new(body).u64("xid")?))
    }
}

/// ROTATE: the log continues in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// The position in it at which to continue.
    pub position: u64,
    /// The next file's name, without directory.
    pub file: &'a [u8],
}

impl<'a> Rotate<'a> {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(self.file);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        Ok(Self { position: r.u64("rotate position")?, file: r.rest() })
    }
}

/// INTVAR type of LAST_INSERT_ID.
pub const INTVAR_LAST_INSERT_ID: u8 = 1;
/// INTVAR type of INSERT_ID.
pub const INTVAR_INSERT_ID: u8 = 2;

/// INTVAR: LAST_INSERT_ID or INSERT_ID for the statement that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntVar {
    /// `INTVAR_*`.
    pub kind: u8,
    /// The value.
    pub value: u64,
}

impl IntVar {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        out.extend_from_slice(&self.value.to_le_bytes());
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        Ok(Self { kind: r.u8("intvar type")?, value: r.u64("intvar value")? })
    }
}

/// RAND: seeds of RAND() for the statement that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rand(pub u64, pub u64);

impl Rand {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
        out.extend_from_slice(&self.1.to_le_bytes());
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        Ok(Self(r.u64("first seed")?, r.u64("second seed")?))
    }
}

/// ROWS_QUERY: the statement behind the row events that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsQuery<'a>(pub &'a [u8]);

impl<'a> RowsQuery<'a> {
    /// Appends the body. The leading length byte wraps for long statements; readers ignore it and
    /// take everything up to the event's end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.0.len().min(255) as u8);
        out.extend_from_slice(self.0);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        r.u8("statement length")?;
        Ok(Self(r.rest()))
    }
}

/// INCIDENT: something happened that the log does not contain; replicas stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident<'a> {
    /// 1 = lost events.
    pub code: u16,
    /// The text for people.
    pub message: &'a [u8],
}

impl<'a> Incident<'a> {
    /// Appends the body; messages are cut at 255 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let message = &self.message[..self.message.len().min(255)];
        out.extend_from_slice(&self.code.to_le_bytes());
        out.push(message.len() as u8);
        out.extend_from_slice(message);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let code = r.u16("incident code")?;
        Ok(Self { code, message: r.short_bytes("incident message")? })
    }
}

/// HEARTBEAT and HEARTBEAT_V2: the source is alive and at this position. Never in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// The source's current file.
    pub file: &'a [u8],
    /// Position in it; `None` in version 1, where it is the header's `log_pos` (32 bits).
    pub position: Option<u64>,
}

impl<'a> Heartbeat<'a> {
    const FILE_FIELD: u8 = 1;
    const POSITION_FIELD: u8 = 2;

    /// Appends the version 1 body.
    pub fn encode_v1(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.file);
    }

    /// Appends the version 2 body: tagged fields, for positions past 4 GiB.
    pub fn encode_v2(&self, out: &mut Vec<u8>) {
        out.push(Self::FILE_FIELD);
        crate::cursor::put_lenenc_bytes(out, self.file);
        if let Some(position) = self.position {
            out.push(Self::POSITION_FIELD);
            crate::cursor::put_lenenc(out, crate::cursor::lenenc_size(position) as u64);
            crate::cursor::put_lenenc(out, position);
        }
        out.push(0);
    }

    /// Decodes a version 1 body.
    pub fn decode_v1(body: &'a [u8]) -> Self {
        Self { file: body, position: None }
    }

    /// Decodes a version 2 body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode_v2(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let mut heartbeat = Self { file: b"", position: None };
        while !r.is_empty() {
            let field = r.u8("heartbeat field")?;
            if field == 0 {
                break;
            }
            let value = r.lenenc_bytes("heartbeat field")?;
            match field {
                Self::FILE_FIELD => heartbeat.file = value,
                Self::POSITION_FIELD => {
                    heartbeat.position = Some(Reader::new(value).lenenc("heartbeat position")?);
                }
                _ => {}
            }
        }
        Ok(heartbeat)
    }
}

/// XA_PREPARE: ends the first phase of an XA transaction (or commits it in one phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XaPrepare<'a> {
    /// XA COMMIT ... ONE PHASE.
    pub one_phase: bool,
    /// Format id of the XID.
    pub format_id: u32,
    /// Global transaction id.
    pub gtrid: &'a [u8],
    /// Branch qualifier.
    pub bqual: &'a [u8],
}

impl<'a> XaPrepare<'a> {
    /// Appends the body; both parts are at most 64 bytes by the XA standard.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.one_phase));
        out.extend_from_slice(&self.format_id.to_le_bytes());
        out.extend_from_slice(&(self.gtrid.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.bqual.len() as u32).to_le_bytes());
        out.extend_from_slice(self.gtrid);
        out.extend_from_slice(self.bqual);
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let one_phase = r.u8("one phase flag")? != 0;
        let format_id = r.u32("format id")?;
        let (gtrid, bqual) = (r.u32("gtrid length")?, r.u32("bqual length")?);
        if gtrid > 64 || bqual > 64 {
            return Err(r.error("XID longer than 64 bytes"));
        }
        Ok(Self {
            one_phase,
            format_id,
            gtrid: r.take(gtrid as usize, "gtrid")?,
            bqual: r.take(bqual as usize, "bqual")?,
        })
    }
}
