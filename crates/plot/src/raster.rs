//! Pictures as PNG.

use ab_glyph_rasterizer::{Rasterizer, point};

use crate::font;
use crate::shape::{Anchor, DASH, Form, Point, Shape};
use crate::style::Ink;

/// Dots for each pixel of the picture, each way.
const SCALE: f64 = 2.0;

pub(crate) fn write(width: f64, height: f64, shapes: &[Shape]) -> Vec<u8> {
    let mut canvas = Canvas::new(whole(width * SCALE), whole(height * SCALE));
    for shape in shapes {
        canvas.draw(shape);
    }
    canvas.encode()
}

struct Canvas {
    width: usize,
    height: usize,
    dots: Vec<[u8; 3]>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        let white = Ink::Background.colour().light;
        Canvas {
            width,
            height,
            dots: vec![white; width * height],
        }
    }

    fn draw(&mut self, Shape { form, ink }: &Shape) {
        let colour = ink.colour().light;
        match form {
            Form::Stroke {
                points,
                width,
                dashed,
            } => {
                let points: Vec<Point> = points.iter().map(|p| scaled(*p)).collect();
                let radius = width * SCALE / 2.0;
                if *dashed {
                    // Pieces that touch would be one dash, so the round ends are cut off.
                    for piece in dashes(&points, DASH.0 * SCALE, DASH.1 * SCALE) {
                        self.stroke(&piece, radius, colour);
                    }
                } else {
                    self.stroke(&points, radius, colour);
                }
            }
            Form::Rectangle { corner, size } => {
                let (left, top) = scaled(*corner);
                let (right, bottom) = (left + size.0 * SCALE, top + size.1 * SCALE);
                let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
                self.fill(&[corners.to_vec()], colour);
            }
            Form::Disc { center, radius } => {
                self.fill(&[disc(scaled(*center), radius * SCALE)], colour);
            }
            Form::Text {
                at,
                text,
                size,
                anchor,
            } => {
                self.text(scaled(*at), text, size * SCALE, *anchor, colour);
            }
        }
    }

    /// A line of round ends and corners: a rectangle for each part and a disc for each point.
    fn stroke(&mut self, points: &[Point], radius: f64, colour: [u8; 3]) {
        let parts = points.windows(2).filter_map(|pair| match pair {
            [from, to] => Some(bar(*from, *to, radius)),
            _ => None,
        });
        let discs = points.iter().map(|point| disc(*point, radius));
        let polygons: Vec<Vec<Point>> = parts.chain(discs).collect();
        self.fill(&polygons, colour);
    }

    /// Fills polygons, all with the same sense of rotation, as one shape.
    fn fill(&mut self, polygons: &[Vec<Point>], colour: [u8; 3]) {
        let all = || polygons.iter().flatten();
        let left = all().map(|p| p.0).fold(f64::INFINITY, f64::min).floor() - 1.0;
        let top = all().map(|p| p.1).fold(f64::INFINITY, f64::min).floor() - 1.0;
        let right = all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
        let bottom = all().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
        let (wide, high) = (right - left + 3.0, bottom - top + 3.0);
        // Also false for a number that is none.
        if !(wide < 1e5 && high < 1e5) {
            return;
        }
        let mut raster = Rasterizer::new(whole(wide), whole(high));
        for polygon in polygons {
            let ends = polygon.iter().cycle().skip(1);
            for (from, to) in polygon.iter().zip(ends) {
                let [from, to] =
                    [from, to].map(|p| point(font::narrow(p.0 - left), font::narrow(p.1 - top)));
                raster.draw_line(from, to);
            }
        }
        raster.for_each_pixel_2d(|x, y, cover| {
            self.blend(left + f64::from(x), top + f64::from(y), cover, colour);
        });
    }

    fn text(&mut self, at: Point, text: &str, size: f64, anchor: Anchor, colour: [u8; 3]) {
        let width = font::width(text, size);
        let left = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        for letter in font::outlines(text, size, left, at.1) {
            let corner = letter.px_bounds().min;
            letter.draw(|x, y, cover| {
                let x = f64::from(corner.x) + f64::from(x);
                self.blend(x, f64::from(corner.y) + f64::from(y), cover, colour);
            });
        }
    }

    /// Lays a colour over a dot that it covers in part. Dots outside are left out.
    fn blend(&mut self, x: f64, y: f64, cover: f32, colour: [u8; 3]) {
        if x < 0.0 || y < 0.0 || cover <= 0.0 {
            return;
        }
        let (x, y) = (whole(x), whole(y));
        if x >= self.width || y >= self.height {
            return;
        }
        let cover = f64::from(cover.min(1.0));
        if let Some(dot) = self.dots.get_mut(y * self.width + x) {
            for (below, above) in dot.iter_mut().zip(colour) {
                let mixed = f64::from(*below) * (1.0 - cover) + f64::from(above) * cover;
                *below = u8::try_from(whole(mixed.round())).unwrap_or(u8::MAX);
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = (u32::try_from(self.width), u32::try_from(self.height));
        let (width, height) = (width.unwrap_or(0), height.unwrap_or(0));
        let mut encoder = ::png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(::png::ColorType::Rgb);
        encoder.set_depth(::png::BitDepth::Eight);
        encoder.set_compression(::png::Compression::High);
        // Writing to memory cannot fail, and the number of dots matches the header.
        let written = encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(self.dots.as_flattened()));
        debug_assert!(written.is_ok());
        bytes
    }
}

