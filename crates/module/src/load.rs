//! What happens when the module is loaded.

use std::ffi::CStr;

use everbloom_commands::{COMMANDS, Command, Function};

use crate::raw::command_info::document;
use crate::raw::context::{Args, HostContext, LogLevel};
use crate::raw::load as host;
use crate::{config, types};

/// RedisBloom's name: clients look for it, and the two cannot be loaded together.
const NAME: &CStr = c"bf";

/// The version of RedisBloom whose commands these are, as the server says too.
const VERSION: i32 = 20810;

/// Registers everything. An error is for the log, and the module is not loaded.
pub(crate) fn load(context: &mut HostContext<'_>, args: Args<'_>) -> Result<(), String> {
    if !host::introduce(context, NAME, VERSION) {
        return Err("another module has the name bf: RedisBloom, or this one".into());
    }
    host::log_panics();
    // Before anything is registered, which a host may keep when loading fails.
    let rate = config::read_arguments(context, args)?;
    host::declare_options(context);
    types::register(context)?;
    let own_category = host::add_acl_category(context, c"bloom");
    for row in COMMANDS {
        register(context, row, own_category)?;
    }
    host::register_info(context);
    config::register(context, &rate)?;
    let line = format!("everbloom {} is loaded", env!("CARGO_PKG_VERSION"));
    context.log(LogLevel::Notice, &line);
    Ok(())
}

fn register(
    context: &HostContext<'_>,
    row: &Command<Function>,
    own_category: bool,
) -> Result<(), String> {
    let flags: Vec<&str> = row.flags.names().map(flag_word).collect();
    let keys = (row.keys.first, row.keys.last, row.keys.step);
    if !host::register_command(context, row.name, &flags.join(" "), keys) {
        return Err(format!("the command {} could not be registered", row.name));
    }
    let categories = row.docs.acl.iter().map(|name| name.trim_start_matches('@'));
    // With one word that it does not know, the host takes none of them.
    let known = categories.filter(|name| own_category || *name != "bloom");
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
