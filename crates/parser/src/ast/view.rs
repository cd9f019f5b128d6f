//! Views.

use bytes::Bytes;

use super::{Ident, ObjectName, Query, UserName};

/// SQL SECURITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    #[default]
    Definer,
    Invoker,
}

/// ALGORITHM = ...
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    TempTable,
}

impl ViewAlgorithm {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Undefined => "UNDEFINED",
            Self::Merge => "MERGE",
            Self::TempTable => "TEMPTABLE",
        }
    }
}

/// WITH .. CHECK OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    Local,
    Cascaded,
}

impl CheckOption {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "LOCAL",
            Self::Cascaded => "CASCADED",
        }
    }
}

/// CREATE VIEW and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub or_replace: bool,
    pub if_not_exists: bool,
    /// ALTER VIEW.
    pub alter: bool,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    pub security: Option<Security>,
    pub name: ObjectName,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    /// The query's text.
    pub text: Bytes,
    pub check: Option<CheckOption>,
}
