//! INFO: the figures of the server.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use everbloom_resp::Reply;

use super::{Call, metrics};
use crate::config::Settings;
use crate::stats::{Counter, WorkerStats};
use crate::system;
use crate::version::{BLOOM_VERSION, REDIS_VERSION};
use everbloom_store::keyspace::{SHARDS, View};
use everbloom_store::persistence::figures::Figures;

/// A section: its title, and the function that writes it.
type Section = (
    &'static str,
    fn(&Report<'_, '_, '_>, &mut String) -> fmt::Result,
);

const SECTIONS: &[Section] = &[
    ("Server", server_section),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", statistics),
    ("Replication", replication),
    ("CPU", cpu),
    ("Modules", modules),
    (ON_DEMAND, command_statistics),
    ("Errorstats", error_statistics),
    ("Cluster", |_, out| writeln(out, "cluster_enabled", 0)),
    ("Keyspace", keyspace),
];

/// The section that is shown only on request.
const ON_DEMAND: &str = "Commandstats";

struct Report<'r, 'c, 'k> {
    call: &'r Call<'c>,
    view: &'r View<'k>,
    settings: &'r Settings,
}

/// INFO. It reads the shards one after another. Inside EXEC all are locked already.
pub fn info(call: &Call<'_>, view: &View<'_>) -> Result<Reply, Reply> {
    let names: Vec<String> = call
        .args()
        .rest()
        .iter()
        .map(|name| String::from_utf8_lossy(name).to_ascii_lowercase())
        .collect();
    let asked = |title: &str| {
        let is = |wanted: &str| names.iter().any(|name| name == wanted);
        is(&title.to_ascii_lowercase())
            || is("all")
            || is("everything")
            || (title != ON_DEMAND && (names.is_empty() || is("default")))
    };
    let settings = call.server.config.snapshot();
    let report = Report {
        call,
        view,
        settings: &settings,
    };
    let mut text = String::new();
    for (title, write) in SECTIONS.iter().filter(|(title, _)| asked(title)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str(&format!("# {title}\r\n"));
        // Writing to a string cannot fail.
        let _ = write(&report, &mut text);
    }
    metrics::append(&names, view, &mut text);
    Ok(Reply::verbatim(text))
}

fn writeln(out: &mut String, name: &str, value: impl fmt::Display) -> fmt::Result {
    write!(out, "{name}:{value}\r\n")
}

/// Bytes in readable form: `1.50M`.
struct Human(u64);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
        let unit = units.into_iter().find(|(bits, _)| self.0 >> bits > 0);
        match unit {
            None => write!(f, "{}B", self.0),
            Some((bits, letter)) => {
                let whole = self.0 >> bits;
                let rest = self.0 & ((1 << bits) - 1);
                // Two digits of a number below 2^40: the product fits 64 bits.
                let hundredths = (rest * 100) >> bits;
                write!(f, "{whole}.{hundredths:02}{letter}")
            }
        }
    }
}

fn server_section(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let server = report.call.server;
    let settings = report.settings;
    let uptime = server.started.elapsed().as_secs();
    let port = server.entrances().first().map_or(0, |e| e.address.port());
    let file = settings.config_file.as_ref();
    let executable = std::env::current_exe().unwrap_or_default();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    writeln(out, "redis_version", REDIS_VERSION)?;
    writeln(out, "redis_mode", "standalone")?;
    writeln(out, "server_name", "everbloom")?;
    writeln(out, "everbloom_version", env!("CARGO_PKG_VERSION"))?;
    writeln(out, "os", format_args!("{os} {arch}"))?;
    writeln(out, "arch_bits", usize::BITS)?;
    writeln(out, "process_id", std::process::id())?;
    writeln(out, "run_id", &server.run_id)?;
    writeln(out, "tcp_port", port)?;
    writeln(
        out,
        "server_time_usec",
        report.call.now.ms.saturating_mul(1000),
    )?;
    writeln(out, "uptime_in_seconds", uptime)?;
    writeln(out, "uptime_in_days", uptime / 86400)?;
    writeln(out, "hz", settings.hz)?;
    writeln(out, "configured_hz", settings.hz)?;
    writeln(out, "lru_clock", report.call.now.clock & 0xff_ffff)?;
    writeln(out, "executable", executable.display())?;
    writeln(
        out,
        "config_file",
        file.map_or("".into(), |f| f.to_string_lossy()),
    )?;
    writeln(out, "io_threads_active", u8::from(server.workers.len() > 1))?;
    writeln(out, "worker_threads", server.workers.len())
}

