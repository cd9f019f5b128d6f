//! Text files of rows: what FIELDS and LINES say of them, and how `SELECT .. INTO OUTFILE` writes one. `load` reads them.

mod format;
mod outfile;

pub(crate) use format::{Format, unescaped, width};
pub(crate) use outfile::{Outfile, OutfileSink};
