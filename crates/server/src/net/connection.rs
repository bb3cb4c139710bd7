//! One connection: read bytes, parse them all, run them as one batch, write the replies.
//!
//! Batches with large replies run in parts: the next part runs when the socket has taken the
//! replies to the one before.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use everbloom_resp::{Batch, Limits, ProtocolError, RequestParser, encode, recycle};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::timeout;
use tracing::debug;

use super::stream::{Incoming, Stream};
use super::worker::{INPUT_BYTES, Worker};
use crate::call::{Finished, Work};
use crate::clients::Client;
use crate::config::Settings;
use crate::dispatch::execute::{Executed, TURN, execute};
use crate::dispatch::executor::Executor;
use crate::error;
use crate::reply_limit::UNLIMITED_REPLY_BYTES;
use crate::session::Session;
use everbloom_store::clock::Now;

/// Serves a connection until either side ends it.
pub async fn serve(stream: Incoming, worker: Rc<Worker>, client: Arc<Client>) {
    let settings = worker.settings();
    let mut connection = Connection {
        session: Session::new(Arc::clone(&client), settings.requirepass.is_empty()),
        parser: RequestParser::new(),
        pending: Vec::new(),
        left: None,
        name_bytes: 0,
        counted: 0,
        exempt: 0,
        worker,
    };
    let ended = tokio::select! {
        ended = connection.run(stream) => ended,
        () = client.killed() => Ok(()),
    };
    if let Err(error) = ended {
        debug!("lost the connection to {}: {error}", client.addr);
    }
}

struct Connection {
    session: Session,
    parser: RequestParser,
    /// Bytes of a request that is not complete yet.
    pending: Vec<u8>,
    /// Earlier requests, which wait for the socket to take replies.
    left: Option<Left>,
    /// Bytes of the client's names, as last published.
    name_bytes: usize,
    /// Bytes of its memory, as counted in the server's figures.
    counted: usize,
    /// Those of them that do not count for `maxmemory-clients`.
    exempt: usize,
    worker: Rc<Worker>,
}

/// The rest of a batch.
struct Left {
    /// The bytes of the batch, from `start`.
    input: Vec<u8>,
    start: usize,
    batch: Batch,
    /// The first request that was not run to its end.
    next: usize,
    /// The work of that request.
    work: Option<Work>,
}

impl Connection {
    async fn run(&mut self, stream: Incoming) -> io::Result<()> {
        let stream = &mut stream.open().await?;
        while let Some(shared) = self.read(stream).await? {
            let mut replies = self.run_input(shared);
            loop {
                // Replies are sent after every ready connection was read. So a client's thread is
                // woken once for all of its connections, not once for each. Their changes are
                // written to the log together, too.
                yield_now().await;
                self.wait_for_log().await;
                self.write(stream, replies).await?;
                if self.session.client.is_killed() {
                    return stream.shutdown().await;
                }
                let Some(mut left) = self.left.take() else {
                    break;
                };
                let mut finished = None;
                if let Some(work) = left.work.take() {
                    (left, finished) = self.do_work(left, work).await?;
                    if self.session.client.is_killed() {
                        return stream.shutdown().await;
                    }
                }
                replies = self.go_on(left, finished);
            }
            if self.session.closing {
                return stream.shutdown().await;
            }
        }
        Ok(())
    }