fn clients(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let clients = report.call.server.clients.list();
    let (mut input, mut output) = (0, 0);
    for client in &clients {
        let state = client.state.lock();
        input = input.max(state.query_buffer);
        output = output.max(state.output_buffer);
    }
    writeln(out, "connected_clients", clients.len())?;
    writeln(out, "cluster_connections", 0)?;
    writeln(out, "maxclients", report.settings.maxclients)?;
    writeln(out, "client_recent_max_input_buffer", input)?;
    writeln(out, "client_recent_max_output_buffer", output)?;
    writeln(out, "blocked_clients", 0)?;
    writeln(out, "tracking_clients", 0)?;
    writeln(out, "clients_in_timeout_table", 0)
}

fn memory(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let server = report.call.server;
    let used = server.used_memory();
    let data = u64::try_from(server.store.keyspace.memory()).unwrap_or(0);
    let peak = server.stats.peak_memory.load(Ordering::Relaxed).max(used);
    let resident = system::resident_memory().unwrap_or(used);
    let most = report.settings.maxmemory;
    let sizes = [
        ("used_memory", used),
        ("used_memory_rss", resident),
        ("used_memory_peak", peak),
        ("total_system_memory", server.total_memory),
        ("maxmemory", most),
    ];
    for (name, size) in sizes {
        writeln(out, name, size)?;
        write!(out, "{name}_human:{}\r\n", Human(size))?;
    }
    writeln(out, "used_memory_dataset", data)?;
    writeln(out, "used_memory_overhead", used.saturating_sub(data))?;
    writeln(out, "maxmemory_policy", "noeviction")?;
    let ratio = percent(resident, used) / 100.0;
    writeln(out, "mem_fragmentation_ratio", format_args!("{ratio:.2}"))?;
    let beyond = i128::from(resident) - i128::from(used);
    writeln(out, "mem_fragmentation_bytes", beyond)?;
    writeln(out, "mem_clients_normal", used.saturating_sub(data))?;
    writeln(out, "mem_allocator", "libc")
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64 * 100.0
}

fn persistence(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let server = report.call.server;
    writeln(out, "loading", u8::from(server.store.health.is_loading()))?;
    writeln(out, "async_loading", 0)?;
    // There is no child process, so nothing is copied on write.
    writeln(out, "current_cow_peak", 0)?;
    writeln(out, "current_cow_size", 0)?;
    writeln(out, "current_cow_size_age", 0)?;
    writeln(out, "current_fork_perc", "0.00")?;
    let none = Figures::default();
    let figures = server.store.persistence().map_or(&none, |p| &p.figures);
    snapshots(report, figures, out)?;
    log(report, figures, out)?;
    writeln(out, "module_fork_in_progress", 0)?;
    writeln(out, "module_fork_last_cow_size", 0)?;
    log_files(report, figures, out)?;
    if server.store.health.is_loading() {
        loading(report, figures, out)?;
    }
    Ok(())
}

fn loading(report: &Report<'_, '_, '_>, figures: &Figures, out: &mut String) -> fmt::Result {
    let total = figures.loading_total.load(Ordering::Relaxed);
    let done = figures.loading_done.load(Ordering::Relaxed);
    let passed = report.call.server.started.elapsed().as_secs();
    let start = (report.call.now.ms / 1000).saturating_sub(passed);
    let left = total.saturating_sub(done).saturating_mul(passed) / done.max(1);
    let share = percent(done, total);
    writeln(out, "loading_start_time", start)?;
    writeln(out, "loading_total_bytes", total)?;
    writeln(
        out,
        "loading_rdb_used_mem",
        report.call.server.used_memory(),
    )?;
    writeln(out, "loading_loaded_bytes", done)?;
    writeln(out, "loading_loaded_perc", format_args!("{share:.2}"))?;
    writeln(out, "loading_eta_seconds", left)
}

fn status(failed: &AtomicBool) -> &'static str {
    if failed.load(Ordering::Relaxed) {
        "err"
    } else {
        "ok"
    }
}

/// Seconds since a job began, -1 if it is not running.
fn running_for(report: &Report<'_, '_, '_>, since: &AtomicU64) -> i64 {
    match since.load(Ordering::Relaxed) {
        0 => -1,
        since => {
            let passed = (report.call.now.ms / 1000).saturating_sub(since);
            i64::try_from(passed).unwrap_or(i64::MAX)
        }
    }
}

