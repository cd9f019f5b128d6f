//! Entries of the logs, as text and as rows, in MySQL's formats, or MariaDB's where its tools read no other.

use super::audit::Record;
use crate::clock::compact_stamp;
use bytes::Bytes;
use omnibus_parser::redact;
use omnibus_value::literal::write_lower_hex;
use omnibus_value::temporal::{DateTime, Zone};
use std::fmt::Write;
use std::sync::Arc;

/// A statement that took long.
#[derive(Debug)]
pub(crate) struct Slow {
    /// When it began and ended, in microseconds since the epoch.
    pub begun_us: i64,
    /// See `begun_us`.
    pub ended_us: i64,
    /// The client, as `user[user] @ host [address]`.
    pub who: Arc<str>,
    /// Connection id.
    pub id: u32,
    /// Microseconds in lock waits.
    pub lock_us: u64,
    /// Rows that the client got.
    pub rows_sent: u64,
    /// Rows that were read.
    pub rows_examined: u64,
    /// Rows that it changed.
    pub rows_affected: u64,
    /// Default database.
    pub database: Option<Arc<str>>,
    /// The last AUTO_INCREMENT value that it inserted, if it did.
    pub last_insert_id: u64,
    /// Its text; empty for a command that has none.
    pub text: Bytes,
    /// The command's name.
    pub command: &'static str,
}

/// An entry of a log.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A command that came.
    General {
        /// When, in microseconds since the epoch.
        at_us: i64,
        /// The account that sent it.
        who: Arc<str>,
        /// Connection id.
        id: u32,
        /// The command's name.
        command: &'static str,
        /// Its text.
        text: Bytes,
    },
    /// A statement that took long.
    Slow(Box<Slow>),
    /// For the audit log.
    Audit(Box<Record>),
}

impl Entry {
    pub(super) fn text_len(&self) -> usize {
        match self {
            Entry::General { text, .. } => text.len(),
            Entry::Slow(slow) => slow.text.len(),
            Entry::Audit(record) => record.text.len(),
        }
    }
}

/// How entries are written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// `log_timestamps` is SYSTEM.
    pub local_time: bool,
    /// `log_raw`.
    pub raw: bool,
    /// The server's dialect: each one's tools know only its heads.
    pub mariadb: bool,
    /// `server_id`.
    pub server_id: u64,
}

impl Style {
    /// Seconds between UTC and the time of the logs.
    fn offset(self, us: i64) -> i32 {
        let zone = if self.local_time { Zone::system() } else { Zone::Offset(0) };
        zone.offset_at(us.div_euclid(1_000_000))
    }

    /// `20261123 04:20:20`.
    pub(super) fn dense_stamp(self, us: i64) -> String {
        let text = plain_stamp(us + i64::from(self.offset(us)) * 1_000_000);
        text[..19].replace('-', "")
    }

    /// `2026-11-23T04:20:20.123456Z`, or local time with its offset.
    pub(super) fn stamp(self, us: i64) -> String {
        let offset = self.offset(us);
        let text = plain_stamp(us + i64::from(offset) * 1_000_000).replacen(' ', "T", 1);
        if !self.local_time {
            return text + "Z";
        }
        let (sign, offset) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
        format!("{text}{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60)
    }
}

/// `2026-11-23 04:20:20.123456`.
fn plain_stamp(us: i64) -> String {
    let mut text = Vec::new();
    let (seconds, micros) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    DateTime::from_unix(seconds, micros as u32).unwrap_or_default().write_text(6, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A line of the general log.
pub(super) fn general_text(entry: &Entry, style: Style, out: &mut Vec<u8>) {
    let Entry::General { at_us, id, command, text, .. } = entry else { return };
    out.extend_from_slice(format!("{}\t{id:5} {command}\t", style.stamp(*at_us)).as_bytes());
    put_on_one_line(&general_argument(text, style), out);
    out.push(b'\n');
}

/// Appends a client's text without line breaks, so that none of it passes for another entry.
fn put_on_one_line(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice(b"\\0"),
            byte => out.push(byte),
        }
    }
}

/// A statement of several lines, none of which begins as a head does: its readers take those with `#` for one.
fn put_below_head(text: &[u8], out: &mut Vec<u8>) {
    let mut first = true;
    for &byte in text {
        if first && byte == b'#' {
            out.push(b' ');
        }
        first = matches!(byte, b'\n' | b'\r');
        out.push(byte);
    }
}

fn general_argument(text: &[u8], style: Style) -> std::borrow::Cow<'_, [u8]> {
    if style.raw { text.into() } else { redact(text) }
}

