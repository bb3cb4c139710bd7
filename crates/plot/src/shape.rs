//! What a picture consists of. Coordinates are pixels, downwards from the upper left corner.

use crate::style::Ink;

pub(crate) type Point = (f64, f64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Stroke {
        points: Vec<Point>,
        width: f64,
        dashed: bool,
        ink: Ink,
    },
    Rectangle {
        corner: Point,
        size: (f64, f64),
        ink: Ink,
    },
    Disc {
        center: Point,
        radius: f64,
        ink: Ink,
    },
    /// On the baseline at `at`.
    Text {
        at: Point,
        text: String,
        size: f64,
        anchor: Anchor,
        ink: Ink,
    },
}

/// Length of a dash and of the gap after it.
pub(crate) const DASH: (f64, f64) = (7.0, 4.0);

impl Shape {
    pub(crate) fn line(from: Point, to: Point, width: f64, ink: Ink) -> Shape {
        Shape::Stroke {
            points: vec![from, to],
            width,
            dashed: false,
            ink,
        }
    }

    pub(crate) fn text(at: Point, text: &str, size: f64, anchor: Anchor, ink: Ink) -> Shape {
        Shape::Text {
            at,
            text: text.to_owned(),
            size,
            anchor,
            ink,
        }
    }
}
