//! What this process holds.

use std::fs;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::client::IDLE_TIMEOUT;

/// How many tasks the runtime has.
pub fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Resident memory in KiB, where the system tells.
pub fn resident() -> Option<u64> {
    // `statm` would be a few pages off (proc(5)), this is not.
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// The same when nobody has called for long enough that all idle connections are closed, and the allocator has given
/// back what it keeps for later.
///
/// The buffers of ten connections more or less are 5 %. glibc keeps most of what was freed, in the gaps between what is
/// in use; how much that is depends on the largest crowd so far, and grows for minutes without any leak.
pub async fn resident_at_rest() -> Option<u64> {
    sleep(3 * IDLE_TIMEOUT).await;
    give_back();
    resident()
}

/// Has all threads allocate from one heap. To be called before there are others.
///
/// glibc gives each thread a heap and a cache of freed pieces. It takes minutes until the caches are full, and each piece
/// in them keeps a page: 3 to 5 % more between 30 s and 120 s with a heap for each thread, 1 to 4 % with one for all, 1 %
/// without caches.
#[cfg(target_env = "gnu")]
pub fn allocate_from_one_heap() {
    // SAFETY: it only sets how many heaps may be made.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

#[cfg(not(target_env = "gnu"))]
pub fn allocate_from_one_heap() {}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: it takes the allocator's own locks, and touches nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

/// Whether a thread of this process has the name.
pub fn has_thread(name: &str) -> bool {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok()).any(|comm| comm.trim() == name)
}

/// Waits until `is_so`, for a few seconds at most, and says whether it came true.
pub async fn comes_true(is_so: impl Fn() -> bool) -> bool {
    let look = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(5), look).await.is_ok()
}
