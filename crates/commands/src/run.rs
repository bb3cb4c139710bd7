//! How a command is called: with a run of requests, and two sinks for answers and changes.
//!
//! A single request is a run of one. Pipelined requests on one key are one run if their row
//! [says so](crate::command::Command::pipelines), and a command with many items is one request of
//! many words. So each command is one function, however its requests arrive.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use everbloom_resp::Reply;

use crate::args::Args;
use crate::error::CommandError;

/// Requests of one command on one key, each of as many words. A command takes them from the front,
/// and answers each that it takes. It takes all of them, unless its value has grown in between:
/// then the host must look at its memory again before the next.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    words: &'a [&'a [u8]],
    width: usize,
    len: usize,
    refused: usize,
}

impl<'a> Run<'a> {
    /// One request; the name of its command is the first word.
    pub fn one(request: &'a [&'a [u8]]) -> Self {
        Run {
            words: request,
            width: request.len().max(1),
            len: usize::from(!request.is_empty()),
            refused: 0,
        }
    }

    /// The requests of `width` words each that lie in `words`, one behind the other.
    pub fn of(words: &'a [&'a [u8]], width: usize) -> Self {
        let width = width.max(1);
        Run::counted(words, width, words.len() / width)
    }

    /// The same if their number is known: a division for each run takes long when runs are short.
    #[inline]
    pub fn counted(words: &'a [&'a [u8]], width: usize, requests: usize) -> Self {
        debug_assert!(words.len() >= width * requests);
        Run {
            words,
            width,
            len: requests,
            refused: 0,
        }
    }

    /// The number of requests that are left.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no request is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words of the next request.
    pub fn first(&self) -> &'a [&'a [u8]] {
        self.words.get(..self.width).unwrap_or_default()
    }

    /// The key, which is the first word behind the name.
    pub fn key(&self) -> &'a [u8] {
        self.words.get(1).copied().unwrap_or_default()
    }

    /// The requests that are left, if each has `N` words; else the error that each is answered
    /// with.
    pub fn requests<const N: usize>(
        &self,
        command: &'static str,
    ) -> Result<&'a [[&'a [u8]; N]], CommandError> {
        if self.width != N {
            return Err(CommandError::WrongArity(command));
        }
        Ok(self.words.as_chunks().0)
    }

    /// The item of each request, if each has only a key and an item.
    pub fn items(
        &self,
        command: &'static str,
    ) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a>, CommandError> {
        let requests = self.requests(command)?;
        Ok(requests.iter().map(|[_, _, item]| *item))
    }

    /// The third word of each request: an item, or the offset of a bit.
    pub fn third_words(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (words, width) = (self.words, self.width);
        (0..self.len).filter_map(move |request| words.get(request * width + 2).copied())
    }

    /// Takes the next request, for a command that works on one at a time.
    pub fn next_args(&mut self, command: &'static str) -> Args<'a> {
        let request = self.first();
        self.take(1);
        Args::new(command, request)
    }

    /// The next requests as a run, at most so many.
    #[must_use]
    pub fn up_to(&self, requests: usize) -> Run<'a> {
        Run {
            len: self.len.min(requests),
            words: self
                .words
                .get(..requests.saturating_mul(self.width))
                .unwrap_or(self.words),
            ..*self
        }
    }

    /// Takes the next requests.
    pub fn take(&mut self, requests: usize) {
        let words = requests.saturating_mul(self.width);
        self.words = self.words.get(words..).unwrap_or_default();
        self.len = self.len.saturating_sub(requests);
    }

    /// Takes the next request, which is refused for its words: the key was not looked at.
    pub fn refuse_next(&mut self, reply: Reply, answers: &mut dyn Answers) {
        answers.reply(reply);
        self.refused += 1;
        self.take(1);
    }

    /// How many requests were taken by [`refuse_next`](Self::refuse_next).
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Takes all requests that are left, and answers each with this error.
    pub fn refuse(&mut self, error: CommandError, answers: &mut dyn Answers) {
        for _ in 0..self.len {
            answers.error(error);
        }
        self.take(self.len);
    }
}

/// Receives the answers, one for each request. The server encodes them for the connection; the
/// module makes replies of its host.
pub trait Answers {
    /// An answer, or an element of one.
    fn boolean(&mut self, value: bool);

    /// An answer, or an element of one.
    fn integer(&mut self, number: i64);

    /// Begins an answer of so many elements, which must follow.
    fn array(&mut self, len: usize);

    /// An element that is an error. The request has not failed for that.
    fn element_error(&mut self, error: CommandError);

    /// The next element stands for this error, which the client does not see.
    fn stands_for(&mut self, _: CommandError) {}

    /// The request has a word that says nothing. RedisBloom accepts that, so the client is not told.
    fn ignores(&mut self, _: IgnoredWord<'_>) {}

    /// A whole answer.
    fn reply(&mut self, reply: Reply);

    /// A string as a whole answer. Whether there is memory for it; without, nothing is answered.
    fn text(&mut self, bytes: &[u8]) -> bool {
        self.reply(Reply::bulk(bytes));
        true
    }

    /// A whole answer that is an error.
    fn error(&mut self, error: CommandError) {
        self.reply(error.into());
    }

    /// A whole answer of either kind.
    fn answer(&mut self, result: Result<Reply, CommandError>) {
        match result {
            Ok(reply) => self.reply(reply),
            Err(error) => self.error(error),
        }
    }
}

/// A word of a request that says nothing: a typing error, perhaps. As a text it is the line for the
/// host's log.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredWord<'a> {
    /// The name of the command, in lower case.
    pub command: &'static str,
    /// The word.
    pub word: &'a [u8],
}

