//! Workers over the pieces of tables, one for each session of the source, and the thread that tells how far they are.

use crate::error::ImportError;
use crate::pieces::Pieces;
use crate::progress::{Progress, say};
use crate::session::Session;
use crate::table::Table;
use parking_lot::Mutex;

/// Runs `work` in a thread for each session, with the session's number, until the pieces are done. The first failure stops all of
/// them. `what` was done to the tables is told meanwhile.
///
/// # Errors
/// The first failure.
pub(crate) fn run(
    what: &'static str,
    tables: &[Table],
    sources: &mut [Session],
    pieces: &Pieces,
    work: impl Fn(usize, &mut Session, &Progress) -> Result<(), ImportError> + Sync,
) -> Result<(), ImportError> {
    let progress = Progress::new(what, tables.len(), tables.iter().map(|table| table.bytes).sum());
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        let teller = scope.spawn(|| progress.tell());
        let workers: Vec<_> = sources
            .iter_mut()
            .enumerate()
            .map(|(number, source)| {
                let (progress, failure, work) = (&progress, &failure, &work);
                scope.spawn(move || {
                    if let Err(error) = work(number, source, progress) {
                        failure.lock().get_or_insert(error);
                        pieces.stop();
                    }
                })
            })
            .collect();
        for worker in workers {
            let _ = worker.join();
        }
        progress.end();
        let _ = teller.join();
    });
    say(&progress.line());
    failure.into_inner().map_or(Ok(()), Err)
}
