//! A plain socket, and its bytes that wait for the end of a thread's turn.
//!
//! A reply that is posted is in the socket's outbox, which the turn of the thread ([`super::turn`]) empties, together with those of other
//! sockets. The bytes are in order whatever happens: each write of the socket's own sends first what the outbox holds.
//!
//! - NET-1 What was posted is sent before anything else is written, before the socket is shut down, and before it is closed.
//! - NET-2 A post that the peer does not take marks its outbox as stuck and wakes its session, which then waits for the peer as with any write.

use super::ring::{Send, send_now};
use super::turn;
use parking_lot::{Mutex, MutexGuard};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that waits for one socket; a longer reply is written by itself.
const POSTED_MAX: usize = 16 << 10;
/// An outbox that was larger gives its memory back.
const KEPT: usize = 512;

/// The bytes that a socket has still to send.
#[derive(Debug)]
pub(super) struct Outbox {
    stuck: AtomicBool,
    held: Mutex<Held>,
}

/// See [`Outbox`].
#[derive(Debug)]
pub(super) struct Held {
    socket: RawFd,
    bytes: Vec<u8>,
    /// A turn has it in its list.
    gathered: bool,
    error: Option<io::Error>,
    waker: Option<Waker>,
}

impl Outbox {
    fn of(socket: RawFd) -> Arc<Outbox> {
        let held = Held { socket, bytes: Vec::new(), gathered: false, error: None, waker: None };
        Arc::new(Outbox { stuck: AtomicBool::new(false), held: Mutex::new(held) })
    }

    /// Locks it for the turn that has it in its list, which it leaves.
    pub(super) fn take_turn(&self) -> Option<MutexGuard<'_, Held>> {
        let mut held = self.held.lock();
        held.gathered = false;
        (!held.bytes.is_empty() && held.error.is_none()).then_some(held)
    }

    /// Notes what became of its bytes; gives the session to wake if not all were taken.
    pub(super) fn sent(&self, held: &mut Held, result: io::Result<usize>) -> Option<Waker> {
        match result {
            Ok(count) if count >= held.bytes.len() => {
                held.clear();
                return None;
            }
            Ok(count) => drop(held.bytes.drain(..count)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => held.error = Some(error),
        }
        self.stuck.store(true, Ordering::Release);
        held.waker.take()
    }
}

impl Held {
    /// The request for all that waits.
    pub(super) fn send(&self) -> Send<'_> {
        Send { socket: self.socket, bytes: &self.bytes }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }
}

/// A socket of the runtime with its outbox, which is made by the first post.
#[derive(Debug)]
pub struct Plain<S: AsRawFd> {
    socket: S,
    outbox: Option<Arc<Outbox>>,
}

impl<S: AsRawFd> Plain<S> {
    pub(super) fn new(socket: S) -> Plain<S> {
        Plain { socket, outbox: None }
    }

    /// The socket, for what neither reads nor writes.
    pub(super) fn socket(&self) -> &S {
        &self.socket
    }

    /// Whether the peer did not take what was posted (NET-2).
    pub(super) fn is_stuck(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.stuck.load(Ordering::Acquire))
    }

    /// Leaves bytes to the end of the thread's turn; false if they are to be written now.
    pub(super) fn post(&mut self, cx: &Context<'_>, bytes: &[u8]) -> bool {
        if bytes.len() > POSTED_MAX || !turn::is_open() {
            return false;
        }
        let outbox = self.outbox.get_or_insert_with(|| Outbox::of(self.socket.as_raw_fd()));
        let mut held = outbox.held.lock();
        if outbox.stuck.load(Ordering::Acquire) || held.bytes.len() + bytes.len() > POSTED_MAX {
            return false;
        }
        held.bytes.extend_from_slice(bytes);
        if held.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            held.waker = Some(cx.waker().clone());
        }
        let joins = !std::mem::replace(&mut held.gathered, true);
        drop(held);
        if joins {
            turn::gather(outbox);
        }
        true
    }
}

impl<S: AsRawFd + AsyncWrite + Unpin> Plain<S> {
    /// Sends what waits (NET-1).
    pub(super) fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(outbox) = &self.outbox else { return Poll::Ready(Ok(())) };
        let mut held = outbox.held.lock();
        while !held.bytes.is_empty() {
            if let Some(error) = held.error.take() {
                held.clear();
                outbox.stuck.store(false, Ordering::Release);
                return Poll::Ready(Err(error));
            }
            match ready!(Pin::new(&mut self.socket).poll_write(cx, &held.bytes)) {
                Ok(0) => held.error = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(held.bytes.drain(..count)),
                Err(error) => held.error = Some(error),
            }
        }
        held.clear();
        outbox.stuck.store(false, Ordering::Release);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsRawFd> Drop for Plain<S> {
    /// NET-1. What the socket does not take now is lost, as what the kernel holds may be.
    fn drop(&mut self) {
        if let Some(outbox) = &self.outbox {
            let mut held = outbox.held.lock();
            if !held.bytes.is_empty() && held.error.is_none() {
                let _ = send_now(held.send());
            }
            // The number of the socket may be another's soon: a turn that has this outbox passes over it.
            held.bytes = Vec::new();
            held.waker = None;
        }
    }
}

impl<S: AsRawFd + AsyncRead + Unpin> AsyncRead for Plain<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(cx, buf)
    }
}

impl<S: AsRawFd + AsyncWrite + Unpin> AsyncWrite for Plain<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_unsent(cx))?;
        Pin::new(&mut this.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_unsent(cx))?;
        Pin::new(&mut this.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_unsent(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_unsent(cx))?;
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}
