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
    /// Why CONFIG SET cannot change it, if it cannot.
    pub fixed: Option<&'static str>,
    /// A remote client that changed it could write files anywhere. `enable-protected-configs`
    /// controls who may change it.
    pub protected: bool,
    /// Whether it takes any number of words instead of one.
    pub list: bool,
    /// Its value as text; [`Parameter::set`] turns the text back into the value.
    pub get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

impl Parameter {
    /// Sets it from text; an error says what the text must be.
    pub fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        (self.set)(settings, text)
    }
}

/// The setting is only read at the start.
pub(super) const IMMUTABLE: &str = "can't set immutable config";

/// The maximum of a C int.
pub(super) const MAX_INT: i64 = 2_147_483_647;

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
            fixed: None,
            protected: false,
            list: false,
            get,
            set,
        }
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn fixed(mut self, why: &'static str) -> Self {
        self.fixed = Some(why);
        self
    }

    pub(super) const fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    pub(super) const fn list(mut self) -> Self {
        self.list = true;
        self
    }
}

/// Stores a value in its field.
pub(super) fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// The access to a field, with functions that show and read it.
macro_rules! access {
    ($($field:ident).+, $show:expr, $text:ident => $value:expr) => {
        (
            |s| $show(&s.$($field).+),
            |s, $text| $crate::config::row::put(&mut s.$($field).+, $value),
        )
    };
}

/// The access to a field that implements `Display`, with a function that reads it.
macro_rules! read {
    ($($field:ident).+, $text:ident => $value:expr) => {
        $crate::config::row::access!($($field).+, ToString::to_string, $text => $value)
    };
}

/// The access to a field that is a number within bounds.
macro_rules! number {
    ($($field:ident).+, $least:expr, $most:expr) => {
        $crate::config::row::read!(
            $($field).+,
            text => $crate::config::text::number(text, $least, $most)
        )
    };
}

/// The access to a field that is an amount of memory within bounds.
macro_rules! memory {
    ($($field:ident).+, $least:expr, $most:expr) => {
        $crate::config::row::read!(
            $($field).+,
            text => $crate::config::text::memory(text, $least, $most)
        )
    };
}

/// The access to a field that is yes or no.
macro_rules! yes_no {
    ($($field:ident).+) => {
        $crate::config::row::access!(
            $($field).+,
            $crate::config::text::show_yes_no,
            text => $crate::config::text::yes_no(text)
        )
    };
}

/// The access to a field whose values have words.
macro_rules! word {
    ($($field:ident).+, $words:expr) => {
        $crate::config::row::access!(
            $($field).+,
            |value| $crate::config::text::show_word($words, value),
            text => $crate::config::text::read_word($words, text)
        )
    };
}

/// The access to a number of RedisBloom's settings. Its range may depend on the other settings.
macro_rules! ranged {
    ($name:expr, $($field:ident).+, $settings:ident => $range:expr) => {
        (
            |s| s.$($field).+.to_string(),
            |$settings, text| {
                let range = $range;
                let value = $crate::config::text::ranged($name, text, range);
                $crate::config::row::put(&mut $settings.$($field).+, value)
            },
        )
    };
}

/// The access to a path; an empty one means none.
macro_rules! file_path {
    ($($field:ident).+) => {
        $crate::config::row::access!(
            $($field).+,
            $crate::config::text::show_path,
            text => Ok((!text.is_empty()).then(|| text.into()))
        )
    };
}
pub(super) use {access, file_path, memory, number, ranged, read, word, yes_no};
