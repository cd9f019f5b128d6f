//! SET.

use bytes::Bytes;

use super::{Expr, Ident, UserName, VarScope};

/// SET STATEMENT: system variables of the session that are so for one statement only.
#[derive(Clone, Debug, PartialEq)]
pub struct SetStatement {
    /// `System` without a scope, each.
    pub items: Vec<SetItem>,
    /// The statement behind FOR, which parses.
    pub text: Bytes,
}

/// One member of SET's list.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@name = value`, `@name := value`
    User {
        name: Ident,
        value: Expr,
    },
    /// A variable of a stored program.
    Local {
        local: u32,
        value: Expr,
    },
    /// `NEW.column` of a trigger that runs before its row is written.
    NewColumn {
        column: Ident,
        value: Expr,
    },
    /// A system variable; no scope written is the session (or global-only error) as MySQL decides.
    System {
        scope: Option<VarScope>,
        name: Ident,
        value: SetValue,
    },
    /// SET NAMES; `charset` None is DEFAULT.
    Names {
        charset: Option<Ident>,
        collation: Option<Ident>,
    },
    /// SET CHARACTER SET / CHARSET; None is DEFAULT.
    CharacterSet(Option<Ident>),
    Password {
        user: Option<UserName>,
        value: PasswordValue,
        /// REPLACE 'current password'.
        replaces: Option<Bytes>,
        /// RETAIN CURRENT PASSWORD.
        retain_current: bool,
    },
    Transaction {
        scope: Option<VarScope>,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    },
}

/// Right side of a system variable assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    Default,
    /// A bare word, also ON, OFF, ALL, BINARY, ROW, SYSTEM: means the string.
    Word(Ident),
    Expr(Expr),
}

/// Right side of SET PASSWORD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordValue {
    /// `= 'text'`: a clear password in MySQL 8 (a hash in MariaDB).
    Text(Bytes),
    /// `= PASSWORD('text')`
    Clear(Bytes),
    /// `TO RANDOM`
    Random,
}

/// Isolation levels, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}
