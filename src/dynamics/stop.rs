//! The request to stop, one for the whole process: Ctrl-C sets it, steps that take long and solvers poll it.
//!
//! It is no argument of anything, since a step deep inside a solve must see it as well. Whoever sets it takes it back
//! before something else is to run.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks everything that runs to end with what it has; true where that was asked for before.
pub fn request_stop() -> bool {
    REQUESTED.swap(true, Ordering::SeqCst)
}

/// Is something to stop?
pub fn stop_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Does what a request that was made before does not stop, as ending with what there is.
pub fn unstopped<T>(work: impl FnOnce() -> T) -> T {
    let asked = REQUESTED.swap(false, Ordering::SeqCst);
    let done = work();
    if asked {
        REQUESTED.store(true, Ordering::SeqCst);
    }
    done
}

/// Takes the request back.
pub fn clear_stop() {
    REQUESTED.store(false, Ordering::SeqCst);
}
