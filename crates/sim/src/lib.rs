//! A simulation of log, pipeline and recovery on a disk that may crash into anything legal, from a seed.
//!
//! - `random`    numbers from a seed
//! - `schedule`  which thread goes on
//! - `stillness` whether any thread ever will
//! - `disk`      what is durable, and what a crash leaves
//! - `engine`    a storage engine in memory, with a redo log on the disk
//! - `engines`   one or two of these, by the server's own `EngineSet`
//! - `follower`  a replica's dump, which reads what is durable while everything goes on
//! - `names`     who wrote it, by what keys, events and statements say
//! - `request`   transactions, and reading them back
//! - `branches`  XA branches, in SQL: the server's own statements and replay over this engine and log
//! - `oracle`    what was asked and answered, and what must be there therefore; it sees nothing else
//! - `branch_oracle`  the same of XA branches
//! - `life`      one process: open, recover, commit, rotate, purge, back up, until it ends one way or another
//! - `history`   several of them, one after the other, on one disk
//! - `port`      how the sessions of SQL commit
//! - `mutant`    deliberate breakages, each of which the above must find
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
