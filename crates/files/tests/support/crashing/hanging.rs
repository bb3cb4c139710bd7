//! A disk that hangs: writes and syncs of the snapshot and of the log neither return nor fail.

use std::fmt;
use std::sync::Arc;

use super::*;

/// The files whose writes and syncs hang, by how their names end. Other files, such as manifests,
/// are written under locks that a test may need.
const HANGING: [&str; 2] = [".aof", ".rdb"];

/// What a thread does, again and again, while the disk does not answer.
#[derive(Clone)]
pub(super) struct Hang(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hang")
    }
}

impl CrashingDisk {
    /// Lets writes and syncs hang until the disk heals or crashes. A thread that waits for one
    /// calls `pause` again and again.
    pub fn hang(&self, pause: impl Fn() + Send + Sync + 'static) {
        self.lock().hang = Some(Hang(Arc::new(pause)));
    }

    /// Whether it hangs.
    pub fn hangs(&self) -> bool {
        let state = self.lock();
        state.hang.is_some() && !state.crashed()
    }

    /// Returns when the disk goes on with this file.
    pub(super) fn wait_while_it_hangs(&self, file: usize) {
        loop {
            let pause = {
                let state = self.lock();
                match &state.hang {
                    Some(hang) if !state.crashed() && state.has_hanging_name(file) => hang.clone(),
                    _ => return,
                }
            };
            pause.0();
        }
    }
}

impl State {
    fn has_hanging_name(&self, file: usize) -> bool {
        let mut names = self.dirs.values().flat_map(|dir| &dir.current);
        names.any(|(name, node)| {
            *node == Node::File(file) && HANGING.iter().any(|end| name.ends_with(end))
        })
    }
}
