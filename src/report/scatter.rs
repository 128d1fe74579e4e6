//! Trace length against unique files on logarithmic axes: tiers as one hue, the top subset as rings, repositories as shapes.
//!
//! Instances of equal values are one mark whose area and number say how many; a mark leads to its instance, or to the list
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::plot::{Axis, escaped, real, threshold};
use super::words::{address_part, number_text};
use crate::dataset::manifest::Tiers;
use crate::dataset::table::Table;
use crate::error::Result;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 430.0;
/// Where the axes are: left, right, top, bottom.
const FRAME: [f64; 4] = [52.0, WIDTH - 16.0, 16.0, HEIGHT - 54.0];
/// Half the width of a mark of one instance.
const RADIUS: f64 = 5.0;
/// Largest half width.
const LARGEST: f64 = 16.0;
/// More marks than these are too many to tell apart: instances are then put together in cells.
const MOST_MARKS: usize = 450;
/// Up to here marks may lie on each other.
const FEW_MARKS: usize = 100;
/// Width of a cell.
const CELL: f64 = 15.0;
/// More numbers of files than these are put together in cells as well.
const MOST_LEVELS: usize = 40;
/// Tests that the text of a mark names.
const MOST_NAMED: usize = 4;
/// Outlines around the origin, of about the area of a circle with radius 1. The last is for all further repositories.
const SHAPES: [&str; 6] = [
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "M-.89-.89h1.78v1.78h-1.78z",
    "M0-1.35L1.17.67H-1.17z",
    "M0-1.25L1.25 0 0 1.25-1.25 0z",
    "M0 1.35L1.17-.67H-1.17z",
    "M-.4-1.2h.8v.8h.8v.8h-.8v.8h-.8v-.8h-.8v-.8h.8z",
];

/// The picture and what stands below it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Scatter {
    /// Empty without instances.
    pub(super) svg: String,
    /// Outlines with what they stand for; one repository needs none.
    legend: Vec<Shape>,
    /// Whether marks stand for instances of different values.
    in_cells: bool,
}

#[derive(Debug, Serialize)]
struct Shape {
    path: &'static str,
    text: String,
}

struct Point<'a> {
    id: &'a str,
    /// Of several; none of an only one.
    slug: Option<&'a str>,
    group: &'a str,
    tier: &'a str,
    length: i64,
    files: i64,
    top: bool,
    shape: usize,
}

/// Draws the published instances.
pub(super) fn scatter(instances: &Table, tiers: &Tiers) -> Result<Scatter> {
    let (points, legend) = points(instances)?;
    if points.is_empty() {
        return Ok(Scatter::default());
    }
    let lengths: Vec<i64> = points.iter().map(|one| one.length).collect();
    let files: Vec<i64> = points.iter().map(|one| one.files).collect();
    let [left, right, top, bottom] = FRAME;
    let axes = [Axis::of(&lengths, left, right), Axis::of(&files, bottom, top)];
    let from = [tiers.medium_from, tiers.hard_from]
        .map(|percent| [threshold(&lengths, percent), threshold(&files, percent)]);
    let (marks, in_cells) = marks(&points, &axes);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" class=\"scatter\" role=\"group\" \
         aria-label=\"Scatter of trace length against unique files; the table of instances has the same numbers\">"
    );
    grid(&mut svg, &axes);
    boundaries(&mut svg, &axes, [&lengths, &files], from);
    for mark in &marks {
        draw(&mut svg, mark);
    }
    svg.push_str("</svg>");
    let legend = if in_cells { Vec::new() } else { legend };
    Ok(Scatter { svg, legend, in_cells })
}

fn points(table: &Table) -> Result<(Vec<Point<'_>>, Vec<Shape>)> {
    let (ids, groups) = (table.whole_texts("instance_id")?, table.whole_texts("group_id")?);
    let (slugs, tiers) = (table.whole_texts("slug")?, table.whole_texts("tier")?);
    let (lengths, files) = (table.whole_numbers("trace_length")?, table.whole_numbers("unique_files")?);
    let top = table.lists("hard_axes")?;
    let (shapes, legend) = shapes(&slugs);
    let several = legend.len() > 1;
    let point = |at: usize| Point {
        id: ids[at],
        slug: several.then_some(slugs[at]),
        group: groups[at],
        tier: tiers[at],
        length: lengths[at].max(1),
        files: files[at].max(1),
        top: !top[at].is_empty(),
        shape: shapes[slugs[at]],
    };
    Ok(((0..ids.len()).map(point).collect(), legend))
}

