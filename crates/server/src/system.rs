//! Information from the operating system.

use std::hash::{BuildHasher, RandomState};

/// `digits` random hexadecimal digits: unpredictable enough for a name, not for a secret.
pub fn random_hex(digits: usize) -> String {
    let mut text = String::new();
    while text.len() < digits {
        // The standard library keys each `RandomState` from the system's randomness.
        text.push_str(&format!("{:016x}", RandomState::new().hash_one(text.len())));
    }
    text.truncate(digits);
    text
}

/// A random number below `bound`, which is not 0.
pub fn random_below(bound: u64) -> u64 {
    RandomState::new().hash_one(bound) % bound
}

/// Bytes of memory of this machine, or of the control group that limits the process; no limit if
/// unknown.
pub fn total_memory() -> u64 {
    let machine = kib_field("/proc/meminfo", "MemTotal:").unwrap_or(u64::MAX);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(u64::MAX);
    machine.min(group)
}

/// Resident bytes of this process, if the system provides them.
pub fn resident_memory() -> Option<u64> {
    kib_field("/proc/self/status", "VmRSS:")
}

/// A line `NAME   123 kB` of a file, in bytes.
fn kib_field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Seconds of processor time this process has used: in user mode and in the kernel.
pub fn cpu_seconds() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The process name, in parentheses, may hold anything: the fields are counted from its end.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |at: usize| -> Option<f64> { fields.get(at)?.parse().ok() };
    // Linux counts in ticks of a hundredth of a second on every architecture (USER_HZ).
    Some((ticks(11)? / 100.0, ticks(12)? / 100.0))
}
