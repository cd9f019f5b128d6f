//! The process's allocator.

/// A commit allocates a few dozen small objects, many of them freed on another thread than they were made on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long freed memory stays with the process, in milliseconds. With the allocator's own second, statements that follow each other kept
/// three times as much as limits count (254 MiB instead of 167 under a limit of 64); commits cost the same.
const PURGE_DELAY_MS: std::ffi::c_long = 10;
/// `mi_option_purge_delay`, which the binding leaves out.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Gives freed memory back soon. `MIMALLOC_PURGE_DELAY` says otherwise.
#[allow(unsafe_code)]
pub(crate) fn give_back_soon() {
    // SAFETY: the option is one of the allocator's, and no other thread runs yet that reads it.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
    omnibus_server::set_collector(collect);
}

/// Gives back at once what this thread and others have freed.
#[allow(unsafe_code)]
fn collect() {
    // SAFETY: the call has no requirements.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
