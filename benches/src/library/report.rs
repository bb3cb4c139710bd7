//! The tables as markdown.

use std::fmt::Write;

use super::{ROUNDS, Setting, Table};
use crate::machine::Machine;

pub fn markdown(machine: &Machine, tables: &[Table]) -> String {
    let mut text = format!(
        "# Libraries\n\n{}\nNanoseconds an item, medians of {ROUNDS}, subjects in turn. FPR: the \
         measured share of false positives, with one standard deviation of the sampling.\n",
        machine.markdown()
    );
    for Table { setting, rows } in tables {
        let Setting {
            items,
            rate,
            item_bytes,
        } = setting;
        let _ = write!(
            text,
            "\n## {items} items of {item_bytes} bytes at {rate}\n\n\
             | | insert | insert, batch | extend | hit | miss | hit, batch | miss, batch \
             | FPR | bits/item |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        );
        for row in rows {
            let maybe = |nanos: Option<f64>| nanos.map_or("".to_owned(), |n| format!("{n:.1}"));
            let measured = row.false_positive_rate;
            let deviation = (measured * (1.0 - measured) / row.probes as f64).sqrt();
            let _ = writeln!(
                text,
                "| {} | {:.1} | {} | {} | {:.1} | {:.1} | {} | {} | {:.3} % ± {:.3} | {:.2} |",
                row.name,
                row.insert,
                maybe(row.insert_batch),
                maybe(row.extend),
                row.hit,
                row.miss,
                maybe(row.hit_batch),
                maybe(row.miss_batch),
                100.0 * measured,
                100.0 * deviation,
                row.bits_per_item
            );
        }
    }
    text
}
