//! BACKUP TO 'folder'. The work is `coordination::backup`; here is the answer.

use super::Admin;
use crate::result_set::{ResultSet, integer_column, text_column};
use bytes::Bytes;
use omnibus_parser::ast::Backup;
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;
use std::path::Path;

/// One row: the log position at which the copy is equal to this server, and its size.
pub(super) async fn backup(admin: &mut Admin<'_>, backup: &Backup, more: bool) -> SqlResult<()> {
    let Backup::To(path) = backup else {
        return Err(SqlError::not_supported_yet("BACKUP STAGE and BACKUP LOCK"));
    };
    let path = String::from_utf8_lossy(path).into_owned();
    let rule = admin.settings.shared.file_rule();
    let info = crate::net::blocking(|| {
        let target = rule.backup_target(Path::new(&path))?;
        admin.server.log.backup_to(&target, &admin.client.process.kill)
    })?;
    let text = |text: String| Value::Bytes(Bytes::from(text));
    let bytes = Value::UInt(info.bytes());
    let rows = ResultSet {
        columns: vec![
            text_column("File", 255),
            integer_column("Position"),
            text_column("Gtid_executed", 65_535),
            integer_column("Bytes"),
        ],
        rows: vec![vec![text(info.file), Value::UInt(info.position), text(info.gtid_executed), bytes]],
    };
    admin.client.reply_rows(admin.sql, &rows, more)
}
