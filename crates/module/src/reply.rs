//! Replies in the host's words. The host knows the client's protocol; a host that lacks a type of
//! RESP3 gets what RESP2 has for it.

use everbloom_commands::{Answers, CommandError};
use everbloom_resp::Reply;

use crate::raw::context::Output;

impl Answers for Output<'_> {
    fn boolean(&mut self, value: bool) {
        self.reply_bool(value);
    }

    fn integer(&mut self, number: i64) {
        self.reply_integer(number);
    }

    fn array(&mut self, len: usize) {
        self.reply_array(len);
    }

    fn element_error(&mut self, error: CommandError) {
        self.reply_error(&error.to_string());
    }

    fn reply(&mut self, reply: Reply) {
        send(self, &reply);
    }
}

fn send(context: &mut Output<'_>, reply: &Reply) {
    match reply {
        Reply::Simple(text) => context.reply_simple(text),
        Reply::Error(text) => context.reply_error(text),
        Reply::Integer(number) => context.reply_integer(*number),
        Reply::Bulk(bytes) => context.reply_bulk(bytes),
        Reply::Verbatim(text) => context.reply_verbatim(text),
        Reply::Null => context.reply_null(),
        Reply::NullArray => context.reply_null_array(),
        // No command answers with a message that answers none.
        Reply::Array(elements) | Reply::Push(elements) => {
            context.reply_array(elements.len());
            elements.iter().for_each(|element| send(context, element));
        }
        Reply::Booleans(values) => {
            context.reply_array(values.len());
            values.iter().for_each(|value| context.reply_bool(*value));
        }
        Reply::Set(elements) => {
            context.reply_set(elements.len());
            elements.iter().for_each(|element| send(context, element));
        }
        Reply::Map(pairs) => {
            context.reply_map(pairs.len());
            for (key, value) in pairs {
                send(context, key);
                send(context, value);
            }
        }
        Reply::Boolean(value) => context.reply_bool(*value),
        Reply::Double(number) => context.reply_double(*number),
        Reply::BigNumber(digits) => context.reply_big_number(digits),
    }
}
