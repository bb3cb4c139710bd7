//! What a command must know besides its arguments and its key.

use everbloom::Layout;
use everbloom::hash::Key;
use everbloom_resp::Protocol;

/// The surroundings of one call: configuration, limits and the protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// The parameters of filters that are created without saying how.
    pub defaults: Defaults,
    /// How many bytes the bit arrays of one filter may take together. Creating a filter or a
    /// layer beyond it fails as if memory had run out.
    pub max_filter_bytes: u64,
    /// How many bytes of memory there are to be had now, for whatever is created or grows.
    pub free_bytes: u64,
    /// The protocol of the connection. Only BF.INFO with a field needs it: RESP2 gets the value
    /// alone, RESP3 a map with its label, and no reply type turns into both.
    pub protocol: Protocol,
    /// Where the keys of new filters in the blocked layout come from.
    pub keys: KeySource,
    /// Whether no filter may be made in the blocked layout, because a RedisBloom may have to follow.
    pub classic_only: bool,
}

impl Context {
    /// How many bytes a filter may take that is made now.
    pub fn max_new_filter_bytes(&self) -> u64 {
        self.max_filter_bytes.min(self.free_bytes)
    }
}

impl Default for Context {
    fn default() -> Self {
        Self {
            defaults: Defaults::default(),
            max_filter_bytes: u64::MAX,
            free_bytes: u64::MAX,
            protocol: Protocol::default(),
            keys: KeySource::default(),
            classic_only: false,
        }
    }
}

/// Where the keys of new filters in the blocked layout come from: a function of the host, called
/// once for each such filter that is made without a seed. What a log or a replica replays has the
/// key in it and does not ask again.
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
    /// The growth from layer to layer; 0 makes every new filter non-scaling.
    pub expansion: u32,
    /// The layout. RedisBloom knows the classic one only, which therefore is the default.
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
