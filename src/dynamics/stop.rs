//! The request to stop, one for the whole process: Ctrl-C sets it, whatever takes long polls it.
//!
//! It is no argument of anything, since a step deep inside a solve must see it as well. Whoever sets it takes it back
//! before something else is to run.
//!
//! What finishes work that was stopped, as writing its files, must not be stopped itself: [`unstopped`] hides the request
//! from its own thread alone. The request stays made: other threads still end, and who asks a second time learns that it
//! is the second. Threads that work for another one take over what that one sees, by [`Stoppable`].

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Does this thread finish what was stopped?
    static FINISHING: Cell<bool> = const { Cell::new(false) };
}

/// Asks everything that runs to end with what it has; true where that was asked for before.
pub fn request_stop() -> bool {
    REQUESTED.swap(true, Ordering::SeqCst)
}

/// Is something to stop?
pub fn stop_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed) && !FINISHING.get()
}

/// Does what no request stops, as ending with what there is.
pub fn unstopped<T>(work: impl FnOnce() -> T) -> T {
    Stoppable(false).run(work)
}

/// Takes the request back.
pub fn clear_stop() {
    REQUESTED.store(false, Ordering::SeqCst);
}

/// Whether work is stopped by a request. Found where threads are given work, and applied to every piece of it, since a
/// thread of a pool may take up pieces of others while it waits.
#[derive(Clone, Copy, Debug)]
pub struct Stoppable(bool);

impl Stoppable {
    /// That of the present work.
    pub fn here() -> Self {
        Self(!FINISHING.get())
    }

    /// Does a piece of the work, on any thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        // also where the work panics
        struct Back(bool);
        impl Drop for Back {
            fn drop(&mut self) {
                FINISHING.set(self.0);
            }
        }
        let _back = Back(FINISHING.replace(!self.0));
        work()
    }
}
