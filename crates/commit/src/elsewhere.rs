//! Freeing what takes long to free on a thread of its own: a million row versions, a gigabyte of file.

/// Drops `value` on another thread, or here if there is none to be had.
pub fn drop_elsewhere<T: Send + 'static>(value: T) {
    // A thread that could not be started drops its closure, and `value` with it.
    let _ = std::thread::Builder::new().name("drop".to_owned()).spawn(move || drop(value));
}