    /// Reads from the socket. A few bytes of an incomplete request, the usual case, move to the
    /// front of the worker's buffer, which all its connections share; the result is how many bytes
    /// are there then. More bytes stay where they are, and new ones are appended. `None` means the
    /// end.
    async fn read(&mut self, stream: &mut Stream) -> io::Result<Option<usize>> {
        let kept = self.pending.len();
        let (read, shared) = if kept <= MAX_SHARED_BYTES {
            let input = &self.worker.input;
            let pending = &mut self.pending;
            let read = poll_fn(|cx| {
                let mut input = input.borrow_mut();
                let (front, behind) = input.split_at_mut(kept);
                let mut buf = ReadBuf::new(behind);
                let poll = Pin::new(&mut *stream).poll_read(cx, &mut buf);
                if poll.is_ready() {
                    front.copy_from_slice(pending);
                }
                poll.map_ok(|()| buf.filled().len())
            })
            .await?;
            pending.clear();
            (read, kept + read)
        } else {
            // The buffer grows by no more than the bytes received: a client may announce any
            // length.
            let room = self
                .parser
                .bytes_wanted()
                .clamp(MAX_SHARED_BYTES, MAX_READ_BYTES);
            if !make_room(&mut self.pending, room.min(kept)) {
                return self.refuse_long_request(stream).await;
            }
            self.count_buffers(0);
            // The system may hold tens of megabytes, and copies them meanwhile.
            let mut some = stream.take(MAX_COPY_BYTES as u64);
            let read = some.read_buf(&mut self.pending).await?;
            // A long request always has more to read, so the other connections get a turn.
            yield_now().await;
            // For short arguments, the parser's data takes more memory than the arguments.
            let held = self.pending.len() + self.parser.memory();
            if held > self.worker.settings().client_query_buffer_limit {
                return Err(self.over_limit("query buffer over its limit"));
            }
            (read, 0)
        };
        self.worker
            .stats
            .net_input
            .add(u64::try_from(read).unwrap_or(0));
        Ok((read > 0).then_some(shared))
    }

    /// Answers a request for which there is no memory, and ends the connection. A client that still
    /// sends would not get the reply if the socket were closed, so what it sends is read and
    /// dropped.
    async fn refuse_long_request(&mut self, stream: &mut Stream) -> io::Result<Option<usize>> {
        self.pending = Vec::new();
        self.count_buffers(0);
        let refusal = error::out_of_memory();
        let stats = &self.worker.stats;
        stats.count_error(refusal.as_error().unwrap_or_default());
        let mut reply = Vec::new();
        encode(&refusal, self.session.protocol, &mut reply);
        stream.write_all(&reply).await?;
        stream.shutdown().await?;
        let input = &self.worker.input;
        let rest = async {
            loop {
                let read = poll_fn(|cx| {
                    let mut input = input.borrow_mut();
                    let mut buf = ReadBuf::new(&mut input);
                    let poll = Pin::new(&mut *stream).poll_read(cx, &mut buf);
                    poll.map_ok(|()| buf.filled().len())
                });
                if read.await? == 0 {
                    return Ok(None);
                }
                yield_now().await;
            }
        };
        timeout(MAX_DRAIN_TIME, rest).await.unwrap_or(Ok(None))
    }

    /// Closes a connection whose buffers are too long.
    fn over_limit(&self, what: &'static str) -> io::Error {
        let errors = &self.worker.server.stats.protocol_errors;
        errors.fetch_add(1, Ordering::Relaxed);
        io::Error::other(what)
    }

    /// Parses and runs the bytes read, and returns the replies. The caller returns the buffer to
    /// the worker when they are sent. `shared` bytes of the input are in the worker's buffer.
    fn run_input(&mut self, shared: usize) -> Vec<u8> {
        let worker = Rc::clone(&self.worker);
        let mut part = Part::new(&worker);
        if shared > 0 {
            let input = worker.input.borrow();
            let input = input.get(..shared).unwrap_or_default();
            let used = self.run_all(input, &mut part);
            self.pending
                .extend_from_slice(input.get(used..).unwrap_or_default());
            if let Some(left) = &mut self.left {
                left.input = input.get(left.start..used).unwrap_or_default().to_vec();
                left.start = 0;
            }
        } else {
            self.run_pending(&mut part);
        }
        self.finish_part(part)
    }

