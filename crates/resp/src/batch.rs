//! The complete requests that one parse found.

use std::ops::Range;

/// This bit of `start` marks a span of [`Batch::owned`]. No slice is long enough for a span of a
/// buffer to have it.
const OWNED: usize = 1 << (usize::BITS - 1);

/// The most spans and owned bytes that [`Batch::clear`] keeps for reuse: 1 MiB of each.
const KEPT_SPANS: usize = (1 << 20) / size_of::<Span>();
const KEPT_BYTES: usize = 1 << 20;

/// Where an argument lies: in the caller's buffer, or in [`Batch::owned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The complete requests that one [`RequestParser::parse`](crate::RequestParser::parse) found.
///
/// A batch says where the arguments lie in the buffer that was parsed. Hand this buffer unchanged
/// to [`Batch::request`] and [`Batch::resolve`]. The batch holds bytes only for quoted arguments of
/// inline requests, because the buffer has them with their quotes and escapes. Keep one batch and
/// reuse it: in steady state it allocates nothing.
///
/// ```text
///   buf    *2 $4 PING $1 a *1 $4 QUIT *3 $3 ...        the third request is not complete
///   spans         ^--^    ^       ^--^
///   ends                  2          3                 requests 0..2 and 2..3
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The arguments of all requests, in order.
    pub(crate) spans: Vec<Span>,
    /// For each request, the index behind its last argument in `spans`.
    pub(crate) ends: Vec<usize>,
    /// The bytes of arguments that are not in the buffer.
    pub(crate) owned: Vec<u8>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            spans: Vec::new(),
            ends: Vec::new(),
            owned: Vec::new(),
        }
    }

    /// The number of requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The range of request `i` in the list of all arguments that [`Batch::resolve`] makes.
    ///
    /// It is never empty: a request has at least the name of its command.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`].
    #[must_use]
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "documented to panic")]
    pub fn range(&self, i: usize) -> Range<usize> {
        let first = if i == 0 { 0 } else { self.ends[i - 1] };
        first..self.ends[i]
    }

    /// The arguments of request `i`, the command's name first. `buf` is the buffer that was parsed.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`]. The iterator panics when `buf` is shorter than the
    /// buffer that was parsed.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "documented to panic")]
    pub fn request<'b>(
        &'b self,
        i: usize,
        buf: &'b [u8],
    ) -> impl ExactSizeIterator<Item = &'b [u8]> + Clone {
        self.spans[self.range(i)]
            .iter()
            .map(move |span| self.slice(*span, buf))
    }

    /// Replaces the content of `args` by the arguments of all requests, in order. `buf` is the
    /// buffer that was parsed.
    ///
    /// [`Batch::range`] says which of them belong to one request. To reuse the list's allocation
    /// for another buffer, see [`recycle`].
    ///
    /// # Panics
    /// When `buf` is shorter than the buffer that was parsed.
    #[inline]
    pub fn resolve<'b>(&'b self, buf: &'b [u8], args: &mut Vec<&'b [u8]>) {
        args.clear();
        args.extend(self.spans.iter().map(|span| self.slice(*span, buf)));
    }

    /// The number of arguments of all requests.
    #[must_use]
    pub const fn args(&self) -> usize {
        self.spans.len()
    }

    /// Keeps the first `len` requests.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.spans.truncate(self.first_open());
    }

    /// Removes all requests and keeps the memory for reuse, at most 1 MiB each of spans and bytes.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.ends.clear();
        self.owned.clear();
        if self.spans.capacity() > KEPT_SPANS {
            self.spans.shrink_to(KEPT_SPANS);
        }
        if self.owned.capacity() > KEPT_BYTES {
            self.owned.shrink_to(KEPT_BYTES);
        }
    }

    /// Ends a request. Its arguments are those pushed since the end of the request before it.
    #[inline]
    pub(crate) fn end_request(&mut self) {
        self.ends.push(self.spans.len());
    }

    /// The index of the first argument that belongs to no request yet.
    #[inline]
    pub(crate) fn first_open(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Adds an argument: the bytes of `owned` from `start` on.
    pub(crate) fn push_owned(&mut self, start: usize) {
        let len = self.owned.len() - start;
        self.spans.push(Span {
            start: start | OWNED,
            len,
        });
    }

    #[inline]
    fn slice<'b>(&'b self, span: Span, buf: &'b [u8]) -> &'b [u8] {
        // An owned span begins far behind the end of any buffer.
        match buf.get(span.start..).and_then(|rest| rest.get(..span.len)) {
            Some(bytes) => bytes,
            None => self.owned_slice(span),
        }
    }

    #[cold]
    #[expect(clippy::panic, reason = "documented to panic")]
    fn owned_slice(&self, span: Span) -> &[u8] {
        match self
            .owned
            .get(span.start ^ OWNED..)
            .and_then(|rest| rest.get(..span.len))
        {
            Some(bytes) => bytes,
            None => panic!("the buffer is shorter than the one that was parsed"),
        }
    }
}

/// Empties a list and keeps its allocation for slices of another buffer.
///
/// A `Vec<&[u8]>` cannot outlive the buffer that its slices borrow, so a loop that refills the
/// buffer would have to allocate a new list each time. To avoid that, store the list between rounds
/// as `Vec<&'static [u8]>`. In each round take it, fill it, and store what this function returns.
#[must_use]
pub fn recycle<'a>(mut args: Vec<&[u8]>) -> Vec<&'a [u8]> {
    args.clear();
    // Collecting a mapped vector into one of the same layout reuses its allocation.
    args.into_iter().map(|_| Default::default()).collect()
}
