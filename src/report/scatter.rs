//! Trace length against unique files on log axes, as SVG that takes its colours from the page.

use std::collections::BTreeSet;

use plotters::prelude::*;

use super::plot::{FAINT, INK, PLAIN, TOP, fluid};
use crate::dataset::table::Table;
use crate::error::{Error, Result};

const SIZE: (u32, u32) = (680, 400);

/// The plot, or nothing when there is no instance.
pub(super) fn svg(instances: &Table) -> Result<String> {
    let lengths = instances.whole_numbers("trace_length")?;
    let files = instances.whole_numbers("unique_files")?;
    let hard = instances.lists("hard_axes")?;
    let points = |wanted: bool| -> BTreeSet<(i64, i64)> {
        let of_kind = |(_, axes): &(_, &Vec<String>)| axes.is_empty() != wanted;
        lengths
            .iter()
            .copied()
            .zip(files.iter().copied())
            .zip(&hard)
            .filter(of_kind)
            .map(|one| one.0)
            .collect()
    };
    let most = |values: &[i64]| values.iter().max().copied();
    let (Some(longest), Some(widest)) = (most(&lengths), most(&files)) else { return Ok(String::new()) };
    let mut text = String::new();
    draw(&mut text, &points(false), &points(true), (real(longest), real(widest)))
        .map_err(|error| Error::internal(format!("cannot draw the scatter: {error}")))?;
    Ok(fluid(&text, SIZE, "Scatter of trace length against unique files; the top subset is marked"))
}

#[expect(clippy::cast_precision_loss, reason = "a position in a plot")]
fn real(number: i64) -> f64 {
    number as f64
}

fn draw(
    text: &mut String,
    plain: &BTreeSet<(i64, i64)>,
    hard: &BTreeSet<(i64, i64)>,
    most: (f64, f64),
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let label = ("sans-serif", 15).into_font().color(&INK);
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .margin_right(44)
        .x_label_area_size(46)
        .y_label_area_size(56)
        .build_cartesian_2d((0.8..most.0 * 1.4).log_scale(), (0.8..most.1 * 1.4).log_scale())?;
    let whole = |value: &f64| if *value < 1.0 { String::new() } else { super::view::number_text(*value) };
    chart
        .configure_mesh()
        .x_desc("trace length (calls)")
        .y_desc("unique files")
        .x_label_formatter(&whole)
        .y_label_formatter(&whole)
        .label_style(label.clone())
        .axis_desc_style(label)
        .axis_style(INK)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .draw()?;
    let circle = |(x, y): &(i64, i64), style: ShapeStyle| Circle::new((real(*x), real(*y)), 4, style);
    chart.draw_series(plain.iter().map(|point| circle(point, PLAIN.mix(0.6).filled())))?;
    chart.draw_series(hard.iter().map(|point| circle(point, TOP.mix(0.8).filled())))?;
    area.present()?;
    Ok(())
}