/// A shape for each of the repositories with most instances, and one for all others together.
fn shapes<'a>(slugs: &[&'a str]) -> (BTreeMap<&'a str, usize>, Vec<Shape>) {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for slug in slugs {
        *sizes.entry(slug).or_default() += 1;
    }
    let mut order: Vec<&str> = sizes.keys().copied().collect();
    order.sort_by_key(|slug| std::cmp::Reverse(sizes[slug]));
    let own = if order.len() > SHAPES.len() { SHAPES.len() - 1 } else { order.len() };
    let legend = |(at, slug): (usize, &&str)| Shape { path: SHAPES[at], text: (*slug).to_owned() };
    let mut legend: Vec<Shape> = order.iter().take(own).enumerate().map(legend).collect();
    if order.len() > own {
        legend.push(Shape { path: SHAPES[own], text: format!("{} others", order.len() - own) });
    }
    (order.into_iter().enumerate().map(|(at, slug)| (slug, at.min(own))).collect(), legend)
}

struct Mark<'a, 'p> {
    members: Vec<&'p Point<'a>>,
    x: f64,
    y: f64,
    radius: f64,
    shape: usize,
    /// Whether it says how many it stands for.
    numbered: bool,
}

/// Points by a key, those of most instances first, so that the others lie on them.
fn together<'a, 'p, K: Ord>(
    points: &'p [Point<'a>],
    key: impl Fn(&'p Point<'a>) -> K,
) -> Vec<(K, Vec<&'p Point<'a>>)> {
    let mut found: BTreeMap<K, Vec<&'p Point<'a>>> = BTreeMap::new();
    for point in points {
        found.entry(key(point)).or_default().push(point);
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    found
}

/// The marks, and whether each stands for a cell: where there are too many, or most of many lie on each other.
fn marks<'a, 'p>(points: &'p [Point<'a>], axes: &[Axis; 2]) -> (Vec<Mark<'a, 'p>>, bool) {
    let (single, cells) = (single(points, axes), cells(points, axes));
    let is_crowded = single.len() > FEW_MARKS && 2 * single.len() > 3 * cells.len();
    if single.len() > MOST_MARKS || is_crowded { (cells, true) } else { (single, false) }
}

/// A mark for the instances of one repository that have equal values; its area is their number.
fn single<'a, 'p>(points: &'p [Point<'a>], axes: &[Axis; 2]) -> Vec<Mark<'a, 'p>> {
    let found = together(points, |one| (one.length, one.files, one.tier, one.shape, one.top));
    let mark =
        |((length, files, _, shape, _), members): ((i64, i64, _, usize, _), Vec<&'p Point<'a>>)| Mark {
            x: axes[0].place(real(length)),
            y: axes[1].place(real(files)),
            radius: (RADIUS * (members.len() as f64).sqrt()).min(LARGEST),
            shape,
            numbered: members.len() > 1,
            members,
        };
    found.into_iter().map(mark).collect()
}

/// A mark for the instances of one tier in one cell, in their middle; its area is their share of those of the fullest cell.
fn cells<'a, 'p>(points: &'p [Point<'a>], axes: &[Axis; 2]) -> Vec<Mark<'a, 'p>> {
    let cell = |axis: &Axis, value: i64| (axis.place(real(value)) / CELL).round() as i64;
    let levels: BTreeSet<i64> = points.iter().map(|one| one.files).collect();
    let level = |files| if levels.len() > MOST_LEVELS { cell(&axes[1], files) } else { files };
    let found = together(points, |one| (cell(&axes[0], one.length), level(one.files), one.tier, one.top));
    let most = found.first().map_or(1, |(_, members)| members.len()) as f64;
    let middle = |members: &[&Point<'_>], axis: usize, of: fn(&Point<'_>) -> i64| {
        members.iter().map(|one| axes[axis].place(real(of(one)))).sum::<f64>() / members.len() as f64
    };
    let mark = |(_, members): (_, Vec<&'p Point<'a>>)| Mark {
        x: middle(&members, 0, |one| one.length),
        y: middle(&members, 1, |one| one.files),
        radius: (CELL / 2.0 * (members.len() as f64 / most).sqrt()).max(2.2),
        shape: 0,
        numbered: false,
        members,
    };
    found.into_iter().map(mark).collect()
}

