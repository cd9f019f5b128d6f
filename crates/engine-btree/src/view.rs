//! The view of a read: the layers and one read transaction of the file, as one pointer. The commit thread only inserts
//! into the active layer; the writer thread seals it, and drops a layer in the same swap that shows the file's new
//! state. So every version is in a view at least once.

use crate::layer::Layer;
use crate::store::Versions;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct View {
    pub(crate) active: Arc<Layer>,
    /// Oldest first.
    pub(crate) sealed: Vec<Arc<Layer>>,
    pub(crate) file: Arc<Versions>,
}

impl View {
    /// Newest first.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Arc<Layer>> {
        std::iter::once(&self.active).chain(self.sealed.iter().rev())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.layers().map(|layer| layer.bytes()).sum()
    }
}

/// The installing side's state.
pub(crate) struct Installer {
    pub(crate) active: Arc<Layer>,
    /// The highest number prepared.
    pub(crate) prepared: u64,
}

pub(crate) struct Views {
    current: RwLock<Arc<View>>,
    /// Held while a transaction is installed or the view changes.
    pub(crate) installer: Mutex<Installer>,
}

impl Views {
    pub(crate) fn new(file: Versions, applied: u64) -> Views {
        let active = Arc::new(Layer::default());
        let view = View { active: Arc::clone(&active), sealed: Vec::new(), file: Arc::new(file) };
        Views {
            current: RwLock::new(Arc::new(view)),
            installer: Mutex::new(Installer { active, prepared: applied }),
        }
    }

    pub(crate) fn current(&self) -> Arc<View> {
        Arc::clone(&self.current.read())
    }

    /// Seals the active layer, if anything is in it.
    pub(crate) fn seal(&self) {
        self.seal_by(&mut self.installer.lock());
    }

    /// Adds a large transaction's layer with its number: behind everything older.
    pub(crate) fn attach(&self, staged: Arc<Layer>, number: u64) {
        let mut installer = self.installer.lock();
        self.seal_by(&mut installer);
        installer.prepared = installer.prepared.max(number);
        if staged.is_empty() {
            return;
        }
        staged.staged_at.store(number, Ordering::Release);
        staged.covers.store(number, Ordering::Release);
        let view = self.current();
        let mut sealed = view.sealed.clone();
        sealed.push(staged);
        let next = View { active: Arc::clone(&view.active), sealed, file: Arc::clone(&view.file) };
        *self.current.write() = Arc::new(next);
    }

    fn seal_by(&self, installer: &mut Installer) {
        if installer.active.is_empty() {
            return;
        }
        installer.active.covers.store(installer.prepared, Ordering::Release);
        let view = self.current();
        let mut sealed = view.sealed.clone();
        sealed.push(Arc::clone(&installer.active));
        installer.active = Arc::new(Layer::default());
        let next = View { active: Arc::clone(&installer.active), sealed, file: Arc::clone(&view.file) };
        *self.current.write() = Arc::new(next);
    }

    /// Shows the file's new state, without a layer that is in it now.
    pub(crate) fn show(&self, file: Versions, written: Option<&Arc<Layer>>) {
        let _installer = self.installer.lock();
        let view = self.current();
        let left = view.sealed.iter().filter(|layer| !written.is_some_and(|gone| Arc::ptr_eq(gone, layer)));
        let sealed = left.cloned().collect();
        let next = View { active: Arc::clone(&view.active), sealed, file: Arc::new(file) };
        *self.current.write() = Arc::new(next);
    }

    /// Returns whether every prepared version is in the file.
    pub(crate) fn all_written(&self) -> bool {
        let installer = self.installer.lock();
        installer.active.is_empty() && self.current().sealed.is_empty()
    }
}