    /// Does the work of the first remaining request, on the worker's thread for it.
    async fn do_work(&mut self, left: Left, work: Work) -> io::Result<(Left, Option<Finished>)> {
        let worker = Rc::clone(&self.worker);
        let client = Arc::clone(&self.session.client);
        client.set_busy();
        // Until its turn, the work is held here, and is dropped with the connection.
        let _lock = worker.long_work.lock().await;
        let work = move || {
            let finished = {
                let input = left.input.get(left.start..).unwrap_or_default();
                let request = left.batch.request(left.next, input);
                let mut args = Vec::new();
                match args.try_reserve_exact(request.len()) {
                    Ok(()) => {
                        args.extend(request);
                        work.run(&args)
                    }
                    Err(_) => work.refused(),
                }
            };
            (left, Some(finished))
        };
        let done = spawn_blocking(work).await?;
        client.set_active(Now::read());
        Ok(done)
    }

    /// Runs the rest of a batch, and then the requests read after it.
    fn go_on(&mut self, mut left: Left, finished: Option<Finished>) -> Vec<u8> {
        let worker = Rc::clone(&self.worker);
        let mut part = Part::new(&worker);
        let input = left.input.get(left.start..).unwrap_or_default();
        let Executed { next, work } =
            self.run_batch(input, &left.batch, (left.next, finished), &mut part);
        (left.next, left.work) = (next, work);
        if left.next < left.batch.len() {
            self.left = Some(left);
        } else {
            worker.free(left.input);
            if !self.session.closing {
                self.run_pending(&mut part);
            }
        }
        self.finish_part(part)
    }

    fn run_pending(&mut self, part: &mut Part) {
        let mut input = mem::take(&mut self.pending);
        let used = self.run_all(&input, part);
        if let Some(left) = &mut self.left {
            self.pending = input.split_off(used);
            left.input = input;
            return;
        }
        if used == input.len() && input.capacity() > MAX_READ_BYTES {
            self.worker.free(mem::take(&mut input));
        } else {
            input.drain(..used);
        }
        self.pending = input;
    }

    /// Returns the replies, and the rest to the worker.
    fn finish_part(&mut self, part: Part) -> Vec<u8> {
        self.worker.batch.replace(part.batch);
        self.publish(part.now, 0, 0);
        part.out
    }

    /// Runs the complete requests of `input`, as many as [`execute`] does. Returns how many bytes
    /// they took, including the remaining ones.
    fn run_all(&mut self, input: &[u8], part: &mut Part) -> usize {
        let mut used = 0;
        loop {
            let limits = Limits {
                max_args: MAX_ARGS,
                max_bulk: part.settings.proto_max_bulk_len,
                authenticated: !self.session.must_log_in(&part.settings),
                ..Limits::default()
            };
            let rest = input.get(used..).unwrap_or_default();
            let mut batch = mem::take(&mut part.batch);
            let parsed = self.parser.parse(rest, &limits, &mut batch);
            let Executed { next, work } = self.run_batch(rest, &batch, (0, None), part);
            let start = used;
            used += self.parser.consume();
            if next < batch.len() {
                // An error after the batch is found again later.
                self.left = Some(Left {
                    input: Vec::new(),
                    start,
                    batch,
                    next,
                    work,
                });
                return used;
            }
            part.batch = batch;
            if let Err(error) = parsed {
                self.refuse(&error, &mut part.out);
            }
            if self.session.closing {
                return input.len();
            }
            if !self.parser.has_more() {
                return used;
            }
        }
    }

