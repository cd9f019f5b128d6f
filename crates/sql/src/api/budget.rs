//! The share of its thread that a statement may use before it looks around: the one place where work in SQL is counted.
//!
//! Every loop whose length a client chooses ticks: rows read, joined, compared, hashed; nodes of expressions; pieces of
//! long texts; candidates of a plan. A tick costs a load and a store. Each `TICKS` of them the budget looks whether the
//! statement was killed, has taken `max_execution_time`, has used up what an async worker may give it
//! ([`Interrupt::NeedBlocking`]), or should let another one have its turn ([`Turns`]).
//!
//! Written by the thread that runs the statement; the atomics only make a session movable between threads.

use super::kill::{KillFlag, now_us};
use super::mode::Mode;
use super::progress::Progress;
use super::tally::Tally;
use super::turns::Turns;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Ticks between two looks. A look costs some 40 ns, a tick's work 10 ns to 1 us: looking is below a twentieth of the work,
/// and there are less than 200 us between two looks.
const TICKS: u32 = 128;
/// Bytes of a long text that count as one tick.
const BYTES: usize = 64;

/// The budget of a statement on an async worker: a millisecond and a thousand ticks (whichever is later: a machine
/// that is busy with others makes nobody run twice), but never more than five milliseconds or 16,384 ticks. A point select
/// uses none, a range of a hundred rows some hundred ticks and 0.1 ms.
const INLINE_US: u64 = 1000;
const INLINE_TICKS: u32 = 1024;
const INLINE_US_MAX: u64 = 5000;
const INLINE_TICKS_MAX: u32 = 16_384;

/// The time that a statement that may block uses before it asks for a turn: most wait for locks or disks and compute little.
const FREE_US: u64 = 2000;
/// How often one that runs asks whether its turn is over.
const ASK_US: u64 = 2000;

/// The budget of a session's running statement.
#[derive(Debug)]
pub struct Budget {
    kill: Arc<KillFlag>,
    turns: Arc<Turns>,
    id: u64,
    /// Ticks until the next look.
    left: AtomicU32,
    /// Ticks before the last look.
    used: AtomicU32,
    /// When the attempt looked first; 0: it has not.
    begun_us: AtomicU64,
    /// When it asks for its next turn.
    ask_us: AtomicU64,
    /// The attempt is on an async worker.
    inline: AtomicBool,
    /// The attempt before it was too long for an async worker.
    long: AtomicBool,
    /// The statement takes turns with others.
    shares: AtomicBool,
    /// The counts of the session's statements so far.
    pub tally: Tally,
    /// How far the running one is, if it is of a kind that tells.
    pub progress: Arc<Progress>,
}

impl Default for Budget {
    /// That of a session of its own.
    fn default() -> Budget {
        Budget::new(Arc::default(), Arc::default())
    }
}

impl Budget {
    /// For a session that is killed by `kill` and shares the machine with those who have the same `turns`.
    #[must_use]
    pub fn new(kill: Arc<KillFlag>, turns: Arc<Turns>) -> Budget {
        Budget {
            id: turns.new_id(),
            kill,
            turns,
            left: AtomicU32::new(TICKS),
            used: AtomicU32::new(0),
            begun_us: AtomicU64::new(0),
            ask_us: AtomicU64::new(0),
            inline: AtomicBool::new(false),
            long: AtomicBool::new(false),
            shares: AtomicBool::new(true),
            tally: Tally::default(),
            progress: Arc::default(),
        }
    }

    /// The flag that KILL sets.
    #[must_use]
    pub fn kill(&self) -> &Arc<KillFlag> {
        &self.kill
    }

    /// The session's statements wait for nobody's turn: others wait for them (appliers).
    pub fn take_no_turns(&self) {
        self.shares.store(false, Ordering::Relaxed);
    }

    /// An attempt begins; `again`: of the same statement.
    pub fn begin(&self, mode: Mode, again: bool) {
        self.tally.begin(again);
        self.left.store(TICKS, Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        self.begun_us.store(0, Ordering::Relaxed);
        self.inline.store(mode == Mode::Inline, Ordering::Relaxed);
        if !again {
            self.long.store(false, Ordering::Relaxed);
        }
        self.ask_us.store(0, Ordering::Relaxed);
    }

    /// A statement of a program begins, or the program goes on behind one, where it may block: what it has used still counts.
    pub fn go_on(&self, again: bool) {
        self.tally.begin(again);
        self.inline.store(false, Ordering::Relaxed);
    }

    /// The attempt is over, or waits for something: its turn is somebody else's.
    pub fn end(&self) {
        if self.ask_us.load(Ordering::Relaxed) != 0 {
            self.turns.leave(self.id);
            self.ask_us.store(0, Ordering::Relaxed);
        }
    }

    /// Before a wait for others that is over presently: not on an async worker, and not once the statement is killed.
    ///
    /// # Errors
    /// 1317, 3024; what becomes `NeedBlocking` on an async worker.
    pub fn may_wait(&self) -> SqlResult<()> {
        self.kill.check()?;
        if self.inline.load(Ordering::Relaxed) { Err(SqlError::needs_blocking()) } else { Ok(()) }
    }

    /// Counts a row, a comparison, a node: anything that is done often.
    ///
    /// # Errors
    /// 1317, 3024; `NeedBlocking` on an async worker.
    #[inline]
    pub fn tick(&self) -> ExecResult<()> {
        self.spend(1)
    }

    /// As `tick`, for a step of a stored program: steps may be few and each take long, so each looks for KILL.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub fn step(&self) -> ExecResult<()> {
        self.kill.check()?;
        self.tick()
    }

