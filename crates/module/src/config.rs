//! Settings.
//!
//! A load argument has the name of the first column, valkey-bloom's or its old one.
//!
//! | Redis 8 | Redis 7, Valkey | as valkey-bloom has it | old load argument |
//! |---|---|---|---|
//! | `bf-error-rate` | `bf.bf-error-rate` | `bf.bloom-fp-rate` | `ERROR_RATE` |
//! | `bf-initial-size` | `bf.bf-initial-size` | `bf.bloom-capacity` | `INITIAL_SIZE` |
//! | `bf-expansion-factor` | `bf.bf-expansion-factor` | `bf.bloom-expansion` | `EXPANSION` |
//! | `bf-default-layout` | `bf.bf-default-layout` | | `LAYOUT` |
//! | `bf-max-filter-bytes` | `bf.bf-max-filter-bytes` | `bf.bloom-memory-usage-limit` | |
//! | `bf-redisbloom-compatible` | `bf.bf-redisbloom-compatible` | | `REDISBLOOM_COMPATIBLE` |
//! | `cf-initial-size` | `bf.cf-initial-size` | | `CF_INITIAL_SIZE` |
//! | `cf-bucket-size` | `bf.cf-bucket-size` | | `CF_BUCKET_SIZE` |
//! | `cf-max-iterations` | `bf.cf-max-iterations` | | `CF_MAX_ITERATIONS` |
//! | `cf-expansion-factor` | `bf.cf-expansion-factor` | | `CF_EXPANSION_FACTOR` |
//! | `cf-max-expansions` | `bf.cf-max-expansions` | | `CF_MAX_EXPANSIONS` |
//!
//! Hosts before Redis 7.0 have no settings for modules; there the load arguments are all.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use everbloom::sizing::RATE_CAP;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::number::{self, CAPACITY, EXPANSION, NumberError};
use everbloom_commands::{CuckooDefaults, Defaults};

use crate::raw::config::{self as host, Alias, Follower, NumberSetting, Setting, TextSetting};
use crate::raw::context::{Args, HostContext, LogLevel};
use crate::raw::load::{is_valkey, memory_info};

/// How much memory the machine has, in bytes.
static MACHINE: AtomicU64 = AtomicU64::new(u64::MAX);
/// The host's `maxmemory` in bytes; the greatest number if it has no limit or does not tell when it
/// changes.
static MAX_MEMORY: AtomicU64 = AtomicU64::new(u64::MAX);

/// Its value is the bits of a number.
static ERROR_RATE: TextSetting = TextSetting::new(0.01_f64.to_bits(), rate_bits);
static INITIAL_SIZE: NumberSetting = NumberSetting::new(
    100,
    (CAPACITY.start().cast_signed(), CAPACITY.end().cast_signed()),
);
static EXPANSION_FACTOR: NumberSetting =
    NumberSetting::new(2, (*EXPANSION.start() as i64, *EXPANSION.end() as i64));
/// 0 means that memory is the limit.
static MAX_FILTER_BYTES: NumberSetting = NumberSetting::new(0, (0, i64::MAX)).of_memory();
/// The layout of filters that are created without a layout.
static DEFAULT_LAYOUT: NumberSetting = NumberSetting::of_words(["classic", "blocked"]);
/// Whether commands are refused that RedisBloom could not follow as a replica, so that a move to
/// this module can be undone.
static REDISBLOOM_COMPATIBLE: NumberSetting = NumberSetting::of_words(["no", "yes"]);

static CUCKOO_INITIAL_SIZE: NumberSetting =
    NumberSetting::new(1024, (2, CAPACITY.end().cast_signed()));
static CUCKOO_BUCKET_SIZE: NumberSetting = NumberSetting::new(2, (1, u8::MAX as i64));
static CUCKOO_MAX_ITERATIONS: NumberSetting = NumberSetting::new(20, (1, u16::MAX as i64));
static CUCKOO_EXPANSION_FACTOR: NumberSetting =
    NumberSetting::new(1, (0, CuckooFilter::MAX_EXPANSION as i64));
