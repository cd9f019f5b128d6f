//! Reads a log file group by group: an event is returned only if all bytes of its group are those that were written.
//!
//! Behind the head of a file with groups (`omnibus_format::group`) stands a group, or the ROTATE or STOP that ends the
//! file; anything else is the torn end of the file. A file of an earlier version or another server has no groups and is
//! read as plain events. Used by recovery, `omnibus check` and the check in the background. A dump reads what was
//! durable a moment ago and does not need this. Any thread that may block.

use crate::error::ReadError;
use crate::mutant::{self, Mutant};
use crate::position::LogOffset;
use crate::scan::{Next, ReadFile, ScanEnd, Torn, TornReason};
use omnibus_format::group::{Chain, ChainStart, GROUP_HEAD_LEN, GROUP_MARK, GroupHead};
use omnibus_format::header::HEADER_LEN;
use omnibus_format::{Checksum, EventHeader, EventType, LogPrivate, Private};

/// Bytes of a group that are read at once.
const PIECE: usize = 1 << 20;
/// The search distance of a mutant, [`Mutant::SearchBounded`].
const BOUND: usize = 512;

/// The state at the end of a file's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupsEnd {
    /// File offset behind the last group.
    pub end: u64,
    /// The value of the checksum chain at that offset.
    pub chain: u32,
}

/// The progress through the groups of a file.
#[derive(Clone, Debug)]
struct Groups {
    chain: Chain,
    start: ChainStart,
    /// The end of the group that is being read, where the next one begins.
    until: u64,
    /// A ROTATE or STOP was read at that place.
    closed: bool,
    last: GroupsEnd,
}

/// A file that is read group by group.
#[derive(Debug)]
pub struct GroupedFile {
    file: ReadFile,
    len: LogOffset,
    groups: Option<Groups>,
    /// The reason why no further group follows.
    stopped: Option<TornReason>,
}

impl GroupedFile {
    /// Continues with `file`, which was just opened.
    ///
    /// # Errors
    /// The file can not be read, or its head is damaged.
    pub fn new(mut file: ReadFile) -> Result<GroupedFile, ReadError> {
        let groups = Groups::of(&mut file)?;
        file.rewind();
        Ok(GroupedFile { len: file.limit(), file, groups, stopped: None })
    }

    /// The file's length when it was opened.
    #[must_use]
    // A file without a head is none.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> LogOffset {
        self.len
    }

    /// The checksum algorithm of the events that follow.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.file.checksum()
    }

    /// The start of the checksum chain in the file's head; `None` for a file without groups.
    #[must_use]
    pub fn chain_start(&self) -> Option<ChainStart> {
        self.groups.as_ref().map(|groups| groups.start)
    }

    /// The end of the groups read so far; `None` for a file without groups.
    #[must_use]
    pub fn groups_end(&self) -> Option<GroupsEnd> {
        self.groups.as_ref().map(|groups| groups.last)
    }

    /// Returns whether a ROTATE or STOP was read where the next group would begin.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.closed)
    }

    /// Returns whether the reader stands between two groups.
    #[must_use]
    pub fn is_between_groups(&self) -> bool {
        self.groups.as_ref().is_some_and(|groups| self.file.position().offset.0 == groups.last.end)
    }

    /// Reads the next event.
    ///
    /// # Errors
    /// The file can not be read.
    // Not an iterator: the event borrows the buffer.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Next<'_>, ReadError> {
        if let Some(groups) = &mut self.groups
            && self.file.position().offset.0 == groups.until
        {
            if self.stopped.is_none() {
                match groups.enter(&self.file)? {
                    Entry::Group | Entry::Closing => {}
                    Entry::Nothing(reason) => self.stopped = Some(reason),
                }
            }
            if let Some(reason) = self.stopped {
                let position = self.file.position();
                let end = position.offset >= self.len;
                let torn = ScanEnd::Torn(Torn { position, reason });
                return Ok(Next::End(if end { ScanEnd::Clean(position) } else { torn }));
            }
        }
        self.file.next()
    }
}

/// The content at the place where a group should begin.
enum Entry {
    Group,
    /// A ROTATE or STOP.
    Closing,
    Nothing(TornReason),
}

impl Groups {
    /// Reads the file's head. `None` if it has no chain, so that the file has no groups.
    fn of(file: &mut ReadFile) -> Result<Option<Groups>, ReadError> {
        let mut before = Vec::new();
        loop {
            let Next::Event(event) = file.next()? else { return Ok(None) };
            match event.header.event_type {
                EventType::FORMAT_DESCRIPTION => continue,
                EventType::PREVIOUS_GTIDS | EventType::MARIADB_GTID_LIST => {
                    before.extend_from_slice(event.bytes);
                    continue;
                }
                _ => {}
            }
            let Some(LogPrivate::FileStart { chain: Some(start), .. }) = LogPrivate::of_event(&event) else {
                return Ok(None);
            };
            let until = event.end();
            let own = event.bytes.get(..HEADER_LEN + event.body.len()).unwrap_or(event.bytes);
            if start.head_crc(&before, own) != start.crc {
                let mut position = file.position();
                position.offset = LogOffset(until);
                return Err(ReadError::Damaged { position, reason: TornReason::BadGroup });
            }
            let chain = start.chain();
            let last = GroupsEnd { end: until, chain: chain.last() };
            return Ok(Some(Groups { chain, start, until, closed: false, last }));
        }
    }

