//! The pictures. Their colours are of the palette of Okabe and Ito ("Color Universal Design", 2008), and nothing is told
//! by colour alone.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::overload::{BREAKER, BUDGET, CAPACITY, END, EQUAL, Load, NO_JITTER, OUTAGE, SLICE, Seen, play};
use crate::spread::{JITTERS, POLICY, waits};

const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const TEXT: RGBColor = RGBColor(40, 40, 40);
const SHADE: RGBColor = RGBColor(222, 222, 222);

const WIDTH: i32 = 800;
const HEIGHT: i32 = 680;
const HEADER: i32 = 28;
/// The line above each panel.
const ROW_TITLE: i32 = 27;
const Y_TITLE: i32 = 24;
const Y_NUMBERS: i32 = 46;
const RIGHT: i32 = 14;
/// The numbers and the title of the x axis, below the last row.
const X_LABELS: i32 = 48;

type Drawn<T = ()> = Result<T, Box<dyn Error>>;
type Area<DB> = DrawingArea<DB, Shift>;
type Panel<'a, DB> = ChartContext<'a, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Writes `spread` and `recovery` into `folder`, as SVG and as PNG.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write(folder: &Path) -> Drawn {
    const SIZE: (u32, u32) = (WIDTH as u32, HEIGHT as u32);
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).map_err(|_| "the font cannot be read")?;
    let seen = [NO_JITTER, EQUAL, BUDGET, BREAKER].map(|strategy| (strategy.name, play(&strategy)));
    spread(&SVGBackend::new(&folder.join("spread.svg"), SIZE).into_drawing_area())?;
    spread(&BitMapBackend::new(&folder.join("spread.png"), SIZE).into_drawing_area())?;
    recovery(&SVGBackend::new(&folder.join("recovery.svg"), SIZE).into_drawing_area(), &seen)?;
    recovery(&BitMapBackend::new(&folder.join("recovery.png"), SIZE).into_drawing_area(), &seen)
}

/// The pictures in `folder`, each whole in a link definition of Markdown: a page of rustdoc has no files beside it.
///
/// # Errors
///
/// When a picture cannot be read.
pub fn definitions(folder: &Path) -> Drawn<String> {
    let mut definitions = String::new();
    for name in ["spread", "recovery"] {
        write!(definitions, "[{name}]: data:image/svg+xml,")?;
        for byte in fs::read(folder.join(name).with_extension("svg"))? {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'/' | b',' => definitions.push(byte.into()),
                _ => write!(definitions, "%{byte:02X}")?,
            }
        }
        definitions.push('\n');
    }
    Ok(definitions)
}

/// How many clients wait how long, for each jitter: on the way up, and at the cap.
fn spread<DB: DrawingBackend<ErrorType: 'static>>(area: &Area<DB>) -> Drawn {
    const BIN: u32 = 20;
    const HIGHEST: u32 = 75;
    const COLUMNS: [(&str, usize); 2] =
        [("4th wait: 800 ms before jitter", 4), ("10th wait: at the cap of 2000 ms", 10)];

    let (header, rows) = frame(area, "clients per 20 ms of wait, of 1000 that failed together", JITTERS.len())?;
    for ((heading, _), cell) in COLUMNS.iter().zip(header.split_evenly((1, 2))) {
        cell.draw(&Text::new(*heading, (Y_NUMBERS, 6), font(17)))?;
    }
    for ((row, x_title), (name, jitter)) in labelled(&rows, "wait in ms").zip(JITTERS) {
        for (cell, (_, failures)) in row.split_evenly((1, 2)).iter().zip(COLUMNS) {
            let mut bins = [0; 2100 / BIN as usize];
            for wait in waits(POLICY.jitter(jitter), 1000, failures) {
                bins[wait.as_millis() as usize / BIN as usize] += 1;
            }
            let bins = || (0..).step_by(BIN as usize).map(f64::from).zip(bins);

            cell.draw(&Text::new(name, (Y_NUMBERS, 9), font(16)))?;
            let mut panel = panel(cell, 0.0..2100.0, HIGHEST, x_title)?;
            panel.draw_series(AreaSeries::new(steps(bins(), f64::from(BIN), HIGHEST), 0.0, BLUE))?;
            for (start, clients) in bins().filter(|(_, clients)| *clients > HIGHEST) {
                let style = font(15).pos(Pos::new(HPos::Right, VPos::Center));
                panel.draw_series([Text::new(format!("{clients} clients ↑"), (start - 15.0, 30.0), style)])?;
            }
        }
    }
    Ok(area.present()?)
}

