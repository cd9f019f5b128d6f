//! Frees large objects, such as a million row versions or a gigabyte of file, on a thread of their own.

/// Drops `value` on another thread, or on this one if none can be started.
pub fn drop_elsewhere<T: Send + 'static>(value: T) {
    // A thread that could not be started drops its closure, and `value` with it.
    let _ = std::thread::Builder::new().name("drop".to_owned()).spawn(move || drop(value));
}
