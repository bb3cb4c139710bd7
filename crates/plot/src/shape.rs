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
pub(crate) struct Shape {
    pub(crate) form: Form,
    pub(crate) ink: Ink,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Stroke {
        points: Vec<Point>,
        width: f64,
        dashed: bool,
    },
    Rectangle {
        corner: Point,
        size: (f64, f64),
    },
    Disc {
        center: Point,
        radius: f64,
    },
    /// On the baseline at `at`.
    Text {
        at: Point,
        text: String,
        size: f64,
        anchor: Anchor,
    },
}

/// Length of a dash and of the gap after it.
pub(crate) const DASH: (f64, f64) = (7.0, 4.0);

impl Shape {
    pub(crate) fn line(from: Point, to: Point, width: f64, ink: Ink) -> Shape {
        let points = vec![from, to];
        let dashed = false;
        let form = Form::Stroke {
            points,
            width,
            dashed,
        };
        Shape { form, ink }
    }

    pub(crate) fn text(at: Point, text: &str, size: f64, anchor: Anchor, ink: Ink) -> Shape {
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
