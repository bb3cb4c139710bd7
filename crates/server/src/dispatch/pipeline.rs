//! Commands on the value of one key: requests of a pipeline are executed together; a single request
//! is a group of one.
//!
//! Requests of one command on one key are a [`Run`]. Runs on several keys (for example one filter
//! per user) are executed together. All their shards are locked in one order, so that they cannot
//! deadlock. The memory of every entry, filter and bit is prefetched before the first request is
//! executed, so that the waits overlap. The replies are those of one-by-one execution.

use std::ops::Range;

use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{Action, Answers, Function, LazyContext, Run};
use everbloom_files::Value;
use everbloom_resp::{Batch, is_same_word};
use everbloom_store::keyspace::{Db, Footprint, KeyRef, Places, View};
use smallvec::{SmallVec, smallvec};

use super::admission::{is_long_name, refused_now};
use super::executor::Executor;
use super::sinks::reserve_answers;
use super::value;
use crate::call::{Call, Handler, Registered};
use crate::limits::REQUESTS_TOGETHER;
use crate::locked::Locked;
use crate::native::bitmaps::single;
use crate::slot::Stored;

/// Executes the requests starting at number `first`, if they are of a command on one value. Returns
/// how many.
pub fn execute(
    executor: &mut Executor<'_>,
    command: &'static Registered,
    requests: &Batch,
    args: &[&[u8]],
    first: usize,
) -> usize {
    let request = args.get(requests.range(first)).unwrap_or_default();
    if executor.session.transaction.is_some()
        || executor.session.must_log_in(executor.settings)
        || executor.server.holds.any()
        || !command.accepts(request.len())
        // If one request would be refused, each must be refused one by one.
        || refused_now(executor.server, executor.settings, command).is_some()
        // There may be no memory for copies of a long name, which `admit` checks.
        || request.get(1).is_some_and(|name| is_long_name(name))
        || !reserve_answers(args.len() - requests.range(first).start, executor.out)
    {
        return 0;
    }
    let start = executor.out.len();
    let (mut call, mut answers) = executor.call(command, request);
    let done = execute_together(&mut call, &mut answers, requests, args, first);
    if done == 0 {
        return 0;
    }
    let (failed, lacks_memory) = (answers.failed, answers.lacks_memory);
    executor.last = Some(command);
    if lacks_memory {
        executor.refuse_unanswered(start);
        // Which of several answers is missing is not known.
        executor.session.closing |= done > 1;
    }
    executor.note_time(command, request, done as u64, failed);
    done
}

/// Executes the requests starting at number `first` that can be executed together with it, if its
/// command is on one value. `call` is the call of the first, which may run. Returns how many.
pub fn execute_together(
    call: &mut Call<'_>,
    answers: &mut dyn Answers,
    requests: &Batch,
    args: &[&[u8]],
    first: usize,
) -> usize {
    let alike = Alike::new(requests, args, first, call.command.pipelines);
    match call.command.handler {
        Handler::Filter(Function::Bloom(action)) => execute_runs(call, answers, &alike, action),
        Handler::Filter(Function::Cuckoo(action)) => execute_runs(call, answers, &alike, action),
        Handler::Text(action) => execute_runs(call, answers, &alike, action),
        _ => 0,
    }
}

/// Returns how many requests were executed.
#[inline]
fn execute_runs<T: Stored>(
    call: &mut Call<'_>,
    answers: &mut dyn Answers,
    alike: &Alike<'_>,
    action: Action<T>,
) -> usize {
    let first = alike.on_first_key();
    if first >= REQUESTS_TOGETHER.get() || alike.get(first).is_none() {
        let (words, width) = (alike.words(first), alike.words.len());
        return match action {
            Action::Read(function) => read_run(call, answers, Run::of(words, width), function),
            Action::Write(function) => {
                write_run(call, answers, Run::of(words, width), words, function)
            }
        };
    }
    let runs = Runs::find(alike, first);
    let keys: Keys<'_> = runs.iter().map(|run| call.key(run.key())).collect();
    match action {
        Action::Read(function) => read_runs(call, answers, &runs, &keys, function),
        Action::Write(function) => write_runs(call, answers, &runs, &keys, function),
    }
}

/// Executes requests on one key. It needs no lists, and pays for none.
#[inline]
fn read_run<T: Stored>(
    call: &Call<'_>,
    answers: &mut dyn Answers,
    mut run: Run<'_>,
    function: ReadFn<T>,
) -> usize {
    let (key, requests) = (call.key(run.key()), run.len());
    let locks = Footprint::of([key]).read(&call.server.store.keyspace, call.now);
    value::read_alone(call, function, &mut run, locks.view(), key, answers);
    requests - run.len()
}

