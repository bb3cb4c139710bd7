//! Lines over two axes.

use crate::axis::{Axis, Fitted};
use crate::picture::Picture;
use crate::shape::{Anchor, Form, Point, Shape};
use crate::style::{self, Ink, LEADING, MARGIN, TEXT, WIDTH};

/// Lines over two axes, each labelled at its right end.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What the picture shows.
    pub title: String,
    /// The conditions, in smaller letters; may have several lines.
    pub subtitle: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines. Labels of lines that end close together are moved apart.
    pub lines: Vec<Line>,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// The text at its end; none when empty.
    pub label: String,
    /// The number of its colour. Lines of the same number have the same colour.
    pub colour: usize,
    /// The points, from left to right. Those outside the axes are left out.
    pub points: Vec<(f64, f64)>,
    /// Dashes instead of a whole line.
    pub dashed: bool,
    /// A dot at each point.
    pub dots: bool,
    /// No line between the points.
    pub loose: bool,
    /// How far each point may be from the truth, up and down.
    pub errors: Vec<f64>,
}

impl Line {
    /// A smooth line.
    pub fn curve(label: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Line {
        Line {
            label: label.into(),
            colour,
            points,
            dashed: false,
            dots: false,
            loose: false,
            errors: Vec::new(),
        }
    }

    /// The same, in dashes.
    #[must_use]
    pub fn dashed(mut self) -> Line {
        self.dashed = true;
        self
    }

    /// The same, with a dot at each point.
    #[must_use]
    pub fn dotted(mut self) -> Line {
        self.dots = true;
        self
    }

    /// Only dots, each with the range in which the truth may lie.
    #[must_use]
    pub fn measured(mut self, errors: Vec<f64>) -> Line {
        (self.dots, self.loose, self.errors) = (true, true, errors);
        self
    }
}

/// Height of the field in pixels.
const HEIGHT: f64 = 340.0;
/// From a line's end to its label.
const GAP: f64 = 8.0;

/// The field between the axes.
struct Field {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Fitted,
    y: Fitted,
}

impl Chart {
    /// Both axes with their ranges.
    pub(crate) fn axes(&self) -> (Fitted, Fitted) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = self.x.fitted(points().map(|point| point.0));
        (x, self.y.fitted(points().map(|point| point.1)))
    }

    /// Draws it.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let mut picture = Picture::new(&self.title, &self.subtitle);
        let (x, y) = self.axes();
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts
                .map(|text| style::width(&text, TEXT))
                .fold(0.0, f64::max)
        };
        let ticks = widest(&mut y.ticks(7).into_iter().map(|tick| y.label(tick)));
        let labels = widest(&mut self.lines.iter().map(|line| line.label.clone()));
        let top = picture.bottom() + 2.6 * LEADING;
        let field = Field {
            left: MARGIN + ticks + GAP,
            right: WIDTH - MARGIN - labels - GAP,
            top,
            bottom: top + HEIGHT,
            x,
            y,
        };
        self.draw_axes(&mut picture, &field);
        for line in &self.lines {
            line.draw(&mut picture, &field);
        }
        self.draw_labels(&mut picture, &field);
        picture.end_at(field.bottom + 2.0 * LEADING + MARGIN + 4.0);
        picture
    }

    fn draw_axes(&self, picture: &mut Picture, field: &Field) {
        for tick in field.y.ticks(7) {
            let y = field.up(field.y.nearest(tick));
            let (from, to) = ((field.left, y), (field.right, y));
            picture.add(Shape::line(from, to, 1.0, Ink::Grid));
            let at = (field.left - GAP, y + TEXT * 0.36);
            let text = field.y.label(tick);
            picture.add(Shape::text(at, &text, TEXT, Anchor::End, Ink::Muted));
        }
        for tick in field.x.ticks(8) {
            let x = field.across(field.x.nearest(tick));
            let foot = field.bottom + 5.0;
            picture.add(Shape::line((x, field.bottom), (x, foot), 1.0, Ink::Muted));
            let at = (x, field.bottom + LEADING + 2.0);
            let text = field.x.label(tick);
            picture.add(Shape::text(at, &text, TEXT, Anchor::Middle, Ink::Muted));
        }
        let (from, to) = ((field.left, field.bottom), (field.right, field.bottom));
        picture.add(Shape::line(from, to, 1.0, Ink::Muted));
        let above = (MARGIN, field.top - LEADING);
        let (title, ink) = (&self.y.title, Ink::Text);
        picture.add(Shape::text(above, title, TEXT, Anchor::Start, ink));
        let below = (field.right, field.bottom + 2.0 * LEADING + 4.0);
        picture.add(Shape::text(below, &self.x.title, TEXT, Anchor::End, ink));
    }

    fn draw_labels(&self, picture: &mut Picture, field: &Field) {
        let ends = self.lines.iter().filter(|line| !line.label.is_empty());
        let mut ends: Vec<(&Line, Point)> = ends
            .filter_map(|line| Some((line, *field.visible(&line.points).last()?)))
            .collect();
        ends.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
        let places = apart(&wanted, LEADING - 1.0, field.top, field.bottom);
        for ((line, end), place) in ends.into_iter().zip(places) {
            let ink = Ink::Series(line.colour);
            let start = (field.right + GAP - 3.0, place);
            if (end.1 - place).abs() > 3.0 || end.0 < field.right - GAP {
                picture.add(Shape::line((end.0 + 3.0, end.1), start, 0.7, ink));
            }
            let at = (field.right + GAP, place + TEXT * 0.36);
            picture.add(Shape::text(at, &line.label, TEXT, Anchor::Start, ink));
        }
    }
}

