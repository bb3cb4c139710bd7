//! The figures of the server in the text format of OpenMetrics, and in the older one of Prometheus.
//!
//! A scrape adds up counters and reads the totals of each shard, as INFO does. It visits no key.
//! `metrics.txt` has the names of the figures and their meaning.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use everbloom_commands::filter::FilterKind;
use everbloom_commands::metrics::Metrics;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::View;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::filters::{Found, Named};
use crate::history::History;
use everbloom_commands::figures::kind_name;
use everbloom_server::Server;
use everbloom_server::window::{
    CommandStats, Counter, Database, Histogram, Sent, WorkerStats, cpu_seconds, databases,
    error_codes, misconf, of_command, registry, resident_memory, sent,
};

/// A line for each family: its name and its help.
const HELP: &str = include_str!("metrics.txt");

/// The server, the results of the last walk over its filters, and its last minutes.
#[derive(Debug)]
pub struct Watch {
    /// The server.
    pub server: Arc<Server>,
    /// Its last minutes.
    pub history: Mutex<History>,
    filters: Mutex<Option<Arc<Found>>>,
    /// When the server started, in Unix time: read once, so that it stays the same.
    started: u64,
}

impl Watch {
    /// Before the first walk.
    pub fn new(server: Arc<Server>) -> Self {
        Watch {
            history: Mutex::new(History::new(&server)),
            started: Now::read()
                .seconds()
                .saturating_sub(server.started.elapsed().as_secs()),
            server,
            filters: Mutex::new(None),
        }
    }

    /// Stores the results of a walk.
    pub fn set_filters(&self, mut found: Found) {
        let earlier = self.filters();
        let earlier = earlier.as_ref().map(|earlier| &earlier.table);
        found.table.finish(earlier);
        *self.filters.lock() = Some(Arc::new(found));
    }

    /// The results of the last walk.
    pub fn filters(&self) -> Option<Arc<Found>> {
        self.filters.lock().clone()
    }

    /// All figures as text.
    pub fn text(self: &Arc<Self>) -> String {
        let mut all = Registry::default();
        all.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &all);
        text
    }
}

/// The same figures in the text format of Prometheus, which all readers accept. In it, a family of
/// counters has the name of its samples, and there are no lines for units and for the end.
pub fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.split_inclusive('\n') {
        let mut words = line.trim_end().splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), _, rest) => help = rest,
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                let help = help.take().unwrap_or_default();
                text += &format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
            }
            (Some("#"), ..) => {}
            _ => text += line,
        }
    }
    text
}

impl Collector for Watch {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut page, server) = (Page(encoder), &*self.server);
        process(&mut page, self.started)?;
        clients(&mut page, server)?;
        commands(&mut page, server)?;
        memory(&mut page, server)?;
        keyspace(&mut page, server)?;
        persistence(&mut page, server)?;
        self.filters()
            .map_or(Ok(()), |found| walked(&mut page, &found))
    }
}

trait Number: EncodeGaugeValue + EncodeCounterValue {}
impl<N: EncodeGaugeValue + EncodeCounterValue> Number for N {}

type Labels<'l, const N: usize> = [(&'static str, Cow<'l, str>); N];

/// The text so far.
struct Page<'e>(DescriptorEncoder<'e>);

