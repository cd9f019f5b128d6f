//! A file written beforehand as the log's next one: what is in the log, and what a crash at each step leaves.

use super::*;
use std::path::PathBuf;

const RESERVE: u64 = 2 * BLOCK as u64;

/// Everything of transaction `gno` behind its GTID event, in a file as [`LogWriter::promote`] wants it.
fn spill(path: &Path, gno: u64, payload: usize) -> Spilled {
    let mut bytes = vec![0; RESERVE as usize];
    let at = event(&mut bytes, EventType::QUERY, RESERVE, query(b"BEGIN"));
    let at = event(&mut bytes, EventType::QUERY, at, query(&vec![b'x'; payload]));
    let end = event(&mut bytes, EventType::XID, at, |out| Xid(gno).encode(out));
    let tail = bytes[(end - end % BLOCK as u64) as usize..].to_vec();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    let path = spill_path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &bytes).unwrap();
    open(&path).sync_all().unwrap();
    Spilled { path, reserve: RESERVE, end, tail, front: 0 }
}

fn spill_path(path: &Path) -> PathBuf {
    path.join("#binlog_cache_files").join("1")
}

/// A filler and a GTID event between the file's head and the transaction's other events.
fn opening(gno: u64) -> Vec<u8> {
    let mut measured = Vec::new();
    event(&mut measured, EventType::GTID, 0, gtid(gno));
    let from = 4 + head().len() as u64;
    let filler = RESERVE as usize - measured.len() - from as usize;
    let mut out = Vec::new();
    let at = event(&mut out, EventType::IGNORABLE, from, |out| out.resize(out.len() + filler - 23, 0));
    event(&mut out, EventType::GTID, at, gtid(gno));
    out
}

fn promote(
    writer: &mut LogWriter,
    path: &Path,
    gno: u64,
    payload: usize,
) -> Result<LogPosition, RotateError> {
    let spilled = spill(path, gno, payload);
    let event = rotate_event(writer.position().offset.0, &writer.next_file_name().unwrap());
    writer.buffer().extend_from_slice(&event);
    let end = writer.promote(&head(), &opening(gno), &spilled)?;
    writer.handle().durable_end().advance(end);
    Ok(end)
}

#[test]
fn the_log_goes_on_before_and_behind_a_promoted_transaction() {
    for method in METHODS {
        // Ends within the first block, right at a boundary or so, and far behind.
        for payload in [10, 3800, 4000, 4096, 300_000] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = start(dir.path(), config(method));
            commit(&mut writer, 1, 500).unwrap();
            let end = promote(&mut writer, dir.path(), 2, payload).unwrap();
            assert_eq!((end.file, writer.position()), (FileSeq(2), end));
            commit(&mut writer, 3, 700).unwrap();
            commit(&mut writer, 4, 5000).unwrap();
            // A reader sees it while the file is active.
            let mut reader = TailReader::open(&writer.handle(), LogPosition::new(FileSeq(1), 4)).unwrap();
            let mut xids = 0;
            loop {
                match reader.next().unwrap() {
                    TailNext::Event(event) => xids += u64::from(event.header.event_type == EventType::XID),
                    TailNext::NextFile(_) => {}
                    TailNext::CaughtUp => break,
                }
            }
            assert_eq!(xids, 4, "{method} {payload}");
            promote(&mut writer, dir.path(), 5, payload).unwrap();
            rotate(&mut writer).unwrap();
            commit(&mut writer, 6, 10).unwrap();
            writer.handle().wait_for_background();
            close(&mut writer).unwrap();
            assert!(!spill_path(dir.path()).exists());
            let (found, tail) = recover(dir.path());
            assert_eq!(found, [1, 2, 3, 4, 5, 6], "{method} {payload}");
            assert!(!tail.unwrap().needs_truncation());
        }
    }
}

/// Gives the number acknowledged last, and whether the last step was the promotion.
fn life(path: &Path, faults: &Faults) -> u64 {
    let config = LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) };
    let mut acknowledged = 0;
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let mut writer = LogWriter::start(LogDir::open(path, config)?, &head())?;
        for gno in 1..=5 {
            if gno % 2 == 0 {
                promote(&mut writer, path, gno, 20_000)?;
            } else {
                commit(&mut writer, gno, 500)?;
            }
            acknowledged = gno;
        }
        close(&mut writer)?;
        Ok(())
    };
    let _ = run();
    acknowledged
}

#[test]
fn a_kill_at_any_step_leaves_the_whole_transaction_or_nothing_of_it() {
    let faults = Faults::default();
    let steps = {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(life(dir.path(), &faults), 5);
        faults.passed().len()
    };
    assert!(faults.passed().contains(&Point::PromoteRename) && steps > 25);
    at_once(steps, |step| {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        faults.crash_at_step(step);
        let acknowledged = life(dir.path(), &faults);
        let (found, _) = recover(dir.path());
        let last = found.last().copied().unwrap_or(0);
        assert!(last == acknowledged || last == acknowledged + 1, "step {step}: {found:?} {acknowledged}");
        assert_eq!(found, (1..=last).collect::<Vec<_>>(), "step {step}");
        // The log goes on, and no file is left that it does not name (INDEX-2).
        let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
        commit(&mut writer, last + 1, 10).unwrap();
        close(&mut writer).unwrap();
        drop(writer);
        let (again, tail) = recover(dir.path());
        assert_eq!(again, (1..=last + 1).collect::<Vec<_>>(), "step {step}");
        assert!(!tail.unwrap().needs_truncation(), "step {step}");
        let index = fs::read_to_string(dir.path().join("binlog.index")).unwrap();
        let files = fs::read_dir(dir.path()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
            name.starts_with("binlog.0")
        });
        assert_eq!(files.count(), index.lines().count(), "step {step}");
    });
}

/// The write that opens the transaction is torn at every length: nothing of the transaction counts (COMMIT-3).
#[test]
fn a_torn_opening_is_no_transaction() {
    let whole = tempfile::tempdir().unwrap();
    let mut writer = start(whole.path(), config(FlushMethod::ODirectDsync));
    commit(&mut writer, 1, 500).unwrap();
    promote(&mut writer, whole.path(), 2, 20_000).unwrap();
    let bytes = fs::read(whole.path().join("binlog.000002")).unwrap();
    drop(writer);
    let from = 4 + head().len();
    at_once(64, |n| {
        let dir = tempfile::tempdir().unwrap();
        drop({
            let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
            commit(&mut writer, 1, 500).unwrap();
            rotate(&mut writer).unwrap();
            writer
        });
        let mut torn = bytes.clone();
        let cut = from + (RESERVE as usize - from - 1) * n / 63;
        torn[cut..RESERVE as usize].fill(0);
        fs::write(dir.path().join("binlog.000002"), &torn).unwrap();
        let (found, tail) = recover(dir.path());
        assert_eq!(found, [1], "cut at {cut}");
        assert!(tail.unwrap().needs_truncation());
        assert!(file_len(dir.path(), "binlog.000002") < RESERVE);
    });
}
