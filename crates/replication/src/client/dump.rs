//! Asking for a dump and reading its packets.

use super::connection::Connection;
use super::error::ClientError;
use super::transport::Remote;
use omnibus_format::GtidSet;
use omnibus_format::events::PreviousGtids;
use omnibus_wire::{ErrPacket, OutBuf};

/// Where a dump begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpStart {
    /// In a file of the source; an empty name is its first one.
    File {
        /// File name.
        file: String,
        /// Offset of an event.
        position: u64,
    },
    /// Behind everything of a set: MySQL's GTIDs.
    Gtids(GtidSet),
    /// Behind a MariaDB position, which the session was told already.
    MariadbGtids(String),
}

/// A dump.
#[derive(Clone, Debug)]
pub struct DumpRequest {
    /// Our server id.
    pub server_id: u32,
    /// Where it begins.
    pub start: DumpStart,
    /// MariaDB: with the statements behind row events.
    pub annotate: bool,
    /// Packets have a semi-synchronous header.
    pub semi_sync: bool,
}

/// One packet of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpPacket<'a> {
    /// A whole event, with its checksum.
    pub event: &'a [u8],
    /// The source waits until we have it safe.
    pub wants_ack: bool,
}

const COM_BINLOG_DUMP: u8 = 0x12;
const COM_BINLOG_DUMP_GTID: u8 = 0x1E;
/// MariaDB: send ANNOTATE_ROWS.
const FLAG_ANNOTATE: u16 = 2;
/// The GTID set decides, not the position.
const FLAG_THROUGH_GTID: u16 = 4;
const SEMI_SYNC_MAGIC: u8 = 0xEF;

impl Connection {
    /// Sends the request; packets follow.
    ///
    /// # Errors
    /// Of the connection.
    pub fn start_dump(&mut self, request: &DumpRequest) -> Result<(), ClientError> {
        match &request.start {
            DumpStart::File { file, position } => {
                let position = u32::try_from(*position).map_err(|_| {
                    ClientError::Unfit(format!("position {position} is beyond what a dump can be asked for"))
                })?;
                self.command(|out| put_dump(out, request, position, file))
            }
            DumpStart::MariadbGtids(_) => self.command(|out| put_dump(out, request, 4, "")),
            DumpStart::Gtids(set) => self.command(|out| {
                out.push(COM_BINLOG_DUMP_GTID);
                out.extend_from_slice(&FLAG_THROUGH_GTID.to_le_bytes());
                out.extend_from_slice(&request.server_id.to_le_bytes());
                out.extend_from_slice(&0u32.to_le_bytes());
                out.extend_from_slice(&4u64.to_le_bytes());
                let mut encoded = Vec::new();
                PreviousGtids { set: set.clone() }.encode(&mut encoded);
                out.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
                out.extend_from_slice(&encoded);
            }),
        }
    }

    /// The next packet. Waits.
    ///
    /// # Errors
    /// The source's error, the end of the dump, or the connection's.
    pub fn next_event(&mut self, semi_sync: bool) -> Result<DumpPacket<'_>, ClientError> {
        let packet = self.read_dump_packet(semi_sync)?;
        match packet.first() {
            Some(0x00) => {}
            Some(0xFF) => return Err(ErrPacket::decode(packet)?.into()),
            Some(0xFE) if packet.len() < 9 => return Err(ClientError::Ended),
            _ => return Err(ClientError::Malformed("not a packet of a dump".into())),
        }
        let rest = &packet[1..];
        match rest {
            [SEMI_SYNC_MAGIC, wants_ack, event @ ..] if semi_sync => {
                Ok(DumpPacket { event, wants_ack: *wants_ack != 0 })
            }
            event => Ok(DumpPacket { event, wants_ack: false }),
        }
    }
}

impl Remote {
    /// Tells a semi-synchronous source that everything up to here is safe.
    ///
    /// # Errors
    /// Of the connection.
    pub fn acknowledge(&self, file: &[u8], position: u64) -> Result<(), ClientError> {
        // Numbered from 0, whatever the dump's numbers are.
        let mut out = OutBuf::new();
        out.packet(|out| {
            out.push(SEMI_SYNC_MAGIC);
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(file);
        });
        Ok(self.write_all(out.bytes())?)
    }
}

fn put_dump(out: &mut Vec<u8>, request: &DumpRequest, position: u32, file: &str) {
    out.push(COM_BINLOG_DUMP);
    out.extend_from_slice(&position.to_le_bytes());
    let flags = if request.annotate { FLAG_ANNOTATE } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&request.server_id.to_le_bytes());
    out.extend_from_slice(file.as_bytes());
}
