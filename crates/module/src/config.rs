//! Settings.
//!
//! | Redis 8 | Redis 7, Valkey | as valkey-bloom has it | load argument |
//! |---|---|---|---|
//! | `bf-error-rate` | `bf.bf-error-rate` | `bf.bloom-fp-rate` | `ERROR_RATE` |
//! | `bf-initial-size` | `bf.bf-initial-size` | `bf.bloom-capacity` | `INITIAL_SIZE` |
//! | `bf-expansion-factor` | `bf.bf-expansion-factor` | `bf.bloom-expansion` | `EXPANSION` |
//! | `bf-default-layout` | `bf.bf-default-layout` | | `LAYOUT` |
//! | `bf-max-filter-bytes` | `bf.bf-max-filter-bytes` | `bf.bloom-memory-usage-limit` | |
//!
//! Hosts before Redis 7.0 have no settings for modules; there the load arguments are all.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use everbloom::Layout;
use everbloom::sizing::RATE_CAP;
use everbloom_commands::Defaults;
use everbloom_commands::format::layout;
use everbloom_commands::number::{self, CAPACITY, EXPANSION, NumberError};

use crate::raw::config::{self as host, NumberSetting, TextSetting, WordSetting};
use crate::raw::context::{Args, HostContext, LogLevel};
use crate::raw::load::{is_valkey, machine_memory, server_version};

/// The first Redis that has settings of modules without the module's name in front.
const REDIS_8: i32 = 0x0008_0000;

/// A whole number.
struct Number {
    value: AtomicI64,
    /// What it was when the host began to load settings.
    start: AtomicI64,
}

impl Number {
    const fn new(value: i64) -> Self {
        Number {
            value: AtomicI64::new(value),
            start: AtomicI64::new(value),
        }
    }

    fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    fn set(&self, value: i64) {
        if !(LOADING.load(Relaxed) && value == self.start.load(Relaxed)) {
            self.value.store(value, Relaxed);
        }
    }

    /// Sets it by a load argument.
    fn begin(&self, value: i64) {
        self.start.store(value, Relaxed);
        self.value.store(value, Relaxed);
    }
}

static SIZE: Number = Number::new(100);
static GROWTH: Number = Number::new(2);
/// 0 stands for no limit.
static LIMIT: Number = Number::new(0);
/// An error rate and what it was at the start, as the bits of the numbers.
static RATE: AtomicU64 = AtomicU64::new(0.01_f64.to_bits());
static START_RATE: AtomicU64 = AtomicU64::new(0.01_f64.to_bits());

/// Whether filters get the blocked layout that are created without saying which.
static BLOCKED: AtomicBool = AtomicBool::new(false);

/// How much memory the machine has, in bytes.
static MACHINE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether the host is setting every setting for the first time: to what its file says, or to the
/// default. A setting with two names must not lose by the one what it got by the other.
static LOADING: AtomicBool = AtomicBool::new(false);

static INITIAL_SIZE: NumberSetting = NumberSetting {
    range: (CAPACITY.start().cast_signed(), CAPACITY.end().cast_signed()),
    memory: false,
    get: || SIZE.get(),
    set: |value| SIZE.set(value),
};

static EXPANSION_FACTOR: NumberSetting = NumberSetting {
    range: (*EXPANSION.start() as i64, *EXPANSION.end() as i64),
    memory: false,
    get: || GROWTH.get(),
    set: |value| GROWTH.set(value),
};

static MAX_FILTER_BYTES: NumberSetting = NumberSetting {
    range: (0, i64::MAX),
    memory: true,
    get: || LIMIT.get(),
    set: |value| LIMIT.set(value),
};

/// The number of a layout is whether it is the blocked one.
static DEFAULT_LAYOUT: WordSetting = WordSetting {
    words: &[("classic", 0), ("blocked", 1)],
    get: || c_int::from(BLOCKED.load(Relaxed)),
    set: |value| BLOCKED.store(value != 0, Relaxed),
};

static ERROR_RATE: TextSetting = TextSetting::new(set_rate);

/// The parameters of filters that are created without saying how.
pub(crate) fn defaults() -> Defaults {
    Defaults {
        error_rate: f64::from_bits(RATE.load(Relaxed)),
        // Within their ranges, which are those of the settings.
        initial_size: SIZE.get().unsigned_abs(),
        expansion: u32::try_from(GROWTH.get()).unwrap_or(0),
        layout: if BLOCKED.load(Relaxed) {
            Layout::Blocked
        } else {
            Layout::Classic
        },
    }
}

/// How many bytes the bit arrays of one filter may take together, for clients. Without a limit that
/// is the machine's memory: allocators promise more, and whoever uses it is killed.
pub(crate) fn max_filter_bytes() -> u64 {
    let machine = MACHINE.load(Relaxed);
    match LIMIT.get() {
        0 => machine,
        limit => machine.min(limit.unsigned_abs()),
    }
}

