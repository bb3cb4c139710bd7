//! `everbloom measure`: tries how often a filter is wrong.
//!
//! It adds half of a set of random strings and only asks for the other half. An added string that
//! is not found is a false negative, which a Bloom filter never gives. A string that was never
//! added but is found is a false positive. The share of false positives is the measured error rate.

mod filling;
mod subject;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use everbloom::{Layout, WindowedBloomFilter};
use rand::distr::{Alphanumeric, Distribution};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::client::{ServerArgs, Url};
use crate::failure::Failure;
use crate::filter::{layout_name, layouts};
use crate::number::{self, grouped};
use crate::plot::{self, Destination};
use crate::progress::Progress;
use crate::servers::family::Family;
use crate::servers::server::Server;
use filling::Filling;
use subject::{DEFAULT, ITEM_LENGTH, Item, Shape, Subject};
use table::Row;

/// The number of items sent, or hashed, between two updates of the progress bar.
const CHUNK: usize = 1000;

/// Measure the false positive rate of filters: one that grew, one reserved
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Measure the filters of this server instead of embedded ones: redis://HOST[:PORT]
    #[arg(value_name = "SERVER")]
    place: Option<String>,
    /// Random strings: half are added, half are only asked for
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        value_parser = number::whole::<u32>(2, u32::MAX.into())
    )]
    count: u32,
    /// The kind of filter: cuckoo is RedisBloom's, whose error rate follows from the bucket size
    #[arg(long, value_enum, default_value_t = Family::Bloom)]
    family: Family,
    /// The error rate to reserve, between 0 and 1
    #[arg(short, long, value_name = "RATE", default_value_t = 0.001, value_parser = number::rate)]
    error_rate: f64,
    /// The bucket size of a cuckoo filter [default: 1, 2 and 4, one filter each]
    #[arg(long, value_name = "SLOTS", value_parser = clap::value_parser!(u8).range(1..))]
    bucket_size: Option<u8>,
    /// The capacity to reserve [default: half of N]
    #[arg(short, long, value_name = "ITEMS", value_parser = number::items)]
    capacity: Option<u64>,
    /// The layout of Bloom filters [default: classic, or what the server makes by itself]
    #[arg(long, value_parser = layouts())]
    layout: Option<Layout>,
    /// Measure a filter with a window, too: of the last items, filled until it is about to forget
    #[arg(long)]
    window: bool,
    /// The seed of the random strings, to repeat a run [default: a new one each run]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Draw the rate of a filter while it fills, as an SVG file, or `-` for the terminal
    #[arg(long, value_name = "FILE", value_parser = plot::destination)]
    plot: Option<Destination>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = "\
The first filter is the one that BF.ADD makes by itself (rate 0.01, capacity 100) and grows as
the strings come; the second is reserved with --error-rate and --capacity. With --window there is a
third one, with --error-rate and a window for four fifths of the strings. It still has the others.

  missed     added strings that are not found: anything but 0 is a fault
  asked for  the error rate the filter was made with
  expected   the rate that follows from how full the layers or tables are. RedisBloom does not
             tell it
  measured   the share of false positives, with one standard deviation of the sampling

--plot adds the strings to the second filter once more, in 20 steps, and measures after each: in
both layouts unless --layout chooses one, or in the one that the server makes.

With --family cuckoo there is a filter for each bucket size, made for --capacity. A cuckoo filter
usually grows before it holds as many.

Examples:
  everbloom measure --error-rate 0.01 --capacity 25000 --plot -
  everbloom measure --family cuckoo --plot -
  everbloom measure redis://localhost --plot filling.svg

