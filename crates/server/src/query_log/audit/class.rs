//! Kinds of statements, as `server_audit_events` tells them apart.

use crate::sysvars::AUDIT_PREFIX;
use omnibus_parser::ast::{SetItem, Statement, StatementClass};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// It defines something: `QUERY_DDL`.
    Definition,
    /// It sets variables of this log, which is always logged.
    Audit,
    /// It is about accounts and their rights: `QUERY_DCL`.
    Rights,
    /// ALTER USER, which MariaDB's plugin counts among the definitions.
    AlterUser,
    /// It reads: `QUERY_DML`, but not `QUERY_DML_NO_SELECT`.
    Read,
    /// It may change rows: `QUERY_DML`.
    Change,
    /// Anything else: `QUERY` alone has it.
    Other,
}

impl Class {
    /// A statement's.
    pub(crate) fn of(statement: &Statement) -> Class {
        match statement {
            Statement::AlterUser(_) => Class::AlterUser,
            Statement::Set(items) if items.iter().any(is_own) => Class::Audit,
            Statement::Set(items) if items.iter().any(|item| matches!(item, SetItem::Password { .. })) => {
                Class::Rights
            }
            statement => match statement.class() {
                StatementClass::Account => Class::Rights,
                StatementClass::Definition => Class::Definition,
                StatementClass::Read => Class::Read,
                // What a runner runs may change rows.
                StatementClass::Change | StatementClass::Runner => Class::Change,
                StatementClass::Transaction | StatementClass::Other => Class::Other,
            },
        }
    }

    /// Whether it is told where it is carried out, whatever has brought it there: a procedure, EXECUTE, an event.
    pub(crate) fn is_told_inside(self) -> bool {
        matches!(self, Class::Definition | Class::Rights | Class::AlterUser | Class::Audit)
    }
}

fn is_own(item: &SetItem) -> bool {
    matches!(item, SetItem::System { name, .. } if name.to_ascii_lowercase().starts_with(AUDIT_PREFIX))
}
