//! INFO: the figures of the server.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use everbloom::host;
use everbloom_resp::Reply;

mod constants;

use super::{Call, metrics};
use crate::config::Settings;
use crate::stats::{self, WorkerStats};
use crate::system;
use crate::totals::{databases, sent};
use crate::version::{BLOOM_VERSION, REDIS_VERSION};
use everbloom_store::keyspace::View;
use everbloom_store::persistence::Persistence;
use everbloom_store::persistence::figures::{JobFigures, PersistenceFigures};

/// A section: its title, and the function that writes it.
type Section = (&'static str, fn(&Report<'_>, &mut Fields));

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
    ("Cluster", |_, _| ()),
    ("Keyspace", keyspace),
];

/// The section that is shown only on request.
const ON_DEMAND: &str = "Commandstats";

struct Report<'r> {
    call: &'r Call<'r>,
    view: View<'r>,
    settings: &'r Settings,
}

/// INFO. It reads the shards one after another. Inside EXEC all are locked already.
pub fn info(call: &Call<'_>, view: View<'_>) -> Result<Reply, Reply> {
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
    let mut out = Fields(String::new());
    for (title, write) in SECTIONS.iter().filter(|(title, _)| asked(title)) {
        if !out.0.is_empty() {
            out.0.push_str("\r\n");
        }
        out.0.push_str(&format!("# {title}\r\n"));
        write(&report, &mut out);
        for (name, value) in constants::of(title) {
            out.put(name, value);
        }
    }
    metrics::append(&names, view, &mut out.0);
    Ok(Reply::verbatim(out.0))
}

/// The lines of the report so far.
struct Fields(String);

impl Fields {
    fn put(&mut self, name: &str, value: impl fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
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

fn server_section(report: &Report<'_>, out: &mut Fields) {
    let server = report.call.server;
    let settings = report.settings;
    let uptime = server.started.elapsed().as_secs();
    let port = server.entrances().first().map_or(0, |e| e.address.port());
    let file = settings.config_file.as_ref();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    out.put("redis_version", REDIS_VERSION);
    out.put("redis_mode", "standalone");
    out.put("server_name", "everbloom");
    out.put("everbloom_version", env!("CARGO_PKG_VERSION"));
    out.put("os", format_args!("{os} {arch}"));
    out.put("process_id", std::process::id());
    out.put("run_id", &server.run_id);
    out.put("tcp_port", port);
    out.put("server_time_usec", report.call.now.ms.saturating_mul(1000));
    out.put("uptime_in_seconds", uptime);
    out.put("uptime_in_days", uptime / 86400);
    out.put("hz", settings.hz);
    out.put("configured_hz", settings.hz);
    out.put("lru_clock", report.call.now.clock);
    let executable = std::env::current_exe().unwrap_or_default();
    out.put("executable", executable.display());
    out.put(
        "config_file",
        file.map_or("".into(), |f| f.to_string_lossy()),
    );
    let workers = server.workers.len();
    out.put("io_threads_active", u8::from(workers > 1));
    out.put("worker_threads", workers);
}

fn clients(report: &Report<'_>, out: &mut Fields) {
    let clients = report.call.server.clients.list();
    let (mut input, mut output, mut watching, mut watched) = (0, 0, 0, 0);
    for client in &clients {
        let state = client.state.lock();
        input = state.query_buffer.max(input);
        output = state.output_buffer.max(output);
        watching += usize::from(state.watched > 0);
        watched += state.watched;
    }
    out.put("connected_clients", clients.len());
    out.put("maxclients", report.settings.maxclients);
    out.put("client_recent_max_input_buffer", input);
    out.put("client_recent_max_output_buffer", output);
    out.put("watching_clients", watching);
    out.put("total_watched_keys", watched);
}

fn memory(report: &Report<'_>, out: &mut Fields) {
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
        out.put(name, size);
        out.put(&format!("{name}_human"), Human(size));
    }
    out.put("used_memory_dataset", data);
    out.put("used_memory_overhead", used.saturating_sub(data));
    for (name, part, whole) in [
        ("used_memory_peak_perc", used, peak),
        ("used_memory_dataset_perc", data, used),
    ] {
        out.put(name, format_args!("{:.2}%", percent(part, whole)));
    }
    let buffers = server.stats.buffers.load(Ordering::Relaxed);
    out.put("mem_clients_normal", buffers);
    out.put("mem_aof_buffer", server.store.journal.backlog());
    out.put("mem_system_short", u8::from(host::memory::is_short()));
    let ratio = percent(resident, used) / 100.0;
    out.put("mem_fragmentation_ratio", format_args!("{ratio:.2}"));
    let beyond = i128::from(resident) - i128::from(used);
    out.put("mem_fragmentation_bytes", beyond);
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64 * 100.0
}

fn persistence(report: &Report<'_>, out: &mut Fields) {
    let server = report.call.server;
    out.put("loading", u8::from(server.store.health.is_loading()));
    let none = PersistenceFigures::new(report.call.now);
    let figures = server.store.persistence().map_or(&none, |p| &p.figures);
    snapshots(report, figures, out);
    log(report, figures, out);
    log_files(report, figures, out);
    if server.store.health.is_loading() {
        loading(report, figures, out);
    }
}

fn loading(report: &Report<'_>, figures: &PersistenceFigures, out: &mut Fields) {
    let total = load(&figures.loading_total);
    let done = load(&figures.loading_done);
    let passed = report.call.server.started.elapsed().as_secs();
    let start = (report.call.now.ms / 1000).saturating_sub(passed);
    let left = total.saturating_sub(done).saturating_mul(passed) / done.max(1);
    let share = percent(done, total);
    out.put("loading_start_time", start);
    out.put("loading_total_bytes", total);
    out.put("loading_rdb_used_mem", report.call.server.used_memory());
    out.put("loading_loaded_bytes", done);
    out.put("loading_loaded_perc", format_args!("{share:.2}"));
    out.put("loading_eta_seconds", left);
}

fn load(figure: &AtomicU64) -> u64 {
    figure.load(Ordering::Relaxed)
}

fn ok_or_err(failed: bool) -> &'static str {
    if failed { "err" } else { "ok" }
}

