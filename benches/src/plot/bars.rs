//! Amounts as bars in groups.

use everbloom_plot::style::{self, Ink, LEADING, MARGIN, TEXT, WIDTH};
use everbloom_plot::{Anchor, Form, Picture, Shape};

/// Amounts as bars in groups, each labelled at its end.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What the picture shows.
    pub title: String,
    /// The conditions, in smaller letters; may have several lines.
    pub subtitle: String,
    /// From the top.
    pub groups: Vec<Group>,
    /// Writes the amount beside its bar.
    pub format: fn(f64) -> String,
}

/// The bars of one thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// The text at their left.
    pub label: String,
    /// From the top.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The text at its end, before the amount.
    pub label: String,
    /// The amount, not below 0.
    pub value: f64,
    /// Which colour: the same subject has the same in all groups.
    pub colour: usize,
}

impl Bar {
    /// A bar.
    pub fn new(label: impl Into<String>, colour: usize, value: f64) -> Bar {
        Bar {
            label: label.into(),
            value,
            colour,
        }
    }
}

/// From one bar to the next, and how thick one is.
const STEP: f64 = 18.0;
const THICK: f64 = 12.0;

impl Bars {
    /// The greatest amount.
    fn most(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        bars.map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max)
    }

    fn text(&self, bar: &Bar) -> String {
        format!("{} {}", (self.format)(bar.value), bar.label)
            .trim_end()
            .to_owned()
    }

    /// Draws them.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let mut picture = Picture::new(&self.title, &self.subtitle);
        let groups = self
            .groups
            .iter()
            .map(|group| style::width(&group.label, TEXT));
        let left = MARGIN + groups.fold(0.0, f64::max) + 10.0;
        let most = self.most();
        // The bar whose text would reach furthest decides how long bars may be.
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let room = |bar: &Bar| {
            let text = style::width(&self.text(bar), TEXT) + 8.0;
            (WIDTH - MARGIN - left - text) / (bar.value / most).max(0.01)
        };
        let longest = bars
            .map(room)
            .fold(WIDTH - MARGIN - left, f64::min)
            .max(50.0);
        let mut y = picture.bottom() + LEADING;
        for group in &self.groups {
            let start = y;
            for bar in &group.bars {
                let end = left + longest * bar.value / most;
                self.draw(&mut picture, bar, (left, end), y);
                y += STEP;
            }
            let at = (left - 10.0, start + (y - start) / 2.0 + TEXT * 0.36);
            picture.add(Shape::text(at, &group.label, TEXT, Anchor::End, Ink::Text));
            let (from, to) = ((left, start - 3.0), (left, y + 3.0));
            picture.add(Shape::line(from, to, 1.0, Ink::Muted));
            y += STEP * 0.7;
        }
        picture.end_at(y + MARGIN - STEP * 0.7);
        picture
    }

    fn draw(&self, picture: &mut Picture, bar: &Bar, (left, end): (f64, f64), y: f64) {
        let ink = Ink::Series(bar.colour);
        let top = y + (STEP - THICK) / 2.0;
        let (corner, size) = ((left, top), (end - left, THICK));
        let form = Form::Rectangle { corner, size };
        picture.add(Shape { form, ink });
        let at = (end + 8.0, y + STEP / 2.0 + TEXT * 0.36);
        picture.add(Shape::text(at, &self.text(bar), TEXT, Anchor::Start, ink));
    }
}