impl IgnoredWord<'_> {
    /// Whether it is the first of this process. Only that one is logged: clients may send any
    /// number.
    pub fn is_first(&self) -> bool {
        static SEEN: AtomicBool = AtomicBool::new(false);
        !SEEN.swap(true, Ordering::Relaxed)
    }
}

impl fmt::Display for IgnoredWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 64;
        let command = self.command.to_ascii_uppercase();
        let word = self.word.get(..MAX_SHOWN).unwrap_or(self.word);
        let word = word.escape_ascii();
        write!(
            f,
            "{command} ignored the word '{word}', as RedisBloom does; this is logged once"
        )
    }
}

/// Receives the changes: commands that a log or a replica must replay to get the same value,
/// whatever its own defaults are. The server writes them to its journal, the module to the
/// replication of its host.
pub trait Changes {
    /// A request of the run is replayed word for word.
    fn repeat(&mut self, request: &[&[u8]]);

    /// These commands are replayed instead, with no command between them.
    fn replace(&mut self, commands: &[&[&[u8]]]);

    /// The run counts as a modification of its key for WATCH. A command on filters with valid
    /// arguments does, whatever its answer.
    fn touch(&mut self);
}

/// For a host that keeps no log.
impl Changes for () {
    fn repeat(&mut self, _: &[&[u8]]) {}

    fn replace(&mut self, _: &[&[&[u8]]]) {}

    fn touch(&mut self) {}
}

/// Collects answers as values, for callers that do not send them at once.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    whole: Vec<Reply>,
    /// The array that is being answered, and how many elements it will have.
    open: Option<(Vec<Reply>, usize)>,
}

impl Replies {
    /// All answers so far.
    pub fn into_vec(self) -> Vec<Reply> {
        self.whole
    }

    /// The last answer.
    pub fn into_last(mut self) -> Option<Reply> {
        self.whole.pop()
    }

    fn element(&mut self, element: Reply) {
        let Some((mut array, len)) = self.open.take() else {
            return self.whole.push(element);
        };
        array.push(element);
        match array.len() < len {
            true => self.open = Some((array, len)),
            false => self.whole.push(Reply::Array(array)),
        }
    }
}

impl Answers for Replies {
    fn boolean(&mut self, value: bool) {
        self.element(Reply::Boolean(value));
    }

    fn integer(&mut self, number: i64) {
        self.element(Reply::Integer(number));
    }

    fn array(&mut self, len: usize) {
        match len {
            0 => self.whole.push(Reply::Array(Vec::new())),
            _ => self.open = Some((Vec::new(), len)),
        }
    }

    fn element_error(&mut self, error: CommandError) {
        self.element(error.into());
    }

    fn reply(&mut self, reply: Reply) {
        self.whole.push(reply);
    }
}

/// An unsigned number as a reply. A number too large for RESP becomes the largest that it has.
pub(crate) fn count(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Labels with their values.
pub(crate) fn map(entries: impl IntoIterator<Item = (&'static str, Reply)>) -> Reply {
    let entry = |(label, value)| (Reply::simple(label), value);
    Reply::Map(entries.into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &[&[u8]] = &[b"A", b"k", b"1", b"A", b"k", b"2", b"A", b"k", b"3"];

    #[test]
    fn requests_are_taken_from_the_front() {
        let mut run = Run::of(WORDS, 3);
        assert_eq!((run.len(), run.key()), (3, &b"k"[..]));
        let items: Vec<&[u8]> = run.items("a").unwrap().collect();
        assert_eq!(items, [b"1", b"2", b"3"]);
        assert_eq!(run.next_args("a").rest(), [b"k", b"1"]);
        run.take(1);
        assert_eq!((run.len(), run.first()), (1, &WORDS[6..]));
        assert_eq!(run.up_to(9).len(), 1);
        assert!(run.up_to(0).is_empty());
        run.take(9);
        assert!(run.is_empty() && run.first().is_empty() && run.key().is_empty());
    }

    #[test]
    fn a_wrong_number_of_words_is_the_answer_to_each() {
        let mut run = Run::of(&WORDS[..4], 2);
        let Err(error) = run.items("a") else {
            panic!("two words");
        };
        let mut replies = Replies::default();
        run.refuse(error, &mut replies);
        let arity = Reply::from(CommandError::WrongArity("a"));
        assert_eq!(replies.into_vec(), [arity.clone(), arity]);
        assert!(run.is_empty() && Run::one(&[]).is_empty());
    }

    #[test]
    fn replies_are_put_together() {
        let mut replies = Replies::default();
        replies.array(2);
        replies.boolean(true);
        replies.boolean(false);
        replies.array(0);
        replies.array(2);
        replies.boolean(true);
        replies.element_error(CommandError::Full);
        replies.integer(7);
        replies.answer(Err(CommandError::NotFound));
        let full = vec![Reply::Boolean(true), CommandError::Full.into()];
        let expected = [
            Reply::Array(vec![Reply::Boolean(true), Reply::Boolean(false)]),
            Reply::Array(vec![]),
            Reply::Array(full),
            Reply::Integer(7),
            CommandError::NotFound.into(),
        ];
        assert_eq!(replies.into_vec(), expected);
    }
}
