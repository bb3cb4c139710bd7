//! What a write command returns to its host: a reply, and what to log.

use crate::error::CommandError;
use everbloom_resp::Reply;

/// The result of one write command.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer for the client.
    pub reply: Reply,
    /// What a log or a replica must replay.
    pub effect: Effect,
    /// Whether the call counts as a modification for WATCH. A filter command with valid arguments
    /// does, whatever its answer.
    pub touched: bool,
}

impl Outcome {
    /// The answer to invalid arguments. The key was not looked at.
    pub fn bad_arguments(error: CommandError) -> Self {
        Self {
            reply: error.into(),
            effect: Effect::None,
            touched: false,
        }
    }

    /// The answer to a call with valid arguments.
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

    /// A call for which a log or a replica must replay another command.
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
    /// These commands instead, in this order, with no other command between them.
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
    /// The log gets the filter as its SCANDUMP header, because a header says everything. BF.RESERVE
    /// and BF.INSERT depend on the configuration of the host that replays them. With
    /// `bf-expansion-factor 0` the first refuses an expansion and the second ignores it. A
    /// non-scaling filter takes its expansion field from there.
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

impl Effect {
    /// The effect of creating a cuckoo filter, if there is its header, and of adding `added` to it.
    ///
    /// The log gets the header for the reason that [`created`](Self::created) has. Added items are
    /// replayed by one CF.INSERT without options: those depend on the configuration, too.
    pub(crate) fn of_cuckoo(key: &[u8], created: Option<Vec<u8>>, added: &[&[u8]]) -> Self {
        let create = created.map(|header| {
            let position = b"1".to_vec();
            vec![b"CF.LOADCHUNK".to_vec(), key.to_vec(), position, header]
        });
        let insert = (!added.is_empty()).then(|| {
            let head = [&b"CF.INSERT"[..], key, b"ITEMS"];
            head.iter().chain(added).map(|arg| arg.to_vec()).collect()
        });
        let commands: Vec<_> = create.into_iter().chain(insert).collect();
        match commands.is_empty() {
            true => Self::None,
            false => Self::Replace(commands),
        }
    }
}

fn madd(key: &[u8], items: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    if items.is_empty() {
        return None;
    }
    let head = [&b"BF.MADD"[..], key];
    Some(head.iter().chain(items).map(|arg| arg.to_vec()).collect())
}
