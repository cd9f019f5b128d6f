//! Lock modes: who goes with whom, and what two of them held together amount to.
//!
//! Inside, a mode is one bit, so that "conflicts with any of these" is one AND.

/// The mode of a record lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowMode {
    /// `FOR SHARE`, SERIALIZABLE reads, duplicate checks.
    Shared,
    /// `FOR UPDATE`, UPDATE, DELETE.
    Exclusive,
}

/// The mode of a table lock. Statements take an intention mode for the length of their transaction, as a metadata lock.
/// DDL takes `Exclusive`, `LOCK TABLES ... READ` takes `Shared`, `LOCK TABLES ... WRITE` takes `Exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableMode {
    /// Reads of the table.
    IntentShared,
    /// Writes to the table.
    IntentExclusive,
    /// Others may not write.
    Shared,
    /// Others may not use the table at all.
    Exclusive,
}

/// One bit of a mode set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u8);

impl Mode {
    pub(crate) const S: Mode = Mode(1);
    pub(crate) const X: Mode = Mode(2);
    /// Exclusive, on a key that is not in the engine yet.
    pub(crate) const INSERT: Mode = Mode(4);
    const IS: Mode = Mode(8);
    pub(crate) const IX: Mode = Mode(16);
    pub(crate) const TABLE_S: Mode = Mode(32);
    /// Shared and intention exclusive: a `Shared` holder that writes.
    const SIX: Mode = Mode(64);
    pub(crate) const TABLE_X: Mode = Mode(128);

    const ROWS: u8 = 0b0000_0111;
    const TABLES: u8 = 0b1111_1000;

    /// The modes that another transaction must not hold beside this one.
    pub(crate) fn conflicts(self) -> u8 {
        match self {
            Mode::S => Mode::X.0 | Mode::INSERT.0,
            Mode::IS => Mode::TABLE_X.0,
            Mode::IX => Mode::TABLE_S.0 | Mode::SIX.0 | Mode::TABLE_X.0,
            Mode::TABLE_S => Mode::IX.0 | Mode::SIX.0 | Mode::TABLE_X.0,
            Mode::SIX => Mode::TABLES & !Mode::IS.0,
            Mode::TABLE_X => Mode::TABLES,
            _ => Mode::ROWS,
        }
    }

    /// Returns whether two transactions may not hold these modes together.
    pub(crate) fn conflicts_with(self, other: Mode) -> bool {
        self.conflicts() & other.0 != 0
    }

    /// Returns whether this mode permits writing to the table.
    pub(crate) fn writes(self) -> bool {
        self.0 & (Mode::IX.0 | Mode::SIX.0 | Mode::TABLE_X.0) != 0
    }

    /// Returns whether this mode excludes some transactions that use the table row by row.
    pub(crate) fn keeps_users_out(self) -> bool {
        self.0 & (Mode::TABLE_S.0 | Mode::SIX.0 | Mode::TABLE_X.0) != 0
    }

    /// The number of the mode's bit.
    pub(crate) fn index(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// Returns whether the mode is compatible with no other.
    pub(crate) fn excludes_all(self) -> bool {
        matches!(self.conflicts(), Mode::ROWS | Mode::TABLES)
    }

    /// The weakest mode that grants both.
    pub(crate) fn join(self, other: Mode) -> Mode {
        if self.0 | other.0 == Mode::IX.0 | Mode::TABLE_S.0 {
            return Mode::SIX;
        }
        Mode(self.0.max(other.0))
    }

    /// The name that SHOW and logs use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::S | Mode::TABLE_S => "S",
            Mode::X | Mode::TABLE_X => "X",
            Mode::INSERT => "X,INSERT_INTENTION",
            Mode::IS => "IS",
            Mode::IX => "IX",
            _ => "SIX",
        }
    }
}

impl From<RowMode> for Mode {
    fn from(mode: RowMode) -> Mode {
        match mode {
            RowMode::Shared => Mode::S,
            RowMode::Exclusive => Mode::X,
        }
    }
}

impl From<TableMode> for Mode {
    fn from(mode: TableMode) -> Mode {
        match mode {
            TableMode::IntentShared => Mode::IS,
            TableMode::IntentExclusive => Mode::IX,
            TableMode::Shared => Mode::TABLE_S,
            TableMode::Exclusive => Mode::TABLE_X,
        }
    }
}