impl Page<'_> {
    /// A figure.
    fn put(&mut self, name: &str, value: impl Number) -> fmt::Result {
        self.numbers(name, |mut sample, is_counter| {
            encode_number(&mut sample, is_counter, &value)
        })
    }

    /// A figure for each of these labels.
    fn put_each<'l, const N: usize>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = (Labels<'l, N>, impl Number)>,
    ) -> fmt::Result {
        self.numbers(name, |mut samples, is_counter| {
            for (labels, value) in values {
                encode_number(&mut samples.encode_family(&labels)?, is_counter, &value)?;
            }
            Ok(())
        })
    }

    /// A family of counters or gauges. Its name determines which.
    fn numbers(
        &mut self,
        name: &str,
        samples: impl FnOnce(MetricEncoder<'_>, bool) -> fmt::Result,
    ) -> fmt::Result {
        let is_counter = name.ends_with("_total");
        let kind = match is_counter {
            true => MetricType::Counter,
            false => MetricType::Gauge,
        };
        self.family(name, kind, |encoder| samples(encoder, is_counter))
    }

    /// Begins a family. Its name determines its unit.
    fn family(
        &mut self,
        name: &str,
        kind: MetricType,
        samples: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut lines = HELP.lines().filter_map(|line| line.split_once(' '));
        let help = lines.find_map(|(known, help)| (known == name).then_some(help));
        let name = name.strip_suffix("_total").unwrap_or(name);
        let units = [Unit::Bytes, Unit::Seconds];
        let with_unit = units.iter().find_map(|unit| {
            let name = name.strip_suffix(unit.as_str())?.strip_suffix('_')?;
            Some((name, Some(unit)))
        });
        let (name, unit) = with_unit.unwrap_or((name, None));
        let help = help.unwrap_or_default();
        samples(self.0.encode_descriptor(name, help, unit, kind)?)
    }
}

fn encode_number(
    sample: &mut MetricEncoder<'_>,
    is_counter: bool,
    value: &impl Number,
) -> fmt::Result {
    if is_counter {
        sample.encode_counter::<NoLabelSet, _, u64>(value, None)
    } else {
        sample.encode_gauge(value)
    }
}

fn load(figure: &AtomicU64) -> u64 {
    figure.load(Relaxed)
}

fn process(page: &mut Page<'_>, started: u64) -> fmt::Result {
    let version = [("version", env!("CARGO_PKG_VERSION").into())];
    page.put_each("everbloom_build_info", [(version, 1_u64)].into_iter())?;
    let (user, kernel) = cpu_seconds().unwrap_or_default();
    page.put("process_cpu_seconds_total", user + kernel)?;
    page.put("process_start_time_seconds", started)?;
    let resident = resident_memory().unwrap_or(0);
    page.put("process_resident_memory_bytes", resident)
}

fn clients(page: &mut Page<'_>, server: &Server) -> fmt::Result {
    let stats = &server.stats;
    page.put("everbloom_clients", server.clients.len())?;
    let most = server.config.snapshot().maxclients;
    page.put("everbloom_max_clients", most)?;
    for (name, figure) in [
        ("connections", &stats.connections),
        ("rejected_connections", &stats.rejected_connections),
        ("evicted_clients", &stats.evicted_clients),
        ("protocol_errors", &stats.protocol_errors),
    ] {
        page.put(&format!("everbloom_{name}_total"), load(figure))?;
    }
    type OfWorker = fn(&WorkerStats) -> &Counter;
    let of_workers: [(_, OfWorker); 4] = [
        ("received_bytes", |it| &it.net_input),
        ("sent_bytes", |it| &it.net_output),
        ("keyspace_hits", |it| &it.keyspace_hits),
        ("keyspace_misses", |it| &it.keyspace_misses),
    ];
    for (name, of) in of_workers {
        let sum: u64 = server.workers.iter().map(|it| of(it).get()).sum();
        page.put(&format!("everbloom_{name}_total"), sum)?;
    }
    page.put("everbloom_expired_keys_total", load(&stats.expired_keys))
}