impl Field {
    fn across(&self, part: f64) -> f64 {
        self.left + (self.right - self.left) * part
    }

    fn up(&self, part: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * part
    }

    /// The points that lie inside, in pixels.
    fn visible(&self, points: &[(f64, f64)]) -> Vec<Point> {
        let place = |point: &(f64, f64)| {
            let (x, y) = (self.x.part(point.0)?, self.y.part(point.1)?);
            Some((self.across(x), self.up(y)))
        };
        points.iter().filter_map(place).collect()
    }
}

impl Line {
    fn draw(&self, picture: &mut Picture, field: &Field) {
        let ink = Ink::Series(self.colour);
        let points = field.visible(&self.points);
        for ((x, y), error) in self.points.iter().zip(&self.errors) {
            if let (Some(part), true) = (field.x.part(*x), *error > 0.0) {
                let across = field.across(part);
                let [low, high] = [y - error, y + error].map(|y| field.up(field.y.nearest(y)));
                picture.add(Shape::line((across, low), (across, high), 1.2, ink));
            }
        }
        if self.dots {
            for center in points.iter().copied() {
                let form = Form::Disc {
                    center,
                    radius: 3.2,
                };
                picture.add(Shape { form, ink });
            }
        }
        if !self.loose && points.len() > 1 {
            let (width, dashed) = (2.0, self.dashed);
            let form = Form::Stroke {
                points,
                width,
                dashed,
            };
            picture.add(Shape { form, ink });
        }
    }
}

/// Places near the wanted ones, which ascend, with at least `gap` between any two, from `top` to
/// `bottom` while there is room.
fn apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    // Neighbours that are too close become a group around the middle of what they want.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for place in wanted {
        groups.push((*place, 1));
        while let [.., (above, few), (below, more)] = groups.as_slice() {
            let reach = gap * (few + more) as f64 / 2.0;
            if below - above >= reach {
                break;
            }
            let count = few + more;
            let middle = (above * *few as f64 + below * *more as f64) / count as f64;
            groups.truncate(groups.len() - 2);
            groups.push((middle, count));
        }
    }
    let mut places = Vec::new();
    for (middle, count) in groups {
        let half = gap * (count as f64 - 1.0) / 2.0;
        let middle = middle.min(bottom - half).max(top + half);
        places.extend((0..count).map(|number| middle - half + gap * number as f64));
    }
    // Groups that the border moved may have met.
    let mut least = f64::NEG_INFINITY;
    for place in &mut places {
        *place = place.max(least);
        least = *place + gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance() {
        let places = apart(&[10.0, 11.0, 12.0, 90.0, 99.0], 10.0, 0.0, 100.0);
        assert!(
            places.windows(2).all(|pair| pair[1] - pair[0] >= 9.99),
            "{places:?}"
        );
        assert_eq!(places[..3], [1.0, 11.0, 21.0]);
        assert!(places[4] <= 100.0);
        assert_eq!(apart(&[5.0, 50.0], 10.0, 0.0, 100.0), [5.0, 50.0]);
    }
}