static CUCKOO_MAX_EXPANSIONS: NumberSetting = NumberSetting::new(32, (1, 1 << 16));

/// The settings.
static SETTINGS: [(&str, &dyn Setting); 11] = [
    ("bf-error-rate", &ERROR_RATE),
    ("bf-initial-size", &INITIAL_SIZE),
    ("bf-expansion-factor", &EXPANSION_FACTOR),
    ("bf-max-filter-bytes", &MAX_FILTER_BYTES),
    ("bf-default-layout", &DEFAULT_LAYOUT),
    ("bf-redisbloom-compatible", &REDISBLOOM_COMPATIBLE),
    ("cf-initial-size", &CUCKOO_INITIAL_SIZE),
    ("cf-bucket-size", &CUCKOO_BUCKET_SIZE),
    ("cf-max-iterations", &CUCKOO_MAX_ITERATIONS),
    ("cf-expansion-factor", &CUCKOO_EXPANSION_FACTOR),
    ("cf-max-expansions", &CUCKOO_MAX_EXPANSIONS),
];

/// What valkey-bloom calls some of them.
static ALIASES: [Alias; 4] = [
    Alias::new("bloom-fp-rate", "bf-error-rate", &ERROR_RATE),
    Alias::new("bloom-capacity", "bf-initial-size", &INITIAL_SIZE),
    Alias::new("bloom-expansion", "bf-expansion-factor", &EXPANSION_FACTOR),
    Alias::new(
        "bloom-memory-usage-limit",
        "bf-max-filter-bytes",
        &MAX_FILTER_BYTES,
    ),
];

/// The names of load arguments before the settings had names.
static OLD_ARGUMENTS: [(&str, &dyn Setting); 10] = [
    ("ERROR_RATE", &ERROR_RATE),
    ("INITIAL_SIZE", &INITIAL_SIZE),
    ("EXPANSION", &EXPANSION_FACTOR),
    ("LAYOUT", &DEFAULT_LAYOUT),
    ("REDISBLOOM_COMPATIBLE", &REDISBLOOM_COMPATIBLE),
    ("CF_INITIAL_SIZE", &CUCKOO_INITIAL_SIZE),
    ("CF_BUCKET_SIZE", &CUCKOO_BUCKET_SIZE),
    ("CF_MAX_ITERATIONS", &CUCKOO_MAX_ITERATIONS),
    ("CF_EXPANSION_FACTOR", &CUCKOO_EXPANSION_FACTOR),
    ("CF_MAX_EXPANSIONS", &CUCKOO_MAX_EXPANSIONS),
];

/// The setting that a load argument is for, in any case of letters.
fn setting_of(argument: &[u8]) -> Option<&'static dyn Setting> {
    let aliases = ALIASES.iter().map(|alias| (alias.name, alias.setting));
    let named = SETTINGS.iter().chain(&OLD_ARGUMENTS).copied();
    let mut known = named.chain(aliases);
    let found = known.find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(argument));
    found.map(|(_, setting)| setting)
}

/// The same for cuckoo filters. Two settings must agree, which the host lets be set one by one: a
/// filter has two buckets at least.
pub(crate) fn cuckoo_defaults() -> CuckooDefaults {
    // Within their ranges, which are those of the settings.
    let bucket_size = u8::try_from(CUCKOO_BUCKET_SIZE.get()).unwrap_or(u8::MAX);
    CuckooDefaults {
        initial_size: CUCKOO_INITIAL_SIZE
            .get()
            .unsigned_abs()
            .max(2 * u64::from(bucket_size)),
        bucket_size,
        max_iterations: u16::try_from(CUCKOO_MAX_ITERATIONS.get()).unwrap_or(u16::MAX),
        expansion: u16::try_from(CUCKOO_EXPANSION_FACTOR.get()).unwrap_or(0),
        max_expansions: u32::try_from(CUCKOO_MAX_EXPANSIONS.get()).unwrap_or(u32::MAX),
    }
}

