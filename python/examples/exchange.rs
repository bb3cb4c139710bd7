//! Filters exchanged with Python, for `tests/test_rust.py`.
//!
//! `write FOLDER` writes four filters; `check FOLDER` reads four that Python wrote, and says which
//! answers are wrong.

use std::path::Path;
use std::{env, fs, process};

use everbloom::{BloomFilter, Item, Layout, ScalableBloomFilter};

/// Calls the macro's argument for each item, which are of many types.
macro_rules! for_each_item {
    ($use:expr) => {
        $use(&"text");
        $use(&"");
        $use(&"ä€😀");
        $use(b"\0\xff\0");
        $use(&7);
        $use(&0);
        $use(&-7);
        $use(&i64::MIN);
        $use(&u64::MAX);
        $use(&u128::MAX);
        $use(&i128::MIN);
        $use(&("a", 7, b"\0"));
        $use(&(("a", 1), (2,)));
        $use(&(1, 2, 3, 4, 5, 6, 7, "8"));
        (1000..1400).for_each(|number| $use(&number));
    };
}

/// Text of their digits is another item.
const OTHERS: [&str; 4] = ["7", "other", "a", "1000"];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let result = match &arguments[..] {
        [_, what, folder] if what == "write" => write(Path::new(folder)),
        [_, what, folder] if what == "check" => check(Path::new(folder)),
        _ => Err("usage: exchange write|check FOLDER".into()),
    };
    if let Err(error) = result {
        eprintln!("{error}");
        process::exit(1);
    }
}

type Failure = Box<dyn std::error::Error>;

fn write(folder: &Path) -> Result<(), Failure> {
    for (name, layout) in [("blocked", Layout::Blocked), ("classic", Layout::Classic)] {
        let mut builder = BloomFilter::builder()
            .capacity(600)
            .error_rate(1e-6)
            .layout(layout);
        let mut growing = ScalableBloomFilter::builder()
            .error_rate(1e-6)
            .layout(layout);
        if layout == Layout::Blocked {
            (builder, growing) = (builder.seed(7), growing.seed(7));
        }
        let (mut fixed, mut growing) = (builder.build()?, growing.build()?);
        for_each_item!(|item| insert(&mut fixed, &mut growing, item));
        fs::write(folder.join(format!("fixed-{name}.bloom")), fixed.to_bytes())?;
        fs::write(
            folder.join(format!("scalable-{name}.bloom")),
            growing.to_bytes(),
        )?;
    }
    Ok(())
}

fn insert(fixed: &mut BloomFilter, growing: &mut ScalableBloomFilter, item: &impl Item) {
    fixed.insert(item);
    growing.insert(item);
}

fn check(folder: &Path) -> Result<(), Failure> {
    for layout in ["blocked", "classic"] {
        let fixed =
            BloomFilter::from_bytes(&fs::read(folder.join(format!("fixed-{layout}.bloom")))?)?;
        let growing = fs::read(folder.join(format!("scalable-{layout}.bloom")))?;
        let growing = ScalableBloomFilter::from_bytes(&growing)?;
        let (mut missing, mut count) = (0, 0);
        for_each_item!(|item| {
            count += 1;
            missing += misses(&fixed, &growing, item);
        });
        let wrong = OTHERS
            .iter()
            .filter(|item| fixed.contains(*item) || growing.contains(*item));
        let wrong = wrong.count();
        // An item that seemed to be there was not counted.
        let counted = |len: u64| (count - 2..=count).contains(&len);
        let counts = counted(fixed.len()) && counted(growing.len());
        if missing > 0 || wrong > 0 || !counts {
            return Err(
                format!("{layout}: {missing} of {count} items missing, {wrong} wrong").into(),
            );
        }
    }
    Ok(())
}

fn misses(fixed: &BloomFilter, growing: &ScalableBloomFilter, item: &impl Item) -> u64 {
    u64::from(!fixed.contains(item)) + u64::from(!growing.contains(item))
}
