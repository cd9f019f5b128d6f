//! One connection of a receiver: introduces itself, asks for the dump, and puts what comes into the queue, checked and cut into
//! transactions.
//!
//! On the receiver's thread.

use super::{End, Memory, Refuses, Resume, Shared};
use crate::client::{Connection, DumpRequest, SourceFacts};
use crate::replica::group::{Feed, Grouper, Item, Received};
use crate::replica::position::SourcePosition;
use crate::replica::status::{ErrorAt, IoRunning, TrxTimes, now_us};
use omnibus_format::{
    AnyGtid, Checksum, EventHeader, EventType, FormatDescription, RawEvent, ScanErrorKind, ScanRules,
    parse_event,
};

impl Shared {
    /// One connection, from login to its end.
    pub(super) fn session(&self, memory: &mut Memory, refuses: &Refuses) -> End {
        let mut grouper = None;
        let end = match self.talk(memory, refuses, &mut grouper) {
            Ok(never) => match never {},
            Err(end) => end,
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
        let request = DumpRequest {
            server_id: settings.me.server_id,
            start,
            annotate: true,
            semi_sync: facts.semi_sync,
        };
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
            if let (false, Some(trx)) = (was_open, grouper.open_trx()) {
                let began = TrxTimes::begin(*trx);
                self.status.update(|s| s.queueing = began);
            }
            if let Feed::Item(Item::Trx(received) | Item::First(received)) = &feed {
                admit(received, refuses)?;
            }
            self.hand_on(feed, grouper, memory)?;
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

    /// The connection works.
    fn heard(&self, event: &RawEvent<'_>, memory: &mut Memory) {
        memory.attempts = 0;
        if matches!(event.header.event_type, EventType::HEARTBEAT | EventType::HEARTBEAT_V2) {
            self.status.update(|s| {
                s.heartbeats += 1;
                s.last_heartbeat_us = now_us();
            });
        }
    }

    fn hand_on(&self, feed: Feed, grouper: &Grouper, memory: &mut Memory) -> Result<(), End> {
        let Feed::Item(item) = feed else { return Ok(()) };
        let (gtid, whole) = match &item {
            Item::Trx(received) => (received.trx.gtid, true),
            Item::First(received) => (received.trx.gtid, false),
            Item::More { end, .. } => (memory.open, end.is_some()),
            Item::Gone => (None, false),
            Item::Moved(..) => (None, true),
        };
        memory.open = gtid;
        // One that is a single event begins and ends at once.
        let single = match &item {
            Item::Trx(received) => Some(received.trx),
            _ => None,
        };
        if !self.queue.push(item, memory.epoch) {
            return Err(if self.control.lock().stop { End::Stop } else { End::Restart });
        }
        if whole {
            memory.resume.advance(gtid, grouper.at());
        }
        self.status.update(|s| {
            s.read = grouper.at().clone();
            if let (true, Some(AnyGtid::Mariadb(gtid))) = (whole, &gtid) {
                s.read_gtids.set(*gtid);
            }
            if let (None, Some(trx)) = (s.queueing.trx, single) {
                s.queueing = TrxTimes::begin(trx);
            }
            if s.queueing.trx.is_some() && !grouper.is_open() {
                s.queueing.end(&mut s.queued);
            }
            if let (true, Some(AnyGtid::Mysql { source, gno })) = (whole, gtid) {
                s.retrieved.add(source, gno);
            }
        });
        Ok(())
    }
}

/// A transaction that cannot be taken ends the connection in front of it.
fn admit(received: &Received, refuses: &Refuses) -> Result<(), End> {
    match refuses(received.trx.gtid) {
        None => Ok(()),
        Some((code, what)) => {
            let at = &received.start;
            Err(End::Fatal(code, format!("{what}, at file {}, position {}.", at.file, at.position)))
        }
    }
}

fn attributes() -> [(&'static str, &'static str); 3] {
    [("program_name", "omnibus"), ("_client_name", "omnibus"), ("_client_role", "binary_log_listener")]
}

/// An event that is whole and undamaged, and follows the checksums that the source's files say.
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

/// A FORMAT_DESCRIPTION that the source changed for a dump from the middle of a file without checksums. MariaDB leaves the
/// checksum that this one event has all the same as it was in the file.
fn is_changed_head(bytes: &[u8]) -> bool {
    EventHeader::decode(bytes)
        .is_ok_and(|header| header.event_type == EventType::FORMAT_DESCRIPTION && header.log_pos == 0)
        && FormatDescription::checksum_of_event(bytes) == Ok(Some(Checksum::None))
}
