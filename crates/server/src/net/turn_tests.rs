//! Tests of turns, outboxes and the ring. Those of turns hold with and without a ring of the kernel's.

#![allow(clippy::unwrap_used)]

use super::driver::Driver;
use super::outbox::Plain;
use super::ring::{Ring, Send, send_now};
use super::turn;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream as Peer;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

/// Counts how often a session is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A runtime whose sockets are used from the test's own thread.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A server's socket with its client, which waits for nothing.
fn pair() -> (Plain<UnixStream>, Peer) {
    let (ours, theirs) = Peer::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (Plain::new(UnixStream::from_std(ours).unwrap()), theirs)
}

fn post(socket: &mut Plain<UnixStream>, bytes: &[u8]) -> bool {
    socket.post(&Context::from_waker(Waker::noop()), bytes)
}

/// Reads the bytes that have come.
fn read(peer: &mut Peer) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match peer.read(&mut buffer) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return all;
            }
        }
    }
}

/// Fills a socket until it takes nothing more, and returns the bytes.
fn fill(socket: &Plain<UnixStream>) -> Vec<u8> {
    let mut filled = Vec::new();
    let send = Send { socket: socket.socket().as_raw_fd(), bytes: &[b'x'; 4096] };
    while let Ok(count) = send_now(send) {
        filled.resize(filled.len() + count, b'x');
    }
    filled
}

#[test]
fn replies_leave_together_at_the_end_of_a_turn() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut pairs: Vec<_> = (0..20).map(|_| pair()).collect();
    assert!(!post(&mut pairs[0].0, b"no turn"), "a thread that is no worker has no turns");
    let driver = Driver::gathering();
    turn::begin(&driver);
    for (n, (socket, _)) in pairs.iter_mut().enumerate() {
        assert!(post(socket, format!("reply {n}").as_bytes()));
        assert!(post(socket, b", more"));
    }
    assert!(pairs.iter_mut().all(|(_, peer)| read(peer).is_empty()));
    turn::end();
    for (n, (_, peer)) in pairs.iter_mut().enumerate() {
        assert_eq!(String::from_utf8(read(peer)).unwrap(), format!("reply {n}, more"));
    }
    let status = driver.status();
    let counted = if Ring::new().is_ok() { "20" } else { "0" };
    assert!(status.contains(&("Omnibus_network_gathered_replies".into(), counted.into())), "{status:?}");
}

#[test]
fn a_full_turn_and_a_long_reply_do_not_wait() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let mut pairs: Vec<_> = (0..64).map(|_| pair()).collect();
    for (socket, _) in &mut pairs {
        assert!(post(socket, b"x"));
    }
    assert!(pairs.iter_mut().all(|(_, peer)| read(peer) == b"x"));
    assert!(!post(&mut pairs[0].0, &[0; 17 << 10]));
    assert!(post(&mut pairs[0].0, &[0; 10 << 10]));
    assert!(!post(&mut pairs[0].0, &[0; 10 << 10]), "not with what waits already");
}

/// NET-1.
#[test]
fn what_is_written_comes_behind_what_was_posted() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let (mut socket, mut peer) = pair();
    assert!(post(&mut socket, b"one "));
    runtime.block_on(socket.write_all(b"two ")).unwrap();
    assert!(post(&mut socket, b"three"));
    turn::end();
    assert_eq!(read(&mut peer), b"one two three");
    assert!(post(&mut socket, b"last"));
    runtime.block_on(socket.shutdown()).unwrap();
    assert_eq!(read(&mut peer), b"last");
}

/// NET-1; and the number of a closed socket may be another's by the end of the turn.
#[test]
fn a_socket_that_is_closed_sends_first_and_never_again() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let ((mut socket, mut peer), (mut second, mut other_peer)) = (pair(), pair());
    assert!(post(&mut socket, b"last words") && post(&mut second, b"stays"));
    drop(socket);
    assert_eq!(read(&mut peer), b"last words");
    let (_heir, mut wrong) = pair();
    turn::end();
    assert_eq!(read(&mut other_peer), b"stays");
    assert!(read(&mut wrong).is_empty());
}

/// NET-1: a session goes on where it likes.
#[test]
fn a_session_that_moves_to_another_thread_is_sent_once_and_in_order() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let (mut socket, mut peer) = pair();
    assert!(post(&mut socket, b"here "));
    let handle = runtime.handle().clone();
    let mut socket = std::thread::spawn(move || {
        let _inside = handle.enter();
        assert!(!post(&mut socket, b"no turn here"));
        handle.block_on(socket.write_all(b"there ")).unwrap();
        turn::begin(&Driver::gathering());
        assert!(post(&mut socket, b"in the first thread's list "));
        socket
    })
    .join()
    .unwrap();
    assert!(post(&mut socket, b"here again"));
    turn::end();
    turn::end();
    assert_eq!(read(&mut peer), b"here there in the first thread's list here again");
}