fn snapshots(report: &Report<'_, '_, '_>, figures: &Figures, out: &mut String) -> fmt::Result {
    let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let changes = report.call.server.store.journal.changes();
    let unsaved = changes.saturating_sub(load(&figures.saved_changes));
    let since = &figures.saving_since;
    writeln(out, "rdb_changes_since_last_save", unsaved)?;
    writeln(out, "rdb_bgsave_in_progress", u8::from(load(since) > 0))?;
    writeln(out, "rdb_last_save_time", load(&figures.last_save))?;
    writeln(out, "rdb_last_bgsave_status", status(&figures.save_failed))?;
    let seconds = figures.save_seconds.load(Ordering::Relaxed);
    writeln(out, "rdb_last_bgsave_time_sec", seconds)?;
    writeln(
        out,
        "rdb_current_bgsave_time_sec",
        running_for(report, since),
    )?;
    writeln(out, "rdb_saves", load(&figures.saves))?;
    writeln(out, "rdb_last_cow_size", 0)?;
    let (keys, expired) = (&figures.loaded_keys, &figures.loaded_expired);
    writeln(out, "rdb_last_load_keys_expired", load(expired))?;
    writeln(out, "rdb_last_load_keys_loaded", load(keys))
}

fn log(report: &Report<'_, '_, '_>, figures: &Figures, out: &mut String) -> fmt::Result {
    let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let enabled = report.call.server.store.journal.is_logging();
    let since = &figures.rewriting_since;
    let scheduled = figures.rewrite_scheduled.load(Ordering::Relaxed);
    let failing = figures.log_error.lock().is_some();
    writeln(out, "aof_enabled", u8::from(enabled))?;
    writeln(out, "aof_rewrite_in_progress", u8::from(load(since) > 0))?;
    writeln(out, "aof_rewrite_scheduled", u8::from(scheduled))?;
    let seconds = figures.rewrite_seconds.load(Ordering::Relaxed);
    writeln(out, "aof_last_rewrite_time_sec", seconds)?;
    writeln(
        out,
        "aof_current_rewrite_time_sec",
        running_for(report, since),
    )?;
    writeln(
        out,
        "aof_last_bgrewrite_status",
        status(&figures.rewrite_failed),
    )?;
    writeln(out, "aof_rewrites", load(&figures.rewrites))?;
    let failures = load(&figures.rewrite_failures);
    writeln(out, "aof_rewrites_consecutive_failures", failures)?;
    writeln(
        out,
        "aof_last_write_status",
        if failing { "err" } else { "ok" },
    )?;
    writeln(out, "aof_last_cow_size", 0)
}

fn log_files(report: &Report<'_, '_, '_>, figures: &Figures, out: &mut String) -> fmt::Result {
    let journal = &report.call.server.store.journal;
    if !journal.is_logging() {
        return Ok(());
    }
    let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let waiting = journal.backlog();
    let scheduled = figures.rewrite_scheduled.load(Ordering::Relaxed);
    writeln(out, "aof_current_size", load(&figures.log_size))?;
    writeln(out, "aof_base_size", load(&figures.log_base_size))?;
    writeln(out, "aof_pending_rewrite", u8::from(scheduled))?;
    writeln(out, "aof_buffer_length", waiting)?;
    let syncing = figures.log_syncing.load(Ordering::Relaxed);
    writeln(out, "aof_pending_bio_fsync", u8::from(syncing))?;
    writeln(out, "aof_delayed_fsync", load(&figures.delayed_syncs))
}

fn total(report: &Report<'_, '_, '_>, counter: fn(&WorkerStats) -> &Counter) -> u64 {
    let workers = report.call.server.workers.iter();
    workers.map(|worker| counter(worker).get()).sum()
}

fn commands(report: &Report<'_, '_, '_>) -> u64 {
    let workers = report.call.server.workers.iter();
    workers.map(|worker| worker.commands_run()).sum()
}

fn kibibytes(bytes: u64) -> f64 {
    percent(bytes, 102_400)
}

fn statistics(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let server = report.call.server;
    let stats = &server.stats;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    writeln(out, "total_connections_received", load(&stats.connections))?;
    writeln(out, "total_commands_processed", commands(report))?;
    writeln(
        out,
        "instantaneous_ops_per_sec",
        load(&stats.commands_per_second),
    )?;
    writeln(
        out,
        "total_net_input_bytes",
        total(report, |w| &w.net_input),
    )?;
    writeln(
        out,
        "total_net_output_bytes",
        total(report, |w| &w.net_output),
    )?;
    writeln(
        out,
        "instantaneous_input_kbps",
        format_args!("{:.2}", kibibytes(load(&stats.input_per_second))),
    )?;
    writeln(
        out,
        "instantaneous_output_kbps",
        format_args!("{:.2}", kibibytes(load(&stats.output_per_second))),
    )?;
    writeln(
        out,
        "rejected_connections",
        load(&stats.rejected_connections),
    )?;
    writeln(out, "expired_keys", load(&stats.expired_keys))?;
    writeln(out, "evicted_keys", 0)?;
    writeln(out, "keyspace_hits", total(report, |w| &w.keyspace_hits))?;
    writeln(
        out,
        "keyspace_misses",
        total(report, |w| &w.keyspace_misses),
    )?;
    writeln(out, "pubsub_channels", 0)?;
    writeln(out, "pubsub_patterns", 0)?;
    writeln(out, "latest_fork_usec", 0)?;
    writeln(out, "total_error_replies", total(report, |w| &w.errors))?;
    writeln(out, "client_protocol_errors", load(&stats.protocol_errors))
}