/// Registers the settings, with the error rate that [`read_arguments`] found. An error is for the
/// log.
pub(crate) fn register(context: &HostContext<'_>, rate: &str) -> Result<(), String> {
    MACHINE.store(machine_memory(context).unwrap_or(u64::MAX), Relaxed);
    if !host::available() {
        return Ok(());
    }
    ERROR_RATE.put("bf-error-rate", rate.as_bytes())?;
    let bare = !is_valkey() && server_version().is_some_and(|version| version >= REDIS_8);
    for (name, bare) in [("bf-error-rate", bare), ("bloom-fp-rate", false)] {
        let registered = host::register_text(context, name, rate, bare, &ERROR_RATE);
        registered.then_some(()).ok_or_else(|| refused(name))?;
    }
    let numbers: [(&str, &str, &'static NumberSetting); 3] = [
        ("bf-initial-size", "bloom-capacity", &INITIAL_SIZE),
        ("bf-expansion-factor", "bloom-expansion", &EXPANSION_FACTOR),
        (
            "bf-max-filter-bytes",
            "bloom-memory-usage-limit",
            &MAX_FILTER_BYTES,
        ),
    ];
    for (name, alias, setting) in numbers {
        for (name, bare) in [(name, bare), (alias, false)] {
            let default = (setting.get)();
            let registered = host::register_number(context, name, default, bare, setting);
            registered.then_some(()).ok_or_else(|| refused(name))?;
        }
    }
    let (name, default) = ("bf-default-layout", (DEFAULT_LAYOUT.get)());
    let registered = host::register_word(context, name, default, bare, &DEFAULT_LAYOUT);
    registered.then_some(()).ok_or_else(|| refused(name))?;
    LOADING.store(true, Relaxed);
    let loaded = host::load(context);
    LOADING.store(false, Relaxed);
    if loaded {
        Ok(())
    } else {
        Err("a setting has a value that it cannot have".into())
    }
}

fn refused(name: &str) -> String {
    format!("the setting {name} could not be registered")
}

/// Reads load arguments as RedisBloom has them, pairs of a word and its value, and LAYOUT besides;
/// the error rate comes back as text. An error is for the log.
pub(crate) fn read_arguments(context: &HostContext<'_>, args: Args<'_>) -> Result<String, String> {
    let mut rate = String::from("0.01");
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let word = String::from_utf8_lossy(word).to_ascii_uppercase();
        let value = words
            .next()
            .ok_or_else(|| format!("the argument {word} has no value"))?;
        let wrong = || format!("the argument {word} has a value that it cannot have");
        match word.as_str() {
            "ERROR_RATE" => {
                set_rate(&word, value)?;
                START_RATE.store(RATE.load(Relaxed), Relaxed);
                rate = String::from_utf8_lossy(value).into_owned();
            }
            "INITIAL_SIZE" => {
                let size = number::capacity(value).map_err(|_| wrong())?;
                SIZE.begin(i64::try_from(size).map_err(|_| wrong())?);
            }
            "EXPANSION" => {
                let expansion = number::expansion(value).map_err(|_| wrong())?;
                GROWTH.begin(expansion.into());
            }
            "LAYOUT" => {
                let layout = layout::parse(value).ok_or_else(wrong)?;
                BLOCKED.store(layout == Layout::Blocked, Relaxed);
            }
            _ if word.starts_with("CF_") => {
                // Arguments of RedisBloom's other filters, which are not here.
                let line = format!("the argument {word} has no effect here");
                context.log(LogLevel::Warning, &line);
            }
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(rate)
}

/// Sets the error rate; false when the text is not to be kept.
fn set_rate(name: &str, text: &[u8]) -> Result<bool, String> {
    let rate = number::error_rate(text).map_err(|error| match error {
        NumberError::Syntax => format!("Invalid value for `{name}`"),
        NumberError::Range => {
            format!("Value for `{name}` must be in the range (0.000000, 1.000000)")
        }
    })?;
    let bits = rate.min(RATE_CAP).to_bits();
    if LOADING.load(Relaxed) && bits == START_RATE.load(Relaxed) {
        return Ok(false);
    }
    RATE.store(bits, Relaxed);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_layouts() {
        let layouts = [Layout::Classic, Layout::Blocked];
        assert_eq!(layouts.map(layout::name), ["classic", "blocked"]);
        assert_eq!(DEFAULT_LAYOUT.words.len(), layouts.len());
        for ((word, value), layout) in DEFAULT_LAYOUT.words.iter().zip(layouts) {
            assert_eq!(*word, layout::name(layout));
            (DEFAULT_LAYOUT.set)(*value);
            assert_eq!(
                ((DEFAULT_LAYOUT.get)(), defaults().layout),
                (*value, layout)
            );
        }
        (DEFAULT_LAYOUT.set)(0);
    }
}