/// NET-2.
#[test]
fn a_peer_that_does_not_read_holds_up_its_own_session_only() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let ((mut slow, mut slow_peer), (mut quick, mut quick_peer)) = (pair(), pair());
    let mut expected = fill(&slow);
    let reply: Vec<u8> = (0..16_000_u32).map(|n| (n % 251) as u8).collect();
    let woken = Arc::<Woken>::default();
    assert!(slow.post(&Context::from_waker(&woken.clone().into()), &reply));
    assert!(post(&mut quick, b"quick"));
    assert!(!slow.is_stuck());
    turn::end();
    assert_eq!(read(&mut quick_peer), b"quick");
    assert!(slow.is_stuck());
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "its session has to know");
    assert!(!post(&mut slow, b"not behind what is stuck"));
    expected.extend(&reply);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        while all.len() < expected.len() {
            all.extend(read(&mut slow_peer));
        }
        all == expected
    });
    runtime.block_on(poll_fn(|cx| slow.poll_unsent(cx))).unwrap();
    assert!(!slow.is_stuck());
    assert!(reader.join().unwrap(), "all of it came, in order");
}

/// NET-2.
#[test]
fn a_peer_that_is_gone_is_an_error_of_its_own_session() {
    let runtime = runtime();
    let _inside = runtime.enter();
    turn::begin(&Driver::gathering());
    let ((mut gone, gone_peer), (mut other, mut other_peer)) = (pair(), pair());
    drop(gone_peer);
    assert!(post(&mut gone, b"to nobody") && post(&mut other, b"to somebody"));
    turn::end();
    assert_eq!(read(&mut other_peer), b"to somebody");
    assert!(gone.is_stuck());
    let error = runtime.block_on(gone.write_all(b"more")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

/// NET-3: on a runtime with the hooks of the server's.
#[test]
fn nothing_posted_waits_for_a_sleeping_or_a_blocking_thread() {
    let driver = Driver::gathering();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_unpark(move || turn::begin(&driver))
        .on_thread_park(turn::end)
        .build()
        .unwrap();
    let ((mut socket, peer), longest) = (
        {
            let _inside = runtime.enter();
            pair()
        },
        Duration::from_secs(1),
    );
    peer.set_nonblocking(false).unwrap();
    peer.set_read_timeout(Some(longest)).unwrap();
    let task = runtime.spawn(async move {
        // The thread has been woken by this task's own start.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(poll_fn(|cx| Poll::Ready(socket.post(cx, b"a"))).await, "a worker has turns");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(poll_fn(|cx| Poll::Ready(socket.post(cx, b"b"))).await);
        turn::blocking(|| {
            assert!(!turn::is_open());
            std::thread::sleep(2 * longest);
        });
        socket
    });
    let (mut byte, since) = ([0], Instant::now());
    for wanted in [b"a", b"b"] {
        (&peer).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, wanted);
    }
    assert!(since.elapsed() < longest);
    drop(runtime.block_on(task).unwrap());
}

#[test]
fn a_ring_answers_for_each_send() {
    let Ok(mut ring) = Ring::new() else {
        println!("skipped: the kernel gives no ring");
        return;
    };
    let pairs: Vec<_> = (0..300).map(|_| Peer::pair().unwrap()).collect();
    let texts: Vec<_> = (0..300).map(|n| format!("number {n}")).collect();
    let socket = |n: usize| if n == 7 { -1 } else { pairs[n].0.as_raw_fd() };
    let sends: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| Send { socket: socket(n), bytes: text.as_bytes() })
        .collect();
    let mut results = Vec::new();
    ring.send(&sends, &mut results);
    assert_eq!(results.len(), 300);
    for (n, (result, (_, peer))) in results.iter().zip(&pairs).enumerate() {
        if n == 7 {
            assert_eq!(result.as_ref().unwrap_err().raw_os_error(), Some(libc::EBADF));
            continue;
        }
        assert_eq!(*result.as_ref().unwrap(), texts[n].len());
        let mut buffer = [0; 64];
        let count = (&*peer).read(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], texts[n].as_bytes());
    }
    // A full socket takes nothing, and the call comes back.
    let (ours, _theirs) = Peer::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    while (&ours).write(&[0; 65536]).is_ok() {}
    ours.set_nonblocking(false).unwrap();
    results.clear();
    ring.send(&[Send { socket: ours.as_raw_fd(), bytes: &[0; 65536] }], &mut results);
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::WouldBlock);
}