/// The parameters of filters that are created without saying how.
pub(crate) fn defaults() -> Defaults {
    Defaults {
        error_rate: f64::from_bits(ERROR_RATE.value()),
        // Within their ranges, which are those of the settings.
        initial_size: INITIAL_SIZE.get().unsigned_abs(),
        expansion: u32::try_from(EXPANSION_FACTOR.get()).unwrap_or(0),
        layout: if DEFAULT_LAYOUT.is_second() {
            Layout::Blocked
        } else {
            Layout::Classic
        },
    }
}

/// How many bytes the bit arrays of one filter may take together, for clients. At most the
/// machine's memory: allocators promise more, and a process that uses it is killed. Without a limit
/// also at most `maxmemory`: a host that evicts would remove every key for the filter, and then it.
pub(crate) fn max_filter_bytes() -> u64 {
    let machine = MACHINE.load(Relaxed);
    match MAX_FILTER_BYTES.get() {
        0 => machine.min(MAX_MEMORY.load(Relaxed)),
        limit => machine.min(limit.unsigned_abs()),
    }
}

/// Whether clients are refused what RedisBloom as a replica could not follow: filters in the
/// blocked layout, and copies, which it has none of.
pub(crate) fn redisbloom_compatible() -> bool {
    REDISBLOOM_COMPATIBLE.is_second()
}

/// Registers the settings, with the values that [`read_arguments`] found. An error is for the log.
pub(crate) fn register(context: &HostContext<'_>) -> Result<(), String> {
    if !host::available() {
        return Ok(());
    }
    // A host that knows no bare names refuses them; to Valkey their flag may mean something else.
    let mut bare = !is_valkey();
    for (name, setting) in SETTINGS {
        if !own_name(&mut bare, |bare| setting.register(context, name, bare)) {
            return Err(format!("the setting {name} could not be registered"));
        }
    }
    // The host sets the settings in this order.
    for alias in &ALIASES {
        if !alias.register(context) {
            let name = alias.name;
            return Err(format!("the setting {name} could not be registered"));
        }
    }
    if !bare && !is_valkey() {
        // The host has just warned of an invalid flag.
        let line = "no harm done: this host puts bf. in front of the names of settings";
        context.log(LogLevel::Notice, line);
    }
    if !host::load(context) {
        return Err("a setting has a value that it cannot have".into());
    }
    let prefix = if bare { "" } else { "bf." };
    for alias in &ALIASES {
        if let Some((value, other)) = alias.take_conflict() {
            let (of, name) = (alias.of, alias.name);
            let line = format!(
                "{prefix}{of} is {value} and bf.{name} is {other}, but they are one setting: \
                 {value} is used"
            );
            context.log(LogLevel::Warning, &line);
        }
    }
    Ok(())
}

/// Reads how much memory there is, now and whenever the host's settings change. Nothing may fail
/// after it: a host keeps calling a module that failed to load.
pub(crate) fn follow_memory(context: &HostContext<'_>) {
    if host::follow::<Memory>(context) {
        Memory::settings_changed(context);
    } else if let Some(machine) = memory_info(context).and_then(|memory| memory.machine) {
        MACHINE.store(machine, Relaxed);
    }
}

/// How much memory there is, whatever the host's settings become.
struct Memory;

impl Follower for Memory {
    fn settings_changed(context: &HostContext<'_>) {
        if let Some(memory) = memory_info(context) {
            MACHINE.store(memory.machine.unwrap_or(u64::MAX), Relaxed);
            MAX_MEMORY.store(memory.limit.unwrap_or(u64::MAX), Relaxed);
        }
    }
}

/// Registers a name without the module's in front, by `register(true)`, if the host takes that;
/// else with it. `bare` is what is known of the host, which is not asked again when it has refused.
fn own_name(bare: &mut bool, register: impl Fn(bool) -> bool) -> bool {
    *bare = *bare && register(true);
    *bare || register(false)
}