/// What clients ask of a service that was down, and what it answers.
fn recovery<DB: DrawingBackend<ErrorType: 'static>>(area: &Area<DB>, seen: &[(&str, Seen)]) -> Drawn {
    const HIGHEST: u32 = 2500;
    const FIRST: Duration = OUTAGE.start.saturating_sub(SLICE.saturating_mul(4));

    let since_back = |time: Duration| time.as_secs_f64() - OUTAGE.end.as_secs_f64();
    let (begin, end, highest) = (since_back(FIRST), since_back(END), f64::from(HIGHEST));
    let (header, rows) = frame(area, "requests per second", seen.len())?;
    legend(&header)?;
    for ((row, x_title), (name, seen)) in labelled(&rows, "seconds since the service came back").zip(seen) {
        let line = |of: fn(&Load) -> u32| {
            let loads = seen.load.iter().zip(0..).map(move |(load, slice)| (SLICE * slice, of(load)));
            let shown = loads.filter(|(time, _)| *time >= FIRST).map(|(time, value)| (since_back(time), value));
            steps(shown, SLICE.as_secs_f64(), HIGHEST)
        };

        row.draw(&Text::new(*name, (Y_NUMBERS, 9), font(16)))?;
        let recovery = seen
            .recovery()
            .map_or_else(|| "not well again".into(), |time| format!("well again after {} s", time.as_secs_f64()));
        let result = format!("{} requests wasted, {recovery}, peak {}/s", seen.wasted_after(), seen.peak_after());
        let right = font(15).pos(Pos::new(HPos::Right, VPos::Top));
        row.draw(&Text::new(result, (WIDTH - Y_TITLE - RIGHT, 9), right))?;

        let mut panel = panel(row, begin..end, HIGHEST, x_title)?;
        panel.draw_series([Rectangle::new([(since_back(OUTAGE.start), 0.0), (0.0, highest)], SHADE.filled())])?;
        panel.draw_series(AreaSeries::new(line(Load::requests_per_second), 0.0, ORANGE.mix(0.6)))?;
        let capacity = [begin, end].map(|time| (time, f64::from(CAPACITY)));
        panel.draw_series(DashedLineSeries::new(capacity, 5, 4, TEXT.stroke_width(1)))?;
        panel.draw_series(LineSeries::new(line(Load::answered_per_second), BLUE.stroke_width(2)))?;
    }
    Ok(area.present()?)
}

/// What the lines and areas of [`recovery`] mean.
fn legend<DB: DrawingBackend<ErrorType: 'static>>(header: &Area<DB>) -> Drawn {
    let box_at = |x| [(x, 6), (x + 24, 20)];
    let line_at = |x| [(x, 13), (x + 24, 13)];
    header.draw(&Rectangle::new(box_at(44), ORANGE.mix(0.6).filled()))?;
    header.draw(&PathElement::new(line_at(190), BLUE.stroke_width(2)))?;
    header.draw(&PathElement::new([(360, 13), (367, 13)], TEXT.stroke_width(1)))?;
    header.draw(&PathElement::new([(372, 13), (379, 13)], TEXT.stroke_width(1)))?;
    header.draw(&Rectangle::new(box_at(590), SHADE.filled()))?;
    for (x, meaning) in
        [(74, "requests"), (220, "answered in time"), (390, "what the service can do"), (620, "service down")]
    {
        header.draw(&Text::new(meaning, (x, 6), font(16)))?;
    }
    Ok(())
}

/// Fills the background and writes the title of the y axes; returns the header and the rows, the last with room for the
/// labels of the x axis.
fn frame<DB: DrawingBackend<ErrorType: 'static>>(
    area: &Area<DB>,
    y_title: &str,
    rows: usize,
) -> Drawn<(Area<DB>, Vec<Area<DB>>)> {
    area.fill(&WHITE)?;
    let style = font(16).transform(FontTransform::Rotate270).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw(&Text::new(y_title, (4, (HEADER + HEIGHT - X_LABELS) / 2), style))?;
    let (header, below) = area.split_horizontally(Y_TITLE).1.split_vertically(HEADER);
    let row_height = (HEIGHT - HEADER - X_LABELS) / rows as i32;
    let breaks: Vec<i32> = (1..rows as i32).map(|row| row * row_height).collect();
    Ok((header, below.split_by_breakpoints([0; 0], breaks)))
}

/// The rows, of which the last shows the title of the x axis.
fn labelled<'a, DB: DrawingBackend>(
    rows: &'a [Area<DB>],
    x_title: &'a str,
) -> impl Iterator<Item = (&'a Area<DB>, Option<&'a str>)> {
    rows.iter().enumerate().map(move |(row, area)| (area, (row + 1 == rows.len()).then_some(x_title)))
}

/// Empty axes from 0 to `highest`, with numbers at the x axis where that has a title.
fn panel<'a, DB: DrawingBackend<ErrorType: 'static>>(
    cell: &Area<DB>,
    x: Range<f64>,
    highest: u32,
    x_title: Option<&str>,
) -> Drawn<Panel<'a, DB>> {
    let mut panel = ChartBuilder::on(cell)
        .margin_top(ROW_TITLE)
        .margin_right(RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, Y_NUMBERS)
        .set_label_area_size(LabelAreaPosition::Bottom, x_title.map_or(0, |_| X_LABELS))
        .build_cartesian_2d(x, 0.0..f64::from(highest))?;
    panel
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(SHADE)
        .axis_style(TEXT)
        .label_style(font(15))
        .axis_desc_style(font(16))
        .x_desc(x_title.unwrap_or_default())
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_labels(7)
        .y_labels(4)
        .draw()?;
    Ok(panel)
}

/// The corners of a line that keeps each value for `width`, cut off at `highest`.
fn steps(values: impl Iterator<Item = (f64, u32)>, width: f64, highest: u32) -> impl Iterator<Item = (f64, f64)> {
    values.flat_map(move |(start, value)| [start, start + width].map(|x| (x, f64::from(value.min(highest)))))
}

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&TEXT)
}