/// The same for requests that change it, whose words are `words`.
#[inline]
fn write_run<T: Stored>(
    call: &mut Call<'_>,
    answers: &mut dyn Answers,
    mut run: Run<'_>,
    words: &[&[u8]],
    function: WriteFn<T>,
) -> usize {
    let (key, requests) = (call.key(run.key()), run.len());
    let mut locked = Locked::lock(call.server, Footprint::of([key]), call.now);
    if locked.reserve(words).is_err() {
        // Each is refused by itself, or runs when another is done.
        return 0;
    }
    value::write_alone(call, function, &mut run, &mut locked, key, answers);
    locked.commit(call.session, true);
    requests - run.len()
}

/// The key of each run.
type Keys<'a> = SmallVec<[KeyRef<'a>; 4]>;

fn read_runs<T: Stored>(
    call: &Call<'_>,
    answers: &mut dyn Answers,
    runs: &Runs<'_>,
    keys: &Keys<'_>,
    function: ReadFn<T>,
) -> usize {
    let footprint = Footprint::of(keys.iter().copied());
    let locks = footprint.read(&call.server.store.keyspace, call.now);
    let view = locks.view();
    let places = prefetch(view, keys, runs);
    let find = || call.context();
    let context = LazyContext::new(&find);
    let mut done = 0;
    for ((key, place), mut run) in keys.iter().zip(places).zip(runs.iter()) {
        let value = view.get_at(*key, place).map(|entry| &entry.value);
        let requests = run.len();
        value::read(call, &context, function, &mut run, value, answers);
        done += requests - run.len();
        if !run.is_empty() {
            break;
        }
    }
    done
}

fn write_runs<T: Stored>(
    call: &mut Call<'_>,
    answers: &mut dyn Answers,
    runs: &Runs<'_>,
    keys: &Keys<'_>,
    function: WriteFn<T>,
) -> usize {
    let footprint = Footprint::of(keys.iter().copied());
    let mut locked = Locked::lock(call.server, footprint, call.now);
    if locked.reserve(runs.words).is_err() {
        return 0;
    }
    let places = prefetch(locked.read(), keys, runs);
    let find = || call.context();
    let mut context = LazyContext::new(&find);
    let mut done = 0;
    for (target, mut run) in keys.iter().copied().zip(places).zip(runs.iter()) {
        let (requests, locked) = (run.len(), &mut locked);
        let flow = value::write(
            call,
            &mut context,
            function,
            &mut run,
            locked,
            target,
            answers,
        );
        done += requests - run.len();
        if flow.is_break() {
            break;
        }
    }
    locked.commit(call.session, true);
    done
}

/// Prefetches the memory that several runs use: first all entries, then the parts of their values
/// outside the entries. Each step is a loop of its own, so that the waits for memory overlap.
fn prefetch(view: View<'_>, keys: &Keys<'_>, runs: &Runs<'_>) -> Places {
    let mut places = view.places(keys);
    let dbs: SmallVec<[&Db; 4]> = keys
        .iter()
        .zip(&places)
        .map(|(key, place)| view.db_at(*key, *place))
        .collect();
    for ((key, db), place) in keys.iter().zip(&dbs).zip(&mut places) {
        db.prefetch(*key, place);
    }
    for (((key, db), place), run) in keys.iter().zip(dbs).zip(&mut places).zip(runs.iter()) {
        match db.likely(*key, place) {
            Some(Value::Filter(filter)) => filter.prefetch_items(run.third_words()),
            Some(Value::Text(text)) => single::prefetch(text, run.third_words()),
            None => {}
        }
    }
    places
}

/// The number of the word that is the key.
const KEY: usize = 1;

/// Whether two requests have the same word of this number, or both have none.
#[inline]
fn is_same(a: &[&[u8]], b: &[&[u8]], word: usize) -> bool {
    match (a.get(word), b.get(word)) {
        (Some(a), Some(b)) => is_same_word(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Requests behind one another, of one command and of the same number of words.
struct Alike<'a> {
    requests: &'a Batch,
    args: &'a [&'a [u8]],
    /// The number of the first request, and its words.
    first: usize,
    words: Range<usize>,
    request: &'a [&'a [u8]],
    /// The number of the first request that is not looked at.
    end: usize,
}

impl<'a> Alike<'a> {
    /// The requests from number `first` on: only that, unless its command can be `pipelined`.
    #[inline]
    fn new(requests: &'a Batch, args: &'a [&'a [u8]], first: usize, pipelined: bool) -> Self {
        let words = requests.range(first);
        Alike {
            requests,
            args,
            first,
            request: args.get(words.clone()).unwrap_or_default(),
            words,
            end: match pipelined {
                true => requests.len(),
                false => first + 1,
            },
        }
    }

    /// The request of this number behind the first, if it is alike.
    #[inline]
    fn get(&self, at: usize) -> Option<&'a [&'a [u8]]> {
        let number = self.first + at;
        if number >= self.end {
            return None;
        }
        let request = self.args.get(self.requests.range(number))?;
        let is_alike = request.len() == self.request.len() && is_same(request, self.request, 0);
        is_alike.then_some(request)
    }

