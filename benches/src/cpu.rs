//! The processor time of a process.

use anyhow::{Context, Result};

/// How long the threads of a process have run on a processor, in user and system mode. Threads that
/// have ended are not counted.
pub fn cpu_nanos(process: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let Ok(times) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
            // The thread has ended since the folder was read.
            continue;
        };
        let nanos = times.split(' ').next().unwrap_or_default();
        sum += nanos
            .parse::<u64>()
            .context("schedstat is not understood")?;
    }
    Ok(sum)
}
