//! What a setting is.

use super::settings::Settings;

/// One setting.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in redis.conf, in lower case.
    pub name: &'static str,
    /// What it does, in a sentence or two; lines of at most 90 columns.
    pub about: &'static str,
    /// Another name that it answers to.
    pub alias: Option<&'static str>,
    /// Why CONFIG SET may not change it, if so.
    pub fixed: Option<&'static str>,
    /// Whether it takes any number of words, not one.
    pub list: bool,
    /// Its value as text; [`Parameter::set`] gives the same value back from it.
    pub get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

impl Parameter {
    /// Sets it from text; an error is what the text must be instead.
    pub fn set(&self, settings: &mut Settings, text: &str) -> Result<(), String> {
        (self.set)(settings, text)
    }
}

/// How a setting is shown, and how it is read.
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

    pub(super) const fn list(mut self) -> Self {
        self.list = true;
        self
    }
}

/// Puts a value that was read into its field.
pub(super) fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}
