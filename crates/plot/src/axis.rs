//! An axis: its range, its ticks, and where a value lies on it.

/// An axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    /// Whether equal steps multiply by the same. If so, only values above 0 are shown. If not,
    /// equal steps add the same, from 0.
    pub logarithmic: bool,
    /// The least and the greatest value; by default those of the lines.
    pub range: Option<(f64, f64)>,
    /// Whether ticks are at round numbers of KiB, MiB and so on.
    pub binary: bool,
    /// Writes a value beside its tick.
    pub format: fn(f64) -> String,
}

impl Axis {
    /// From 0 to the greatest value.
    pub fn linear(title: impl Into<String>, format: fn(f64) -> String) -> Axis {
        Axis {
            title: title.into(),
            logarithmic: false,
            range: None,
            binary: false,
            format,
        }
    }

    /// From the least value to the greatest one.
    pub fn logarithmic(title: impl Into<String>, format: fn(f64) -> String) -> Axis {
        Axis {
            logarithmic: true,
            ..Axis::linear(title, format)
        }
    }

    /// With ticks for [`label::bytes`](crate::label::bytes).
    #[must_use]
    pub fn binary(mut self) -> Axis {
        self.binary = true;
        self
    }

    /// With this range.
    #[must_use]
    pub fn within(mut self, least: f64, most: f64) -> Axis {
        self.range = Some((least, most));
        self
    }

    /// The axis with its range, for these values.
    pub(crate) fn fitted(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let logarithmic = self.logarithmic;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && !(logarithmic && *value <= 0.0)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = if logarithmic { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        if let Some(range) = self.range {
            (low, high) = range;
        } else if !logarithmic {
            low = low.min(0.0);
        }
        if low >= high {
            // One value alone: around it, or from 0 to 1 where that is 0.
            (low, high) = if logarithmic {
                (low / 2.0, low * 2.0)
            } else {
                (low, low + 1.0)
            };
        }
        Fitted {
            axis: self.clone(),
            low,
            high,
        }
    }
}

/// An axis with its range.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    axis: Axis,
    low: f64,
    high: f64,
}

impl Fitted {
    /// How far along the axis a value lies, from 0 to 1; `None` outside.
    pub(crate) fn part(&self, value: f64) -> Option<f64> {
        let part = if self.axis.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Roundings must not lose the ends.
        (-1e-9..=1.0 + 1e-9)
            .contains(&part)
            .then(|| part.clamp(0.0, 1.0))
    }

    /// The same, and the nearer end for a value outside.
    pub(crate) fn nearest(&self, value: f64) -> f64 {
        self.part(value.clamp(self.low, self.high)).unwrap_or(0.0)
    }

    pub(crate) fn label(&self, value: f64) -> String {
        (self.axis.format)(value)
    }

    /// At most about so many values that are easy to read.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2) as f64;
        let decades = (self.high / self.low).log10();
        let ticks = if !self.axis.logarithmic || decades < 1.0 {
            self.steps(most)
        } else if self.axis.binary {
            let every = (decades * 10_f64.log2() / most).ceil().max(1.0);
            self.powers(2.0, every, &[1.0])
        } else {
            let every = (decades / most).ceil().max(1.0);
            let factors: &[f64] = if decades * 3.0 <= most {
                &[1.0, 2.0, 5.0]
            } else {
                &[1.0]
            };
            self.powers(10.0, every, factors)
        };
        let inside = ticks.into_iter().filter(|tick| self.part(*tick).is_some());
        inside.collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn steps(&self, most: f64) -> Vec<f64> {
        let unit = if self.axis.binary {
            1024_f64.powf(self.high.log(1024.0).floor().max(0.0))
        } else {
            1.0
        };
        let rough = (self.high - self.low) / unit / most;
        let power = 10_f64.powf(rough.log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0];
        let step = factors
            .iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough * 0.999);
        let step = unit * step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        // By multiplication, so that roundings do not add up.
        let values = (0..100).map(|number| (first + f64::from(number)) * step);
        values
            .take_while(|value| *value <= self.high * (1.0 + 1e-9))
            .collect()
    }

    fn powers(&self, base: f64, every: f64, factors: &[f64]) -> Vec<f64> {
        let first = (self.low.log(base) / every).floor() * every;
        let values = (0..400_i16).flat_map(|number| {
            let exponent = first + f64::from(number) * every;
            // A power of ten from its text is exact.
            let power: f64 = match base {
                10.0 => format!("1e{exponent:.0}").parse().unwrap_or(f64::INFINITY),
                base => base.powf(exponent),
            };
            factors.iter().map(move |factor| factor * power)
        });
        values
            .take_while(|value| *value <= self.high * (1.0 + 1e-9))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label;

    #[test]
    fn ticks_are_easy_to_read() {
        let linear = Axis::linear("", label::count).fitted([0.0, 47.0].into_iter());
        assert_eq!(linear.ticks(6), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let wide = Axis::logarithmic("", label::count)
            .within(1e-6, 1.0)
            .fitted([].into_iter());
        assert_eq!(wide.ticks(4), [1e-6, 1e-4, 1e-2, 1.0]);
        let narrow = Axis::logarithmic("", label::count)
            .within(1.0, 200.0)
            .fitted([].into_iter());
        assert_eq!(
            narrow.ticks(9),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
        );
    }

    #[test]
    fn ticks_of_memory_are_round_in_its_units() {
        let memory = Axis::linear("", label::bytes).binary();
        let ticks = memory.fitted([5e6].into_iter()).ticks(5);
        assert_eq!(
            ticks.into_iter().map(label::bytes).collect::<Vec<_>>()[1],
            "1 MiB"
        );
        let wide = Axis::logarithmic("", label::bytes)
            .binary()
            .within(1e5, 1e8);
        let ticks = wide.fitted([].into_iter()).ticks(4);
        let texts: Vec<String> = ticks.into_iter().map(label::bytes).collect();
        assert_eq!(texts, ["256 KiB", "2 MiB", "16 MiB"]);
    }

    #[test]
    fn a_value_alone_has_a_place() {
        for axis in [
            Axis::linear("", label::count),
            Axis::logarithmic("", label::count),
        ] {
            for value in [0.0, 5.0] {
                assert!(axis.fitted([value].into_iter()).nearest(value) <= 1.0);
            }
            assert!(!axis.fitted([f64::NAN].into_iter()).ticks(5).is_empty());
        }
    }
}
