//! Replies in the host's words. The host knows the client's protocol; a host that lacks a type of
//! RESP3 gets what RESP2 has for it.

use std::ffi::{c_int, c_long};

use everbloom_commands::{Answers, CommandError};
use everbloom_resp::Reply;
use everbloom_resp::encode::format_double;

use super::api::{api, c_text};
use super::context::Call;
use super::ffi::Ctx;

impl Answers for Call<'_> {
    fn boolean(&mut self, value: bool) {
        self.send_boolean(value);
    }

    fn integer(&mut self, number: i64) {
        // SAFETY: a valid context.
        unsafe { (api().reply_integer)(self.raw(), number) };
    }

    fn array(&mut self, len: usize) {
        self.begin(api().reply_array, len);
    }

    fn element_error(&mut self, error: CommandError) {
        self.send(&error.into());
    }

    fn reply(&mut self, reply: Reply) {
        self.send(&reply);
    }
}

impl Call<'_> {
    /// Begins a collection of so many elements or pairs, which follow.
    fn begin(self, begin: unsafe extern "C" fn(*mut Ctx, c_long) -> c_int, len: usize) -> c_int {
        let len = c_long::try_from(len).unwrap_or(c_long::MAX);
        // SAFETY: a valid context.
        unsafe { begin(self.raw(), len) }
    }

    fn send_boolean(self, value: bool) -> c_int {
        let (api, ctx) = (api(), self.raw());
        // SAFETY: a valid context.
        unsafe {
            match api.reply_bool {
                Some(reply) => reply(ctx, value.into()),
                None => (api.reply_integer)(ctx, value.into()),
            }
        }
    }

    fn send(self, reply: &Reply) {
        let (api, ctx) = (api(), self.raw());
        // SAFETY: a valid context, C strings, and bytes with their lengths.
        let _: c_int = unsafe {
            match reply {
                Reply::Simple(text) => (api.reply_simple)(ctx, c_text(text).as_ptr().cast()),
                Reply::Error(text) => (api.reply_error)(ctx, c_text(text).as_ptr().cast()),
                Reply::Integer(number) => (api.reply_integer)(ctx, *number),
                // In RESP2 a host writes a double with digits that it does not need.
                Reply::Double(number) if !self.speaks_resp3() => {
                    let text = format_double(*number);
                    (api.reply_bulk)(ctx, text.as_ptr().cast(), text.len())
                }
                Reply::Double(number) => (api.reply_double)(ctx, *number),
                Reply::Null => (api.reply_null)(ctx),
                Reply::NullArray => (api.reply_null_array)(ctx),
                Reply::Boolean(value) => self.send_boolean(*value),
                Reply::Bulk(bytes) => (api.reply_bulk)(ctx, bytes.as_ptr().cast(), bytes.len()),
                Reply::Verbatim(text) => {
                    (api.reply_verbatim)(ctx, text.as_ptr().cast(), text.len())
                }
                Reply::BigNumber(digits) => {
                    let reply = api.reply_big_number.unwrap_or(api.reply_bulk);
                    reply(ctx, digits.as_ptr().cast(), digits.len())
                }
                // No command answers with a message that answers none.
                Reply::Array(elements) | Reply::Push(elements) => {
                    self.begin(api.reply_array, elements.len())
                }
                Reply::Set(elements) => {
                    self.begin(api.reply_set.unwrap_or(api.reply_array), elements.len())
                }
                Reply::Map(pairs) => match api.reply_map {
                    Some(begin) => self.begin(begin, pairs.len()),
                    None => self.begin(api.reply_array, pairs.len().saturating_mul(2)),
                },
            }
        };
        match reply {
            Reply::Array(elements) | Reply::Push(elements) | Reply::Set(elements) => {
                elements.iter().for_each(|element| self.send(element));
            }
            Reply::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                self.send(key);
                self.send(value);
            }),
            _ => {}
        }
    }
}
