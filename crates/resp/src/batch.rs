//! The complete requests that one parse found.

use std::ops::Range;

/// Marks a span of [`Batch::owned`]. No slice is that long, so no span of a buffer has this bit.
const OWNED: usize = 1 << (usize::BITS - 1);

/// Spans, and bytes of owned arguments, kept for reuse by [`Batch::clear`]: 1 MiB of each at most.
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
/// It holds no bytes of the requests but says where they lie in the buffer that was parsed, which
/// must be handed to [`Batch::request`] and [`Batch::resolve`] unchanged. (The exception is a
/// quoted argument of an inline request, which is not in the buffer in the form it means; the
/// batch holds that.) Keep one batch and reuse it: in steady state it allocates nothing.
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
    /// For each request the index after its last argument.
    pub(crate) ends: Vec<usize>,
    /// The bytes of the arguments whose bytes are not in the buffer.
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

    /// How many requests there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where request `i` lies in the list of all arguments that [`Batch::resolve`] makes.
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

    /// How many arguments request `i` has, the command's name included.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`].
    #[must_use]
    #[inline]
    pub fn arg_count(&self, i: usize) -> usize {
        self.range(i).len()
    }

    /// The arguments of request `i`, the command's name first; `buf` is the buffer parsed.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`], and, in the iterator, when `buf` is shorter than the
    /// buffer that was parsed.
    #[expect(clippy::indexing_slicing, reason = "documented to panic")]
    pub fn request<'b>(
        &'b self,
        i: usize,
        buf: &'b [u8],
    ) -> impl ExactSizeIterator<Item = &'b [u8]> {
        self.spans[self.range(i)]
            .iter()
            .map(move |span| self.slice(*span, buf))
    }

    /// Replaces `args` by the arguments of all requests, in order; `buf` is the buffer parsed.
    ///
    /// [`Batch::range`] says which of them are one request's. To reuse the list's allocation for
    /// another buffer, see [`recycle`].
    ///
    /// # Panics
    /// When `buf` is shorter than the buffer that was parsed.
    #[inline]
    pub fn resolve<'b>(&'b self, buf: &'b [u8], args: &mut Vec<&'b [u8]>) {
        args.clear();
        args.extend(self.spans.iter().map(|span| self.slice(*span, buf)));
    }

    /// Forgets the requests and keeps the memory, unless a huge request made it huge.
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

    /// Ends a request: it has the arguments pushed since the last end.
    #[inline]
    pub(crate) fn end_request(&mut self) {
        self.ends.push(self.spans.len());
    }

    /// The index of the first argument that belongs to no request yet.
    #[inline]
    pub(crate) fn first_open(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Adds an argument whose bytes are `owned` from `start` on.
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

/// The same list, empty, for slices of another buffer: its allocation survives.
///
/// A `Vec<&[u8]>` cannot outlive the buffer its slices borrow, so a loop that refills that buffer
/// would have to allocate a list each time around. Store the list between rounds as
/// `Vec<&'static [u8]>`, take it, fill it, and store what this returns.
#[must_use]
pub fn recycle<'a>(mut args: Vec<&[u8]>) -> Vec<&'a [u8]> {
    args.clear();
    // Collecting a mapped vector into one of the same layout reuses its allocation.
    args.into_iter().map(|_| Default::default()).collect()
}
