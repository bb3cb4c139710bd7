//! Settings that the host keeps: `CONFIG GET`, `CONFIG SET`, `CONFIG REWRITE` and its file. Hosts
//! have them from Redis 7.0 on.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::api::{api, c_str, c_text};
use super::context::{HostContext, OwnedStr, bytes_of};
use super::ffi::{CONFIG_MEMORY, CONFIG_UNPREFIXED, ERR, OK, Str};

/// Whether the host is setting every setting for the first time: to what its file says, or to the
/// default. A setting with two names must not lose by the one what it got by the other.
static LOADING: AtomicBool = AtomicBool::new(false);

/// A setting that is a whole number.
pub(crate) struct NumberSetting {
    /// The least and the greatest value.
    range: (i64, i64),
    /// Whether it may be given as `1mb`.
    is_memory: bool,
    value: AtomicI64,
    /// The value before the host loaded its settings.
    start: AtomicI64,
}

impl NumberSetting {
    pub(crate) const fn new(value: i64, range: (i64, i64)) -> Self {
        NumberSetting {
            range,
            is_memory: false,
            value: AtomicI64::new(value),
            start: AtomicI64::new(value),
        }
    }

    /// The same, and it may be given as `1mb`.
    pub(crate) const fn of_memory(self) -> Self {
        NumberSetting {
            is_memory: true,
            ..self
        }
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    fn set(&self, value: i64) {
        if !(is_loading() && value == self.start.load(Relaxed)) {
            self.value.store(value, Relaxed);
        }
    }

    pub(crate) fn range(&self) -> RangeInclusive<i64> {
        self.range.0..=self.range.1
    }

    /// Sets it by a load argument.
    pub(crate) fn begin(&self, value: i64) {
        self.start.store(value, Relaxed);
        self.value.store(value, Relaxed);
    }
}

/// A setting that is one of two words, at first the first one.
pub(crate) struct SwitchSetting {
    pub(crate) words: [&'static str; 2],
    is_second: AtomicBool,
}

impl SwitchSetting {
    pub(crate) const fn new(words: [&'static str; 2]) -> Self {
        SwitchSetting {
            words,
            is_second: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_second(&self) -> bool {
        self.is_second.load(Relaxed)
    }

    pub(crate) fn set(&self, is_second: bool) {
        self.is_second.store(is_second, Relaxed);
    }
}

/// A setting that is text. The text that was set is kept, because it is what `CONFIG GET` answers.
pub(crate) struct TextSetting {
    /// Takes a text for the setting of that name, and says whether to keep it; an error says what
    /// is wrong with it.
    pub(crate) set: fn(name: &str, text: &[u8]) -> Result<bool, String>,
    kept: Mutex<Option<OwnedStr>>,
}

impl TextSetting {
    pub(crate) const fn new(set: fn(&str, &[u8]) -> Result<bool, String>) -> Self {
        TextSetting {
            set,
            kept: Mutex::new(None),
        }
    }

    /// The text that is kept.
    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a string that is kept as long as it is locked.
        let bytes = kept.as_ref().map(|text| unsafe { bytes_of(text.0) });
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }

    /// Takes a text and keeps it.
    pub(crate) fn put(&self, name: &str, text: &[u8]) -> Result<(), String> {
        if (self.set)(name, text)? {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(OwnedStr::new(text));
        }
        Ok(())
    }
}

/// Whether the host has settings for modules.
pub(crate) fn available() -> bool {
    let api = api();
    api.register_numeric_config.is_some()
        && api.register_string_config.is_some()
        && api.register_enum_config.is_some()
        && api.load_configs.is_some()
}

/// A setting of any kind.
pub(crate) trait Setting {
    /// Registers it, with its value as the default. Its name gets the module's in front, unless it
    /// is to stand `bare`, which only Redis takes, from 8.0 on. False when the host refuses it.
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool;
}

impl Setting for NumberSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        let Some(register) = api().register_numeric_config else {
            return false;
        };
        let name = c_text(name);
        let memory = if self.is_memory { CONFIG_MEMORY } else { 0 };
        // SAFETY: a valid context, a C string, which the host copies, functions of their types, and
        // what they get as their data: a setting that lives forever.
        let registered = unsafe {
            register(
                context.raw(),
                name.as_ptr().cast(),
                self.get(),
                flags(bare) | memory,
                self.range.0,
                self.range.1,
                get_number,
                set_number,
                None,
                std::ptr::from_ref(self).cast_mut().cast(),
            )
        };
        registered == OK
    }
}

impl Setting for SwitchSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        let Some(register) = api().register_enum_config else {
            return false;
        };
        let name = c_text(name);
        let words = self.words.map(c_text);
        let mut starts = words.each_ref().map(|word| word.as_ptr().cast());
        // SAFETY: as above; there are two words, which are C strings, and two values, and the host
        // copies them.
        let registered = unsafe {
            register(
                context.raw(),
                name.as_ptr().cast(),
                self.is_second().into(),
                flags(bare),
                starts.as_mut_ptr(),
                [0, 1].as_ptr(),
                2,
                get_word,
                set_word,
                None,
                std::ptr::from_ref(self).cast_mut().cast(),
            )
        };
        registered == OK
    }
}