/// The fields of a background job: whether it runs, for how many seconds (-1 if it does not), the
/// seconds and the status of the last, and how many were good.
fn job(names: [&str; 5], report: &Report<'_>, job: &JobFigures, out: &mut Fields) {
    let [running, current, last, status, done] = names;
    let passed = match load(&job.running_since) {
        0 => -1,
        since => {
            let passed = (report.call.now.ms / 1000).saturating_sub(since);
            i64::try_from(passed).unwrap_or(i64::MAX)
        }
    };
    out.put(running, u8::from(job.is_running()));
    out.put(current, passed);
    out.put(last, job.seconds.load(Ordering::Relaxed));
    out.put(status, ok_or_err(job.failed.load(Ordering::Relaxed)));
    out.put(done, load(&job.done));
}

fn snapshots(report: &Report<'_>, figures: &PersistenceFigures, out: &mut Fields) {
    let changes = report.call.server.store.journal.changes();
    let unsaved = changes.saturating_sub(load(&figures.saved_changes));
    out.put("rdb_changes_since_last_save", unsaved);
    out.put("rdb_last_save_time", load(&figures.last_save));
    let names = [
        "rdb_bgsave_in_progress",
        "rdb_current_bgsave_time_sec",
        "rdb_last_bgsave_time_sec",
        "rdb_last_bgsave_status",
        "rdb_saves",
    ];
    job(names, report, &figures.save, out);
    let (keys, expired) = (&figures.loaded_keys, &figures.loaded_expired);
    out.put("rdb_last_load_keys_expired", load(expired));
    out.put("rdb_last_load_keys_loaded", load(keys));
}

fn log(report: &Report<'_>, figures: &PersistenceFigures, out: &mut Fields) {
    let store = &report.call.server.store;
    let enabled = store.keeps_log();
    let persistence = store.persistence();
    let scheduled = figures.rewrite.scheduled.load(Ordering::Relaxed)
        || !figures.rewrite.is_running() && persistence.is_some_and(Persistence::is_log_awaited);
    // Also while the log waits for a slow disk: writes are refused then, too.
    let failing = store.health.is_log_failing();
    out.put("aof_enabled", u8::from(enabled));
    out.put("aof_rewrite_scheduled", u8::from(scheduled));
    let names = [
        "aof_rewrite_in_progress",
        "aof_current_rewrite_time_sec",
        "aof_last_rewrite_time_sec",
        "aof_last_bgrewrite_status",
        "aof_rewrites",
    ];
    job(names, report, &figures.rewrite, out);
    let failures = load(&figures.rewrite_failures);
    out.put("aof_rewrites_consecutive_failures", failures);
    out.put("aof_last_write_status", ok_or_err(failing));
}

