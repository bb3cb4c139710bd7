//! The processor time of a process.

use anyhow::{Context, Result};

/// How long the threads of a process have run on a processor, in user and system mode.
pub fn cpu_nanos(process: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let times = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanos = times.split(' ').next().unwrap_or_default();
        sum += nanos
            .parse::<u64>()
            .context("schedstat is not understood")?;
    }
    Ok(sum)
}
