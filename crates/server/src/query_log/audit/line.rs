//! Lines of the audit log: MariaDB's, or a JSON object each.

use crate::query_log::entry::Style;
use bytes::Bytes;
use omnibus_parser::redact_with;
use std::io::Write;
use std::sync::Arc;

/// The kind of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Somebody has logged in.
    Connect,
    /// Somebody was not let in.
    FailedConnect,
    /// A connection is over.
    Disconnect,
    /// COM_CHANGE_USER.
    ChangeUser,
    /// A statement.
    Query,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Connect => "CONNECT",
            Operation::FailedConnect => "FAILED_CONNECT",
            Operation::Disconnect => "DISCONNECT",
            Operation::ChangeUser => "CHANGEUSER",
            Operation::Query => "QUERY",
        }
    }
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Record {
    /// When, in microseconds since the epoch.
    pub at_us: i64,
    /// The name that the client gave.
    pub user: Arc<str>,
    /// Where it is.
    pub host: Arc<str>,
    /// Connection id.
    pub id: u32,
    /// The statement's number since the start; 0 for none.
    pub query: u64,
    /// The kind of the event.
    pub operation: Operation,
    /// The default database.
    pub database: Option<Arc<str>>,
    /// The statement.
    pub text: Bytes,
    /// The error it ended with, or 0.
    pub code: u16,
}

/// How lines are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    /// JSON.
    pub json: bool,
    /// The server's name.
    pub host: Arc<str>,
    /// Bytes of a statement that are kept.
    pub text_limit: usize,
}

/// The stand-in for a password, as in MariaDB's.
const SECRET: &[u8] = b"*****";

/// A statement without its secrets, cut between two characters.
fn kept(text: &[u8], limit: usize) -> Vec<u8> {
    let mut text = redact_with(text, SECRET).into_owned();
    if text.len() > limit {
        let whole = (0..4).map(|back| limit.saturating_sub(back)).find(|at| text[*at] & 0xC0 != 0x80);
        text.truncate(whole.unwrap_or(limit));
    }
    text
}

/// Adds the line of an entry.
pub(super) fn put(record: &Record, form: &Form, style: Style, out: &mut Vec<u8>) {
    if form.json {
        put_json(record, form, style, out);
    } else {
        put_text(record, form, style, out);
    }
}

/// `20261123 14:04:39,server,user,host,8,12,QUERY,db,'DROP TABLE t',0`.
fn put_text(record: &Record, form: &Form, style: Style, out: &mut Vec<u8>) {
    out.extend_from_slice(style.dense_stamp(record.at_us).as_bytes());
    for field in [&*form.host, &*record.user, &*record.host] {
        out.push(b',');
        put_name(field, out);
    }
    let _ = write!(out, ",{},{},{},", record.id, record.query, record.operation.name());
    put_name(record.database.as_deref().unwrap_or_default(), out);
    out.push(b',');
    if record.operation == Operation::Query {
        out.push(b'\'');
        put_escaped(&kept(&record.text, form.text_limit), out);
        out.push(b'\'');
    }
    let _ = writeln!(out, ",{}", record.code);
}

/// A name that a client chose must not end the line, nor its field.
fn put_name(name: &str, out: &mut Vec<u8>) {
    out.extend(name.bytes().map(|byte| if byte < b' ' || byte == b',' { b'_' } else { byte }));
}

fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let letter = match byte {
            b'\'' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            // MariaDB's has it as it is.
            0 => b'0',
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

fn put_json(record: &Record, form: &Form, style: Style, out: &mut Vec<u8>) {
    let mut object = serde_json::json!({
        "timestamp": style.stamp(record.at_us),
        "serverhost": &*form.host,
        "username": &*record.user,
        "host": &*record.host,
        "connectionid": record.id,
        "queryid": record.query,
        "operation": record.operation.name(),
        "database": record.database.as_deref(),
        "retcode": record.code,
    });
    if record.operation == Operation::Query {
        let text = kept(&record.text, form.text_limit);
        object["object"] = String::from_utf8_lossy(&text).into();
    }
    let _ = writeln!(out, "{object}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { local_time: false, raw: true, mariadb: false, server_id: 1 };

    fn record(text: &'static [u8]) -> Record {
        Record {
            at_us: 1_700_000_000_000_000,
            user: "root".into(),
            host: "localhost".into(),
            id: 8,
            query: 12,
            operation: Operation::Query,
            database: Some("db".into()),
            text: Bytes::from_static(text),
            code: 0,
        }
    }

    fn written(record: &Record, json: bool, text_limit: usize) -> String {
        let mut out = Vec::new();
        put(record, &Form { json, host: "box".into(), text_limit }, STYLE, &mut out);
        String::from_utf8(out).expect("these are texts")
    }

    #[test]
    fn a_statement_is_one_line_that_ends_where_it_should() {
        let text = written(&record(b"DROP TABLE\n `a'b\\c`"), false, 1024);
        assert_eq!(
            text,
            "20231114 22:13:20,box,root,localhost,8,12,QUERY,db,'DROP TABLE\\n `a\\'b\\\\c`',0\n"
        );
        let odd = Record { user: "a,b\nc".into(), operation: Operation::Connect, ..record(b"") };
        assert_eq!(written(&odd, false, 10), "20231114 22:13:20,box,a_b_c,localhost,8,12,CONNECT,db,,0\n");
        assert_eq!(written(&odd, true, 10).lines().count(), 1);
    }

    #[test]
    fn no_password_is_written_even_where_the_text_is_cut() {
        // ACCOUNT-1
        for limit in 0..60 {
            for json in [false, true] {
                let text = written(&record(b"ALTER USER u IDENTIFIED BY 'geheim'"), json, limit);
                assert!(!text.contains("geh"), "{text}");
            }
        }
        assert!(
            written(&record("SELECT 'ä'".as_bytes()), true, 9).contains("\"SELECT '\""),
            "whole characters"
        );
    }
}