    /// Runs the requests of a batch, starting at `first`, whose work may be finished.
    fn run_batch(
        &mut self,
        input: &[u8],
        batch: &Batch,
        (first, finished): (usize, Option<Finished>),
        part: &mut Part,
    ) -> Executed {
        if batch.is_empty() {
            return Executed::default();
        }
        let mut args = recycle(self.worker.args.take());
        if args.try_reserve(batch.args()).is_err() {
            self.refuse(&ProtocolError::OutOfMemory, &mut part.out);
            return Executed {
                next: batch.len(),
                work: None,
            };
        }
        batch.resolve(input, &mut args);
        let mark = Instant::now();
        let mut executor = Executor {
            server: &self.worker.server,
            stats: &self.worker.stats,
            settings: &mut part.settings,
            session: &mut self.session,
            now: part.now,
            until: *part.until.get_or_insert(mark + TURN),
            mark,
            last: None,
            out: &mut part.out,
        };
        let executed = execute(&mut executor, batch, &args, first, finished);
        let last = executor.last;
        let mut state = self.session.client.state.lock();
        state.commands += u64::try_from(executed.next - first).unwrap_or(0);
        if let Some(command) = last {
            state.last_command = command.name;
        }
        drop(state);
        self.worker.args.replace(recycle(args));
        executed
    }

    fn refuse(&mut self, problem: &ProtocolError, out: &mut Vec<u8>) {
        debug!(
            "ended the connection to {}: {problem}",
            self.session.client.addr
        );
        self.worker
            .server
            .stats
            .protocol_errors
            .fetch_add(1, Ordering::Relaxed);
        if !self.session.closing {
            match problem {
                ProtocolError::OutOfMemory => {
                    encode(&error::out_of_memory(), self.session.protocol, out);
                }
                problem => problem.encode(out),
            }
            self.session.closing = true;
        }
    }

    /// Replies are sent only when their changes are in the log, and with `appendfsync always` on
    /// the disk.
    async fn wait_for_log(&mut self) {
        let written = mem::take(&mut self.session.written);
        if written > 0 {
            self.worker.logged(written).await;
        }
    }

    /// Sends replies: at once if the socket takes them, as it usually does.
    async fn write(&mut self, stream: &mut Stream, replies: Vec<u8>) -> io::Result<()> {
        if replies.len() > UNLIMITED_REPLY_BYTES {
            let most = self
                .worker
                .settings()
                .client_output_buffer_limit
                .normal
                .hard;
            if most > 0 && replies.len() > most {
                return Err(self.over_limit("replies over the hard limit"));
            }
        }
        let sent = if replies.is_empty() {
            0
        } else {
            let first = replies.get(..MAX_COPY_BYTES).unwrap_or(&replies);
            poll_fn(|cx| match Pin::new(&mut *stream).poll_write(cx, first) {
                Poll::Pending => Poll::Ready(Ok(0)),
                ready => ready,
            })
            .await?
        };
        let rest = replies.get(sent..).unwrap_or_default();
        if !rest.is_empty() {
            self.publish(Now::read(), rest.len(), replies.capacity());
            self.write_slowly(stream, rest).await?;
            self.publish(Now::read(), 0, 0);
        }
        // TLS may have encrypted more than the socket took.
        stream.flush().await?;
        self.worker
            .stats
            .net_output
            .add(u64::try_from(replies.len()).unwrap_or(0));
        self.worker.give_output(replies);
        Ok(())
    }

    /// Sends at the socket's pace. The excess over the soft limit must be sent in time.
    async fn write_slowly(&mut self, stream: &mut Stream, replies: &[u8]) -> io::Result<()> {
        let limit = self.worker.settings().client_output_buffer_limit.normal;
        let over = match limit.soft {
            0 => 0,
            most => replies.len().saturating_sub(most),
        };
        let (over, rest) = replies.split_at(over);
        if !over.is_empty() {
            let time = Duration::from_secs(limit.seconds);
            timeout(time, self.write_all(stream, over))
                .await
                .map_err(|_| self.over_limit("replies over the soft limit for too long"))??;
        }
        self.write_all(stream, rest).await
    }

