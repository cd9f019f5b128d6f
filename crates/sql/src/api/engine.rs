//! Storage engines that other servers have and this one stands in for.

/// Whether a storage engine is known from other servers: the default engine stands in for it.
#[must_use]
pub fn is_foreign_engine(name: &str) -> bool {
    const KNOWN: [&str; 12] = [
        "innodb",
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

/// Whether a name in ENGINE= means one of this server's own storage engines, which no other server has.
#[must_use]
pub fn is_own_engine(name: &str) -> bool {
    ["lsm", "btree", "omnibus"].iter().any(|own| own.eq_ignore_ascii_case(name))
}
