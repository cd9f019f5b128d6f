//! The definition of a system variable: name, scope, kind, bounds, default. One row of the registry.

use super::value::VarValue;
use omnibus_format::Dialect;

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the server.
    Global,
    /// One value for each session, none for the server.
    Session,
    /// A server value that new sessions start from.
    Both,
}

/// The kind of values that a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool,
    /// Unsigned integer within bounds, a multiple of the last number.
    UInt(u64, u64, u64),
    /// Integer within bounds.
    Int(i64, i64),
    /// Real number within bounds.
    Double(f64, f64),
    /// One of these labels, or its number.
    Enum(&'static [&'static str]),
    /// Any of these labels, separated by commas, or a number with a bit for each.
    Set(&'static [&'static str]),
    /// Any text.
    Text,
    /// Any text or NULL.
    NullableText,
    /// A set of SQL modes.
    SqlMode,
    /// A character set name.
    Charset,
    /// A character set name or NULL.
    NullableCharset,
    /// A collation name.
    Collation,
    /// MariaDB's list of collations that are the defaults of their character sets: `charset=collation,..`.
    CharsetCollations,
    /// The name of a storage engine, ours or one that ours stands in for.
    Engine,
    /// `SYSTEM` or an offset from UTC.
    TimeZone,
    /// A name of `lc_time_names`, or its number.
    Locale,
}

/// A default that can stand in a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fixed {
    /// ON or OFF.
    B(bool),
    /// Unsigned.
    U(u64),
    /// Signed.
    I(i64),
    /// Real.
    D(f64),
    /// Text.
    S(&'static str),
    /// NULL.
    Null,
}

impl Fixed {
    /// As a run-time value.
    #[must_use]
    pub fn value(self) -> VarValue {
        match self {
            Fixed::B(b) => VarValue::Bool(b),
            Fixed::U(n) => VarValue::UInt(n),
            Fixed::I(n) => VarValue::Int(n),
            Fixed::D(x) => VarValue::Double(x),
            Fixed::S(s) => VarValue::Str(s.into()),
            Fixed::Null => VarValue::Null,
        }
    }
}

/// How a variable may change after start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only by an option at start.
    ReadOnly,
    /// By SET.
    Dynamic,
    /// Never: it is computed when read.
    Computed,
}

/// One system variable.
#[derive(Clone, Copy, Debug)]
pub struct VarDef {
    /// Name, lower case.
    pub name: &'static str,
    /// Where it lives.
    pub scope: Scope,
    /// How it changes.
    pub change: Change,
    /// The kind of its values.
    pub kind: Kind,
    /// Its value without options.
    pub default: Fixed,
    /// Servers of the other dialect do not have it.
    pub only: Option<Dialect>,
}

impl VarDef {
    /// Returns whether it is an option of the server.
    #[must_use]
    pub fn is_option(&self) -> bool {
        self.change != Change::Computed && self.scope != Scope::Session
    }

    const fn new(name: &'static str, scope: Scope, change: Change, kind: Kind, default: Fixed) -> VarDef {
        VarDef { name, scope, change, kind, default, only: None }
    }
    /// The server's, dynamic.
    pub const fn global(name: &'static str, kind: Kind, default: Fixed) -> VarDef {
        VarDef::new(name, Scope::Global, Change::Dynamic, kind, default)
    }
    /// The server's, set at start only.
    pub const fn fixed(name: &'static str, kind: Kind, default: Fixed) -> VarDef {
        VarDef::new(name, Scope::Global, Change::ReadOnly, kind, default)
    }
    /// The server's and each session's, dynamic.
    pub const fn both(name: &'static str, kind: Kind, default: Fixed) -> VarDef {
        VarDef::new(name, Scope::Both, Change::Dynamic, kind, default)
    }
    /// Each session's only, dynamic.
    pub const fn session(name: &'static str, kind: Kind, default: Fixed) -> VarDef {
        VarDef::new(name, Scope::Session, Change::Dynamic, kind, default)
    }
    /// Made when read.
    pub const fn computed(name: &'static str, scope: Scope, kind: Kind, default: Fixed) -> VarDef {
        VarDef::new(name, scope, Change::Computed, kind, default)
    }
    /// Whether a server of this dialect has it.
    #[must_use]
    pub fn is_in(&self, dialect: Dialect) -> bool {
        self.only.is_none_or(|only| only == dialect)
    }
    /// The same, only in one dialect.
    #[must_use]
    pub const fn only(mut self, dialect: Dialect) -> VarDef {
        self.only = Some(dialect);
        self
    }
}
