//! The replies to requests: each must have the form that the command's replies have.

use anyhow::{Result, bail, ensure};
use everbloom_resp::Reply;

use super::requests::{Recipe, Verb, WORD};

/// What has been answered of a batch.
#[derive(Default)]
pub(super) struct Answers {
    /// The number of replies still to come.
    pub(super) due: usize,
    /// The items answered, in the order of the requests.
    pub(super) found: Vec<bool>,
    /// The number of bits of the next item of a bitmap that were answered, and whether all were 1.
    bits: usize,
    all_set: bool,
}

impl Answers {
    /// Takes the next reply, which must have the form that the command's replies have.
    pub(super) fn take(&mut self, reply: &Reply, recipe: &Recipe) -> Result<()> {
        ensure!(
            self.due > 0,
            "the server sent more than was asked: {reply:?}"
        );
        self.due -= 1;
        match reply {
            Reply::Bulk(bytes) if recipe.verb == Verb::Echo && bytes == WORD => {}
            Reply::Array(items) if recipe.verb.takes_several() && items.len() == recipe.items => {
                for item in items {
                    self.found.push(bit(item)?);
                }
            }
            reply if recipe.verb.is_bitmap() => {
                self.all_set = bit(reply)? && (self.bits == 0 || self.all_set);
                self.bits += 1;
                if self.bits == recipe.commands() {
                    self.found.push(self.all_set);
                    self.bits = 0;
                }
            }
            reply if recipe.verb != Verb::Echo && !recipe.verb.takes_several() => {
                self.found.push(bit(reply)?);
            }
            reply => return wrong(reply),
        }
        Ok(())
    }
}

/// The answer 0 or 1.
fn bit(reply: &Reply) -> Result<bool> {
    match reply {
        Reply::Integer(0) => Ok(false),
        Reply::Integer(1) => Ok(true),
        reply => wrong(reply),
    }
}

fn wrong<T>(reply: &Reply) -> Result<T> {
    match reply.as_error() {
        Some(text) => bail!("the server answered with an error: {text}"),
        None => bail!("the server answered with something else: {reply:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::Bitmap;
    use super::super::keys::Keys;
    use super::*;

    fn recipe(verb: Verb) -> Recipe {
        Recipe {
            verb,
            keys: Keys::new("k", 1),
            items: if verb.takes_several() { 2 } else { 1 },
            bitmap: Bitmap::new(1000, 0.2).unwrap(),
            present: 0,
            hit_share: 0.0,
            filling: false,
        }
    }

    /// The items that these replies answer.
    fn take(verb: Verb, replies: &[Reply]) -> Result<Vec<bool>> {
        let mut answers = Answers {
            due: replies.len(),
            ..Answers::default()
        };
        for reply in replies {
            answers.take(reply, &recipe(verb))?;
        }
        assert_eq!(answers.due, 0);
        Ok(answers.found)
    }

    #[test]
    fn replies_become_answers() {
        let [no, yes] = [Reply::Integer(0), Reply::Integer(1)];
        let pair = Reply::Array(vec![yes.clone(), no.clone()]);
        assert_eq!(recipe(Verb::Getbit).commands(), 2);
        for (verb, replies, found) in [
            (Verb::Echo, vec![Reply::bulk("hello")], vec![]),
            (
                Verb::Exists,
                vec![yes.clone(), no.clone()],
                vec![true, false],
            ),
            (Verb::Mexists, vec![pair], vec![true, false]),
            (
                Verb::Getbit,
                vec![no.clone(), yes.clone(), yes.clone(), yes.clone()],
                vec![false, true],
            ),
        ] {
            assert_eq!(take(verb, &replies).unwrap(), found, "{verb:?}");
        }
    }

    #[test]
    fn other_replies_end_the_run() {
        let one = Reply::Integer(1);
        for (verb, reply) in [
            (Verb::Echo, Reply::bulk("hallo")),
            (Verb::Echo, one.clone()),
            (Verb::Exists, Reply::Integer(2)),
            (Verb::Exists, Reply::bulk("1")),
            (Verb::Mexists, one.clone()),
            (Verb::Mexists, Reply::Array(vec![one.clone()])),
            (Verb::Mexists, Reply::Array(vec![one.clone(), Reply::Null])),
            (Verb::Getbit, Reply::error("ERR no")),
        ] {
            assert!(
                take(verb, std::slice::from_ref(&reply)).is_err(),
                "{verb:?} {reply:?}"
            );
        }
        let surplus = Answers::default().take(&one, &recipe(Verb::Exists));
        assert!(surplus.is_err());
    }
}
