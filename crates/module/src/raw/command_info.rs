//! The documentation of a command for `COMMAND INFO` and `COMMAND DOCS`. Hosts take it from Redis
//! 7.0 on.

use std::ffi::{c_char, c_int};
use std::mem::size_of;
use std::ptr::{null, null_mut};

use everbloom_commands::Function;
use everbloom_commands::command::{self, Command};
use everbloom_commands::key_use::KeyUse;
use everbloom_commands::synopsis::{self, Argument, ArgumentKind};

use super::api::{api, c_text};
use super::context::HostContext;
use super::ffi::{
    ARG_DOUBLE, ARG_FLAG_MULTIPLE, ARG_FLAG_OPTIONAL, ARG_INTEGER, ARG_KEY, ARG_ONEOF,
    ARG_PURE_TOKEN, ARG_STRING, BEGIN_INDEX, BEGIN_INVALID, BeginSearch, CommandArg,
    CommandHistory, CommandInfo, CommandInfoVersion, FIND_RANGE, FindRange, KeySpec, OK,
};

static VERSION: CommandInfoVersion = CommandInfoVersion {
    version: 1,
    sizeof_history: size_of::<CommandHistory>(),
    sizeof_key_spec: size_of::<KeySpec>(),
    sizeof_arg: size_of::<CommandArg>(),
};

/// Documents a command that is registered. False when the host does not take it.
pub(crate) fn document(context: &HostContext<'_>, row: &Command<Function>) -> bool {
    let (Some(get), Some(set)) = (api().get_command, api().set_command_info) else {
        return true;
    };
    let name = c_text(row.name);
    // SAFETY: a valid context and a C string.
    let handle = unsafe { get(context.raw(), name.as_ptr().cast()) };
    if handle.is_null() {
        return false;
    }
    let mut keep = Keep::default();
    let mut specs: Vec<KeySpec> = row.key_specs().map(key_spec).collect();
    // A specification without a beginning is the end.
    specs.push(KeySpec {
        begin_search: BEGIN_INVALID,
        ..key_spec((row.keys, row.key_use))
    });
    let info = CommandInfo {
        version: &raw const VERSION,
        summary: keep.text(row.docs.summary),
        complexity: keep.text(row.docs.complexity),
        since: keep.text(row.docs.since),
        history: null_mut(),
        tips: keep.text(&row.docs.tips.join(" ")),
        arity: row.arity,
        key_specs: specs.as_mut_ptr(),
        args: keep.arguments(&synopsis::arguments(row.docs.usage)),
    };
    // SAFETY: a command of this module, and what it is documented with, which the host copies.
    unsafe { set(handle, &raw const info) == OK }
}

fn key_spec((keys, key_use): (command::KeySpec, KeyUse)) -> KeySpec {
    KeySpec {
        notes: null(),
        flags: key_use.bits(),
        begin_search: BEGIN_INDEX,
        begin: BeginSearch { index: keys.first },
        find_keys: FIND_RANGE,
        find: FindRange {
            // Counted from the first key, or from the end.
            last_key: match keys.last {
                last if last < 0 => last,
                last => last - keys.first,
            },
            key_step: keys.step,
            limit: 0,
        },
    }
}

/// What pointers point to, until the host has copied it.
#[derive(Default)]
struct Keep {
    texts: Vec<Vec<u8>>,
    lists: Vec<Box<[CommandArg]>>,
}

impl Keep {
    fn text(&mut self, text: &str) -> *const c_char {
        if text.is_empty() {
            return null();
        }
        let text = c_text(text);
        let start = text.as_ptr().cast();
        self.texts.push(text);
        start
    }

    fn arguments(&mut self, arguments: &[Argument]) -> *mut CommandArg {
        let mut list: Vec<CommandArg> = arguments.iter().map(|arg| self.argument(arg)).collect();
        // Without a name it is the end.
        list.push(CommandArg::default());
        let mut list = list.into_boxed_slice();
        let start = list.as_mut_ptr();
        self.lists.push(list);
        start
    }

    fn argument(&mut self, argument: &Argument) -> CommandArg {
        let optional = ARG_FLAG_OPTIONAL * c_int::from(argument.optional);
        let multiple = ARG_FLAG_MULTIPLE * c_int::from(argument.multiple);
        let subargs = match &argument.kind {
            ArgumentKind::OneOf(of) => self.arguments(of),
            _ => null_mut(),
        };
        CommandArg {
            name: self.text(&argument.name),
            kind: kind(&argument.kind),
            key_spec_index: match argument.kind {
                ArgumentKind::Key(number) => number.into(),
                _ => -1,
            },
            token: argument.token.map_or(null(), |token| self.text(token)),
            flags: optional | multiple,
            subargs,
            ..CommandArg::default()
        }
    }
}

fn kind(kind: &ArgumentKind) -> c_int {
    match kind {
        ArgumentKind::Key(_) => ARG_KEY,
        ArgumentKind::String => ARG_STRING,
        ArgumentKind::Integer => ARG_INTEGER,
        ArgumentKind::Double => ARG_DOUBLE,
        ArgumentKind::PureToken => ARG_PURE_TOKEN,
        ArgumentKind::OneOf(_) => ARG_ONEOF,
    }
}
