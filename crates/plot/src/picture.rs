//! A picture, ready to be written.

use crate::shape::{Anchor, Shape};
use crate::style::{Ink, LEADING, MARGIN, TEXT, TITLE, WIDTH};
use crate::svg;

/// A picture, ready to be written as a file. [`Chart`](crate::Chart) and [`Bars`](crate::Bars) make
/// one.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    height: f64,
    shapes: Vec<Shape>,
}

impl Picture {
    /// With the title and, where there is one, a smaller line below it.
    pub(crate) fn new(title: &str, subtitle: &str) -> Picture {
        let mut picture = Picture {
            title: title.to_owned(),
            height: MARGIN + TITLE,
            shapes: Vec::new(),
        };
        let at = (MARGIN, picture.height);
        picture.add(Shape::text(at, title, TITLE, Anchor::Start, Ink::Text));
        for line in subtitle.lines() {
            picture.height += LEADING + 2.0;
            let at = (MARGIN, picture.height);
            picture.add(Shape::text(at, line, TEXT, Anchor::Start, Ink::Muted));
        }
        picture
    }

    pub(crate) fn add(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// The position of the next shape: below all others.
    pub(crate) fn bottom(&self) -> f64 {
        self.height
    }

    pub(crate) fn end_at(&mut self, bottom: f64) {
        self.height = bottom;
    }

    /// As SVG, in the reader's theme.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::write(&self.title, WIDTH, self.height, &self.shapes)
    }
}