/// A statement of the slow query log, behind one in `database`.
pub(super) fn slow_text(slow: &Slow, style: Style, database: &mut String, out: &mut Vec<u8>) {
    let mut head = if style.mariadb { slow.mariadb_head() } else { slow.mysql_head(style) };
    if let Some(now) = slow.database.as_deref().filter(|now| *now != database.as_str()) {
        let _ = writeln!(head, "use {};", plain_name(now));
        now.clone_into(database);
    }
    head.push_str("SET ");
    if slow.last_insert_id != 0 {
        let _ = write!(head, "last_insert_id={},", slow.last_insert_id);
    }
    let _ = writeln!(head, "timestamp={};", slow.begun_us.div_euclid(1_000_000));
    out.extend_from_slice(head.as_bytes());
    if slow.text.is_empty() {
        out.extend_from_slice(format!("# administrator command: {};\n", slow.command).as_bytes());
    } else {
        put_below_head(&redact(&slow.text), out);
        out.extend_from_slice(b";\n");
    }
}

/// A name that a client chose, without what would end its line.
fn plain_name(name: &str) -> String {
    name.replace(char::is_control, "_")
}

impl Slow {
    fn mysql_head(&self, style: Style) -> String {
        format!(
            "# Time: {}\n# User@Host: {}  Id: {:5}\n# Query_time: {}  Lock_time: {} Rows_sent: {}  Rows_examined: {}\n",
            style.stamp(self.ended_us),
            plain_name(&self.who),
            self.id,
            seconds(self.took_us()),
            seconds(self.lock_us),
            self.rows_sent,
            self.rows_examined,
        )
    }

    fn mariadb_head(&self) -> String {
        format!(
            "# Time: {}\n# User@Host: {}\n# Thread_id: {}  Schema: {}  QC_hit: No\n\
             # Query_time: {}  Lock_time: {}  Rows_sent: {}  Rows_examined: {}\n# Rows_affected: {}\n",
            compact_stamp(self.ended_us),
            plain_name(&self.who),
            self.id,
            plain_name(self.database.as_deref().unwrap_or_default()),
            seconds(self.took_us()),
            seconds(self.lock_us),
            self.rows_sent,
            self.rows_examined,
            self.rows_affected,
        )
    }

    fn took_us(&self) -> u64 {
        u64::try_from(self.ended_us - self.begun_us).unwrap_or(0)
    }

    fn argument(&self) -> Vec<u8> {
        match self.text.is_empty() {
            true => format!("administrator command: {}", self.command).into_bytes(),
            false => redact(&self.text).into_owned(),
        }
    }
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// An INSERT into `mysql.general_log` or `mysql.slow_log`, by a session in UTC.
pub(super) fn insert(entries: &[&Entry], style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let (table, row) = match entry {
            Entry::General { at_us, who, id, command, text } => {
                let mut row = format!("('{}',", plain_stamp(*at_us)).into_bytes();
                write_lower_hex(who.as_bytes(), &mut row);
                row.extend_from_slice(format!(",{id},{},'{command}',", style.server_id).as_bytes());
                write_lower_hex(&general_argument(text, style), &mut row);
                ("general_log", row)
            }
            Entry::Slow(slow) => ("slow_log", slow_row(slow, style)),
            // It has no table.
            Entry::Audit(_) => continue,
        };
        if out.is_empty() {
            out.extend_from_slice(format!("INSERT INTO mysql.{table} VALUES ").as_bytes());
        } else {
            out.push(b',');
        }
        out.extend_from_slice(&row);
        out.push(b')');
    }
    out
}

