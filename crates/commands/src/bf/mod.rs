//! The `BF.*` commands, one family a file. Each file parses the arguments, and does the command's
//! work on its key.
//!
//! The functions named like a command have the shape that [`Function`](crate::table::Function) asks
//! for.

pub mod add;
pub mod advance;
pub mod debug;
pub mod dump;
pub mod exists;
pub mod info;
pub mod insert;
mod insertion;
pub mod load;
pub mod replace;
pub mod reserve;
pub mod stats;
mod window;

use crate::context::{Defaults, LazyContext};
use crate::error::CommandError;
use crate::run::count;
use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::ValkeyBloom;
use everbloom::{Layout, Span};

/// The parameters of a filter to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) error_rate: f64,
    pub(crate) capacity: u64,
    /// The expansion. 0 makes the filter non-scaling. A filter that is non-scaling for another
    /// reason keeps the number without using it.
    pub(crate) expansion: u32,
    pub(crate) non_scaling: bool,
    /// The layout, if one is given.
    pub(crate) layout: Option<Layout>,
    /// The seed of a blocked filter's hash. Without a seed the hash's key comes from the host.
    pub(crate) seed: Option<u64>,
    /// Of a filter as valkey-bloom makes it.
    pub(crate) valkey: Option<ValkeyBloom>,
    /// The span and the generations of a window.
    pub(crate) window: Option<(Span, u32)>,
}

impl From<Defaults> for Parameters {
    fn from(defaults: Defaults) -> Self {
        Self {
            error_rate: defaults.error_rate,
            capacity: defaults.initial_size,
            expansion: defaults.expansion,
            non_scaling: defaults.expansion == 0,
            layout: None,
            seed: None,
            valkey: None,
            window: None,
        }
    }
}

impl Parameters {
    /// Refuses options that contradict each other, whatever the key holds.
    pub(crate) fn check(self, defaults: &Defaults) -> Result<Self, CommandError> {
        match self.layout(defaults) {
            Layout::Blocked if self.valkey.is_some() => Err(CommandError::ValkeyOfBlocked),
            Layout::Classic if self.seed.is_some() => Err(CommandError::SeedOfClassic),
            Layout::Classic if self.window.is_some() => Err(CommandError::WindowOfClassic),
            _ => Ok(self),
        }
    }

    /// The layout. If none is given, valkey-bloom's options or a window decide.
    fn layout(&self, defaults: &Defaults) -> Layout {
        let by_default = match (self.valkey, self.window) {
            (Some(_), _) => Layout::Classic,
            (None, Some(_)) => Layout::Blocked,
            (None, None) => defaults.layout,
        };
        self.layout.unwrap_or(by_default)
    }

    pub(crate) fn build(&self, context: &LazyContext<'_>) -> Result<LayeredFilter, CommandError> {
        let layout = self.layout(&context.defaults);
        if context.classic_only && (layout == Layout::Blocked || self.valkey.is_some()) {
            return Err(CommandError::ClassicOnly);
        }
        let mut builder = LayeredFilter::builder()
            .error_rate(self.error_rate)
            .capacity(self.capacity)
            .expansion(self.expansion)
            .layout(layout)
            .max_layer_bytes(context.max_new_filter_bytes());
        if self.non_scaling {
            builder = builder.fixed();
        }
        if let Some(valkey) = self.valkey {
            builder = builder.valkey(valkey);
        }
        if let Some((span, generations)) = self.window {
            builder = builder.window(span, generations, context.now_ms);
        }
        if layout == Layout::Blocked {
            let key = self.seed.map_or_else(context.keys.0, Key::from_seed);
            builder = builder.key(key);
        }
        Ok(builder.build()?)
    }
}