    /// Sends all bytes. Other connections get a turn now and then, however fast the client reads. A
    /// client that reads is not idle, as in Redis.
    async fn write_all(&self, stream: &mut Stream, replies: &[u8]) -> io::Result<()> {
        let mut rest = replies;
        while !rest.is_empty() {
            let part = rest.get(..MAX_COPY_BYTES).unwrap_or(rest);
            let taken = stream.write(part).await?;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.session.client.set_active(Now::read());
            rest = rest.get(taken..).unwrap_or_default();
            yield_now().await;
        }
        Ok(())
    }

    /// Updates this connection's public state: `unsent` bytes of replies, in a buffer that takes
    /// `held`.
    fn publish(&mut self, now: Now, unsent: usize, held: usize) {
        let mut state = self.session.publish(now);
        state.query_buffer = self.pending.len();
        state.output_buffer = unsent;
        self.name_bytes = state.name_bytes();
        drop(state);
        self.count_buffers(held);
    }

    /// Counts the memory of this connection, with `output` bytes for replies.
    fn count_buffers(&mut self, output: usize) {
        let left = self.left.as_ref().map_or(0, |left| left.input.capacity());
        let queued = self.session.transaction.as_ref().map_or(0, |t| t.bytes);
        let input = self.pending.capacity() + self.parser.memory() + left;
        let kept = queued + self.session.watched_bytes() + self.name_bytes;
        self.set_counted(input + kept + output);
    }

    /// Usually nothing has changed, and no shared counter is written.
    fn set_counted(&mut self, bytes: usize) {
        let exempt = match self.session.client.is_no_evict() {
            true => bytes,
            false => 0,
        };
        let stats = &self.worker.server.stats;
        let evictable = self.counted - self.exempt;
        if exempt != self.exempt {
            count(&stats.exempt_buffers, &mut self.exempt, exempt);
        }
        if bytes != self.counted {
            count(&stats.buffers, &mut self.counted, bytes);
            self.session.client.set_memory(bytes);
        }
        if bytes - exempt > evictable {
            let server = &self.worker.server;
            server.limit_clients(&self.worker.settings());
        }
    }
}

/// Whatever ends a connection, all its state is removed.
impl Drop for Connection {
    fn drop(&mut self) {
        self.set_counted(0);
        self.session.unwatch();
        self.worker.server.clients.leave(self.session.client.id);
    }
}

/// Changes one connection's part of a sum.
fn count(sum: &AtomicU64, part: &mut usize, bytes: usize) {
    // Wrapping addition of a negative number in two's complement is subtraction.
    let grown = (bytes as u64).wrapping_sub(*part as u64);
    sum.fetch_add(grown, Ordering::Relaxed);
    *part = bytes;
}

/// Makes room for more bytes: much if there is memory for it, so that it is needed seldom.
fn make_room(buffer: &mut Vec<u8>, more: usize) -> bool {
    buffer.try_reserve(more).is_ok() || buffer.try_reserve_exact(more).is_ok()
}

/// The state shared by requests that run without giving others a turn.
struct Part {
    settings: Arc<Settings>,
    now: Now,
    /// When the others have their turn, which its first request begins.
    until: Option<Instant>,
    /// The worker's buffer for parsed requests.
    batch: Batch,
    /// The replies so far.
    out: Vec<u8>,
}

impl Part {
    fn new(worker: &Worker) -> Self {
        Part {
            settings: worker.settings(),
            now: Now::read(),
            until: None,
            batch: worker.batch.take(),
            out: worker.take_output(),
        }
    }
}

/// How long a client may go on sending a request that was refused.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(30);
/// Redis 7's limit on the arguments of a request.
const MAX_ARGS: usize = 0x7fff_ffff;
/// The most bytes allocated at once, whatever length a client has announced.
const MAX_READ_BYTES: usize = 1 << 20;
/// The most bytes of a long request or reply that the system copies at once, while others wait.
const MAX_COPY_BYTES: usize = 256 << 10;
/// The most bytes of an incomplete request that are moved to the worker's buffer: half of it.
const MAX_SHARED_BYTES: usize = INPUT_BYTES / 2;