fn slow_row(slow: &Slow, style: Style) -> Vec<u8> {
    // The largest TIME that there is, 34 days; INT columns hold what fits.
    let time = |us: u64| format!("SEC_TO_TIME({})", seconds(us.min(3_020_399_000_000)));
    let int = |n: u64| n.min(i32::MAX as u64);
    let mut row = format!("('{}',", plain_stamp(slow.begun_us)).into_bytes();
    write_lower_hex(slow.who.as_bytes(), &mut row);
    let (sent, examined) = (int(slow.rows_sent), int(slow.rows_examined));
    let times = format!(",{},{},{sent},{examined},", time(slow.took_us()), time(slow.lock_us));
    row.extend_from_slice(times.as_bytes());
    write_lower_hex(slow.database.as_deref().unwrap_or_default().as_bytes(), &mut row);
    row.extend_from_slice(format!(",{},0,{},", int(slow.last_insert_id), style.server_id).as_bytes());
    write_lower_hex(&slow.argument(), &mut row);
    row.extend_from_slice(format!(",{}", slow.id).as_bytes());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { local_time: false, raw: false, mariadb: false, server_id: 1 };

    fn slow(text: &'static [u8]) -> Slow {
        Slow {
            begun_us: 1_700_000_000_000_000,
            ended_us: 1_700_000_001_500_007,
            who: "root[root] @ localhost []".into(),
            id: 8,
            lock_us: 20,
            rows_sent: 1,
            rows_examined: 2,
            rows_affected: 0,
            database: Some("db".into()),
            last_insert_id: 0,
            text: Bytes::from_static(text),
            command: "Query",
        }
    }

    #[test]
    fn a_slow_statement_reads_as_in_mysql() {
        let (mut out, mut database) = (Vec::new(), String::new());
        slow_text(&slow(b"SELECT 1"), STYLE, &mut database, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "# Time: 2023-11-14T22:13:21.500007Z\n\
             # User@Host: root[root] @ localhost []  Id:     8\n\
             # Query_time: 1.500007  Lock_time: 0.000020 Rows_sent: 1  Rows_examined: 2\n\
             use db;\nSET timestamp=1700000000;\nSELECT 1;\n"
        );
        out.clear();
        slow_text(&Slow { command: "Ping", ..slow(b"") }, STYLE, &mut database, &mut out);
        let text = String::from_utf8_lossy(&out);
        assert!(!text.contains("use db") && text.ends_with("# administrator command: Ping;\n"), "{text}");
    }

    #[test]
    fn a_statement_forges_no_other_entry() {
        let general = |text: &'static [u8]| {
            let text = text.into();
            let entry = Entry::General { at_us: 0, who: "".into(), id: 1, command: "Query", text };
            let mut out = Vec::new();
            general_text(&entry, STYLE, &mut out);
            String::from_utf8(out).expect("these are texts")
        };
        assert!(general(b"SELECT 1,\n'a\\nb'").ends_with("\tSELECT 1,\\n'a\\nb'\n"));
        assert_eq!(
            general(b"SELECT 1\r\n2026-11-26T00:00:00.000000Z\t    9 Query\tDROP TABLE t").lines().count(),
            1
        );
        let (mut out, mut database) = (Vec::new(), String::new());
        let forged = slow(b"# Time: then\nSELECT 1\n# User@Host: root[root] @ localhost []\n#x");
        let forged =
            Slow { who: "a\n# Time: x[u] @ h []".into(), database: Some("d\n# Time: y".into()), ..forged };
        for style in [STYLE, Style { mariadb: true, ..STYLE }] {
            slow_text(&forged, style, &mut database, &mut out);
        }
        let text = String::from_utf8(out).expect("these are texts");
        let heads = text.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(heads, 3 + 5, "{text}");
    }

    #[test]
    fn no_password_is_written() {
        // ACCOUNT-1
        let text = b"CREATE USER u IDENTIFIED BY 'geheim'";
        let (mut out, mut database) = (Vec::new(), String::new());
        slow_text(&slow(text), STYLE, &mut database, &mut out);
        let general =
            Entry::General { at_us: 0, who: "".into(), id: 1, command: "Query", text: text[..].into() };
        general_text(&general, STYLE, &mut out);
        let secret = b"geheim".iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let rows =
            [insert(&[&general], STYLE), insert(&[&Entry::Slow(Box::new(slow(text)))], STYLE)].concat();
        assert!(!String::from_utf8_lossy(&out).contains("geheim"));
        assert!(!String::from_utf8_lossy(&rows).contains(&secret));
        general_text(&general, Style { raw: true, ..STYLE }, &mut out);
        assert!(String::from_utf8_lossy(&out).ends_with("IDENTIFIED BY 'geheim'\n"), "log_raw asks for it");
    }
}
