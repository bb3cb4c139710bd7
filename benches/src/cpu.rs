//! The processor time of a process, and of all of them.

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

/// How long the cores were busy, whatever with, in steps of 10 ms. Time that another virtual machine
/// took counts, too.
pub fn busy_nanos() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    let ticks = words
        .skip(1)
        .map(str::parse)
        .collect::<Result<Vec<u64>, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal; what follows is contained in them.
    let idle = ticks.iter().skip(3).take(2).sum::<u64>();
    let all = ticks.iter().take(8).sum::<u64>();
    Ok((all - idle) * 10_000_000)
}
