//! Requests a dump and reads its packets.

use super::connection::Connection;
use super::error::ClientError;
use super::transport::Remote;
use omnibus_format::GtidSet;
use omnibus_format::events::PreviousGtids;
use omnibus_wire::{ErrPacket, OutBuf};

/// The start of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpStart {
    /// At a position of a file of the source; an empty name is its first file.
    File {
        /// File name.
        file: String,
        /// Offset of an event.
        position: u64,
    },
    /// Behind all transactions of a set of MySQL's GTIDs.
    Gtids(GtidSet),
    /// Behind a MariaDB position, which was set in the session before.
    MariadbGtids(String),
}

/// The parameters of a dump.
#[derive(Clone, Debug)]
pub struct DumpOptions {
    /// The server id of this server.
    pub server_id: u32,
    /// The start of the dump.
    pub start: DumpStart,
    /// MariaDB: send the statements that belong to row events.
    pub annotate: bool,
    /// Packets have a semi-synchronous header.
    pub semi_sync: bool,
}

/// One packet of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpPacket<'a> {
    /// A whole event, with its checksum.
    pub event: &'a [u8],
    /// The source waits until this server has stored it safely.
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
    /// Sends the request; the packets follow.
    ///
    /// # Errors
    /// The connection's error.
    pub fn start_dump(&mut self, request: &DumpOptions) -> Result<(), ClientError> {
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

    /// Reads the next packet. Waits.
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
    /// Tells a semi-synchronous source that everything up to this position is stored safely.
    ///
    /// # Errors
    /// The connection's error.
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

fn put_dump(out: &mut Vec<u8>, request: &DumpOptions, position: u32, file: &str) {
    out.push(COM_BINLOG_DUMP);
    out.extend_from_slice(&position.to_le_bytes());
    let flags = if request.annotate { FLAG_ANNOTATE } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&request.server_id.to_le_bytes());
    out.extend_from_slice(file.as_bytes());
}
