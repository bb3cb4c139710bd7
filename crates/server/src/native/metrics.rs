//! The sections of INFO on filters, which the module has as well.

use everbloom_commands::metrics::{CORE, DEFRAGMENTATION, Metrics, PREFIX, Section};
use everbloom_store::keyspace::{SHARDS, View};

/// Appends the requested sections. As in the module, they can be requested by the name of a
/// section, by the name of the module, and by two names for the sections of all modules.
pub fn append(names: &[String], view: View<'_>, out: &mut String) {
    section(names, &CORE, out, || sums(view).figures());
    // Nothing is defragmented. The fields exist so that both hosts have the same ones.
    section(names, &DEFRAGMENTATION, out, || [0; 2]);
}

fn section<const N: usize>(
    names: &[String],
    (title, fields): &Section<N>,
    out: &mut String,
    figures: impl FnOnce() -> [u64; N],
) {
    let title = format!("{PREFIX}{}", title.to_string_lossy());
    let asks = |name: &String| *name == title || ["bf", "modules", "everything"].contains(&&**name);
    if !names.iter().any(asks) {
        return;
    }
    if !out.is_empty() {
        out.push_str("\r\n");
    }
    out.push_str(&format!("# {title}\r\n"));
    for (name, figure) in fields.iter().zip(figures()) {
        let name = name.to_string_lossy();
        out.push_str(&format!("{PREFIX}{name}:{figure}\r\n"));
    }
}

/// The totals over all filters, one shard after another.
fn sums(view: View<'_>) -> Metrics {
    let mut sums = Metrics::default();
    for index in 0..SHARDS {
        view.with_shard(index, |shard| {
            for db in shard.dbs() {
                sums = sums.plus(db.sums().filters);
            }
        });
    }
    sums
}
