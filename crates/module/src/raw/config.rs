//! Settings that the host keeps: `CONFIG GET`, `CONFIG SET`, `CONFIG REWRITE` and its file. Hosts
//! have them from Redis 7.0 on.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbloom_commands::number::{NumberError, memory, within};

use super::api::{api, c_str, c_text};
use super::context::{HostContext, OwnedStr, bytes_of};
use super::ffi::{CONFIG_MEMORY, CONFIG_UNPREFIXED, Ctx, ERR, EVENT_CONFIG, Event, OK, Str};

/// Whether the host is setting every setting for the first time: to what its file says, or to the
/// default.
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
}

impl NumberSetting {
    pub(crate) const fn new(value: i64, range: (i64, i64)) -> Self {
        NumberSetting {
            range,
            form: Form::Number,
            value: AtomicI64::new(value),
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

    fn parse(&self, text: &[u8]) -> Result<i64, NumberError> {
        let range = self.range.0..=self.range.1;
        match self.form {
            Form::Number => within(text, &range),
            Form::Memory => {
                let bytes = memory(text).ok_or(NumberError::Syntax)?;
                let bytes = i64::try_from(bytes).ok();
                let bytes = bytes.filter(|bytes| range.contains(bytes));
                bytes.ok_or(NumberError::Range)
            }
            Form::Word(words) => {
                let is_named = |word: &str| word.as_bytes().eq_ignore_ascii_case(text);
                let mut words = (0..).zip(words);
                let named = words.find_map(|(value, word)| is_named(word).then_some(value));
                named.ok_or(NumberError::Syntax)
            }
        }
    }
}

/// A setting that is text, and means a number. The text that was set is kept, because it is what
/// `CONFIG GET` answers.
pub(crate) struct TextSetting {
    /// What a text means for the setting of that name; an error says what is wrong with it.
    parse: fn(name: &str, text: &[u8]) -> Result<u64, String>,
    value: AtomicU64,
    kept: Mutex<Option<OwnedStr>>,
}

impl TextSetting {
    /// One that has a value before it has a text.
    pub(crate) const fn new(
        value: u64,
        parse: fn(name: &str, text: &[u8]) -> Result<u64, String>,
    ) -> Self {
        TextSetting {
            parse,
            value: AtomicU64::new(value),
            kept: Mutex::new(None),
        }
    }
}

/// Another name of a setting. It is a setting of its own to the host, which writes each whose text
/// is not its default to its file. So this one has no text unless the operator used it, or the
/// setting has its default.
pub(crate) struct Alias {
    pub(crate) name: &'static str,
    /// The name of the setting itself.
    pub(crate) of: &'static str,
    pub(crate) setting: &'static dyn Setting,
    state: Mutex<AliasState>,
}

#[derive(Default)]
struct AliasState {
    /// The value that the setting has as its default, and how the host knows it.
    default: u64,
    default_text: String,
    used: Option<AliasUse>,
    /// The text that the host reads.
    shown: Option<OwnedStr>,
    /// The texts that the host's file gives the setting and this name, if they differ.
    conflict: Option<(String, String)>,
}

/// What the operator set by another name.
struct AliasUse {
    value: u64,
    /// The text of the setting before.
    before: String,
}

impl Alias {
    pub(crate) const fn new(
        name: &'static str,
        of: &'static str,
        setting: &'static dyn Setting,
    ) -> Self {
        Alias {
            name,
            of,
            setting,
            state: Mutex::new(AliasState {
                default: 0,
                default_text: String::new(),
                used: None,
                shown: None,
                conflict: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, AliasState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the texts that the host's file gave the setting and this name, if they differ.
    pub(crate) fn take_conflict(&self) -> Option<(String, String)> {
        self.state().conflict.take()
    }

    /// Registers it, after its setting, whose value is the default.
    pub(crate) fn register(&'static self, context: &HostContext<'_>) -> bool {
        let (default, text) = (self.setting.value(), self.setting.text());
        let registered = register_text(self, context, self.name, &text, false);
        let mut state = self.state();
        (state.default, state.default_text) = (default, text);
        registered
    }
}

/// A setting that is text to the host.
trait HostText: Sync {
    /// Takes a text under that name.
    fn put(&self, name: &str, text: &[u8]) -> Result<(), String>;

    /// The text, which lives until this is called again or another one is taken.
    fn shown(&self) -> *mut Str;
}

impl HostText for TextSetting {
    fn put(&self, name: &str, text: &[u8]) -> Result<(), String> {
        self.value.store((self.parse)(name, text)?, Relaxed);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(OwnedStr::new(text));
        Ok(())
    }

    fn shown(&self) -> *mut Str {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(null_mut(), |text| text.0)
    }
}

impl HostText for Alias {
    /// An empty text takes back what this name has set: so the host undoes a `CONFIG SET` of
    /// several settings when one of them is refused.
    fn put(&self, name: &str, text: &[u8]) -> Result<(), String> {
        let (mut state, setting) = (self.state(), self.setting);
        if text.is_empty() {
            let used = state.used.take();
            let last = used.filter(|used| used.value == setting.value());
            return last.map_or(Ok(()), |used| {
                setting.put_text(name, used.before.as_bytes())
            });
        }
        let (before, value) = (setting.text(), setting.value());
        setting.put_text(name, text)?;
        if is_loading() {
            if setting.value() == state.default {
                // The host has no text for this name, and sets the default.
                return setting.put_text(name, before.as_bytes());
            }
            if value != state.default && value != setting.value() {
                state.conflict = Some((before.clone(), setting.text()));
                setting.put_text(name, before.as_bytes())?;
            }
        }
        // The host undoes a refused change by setting the last text of this name again.
        let last = state.used.take().filter(|used| used.value == value);
        let before = last.map_or(before, |used| used.before);
        let value = setting.value();
        state.used = Some(AliasUse { value, before });
        Ok(())
    }

    fn shown(&self) -> *mut Str {
        let (mut state, setting) = (self.state(), self.setting);
        let text = match &state.used {
            // The default needs no name in the file. Another spelling of it would be written.
            _ if setting.value() == state.default => Some(state.default_text.clone()),
            // What this name set to the default was changed by another one.
            Some(used) if used.value == state.default => None,
            Some(_) => Some(setting.text()),
            None => None,
        };
        state.shown = text.map(|text| OwnedStr::new(text.as_bytes()));
        state.shown.as_ref().map_or(null_mut(), |text| text.0)
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

    /// Takes a text under that name; an error says what is wrong with it.
    fn put_text(&self, name: &str, text: &[u8]) -> Result<(), String>;

    /// The text that means its value.
    fn text(&self) -> String;

    /// Its value, as bits that equal values share.
    fn value(&self) -> u64;
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

    fn put_text(&self, name: &str, text: &[u8]) -> Result<(), String> {
        let value = self.parse(text).map_err(|error| match error {
            NumberError::Syntax => format!("Invalid value for `{name}`"),
            NumberError::Range => {
                let (least, most) = self.range;
                format!("Value for `{name}` must be in the range [{least}, {most}]")
            }
        })?;
        self.value.store(value, Relaxed);
        Ok(())
    }

    fn text(&self) -> String {
        match self.form {
            Form::Number | Form::Memory => self.get().to_string(),
            Form::Word([first, second]) => if self.is_second() { second } else { first }.into(),
        }
    }

    fn value(&self) -> u64 {
        self.get().cast_unsigned()
    }
}

impl Setting for TextSetting {
    fn register(&'static self, context: &HostContext<'_>, name: &str, bare: bool) -> bool {
        register_text(self, context, name, &self.text(), bare)
    }

    fn put_text(&self, name: &str, text: &[u8]) -> Result<(), String> {
        self.put(name, text)
    }

    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a string that is kept as long as it is locked.
        let bytes = kept.as_ref().map(|text| unsafe { bytes_of(text.0) });
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }

    fn value(&self) -> u64 {
        self.value.load(Relaxed)
    }
}

/// Registers a setting that is text to the host.
fn register_text<T: HostText>(
    setting: &'static T,
    context: &HostContext<'_>,
    name: &str,
    default: &str,
    bare: bool,
) -> bool {
    let Some(register) = api().register_string_config else {
        return false;
    };
    let (name, default) = (c_text(name), c_text(default));
    // SAFETY: a valid context and C strings, which the host copies. Functions of their types, and
    // what they get as their data: a setting that lives forever.
    let registered = unsafe {
        register(
            context.raw(),
            name.as_ptr().cast(),
            default.as_ptr().cast(),
            flags(bare),
            get_text::<T>,
            set_text::<T>,
            None,
            std::ptr::from_ref(setting).cast_mut().cast(),
        )
    };
    registered == OK
}

/// What is done after `CONFIG SET` of any setting.
pub(crate) trait Follower: 'static {
    /// Looks at the host's settings.
    fn settings_changed(host: &HostContext<'_>);
}

/// Calls [`Follower::settings_changed`] from now on. False when the host does not tell.
pub(crate) fn follow<F: Follower>(context: &HostContext<'_>) -> bool {
    unsafe extern "C" fn changed<F: Follower>(
        ctx: *mut Ctx,
        _event: Event,
        _subevent: u64,
        _data: *mut c_void,
    ) {
        // SAFETY: the host's context, which is valid during the call.
        F::settings_changed(&unsafe { HostContext::new(ctx) });
    }
    let Some(subscribe) = api().subscribe else {
        return false;
    };
    // SAFETY: a valid context, an event of the host and a function of its type.
    unsafe { subscribe(context.raw(), EVENT_CONFIG, changed::<F>) == OK }
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
fn is_loading() -> bool {
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
    let setting = unsafe { &*data.cast::<NumberSetting>() };
    setting.value.store(value, Relaxed);
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
    let setting = unsafe { &*data.cast::<NumberSetting>() };
    setting.value.store(value.into(), Relaxed);
    OK
}

/// The host does not free what it gets here.
unsafe extern "C" fn get_text<T: HostText>(_name: *const c_char, data: *mut c_void) -> *mut Str {
    // SAFETY: what the host promises.
    unsafe { &*data.cast::<T>() }.shown()
}

unsafe extern "C" fn set_text<T: HostText>(
    name: *const c_char,
    text: *mut Str,
    data: *mut c_void,
    error: *mut *mut Str,
) -> c_int {
    // SAFETY: what the host promises.
    let (setting, name, text) = unsafe { (&*data.cast::<T>(), c_str(name), bytes_of(text)) };
    match setting.put(name, text) {
        Ok(()) => OK,
        Err(reason) => {
            // SAFETY: the host frees what it finds there.
            unsafe { *error = OwnedStr::new(reason.as_bytes()).into_raw() };
            ERR
        }
    }
}
