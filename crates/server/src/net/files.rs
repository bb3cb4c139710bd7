//! The system's limit on open files, and how many clients it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::config::Settings;

/// The maximum number of connections to the metrics port; a further one replaces the oldest.
pub const MAX_METRICS_CONNECTIONS: usize = 64;
/// Open files of the data, the log and the addresses: as many as Redis reserves.
const RESERVED_FILES: usize = 32;
/// Open files of one thread's event loop.
const EVENT_LOOP_FILES: usize = 4;
/// Event loops beside the workers': accepting connections, expiry and the metrics.
const OTHER_EVENT_LOOPS: usize = 3;

/// Raises the limit on open files, so that snapshots can be saved and the server's health can be
/// probed beside `maxclients` connections. If the system refuses, lowers `maxclients`.
pub(crate) fn reserve(settings: &mut Settings, workers: usize) -> Result<(), String> {
    let reserved = reserved(settings, workers);
    let limit = raise_limit(settings.maxclients.saturating_add(reserved));
    fit(settings, limit, reserved)
}

/// How many open files are not clients'.
fn reserved(settings: &Settings, workers: usize) -> usize {
    let metrics = match settings.metrics_port {
        0 => 0,
        _ => MAX_METRICS_CONNECTIONS,
    };
    let event_loops = workers.saturating_add(OTHER_EVENT_LOOPS);
    RESERVED_FILES
        .saturating_add(metrics)
        .saturating_add(event_loops.saturating_mul(EVENT_LOOP_FILES))
}

/// Raises the limit to what the system allows, for later CONFIG SET, or at least to what is needed.
/// Returns the limit.
fn raise_limit(needed: usize) -> usize {
    let before = getrlimit(Resource::Nofile);
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let current = before.current.unwrap_or(u64::MAX);
    let hard = before.maximum.unwrap_or(u64::MAX);
    // Only a privileged process may raise the hard limit. Some systems refuse a hard limit of
    // infinity as the current one.
    let raised = [needed.max(hard), hard, needed].into_iter().find(|&limit| {
        let new = Rlimit {
            current: Some(limit),
            maximum: before.maximum.map(|hard| hard.max(limit)),
        };
        limit > current && setrlimit(Resource::Nofile, new).is_ok()
    });
    usize::try_from(raised.unwrap_or(current)).unwrap_or(usize::MAX)
}

/// Lowers `maxclients` to what the limit allows.
fn fit(settings: &mut Settings, limit: usize, reserved: usize) -> Result<(), String> {
    let most = limit.saturating_sub(reserved);
    if most == 0 {
        return Err(format!(
            "the limit on open files is {limit}, and {reserved} are needed beside the clients'; \
             raise it with 'ulimit -n'"
        ));
    }
    if settings.maxclients > most {
        warn!(
            "maxclients is lowered from {} to {most}: the limit on open files is {limit}, of which \
             {reserved} are reserved; raise it with 'ulimit -n', or LimitNOFILE of the service",
            settings.maxclients
        );
        settings.maxclients = most;
    }
    settings.max_maxclients = most;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_for_the_rest() {
        let mut settings = Settings {
            metrics_port: 1,
            ..Settings::default()
        };
        let reserved = reserved(&settings, 2);
        assert_eq!(reserved, 32 + 64 + 5 * 4);
        assert_eq!(fit(&mut settings, 20_000, reserved), Ok(()));
        assert_eq!(settings.maxclients, 10_000);
        assert_eq!(settings.max_maxclients, 20_000 - reserved);
        assert_eq!(fit(&mut settings, 1024, reserved), Ok(()));
        assert_eq!(settings.maxclients, 1024 - reserved);
        assert!(fit(&mut settings, reserved, reserved).is_err());
    }

    /// A process that may not raise its limit gets the one it has.
    #[test]
    fn the_limit_is_the_systems() {
        let raised = raise_limit(1);
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert_eq!(u64::try_from(raised), Ok(limit));
    }
}