fn log_files(report: &Report<'_>, figures: &PersistenceFigures, out: &mut Fields) {
    let journal = &report.call.server.store.journal;
    if !report.call.server.store.keeps_log() {
        return;
    }
    let waiting = journal.backlog();
    out.put("aof_current_size", load(&figures.log_size));
    out.put("aof_base_size", load(&figures.log_base_size));
    out.put("aof_buffer_length", waiting);
    out.put("aof_pending_bio_fsync", u8::from(figures.is_log_syncing()));
    out.put("aof_delayed_fsync", load(&figures.delayed_syncs));
}

fn kibibytes(bytes: u64) -> f64 {
    percent(bytes, 102_400)
}

fn statistics(report: &Report<'_>, out: &mut Fields) {
    let server = report.call.server;
    let stats = &server.stats;
    let total = |of: fn(&WorkerStats) -> u64| server.workers.iter().map(|it| of(it)).sum::<u64>();
    out.put("total_connections_received", load(&stats.connections));
    out.put("total_commands_processed", total(WorkerStats::commands_run));
    out.put(
        "instantaneous_ops_per_sec",
        load(&stats.commands_per_second),
    );
    out.put("total_net_input_bytes", total(|w| w.net_input.get()));
    out.put("total_net_output_bytes", total(|w| w.net_output.get()));
    out.put(
        "instantaneous_input_kbps",
        format_args!("{:.2}", kibibytes(load(&stats.input_per_second))),
    );
    out.put(
        "instantaneous_output_kbps",
        format_args!("{:.2}", kibibytes(load(&stats.output_per_second))),
    );
    out.put("rejected_connections", load(&stats.rejected_connections));
    out.put("expired_keys", load(&stats.expired_keys));
    out.put("evicted_clients", load(&stats.evicted_clients));
    out.put("keyspace_hits", total(|w| w.keyspace_hits.get()));
    out.put("keyspace_misses", total(|w| w.keyspace_misses.get()));
    out.put("total_error_replies", total(|w| w.errors.get()));
    out.put("client_protocol_errors", load(&stats.protocol_errors));
}

fn replication(report: &Report<'_>, out: &mut Fields) {
    out.put("role", "master");
    out.put("master_replid", &report.call.server.run_id);
}

fn cpu(_: &Report<'_>, out: &mut Fields) {
    let (user, system) = system::cpu_seconds().unwrap_or_default();
    out.put("used_cpu_sys", format_args!("{system:.6}"));
    out.put("used_cpu_user", format_args!("{user:.6}"));
}

fn modules(_: &Report<'_>, out: &mut Fields) {
    let version = BLOOM_VERSION;
    let text = format_args!("name=bf,ver={version},api=1,filters=0,usedby=[],using=[],options=[]");
    out.put("module", text);
}

fn command_statistics(report: &Report<'_>, out: &mut Fields) {
    for it in sent(report.call.registry, report.call.server) {
        let each = percent(it.nanos, it.calls) / 100_000.0;
        out.put(
            &format!("cmdstat_{}", it.name),
            format_args!(
                "calls={},usec={},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
                it.calls,
                it.nanos / 1000,
                it.rejected,
                it.failed,
            ),
        );
    }
}

fn error_statistics(report: &Report<'_>, out: &mut Fields) {
    for (code, count) in stats::error_codes(&report.call.server.workers) {
        out.put(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn keyspace(report: &Report<'_>, out: &mut Fields) {
    for db in databases(report.view) {
        let average = db.left / u64::try_from(db.expiring).unwrap_or(1).max(1);
        let (keys, expiring) = (db.keys, db.expiring);
        out.put(
            &format!("db{}", db.number),
            format_args!("keys={keys},expires={expiring},avg_ttl={average}"),
        );
    }
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
