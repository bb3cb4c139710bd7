//! Redis's own words for what can go wrong.

use everbloom_resp::Reply;

/// A key of another type.
pub fn wrong_type() -> Reply {
    Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value")
}

/// Arguments that do not fit together.
pub fn syntax() -> Reply {
    Reply::error("ERR syntax error")
}

/// An argument that is no integer, or too large a one.
pub fn not_an_integer() -> Reply {
    Reply::error("ERR value is not an integer or out of range")
}

/// A key that must be there and is not.
pub fn no_such_key() -> Reply {
    Reply::error("ERR no such key")
}

/// Wrong number of arguments, for a command or `container|subcommand` name in lower case.
pub fn wrong_arity(name: &str) -> Reply {
    Reply::error(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

/// A word that is no subcommand.
pub fn unknown_subcommand(word: &[u8], container: &str) -> Reply {
    let shown = String::from_utf8_lossy(word.get(..128).unwrap_or(word)).into_owned();
    Reply::error(format!(
        "ERR unknown subcommand '{shown}'. Try {container} HELP."
    ))
}

/// A database that is not there.
pub fn bad_db_index() -> Reply {
    Reply::error("ERR DB index is out of range")
}