fn grid(svg: &mut String, axes: &[Axis; 2]) {
    let [left, right, top, bottom] = FRAME;
    // On a phone, where numbers are larger, only those that lie wider apart are shown.
    let wide = axes[0].ticks(62.0);
    for tick in axes[0].ticks(46.0) {
        let (x, text) = (axes[0].place(tick), number_text(tick));
        let class = if wide.contains(&tick) { "" } else { " class=\"minor\"" };
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>\
             <text{class} x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 20.0
        );
    }
    for tick in axes[1].ticks(28.0) {
        let (y, text) = (axes[1].place(tick), number_text(tick));
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 7.0,
            y + 5.0
        );
    }
    let _ = write!(
        svg,
        "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">trace length (calls, logarithmic)</text>\
         <text class=\"name\" transform=\"translate(14 {:.1})rotate(-90)\" text-anchor=\"middle\">unique files (logarithmic)</text>",
        f64::midpoint(left, right),
        HEIGHT - 8.0,
        f64::midpoint(top, bottom),
    );
}

/// Where tiers begin: an instance is of the higher of the two that its values have.
fn boundaries(svg: &mut String, axes: &[Axis; 2], values: [&[i64]; 2], from: [[Option<i64>; 2]; 2]) {
    let [left, right, top, bottom] = FRAME;
    let mut start = left;
    for (lower, from) in ["easy", "medium"].into_iter().zip(from) {
        let x = from[0].map_or(right, |value| between(&axes[0], values[0], value));
        let y = from[1].map_or(top, |value| between(&axes[1], values[1], value));
        let _ = write!(svg, "<path class=\"bound\" d=\"M{x:.1} {bottom}V{y:.1}H{left}\"/>");
        labelled(svg, x, lower, x - start > 56.0);
        start = x;
    }
    labelled(svg, right, "hard", right - start > 56.0);
}

/// The name of a tier on the axis, where no instance is, left of its end.
fn labelled(svg: &mut String, x: f64, tier: &str, fits: bool) {
    if fits {
        let (x, y) = (x - 5.0, FRAME[3] - 5.0);
        let _ =
            write!(svg, "<text class=\"region\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{tier}</text>");
    }
}

/// The middle between a value and the next smaller one.
fn between(axis: &Axis, values: &[i64], value: i64) -> f64 {
    let below = values.iter().copied().filter(|one| *one < value).max();
    let above = axis.place(real(value));
    below.map_or(above, |below| f64::midpoint(axis.place(real(below)), above))
}

fn draw(svg: &mut String, mark: &Mark<'_, '_>) {
    let Mark { x, y, radius, .. } = mark;
    let first = mark.members[0];
    let tier = if ["easy", "medium", "hard"].contains(&first.tier) { first.tier } else { "" };
    let _ = write!(
        svg,
        "<a href=\"{}\" class=\"mark {tier}\" tabindex=\"-1\" transform=\"translate({x:.1} {y:.1})\"><title>{}</title><g>",
        escaped(&target(mark)),
        escaped(&title(mark))
    );
    if first.top {
        let _ = write!(svg, "<circle class=\"ring\" r=\"{:.1}\"/>", radius * 1.15 + 3.0);
    }
    let _ = write!(svg, "<path transform=\"scale({radius:.1})\" d=\"{}\"/>", SHAPES[mark.shape]);
    if mark.numbered {
        let (count, away) = (mark.members.len(), radius + if first.top { 5.0 } else { 3.0 });
        let _ = write!(svg, "<text x=\"{away:.1}\" y=\"{:.1}\">{count}</text>", -radius * 0.6);
    }
    svg.push_str("</g></a>");
}

/// The instance, or the list of just those.
fn target(mark: &Mark<'_, '_>) -> String {
    let members = &mark.members;
    if let [only] = members[..] {
        return format!("#i={}", address_part(only.id));
    }
    let (lengths, files) = (range(members, |one| one.length), range(members, |one| one.files));
    let query = format!("length:{}..{} files:{}..{}", lengths.0, lengths.1, files.0, files.1);
    let first = members[0];
    let (tier, top) = (address_part(first.tier), if first.top { "either" } else { "neither" });
    let mut target = format!("#instances?q={}&tier={tier}&top={top}", address_part(&query));
    if let Some(slug) = first.slug.filter(|slug| members.iter().all(|one| one.slug == Some(*slug))) {
        let _ = write!(target, "&repository={}", address_part(slug));
    }
    target
}

/// The least and the most of a value.
fn range(members: &[&Point<'_>], of: fn(&Point<'_>) -> i64) -> (i64, i64) {
    let values = || members.iter().map(|one| of(one));
    (values().min().unwrap_or_default(), values().max().unwrap_or_default())
}

