//! What a command needs besides its arguments and its key.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;

use crate::error::CommandError;
use crate::filter::FilterKind;
use crate::limits::{LOADED_TABLES, MAX_LOADED_LAYERS};
use everbloom::Layout;
use everbloom::hash::Key;
use everbloom_resp::Protocol;

/// The surroundings of one call: configuration, limits and the protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// The parameters that new filters take when the command does not state them.
    pub defaults: Defaults,
    /// The same for cuckoo filters.
    pub cuckoo: CuckooDefaults,
    /// The most bytes that the bit arrays of one filter may take together. A filter or layer beyond
    /// this limit fails as if memory had run out.
    pub max_filter_bytes: u64,
    /// The bytes of memory that are free now for new filters and new layers.
    pub free_bytes: u64,
    /// The longest string, in bytes, for commands of the host's own on strings.
    pub max_string_bytes: usize,
    /// The protocol of the connection. Only BF.INFO with a field needs it: in RESP2 it answers the
    /// value alone, in RESP3 a map with the label. No reply type stands for both.
    pub protocol: Protocol,
    /// Where the keys of new filters in the blocked layout come from.
    pub keys: KeySource,
    /// The time in Unix milliseconds, by which windows forget. 0 for the commands of a log or of a
    /// primary: they bring every change of a window with them.
    pub now_ms: u64,
    /// Whether no filter may be made in the blocked layout, because a RedisBloom may have to
    /// follow.
    pub classic_only: bool,
    /// Whether changes go to replicas, of which one may have an older version that knows no
    /// windows.
    pub has_replicas: bool,
}

impl Context {
    /// The clock by which windows forget; `None` for the commands of a log or of a primary.
    pub fn clock(&self) -> Option<u64> {
        Some(self.now_ms).filter(|now| *now > 0)
    }

    /// The most bytes that a filter made now may take.
    pub fn max_new_filter_bytes(&self) -> u64 {
        self.max_filter_bytes.min(self.free_bytes)
    }

    /// The most tables of a cuckoo filter that a client loads, or makes by adding. What a log or a
    /// primary brings was accepted before.
    pub(crate) fn most_tables(&self) -> usize {
        let configured = usize::try_from(self.cuckoo.max_expansions).unwrap_or(usize::MAX);
        match self.clock() {
            Some(_) => configured.max(LOADED_TABLES),
            None => usize::MAX,
        }
    }

    /// Refuses a filter that a client loads with more layers or tables than filters that grow here
    /// ever have: every item of a command takes a step for each. What a log or a primary brings was
    /// accepted before.
    ///
    /// # Errors
    ///
    /// [`CommandError::TooManyLayers`], [`CommandError::MaxExpansions`]
    pub fn check_loaded(&self, kind: FilterKind, arrays: usize) -> Result<(), CommandError> {
        let (most, error) = match kind {
            FilterKind::Cuckoo | FilterKind::KeyedCuckoo => {
                (self.most_tables(), CommandError::MaxExpansions)
            }
            FilterKind::Bloom(_) | FilterKind::Valkey => {
                (MAX_LOADED_LAYERS, CommandError::TooManyLayers)
            }
        };
        match self.clock() {
            Some(_) if arrays > most => Err(error),
            _ => Ok(()),
        }
    }
}

/// The surroundings of one call, found out when they are first needed: most calls on a filter that
/// exists need none, and a host may have to work for them.
///
/// ```
/// use everbloom_commands::{Context, LazyContext};
///
/// let context = LazyContext::new(&Context::default);
/// assert_eq!(context.now_ms, 0);
/// ```
pub struct LazyContext<'h> {
    known: OnceCell<Context>,
    find: &'h dyn Fn() -> Context,
}

impl<'h> LazyContext<'h> {
    /// What `find` returns.
    #[inline]
    pub fn new(find: &'h dyn Fn() -> Context) -> Self {
        let known = OnceCell::new();
        LazyContext { known, find }
    }
}

impl LazyContext<'_> {
    /// Forgets the surroundings, which have changed.
    pub fn forget(&mut self) {
        self.known.take();
    }
}

impl From<Context> for LazyContext<'_> {
    fn from(context: Context) -> Self {
        LazyContext {
            known: context.into(),
            find: &Context::default,
        }
    }
}

impl Default for LazyContext<'_> {
    fn default() -> Self {
        Context::default().into()
    }
}

impl Deref for LazyContext<'_> {
    type Target = Context;

    #[inline]
    fn deref(&self) -> &Context {
        self.known.get_or_init(self.find)
    }
}

impl fmt::Debug for LazyContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.known.fmt(f)
    }
}

impl Default for Context {
    fn default() -> Self {
        Self {
            defaults: Defaults::default(),
            cuckoo: CuckooDefaults::default(),
            max_filter_bytes: u64::MAX,
            free_bytes: u64::MAX,
            max_string_bytes: usize::MAX,
            protocol: Protocol::default(),
            keys: KeySource::default(),
            now_ms: 0,
            classic_only: false,
            has_replicas: false,
        }
    }
}

/// The host's function for the keys of new filters in the blocked layout. It is called once for
/// each such filter that is made without a seed. A log or a replica does not call it, because the
/// commands that they replay contain the key.
#[derive(Clone, Copy, Debug)]
pub struct KeySource(pub fn() -> Key);

impl Default for KeySource {
    /// Keys that nobody can guess.
    fn default() -> Self {
        Self(Key::random)
    }
}

impl PartialEq for KeySource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

/// The configured parameters of new filters (`bf-error-rate`, `bf-initial-size`,
/// `bf-expansion-factor`, `bf-default-layout`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// The error rate of a filter, over all its layers.
    pub error_rate: f64,
    /// The capacity of the first layer, in items.
    pub initial_size: u64,
    /// The expansion. 0 makes every new filter non-scaling.
    pub expansion: u32,
    /// The layout. The default is the classic one, because RedisBloom has only that.
    pub layout: Layout,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            error_rate: 0.01,
            initial_size: 100,
            expansion: 2,
            layout: Layout::Classic,
        }
    }
}

/// The configured parameters of new cuckoo filters (`cf-initial-size`, `cf-bucket-size`,
/// `cf-max-iterations`, `cf-expansion-factor`), and when one may not take items any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooDefaults {
    /// The slots of the first table.
    pub initial_size: u64,
    /// Slots of a bucket.
    pub bucket_size: u8,
    /// The most fingerprints that are moved to free a slot for one.
    pub max_iterations: u16,
    /// How many times the buckets of a table the next one has. 0 makes a filter that does not grow.
    pub expansion: u16,
    /// A command that adds is refused when the filter has so many tables (`cf-max-expansions`). A
    /// log or a replica must not refuse what was done, so their hosts set the largest number.
    pub max_expansions: u32,
}

impl Default for CuckooDefaults {
    fn default() -> Self {
        Self {
            initial_size: 1024,
            bucket_size: 2,
            max_iterations: 20,
            expansion: 1,
            max_expansions: 32,
        }
    }
}
