//! What a picture needs: a logarithmic axis with round ticks, bins with round edges, and text that is no markup.

use std::fmt::Write as _;

/// Ticks between two powers of ten.
const STEPS: [&[f64]; 2] = [&[1.0], &[1.0, 2.0, 5.0]];
/// Most ticks of one distance.
const MOST_EVEN: i64 = 40;

/// A logarithmic axis from a value to a place in the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// From a little below the smallest to a little above the largest of the values, which are at least 1.
    pub(super) fn of(values: &[i64], start: f64, end: f64) -> Self {
        let least = real(values.iter().copied().min().unwrap_or(1));
        let most = real(values.iter().copied().max().unwrap_or(1));
        let margin = ((most / least).ln() * 0.06).max(0.15);
        Axis { low: least.ln() - margin, high: most.ln() + margin, start, end }
    }

    /// The place of a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        self.start + share * (self.end - self.start)
    }

    /// As many round whole numbers as fit with this distance, the smallest first.
    pub(super) fn ticks(&self, distance: f64) -> Vec<f64> {
        let fits = |ticks: &Vec<f64>| {
            ticks.windows(2).all(|two| (self.place(two[1]) - self.place(two[0])).abs() >= distance)
        };
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
        let all = STEPS.iter().map(|steps| self.among(steps)).chain(steps.map(|step| self.even(step)));
        let most = all.filter(|ticks| ticks.len() > 1 && fits(ticks)).max_by_key(Vec::len);
        most.unwrap_or_else(|| self.thinned(&self.among(STEPS[1]), distance))
    }

    /// All multiples of a step, where the axis is short enough for them.
    fn even(&self, step: f64) -> Vec<f64> {
        let (first, last) = ((self.low.exp() / step).ceil() as i64, (self.high.exp() / step).floor() as i64);
        if last.saturating_sub(first) > MOST_EVEN {
            return Vec::new();
        }
        (first.max(1)..=last).map(|number| number as f64 * step).collect()
    }

    fn among(&self, steps: &[f64]) -> Vec<f64> {
        let powers = (0..19).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        all.filter(|value| (self.low..=self.high).contains(&value.ln())).collect()
    }

    fn thinned(&self, ticks: &[f64], distance: f64) -> Vec<f64> {
        let mut kept: Vec<f64> = Vec::new();
        for tick in ticks {
            if kept.last().is_none_or(|last| (self.place(*tick) - self.place(*last)).abs() >= distance) {
                kept.push(*tick);
            }
        }
        kept
    }
}

#[expect(clippy::cast_precision_loss, reason = "a position in a plot")]
pub(super) fn real(number: i64) -> f64 {
    number.max(1) as f64
}

/// A bin of whole numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bin {
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Most bins of one number each.
const MOST_SINGLE: i64 = 16;

/// Bins that hold all the values: one for each number where these are few, else from 1, 2 or 5 times a power of ten.
pub(super) fn bins(values: &[i64]) -> Vec<Bin> {
    let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) else { return Vec::new() };
    if most - least < MOST_SINGLE {
        return (*least..=*most).map(|value| Bin { from: value, to: value }).collect();
    }
    let powers = (0..18).map(|power| 10_i64.pow(power));
    let mut edges: Vec<i64> = powers.flat_map(|power| [power, 2 * power, 5 * power]).collect();
    edges.insert(0, i64::MIN);
    let bins = edges.windows(2).map(|two| Bin { from: two[0], to: two[1] - 1 });
    bins.filter(|bin| bin.to >= *least && bin.from <= *most).collect()
}

impl Bin {
    pub(super) fn holds(self, value: i64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// `7`, `10–19`.
    pub(super) fn label(self) -> String {
        let text = |value: i64| super::words::number_text(value.max(0) as f64);
        if self.from == self.to {
            text(self.from)
        } else {
            format!("{}–{}", text(self.from), text(self.to))
        }
    }
}

/// The least of the values that at least this share of them is below, in percent; none where no value is.
pub(super) fn threshold(values: &[i64], percent: f64) -> Option<i64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let below = |value: i64| sorted.partition_point(|other| *other < value) as f64;
    sorted.iter().copied().find(|value| 100.0 * below(*value) / sorted.len() as f64 >= percent)
}

/// Text as it stands in an element or a quoted attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '<' | '>' | '&' | '"' | '\'' => {
                let _ = write!(safe, "&#{};", u32::from(one));
            }
            // Neither HTML nor XML has the others.
            control if control.is_control() && control != '\n' => safe.push('\u{fffd}'),
            plain => safe.push(plain),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::words::address_part;

    #[test]
    fn ticks_are_round_ascending_whole_and_apart() {
        for values in [[3, 17], [7, 2083], [1, 1], [5, 6], [1, 1_000_000], [40, 45], [2, 90_000_000]] {
            for (start, end) in [(60.0, 620.0), (380.0, 14.0)] {
                let axis = Axis::of(&values, start, end);
                let ticks = axis.ticks(30.0);
                assert!(ticks.windows(2).all(|two| two[0] < two[1]), "{values:?}: {ticks:?}");
                let apart = |two: &[f64]| (axis.place(two[0]) - axis.place(two[1])).abs() >= 30.0;
                assert!(ticks.windows(2).all(apart), "{values:?}: {ticks:?}");
                assert!(ticks.iter().all(|tick| tick.fract() == 0.0));
            }
        }
        assert_eq!(Axis::of(&[3, 17], 380.0, 14.0).ticks(30.0), [5.0, 10.0, 15.0]);
        assert_eq!(Axis::of(&[8, 16], 376.0, 16.0).ticks(28.0), [8.0, 10.0, 12.0, 14.0, 16.0, 18.0]);
        assert_eq!(
            Axis::of(&[7, 2083], 60.0, 620.0).ticks(40.0),
            [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]
        );
    }

    #[test]
    fn every_value_is_in_exactly_one_bin() {
        for values in [vec![3, 5, 17], vec![7, 39, 2083], vec![1], vec![0, 4_000_000], vec![9, 10, 99, 100]] {
            let bins = bins(&values);
            for value in &values {
                assert_eq!(bins.iter().filter(|bin| bin.holds(*value)).count(), 1, "{value} of {values:?}");
            }
        }
        assert!(bins(&[]).is_empty());
    }

    #[test]
    fn bins_say_what_they_are() {
        let labels = |values: &[i64]| bins(values).into_iter().map(Bin::label).collect::<Vec<_>>();
        assert_eq!(labels(&[3, 5]), ["3", "4", "5"]);
        assert_eq!(labels(&[7, 60]), ["5–9", "10–19", "20–49", "50–99"]);
    }

    #[test]
    fn a_threshold_is_the_least_value_with_that_share_below() {
        assert_eq!(threshold(&[1, 2, 3, 4], 50.0), Some(3));
        assert_eq!(threshold(&[2, 2, 2, 9], 50.0), Some(9));
        assert_eq!(threshold(&[2, 2], 50.0), None);
        assert_eq!(threshold(&[], 50.0), None);
    }

    #[test]
    fn text_holds_no_markup_and_addresses_no_separator() {
        assert_eq!(escaped("<a href='x'>\n&\"\u{0}"), "&#60;a href=&#39;x&#39;&#62;\n&#38;&#34;\u{fffd}");
        assert_eq!(address_part("a/b;c&d=é-_.~"), "a%2Fb%3Bc%26d%3D%C3%A9-_.~");
    }
}
