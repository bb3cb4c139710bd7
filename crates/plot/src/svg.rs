//! Pictures as SVG.

use std::fmt::Write as _;

use crate::shape::{Anchor, DASH, Form, Shape};
use crate::style::Ink;

/// Fonts whose letters are as wide as [`style::width`](crate::style::width) says come first.
const FONTS: &str = "'DejaVu Sans',Verdana,Geneva,sans-serif";

pub(crate) fn write(title: &str, width: f64, height: f64, shapes: &[Shape]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n\
         text{{font-family:{FONTS};white-space:pre}}\n\
         polyline{{fill:none;stroke-linejoin:round;stroke-linecap:round}}\n{}\
         @media(prefers-color-scheme:dark){{\n{}}}\n</style>\n",
        escaped(title),
        rules(|ink| ink.colour().light),
        rules(|ink| ink.colour().dark),
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<rect class=\"back\" width=\"{width}\" height=\"{height}\"/>"
    );
    for shape in shapes {
        let _ = write_shape(&mut svg, shape);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A class for each ink: `back` fills a shape, and `back-line` draws a line.
fn rules(colour: impl Fn(Ink) -> [u8; 3]) -> String {
    let mut rules = String::new();
    for ink in Ink::all() {
        let [red, green, blue] = colour(ink);
        let (name, hex) = (ink.name(), format!("#{red:02x}{green:02x}{blue:02x}"));
        let _ = writeln!(rules, ".{name}{{fill:{hex}}}.{name}-line{{stroke:{hex}}}");
    }
    rules
}

fn write_shape(svg: &mut String, Shape { form, ink }: &Shape) -> std::fmt::Result {
    let class = ink.name();
    match form {
        Form::Stroke {
            points,
            width,
            dashed,
        } => {
            write!(
                svg,
                "<polyline class=\"{class}-line\" stroke-width=\"{width}\""
            )?;
            if *dashed {
                write!(svg, " stroke-dasharray=\"{} {}\"", DASH.0, DASH.1)?;
            }
            let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
            let points: Vec<String> = points.collect();
            writeln!(svg, " points=\"{}\"/>", points.join(" "))
        }
        Form::Rectangle {
            corner: (x, y),
            size: (width, height),
        } => writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        ),
        Form::Disc {
            center: (x, y),
            radius,
        } => writeln!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
        ),
        Form::Text {
            at: (x, y),
            text,
            size,
            anchor,
        } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            writeln!(
                svg,
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
                 text-anchor=\"{anchor}\">{}</text>",
                escaped(text)
            )
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_name_does_not_become_markup() {
        let shape = Shape::text((1.0, 2.0), "a<b>&c", 13.0, Anchor::End, Ink::Text);
        let svg = write("<script>", 10.0, 10.0, &[shape]);
        assert!(svg.contains(">a&lt;b&gt;&amp;c</text>") && !svg.contains("<script>"));
        assert!(svg.contains("@media(prefers-color-scheme:dark)"));
    }
}
