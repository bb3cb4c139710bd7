//! A cursor over the arguments of one command.
//!
//! Commands take arguments from the front and never index. A missing argument, or one left over
//! when [`Args::finish`] is called, is the command's wrong-arity error.

use crate::error::CommandError;

/// The arguments that are still to be read.
#[derive(Clone, Debug)]
pub struct Args<'a> {
    command: &'static str,
    all: &'a [&'a [u8]],
    rest: &'a [&'a [u8]],
}

impl<'a> Args<'a> {
    /// A cursor behind the command name, which is the first of `args`. `command` is the name for
    /// error texts, in lower case.
    pub fn new(command: &'static str, args: &'a [&'a [u8]]) -> Self {
        let rest = args.split_first().map_or(args, |(_, rest)| rest);
        Self {
            command,
            all: rest,
            rest,
        }
    }

    /// The number of arguments left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next argument, or the wrong-arity error when there is none.
    pub fn next_bytes(&mut self) -> Result<&'a [u8], CommandError> {
        self.next_optional().ok_or_else(|| self.wrong_arity())
    }

    /// The next argument, if there is one.
    pub fn next_optional(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// All that is left, if those are `N` arguments.
    pub fn exactly<const N: usize>(self) -> Result<[&'a [u8]; N], CommandError> {
        self.rest.try_into().map_err(|_| self.wrong_arity())
    }

    /// Everything that is left, perhaps nothing.
    pub fn rest(self) -> &'a [&'a [u8]] {
        self.rest
    }

    /// The next argument and all that follow it in pairs; wrong arity when the last has no partner.
    pub fn next_pairs(&mut self) -> Result<&'a [[&'a [u8]; 2]], CommandError> {
        let (pairs, odd) = std::mem::take(&mut self.rest).as_chunks();
        if odd.is_empty() {
            Ok(pairs)
        } else {
            Err(self.wrong_arity())
        }
    }

    /// Everything that is left, at least one argument.
    pub fn next_rest(&mut self) -> Result<&'a [&'a [u8]], CommandError> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            Err(self.wrong_arity())
        } else {
            Ok(rest)
        }
    }

    /// A cursor behind the first argument that is `word` in any case. The search includes arguments
    /// that were already taken: BF.RESERVE reads its options this way.
    pub fn after_word(&self, word: &[u8]) -> Option<Self> {
        self.after_word_of(self.all, word)
    }

    /// A cursor behind the first argument that is `word` in any case and was not taken yet.
    pub fn rest_after_word(&self, word: &[u8]) -> Option<Self> {
        self.after_word_of(self.rest, word)
    }

    fn after_word_of(&self, args: &'a [&'a [u8]], word: &[u8]) -> Option<Self> {
        let at = args.iter().position(|arg| arg.eq_ignore_ascii_case(word))?;
        let rest = args.get(at + 1..)?;
        Some(Self {
            rest,
            ..self.clone()
        })
    }

    /// The wrong-arity error unless all arguments were taken.
    pub fn finish(self) -> Result<(), CommandError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.wrong_arity())
        }
    }

    /// The error for a wrong number of arguments.
    pub fn wrong_arity(&self) -> CommandError {
        CommandError::WrongArity(self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARITY: CommandError = CommandError::WrongArity("bf.test");

    #[test]
    fn arguments_come_in_order_and_run_out() {
        let mut args = Args::new("bf.test", &[b"BF.TEST", b"k", b"a"]);
        assert_eq!(args.next_bytes(), Ok(&b"k"[..]));
        assert_eq!(args.clone().finish(), Err(ARITY));
        assert_eq!(args.next_optional(), Some(&b"a"[..]));
        assert_eq!(args.next_optional(), None);
        assert_eq!(args.next_bytes(), Err(ARITY));
        assert_eq!(args.next_rest(), Err(ARITY));
        assert_eq!(args.finish(), Ok(()));
    }

    #[test]
    fn a_call_without_even_a_name_has_no_arguments() {
        assert_eq!(Args::new("bf.test", &[]).remaining(), 0);
    }

    #[test]
    fn words_are_found_anywhere_in_any_case() {
        let args = Args::new("bf.test", &[b"FOO", b"k", b"fOO", b"1", b"foo"]);
        let mut after = args.after_word(b"FOO").unwrap();
        assert_eq!(after.next_bytes(), Ok(&b"1"[..]));
        assert!(args.after_word(b"BAR").is_none());
        let last = Args::new("bf.test", &[b"X", b"foo"]);
        assert_eq!(last.after_word(b"FOO").unwrap().remaining(), 0);
    }
}
