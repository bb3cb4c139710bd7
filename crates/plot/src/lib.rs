//! Pictures in one style: charts of lines, as SVG and for the terminal, and any other shapes as SVG.
//!
//! | you have | you make | and get |
//! |---|---|---|
//! | curves, or measured points | a [`Chart`] | a [`Picture`], or text for a terminal |
//! | [`Shape`]s | [`Picture::new`] | a [`Picture`] |
//! | a [`Picture`] | | [`Picture::svg`] |
//!
//! The style: every line is labelled where it is, so there is no legend. Colours can be
//! told apart by people who are colour-blind. A SVG follows the reader's light or dark theme.
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
//! assert!(chart.terminal(80, false).contains("square"));
//! ```

#![forbid(unsafe_code)]

mod axis;
mod chart;
pub mod label;
mod picture;
mod shape;
pub mod style;
mod svg;
mod terminal;

pub use axis::Axis;
pub use chart::{Chart, Line};
pub use picture::Picture;
pub use shape::{Anchor, Form, Point, Shape};
