//! Pictures in one style: charts of lines, groups of bars and grids, as SVG and PNG; charts and
//! grids also for the terminal.
//!
//! | you have | you make | and get |
//! |---|---|---|
//! | curves, or measured points | a [`Chart`] | a [`Picture`], or text for a terminal |
//! | amounts in groups | [`Bars`] | a [`Picture`] |
//! | short texts in rows | a [`Grid`] | a [`Picture`], or text for a terminal |
//! | a [`Picture`] | | [`Picture::svg`], [`Picture::png`] |
//!
//! The style: every line and bar is labelled where it is, so there is no legend. Colours can be
//! told apart by people who are colour-blind. A SVG follows the reader's light or dark theme; a PNG
//! is dark on white, with its own background. No font of the system is needed: text of a PNG is
//! drawn with a part of DejaVu Sans that is in this crate.
//!
//! ```
//! use everbloom_plot::{Axis, Chart, Line, label};
//! let squares = (0..=10).map(f64::from).map(|x| (x, x * x)).collect();
//! let chart = Chart {
//!     title: "Squares".into(),
//!     subtitle: String::new(),
//!     x: Axis::linear("x", label::count),
//!     y: Axis::linear("x times x", label::count),
//!     lines: vec![Line::curve("square", 0, squares)],
//! };
//! assert!(chart.picture().svg().contains(">square</text>"));
//! assert_eq!(chart.picture().png()[1..4], *b"PNG");
//! assert!(chart.terminal(80, false).contains("square"));
//! ```

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod chart;
mod font;
mod grid;
pub mod label;
mod picture;
mod raster;
mod shape;
mod style;
mod svg;
mod terminal;

pub use axis::{Axis, Scale};
pub use bars::{Bar, Bars, Group};
pub use chart::{Chart, Line};
pub use grid::{Grid, Row};
pub use picture::Picture;