    /// Counts `ticks` at once.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub fn spend(&self, ticks: u32) -> ExecResult<()> {
        let left = self.left.load(Ordering::Relaxed);
        if left > ticks {
            self.left.store(left - ticks, Ordering::Relaxed);
            return Ok(());
        }
        self.look(ticks.saturating_add(TICKS - left.min(TICKS)))
    }

    /// Counts what is done to every byte of a text.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub fn bytes(&self, bytes: usize) -> ExecResult<()> {
        if bytes < BYTES { Ok(()) } else { self.spend(u32::try_from(bytes / BYTES).unwrap_or(u32::MAX)) }
    }

    /// As `tick` while a statement is planned, where all errors are a client's: `NeedBlocking` is an error that turns
    /// into it where the statement runs.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub fn tick_plan(&self) -> SqlResult<()> {
        self.spend_plan(1)
    }

    /// Counts `ticks` of planning.
    ///
    /// # Errors
    /// As `tick`.
    #[inline]
    pub fn spend_plan(&self, ticks: u32) -> SqlResult<()> {
        self.spend(ticks).map_err(|interrupt| match interrupt {
            Interrupt::Error(error) => error,
            _ => SqlError::needs_blocking(),
        })
    }

    /// Looks now: before and behind what can not tick.
    ///
    /// # Errors
    /// As `tick`.
    #[cold]
    pub fn look(&self, ticks: u32) -> ExecResult<()> {
        self.left.store(TICKS, Ordering::Relaxed);
        self.kill.check()?;
        // An applier's transaction must not fail for the memory of others.
        if self.shares.load(Ordering::Relaxed) {
            self.kill.check_memory()?;
        }
        let now = now_us();
        let begun = match self.begun_us.load(Ordering::Relaxed) {
            0 => {
                self.begun_us.store(now, Ordering::Relaxed);
                now
            }
            begun => begun,
        };
        let taken = now.saturating_sub(begun);
        if self.inline.load(Ordering::Relaxed) {
            let used = self.used.load(Ordering::Relaxed).saturating_add(ticks);
            self.used.store(used, Ordering::Relaxed);
            let long = taken > INLINE_US && used > INLINE_TICKS;
            if long || taken > INLINE_US_MAX || used > INLINE_TICKS_MAX {
                self.long.store(true, Ordering::Relaxed);
                return Err(Interrupt::NeedBlocking);
            }
            return Ok(());
        }
        let free = if self.long.load(Ordering::Relaxed) { 0 } else { FREE_US };
        if taken >= free && now >= self.ask_us.load(Ordering::Relaxed) && self.shares.load(Ordering::Relaxed)
        {
            self.turns.pass(self.id, &self.kill)?;
            self.ask_us.store(now_us().saturating_add(ASK_US), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_inline_statement_moves_when_it_is_long() {
        let budget = Budget::default();
        budget.begin(Mode::Inline, false);
        assert!(budget.spend(INLINE_TICKS).is_ok(), "a thousand ticks are always there");
        let moved = (0..INLINE_TICKS_MAX).find_map(|_| budget.tick().err());
        assert!(matches!(moved, Some(Interrupt::NeedBlocking)), "{moved:?}");
        budget.begin(Mode::Blocking, true);
        assert!((0..10 * INLINE_TICKS_MAX).all(|_| budget.tick().is_ok()), "where it may block it goes on");
        budget.end();
    }

    #[test]
    fn one_large_expense_is_enough() {
        let budget = Budget::default();
        budget.begin(Mode::Inline, false);
        assert!(matches!(budget.bytes(64 << 20), Err(Interrupt::NeedBlocking)));
        assert_eq!(budget.tick_plan(), Ok(()));
        budget.begin(Mode::Inline, true);
        let moved = (0..INLINE_TICKS_MAX + TICKS).find_map(|_| budget.tick_plan().err());
        assert!(matches!(Interrupt::from(moved.unwrap()), Interrupt::NeedBlocking));
    }

    #[test]
    fn nothing_waits_inline_or_killed() {
        let budget = Budget::default();
        budget.begin(Mode::Inline, false);
        assert!(matches!(budget.may_wait().map_err(Interrupt::from), Err(Interrupt::NeedBlocking)));
        budget.begin(Mode::Blocking, true);
        assert_eq!(budget.may_wait(), Ok(()));
        budget.kill().kill_query();
        assert_eq!(budget.may_wait().unwrap_err().code, 1317);
    }

    #[test]
    fn kill_and_the_time_limit_are_seen_within_some_ticks() {
        let budget = Budget::default();
        budget.begin(Mode::Blocking, false);
        budget.kill().kill_query();
        let ended = (0..=TICKS).find_map(|_| budget.tick().err());
        assert!(matches!(ended, Some(Interrupt::Error(error)) if error.code == 1317));
        budget.kill().reset();
        budget.kill().give_memory_back(7);
        let ended = (0..=TICKS).find_map(|_| budget.tick().err());
        assert!(matches!(ended, Some(Interrupt::Error(error)) if error.code == 3170));
        assert!((0..=TICKS).all(|_| budget.tick().is_ok()), "once");
        budget.kill().set_deadline(1, crate::api::TimeLimit::Query);
        let ended = (0..).find_map(|_| budget.tick().err());
        assert!(matches!(ended, Some(Interrupt::Error(error)) if error.code == 3024));
    }
}
