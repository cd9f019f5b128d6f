//! Options of SQL output. An option that applies only to SQL selects this form.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of SQL output.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SqlArgs {
    /// SQL: let the server that takes the output give its own GTIDs.
    #[arg(long)]
    pub(super) skip_gtids: bool,
    /// SQL: the folder for the files that LOAD DATA reads; they stay there.
    #[arg(short, long, value_name = "FOLDER")]
    pub(super) local_load: Option<PathBuf>,
    /// SQL: changes of one database become another's: 'from->to'. May be repeated; --database means the new names.
    #[arg(long, value_name = "FROM->TO", value_parser = rewrite, conflicts_with = "json")]
    pub(super) rewrite_db: Vec<Rewrite>,
    /// SQL: how row events are printed: as BINLOG statements (auto), only as remarks with -v (decode-rows), or not at all: an error
    /// where there is one (never).
    #[arg(long, value_name = "HOW", value_enum, ignore_case = true, conflicts_with = "json")]
    pub(super) base64_output: Option<Base64>,
    /// SQL: rows that are gone or there already are no error.
    #[arg(short, long, conflicts_with = "json")]
    pub(super) idempotent: bool,
    /// SQL: the server that takes the output does not log it.
    #[arg(short = 'D', long, conflicts_with = "json")]
    pub(super) disable_log_bin: bool,
    /// SQL: begin with SET NAMES.
    #[arg(long, value_name = "CHARSET", conflicts_with = "json", value_parser = charset)]
    pub(super) set_charset: Option<String>,
    /// SQL: statements only, without remarks and rows. For reading, not for doing it again.
    #[arg(short, long, conflicts_with = "json")]
    pub(super) short_form: bool,
    /// SQL that takes the changes back: the inverse rows, last first. Needs rows with all columns (binlog_row_image=FULL), and
    /// the memory to hold them.
    #[arg(short = 'B', long, conflicts_with_all = ["json", "short_form"])]
    pub(super) flashback: bool,
}

impl SqlArgs {
    /// Returns whether an option is given that applies only to SQL.
    pub(super) fn asks_for_sql(&self) -> bool {
        self.skip_gtids
            || self.local_load.is_some()
            || !self.rewrite_db.is_empty()
            || self.base64_output.is_some()
            || self.idempotent
            || self.disable_log_bin
            || self.set_charset.is_some()
            || self.short_form
            || self.flashback
    }
}

/// The form of row events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Base64 {
    #[default]
    Auto,
    Never,
    DecodeRows,
}

/// A database's old and new name.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

fn rewrite(text: &str) -> Result<Rewrite, String> {
    let (from, to) = text.split_once("->").ok_or("two names are wanted: 'from->to'")?;
    let (from, to) = (from.trim().as_bytes().to_vec(), to.trim().as_bytes().to_vec());
    if from.is_empty() || to.is_empty() || to.len() > 255 {
        return Err("a name is missing, or too long".into());
    }
    Ok(Rewrite { from, to })
}

fn charset(text: &str) -> Result<String, String> {
    let known = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if known { Ok(text.to_owned()) } else { Err(format!("'{text}' is no name of a character set")) }
}
