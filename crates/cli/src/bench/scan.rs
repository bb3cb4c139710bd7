//! Checks replies byte for byte as they arrive, without decoding them into values.
//!
//! The reply to a bench request has one known shape: a fixed text, then a fixed number of `:0` or
//! `:1`. Any difference ends the run, so a fast wrong answer cannot win.

/// The shape of the reply to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The first bytes: the whole reply of ECHO, or the array head of BF.MEXISTS.
    pub(super) literal: Vec<u8>,
    /// The number of items answered.
    pub(super) items: usize,
    /// The number of `:0` or `:1` for each item. An item is found when all are 1.
    pub(super) integers_per_item: usize,
}

/// What the server sent instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScanError {
    #[error("the server answered with an error: {0}")]
    Refused(String),
    #[error("the server sent \"{sent}\" where \"{expected}\" was due")]
    Unexpected { sent: String, expected: String },
    #[error("the server sent more than was asked for: \"{sent}\"")]
    Surplus { sent: String },
}

/// The position in a stream of replies of one shape.
#[derive(Debug)]
pub(super) struct Scanner {
    shape: Shape,
    /// The number of bytes of the literal that were read.
    literal_at: usize,
    /// The number of items of this reply that were read.
    item: usize,
    /// The number of integers of this item that were read, and whether all were 1.
    integer: usize,
    found: bool,
    /// The first bytes of an integer, when the last read ended inside it.
    cut: Vec<u8>,
    /// The number of replies still to come.
    due: usize,
}

/// The length of `:0` or `:1` with its line end, in bytes.
const INTEGER: usize = 4;

impl Scanner {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            literal_at: 0,
            item: 0,
            integer: 0,
            found: true,
            cut: Vec::with_capacity(INTEGER),
            due: 0,
        }
    }

    /// Expects this many replies in addition to those still due.
    pub(super) fn expect(&mut self, replies: usize) {
        self.due += replies;
    }

    /// The number of replies not yet complete.
    pub(super) fn due(&self) -> usize {
        self.due
    }

    /// Checks the next bytes. Calls `on_item` for each item, in order, with whether it was found.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut on_item: impl FnMut(bool),
    ) -> Result<(), ScanError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.due == 0 {
                return Err(ScanError::Surplus { sent: text(rest) });
            }
            if self.literal_at < self.shape.literal.len() {
                rest = self.literal(rest)?;
            } else if self.cut.is_empty() && rest.len() >= INTEGER {
                rest = self.integers(rest, &mut on_item)?;
            } else {
                rest = self.mend(rest, &mut on_item)?;
            }
        }
        Ok(())
    }

    fn literal<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], ScanError> {
        let wanted = self
            .shape
            .literal
            .get(self.literal_at..)
            .unwrap_or_default();
        let length = wanted.len().min(bytes.len());
        let (now, rest) = bytes.split_at(length);
        if wanted.get(..length) != Some(now) {
            let seen = self.shape.literal.get(..self.literal_at);
            let sent = [seen.unwrap_or_default(), bytes].concat();
            return Err(complain(&sent, &self.shape.literal));
        }
        self.literal_at += length;
        if self.shape.items == 0 && self.literal_at == self.shape.literal.len() {
            self.end_reply();
        }
        Ok(rest)
    }

    /// The fast path for whole integers, up to the end of the reply.
    fn integers<'b>(
        &mut self,
        bytes: &'b [u8],
        on_item: &mut impl FnMut(bool),
    ) -> Result<&'b [u8], ScanError> {
        let mut rest = bytes;
        while let Some((integer, after)) = rest.split_first_chunk::<INTEGER>() {
            match integer {
                b":1\r\n" => {}
                b":0\r\n" => self.found = false,
                _ => return Err(complain(rest, b":0\r\n")),
            }
            rest = after;
            self.integer += 1;
            if self.integer == self.shape.integers_per_item {
                on_item(self.found);
                self.integer = 0;
                self.found = true;
                self.item += 1;
                if self.item == self.shape.items {
                    self.end_reply();
                    // The next reply may begin with a literal, or may not be due.
                    if self.due == 0 || !self.shape.literal.is_empty() {
                        break;
                    }
                }
            }
        }
        Ok(rest)
    }

    /// The path for an integer that arrives in several reads.
    fn mend<'b>(
        &mut self,
        bytes: &'b [u8],
        on_item: &mut impl FnMut(bool),
    ) -> Result<&'b [u8], ScanError> {
        let missing = INTEGER.saturating_sub(self.cut.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(missing);
        self.cut.extend_from_slice(now);
        // Report an error at once with its text, without waiting for four bytes.
        if self.cut.first() != Some(&b':') {
            let sent = [&self.cut, rest].concat();
            return Err(complain(&sent, b":0\r\n"));
        }
        if self.cut.len() == INTEGER {
            let whole = std::mem::take(&mut self.cut);
            self.integers(&whole, on_item)?;
            self.cut = whole;
            self.cut.clear();
        }
        Ok(rest)
    }

    fn end_reply(&mut self) {
        self.due = self.due.saturating_sub(1);
        self.literal_at = 0;
        self.item = 0;
    }
}