fn commands(page: &mut Page<'_>, server: &Server) -> fmt::Result {
    let sent: Vec<Sent> = sent(registry(), server).collect();
    let sums = |of: fn(&Sent) -> u64| {
        let rows = sent.iter();
        rows.map(move |it| ([("command", Cow::from(it.name))], of(it)))
    };
    page.put_each("everbloom_commands_total", sums(|it| it.calls))?;
    page.put_each("everbloom_failed_commands_total", sums(|it| it.failed))?;
    page.put_each("everbloom_rejected_commands_total", sums(|it| it.rejected))?;
    let times = sums(|it| it.nanos).map(|(labels, nanos)| (labels, seconds(nanos)));
    page.put_each("everbloom_command_seconds_total", times)?;
    let histogram = "everbloom_command_duration_seconds";
    page.family(histogram, MetricType::Histogram, |mut families| {
        for it in &sent {
            let (buckets, count) = durations(of_command(&server.workers, it.index));
            let labels = [("command", it.name)];
            let mut family = families.encode_family(&labels)?;
            let sum = seconds(it.nanos);
            family.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    })?;
    let codes = error_codes(&server.workers).into_iter();
    let codes = codes.map(|(code, count)| ([("code", code.into())], count));
    page.put_each("everbloom_error_replies_total", codes)
}

/// The bounds in seconds and the counts of buckets, and the number of commands in them.
fn durations<'s>(stats: impl Iterator<Item = &'s CommandStats>) -> (Vec<(f64, u64)>, u64) {
    let mut buckets: Vec<_> = Histogram::bounds().map(|nanos| (nanos / 1e9, 0)).collect();
    for stats in stats {
        for ((_, total), count) in buckets.iter_mut().zip(stats.times.counts()) {
            *total += count;
        }
    }
    let commands = buckets.iter().map(|(_, count)| count).sum();
    (buckets, commands)
}

/// Nanoseconds in seconds.
#[expect(clippy::cast_precision_loss, reason = "a second has a billion of them")]
pub fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn memory(page: &mut Page<'_>, server: &Server) -> fmt::Result {
    let used = server.used_memory();
    page.put("everbloom_memory_used_bytes", used)?;
    let peak = load(&server.stats.peak_memory).max(used);
    page.put("everbloom_memory_peak_bytes", peak)?;
    page.put(
        "everbloom_memory_keys_bytes",
        server.store.keyspace.memory(),
    )?;
    page.put(
        "everbloom_memory_max_bytes",
        server.config.snapshot().maxmemory,
    )
}

fn keyspace(page: &mut Page<'_>, server: &Server) -> fmt::Result {
    let used = databases(View::of_each(&server.store.keyspace, Now::read()));
    let each = |of: fn(&Database) -> usize| {
        let rows = used.iter();
        rows.map(move |it| ([("db", Cow::from(it.number.to_string()))], of(it)))
    };
    page.put_each("everbloom_keys", each(|it| it.keys))?;
    page.put_each("everbloom_expiring_keys", each(|it| it.expiring))
}

fn persistence(page: &mut Page<'_>, server: &Server) -> fmt::Result {
    let (store, journal) = (&server.store, &server.store.journal);
    page.put("everbloom_loading", u64::from(store.health.is_loading()))?;
    let refused = misconf(server, &server.config.snapshot()).is_some();
    page.put("everbloom_writes_refused", u64::from(refused))?;
    let Some(figures) = store.persistence().map(|it| &it.figures) else {
        return Ok(());
    };
    let saved = load(&figures.last_save);
    page.put("everbloom_snapshot_last_success_timestamp_seconds", saved)?;
    // The duration is -1 before the first snapshot.
    if let Ok(took) = u64::try_from(figures.save.seconds.load(Relaxed)) {
        page.put("everbloom_snapshot_last_duration_seconds", took)?;
    }
    let failed = figures.save.failed.load(Relaxed);
    page.put("everbloom_snapshot_failed", u64::from(failed))?;
    let unsaved = journal
        .changes()
        .saturating_sub(load(&figures.saved_changes));
    page.put("everbloom_snapshot_unsaved_changes", unsaved)?;
    page.put("everbloom_log_enabled", u64::from(store.keeps_log()))?;
    page.put("everbloom_log_size_bytes", load(&figures.log_size))?;
    page.put("everbloom_log_base_bytes", load(&figures.log_base_size))?;
    let waiting = journal.backlog();
    page.put("everbloom_log_waiting_bytes", waiting)?;
    let wait = store.log_wait().as_secs_f64();
    page.put("everbloom_log_wait_seconds", wait)?;
    let failures = load(&figures.rewrite_failures);
    page.put("everbloom_log_rewrite_failures", failures)?;
    page.put("everbloom_log_fsyncs_total", load(&figures.syncs.count))?;
    let took = seconds(load(&figures.syncs.nanos));
    page.put("everbloom_log_fsync_seconds_total", took)?;
    let delayed = load(&figures.delayed_syncs);
    page.put("everbloom_log_delayed_fsyncs_total", delayed)
}