fn replication(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    writeln(out, "role", "master")?;
    writeln(out, "connected_slaves", 0)?;
    writeln(out, "master_failover_state", "no-failover")?;
    writeln(out, "master_replid", &report.call.server.run_id)?;
    writeln(out, "master_repl_offset", 0)
}

fn cpu(_: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let (user, system) = system::cpu_seconds().unwrap_or_default();
    writeln(out, "used_cpu_sys", format_args!("{system:.6}"))?;
    writeln(out, "used_cpu_user", format_args!("{user:.6}"))
}

fn modules(_: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let version = BLOOM_VERSION;
    let text = format_args!("name=bf,ver={version},api=1,filters=0,usedby=[],using=[],options=[]");
    writeln(out, "module", text)
}

fn command_statistics(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    for command in report.call.registry.commands() {
        let (mut calls, mut nanos, mut rejected, mut failed) = (0, 0, 0, 0);
        for worker in &report.call.server.workers {
            if let Some(stats) = worker.commands.get(command.index) {
                calls += stats.calls.get();
                nanos += stats.nanos.get();
                rejected += stats.rejected.get();
                failed += stats.failed.get();
            }
        }
        if calls + rejected == 0 {
            continue;
        }
        let each = percent(nanos, calls) / 100_000.0;
        write!(
            out,
            "cmdstat_{}:calls={calls},usec={},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}\r\n",
            command.name,
            nanos / 1000,
        )?;
    }
    Ok(())
}

fn error_statistics(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let mut codes: BTreeMap<String, u64> = BTreeMap::new();
    for worker in &report.call.server.workers {
        for (code, count) in &*worker.error_codes.lock() {
            *codes.entry(code.clone()).or_default() += count;
        }
    }
    for (code, count) in codes {
        write!(out, "errorstat_{code}:count={count}\r\n")?;
    }
    Ok(())
}

fn keyspace(report: &Report<'_, '_, '_>, out: &mut String) -> fmt::Result {
    let now = report.call.now.ms;
    let mut sums = vec![(0, 0, 0u64); report.view.databases()];
    for index in 0..SHARDS {
        report.view.with_shard(index, |shard| {
            for ((keys, expiring, left), db) in sums.iter_mut().zip(shard.dbs()) {
                *keys += db.len();
                *expiring += db.expiring();
                *left = left.saturating_add(db.time_left(now));
            }
        });
    }
    for (db, (keys, expiring, left)) in sums.into_iter().enumerate() {
        if keys > 0 {
            let average = left / u64::try_from(expiring).unwrap_or(1).max(1);
            write!(
                out,
                "db{db}:keys={keys},expires={expiring},avg_ttl={average}\r\n"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    /// The fields that redis_exporter and the usual dashboards use.
    const SHOWN: &str = "uptime_in_seconds process_id connected_clients blocked_clients maxclients \
        used_memory used_memory_rss used_memory_peak used_memory_dataset used_memory_overhead \
        maxmemory total_system_memory mem_fragmentation_ratio mem_fragmentation_bytes loading \
        rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time \
        rdb_last_bgsave_status rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec aof_enabled \
        aof_rewrite_in_progress aof_last_rewrite_time_sec aof_last_bgrewrite_status \
        aof_last_write_status total_connections_received total_commands_processed \
        instantaneous_ops_per_sec total_net_input_bytes total_net_output_bytes \
        rejected_connections expired_keys evicted_keys keyspace_hits keyspace_misses \
        used_cpu_sys used_cpu_user connected_slaves role cluster_enabled";

    #[test]
    fn exporters_find_what_they_show() {
        let mut bench = Bench::default();
        bench.run("SET k v EX 100");
        let reply = bench.run("INFO all");
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default());
        let value = |name: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
        };
        for name in SHOWN.split_whitespace() {
            assert!(
                value(name).is_some_and(|value| !value.is_empty()),
                "{name} in {text}"
            );
        }
        let keys = value("db0").unwrap();
        assert!(keys.starts_with("keys=1,expires=1,avg_ttl="), "{keys}");
    }
}
