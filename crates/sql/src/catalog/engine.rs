//! Names of storage engines: the default one's, and those of other servers' engines that it stands in for.

/// The default engine's name in everything that programs read. Many look for `InnoDB` and mean transactions, row locks and foreign
/// keys by it; under another name they would take the tables for some that have none.
pub const DEFAULT_ENGINE: &str = "InnoDB";

/// Whether a name in ENGINE= means the default engine itself. Older versions wrote LSM into dumps, logs and their catalogs.
#[must_use]
pub fn is_default_engine(name: &str) -> bool {
    [DEFAULT_ENGINE, "lsm", "omnibus"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a storage engine is known from other servers: the one of `default_storage_engine` stands in for it.
#[must_use]
pub fn is_foreign_engine(name: &str) -> bool {
    const KNOWN: [&str; 11] = [
        "myisam",
        "aria",
        "memory",
        "heap",
        "rocksdb",
        "tokudb",
        "csv",
        "archive",
        "blackhole",
        "merge",
        "mrg_myisam",
    ];
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a name in ENGINE= is one that no other server knows.
#[must_use]
pub fn is_own_engine(name: &str) -> bool {
    ["lsm", "btree", "omnibus"].iter().any(|own| own.eq_ignore_ascii_case(name))
}
