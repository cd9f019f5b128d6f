//! A simulation of log, pipeline and recovery on a model disk, whose crashes leave any legal state, from a seed.
//!
//! - `random`: numbers from a seed
//! - `plan`: the settings and failures that a seed decides on
//! - `schedule`: the scheduler of threads
//! - `stillness`: detection of a process in which no thread has work
//! - `disk`: the model disk, which knows what is durable, and the states that a crash leaves
//! - `engine`: a storage engine in memory, with a redo log on the disk
//! - `engines`: one or two of these, by the server's own `EngineSet`
//! - `follower`: a replica's dump, which reads durable events while everything else continues
//! - `names`: the author of a change, from keys, events and statements
//! - `request`: transactions, and reading them back
//! - `branches`: XA branches, in SQL: the server's own statements and replay over this engine and log
//! - `oracle`: requests and replies, and what must be there therefore; it sees nothing else
//! - `branch_oracle`: the same for XA branches
//! - `life`: one process: open, recover, commit, rotate, purge, back up, until it ends in one of several ways
//! - `history`: several of them, one after the other, on one disk
//! - `port`: the commit interface of SQL sessions
//! - `mutant`: deliberate faults, each of which the modules above must find
//!
//! `docs/internals/simulation.md` says how to run it and what it is not. Nothing depends on this crate.

mod branch_oracle;
mod branches;
mod disk;
mod engine;
mod engines;
mod follower;
mod history;
mod life;
mod mutant;
mod names;
mod oracle;
mod plan;
mod port;
mod random;
mod request;
mod schedule;
mod stillness;

pub use disk::{Lie, NameRule, Rules, SimDisk, Trouble};
pub use history::{Finding, Report, run};
pub use mutant::Mutant;
pub use random::Random;
pub use schedule::Schedule;
