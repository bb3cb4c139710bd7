//! Redis's own error texts.

use everbloom_commands::CommandError;
use everbloom_resp::Reply;

/// The text of [`wrong_type`].
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// A key of another type.
pub fn wrong_type() -> Reply {
    Reply::error(WRONG_TYPE)
}

/// Conflicting arguments.
pub fn syntax() -> Reply {
    Reply::error("ERR syntax error")
}

/// An argument that is not an integer, or is out of range.
pub fn not_an_integer() -> Reply {
    Reply::error("ERR value is not an integer or out of range")
}

/// A missing key that is required.
pub fn no_such_key() -> Reply {
    Reply::error("ERR no such key")
}

/// An argument as Redis prints it in errors: as a C string, which ends at a zero byte.
pub fn shown(argument: &[u8]) -> String {
    let text = argument.split(|byte| *byte == 0).next();
    String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
}

/// An unknown subcommand.
pub fn unknown_subcommand(word: &[u8], container: &str) -> Reply {
    const ACL: [&str; 11] = [
        "cat", "deluser", "dryrun", "genpass", "getuser", "list", "load", "log", "save", "setuser",
        "users",
    ];
    let is_of_redis = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if container == "acl" && ACL.into_iter().any(is_of_redis) {
        return Reply::error(
            "ERR this server has one user: for others, load the everbloom module in Valkey or \
             Redis",
        );
    }
    let shown = shown(word.get(..128).unwrap_or(word));
    let container = container.to_ascii_uppercase();
    Reply::error(format!(
        "ERR unknown subcommand '{shown}'. Try {container} HELP."
    ))
}

/// A database number out of range.
pub fn bad_db_index() -> Reply {
    Reply::error("ERR DB index is out of range")
}

/// An integer out of the allowed range.
pub fn out_of_int_range() -> Reply {
    Reply::error("ERR value is out of range, value must between -2147483648 and 2147483647")
}

/// A source key that equals the destination.
pub fn same_object() -> Reply {
    Reply::error("ERR source and destination objects are the same")
}

/// An expiry out of range; `command` in lower case.
pub fn invalid_expire_time(command: &str) -> Reply {
    Reply::error(format!("ERR invalid expire time in '{command}' command"))
}

/// A string longer than `proto-max-bulk-len`.
pub fn string_too_long() -> Reply {
    Reply::error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
}

/// A write that would exceed `maxmemory`, or for which the system has no memory.
pub fn out_of_memory() -> Reply {
    CommandError::OutOfMemory.into()
}
