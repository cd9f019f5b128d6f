//! The first byte of a client's packet and what follows it. One variant per command.

use crate::buf::{DecodeError, Reader};

/// A decoded command, borrowing from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// COM_QUIT: the client leaves; no reply.
    Quit,
    /// COM_INIT_DB: change the default database.
    InitDb(&'a [u8]),
    /// COM_QUERY: one or more statements as text.
    Query(&'a [u8]),
    /// COM_FIELD_LIST: the columns of a table.
    FieldList {
        /// Table name.
        table: &'a [u8],
        /// LIKE pattern of columns, mostly empty.
        wild: &'a [u8],
    },
    /// COM_STATISTICS: a line of text.
    Statistics,
    /// COM_PROCESS_INFO: SHOW PROCESSLIST.
    ProcessInfo,
    /// COM_PROCESS_KILL: KILL.
    ProcessKill(u32),
    /// COM_REFRESH: FLUSH by bit mask.
    Refresh(u8),
    /// COM_SHUTDOWN.
    Shutdown,
    /// COM_DEBUG.
    Debug,
    /// COM_PING.
    Ping,
    /// COM_CHANGE_USER; `Login::decode_change_user` reads the payload.
    ChangeUser(&'a [u8]),
    /// COM_BINLOG_DUMP, payload undecoded.
    BinlogDump(&'a [u8]),
    /// COM_BINLOG_DUMP_GTID, payload undecoded.
    BinlogDumpGtid(&'a [u8]),
    /// COM_REGISTER_SLAVE, payload undecoded.
    RegisterSlave(&'a [u8]),
    /// COM_STMT_PREPARE: one statement with `?`.
    StmtPrepare(&'a [u8]),
    /// COM_STMT_EXECUTE; `stmt::Execute` reads the payload.
    StmtExecute(&'a [u8]),
    /// COM_STMT_SEND_LONG_DATA: no reply.
    StmtSendLongData {
        /// Statement.
        id: u32,
        /// Parameter, from 0.
        param: u16,
        /// A piece of its value.
        data: &'a [u8],
    },
    /// COM_STMT_CLOSE: no reply.
    StmtClose(u32),
    /// COM_STMT_RESET: drop long data and the cursor.
    StmtReset(u32),
    /// COM_SET_OPTION: 0 turns multi-statements on, 1 off.
    SetOption(u16),
    /// COM_STMT_FETCH: rows of a cursor.
    StmtFetch {
        /// Statement.
        id: u32,
        /// The number of rows.
        rows: u32,
    },
    /// COM_RESET_CONNECTION: a fresh session for the same account.
    ResetConnection,
    /// A command that is not known or not spoken here.
    Unknown(u8),
}

impl<'a> Command<'a> {
    /// Reads a packet. An empty packet is malformed.
    pub fn decode(payload: &'a [u8]) -> Result<Command<'a>, DecodeError> {
        let mut r = Reader::new(payload);
        Ok(match r.u8("command")? {
            0x01 => Command::Quit,
            0x02 => Command::InitDb(r.take_rest()),
            0x03 => Command::Query(r.take_rest()),
            0x04 => Command::FieldList { table: r.nul_or_rest(), wild: r.take_rest() },
            0x07 => Command::Refresh(r.u8("refresh mask")?),
            0x08 => Command::Shutdown,
            0x09 => Command::Statistics,
            0x0A => Command::ProcessInfo,
            0x0C => Command::ProcessKill(r.u32("connection id")?),
            0x0D => Command::Debug,
            0x0E => Command::Ping,
            0x11 => Command::ChangeUser(r.take_rest()),
            0x12 => Command::BinlogDump(r.take_rest()),
            0x15 => Command::RegisterSlave(r.take_rest()),
            0x16 => Command::StmtPrepare(r.take_rest()),
            0x17 => Command::StmtExecute(r.take_rest()),
            0x18 => Command::StmtSendLongData {
                id: r.u32("statement id")?,
                param: r.u16("parameter number")?,
                data: r.take_rest(),
            },
            0x19 => Command::StmtClose(r.u32("statement id")?),
            0x1A => Command::StmtReset(r.u32("statement id")?),
            0x1B => Command::SetOption(r.u16("option")?),
            0x1C => Command::StmtFetch { id: r.u32("statement id")?, rows: r.u32("row count")? },
            0x1E => Command::BinlogDumpGtid(r.take_rest()),
            0x1F => Command::ResetConnection,
            n => Command::Unknown(n),
        })
    }
}
