//! The connection to a server. It lets all other code serve blocking and async connections alike.
//!
//! Each operation of a filter is an `async` function over a [`Wire`]. A blocking connection is a
//! wire whose futures are always ready, so [`wait`] polls such a function once.

use std::future::{Future, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use redis::{
    Arg, Cmd, ConnectionLike, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
    Value,
};

use crate::Error;
use crate::error::first_of;

/// An operation on items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    LookUp,
}

/// One reply per command, in order. An error for a whole pipeline says nothing about its commands.
pub(crate) type Replies = RedisResult<Vec<RedisResult<Value>>>;

/// A connection to a server.
pub(crate) trait Wire {
    /// Sends the commands of a pipeline together and returns their replies.
    fn ask(&mut self, pipeline: &Pipeline) -> impl Future<Output = Replies> + Send;
}

/// A connection that can send several pipelines at the same time.
pub(crate) trait SideBySide: Wire {
    /// Sends each pipeline, and returns the replies in the same order.
    fn ask_each(&mut self, pipelines: &[Pipeline]) -> impl Future<Output = Vec<Replies>> + Send;
}

/// A connection that blocks.
pub(crate) struct Blocking<'a>(pub(crate) &'a mut dyn ConnectionLike);

impl Wire for Blocking<'_> {
    fn ask(&mut self, pipeline: &Pipeline) -> impl Future<Output = Replies> + Send {
        ready(asked(self.0, pipeline))
    }
}

fn asked(connection: &mut dyn ConnectionLike, pipeline: &Pipeline) -> Replies {
    let replies = asked_together(connection, pipeline);
    if !must_be_split(pipeline, &replies) {
        return replies;
    }
    let each = pipeline.cmd_iter().map(|command| {
        let reply = connection.req_packed_command(&command.get_packed_command());
        reply.and_then(checked)
    });
    Ok(each.collect())
}

/// Sends a pipeline and waits. `Pipeline::query` refuses a cluster's connection, which sends all
/// commands to the node of the first one: here they always have one slot.
fn asked_together(connection: &mut dyn ConnectionLike, pipeline: &Pipeline) -> Replies {
    let (packed, count) = (pipeline.get_packed_pipeline(), pipeline.len());
    let (offset, count) = match pipeline.is_transaction() {
        true => (count + 1, 1),
        false => (0, count),
    };
    let mut replies = connection.req_packed_commands(&packed, offset, count)?;
    if let (true, Some(Value::Array(of_transaction))) =
        (pipeline.is_transaction(), replies.first_mut())
    {
        replies = std::mem::take(of_transaction);
    }
    Ok(replies.into_iter().map(checked).collect())
}

fn checked(reply: Value) -> RedisResult<Value> {
    match reply {
        Value::ServerError(error) => Err(error.into()),
        reply => Ok(reply),
    }
}

/// Whether the commands of a pipeline must be sent one by one. While a slot of a cluster moves, its
/// keys are on two nodes. A cluster's client follows a redirection for one command; of a pipeline
/// the new node answers only the first.
///
/// `WAIT` must be on the connection of the command before it, so nothing is split then.
fn must_be_split(pipeline: &Pipeline, replies: &Replies) -> bool {
    let is_redirected = |error: &RedisError| {
        let kind = first_of(error).and_then(|error| error.kind());
        matches!(kind, Some(ServerErrorKind::Moved | ServerErrorKind::Ask))
    };
    let is_redirected = match replies {
        Ok(replies) => {
            let mut errors = replies.iter().filter_map(|reply| reply.as_ref().err());
            errors.any(is_redirected)
        }
        Err(error) => is_redirected(error),
    };
    let waits = |command: &Cmd| command.args_iter().next() == Some(Arg::Simple(b"WAIT"));
    is_redirected && !pipeline.is_transaction() && !pipeline.cmd_iter().any(waits)
}

/// One after the other: a blocking connection has no second thread.
impl SideBySide for Blocking<'_> {
    fn ask_each(&mut self, pipelines: &[Pipeline]) -> impl Future<Output = Vec<Replies>> + Send {
        let replies: Vec<Replies> = pipelines.iter().map(|one| asked(self.0, one)).collect();
        ready(replies)
    }
}

/// An async connection.
#[cfg(feature = "async")]
pub(crate) struct Waiting<'a, C>(pub(crate) &'a mut C);

