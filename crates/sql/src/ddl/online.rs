//! ALGORITHM= and LOCK= of a definition statement: what it may cost.
//!
//! A statement does what is cheapest. The clauses forbid what costs more, before anything is done. The table is locked
//! exclusively at the beginning and at the end, which is too short to be called a lock; what others may do in between is the
//! statement's way, or what its LOCK says if that is less.

use crate::catalog::Table;
use crate::catalog::codec::MAX_VERSIONS;
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_locks::TableMode;
use omnibus_parser::ast::OnlineOptions;

/// The way in which a change of a definition treats the table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// They are not looked at.
    Instant,
    /// They stay where they are, and are read for new indexes, while others write them.
    Beside,
    /// They stay where they are, and are checked.
    InPlace,
    /// All are written anew, while others write them.
    Rebuild,
    /// All are written anew.
    Copy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Algorithm {
    #[default]
    Any,
    Instant,
    InPlace,
    Copy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lock {
    #[default]
    Any,
    None,
    Shared,
    Exclusive,
}

impl Lock {
    fn name(self) -> &'static str {
        match self {
            Lock::Any => "DEFAULT",
            Lock::None => "NONE",
            Lock::Shared => "SHARED",
            Lock::Exclusive => "EXCLUSIVE",
        }
    }
}

/// The ALGORITHM and LOCK clauses: the cost that a statement may have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Online {
    algorithm: Algorithm,
    lock: Lock,
}

impl Online {
    /// From a statement's clauses. Those of a source are its own business.
    ///
    /// # Errors
    /// Unknown words, and those that exclude each other.
    pub fn of(tree: &OnlineOptions, state: &SessionState) -> SqlResult<Online> {
        if state.settings.replicated {
            return Ok(Online::default());
        }
        let mariadb = state.settings.mariadb;
        let upper = |word: &Option<omnibus_parser::ast::Ident>| word.as_deref().map(str::to_ascii_uppercase);
        let algorithm = match upper(&tree.algorithm).as_deref() {
            None | Some("DEFAULT") => Algorithm::Any,
            Some("INSTANT") => Algorithm::Instant,
            Some("INPLACE") => Algorithm::InPlace,
            Some("NOCOPY") if mariadb => Algorithm::InPlace,
            Some("COPY") => Algorithm::Copy,
            Some(_) => {
                let given = tree.algorithm.as_deref().unwrap_or_default();
                return Err(SqlError::new(1800, b"HY000", format!("Unknown ALGORITHM '{given}'")));
            }
        };
        let lock = match upper(&tree.lock).as_deref() {
            None | Some("DEFAULT") => Lock::Any,
            Some("NONE") => Lock::None,
            Some("SHARED") => Lock::Shared,
            Some("EXCLUSIVE") => Lock::Exclusive,
            Some(_) => {
                let given = tree.lock.as_deref().unwrap_or_default();
                return Err(SqlError::new(1801, b"HY000", format!("Unknown LOCK type '{given}'")));
            }
        };
        if !mariadb && algorithm == Algorithm::Instant && lock != Lock::Any {
            let message = format!("Incorrect usage of ALGORITHM=INSTANT and LOCK={}", lock.name());
            return Err(SqlError::new(1221, b"HY000", message));
        }
        Ok(Online { algorithm, lock })
    }

    /// The same for a temporary table, whose rows are copied whatever changes; nobody else waits for it.
    pub fn allow_temporary(self, table: &Table) -> SqlResult<()> {
        Online { lock: Lock::Any, ..self }.allow(Way::Copy, table)
    }

    /// Whether rows are to be copied though they need not be.
    pub fn copies(self) -> bool {
        self.algorithm == Algorithm::Copy
    }

    /// How a statement holds the table while it reads its rows, if others may use it then.
    pub fn beside(self, way: Way) -> Option<TableMode> {
        match (way, self.lock) {
            (Way::Instant | Way::InPlace, _) | (_, Lock::Exclusive) => None,
            (Way::Beside | Way::Rebuild, Lock::Any | Lock::None) => Some(TableMode::IntentShared),
            (Way::Beside | Way::Rebuild, Lock::Shared) | (Way::Copy, _) => Some(TableMode::Shared),
        }
    }

    /// Fails if the statement costs more than its clauses allow.
    pub fn allow(self, way: Way, table: &Table) -> SqlResult<()> {
        let refused = |what: &str, other: &str| {
            let message = format!("{what} is not supported for this operation. Try {other}.");
            Err(SqlError::new(1845, b"0A000", message))
        };
        match (self.algorithm, way) {
            (Algorithm::Instant, Way::Rebuild | Way::Copy)
                if table.def.versions.earlier.len() >= MAX_VERSIONS =>
            {
                let message = format!(
                    "Maximum row versions reached for table {}. No more columns can be added or dropped instantly. Please use \
                     COPY/INPLACE.",
                    table.qualified().replace('.', "/")
                );
                return Err(SqlError::new(4092, b"HY000", message));
            }
            (Algorithm::Instant, Way::Copy) => return refused("ALGORITHM=INSTANT", "ALGORITHM=COPY"),
            (Algorithm::Instant, Way::Beside | Way::InPlace | Way::Rebuild) => {
                return refused("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
            }
            (Algorithm::InPlace, Way::Copy) => return refused("ALGORITHM=INPLACE", "ALGORITHM=COPY"),
            _ => {}
        }
        let (reason, other) = match (way, self.lock) {
            (Way::Copy, Lock::None) => ("COPY algorithm requires a lock", Lock::Shared),
            (Way::InPlace, Lock::None | Lock::Shared) => ("all rows are checked", Lock::Exclusive),
            _ => return Ok(()),
        };
        let message = format!(
            "LOCK={} is not supported. Reason: {reason}. Try LOCK={}.",
            self.lock.name(),
            other.name()
        );
        Err(SqlError::new(1846, b"0A000", message))
    }
}
