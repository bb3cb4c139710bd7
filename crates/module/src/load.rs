//! The module as the host sees it: it is loaded, runs commands, and reports to INFO.

use std::ffi::CStr;

use everbloom_commands::{COMMANDS, Command, Function};

use crate::raw::command_info::document;
use crate::raw::context::{Args, HostContext, LogLevel};
use crate::raw::data_type::register as register_types;
use crate::raw::entry::{self, Callback, InfoWriter, Module, callback};
use crate::raw::load as host;
use crate::stored::Stored;
use crate::{command, config, info};

/// RedisBloom's name: clients look for it, and the two cannot be loaded together.
const NAME: &CStr = c"bf";

/// The version of RedisBloom whose commands these are, as the server says too.
const VERSION: i32 = 20810;

/// This module.
struct Bloom;

entry::export!(Bloom);

impl Module for Bloom {
    fn load(context: &mut HostContext<'_>, args: Args<'_>) -> Result<(), String> {
        if !host::introduce(context, NAME, VERSION) {
            return Err("another module has the name bf: RedisBloom, or this one".into());
        }
        host::log_panics();
        // Before anything is registered, which a host may keep when loading fails.
        config::read_arguments(context, args)?;
        host::declare_options(context);
        register_types::<Stored>(context)
            .map_err(|name| format!("the data type {name} could not be registered"))?;
        let own_categories =
            host::add_acl_category(context, c"bloom") && host::add_acl_category(context, c"cuckoo");
        for (row, callback) in COMMANDS.iter().zip(CALLBACKS) {
            register(context, row, callback, own_categories)?;
        }
        entry::register_info::<Bloom>(context);
        config::register(context)?;
        config::follow_memory(context);
        let line = format!("everbloom {} is loaded", env!("CARGO_PKG_VERSION"));
        context.log(LogLevel::Notice, &line);
        Ok(())
    }

    fn command<const ROW: usize>(host: &mut HostContext<'_>, args: Args<'_>) {
        #[expect(
            clippy::indexing_slicing,
            reason = "the compiler refuses a row that is not there"
        )]
        let row: &Command<Function> = const { &COMMANDS[ROW] };
        command::run(host, row, args);
    }

    fn info(writer: &mut InfoWriter) {
        info::report(writer);
    }
}

/// A callback for each row of the table, so that a call needs no look-up by name. Rust has no loop
/// over the values of a const parameter, so they stand here; the compiler says if one is missing.
const CALLBACKS: [Callback; COMMANDS.len()] = {
    macro_rules! of_rows {
        ($($row:literal)*) => { [$(callback::<Bloom, $row>()),*] };
    }
    of_rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
};

fn register(
    context: &HostContext<'_>,
    row: &Command<Function>,
    callback: Callback,
    own_categories: bool,
) -> Result<(), String> {
    let flags: Vec<&str> = row.flags.names().map(flag_word).collect();
    let keys = (row.keys.first, row.keys.last, row.keys.step);
    if !entry::register_command(context, row.name, &flags.join(" "), keys, callback) {
        return Err(format!("the command {} could not be registered", row.name));
    }
    let categories = row.docs.acl.iter().map(|name| name.trim_start_matches('@'));
    // With one word that it does not know, the host takes none of them.
    let known = categories.filter(|name| own_categories || !["bloom", "cuckoo"].contains(name));
    let categories: Vec<&str> = known.collect();
    // Without its categories or its documentation a command does all that it should.
    if !host::set_acl_categories(context, row.name, &categories.join(" ")) {
        let line = format!("no ACL categories for {}", row.name);
        context.log(LogLevel::Warning, &line);
    }
    if !document(context, row) {
        let line = format!("no documentation for {}", row.name);
        context.log(LogLevel::Warning, &line);
    }
    Ok(())
}

/// A flag in the words of the module API, which has a hyphen where COMMAND has none.
fn flag_word(flag: &'static str) -> &'static str {
    match flag {
        "denyoom" => "deny-oom",
        flag => flag,
    }
}