Exit code: 0, or 1 when an added string was missed, or 2 for an error.";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let seed = args
        .seed
        .unwrap_or_else(|| SmallRng::from_os_rng().random());
    let items = random_items(args.count, seed)?;
    let (added, probed) = items.split_at(items.len().div_ceil(2));
    let url = args.server.url(args.place.as_deref())?;
    let trial = Trial {
        args,
        url: url.as_ref(),
        capacity: args.capacity.unwrap_or(u64::from(args.count) / 2),
        added,
        probed,
    };
    let mut rows = Vec::new();
    let subjects = match args.family {
        Family::Bloom => trial.bloom()?,
        Family::Cuckoo => trial.cuckoo()?,
    };
    for named in subjects {
        rows.push(measure(named, added, probed, args.quiet)?);
    }

    let place = url
        .as_ref()
        .map_or("embedded filters".to_owned(), |url| url.to_string());
    let report = format!(
        "{place}: {} random strings of {ITEM_LENGTH} bytes added, {} others probed, \
         seed {seed}\n\n{}",
        grouped(added.len() as u64),
        grouped(probed.len() as u64),
        table::render(&rows)
    );
    io::stdout().write_all(report.as_bytes())?;
    if let Some(destination) = &args.plot {
        let asked = (args.family == Family::Bloom).then_some(args.error_rate);
        let chart = filling::chart(&trial.fillings()?, asked, trial.capacity, &place);
        if *destination == Destination::Terminal {
            io::stdout().write_all(b"\n")?;
        }
        plot::draw(&chart, destination)?;
    }
    let sound = rows.iter().all(|row| row.missed == 0);
    Ok(ExitCode::from(u8::from(!sound)))
}

/// A filter to measure: its name, the error rate that was asked for, and itself.
type Named = (String, Option<f64>, Subject);

/// What is measured, with which strings, and where.
struct Trial<'a> {
    args: &'a Args,
    /// `None` for embedded filters.
    url: Option<&'a Url>,
    capacity: u64,
    added: &'a [Item],
    probed: &'a [Item],
}

impl Trial<'_> {
    fn connect(&self) -> Result<Option<Server>, Failure> {
        let command = match self.args.family {
            Family::Bloom => "BF.MADD",
            Family::Cuckoo => "CF.INSERT",
        };
        let connect = |url| Server::connect(url, &self.args.server, &[command]);
        self.url.map(connect).transpose()
    }

    /// One that grows from what the first add makes, and one reserved.
    fn bloom(&self) -> Result<Vec<Named>, Failure> {
        let Self { args, capacity, .. } = self;
        if args.bucket_size.is_some() {
            return Err(Failure::other("--bucket-size goes with --family cuckoo"));
        }
        let (layout, rate) = (args.layout, args.error_rate);
        let default = Subject::default_filter(self.connect()?, layout)?;
        let name = "default, grown from 100".to_owned();
        let mut filters = vec![(name, Some(DEFAULT.0), default)];
        let reserved = self.reserved(layout)?;
        filters.push((format!("reserved {rate} {capacity}"), Some(rate), reserved));
        if args.window {
            // One generation more than the window has is kept.
            let generations = u64::from(WindowedBloomFilter::GENERATIONS);
            let added = u64::from(args.count).div_ceil(2);
            let items = (added * generations).div_ceil(generations + 1);
            let windowed = Subject::reserved(self.connect()?, (rate, items), Shape::Window)?;
            filters.push((format!("window {rate} {items}"), Some(rate), windowed));
        }
        Ok(filters)
    }

    fn reserved(&self, layout: Option<Layout>) -> Result<Subject, Failure> {
        let numbers = (self.args.error_rate, self.capacity);
        Subject::reserved(self.connect()?, numbers, Shape::Layout(layout))
    }

    /// One filter for each requested bucket size.
    fn cuckoo(&self) -> Result<Vec<Named>, Failure> {
        let Self { args, capacity, .. } = self;
        if args.layout.is_some() || args.window {
            return Err(Failure::other(
                "--layout and --window go with Bloom filters",
            ));
        }
        let sizes = args.bucket_size.map_or(vec![1, 2, 4], |size| vec![size]);
        let subject = |size: u8| {
            let subject = Subject::cuckoo(self.connect()?, *capacity, size)?;
            let name = format!("cuckoo {capacity}, bucket size {size}");
            Ok((name, None, subject))
        };
        sizes.into_iter().map(subject).collect()
    }

    /// Fills cuckoo filters, or the second Bloom filter in each requested layout, step by step.
    fn fillings(&self) -> Result<Vec<Filling>, Failure> {
        let fill =
            |name, subject| filling::fill(name, subject, self.added, self.probed, self.args.quiet);
        if self.args.family == Family::Cuckoo {
            let subjects = self.cuckoo()?.into_iter();
            return subjects
                .map(|(name, _, subject)| fill(name, subject))
                .collect();
        }
        let layouts = match (self.args.layout, self.url) {
            (Some(layout), _) => vec![Some(layout)],
            (None, Some(_)) => vec![None],
            (None, None) => vec![Some(Layout::Classic), Some(Layout::Blocked)],
        };
        let filling = |layout: Option<Layout>| {
            let name = layout.map_or("server", layout_name).to_owned();
            fill(name, self.reserved(layout)?)
        };
        layouts.into_iter().map(filling).collect()
    }
}

