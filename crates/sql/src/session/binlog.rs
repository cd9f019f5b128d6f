//! BINLOG 'base64': what mariadb-binlog and mysqlbinlog print for row events, applied like statements.
//!
//! The events are FORMAT_DESCRIPTION, which a session must be given first, then per statement TABLE_MAP and rows events of
//! any server. What they mean is [`crate::row_events`]'s. The changes belong to the session's transaction and are logged as
//! its own. On a thread that may block. Not replication: nothing here knows of GTIDs.

use super::{Call, StatementContext};
use crate::api::{AccessCheck, Mode, Outcome, VariableScope};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::row_events::{Conversions, RowApplier, RowRules};
use bytes::Bytes;
use omnibus_format::events::{FormatDescription, RowsKind, XaPrepare};
use omnibus_format::header::HEADER_LEN;
use omnibus_format::{DecodeError, EventHeader, EventType};
use omnibus_replication::changes::{ApplyError, ApplyTarget, EventDecoder, Position};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};
use omnibus_value::Value;

/// The state of the decoder of a session's BINLOG statements: each goes on where the one before has ended.
#[derive(Default)]
pub(super) struct BinlogInput {
    /// Bytes of checksum behind each event, once there was a FORMAT_DESCRIPTION.
    checksum: Option<usize>,
    decoder: EventDecoder,
    rows: RowApplier,
}

/// The session's transaction as a target of row events.
struct Direct<'a, 's> {
    cx: &'a mut StatementContext<'s>,
    rows: &'a mut RowApplier,
    rules: RowRules,
    access: &'a dyn AccessCheck,
    /// The interrupt that an error of the decoder stands for.
    interrupt: Option<Interrupt>,
}

impl Direct<'_, '_> {
    fn done(&mut self, result: ExecResult<()>) -> Result<(), ApplyError> {
        result.map_err(|interrupt| {
            self.interrupt = Some(interrupt);
            ApplyError::new(1105, "")
        })
    }
}

impl ApplyTarget for Direct<'_, '_> {
    type Ticket = ();

    fn begin(&mut self, _: &TrxHeader) -> Result<(), ApplyError> {
        Ok(())
    }
    fn statement(&mut self, _: &dyn StatementView) -> Result<(), ApplyError> {
        self.done(Err(refused(EventType::QUERY).into()))
    }
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        let table = rows.table();
        let name = |bytes| String::from_utf8_lossy(bytes);
        let allowed = self.access.check_rows(&name(table.database()), &name(table.name()));
        let (state, trx) = (&mut *self.cx.state, &mut *self.cx.trx);
        let result =
            allowed.map_err(Interrupt::from).and_then(|()| self.rows.apply(state, trx, rows, &self.rules));
        self.done(result)
    }
    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        Ok(())
    }
    fn prepare(&mut self, _: &XaPrepare<'_>, _: Option<&Position>) -> Result<(), ApplyError> {
        Ok(())
    }
    fn rollback(&mut self) {}
}

/// BINLOG. The server has checked the privilege.
pub(super) fn execute(cx: &mut StatementContext<'_>, text: &Bytes, call: &Call<'_>) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    if cx.state.settings.server_read_only {
        return Err(SqlError::option_prevents_statement("--read-only").into());
    }
    let bytes = omnibus_value::base64::decode_runs(text)
        .ok_or_else(|| SqlError::new(1575, b"HY000", "Decoding of base64 string failed"))?;
    cx.enter();
    let mut input = std::mem::take(&mut cx.replayed.binlog_input);
    let result = input.events(cx, &bytes, call.access);
    cx.replayed.binlog_input = input;
    result.map(|()| Outcome::ok())
}