impl Setting for TextSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        let Some(register) = api().register_string_config else {
            return false;
        };
        let (name, default) = (c_text(name), c_text(&self.text()));
        // SAFETY: as above.
        let registered = unsafe {
            register(
                context.raw(),
                name.as_ptr().cast(),
                default.as_ptr().cast(),
                flags(bare),
                get_text,
                set_text,
                None,
                std::ptr::from_ref(self).cast_mut().cast(),
            )
        };
        registered == OK
    }
}

/// Has the host set all settings that are registered: to what its file says, or to the default.
pub(crate) fn load(context: &HostContext<'_>) -> bool {
    LOADING.store(true, Relaxed);
    // SAFETY: a valid context.
    let loaded = api()
        .load_configs
        .is_some_and(|load| unsafe { load(context.raw()) } == OK);
    LOADING.store(false, Relaxed);
    loaded
}

/// Whether [`load`] is running.
pub(crate) fn is_loading() -> bool {
    LOADING.load(Relaxed)
}

fn flags(bare: bool) -> c_uint {
    if bare { CONFIG_UNPREFIXED } else { 0 }
}

// The functions below are only for the host: `data` is what the setting was registered with, and
// names are C strings.

unsafe extern "C" fn get_number(_name: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: what the host promises.
    unsafe { &*data.cast::<NumberSetting>() }.get()
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises. It has checked the range.
    unsafe { &*data.cast::<NumberSetting>() }.set(value);
    OK
}

unsafe extern "C" fn get_word(_name: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: what the host promises.
    c_int::from(unsafe { &*data.cast::<SwitchSetting>() }.is_second())
}

unsafe extern "C" fn set_word(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    _error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises. It has checked that a word has this value.
    unsafe { &*data.cast::<SwitchSetting>() }.set(value != 0);
    OK
}

/// The host does not free what it gets here.
unsafe extern "C" fn get_text(_name: *const c_char, data: *mut c_void) -> *mut Str {
    // SAFETY: what the host promises.
    let setting = unsafe { &*data.cast::<TextSetting>() };
    let kept = setting.kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_ref().map_or(std::ptr::null_mut(), |text| text.0)
}

unsafe extern "C" fn set_text(
    name: *const c_char,
    text: *mut Str,
    data: *mut c_void,
    error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises.
    let (setting, name, text) =
        unsafe { (&*data.cast::<TextSetting>(), c_str(name), bytes_of(text)) };
    match setting.put(name, text) {
        Ok(()) => OK,
        Err(reason) => {
            // SAFETY: the host frees what it finds there.
            unsafe { *error = OwnedStr::new(reason.as_bytes()).into_raw() };
            ERR
        }
    }
}
