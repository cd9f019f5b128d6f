//! Turns a damaged block of the file into an error of the call that needed it. Other calls continue.
//!
//! It unwinds instead of returning a result, because redb refuses everything after the first error of a read
//! (`backend`).

use crate::NAME;
use omnibus_engine::EngineError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

const ADVICE: &str = "restore the data directory from a backup, or make this server anew from a replica";

struct Damage(String);

/// Unwinds out of the present call of redb.
pub(crate) fn unwind(what: String) -> ! {
    // Not a panic: nothing is printed.
    resume_unwind(Box::new(Damage(what)))
}

/// The error for damage in a file.
pub(crate) fn error(path: &Path, what: &str) -> EngineError {
    EngineError::Corrupt { engine: NAME, detail: format!("{}: {what}; {ADVICE}", path.display()) }
}

/// Runs what calls redb. Damage is an error, and so is a panic of redb, which is what it does about bytes that make no sense.
pub(crate) fn caught<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|found| named(path, found)),
        Err(why) => Err(match why.downcast::<Damage>() {
            Ok(damage) => error(path, &damage.0),
            Err(_) => error(path, "its contents make no sense"),
        }),
    }
}

/// Adds the file's path to an error that redb found, which does not have it.
fn named(path: &Path, found: EngineError) -> EngineError {
    match found {
        EngineError::Corrupt { detail, .. } if !detail.contains(ADVICE) => error(path, &detail),
        EngineError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData => {
            error(path, &source.to_string())
        }
        other => other,
    }
}