fn title(mark: &Mark<'_, '_>) -> String {
    let first = mark.members[0];
    let mut text = String::new();
    if mark.members.len() > 1 {
        let _ = writeln!(text, "{} instances", mark.members.len());
    }
    for one in mark.members.iter().take(MOST_NAMED) {
        let slug = one.slug.map(|slug| format!("{slug} ")).unwrap_or_default();
        let _ = writeln!(text, "{slug}{}", one.group);
    }
    if mark.members.len() > MOST_NAMED {
        let _ = writeln!(text, "and {} more", mark.members.len() - MOST_NAMED);
    }
    let top = if first.top { ", top subset" } else { "" };
    let values = |of: fn(&Point<'_>) -> i64| {
        let (least, most) = range(&mark.members, of);
        let text = |value| number_text(real(value));
        if least == most { text(least) } else { format!("{}–{}", text(least), text(most)) }
    };
    let (calls, files) = (values(|one| one.length), values(|one| one.files));
    let _ = write!(text, "{calls} calls, {files} files; {}{top}", first.tier);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(id: &'static str, length: i64, files: i64) -> Point<'static> {
        let group = "tests/a.py::<b>";
        Point { id, slug: Some("a/b"), group, tier: "easy", length, files, top: false, shape: 0 }
    }

    fn axes() -> [Axis; 2] {
        [Axis::of(&[1, 1000], 0.0, 600.0), Axis::of(&[1, 20], 400.0, 0.0)]
    }

    #[test]
    fn a_mark_leads_to_its_instance_or_to_the_list_of_those_that_coincide() {
        let points = [point("a", 7, 3), point("b", 7, 3), point("c&", 90, 3)];
        let marks = single(&points, &axes());
        assert_eq!(marks.len(), 2);
        let mut svg = String::new();
        for mark in &marks {
            draw(&mut svg, mark);
        }
        let list =
            "#instances?q=length%3A7..7%20files%3A3..3&#38;tier=easy&#38;top=neither&#38;repository=a%2Fb";
        assert!(svg.contains(&format!("href=\"{list}\"")) && svg.contains(">2</text>"), "{svg}");
        assert!(svg.contains("<title>2 instances\na/b tests/a.py::&#60;b&#62;\n"), "{svg}");
        assert!(svg.contains("href=\"#i=c%26\"") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn cells_put_neighbours_together() {
        let points: Vec<_> = (1..=1000).map(|length| point("a", length, 2)).collect();
        assert_eq!(single(&points, &axes()).len(), 1000);
        let marks = cells(&points, &axes());
        assert!(marks.len() < 45, "{}", marks.len());
        assert_eq!(marks.iter().map(|mark| mark.members.len()).sum::<usize>(), 1000);
        assert!(marks.iter().all(|mark| mark.radius <= CELL / 2.0));
    }

    #[test]
    fn a_mark_of_a_cell_stands_where_its_instances_are() {
        let mut points: Vec<_> = (0..9).map(|at| point("a", 100 + at, 7)).collect();
        points.push(Point { top: true, ..point("b", 108, 7) });
        points.push(Point { tier: "medium", ..point("c", 109, 8) });
        let marks = cells(&points, &axes());
        assert_eq!(marks.len(), 3, "by tier, files and top");
        for mark in &marks {
            let files = mark.members[0].files;
            assert!((mark.y - axes()[1].place(real(files))).abs() < 1e-9, "{files} files");
        }
        assert!(marks[0].x < marks[1].x && marks[1].x < marks[2].x);
    }

    #[test]
    fn cells_take_the_place_of_marks_that_lie_on_each_other() {
        let points = |number: i64, step: i64, files: i64| -> Vec<Point<'static>> {
            (0..number).map(|at| point("a", 1 + at * step, 1 + at % files)).collect()
        };
        let in_cells = |points: &[Point<'static>]| marks(points, &axes()).1;
        assert!(!in_cells(&points(90, 1, 1)), "few");
        assert!(in_cells(&points(300, 1, 1)), "many on one line");
        assert!(!in_cells(&points(120, 8, 20)), "many, far apart");
        assert!(in_cells(&points(500, 2, 20)), "too many");
    }

    #[test]
    fn repositories_share_the_last_shape_where_there_are_too_many() {
        let names: Vec<String> = (0..9).map(|at| format!("made/up{at}")).collect();
        let slugs: Vec<&str> = names.iter().map(String::as_str).chain(["made/up8"]).collect();
        let (of, legend) = shapes(&slugs);
        assert_eq!(of["made/up8"], 0, "the one with most instances");
        assert_eq!(of.values().filter(|shape| **shape == 5).count(), 4);
        assert_eq!((legend.len(), legend[5].text.as_str()), (6, "4 others"));
        assert_eq!(shapes(&slugs[..6]).1.len(), 6, "six have their own");
    }
}
