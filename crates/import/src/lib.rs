//! Moves a running MySQL or MariaDB server into a running Omnibus: `omnibus import`.
//!
//! ```text
//! look       plan         both servers; what cannot be taken is named before anything is copied
//! snapshot   snapshot     one moment of the source in several sessions, and its place in the source's log
//! copy       schema, copy, accounts
//! check      shape, check definitions and rows of both sides at one place
//! follow     channel      the target as the source's replica, by its own replication
//! cut over   follow       the source stands still, everything is applied and equal, the channel goes
//! ```
//!
//! The command holds nothing that matters: what is done is remembered in the target (`state`, IMPORT-1), and following is the
//! target's own work, so that the command may be killed at any time and run again.
//!
//! Blocking; called by the program's main thread. Workers are scoped threads with a session at either side each, and memory
//! holds a statement of each.

mod accounts;
mod address;
mod bounds;
mod channel;
mod check;
mod copy;
mod definitions;
mod error;
mod facts;
mod follow;
mod options;
mod pieces;
mod plan;
mod progress;
mod quote;
mod run;
mod schema;
mod selection;
mod session;
mod shape;
mod snapshot;
mod state;
mod table;
mod trial;
mod workers;
mod world;

pub use address::Address;
pub use error::ImportError;
pub use options::{Action, Details, Follow, Options, SourceForTarget};
pub use selection::Selection;

/// Does what is asked for.
///
/// # Errors
/// The obstacle, and the remedy.
pub fn import(options: Options) -> Result<(), ImportError> {
    let action = options.action;
    let mut world = world::World::find(options)?;
    match action {
        Action::Plan => run::plan_only(&world),
        Action::Copy => {
            run::copy(&mut world)?;
            follow::follow(&world)
        }
        Action::Check => follow::check(&world),
        Action::CutOver => follow::cut_over(&world),
    }
}
