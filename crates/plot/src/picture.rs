//! A picture, ready to be written.

use crate::shape::{Anchor, Shape};
use crate::style::{Ink, LEADING, MARGIN, TEXT, TITLE, WIDTH};
use crate::svg;

/// A picture, ready to be written as a file. A [`Chart`](crate::Chart) makes one.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    height: f64,
    shapes: Vec<Shape>,
}

impl Picture {
    /// With the title and, in smaller letters below it, the lines of the subtitle.
    #[must_use]
    pub fn new(title: &str, subtitle: &str) -> Picture {
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

    /// Draws a shape over the others.
    pub fn add(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    /// The height: at first that of the title and the subtitle.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.height
    }

    /// Sets the height.
    pub fn end_at(&mut self, bottom: f64) {
        self.height = bottom;
    }

    /// As SVG, in the reader's theme.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::write(&self.title, WIDTH, self.height, &self.shapes)
    }
}
