//! What a write command gives back to its host: a reply, and what to log.

use crate::error::CommandError;
use everbloom_resp::Reply;

/// The result of one write command.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer for the client.
    pub reply: Reply,
    /// What a log or a replica must replay.
    pub effect: Effect,
    /// Whether the call counts as a modification for WATCH: true as soon as the argument checks
    /// are passed, whatever the answer then is.
    pub touched: bool,
}

impl Outcome {
    /// The answer to arguments that are wrong in themselves: the key was not looked at.
    pub fn bad_arguments(error: CommandError) -> Self {
        Self {
            reply: error.into(),
            effect: Effect::None,
            touched: false,
        }
    }

    /// The answer to a call with good arguments.
    pub fn answered(result: Result<(Reply, Effect), CommandError>) -> Self {
        let (reply, effect) = result.unwrap_or_else(|error| (error.into(), Effect::None));
        Self {
            reply,
            effect,
            touched: true,
        }
    }

    /// A call that changed nothing.
    pub fn unchanged(reply: impl Into<Reply>) -> Self {
        Self {
            reply: reply.into(),
            effect: Effect::None,
            touched: false,
        }
    }

    /// A call that a log or a replica must repeat word for word.
    pub fn verbatim(reply: impl Into<Reply>) -> Self {
        Self {
            reply: reply.into(),
            effect: Effect::Verbatim,
            touched: true,
        }
    }

    /// A call in whose place a log or a replica must replay another one.
    pub fn replaced(reply: impl Into<Reply>, command: &[&[u8]]) -> Self {
        let command = command.iter().map(|arg| arg.to_vec()).collect();
        Self {
            reply: reply.into(),
            effect: Effect::Replace(vec![command]),
            touched: true,
        }
    }
}

/// What a log or a replica must replay so that it ends with the same filter, whatever its own
/// configured defaults are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changed.
    None,
    /// The command as it was received.
    Verbatim,
    /// These commands in its place, in this order and nothing between them.
    Replace(Vec<Vec<Vec<u8>>>),
}

impl Effect {
    /// The effect of adding `added` to a filter that was there before.
    pub(crate) fn added(key: &[u8], added: &[&[u8]]) -> Self {
        match madd(key, added) {
            Some(command) => Self::Replace(vec![command]),
            None => Self::None,
        }
    }

    /// The effect of creating a filter and adding `added` to it.
    ///
    /// The filter goes into the log as its SCANDUMP header, not as BF.RESERVE or BF.INSERT with
    /// parameters: those read the configuration of the host that replays them (with
    /// `bf-expansion-factor 0` the first refuses an expansion and the second ignores it, and a
    /// non-scaling filter takes its growth field from there), and a header says everything.
    pub(crate) fn created(key: &[u8], header: Vec<u8>, added: &[&[u8]]) -> Self {
        let create = vec![
            b"BF.LOADCHUNK".to_vec(),
            key.to_vec(),
            b"1".to_vec(),
            header,
        ];
        Self::Replace(std::iter::once(create).chain(madd(key, added)).collect())
    }
}

fn madd(key: &[u8], items: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    if items.is_empty() {
        return None;
    }
    let head = [&b"BF.MADD"[..], key];
    Some(head.iter().chain(items).map(|arg| arg.to_vec()).collect())
}