    /// How many of them are on the key of the first, before one on another key.
    #[inline]
    fn on_first_key(&self) -> usize {
        let is_on_key = |request: &[&[u8]]| is_same(request, self.request, KEY);
        let mut count = 1;
        while self.get(count).is_some_and(is_on_key) {
            count += 1;
        }
        count
    }

    /// The words of the first of them, so many requests.
    fn words(&self, requests: usize) -> &'a [&'a [u8]] {
        let start = self.words.start;
        let words = start..start + requests * self.words.len();
        self.args.get(words).unwrap_or_default()
    }
}

/// As many as [`REQUESTS_TOGETHER`] lie in the list.
type Ends = SmallVec<[usize; 64]>;

/// Requests that are alike, on different keys: several runs.
struct Runs<'a> {
    words: &'a [&'a [u8]],
    width: usize,
    /// The end of each run, in requests.
    ends: Ends,
}

impl<'a> Runs<'a> {
    /// As many as may be executed together. The first run is `first` requests.
    fn find(alike: &Alike<'a>, first: usize) -> Self {
        let mut ends: Ends = smallvec![first];
        let (mut count, mut last) = (first, alike.request);
        while let Some(request) = alike.get(count).filter(|_| count < REQUESTS_TOGETHER.get()) {
            count += 1;
            match ends.last_mut() {
                Some(end) if is_same(last, request, KEY) => *end = count,
                _ => ends.push(count),
            }
            last = request;
        }
        Runs {
            words: alike.words(count),
            width: alike.words.len(),
            ends,
        }
    }

    fn iter(&self) -> impl Iterator<Item = Run<'a>> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let range = from * self.width..end * self.width;
            let words = self.words.get(range).unwrap_or_default();
            let requests = end - from;
            from = *end;
            Run::counted(words, self.width, requests)
        })
    }
}

#[cfg(test)]
mod tests {
    use everbloom::redisbloom::{CuckooParts, FilterParts, LayerParts};
    use everbloom_commands::format::header;
    use everbloom_resp::{Reply, encode_request};

    use crate::native::testing::Bench;

    const LAYERS: usize = 16_384;
    const TABLES: u16 = 1024;

    /// A server with a filter `bloom` of very many layers, and `cuckoo` of very many tables.
    fn with_many_arrays() -> Bench {
        let layer = LayerParts {
            bytes: 64,
            error_rate: 0.01,
            hashes: 5,
            capacity: 1000,
            ..LayerParts::default()
        };
        let bloom = FilterParts {
            expansion: 1,
            options: 5,
            layers: vec![layer; LAYERS],
            key: Some(everbloom::hash::Key::from_seed(1)),
            ..FilterParts::default()
        };
        let cuckoo = CuckooParts {
            buckets: 4,
            tables: TABLES,
            bucket_size: 4,
            max_kicks: 1,
            expansion: 1,
            ..CuckooParts::default()
        };
        let mut bench = Bench::default();
        for (command, key, header) in [
            ("BF.LOADCHUNK", "bloom", header::encode_parts(&bloom)),
            ("CF.LOADCHUNK", "cuckoo", header::cuckoo::encode(&cuckoo)),
        ] {
            let request = [command.as_bytes(), key.as_bytes(), b"1", &header];
            assert_eq!(bench.run_words(&request), Reply::OK);
        }
        bench
    }

    /// How many requests with different items are executed before the time that is up is noticed.
    fn executed_at_once(bench: &mut Bench, requests: usize, words: [&str; 2]) -> usize {
        let mut bytes = Vec::new();
        for item in 0..requests {
            encode_request(&[words[0], words[1], &item.to_string()], &mut bytes);
        }
        let (executed, out) = bench.execute(&bytes, None);
        let answers = out.iter().filter(|byte| **byte == b':').count();
        assert_eq!(answers, executed.next, "{}", out.escape_ascii());
        executed.next
    }

    /// Each request takes a step for each layer or table: thousands of them are not one run.
    #[test]
    fn requests_on_very_many_arrays_let_others_have_their_turn() {
        let mut bench = with_many_arrays();
        let alike = [
            ("BF.EXISTS", "bloom", LAYERS),
            ("BF.ADD", "bloom", LAYERS),
            ("CF.EXISTS", "cuckoo", TABLES.into()),
            ("CF.DEL", "cuckoo", TABLES.into()),
        ];
        for (command, key, arrays) in alike {
            let executed = executed_at_once(&mut bench, 1000, [command, key]);
            assert!(executed * arrays <= 1 << 16, "{command}: {executed}");
        }
        // What has few layers is still one run.
        bench.run("BF.RESERVE small 0.01 100000");
        for command in ["BF.EXISTS", "BF.ADD"] {
            assert_eq!(executed_at_once(&mut bench, 1000, [command, "small"]), 1000);
        }
    }
}
