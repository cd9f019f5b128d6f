//! One connection of a receiver: introduces this server, requests the dump, and pushes the checked transactions into
//! the queue.
//!
//! The transactions from one read of the socket are pushed at once, so that the applier is woken, and the status
//! updated, once for all of them.
//!
//! Runs on the receiver's thread.

use super::{End, Memory, Refuses, Resume, Shared};
use crate::client::{Connection, DumpOptions, SourceFacts};
use crate::model::TrxHeader;
use crate::replica::group::{Feed, Grouper, Item, Received};
use crate::replica::position::SourcePosition;
use crate::replica::status::{ErrorAt, IoRunning, TrxTimes, now_us};
use omnibus_format::{
    AnyGtid, Checksum, EventHeader, EventType, FormatDescription, RawEvent, ScanErrorKind, ScanRules,
    parse_event,
};

impl Shared {
    /// Runs one connection, from login to its end.
    pub(super) fn session(&self, memory: &mut Memory, refuses: &Refuses) -> End {
        let mut grouper = None;
        let mut batch = Batch::new(memory.epoch);
        let end = match self.talk(memory, refuses, &mut grouper, &mut batch) {
            Ok(never) => match never {},
            Err(end) => end,
        };
        // What came before the end is applied.
        let end = match &grouper {
            Some(grouper) => self.hand_over(&mut batch, grouper).err().unwrap_or(end),
            None => end,
        };
        self.status.update(|s| s.queueing = TrxTimes::default());
        self.control.lock().remote = None;
        if grouper.as_mut().is_some_and(|grouper: &mut Grouper| grouper.abandon().is_some()) {
            self.queue.force(Item::Gone);
        }
        end
    }

    fn talk(
        &self,
        memory: &mut Memory,
        refuses: &Refuses,
        grouper: &mut Option<Grouper>,
        batch: &mut Batch,
    ) -> Result<std::convert::Infallible, End> {
        let settings = &self.settings;
        let given_up = || {
            let control = self.control.lock();
            control.stop || control.restart
        };
        let opened = |remote| self.expose(remote, false);
        let mut connection = Connection::open(&settings.endpoint, &attributes(), &given_up, opened)?;
        let start = memory.resume.start();
        let facts = connection.introduce(&settings.me, &start)?;
        self.expose(connection.remote()?, facts.semi_sync);
        if let (Some(before), Some(now)) = (&memory.uuid, &facts.uuid)
            && before != now
        {
            return Err(End::Fatal(
                1593,
                format!(
                    "the source's server_uuid was {before} and is {now} now: this is another server; \
                     START REPLICA if that is meant"
                ),
            ));
        }
        memory.uuid.clone_from(&facts.uuid);
        let request = DumpOptions {
            server_id: settings.me.server_id,
            start,
            annotate: true,
            semi_sync: facts.semi_sync,
        };
        connection.limit_events(settings.event_limit.clone());
        connection.start_dump(&request)?;
        self.began(&facts);
        let at = match &memory.resume {
            Resume::File(at) => at.clone(),
            _ => SourcePosition::default(),
        };
        let grouper = grouper.insert(Grouper::new(at, settings.piece));
        let mut rules =
            ScanRules { checksum: facts.checksum, verify_position: false, ..ScanRules::default() };
        loop {
            if batch.bytes >= BATCH || !connection.has_packet() {
                self.hand_over(batch, grouper)?;
            }
            let packet = connection.next_event(facts.semi_sync)?;
            let event = checked(packet.event, &mut rules, grouper.at())?;
            self.heard(&event, memory);
            let was_open = grouper.is_open();
            let feed = grouper.feed(&event, packet.wants_ack).map_err(|error| {
                End::Fatal(
                    1594,
                    format!("the event at {} of the source cannot be read: {error}", grouper.at()),
                )
            })?;
            if !was_open {
                batch.began_us = now_us();
            }
            if let Feed::Item(Item::Trx(received) | Item::First(received)) = &feed {
                admit(received, refuses)?;
            }
            if let Feed::Item(item) = feed {
                batch.add(item, grouper.at(), memory);
            }
        }
    }

    fn began(&self, facts: &SourceFacts) {
        tracing::info!(
            channel = %self.settings.channel,
            source = ?self.settings.endpoint,
            version = %facts.version,
            "replication receiver connected"
        );
        self.status.update(|s| {
            s.io = IoRunning::Yes;
            s.io_state = "Waiting for source to send event";
            s.io_error = ErrorAt::default();
            s.source_id = facts.server_id;
            s.source_uuid = facts.uuid.clone().unwrap_or_default();
            s.source_version.clone_from(&facts.version);
            s.clock_ahead_s = facts.clock_ahead_s;
            s.semi_sync = facts.semi_sync;
        });
    }

    /// Notes that the connection works.
    fn heard(&self, event: &RawEvent<'_>, memory: &mut Memory) {
        memory.attempts = 0;
        if matches!(event.header.event_type, EventType::HEARTBEAT | EventType::HEARTBEAT_V2) {
            self.status.update(|s| {
                s.heartbeats += 1;
                s.last_heartbeat_us = now_us();
            });
        }
    }

