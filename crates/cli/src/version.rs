//! The output of `omnibus --version`: version, commit, and the protocol and formats that this program speaks, reads and
//! writes.

use std::sync::LazyLock;

/// The text behind the program's name.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{} (commit {})\nclient/server protocol 10, as {}\nbinary log format 4\ndata directory format {}, LSM format {}, B-tree format {}",
            env!("CARGO_PKG_VERSION"),
            env!("OMNIBUS_COMMIT"),
            omnibus_server::VERSION,
            omnibus_server::DATADIR_FORMAT,
            omnibus_engine_lsm::FORMAT,
            omnibus_engine_btree::FORMAT,
        )
    });
    &TEXT
}
