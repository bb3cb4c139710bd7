//! What a picture consists of. Coordinates are pixels, downwards from the upper left corner.

use crate::style::Ink;

/// Across and downwards, in pixels.
pub type Point = (f64, f64);

/// Which part of a text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// A form in a colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What is drawn.
    pub form: Form,
    /// Its colour.
    pub ink: Ink,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A line through some points.
    Stroke {
        /// From one end to the other.
        points: Vec<Point>,
        /// How thick it is.
        width: f64,
        /// Dashes instead of a whole line.
        dashed: bool,
    },
    /// A filled rectangle.
    Rectangle {
        /// The upper left one.
        corner: Point,
        /// Width and height.
        size: (f64, f64),
    },
    /// A filled circle.
    Disc {
        /// Its middle.
        center: Point,
        /// Half its width.
        radius: f64,
    },
    /// A line of text.
    Text {
        /// Where its baseline is.
        at: Point,
        /// The letters.
        text: String,
        /// The em.
        size: f64,
        /// Which part of it is at `at`.
        anchor: Anchor,
    },
}

/// Length of a dash and of the gap after it.
pub(crate) const DASH: (f64, f64) = (7.0, 4.0);

impl Shape {
    /// A straight line.
    #[must_use]
    pub fn line(from: Point, to: Point, width: f64, ink: Ink) -> Shape {
        let points = vec![from, to];
        let dashed = false;
        let form = Form::Stroke {
            points,
            width,
            dashed,
        };
        Shape { form, ink }
    }

    /// A line of text.
    #[must_use]
    pub fn text(at: Point, text: &str, size: f64, anchor: Anchor, ink: Ink) -> Shape {
        let text = text.to_owned();
        let form = Form::Text {
            at,
            text,
            size,
            anchor,
        };
        Shape { form, ink }
    }
}
