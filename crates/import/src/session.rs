//! The two servers, and sessions at them with the settings that make copies exact.

use crate::address::Address;
use crate::error::ImportError;
use omnibus_replication::client::rows::{self, Outcome, RowView};
use omnibus_replication::client::{ClientError, Connection, Row};
use std::collections::BTreeMap;

/// The longest part of a statement that an error shows.
const SHOWN: usize = 100;

/// The kind of a server, as far as statements differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Mysql,
    Mariadb,
}

/// A server: where it is, and what its sessions are set to.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Its name in messages.
    pub label: &'static str,
    pub address: Address,
    pub version: String,
    pub family: Family,
    /// It is one of ours.
    pub omnibus: bool,
    /// Statements at the start of each session; those that the server does not know are passed over.
    settings: Vec<String>,
}

impl Server {
    /// Connects once, to learn what it is.
    pub(crate) fn find(label: &'static str, address: Address) -> Result<Server, ImportError> {
        let mut server = Server {
            label,
            address,
            version: String::new(),
            family: Family::Mysql,
            omnibus: false,
            settings: Vec::new(),
        };
        let connection = server.connect()?;
        server.version = connection.version();
        server.omnibus = server.version.contains("omnibus");
        if server.version.contains("MariaDB") {
            server.family = Family::Mariadb;
        }
        Ok(server)
    }

    /// Adds statements that every session begins with.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings.extend(settings.iter().map(|s| (*s).to_owned()));
    }

    /// The numbers of its version.
    pub(crate) fn numbers(&self) -> (u32, u32) {
        let mut parts = self.version.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    /// Opens a session with all settings.
    pub(crate) fn session(&self) -> Result<Session, ImportError> {
        let mut session = Session { label: self.label, connection: self.connect()? };
        for setting in &self.settings {
            session.optional(setting)?;
        }
        Ok(session)
    }

    fn connect(&self) -> Result<Connection, ImportError> {
        let attributes = [("program_name", "omnibus import")];
        let endpoint = &self.address.endpoint;
        let opened = match Connection::open(endpoint, &attributes, &|| false, drop) {
            Err(ClientError::Tls(_)) if self.address.may_be_plain => {
                let mut plain = endpoint.clone();
                plain.tls.required = false;
                Connection::open(&plain, &attributes, &|| false, drop)
            }
            other => other,
        };
        opened.map_err(|error| {
            let advice = match &error {
                ClientError::Auth { .. } => {
                    ": use ssl-mode=required or get-server-public-key=1 in the address, or another plugin"
                }
                ClientError::Server { code: 1045, .. } => {
                    ": is the password right, and may the account come from here"
                }
                _ => "",
            };
            let doing = format!("connecting to {}{advice}", self.address.place());
            ImportError::Server { server: self.label, doing, error }
        })
    }
}

/// A session at one of the servers.
pub(crate) struct Session {
    label: &'static str,
    connection: Connection,
}

impl Session {
    fn error(&self, sql: &[u8], error: ClientError) -> ImportError {
        let mut doing = String::from_utf8_lossy(&sql[..sql.len().min(SHOWN)]).into_owned();
        if sql.len() > SHOWN {
            doing.push_str("..");
        }
        ImportError::Server { server: self.label, doing, error }
    }

    /// Executes a statement; rows are dropped.
    pub(crate) fn run(&mut self, sql: &str) -> Result<Outcome, ImportError> {
        self.run_bytes(sql.as_bytes())
    }

    /// As [`Session::run`], for a statement that is not all UTF-8.
    pub(crate) fn run_bytes(&mut self, sql: &[u8]) -> Result<Outcome, ImportError> {
        rows::execute(&mut self.connection, sql).map_err(|error| self.error(sql, error))
    }

    /// As [`Session::run`]; nothing if the server does not know the statement or the variable, or the account may not set it.
    pub(crate) fn optional(&mut self, sql: &str) -> Result<bool, ImportError> {
        match self.run(sql) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code(), Some(1064 | 1193 | 1227 | 1229 | 1231 | 1235 | 1238)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// All rows.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Row>, ImportError> {
        self.connection.query(sql).map_err(|error| self.error(sql.as_bytes(), error))
    }

    /// All rows as texts; NULL is empty.
    pub(crate) fn texts(&mut self, sql: &str) -> Result<Vec<Vec<String>>, ImportError> {
        let text = |value: Option<Vec<u8>>| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
        Ok(self.rows(sql)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    /// The first row as texts.
    pub(crate) fn first(&mut self, sql: &str) -> Result<Option<Vec<String>>, ImportError> {
        Ok(self.texts(sql)?.into_iter().next())
    }

    /// The first value of the first row, empty if there is none.
    pub(crate) fn value(&mut self, sql: &str) -> Result<String, ImportError> {
        let first = self.first(sql)?;
        Ok(first.and_then(|row| row.into_iter().next()).unwrap_or_default())
    }

    /// As [`Session::value`]; nothing if the server does not know what is asked for.
    pub(crate) fn known(&mut self, sql: &str) -> Result<Option<String>, ImportError> {
        match self.value(sql) {
            Ok(value) => Ok(Some(value)),
            Err(error) if matches!(error.code(), Some(1193 | 1064 | 1109 | 1146 | 1054)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first row with the names of its columns; NULL is empty.
    pub(crate) fn named(&mut self, sql: &str) -> Result<Option<BTreeMap<String, String>>, ImportError> {
        let (names, rows) = rows::query_with_names(&mut self.connection, sql)
            .map_err(|error| self.error(sql.as_bytes(), error))?;
        let text = |value: Option<Vec<u8>>| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
        Ok(rows.into_iter().next().map(|row| names.into_iter().zip(row.into_iter().map(text)).collect()))
    }

    /// Sends a query whose rows [`Session::next`] reads.
    pub(crate) fn begin(&mut self, sql: &str) -> Result<(), ImportError> {
        rows::begin_rows(&mut self.connection, sql.as_bytes())
            .map_err(|error| self.error(sql.as_bytes(), error))
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> Result<Option<RowView<'_>>, ImportError> {
        let server = self.label;
        rows::next_row(&mut self.connection).map_err(|error| ImportError::Server {
            server,
            doing: "reading rows".into(),
            error,
        })
    }
}