    /// Reads and verifies the whole group that begins at `until`.
    fn enter(&mut self, file: &ReadFile) -> Result<Entry, ReadError> {
        let (at, limit) = (self.until, file.limit().0);
        let mut head = [0; GROUP_HEAD_LEN];
        let have = file.read_at(at, &mut head)?;
        let head = &head[..have];
        // A cut that a power cut met may have freed the end of a block and left the file's length: its zeros are none in clear text.
        let rest = usize::try_from(file.unit_end(at) - at).unwrap_or(have).min(have);
        if head.iter().all(|&byte| byte == 0) || (rest > 0 && head[rest..].iter().all(|&byte| byte == 0)) {
            return Ok(Entry::Nothing(TornReason::Preallocated));
        }
        let Ok(header) = EventHeader::decode(head) else {
            let (needed, available) = (HEADER_LEN as u64, have as u64);
            return Ok(Entry::Nothing(TornReason::Torn { needed, available }));
        };
        let end = at.saturating_add(header.size.into());
        if matches!(header.event_type, EventType::ROTATE | EventType::STOP) && !self.closed {
            // Its frame is looked at like any other event's.
            (self.closed, self.until) = (true, end);
            return Ok(Entry::Closing);
        }
        let Some(group) = group_head(head).filter(|group| !self.closed && self.chain.expects(group, at))
        else {
            return Ok(Entry::Nothing(TornReason::BadGroup));
        };
        if end.saturating_add(group.len) > limit {
            let (needed, available) = (header.size as u64 + group.len, limit - at);
            return Ok(Entry::Nothing(TornReason::Torn { needed, available }));
        }
        if !self.is_whole(file, &group, end)? {
            return Ok(Entry::Nothing(TornReason::BadGroup));
        }
        self.until = end + group.len;
        self.last = GroupsEnd { end: self.until, chain: self.chain.last() };
        Ok(Entry::Group)
    }

    fn is_whole(&mut self, file: &ReadFile, group: &GroupHead, from: u64) -> Result<bool, ReadError> {
        let (mut hash, mut at, end) = (self.chain.hash(), from, from + group.len);
        let mut piece = vec![0; PIECE.min(usize::try_from(group.len).unwrap_or(PIECE))];
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
            let read = file.read_at(at, &mut piece[..wanted])?;
            if read == 0 {
                return Ok(false);
            }
            hash.update(&piece[..read]);
            at += read as u64;
        }
        Ok(self.chain.follow(group, hash))
    }
}

/// Decodes the group head in an event's first bytes.
fn group_head(event: &[u8]) -> Option<GroupHead> {
    match Private::decode(event.get(HEADER_LEN..)?) {
        Ok(Some(Private::Log(LogPrivate::Group { head, .. }))) => Some(head),
        _ => None,
    }
}

/// The result of searching a file with groups behind its torn place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// The offset of a group that was written later, and the newest commit number that was durable when it was written.
    /// Of several groups, the one with the newest such commit.
    pub claim: Option<(LogOffset, u64)>,
    /// File offset behind the last byte that is not zero.
    pub data_end: u64,
}

impl ReadFile {
    /// Searches everything from `from` to the end of the file for heads of groups. Each head is sealed with the file's
    /// salt, so its content is trustworthy whether or not its group is whole.
    ///
    /// # Errors
    /// The file can not be read.
    pub fn groups_behind(&self, from: LogOffset, salt: u64) -> Result<Behind, ReadError> {
        let mut found = Behind { claim: None, data_end: from.0 };
        let (mut at, zeros) = (from.0, vec![0; PIECE]);
        let mut window = vec![0; PIECE];
        loop {
            let have = self.read_at(at, &mut window)?;
            let bytes = &window[..if mutant::is(Mutant::SearchBounded) { have.min(BOUND) } else { have }];
            if bytes != &zeros[..bytes.len()] {
                let data = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                found.data_end = found.data_end.max(at + data as u64);
                found.look(&bytes[..data], bytes, at, salt);
            }
            if have < PIECE || mutant::is(Mutant::SearchBounded) {
                return Ok(found);
            }
            // A head may lie across the edge.
            at += (PIECE - GROUP_HEAD_LEN) as u64;
        }
    }
}

impl Behind {
    fn look(&mut self, data: &[u8], all: &[u8], at: u64, salt: u64) {
        for mark in (HEADER_LEN..data.len()).filter(|&mark| data[mark..].starts_with(GROUP_MARK)) {
            let start = mark - HEADER_LEN;
            let Some(head) = group_head(&all[start..]) else { continue };
            let offset = at + start as u64;
            if head.is_sealed(salt, offset) && self.claim.is_none_or(|(_, durable)| head.durable > durable) {
                self.claim = Some((LogOffset(offset), head.durable));
            }
        }
    }
}