/// The results of the last walk over the filters.
fn walked(page: &mut Page<'_>, found: &Found) -> fmt::Result {
    page.put("everbloom_filters_walk_timestamp_seconds", found.ended)?;
    page.put("everbloom_filters_walk_keys", found.keys)?;
    let took = found.took.as_secs_f64();
    page.put("everbloom_filters_walk_duration_seconds", took)?;
    let kinds = || {
        let layouts = FilterKind::ALL.map(|kind| [("layout", Cow::from(kind_name(kind)))]);
        layouts.into_iter().zip(found.kinds)
    };
    let filters = kinds().map(|(layout, sums)| (layout, sums.metrics.figures()[1]));
    page.put_each("everbloom_filters", filters)?;
    let metrics = || kinds().map(|(layout, sums)| (layout, sums.metrics));
    sizes(page, "everbloom_filters", metrics)?;
    let above = kinds().map(|(layout, sums)| (layout, sums.above));
    page.put_each("everbloom_filters_above_error_rate", above)?;
    named(page, &found.named())
}

/// The sizes of filters, or of groups of them.
fn sizes<'l, const N: usize, I: Iterator<Item = (Labels<'l, N>, Metrics)>>(
    page: &mut Page<'_>,
    prefix: &str,
    filters: impl Fn() -> I,
) -> fmt::Result {
    type Size = fn([u64; 5]) -> u64;
    let sizes: [(_, Size); 4] = [
        ("bytes", |[bytes, ..]| bytes),
        ("layers", |[_, _, layers, ..]| layers),
        ("items", |[.., items, _]| items),
        ("capacity_items", |[.., capacity]| capacity),
    ];
    for (name, size) in sizes {
        let samples = filters().map(|(labels, metrics)| (labels, size(metrics.figures())));
        page.put_each(&format!("{prefix}_{name}"), samples)?;
    }
    Ok(())
}

/// Some filters, each by its key.
fn named(page: &mut Page<'_>, filters: &[&Named]) -> fmt::Result {
    let all = || {
        filters.iter().map(|named| {
            let layout = kind_name(named.figures.kind).into();
            let (db, key) = (named.db.to_string().into(), Cow::from(&named.label));
            (
                [("db", db), ("key", key), ("layout", layout)],
                &named.figures,
            )
        })
    };
    let metrics = || all().map(|(labels, it)| (labels, it.metrics));
    sizes(page, "everbloom_filter", metrics)?;
    let room = all().map(|(labels, it)| (labels, it.room));
    page.put_each("everbloom_filter_room_items", room)?;
    let windows = || all().filter_map(|(labels, it)| Some((labels, it.window?)));
    let generations = windows().map(|(labels, it)| (labels, it.generations as u64));
    page.put_each("everbloom_filter_generations", generations)?;
    let spans = windows().filter_map(|(labels, it)| Some((labels, it.ms? / 1000)));
    page.put_each("everbloom_filter_window_seconds", spans)?;
    let next = windows().filter_map(|(labels, it)| Some((labels, it.next_ms? / 1000)));
    page.put_each("everbloom_filter_next_generation_timestamp_seconds", next)?;
    let fill = all().map(|(labels, it)| (labels, it.fill_ratio));
    page.put_each("everbloom_filter_fill_ratio", fill)?;
    let asked = all().filter_map(|(labels, it)| Some((labels, it.asked?)));
    page.put_each("everbloom_filter_error_rate_asked_ratio", asked)?;
    let expected = all().map(|(labels, it)| (labels, it.expected));
    page.put_each("everbloom_filter_error_rate_expected_ratio", expected)
}
