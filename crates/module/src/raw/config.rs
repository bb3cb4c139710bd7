//! Settings that the host keeps: `CONFIG GET`, `CONFIG SET`, `CONFIG REWRITE` and its file. Hosts
//! have them from Redis 7.0 on.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use everbloom_commands::number::integer;

use super::api::{api, c_str, c_text};
use super::context::{HostContext, OwnedStr, bytes_of};
use super::ffi::{CONFIG_MEMORY, CONFIG_UNPREFIXED, ERR, OK, Str};

/// Whether the host is setting every setting for the first time: to what its file says, or to the
/// default. A setting with two names must not lose by the one what it got by the other.
static LOADING: AtomicBool = AtomicBool::new(false);

/// How a setting is written that is a whole number within.
enum Form {
    Number,
    /// As a number, or as `1mb`.
    Memory,
    /// As one of these, from 0.
    Word([&'static str; 2]),
}

/// A setting that is a whole number.
pub(crate) struct NumberSetting {
    /// The least and the greatest value.
    range: (i64, i64),
    form: Form,
    value: AtomicI64,
    /// The value before the host loaded its settings.
    start: AtomicI64,
}

impl NumberSetting {
    pub(crate) const fn new(value: i64, range: (i64, i64)) -> Self {
        NumberSetting {
            range,
            form: Form::Number,
            value: AtomicI64::new(value),
            start: AtomicI64::new(value),
        }
    }

    /// The same, and it may be given as `1mb`.
    pub(crate) const fn of_memory(mut self) -> Self {
        self.form = Form::Memory;
        self
    }

    /// One that is one of two words, at first the first one.
    pub(crate) const fn of_words(words: [&'static str; 2]) -> Self {
        let mut setting = NumberSetting::new(0, (0, 1));
        setting.form = Form::Word(words);
        setting
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    /// Whether it is the second of two words.
    pub(crate) fn is_second(&self) -> bool {
        self.get() == 1
    }

    fn set(&self, value: i64) {
        if !(is_loading() && value == self.start.load(Relaxed)) {
            self.value.store(value, Relaxed);
        }
    }
}

/// A setting that is text. The text that was set is kept, because it is what `CONFIG GET` answers.
pub(crate) struct TextSetting {
    /// Takes a text for the setting of that name, and says whether to keep it; an error says what
    /// is wrong with it.
    set: fn(name: &str, text: &[u8]) -> Result<bool, String>,
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
    fn put(&self, name: &str, text: &[u8]) -> Result<(), String> {
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
pub(crate) trait Setting: Sync {
    /// Registers it, with its value as the default. Its name gets the module's in front, unless it
    /// is to stand `bare`, which only Redis takes, from 8.0 on. False when the host refuses it.
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool;

    /// Sets it by a load argument.
    fn begin(&self, argument: &str, text: &[u8]) -> Result<(), String>;
}

impl Setting for NumberSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        let api = api();
        let (Some(number), Some(word)) = (api.register_numeric_config, api.register_enum_config)
        else {
            return false;
        };
        let name = c_text(name);
        let (ctx, name) = (context.raw(), name.as_ptr().cast());
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let (value, (least, most)) = (self.get(), self.range);
        let registered = match self.form {
            Form::Word(words) => {
                let words = words.map(c_text);
                let mut starts = words.each_ref().map(|word| word.as_ptr().cast());
                let (starts, values) = (starts.as_mut_ptr(), [0, 1].as_ptr());
                let (first, flags) = (self.is_second().into(), flags(bare));
                // SAFETY: a valid context and C strings. There are two words and two values. The
                // host copies them. Functions of their types, and what they get as their data: a
                // setting that lives forever.
                unsafe {
                    word(
                        ctx, name, first, flags, starts, values, 2, get_word, set_word, None, data,
                    )
                }
            }
            Form::Number | Form::Memory => {
                let is_memory = matches!(self.form, Form::Memory);
                let flags = flags(bare) | if is_memory { CONFIG_MEMORY } else { 0 };
                // SAFETY: as above.
                unsafe {
                    number(
                        ctx, name, value, flags, least, most, get_number, set_number, None, data,
                    )
                }
            }
        };
        registered == OK
    }

    fn begin(&self, argument: &str, text: &[u8]) -> Result<(), String> {
        let value = match self.form {
            Form::Word(words) => (0..).zip(words).find_map(|(value, word)| {
                let is_named = word.as_bytes().eq_ignore_ascii_case(text);
                is_named.then_some(value)
            }),
            Form::Number | Form::Memory => {
                integer(text).filter(|it| (self.range.0..=self.range.1).contains(it))
            }
        };
        let wrong = || format!("the argument {argument} has a value that it cannot have");
        let value = value.ok_or_else(wrong)?;
        self.start.store(value, Relaxed);
        self.value.store(value, Relaxed);
        Ok(())
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

    fn begin(&self, argument: &str, text: &[u8]) -> Result<(), String> {
        self.put(argument, text)
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
    c_int::from(unsafe { &*data.cast::<NumberSetting>() }.is_second())
}

unsafe extern "C" fn set_word(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    _error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises. It has checked that a word has this value.
    unsafe { &*data.cast::<NumberSetting>() }.set(value.into());
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