fn random_items(count: u32, seed: u64) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::new();
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    if items.try_reserve_exact(wanted).is_err() {
        return Err(Failure::Other(format!(
            "there is no memory for {} strings of {ITEM_LENGTH} bytes; give a smaller --count",
            grouped(count.into())
        )));
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let strings = (0..count).map(|_| std::array::from_fn(|_| Alphanumeric.sample(&mut rng)));
    items.extend(strings);
    Ok(items)
}

fn measure(
    (name, asked, mut subject): Named,
    added: &[Item],
    probed: &[Item],
    quiet: bool,
) -> Result<Row, Failure> {
    let bar = Progress::of_items(&name, 2 * added.len() + probed.len(), quiet);
    let items = sum(added, &bar, |chunk| subject.add(chunk))?;
    let found = sum(added, &bar, |chunk| subject.count_found(chunk))?;
    let false_positives = sum(probed, &bar, |chunk| subject.count_found(chunk))?;
    Ok(Row {
        name,
        asked,
        items,
        missed: (added.len() as u64).saturating_sub(found),
        probes: probed.len() as u64,
        false_positives,
        expected: subject.expected_error_rate()?,
    })
}

/// The sum of what `count` counts in chunks of the items.
fn sum(
    items: &[Item],
    bar: &Progress,
    mut count: impl FnMut(&[Item]) -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    let mut sum = 0;
    for chunk in items.chunks(CHUNK) {
        sum += count(chunk)?;
        bar.advance(chunk.len());
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(rate: f64, capacity: u64) -> Result<Subject, Failure> {
        Subject::reserved(None, (rate, capacity), Shape::Layout(None))
    }

    fn named(subject: Subject) -> Named {
        ("filter".into(), None, subject)
    }

    #[test]
    fn a_seed_repeats_the_strings() {
        let first = random_items(50, 7).unwrap();
        assert_eq!(first, random_items(50, 7).unwrap());
        assert_ne!(first, random_items(50, 8).unwrap());
        assert!(first.iter().flatten().all(u8::is_ascii_alphanumeric));
    }

    #[test]
    fn a_reserved_filter_keeps_its_promise_and_a_grown_one_nearly() {
        let items = random_items(40_000, 1).unwrap();
        let (added, probed) = items.split_at(20_000);
        let filter = reserved(0.001, 20_000).unwrap();
        let measured = measure(named(filter), added, probed, true).unwrap();
        assert_eq!((measured.missed, measured.probes), (0, 20_000));
        assert!(measured.false_positives <= 20, "{measured:?}");

        let grown = Subject::default_filter(None, None).unwrap();
        let measured = measure(named(grown), added, probed, true).unwrap();
        assert_eq!(measured.missed, 0);
        assert!(
            (100..=320).contains(&measured.false_positives),
            "{measured:?}"
        );
        let expected = measured.expected.unwrap();
        assert!((0.005..0.015).contains(&expected), "{expected}");
    }

    #[test]
    fn what_cannot_be_reserved_is_said() {
        assert!(reserved(1.5, 100).is_err());
        assert!(reserved(0.01, 0).is_err());
    }

    #[test]
    fn in_the_blocked_layout_a_grown_filter_keeps_its_promise_too() {
        let items = random_items(40_000, 1).unwrap();
        let (added, probed) = items.split_at(20_000);
        let grown = Subject::default_filter(None, Some(Layout::Blocked)).unwrap();
        let measured = measure(named(grown), added, probed, true).unwrap();
        assert_eq!(measured.missed, 0);
        // The rate asked for gives 200. Three standard deviations of the sampling are added.
        assert!(measured.false_positives <= 243, "{measured:?}");
        assert!(measured.expected.unwrap() <= 0.01, "{measured:?}");
    }
}
