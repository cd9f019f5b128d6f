//! Spaces that were filled for a definition whose commit is still to come.
//!
//! They are dropped with whatever ends the statement before that commit has its place in the log: an error of the statement itself, or a
//! commit that was refused or withdrawn, whose request had this with it. Else a copy of a table would stay on the disk until a restart.

use crate::store::TrxContext;
use omnibus_engine::SpaceId;
use std::sync::Arc;

/// See the module's text. Dropped on any thread, also in the flush stage.
pub(crate) struct Loaded {
    shared: Arc<TrxContext>,
    spaces: Vec<SpaceId>,
}

impl Loaded {
    /// Begins before anything is written to the spaces.
    pub(super) fn new(shared: &Arc<TrxContext>, spaces: impl Iterator<Item = SpaceId>) -> Loaded {
        Loaded { shared: shared.clone(), spaces: spaces.collect() }
    }

    /// The commit of their definition has its place: they stay.
    pub(super) fn keep(mut self) {
        self.spaces.clear();
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let port = &self.shared.port;
        // The definition may be in a log that failed. The next start knows, and drops what no definition has.
        if self.spaces.is_empty() || port.has_failed() {
            return;
        }
        let at = port.numbered();
        self.spaces.drain(..).for_each(|space| port.engine().drop_space(space, at));
    }
}
