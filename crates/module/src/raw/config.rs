//! Settings that the host keeps: `CONFIG GET`, `CONFIG SET`, `CONFIG REWRITE` and its file. Hosts
//! have them from Redis 7.0 on.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::Mutex;
use std::sync::PoisonError;

use super::api::{api, c_str, c_text};
use super::context::{HostContext, OwnedStr, bytes_of};
use super::ffi::{CONFIG_MEMORY, CONFIG_UNPREFIXED, ERR, OK, Str};

/// A setting that is a whole number.
pub(crate) struct NumberSetting {
    /// The least and the greatest value.
    pub(crate) range: (i64, i64),
    /// Whether it may be given as `1mb`.
    pub(crate) memory: bool,
    pub(crate) get: fn() -> i64,
    pub(crate) set: fn(i64),
}

/// A setting that is one of some words, each with a number.
pub(crate) struct WordSetting {
    pub(crate) words: &'static [(&'static str, c_int)],
    pub(crate) get: fn() -> c_int,
    pub(crate) set: fn(c_int),
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
        let memory = if self.memory { CONFIG_MEMORY } else { 0 };
        // SAFETY: a valid context, a C string, which the host copies, functions of their types, and
        // what they get as their data: a setting that lives forever.
        let registered = unsafe {
            register(
                context.raw(),
                name.as_ptr().cast(),
                (self.get)(),
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

impl Setting for WordSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        let (Some(register), Ok(count)) = (
            api().register_enum_config,
            c_int::try_from(self.words.len()),
        ) else {
            return false;
        };
        let name = c_text(name);
        let words: Vec<Vec<u8>> = self.words.iter().map(|(word, _)| c_text(word)).collect();
        let mut starts: Vec<*const c_char> =
            words.iter().map(|word| word.as_ptr().cast()).collect();
        let values: Vec<c_int> = self.words.iter().map(|(_, value)| *value).collect();
        // SAFETY: as above; the words, which are C strings, and their values are as many as `count`
        // says, and the host copies them.
        let registered = unsafe {
            register(
                context.raw(),
                name.as_ptr().cast(),
                (self.get)(),
                flags(bare),
                starts.as_mut_ptr(),
                values.as_ptr(),
                count,
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
    // SAFETY: a valid context.
    api()
        .load_configs
        .is_some_and(|load| unsafe { load(context.raw()) } == OK)
}

fn flags(bare: bool) -> c_uint {
    if bare { CONFIG_UNPREFIXED } else { 0 }
}

// The functions below are only for the host: `data` is what the setting was registered with, and
// names are C strings.

unsafe extern "C" fn get_number(_name: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: what the host promises.
    (unsafe { &*data.cast::<NumberSetting>() }.get)()
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises. It has checked the range.
    (unsafe { &*data.cast::<NumberSetting>() }.set)(value);
    OK
}

unsafe extern "C" fn get_word(_name: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: what the host promises.
    (unsafe { &*data.cast::<WordSetting>() }.get)()
}

unsafe extern "C" fn set_word(
    _name: *const c_char,
    value: c_int,
    data: *mut c_void,
    _error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises. It has checked that a word has this value.
    (unsafe { &*data.cast::<WordSetting>() }.set)(value);
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