/// Reads load arguments, pairs of a word and its value. An error is for the log.
pub(crate) fn read_arguments(context: &HostContext<'_>, args: Args<'_>) -> Result<(), String> {
    ERROR_RATE.put_text("ERROR_RATE", b"0.01")?;
    let mut given: Vec<(&dyn Setting, String, u64)> = Vec::new();
    let mut words = args.iter();
    while let Some(argument) = words.next() {
        let word = String::from_utf8_lossy(argument);
        let value = words
            .next()
            .ok_or_else(|| format!("the argument {word} has no value"))?;
        let Some(setting) = setting_of(argument) else {
            if !argument.to_ascii_lowercase().starts_with(b"bloom-") {
                return Err(format!("unknown argument {word}"));
            }
            let line = format!("the argument {word} has no effect here");
            context.log(LogLevel::Warning, &line);
            continue;
        };
        setting.put_text(&word, value)?;
        let mut earlier = given.iter().rev();
        if let Some((_, name, earlier)) = earlier.find(|it| std::ptr::addr_eq(it.0, setting))
            && *earlier != setting.value()
        {
            let text = setting.text();
            let line = format!(
                "the arguments {name} and {word} are one setting, with two values: {text} is used"
            );
            context.log(LogLevel::Warning, &line);
        }
        given.push((setting, word.into_owned(), setting.value()));
    }
    Ok(())
}

/// What the text of an error rate means, as the bits of a number.
fn rate_bits(name: &str, text: &[u8]) -> Result<u64, String> {
    let rate = number::error_rate(text).map_err(|error| match error {
        NumberError::Syntax => format!("Invalid value for `{name}`"),
        NumberError::Range => {
            format!("Value for `{name}` must be in the range (0.000000, 1.000000)")
        }
    })?;
    Ok(rate.min(RATE_CAP).to_bits())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use everbloom_commands::format::layout;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_layouts() {
        let layouts = [Layout::Blocked, Layout::Classic];
        for layout in layouts {
            let name = layout::name(layout).as_bytes();
            assert_eq!(DEFAULT_LAYOUT.put_text("LAYOUT", name), Ok(()));
            assert_eq!(defaults().layout, layout);
        }
        assert!(DEFAULT_LAYOUT.put_text("LAYOUT", b"other").is_err());
    }

    /// Registers some names with a host that answers so, and shows which it has then.
    fn names(mut bare: bool, host: impl Fn(usize, bool) -> bool) -> Vec<String> {
        let taken = RefCell::new(Vec::new());
        for at in 0..3 {
            let ok = own_name(&mut bare, |bare| {
                let takes = host(at, bare);
                let name = format!("{}{at}", if bare { "" } else { "bf." });
                taken.borrow_mut().extend(takes.then_some(name));
                takes
            });
            assert_eq!(ok, host(at, bare));
        }
        taken.into_inner()
    }

    #[test]
    fn names_stand_bare_where_the_host_takes_them_so() {
        assert_eq!(names(true, |_, _| true), ["0", "1", "2"]);
        assert_eq!(names(false, |_, _| true), ["bf.0", "bf.1", "bf.2"]);
        // A development build may say any version and know no bare names.
        assert_eq!(names(true, |_, bare| !bare), ["bf.0", "bf.1", "bf.2"]);
        // Somebody else has one of the names.
        let busy = |at, bare: bool| !(bare && at == 1);
        assert_eq!(names(true, busy), ["0", "bf.1", "bf.2"]);
        assert!(names(true, |_, _| false).is_empty());
    }

    #[test]
    fn a_host_that_refuses_bare_names_is_asked_once() {
        let asked = Cell::new(0);
        names(true, |_, bare| {
            asked.set(asked.get() + usize::from(bare));
            !bare
        });
        assert_eq!(asked.get(), 1);
    }
}