    /// Pushes the batch into the queue, and updates the status of the transaction that has only begun.
    fn hand_over(&self, batch: &mut Batch, grouper: &Grouper) -> Result<(), End> {
        let comes = !batch.items.is_empty();
        if comes && !self.queue.push(&mut batch.items, batch.epoch) {
            // Not received: it is asked for again.
            (batch.gtids, batch.last) = (Vec::new(), None);
            return Err(if self.control.lock().stop { End::Stop } else { End::Restart });
        }
        batch.bytes = 0;
        let open = grouper.open_trx().copied();
        self.status.update(|s| {
            if comes {
                s.read.clone_from(&batch.at);
            }
            if let Some((trx, began_us)) = batch.last.take() {
                s.queued = TrxTimes { trx: Some(trx), began_us, ended_us: now_us() };
            }
            if open != s.queueing.trx {
                let began_us = if open.is_some() { batch.began_us } else { 0 };
                s.queueing = TrxTimes { trx: open, began_us, ended_us: 0 };
            }
            for gtid in batch.gtids.drain(..) {
                match gtid {
                    AnyGtid::Mariadb(gtid) => s.read_gtids.set(gtid),
                    AnyGtid::Mysql { source, gno } => s.retrieved.add(source, gno),
                }
            }
        });
        Ok(())
    }
}

/// Checks that a transaction can be taken; otherwise the connection ends in front of it.
fn admit(received: &Received, refuses: &Refuses) -> Result<(), End> {
    match refuses(received.trx.gtid) {
        None => Ok(()),
        Some((code, what)) => {
            let at = &received.start;
            Err(End::Fatal(code, format!("{what}, at file {}, position {}.", at.file, at.position)))
        }
    }
}

/// The number of bytes of transactions from which they are pushed, even if more can be read.
const BATCH: usize = 64 << 10;

/// Received items that are not in the queue yet.
struct Batch {
    epoch: u64,
    items: Vec<Item>,
    bytes: usize,
    /// The position behind the last of them.
    at: SourcePosition,
    /// The ids of those that are complete.
    gtids: Vec<AnyGtid>,
    /// The last one that is complete, and the time when it began.
    last: Option<(TrxHeader, i64)>,
    /// The time when the last one began, complete or not.
    began_us: i64,
}

impl Batch {
    fn new(epoch: u64) -> Batch {
        let (items, gtids, at) = (Vec::new(), Vec::new(), SourcePosition::default());
        Batch { epoch, items, bytes: 0, at, gtids, last: None, began_us: 0 }
    }

    /// Adds an item, which `memory` then counts as received. If the batch cannot be pushed, that memory is discarded.
    fn add(&mut self, item: Item, at: &SourcePosition, memory: &mut Memory) {
        let (gtid, whole) = match &item {
            Item::Trx(received) => {
                self.last = Some((received.trx, self.began_us));
                (received.trx.gtid, true)
            }
            Item::First(received) => {
                memory.open = Some(received.trx);
                (received.trx.gtid, false)
            }
            Item::More { end, .. } => (memory.open.and_then(|trx| trx.gtid), end.is_some()),
            Item::Gone => (None, false),
            Item::Moved(..) => (None, true),
        };
        if whole {
            if matches!(item, Item::More { .. }) {
                self.last = memory.open.take().map(|trx| (trx, self.began_us));
            }
            memory.resume.advance(gtid, at);
            self.gtids.extend(gtid);
        }
        self.bytes += item.size();
        self.at.clone_from(at);
        self.items.push(item);
    }
}

fn attributes() -> [(&'static str, &'static str); 3] {
    [("program_name", "omnibus"), ("_client_name", "omnibus"), ("_client_role", "binary_log_listener")]
}

/// Parses an event, which must be whole, undamaged, and follow the checksum rules of the source's files.
fn checked<'a>(bytes: &'a [u8], rules: &mut ScanRules, at: &SourcePosition) -> Result<RawEvent<'a>, End> {
    let error = |code: u16, what: String| Err(End::Fatal(code, format!("{what}, at {at} of the source")));
    let verified = ScanRules { verify_checksum: !is_changed_head(bytes), ..*rules };
    let event = match parse_event(bytes, 0, &verified) {
        Ok(Some(event)) if event.bytes.len() == bytes.len() => event,
        Ok(_) => return error(1595, "an event that is not as long as it says".into()),
        Err(wrong) => {
            return match wrong.kind {
                ScanErrorKind::BadChecksum { .. } => error(
                    1744,
                    format!(
                        "Replication event checksum verification failed while reading from network: {}",
                        wrong.kind
                    ),
                ),
                kind => error(1595, format!("a damaged event from the source: {kind}")),
            };
        }
    };
    if event.header.event_type == EventType::FORMAT_DESCRIPTION {
        let found = FormatDescription::checksum_of_event(event.bytes);
        rules.checksum = found.ok().flatten().unwrap_or(Checksum::None);
    }
    Ok(event)
}

/// Returns whether this is a FORMAT_DESCRIPTION that the source changed for a dump from the middle of a file without
/// checksums. MariaDB leaves this event's own checksum as it was in the file.
fn is_changed_head(bytes: &[u8]) -> bool {
    EventHeader::decode(bytes)
        .is_ok_and(|header| header.event_type == EventType::FORMAT_DESCRIPTION && header.log_pos == 0)
        && FormatDescription::checksum_of_event(bytes) == Ok(Some(Checksum::None))
}
