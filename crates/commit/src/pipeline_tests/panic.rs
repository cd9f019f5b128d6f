//! A panic in the pipeline ends the process; a ticket that will never be completed reports an unknown outcome.

use super::*;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tells the test binary that it is the process that has to end.
const CHILD: &str = "OMNIBUS_TEST_PANIC_IN_THE_PIPELINE";

#[test]
fn a_panic_under_the_flush_lock_ends_the_process() {
    // COMMIT-3: a transaction in the log that is half installed is repaired by a start, and by nothing else.
    if std::env::var_os(CHILD).is_some() {
        let pipeline = start(&Arc::new(World::default()), CommitSettings::default());
        let ticket = pipeline.commit(CommitRequest {
            on_ordered: Some(Box::new(|_| panic!("a bug at the transaction's place"))),
            ..request()
        });
        let _ = ticket.wait();
        // The ticket may end before the process does; this thread must not end it first.
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "pipeline_tests::panic::a_panic_under_the_flush_lock_ends_the_process",
        ])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("its client waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.status.signal(), Some(6), "SIGABRT: {said}");
    assert!(
        said.contains("a bug at the transaction's place") && said.contains("start the server again"),
        "{said}"
    );
}

#[test]
fn a_ticket_that_nobody_completes_ends_with_an_error() {
    let (completer, ticket) = crate::ticket::ticket();
    let waiting = std::thread::spawn(move || ticket.wait());
    drop(completer);
    assert!(matches!(waiting.join().unwrap(), Err(CommitError::Unknown)));
}
