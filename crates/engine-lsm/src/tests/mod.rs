//! The engine contract's suite, with roomy and with tiny limits, and what only this engine has.
#![allow(clippy::unwrap_used)]

use crate::{LsmConfig, LsmEngine};
use omnibus_engine::{Engine, conformance};
use std::path::Path;
use std::sync::Arc;

fn tiny(directory: &Path) -> LsmConfig {
    LsmConfig {
        memtable_size: 8 << 10,
        block_cache_size: 1 << 20,
        table_target_size: 16 << 10,
        // Tests commit without asking `write_stall`.
        sealed_soft_limit: 8,
        ..LsmConfig::new(directory)
    }
}

#[test]
fn conforms() {
    conformance::run_all(|directory| Arc::new(LsmEngine::open(LsmConfig::new(directory)).unwrap()));
}

#[test]
fn conforms_when_everything_is_flushed_all_the_time() {
    conformance::run_all(|directory| -> Arc<dyn Engine> {
        Arc::new(LsmEngine::open(tiny(directory)).unwrap())
    });
}
