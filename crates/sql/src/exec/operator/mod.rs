//! Operators: what those of a plan do with rows, a file for each kind.
//!
//! **Tree.** A plan is a tree of operators ([`crate::plan::physical`]): which there are, of which kinds, and what is below each is decided there,
//! once. `dispatch` calls the function of an operator's kind with the operator and a consumer; that function has `dispatch` run the operators below,
//! with consumers of its own. A kind that depends on another one below (`sort` on a DISTINCT) runs both.
//!
//! **Push.** The function calls its consumer for each row.
//! There is no state of an operator between calls: it runs from its first row to its last, once for each row of the loops around it,
//! and recursion is as deep as the plan. Short statements gain by it: nothing is opened, asked and closed.
//!
//! **Two kinds of rows.** A [`FrameOperator`](crate::plan::physical::FrameOperator) puts rows into the frame (`Context::frame`), one slot for each
//! table, and a consumer ([`Joined`]) reads it there. Who needs an earlier row again (a group, a sort, a hash table) copies it and puts it back; when a
//! consumer returns, its operator may write the slots that it owns, and no others. A [`ResultOperator`](crate::plan::physical::ResultOperator), from
//! `project` on, gives a slice of values ([`Consumer`]), which is the consumer's until it returns. No batches of either: see
//! `docs/decisions/0044-rows-one-at-a-time.md`.
//!
//! **Wanted.** An operator of results is told which of them are wanted (`limit::Bounds`) and gives no others, so that LIMIT costs nothing a row and
//! what OFFSET leaves out is not computed. One of rows in the frame is told how many may be taken, as far as that follows without looking at them:
//! a scan reads no further ahead.
//!
//! **Enough.** A consumer answers with [`Flow`]. After `Flow::Stop` it is not called again: an operator returns `Flow::Stop` at once, without
//! what it may still have. An operator returns `Flow::Continue` when its rows have ended. Whoever turns `Stop` into `Continue` is where
//! the rows belong to a query of their own (`set_operation`, a subquery that EXISTS asks), because its LIMIT is not that of the query around.
//!
//! **Errors and interrupts** pass through with `?`. An interrupt (a lock to wait for) drops everything: the statement runs again.
//!
//! **KILL** and time limits are seen by `Context::tick`, which every loop calls for each row that it takes from memory or from a file;
//! storage sees them for the rows that it reads, and `recursion` between its steps. `Context::check_stack` guards the recursion.
//!
//! **Memory** is asked for, by [`crate::memory::Account`], by those who keep rows: `hash_join`, `derived`, `group`, `sort`,
//! `frame_sort`, `distinct`, `window`, `set_operation`, `recursion`. Each goes to a temporary file when its share is used up, but for `recursion`'s rows that were
//! found, which are refused. The others keep one row.
//!
//! **EXPLAIN** prints the same tree (`exec::explain`). **EXPLAIN ANALYZE** has [`crate::expr::profile`] count a query (`query`), and in `dispatch` those
//! operators that give rows in the frame, but for conditions on groups, windows and sorts, which have no times of their own. Counted are calls,
//! rows given, and the time without that of the consumer.
//!
//! Joins stand in joins and blocks in set operations, so files here use each other in circles, as plans do.

pub(super) mod query;

mod computed;
mod derived;
mod dispatch;
mod distinct;
mod filter;
mod frame_sort;
mod group;
mod hash_join;
pub(super) mod limit;
mod outer_join;
mod project;
mod recursion;
mod rollup;
mod scan;
mod set_operation;
mod sort;
mod stream_group;
mod values;
mod window;
mod window_frame;
mod window_value;

use crate::error::ExecResult;
use crate::expr::Context;
use crate::expr::subquery::Consumer;
use crate::rows::Flow;

/// Takes joined rows, which are in the frame.
type Joined<'c> = dyn FnMut(&mut Context<'_>) -> ExecResult<Flow> + 'c;
