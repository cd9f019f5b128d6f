//! Identifiers, qualified names, accounts and spans.

use std::fmt;
use std::ops::Deref;

/// A byte range of the text given to `parse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The text this span covers, or nothing if it is from another text.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or(&[])
    }
}

/// A node and where it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The node.
    pub node: T,
    /// Its text, without the terminating `;` and surrounding white space.
    pub span: Span,
    /// How many `?` markers the statement has.
    pub params: u32,
}

/// An identifier as written, without its quotes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ident(Box<str>);

impl Ident {
    /// From any string.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }
    /// The characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// ASCII case-insensitive comparison (names of columns, variables, engines, charsets).
    pub fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
    /// The characters, owned.
    pub fn into_string(self) -> String {
        self.0.into()
    }
}

impl Deref for Ident {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl AsRef<str> for Ident {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
impl From<&str> for Ident {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}
impl From<String> for Ident {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
impl PartialEq<str> for Ident {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}
impl PartialEq<&str> for Ident {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}
impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

/// `[schema.]name` of a table, view, routine or trigger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectName {
    pub schema: Option<Ident>,
    pub name: Ident,
}

/// `'user'@'host'`, CURRENT_USER, or MariaDB's CURRENT_ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserName {
    CurrentUser,
    /// Only where a role may stand: for a definer, and in GRANT, REVOKE, SHOW GRANTS, CREATE ROLE and DROP ROLE.
    CurrentRole,
    /// `host` is `%` when it was not written, and empty for a definer: in MariaDB that may be a role.
    Named {
        user: Ident,
        host: Ident,
    },
}
