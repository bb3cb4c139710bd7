//! The row of a setting.

use super::settings::Settings;

/// One setting.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in redis.conf, in lower case.
    pub name: &'static str,
    /// What it does, in a sentence or two; lines of at most 90 columns.
    pub about: &'static str,
    /// An alias.
    pub alias: Option<&'static str>,
    /// Whether it is only read at the start, so that CONFIG SET cannot change it.
    pub fixed: bool,
    /// A remote client that changed it could write files anywhere. `enable-protected-configs`
    /// controls who may change it.
    pub protected: bool,
    /// Whether it takes any number of words instead of one.
    pub list: bool,
    /// Its value as text.
    pub get: fn(&Settings) -> String,
    /// Sets it from text; an error says what the text must be.
    pub set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// How a setting is shown and read.
pub(super) type Access = (
    fn(&Settings) -> String,
    fn(&mut Settings, &str) -> Result<(), String>,
);

impl Parameter {
    pub(super) const fn new(name: &'static str, about: &'static str, (get, set): Access) -> Self {
        Parameter {
            name,
            about,
            alias: None,
            fixed: false,
            protected: false,
            list: false,
            get,
            set,
        }
    }
}

/// The rows of settings. Above each row, a doc comment says what the setting does. The row has the
/// name, a rule of [`access!`], and the other fields of [`Parameter`] that are set.
macro_rules! settings {
    ($(
        #[doc = $first:literal]
        $(#[doc = $line:literal])*
        $name:literal: $kind:ident($($how:tt)+) $(, $key:ident: $value:expr)*;
    )+) => {
        &[$(Parameter {
            $($key: $value,)*
            ..Parameter::new(
                $name,
                concat!($first, $("\n", $line),*),
                access!($kind $($how)+),
            )
        }),+]
    };
}

/// How a field is shown and read: by the kind of its value, or by a function that reads text.
macro_rules! access {
    (yes_no $($field:ident).+) => {
        access!(shown $($field).+, show_yes_no, yes_no())
    };
    // A path; an empty one means none.
    (path $($field:ident).+) => {
        access!(shown $($field).+, show_path, path())
    };
    // A value of a table of words.
    (word $($field:ident).+, $words:expr) => {
        access!(shown $($field).+, |value| show_word($words, value), read_word($words))
    };
    // A number of RedisBloom's settings. Its range may depend on the other settings.
    (ranged $($field:ident).+, $name:literal, $settings:ident => $range:expr) => {
        (
            |s| s.$($field).+.to_string(),
            |$settings, text| {
                $settings.$($field).+ = ranged(text, $name, $range)?;
                Ok(())
            },
        )
    };
    (special $get:expr, $set:expr) => {
        ($get, $set)
    };
    (shown $($field:ident).+, $show:expr, $read:ident($($argument:expr),*)) => {
        (
            |s| $show(&s.$($field).+),
            |s, text| {
                s.$($field).+ = $read(text, $($argument),*)?;
                Ok(())
            },
        )
    };
    ($read:ident $($field:ident).+ $(, $argument:expr)*) => {
        access!(shown $($field).+, ToString::to_string, $read($($argument),*))
    };
}
pub(super) use {access, settings};