impl BinlogInput {
    fn events(
        &mut self,
        cx: &mut StatementContext<'_>,
        mut rest: &[u8],
        access: &dyn AccessCheck,
    ) -> ExecResult<()> {
        while !rest.is_empty() {
            let header = EventHeader::decode(rest).map_err(damaged)?;
            let size = header.size as usize;
            if size < HEADER_LEN || size > rest.len() {
                return Err(damaged("an event's size").into());
            }
            let (event, behind) = rest.split_at(size);
            rest = behind;
            self.event(cx, &header, event, access)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        cx: &mut StatementContext<'_>,
        header: &EventHeader,
        event: &[u8],
        access: &dyn AccessCheck,
    ) -> ExecResult<()> {
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let checksum = FormatDescription::checksum_of_event(event).map_err(damaged)?;
            let cut = if checksum.is_some() { 4 } else { 0 };
            let body = event.get(HEADER_LEN..event.len() - cut).unwrap_or_default();
            self.decoder = EventDecoder::new(&FormatDescription::decode(body).map_err(damaged)?);
            self.checksum = Some(checksum.map_or(0, |checksum| checksum.len()));
            return Ok(());
        }
        let Some(cut) = self.checksum else {
            let name = header.event_type.name();
            let message = format!(
                "The BINLOG statement of type `{name}` was not preceded by a format description BINLOG statement."
            );
            return Err(SqlError::new(1609, b"HY000", message).into());
        };
        let body = event
            .get(HEADER_LEN..event.len().saturating_sub(cut))
            .ok_or_else(|| damaged("an event's size"))?;
        if !is_taken(header.event_type) {
            return Err(refused(header.event_type).into());
        }
        let conversions =
            match cx.state.connection.host.variable(VariableScope::Global, "replica_type_conversions") {
                Ok((Value::Bytes(text), _)) => Conversions::parse(&String::from_utf8_lossy(&text)),
                _ => Conversions::default(),
            };
        let mut target = Direct {
            access,
            rows: &mut self.rows,
            rules: RowRules { idempotent: cx.state.settings.rbr_idempotent, conversions },
            cx,
            interrupt: None,
        };
        let result = self.decoder.change(header, body, &mut target);
        match (result, target.interrupt) {
            (_, Some(interrupt)) => Err(interrupt),
            (Err(error), None) => Err(damaged(error.message.as_str()).into()),
            (Ok(()), None) => Ok(()),
        }
    }
}

/// Events that change rows, and what belongs to them.
fn is_taken(event_type: EventType) -> bool {
    use EventType as E;
    RowsKind::of(event_type).is_some()
        || matches!(
            event_type,
            E::TABLE_MAP
                | E::ROWS_QUERY
                | E::IGNORABLE
                | E::MARIADB_ANNOTATE_ROWS
                | E::PRE_GA_WRITE_ROWS
                | E::PRE_GA_UPDATE_ROWS
                | E::PRE_GA_DELETE_ROWS
                | E::MARIADB_WRITE_ROWS_COMPRESSED_V1
                | E::MARIADB_UPDATE_ROWS_COMPRESSED_V1
                | E::MARIADB_DELETE_ROWS_COMPRESSED_V1
                | E::MARIADB_WRITE_ROWS_COMPRESSED
                | E::MARIADB_UPDATE_ROWS_COMPRESSED
                | E::MARIADB_DELETE_ROWS_COMPRESSED
        )
}

fn refused(event_type: EventType) -> SqlError {
    let name = event_type.name();
    let message = format!(
        "malformed or very old relay log which does not have FormatDescriptor or an event of type {name}"
    );
    SqlError::new(1730, b"HY000", message)
}

fn damaged(what: impl Into<Damage>) -> SqlError {
    let Damage(what) = what.into();
    SqlError::new(1064, b"42000", format!("The BINLOG statement's events are damaged: {what}"))
}

/// The fault of damaged events, in words.
struct Damage(String);

impl From<&str> for Damage {
    fn from(what: &str) -> Damage {
        Damage(what.to_owned())
    }
}

impl From<DecodeError> for Damage {
    fn from(error: DecodeError) -> Damage {
        Damage(error.to_string())
    }
}