#[cfg(feature = "async")]
impl<C: redis::aio::ConnectionLike + Send> Wire for Waiting<'_, C> {
    fn ask(&mut self, pipeline: &Pipeline) -> impl Future<Output = Replies> + Send {
        waited_for(self.0, pipeline)
    }
}

#[cfg(feature = "async")]
async fn waited_for<C>(connection: &mut C, pipeline: &Pipeline) -> Replies
where
    C: redis::aio::ConnectionLike + Send,
{
    let replies: Replies = pipeline.query_async(connection).await;
    if !must_be_split(pipeline, &replies) {
        return replies;
    }
    let mut replies = Vec::new();
    for command in pipeline.cmd_iter() {
        let mut one = redis::pipe();
        one.ignore_errors().add_command(command.clone());
        let reply: Replies = one.query_async(connection).await;
        match reply {
            Ok(reply) => replies.extend(reply),
            Err(error) => replies.push(Err(error)),
        }
    }
    Ok(replies)
}

#[cfg(feature = "async")]
impl<C: redis::aio::ConnectionLike + Send + Clone> SideBySide for Waiting<'_, C> {
    fn ask_each(&mut self, pipelines: &[Pipeline]) -> impl Future<Output = Vec<Replies>> + Send {
        let questions = pipelines.iter().map(|pipeline| {
            let mut connection = self.0.clone();
            async move { waited_for(&mut connection, pipeline).await }
        });
        futures_util::future::join_all(questions)
    }
}

/// The replies to a few commands, none of which may fail.
pub(crate) async fn ask<W: Wire>(
    wire: &mut W,
    name: &str,
    pipeline: &Pipeline,
) -> Result<Vec<Value>, Error> {
    whole(wire.ask(pipeline).await, name)
}

/// As [`ask`], for several pipelines at the same time.
pub(crate) async fn ask_each<W: SideBySide>(
    wire: &mut W,
    name: &str,
    pipelines: &[Pipeline],
) -> Result<Vec<Vec<Value>>, Error> {
    let replies = wire.ask_each(pipelines).await.into_iter();
    replies.map(|replies| whole(replies, name)).collect()
}

/// The value of the reply to one command.
pub(crate) async fn ask_one<W: Wire, T: FromRedisValue>(
    wire: &mut W,
    name: &str,
    command: &Cmd,
) -> Result<T, Error> {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors().add_command(command.clone());
    read(ask(wire, name, &pipeline).await?.first())
}

fn whole(replies: Replies, name: &str) -> Result<Vec<Value>, Error> {
    let replies = replies.and_then(|replies| replies.into_iter().collect());
    replies.map_err(|error| Error::of(error, name))
}

/// The value of a reply.
pub(crate) fn read<T: FromRedisValue>(reply: Option<&Value>) -> Result<T, Error> {
    let reply = reply.ok_or_else(|| Error::Reply("a reply is missing".into()))?;
    redis::from_redis_value_ref(reply).map_err(|error| Error::Reply(error.to_string()))
}

/// Runs a future in this thread.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (
        pin!(future),
        Waker::from(Arc::new(Unpark(thread::current()))),
    );
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Makes the public methods of a filter from functions over a [`Wire`]: each one for blocking and
/// for async connections. A method may give its function one more argument. Async connections may
/// need further traits, such as `Clone`.
macro_rules! doors {
    ([$bound:ident] $($(#[$doc:meta])* $sync:ident, $async:ident(
        $(&$self:ident $(,)?)? $($arg:ident: $type:ty),*
    ) -> $result:ty = $core:ident $(($more:expr))?;)*) => {
        $(
            $(#[$doc])*
            pub fn $sync(
                $(&$self,)?
                connection: &mut dyn redis::ConnectionLike,
                $($arg: $type),*
            ) -> $result {
                let wire = &mut $crate::wire::Blocking(connection);
                $crate::wire::wait(Self::$core($($self,)? wire, $($arg,)* $($more)?))
            }

            #[doc = concat!("As [`", stringify!($sync), "`](Self::", stringify!($sync),
                "), over an asynchronous connection. [Example](crate#asynchronous).")]
            #[cfg(feature = "async")]
            pub async fn $async<C: redis::aio::ConnectionLike + Send + $bound>(
                $(&$self,)?
                connection: &mut C,
                $($arg: $type),*
            ) -> $result {
                let wire = &mut $crate::wire::Waiting(connection);
                Self::$core($($self,)? wire, $($arg,)* $($more)?).await
            }
        )*
    };
}

pub(crate) use doors;
