//! How trace length and unique files are distributed, tier by tier: bars over bins of equal width on a log axis.

use plotters::prelude::*;

use super::plot::{FAINT, INK, TIERS, fluid};
use crate::dataset::table::Table;
use crate::error::{Error, Result};

const SIZE: (u32, u32) = (420, 240);
/// Bins of a power of ten.
const BINS: f64 = 4.0;
const TIER_NAMES: [&str; 3] = ["easy", "medium", "hard"];

/// One picture for trace length and one for unique files; none without instances.
pub(super) fn svgs(instances: &Table) -> Result<Vec<String>> {
    let tiers = instances.whole_texts("tier")?;
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let axes = [("trace_length", "trace length (calls)"), ("unique_files", "unique files")];
    axes.into_iter().map(|(column, name)| svg(&instances.whole_numbers(column)?, &tiers, name)).collect()
}

fn svg(values: &[i64], tiers: &[&str], name: &str) -> Result<String> {
    let bins = bins(values, tiers);
    let mut text = String::new();
    draw(&mut text, &bins, name)
        .map_err(|error| Error::internal(format!("cannot draw the distribution: {error}")))?;
    Ok(fluid(&text, SIZE, &format!("Distribution of {name} by tier")))
}

/// Number of instances of each tier, bin by bin.
fn bins(values: &[i64], tiers: &[&str]) -> Vec<[u32; 3]> {
    let mut bins: Vec<[u32; 3]> = Vec::new();
    for (value, tier) in values.iter().zip(tiers) {
        let at = bin(*value);
        let tier = TIER_NAMES.iter().position(|name| name == tier).unwrap_or(0);
        if bins.len() <= at {
            bins.resize(at + 1, [0; 3]);
        }
        bins[at][tier] += 1;
    }
    bins
}

fn bin(value: i64) -> usize {
    ((value.max(1) as f64).log10() * BINS + 1e-9) as usize
}

fn draw(
    text: &mut String,
    bins: &[[u32; 3]],
    name: &str,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let label = ("sans-serif", 13).into_font().color(&INK);
    let most = bins.iter().map(|bin| bin.iter().sum::<u32>()).max().unwrap_or(0);
    let end = bins.len() as f64 / BINS;
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .margin_right(30)
        .x_label_area_size(42)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..end.max(1.0), 0.0..f64::from(most) * 1.08)?;
    let power = |value: &f64| {
        if value.fract().abs() < 1e-6 { super::view::number_text(10_f64.powf(*value)) } else { String::new() }
    };
    chart
        .configure_mesh()
        .x_desc(name)
        .y_desc("instances")
        .x_labels(end.ceil() as usize + 1)
        .y_labels(5)
        .x_label_formatter(&power)
        .y_label_formatter(&|value| super::view::number_text(*value))
        .label_style(label.clone())
        .axis_desc_style(label)
        .axis_style(INK)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .disable_x_mesh()
        .draw()?;
    for (at, bin) in bins.iter().enumerate() {
        let (left, right) = ((at as f64 + 0.06) / BINS, (at as f64 + 0.94) / BINS);
        let mut below = 0.0;
        for (number, colour) in bin.iter().zip(TIERS) {
            let above = below + f64::from(*number);
            if *number > 0 {
                chart.draw_series([Rectangle::new([(left, below), (right, above)], colour.filled())])?;
            }
            below = above;
        }
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_in_one_bin_of_its_tier() {
        let bins = bins(&[1, 1, 2, 9, 10, 1000], &["easy", "hard", "easy", "medium", "medium", "hard"]);
        assert_eq!(bins[0], [1, 0, 1]);
        assert_eq!((bins[1], bins[3], bins[4], bins[12]), ([1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]));
        assert_eq!(bins.iter().flatten().sum::<u32>(), 6);
    }
}
