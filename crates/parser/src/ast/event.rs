//! CREATE and ALTER EVENT: a program and when it runs.

use bytes::Bytes;

use super::{Expr, IntervalUnit, ObjectName, Program, UserName};

/// When an event runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// AT: once.
    At(Expr),
    /// EVERY.
    Every { value: Expr, unit: IntervalUnit, starts: Option<Expr>, ends: Option<Expr> },
}

/// Whether it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventStatus {
    #[default]
    Enabled,
    Disabled,
    /// It came from a source, and runs there.
    ReplicaSideDisabled,
}

impl EventStatus {
    /// The clause, which MariaDB has another word in.
    pub fn text(self, mariadb: bool) -> &'static str {
        match self {
            Self::Enabled => "ENABLE",
            Self::Disabled => "DISABLE",
            Self::ReplicaSideDisabled if mariadb => "DISABLE ON SLAVE",
            Self::ReplicaSideDisabled => "DISABLE ON REPLICA",
        }
    }
}

/// The clauses of CREATE and ALTER EVENT, those that are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventClauses {
    pub schedule: Option<Schedule>,
    /// ON COMPLETION PRESERVE, or NOT PRESERVE.
    pub preserve: Option<bool>,
    pub status: Option<EventStatus>,
    pub comment: Option<Bytes>,
    pub program: Option<Program>,
}

/// CREATE EVENT.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEvent {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub definer: Option<UserName>,
    pub name: ObjectName,
    /// With a schedule and a program.
    pub clauses: EventClauses,
    /// The statement from EVENT on.
    pub tail: Bytes,
}

/// ALTER EVENT.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEvent {
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub rename: Option<ObjectName>,
    pub clauses: EventClauses,
    /// The statement from EVENT on.
    pub tail: Bytes,
}
