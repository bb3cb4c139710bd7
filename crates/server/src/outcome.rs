//! What a command of this server's own returns when it may write: a reply, and what to log.

use std::collections::TryReserveError;

use everbloom_resp::Reply;

/// The result of a command that may write.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The reply for the client.
    pub reply: Reply,
    /// The commands that a log must replay.
    pub effect: Effect,
}

/// What a log must replay to reach the same keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changed.
    None,
    /// The command as it was received.
    Verbatim,
    /// Another command instead.
    Replace(Vec<Vec<u8>>),
}

impl Outcome {
    /// A call that changed nothing.
    pub fn unchanged(reply: impl Into<Reply>) -> Self {
        Self {
            reply: reply.into(),
            effect: Effect::None,
        }
    }

    /// A call that a log must replay word for word.
    pub fn verbatim(reply: impl Into<Reply>) -> Self {
        Self {
            reply: reply.into(),
            effect: Effect::Verbatim,
        }
    }

    /// The same as [`Outcome::replaced`], for arguments of any length: memory may be refused.
    pub fn replaced_by_long(reply: Reply, command: &[&[u8]]) -> Result<Self, TryReserveError> {
        let args = command.iter().map(|arg| {
            let mut copy = Vec::new();
            copy.try_reserve_exact(arg.len())?;
            copy.extend_from_slice(arg);
            Ok::<_, TryReserveError>(copy)
        });
        Ok(Self {
            reply,
            effect: Effect::Replace(args.collect::<Result<_, _>>()?),
        })
    }

    /// A call for which a log must replay another command.
    pub fn replaced(reply: impl Into<Reply>, command: &[&[u8]]) -> Self {
        Self {
            reply: reply.into(),
            effect: Effect::Replace(command.iter().map(|arg| arg.to_vec()).collect()),
        }
    }
}
