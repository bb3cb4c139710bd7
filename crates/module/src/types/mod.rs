//! The data types that the module registers: one for each kind of filters.

mod filter;

/// A Bloom filter in the classic layout.
pub(crate) type ClassicFilter = filter::Stored<0>;
/// A Bloom filter in the blocked layout.
pub(crate) type BlockedFilter = filter::Stored<1>;
/// A cuckoo filter.
pub(crate) type CuckooFilter = filter::Stored<2>;
/// A filter of valkey-bloom.
pub(crate) type ValkeyFilter = filter::Stored<3>;

use everbloom::Layout;
use everbloom_commands::{Filter, Kind};

use crate::raw::context::HostContext;
use crate::raw::data_type::{DataType, register as register_type};
use crate::raw::key::Key;

/// The kind of filter that a key holds, if it holds one.
pub(crate) fn kind_of(key: &Key<'_>) -> Option<Kind> {
    if key.is::<ClassicFilter>() {
        Some(Kind::Bloom(Layout::Classic))
    } else if key.is::<BlockedFilter>() {
        Some(Kind::Bloom(Layout::Blocked))
    } else if key.is::<CuckooFilter>() {
        Some(Kind::Cuckoo)
    } else {
        key.is::<ValkeyFilter>().then_some(Kind::Valkey)
    }
}

/// The filter of this kind that a key holds.
pub(crate) fn filter<'k>(key: &'k Key<'_>, kind: Kind) -> Option<&'k Filter> {
    match kind {
        Kind::Bloom(Layout::Classic) => key.value::<ClassicFilter>().map(ClassicFilter::filter),
        Kind::Bloom(Layout::Blocked) => key.value::<BlockedFilter>().map(BlockedFilter::filter),
        Kind::Cuckoo => key.value::<CuckooFilter>().map(CuckooFilter::filter),
        Kind::Valkey => key.value::<ValkeyFilter>().map(ValkeyFilter::filter),
    }
}

/// Changes the filter of this kind that a key holds.
pub(crate) fn change(key: &mut Key<'_>, kind: Kind, work: impl FnOnce(&mut Filter)) {
    match kind {
        Kind::Bloom(Layout::Classic) => key.value_mut::<ClassicFilter>().map(|it| it.change(work)),
        Kind::Bloom(Layout::Blocked) => key.value_mut::<BlockedFilter>().map(|it| it.change(work)),
        Kind::Cuckoo => key.value_mut::<CuckooFilter>().map(|it| it.change(work)),
        Kind::Valkey => key.value_mut::<ValkeyFilter>().map(|it| it.change(work)),
    };
}

/// Lets a key hold a new filter; false when it cannot.
pub(crate) fn set(key: &mut Key<'_>, filter: Filter) -> bool {
    match filter.kind() {
        Kind::Bloom(Layout::Classic) => key.set(Box::new(ClassicFilter::new(filter))),
        Kind::Bloom(Layout::Blocked) => key.set(Box::new(BlockedFilter::new(filter))),
        Kind::Cuckoo => key.set(Box::new(CuckooFilter::new(filter))),
        Kind::Valkey => key.set(Box::new(ValkeyFilter::new(filter))),
    }
}

/// Registers all of them.
pub(crate) fn register(context: &HostContext<'_>) -> Result<(), String> {
    register_one::<ClassicFilter>(context)?;
    register_one::<BlockedFilter>(context)?;
    register_one::<CuckooFilter>(context)?;
    register_one::<ValkeyFilter>(context)
}

fn register_one<T: DataType>(context: &HostContext<'_>) -> Result<(), String> {
    if register_type::<T>(context) {
        return Ok(());
    }
    let name = T::NAME.to_string_lossy();
    Err(format!("the data type {name} could not be registered"))
}