fn scaled((x, y): Point) -> Point {
    (x * SCALE, y * SCALE)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; saturates outside"
)]
fn whole(value: f64) -> usize {
    value as usize
}

/// The rectangle around a straight line. It turns as [`disc`] does.
fn bar(from: Point, to: Point, radius: f64) -> Vec<Point> {
    let (across, down) = (to.0 - from.0, to.1 - from.1);
    let length = across.hypot(down).max(1e-9);
    let (x, y) = (-down / length * radius, across / length * radius);
    vec![
        (from.0 + x, from.1 + y),
        (to.0 + x, to.1 + y),
        (to.0 - x, to.1 - y),
        (from.0 - x, from.1 - y),
    ]
}

fn disc(center: Point, radius: f64) -> Vec<Point> {
    let corner = |number: u32| {
        let angle = -f64::from(number) * std::f64::consts::TAU / 24.0;
        (
            center.0 + radius * angle.cos(),
            center.1 + radius * angle.sin(),
        )
    };
    (0..24).map(corner).collect()
}

/// Cuts a line into dashes.
fn dashes(points: &[Point], dash: f64, gap: f64) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, dash);
    for pair in points.windows(2) {
        let [mut from, to] = *pair else { continue };
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length <= left {
                left -= length;
                piece.extend(drawing.then_some(to));
                break;
            }
            let part = left / length;
            from = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            if drawing {
                piece.push(from);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![from];
            }
            drawing = !drawing;
            left = if drawing { dash } else { gap };
        }
    }
    pieces.extend((piece.len() > 1).then_some(piece));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut dots = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut dots).unwrap();
        (info.width, info.height, dots)
    }

    #[test]
    fn a_line_covers_its_dots_once() {
        let across = Shape::line((2.0, 5.0), (8.0, 5.0), 2.0, Ink::Text);
        let (width, height, dots) = decoded(&write(10.0, 10.0, &[across]));
        assert_eq!((width, height), (20, 20));
        let dot = |x: usize, y: usize| &dots[(y * 20 + x) * 3..][..3];
        assert_eq!(dot(10, 10), Ink::Text.colour().light);
        assert_eq!(dot(10, 5), [255; 3]);
        assert_eq!(dot(19, 10), [255; 3]);
    }

    #[test]
    fn a_shape_beyond_the_border_is_cut() {
        let text = Shape::text((-5.0, 9.0), "wide text", 13.0, Anchor::Start, Ink::Text);
        let line = Shape::line((-5.0, -5.0), (50.0, 50.0), 3.0, Ink::Grid);
        let nowhere = Shape::line((f64::NAN, 0.0), (1.0, 1.0), 3.0, Ink::Grid);
        decoded(&write(10.0, 10.0, &[text, line, nowhere]));
    }

    #[test]
    fn dashes_and_gaps_take_turns() {
        let pieces = dashes(&[(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)], 7.0, 4.0);
        let expected = [vec![(0.0, 0.0), (7.0, 0.0)], vec![(10.0, 1.0), (10.0, 8.0)]];
        assert_eq!(pieces, expected);
    }
}