fn complain(sent: &[u8], expected: &[u8]) -> ScanError {
    match sent.split_first() {
        Some((b'-', message)) => {
            let line = message.split(|byte| *byte == b'\r').next();
            let line = String::from_utf8_lossy(line.unwrap_or_default());
            ScanError::Refused(line.into_owned())
        }
        _ => ScanError::Unexpected {
            sent: text(sent),
            expected: text(expected),
        },
    }
}

/// The first bytes in readable form.
fn text(bytes: &[u8]) -> String {
    let shown = bytes.get(..40.min(bytes.len())).unwrap_or_default();
    shown.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(literal: &str, items: usize, integers_per_item: usize) -> Shape {
        Shape {
            literal: literal.into(),
            items,
            integers_per_item,
        }
    }

    /// Feeds the bytes in pieces of one size. Returns the items and the number of replies due.
    fn scan(
        shape: &Shape,
        replies: usize,
        bytes: &[u8],
        piece: usize,
    ) -> Result<(Vec<bool>, usize), ScanError> {
        let mut scanner = Scanner::new(shape.clone());
        scanner.expect(replies);
        let mut items = Vec::new();
        for piece in bytes.chunks(piece) {
            scanner.feed(piece, |found| items.push(found))?;
        }
        Ok((items, scanner.due()))
    }

    #[test]
    fn replies_in_pieces_of_any_size() {
        let cases: [(Shape, usize, &[u8], &[bool]); 4] = [
            (
                shape("", 1, 1),
                3,
                b":1\r\n:0\r\n:1\r\n",
                &[true, false, true],
            ),
            (
                shape("*2\r\n", 2, 1),
                2,
                b"*2\r\n:1\r\n:0\r\n*2\r\n:0\r\n:0\r\n",
                &[true, false, false, false],
            ),
            (
                shape("", 1, 3),
                2,
                b":1\r\n:1\r\n:1\r\n:1\r\n:0\r\n:1\r\n",
                &[true, false],
            ),
            (
                shape("$5\r\nhello\r\n", 0, 0),
                2,
                b"$5\r\nhello\r\n$5\r\nhello\r\n",
                &[],
            ),
        ];
        for (shape, replies, bytes, items) in cases {
            for piece in 1..=bytes.len() {
                assert_eq!(
                    scan(&shape, replies, bytes, piece),
                    Ok((items.to_vec(), 0)),
                    "{shape:?} in pieces of {piece}"
                );
            }
            let (_, due) = scan(&shape, replies, &bytes[..bytes.len() - 1], 7).unwrap();
            assert_eq!(due, 1, "the last reply is not whole");
        }
    }

    #[test]
    fn errors_are_told_with_their_text() {
        let refused = Err(ScanError::Refused("ERR not found".into()));
        let error = b"-ERR not found\r\n";
        for shape in [
            shape("", 1, 1),
            shape("*2\r\n", 2, 1),
            shape("$5\r\nhello\r\n", 0, 0),
        ] {
            assert_eq!(scan(&shape, 1, error, 100), refused);
        }
        let late = b":1\r\n-ERR not found\r\n";
        assert_eq!(scan(&shape("", 1, 1), 2, late, 100), refused);
        let within = b"*2\r\n:1\r\n-ERR not found\r\n";
        assert_eq!(scan(&shape("*2\r\n", 2, 1), 1, within, 100), refused);
        // The error is reported at once, however few bytes have arrived.
        assert!(matches!(
            scan(&shape("", 1, 1), 1, b"-E", 1),
            Err(ScanError::Refused(_))
        ));
    }

    #[test]
    fn other_bytes_are_not_taken() {
        for (shape, bytes) in [
            (shape("", 1, 1), b":2\r\n".as_slice()),
            (shape("", 1, 1), b"+OK\r\n"),
            (shape("", 1, 1), b":1\n\r"),
            (shape("*2\r\n", 2, 1), b"*3\r\n:1\r\n"),
            (shape("$5\r\nhello\r\n", 0, 0), b"$5\r\nhallo\r\n"),
        ] {
            for piece in 1..=bytes.len() {
                assert!(
                    matches!(
                        scan(&shape, 1, bytes, piece),
                        Err(ScanError::Unexpected { .. })
                    ),
                    "{bytes:?} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn what_was_not_asked_for_is_too_much() {
        for piece in [1, 4, 5, 8] {
            assert!(matches!(
                scan(&shape("", 1, 1), 1, b":1\r\n:1\r\n", piece),
                Err(ScanError::Surplus { .. })
            ));
        }
    }
}
