//! The filter of a run: that of the state's file, or a new one.

use std::path::Path;

use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::{BuildError, ItemHash, Span, WindowedBloomFilter};

use crate::failure::Failure;
use crate::filter::{has_our_clock, now_ms};
use crate::filter_file::FilterFile;
use crate::number::time;

use super::args::{Args, ERROR_RATE};
use crate::records::case::Case;
use crate::records::chunk::Chunk;
use crate::records::selection::Selection;

/// The least and the most items that a guess makes room for. The filter grows beyond both.
const GUESSES: (u64, u64) = (1 << 20, 1 << 27);

/// Where the run remembers, before its first record.
pub(super) struct State {
    file: Option<FilterFile>,
    filter: Option<LayeredFilter>,
    /// For a new filter.
    key: Key,
    error_rate: f64,
    /// The milliseconds that it remembers; `None`: all.
    window: Option<u64>,
    /// What the run compares, and the file remembers.
    selection: Selection,
    /// Items in the file's filter. `None` when the file has none yet, or forgets.
    saved: Option<u64>,
}

impl State {
    /// Opens the file, if one is named. Makes the filter if its capacity is known.
    pub(super) fn open(args: &Args) -> Result<Self, Failure> {
        let error_rate = args.error_rate.unwrap_or(ERROR_RATE);
        let mut state = Self {
            file: None,
            filter: None,
            key: args.seed.map_or_else(Key::random, Key::from_seed),
            error_rate,
            window: args.window,
            selection: args.records.selection()?,
            saved: None,
        };
        if let Some(path) = &args.state {
            // What only counts must not make a file.
            if !args.count {
                state.file = Some(FilterFile::open(path)?);
            } else if path.exists() {
                state.file = Some(FilterFile::open_to_read(path)?);
            }
            if let Some(file) = &mut state.file {
                state.filter = file.read()?;
                if let Some(filter) = &state.filter {
                    let (name, is_empty) = (format!("state {}", path.display()), filter.is_empty());
                    state.selection = args.records.agree(name, file.selection(), is_empty)?;
                }
                file.remember(state.selection.clone())?;
            }
            if let Some(filter) = &state.filter {
                agree(path, filter, args)?;
                state.saved = filter.window().is_none().then(|| filter.len());
            }
        }
        if let (None, Some(capacity)) = (&state.filter, args.capacity) {
            state.filter = Some(
                state
                    .build(capacity)
                    .map_err(|error| Failure::unmade(capacity, error))?,
            );
        }
        Ok(state)
    }

    /// What hashes for the filter, also before there is one.
    pub(super) fn hasher(&self) -> ItemHash {
        match &self.filter {
            Some(filter) => filter.hasher(),
            None => ItemHash::of_key(self.key),
        }
    }

    /// Whether the run tells capital letters from small ones.
    pub(super) fn case(&self) -> Case {
        self.selection.case
    }

    /// The filter. A new one has room for what the sizes of the files and the length of the first
    /// records promise.
    pub(super) fn take_filter(
        &mut self,
        first: Option<&Chunk>,
        bytes: u64,
    ) -> Result<LayeredFilter, Failure> {
        if let Some(filter) = self.filter.take() {
            return Ok(filter);
        }
        let (least, most) = GUESSES;
        let guess = first.map_or(0, |chunk| {
            let records = chunk.ends.len() as f64 * bytes as f64 / (chunk.filled as f64).max(1.0);
            // Growing costs more than an eighth of room that is not needed. A float becomes the
            // nearest number there is.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "above"
            )]
            let guess = (records * 1.125) as u64;
            guess
        });
        let guess = guess.clamp(least, most);
        let built = self.build(guess).or_else(|_| self.build(least));
        built.map_err(|error| Failure::unmade(least, error))
    }

    fn build(&self, capacity: u64) -> Result<LayeredFilter, BuildError> {
        let builder = LayeredFilter::builder().key(self.key);
        let builder = builder.capacity(capacity).error_rate(self.error_rate);
        match self.window {
            Some(window) => {
                let generations = WindowedBloomFilter::GENERATIONS;
                builder
                    .window(Span::Ticks(window), generations, now_ms())
                    .build()
            }
            None => builder.build(),
        }
    }

    /// Whether there is a file for the filter that may not have all of it.
    pub(super) fn lacks(&self, filter: &LayeredFilter) -> bool {
        self.file.is_some() && self.saved != Some(filter.len())
    }

    /// Saves the filter, if there is a file for it.
    pub(super) fn save(&mut self, filter: &LayeredFilter) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            file.remember(self.selection.of_items(filter.len()))?;
            file.save(|to| filter.write_to(to))?;
            self.saved = filter.window().is_none().then(|| filter.len());
        }
        Ok(())
    }

    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }
}

/// Refuses parameters that differ from the file's.
fn agree(path: &Path, filter: &LayeredFilter, args: &Args) -> Result<(), Failure> {
    let path = path.display();
    if let Some(rate) = args.error_rate
        && rate.to_bits() != filter.error_rate().to_bits()
    {
        return Err(Failure::Other(format!(
            "{path} has the error rate {}, not {rate}; leave --error-rate off, or name another \
             file",
            filter.error_rate()
        )));
    }
    if let Some(seed) = args.seed
        && filter.key() != Some(Key::from_seed(seed))
    {
        return Err(Failure::Other(format!(
            "{path} has another key than that of seed {seed}; leave --seed off, or name another file"
        )));
    }
    let window = filter.window();
    if window.is_some_and(|window| window.span.ticks().is_some()) && !has_our_clock(filter) {
        return Err(Failure::Other(format!(
            "{path} has a window by another clock than milliseconds since 1970, by which dedup \
             would forget all of it; name another file"
        )));
    }
    let span = window.and_then(|window| window.span.ticks());
    if let Some(asked) = args.window
        && span != Some(asked)
    {
        let has = span.map_or("no window of time".to_owned(), |span| {
            format!("a window of {}", time(span))
        });
        return Err(Failure::Other(format!(
            "{path} has {has}, not one of {}; leave --window off, or name another file",
            time(asked)
        )));
    }
    let first = filter.layers().first();
    let made_for = match window {
        Some(window) => window.capacity,
        None => first.map_or(0, everbloom::host::Layer::capacity),
    };
    if let Some(capacity) = args.capacity
        && capacity != made_for
    {
        return Err(Failure::Other(format!(
            "{path} was made for {made_for} records, not {capacity}; leave --capacity off (it \
             grows), or name another file"
        )));
    }
    Ok(())
}
