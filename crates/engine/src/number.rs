//! Positions that engines know: commit numbers and space ids. Not log positions.

/// A transaction's place in the one total order (COMMIT-1), and its MVCC sequence number.
///
/// 0 is before the first transaction; `CommitNo::MAX` as a snapshot reads the latest installed
/// version, published or not, which only a holder of row locks may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitNo(pub u64);

impl CommitNo {
    /// Before the first transaction.
    pub const ZERO: CommitNo = CommitNo(0);
    /// Reads the newest installed version.
    pub const MAX: CommitNo = CommitNo(u64::MAX);

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> CommitNo {
        CommitNo(self.0 + 1)
    }
}

impl std::fmt::Display for CommitNo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A transaction that is being committed in two phases, before it has a commit number. Given by the server; the log
/// tells which number it got. Not used again before every engine has decided about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrxId(pub u64);

/// The number of one index of one table (or of the catalog). It is the first four bytes, big-endian, of every key of
/// the index. It is never reused, so a dropped space can be reclaimed at any time.
///
/// The top two bits say which engine of an [`EngineSet`](crate::EngineSet) it lives in, its *slot*: slot 0 is the
/// default engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u32);

impl SpaceId {
    /// Slots that ids have room for.
    pub const SLOTS: usize = 4;
    /// Bits of an id below its slot.
    const SLOT_SHIFT: u32 = 30;

    /// The `number`th id of an engine's slot. Bits of the number that do not fit are lost.
    #[must_use]
    pub fn in_slot(slot: u8, number: u32) -> SpaceId {
        SpaceId(u32::from(slot) << Self::SLOT_SHIFT | number & ((1 << Self::SLOT_SHIFT) - 1))
    }

    /// The engine's slot.
    #[must_use]
    pub fn slot(self) -> u8 {
        (self.0 >> Self::SLOT_SHIFT) as u8
    }

    /// The id without its slot.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0 & ((1 << Self::SLOT_SHIFT) - 1)
    }

    /// The slot of the engine that a key lives in.
    #[must_use]
    pub fn slot_of_key(key: &[u8]) -> u8 {
        key.first().map_or(0, |byte| byte >> (Self::SLOT_SHIFT - 24))
    }

    /// The key prefix of this space.
    #[must_use]
    pub fn prefix(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}
