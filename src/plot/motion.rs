//! A stroboscopic picture of the mechanism.

use super::axis::{Axis, Frame, LABEL, SMALL, drawable, extent, linear_ticks, number};
use super::forces::{Forces, Surface};
use super::goal::{boundary, symbol};
use super::panel::{Ink, MOST_ROWS, ROW, Row, goal_rows, legend, shorten};
use super::project::{View, World, clip, place};
use super::scene::{BodyDot, feet, geometry, instants, traced};
use super::sheet::{Anchor, GUIDE, INK, MUTED, Point, Rect, Rgb, Sheet, WHITE, text_width};
use crate::format::recording::{GoalKind, Place, Recording};
use nalgebra::{Quaternion, UnitQuaternion};

/// Knots at which the plane of motion is looked for, and knots a path is traced through.
const SAMPLED: usize = 200;
const TRACED: usize = 1500;
/// Free pixels around the picture inside its frame: room for ground marks and thick lines.
const PAD: f64 = 26.0;
/// Room for the vertical axis (or the triad), and for the horizontal one (or the scale bar).
const LEFT: f64 = 92.0;
const FOOT: f64 = 56.0;

/// The path of a point.
const TRACE: Ink = Ink {
    color: Rgb(0x94, 0x94, 0x94),
    dash: None,
    width: 1.0,
};

/// Share of a body's colour that its path has.
const FAINT: f64 = 0.7;

/// Axes of an orientation that is wanted, px.
const AXES: f64 = 18.0;

/// A place that a body is wanted at, in metres on the page.
struct Mark {
    kind: GoalKind,
    body: Option<usize>,
    at: Point,
    /// Directions of the body's axes, where they are wanted.
    axes: Vec<Point>,
    /// Towards what an inequality allows.
    allowed: Option<Point>,
}

impl Mark {
    fn new(place: &Place, view: &View) -> Option<Mark> {
        let fine = place.point.iter().all(|v| drawable(*v).is_some());
        let turn = place
            .orientation
            .and_then(|[w, x, y, z]| UnitQuaternion::try_new(Quaternion::new(w, x, y, z), 1e-9));
        let axes = turn.map(|q| [0, 1, 2].map(|i| q * World::ith(i, 1.0)));
        fine.then(|| Mark {
            kind: place.kind,
            body: place.body,
            at: view.project(&place.point.into()),
            axes: axes.iter().flatten().map(|a| view.project(a)).collect(),
            allowed: place.allowed.map(|a| view.project(&a.into())),
        })
    }

    fn draw(&self, sheet: &mut Sheet, frame: &Frame, color: Rgb) {
        let (x, y) = frame.at(self.at);
        for (a, b) in &self.axes {
            sheet.line((x, y), (x + AXES * a, y - AXES * b), color, 1.0);
        }
        match self.allowed {
            Some((a, b)) => boundary(sheet, (x, y), (a, -b), color),
            None => symbol(sheet, self.kind, (x, y), color),
        }
    }
}

/// The mechanism at one instant, in metres on the page, y up.
struct Pose2 {
    /// Body and its line.
    lines: Vec<(usize, Vec<Point>)>,
    /// Body and its dot.
    dots: Vec<(usize, Point)>,
    /// Parent of a sliding joint, and the line to its child.
    links: Vec<(usize, [Point; 2])>,
}

/// Everything the picture shows, projected.
pub(super) struct Motion {
    view: View,
    instants: Vec<Pose2>,
    /// Paths of points.
    traces: Vec<(Ink, Vec<Point>)>,
    ground_lines: Vec<[Point; 2]>,
    ground_dots: Vec<Point>,
    ground: Vec<Surface>,
    forces: Forces,
    places: Vec<Mark>,
    x: (f64, f64),
    y: (f64, f64),
    legend: Vec<Row>,
    /// Ends the legend.
    notes: Vec<Row>,
    caption: String,
    /// Colour per body.
    colors: Vec<Rgb>,
}

impl Motion {
    /// `None` when there are no poses, or nothing of them can be drawn.
    pub(super) fn new(recording: &Recording) -> Option<Motion> {
        let knots = recording.time.len().min(recording.poses.len());
        let chosen = instants(recording.time.get(..knots)?);
        let (lines, dots) = geometry(recording);
        // The view must hold between the instants, too.
        let mut sampled: Vec<usize> = (0..knots).step_by(knots.div_ceil(SAMPLED).max(1)).collect();
        sampled.extend(&chosen);
        sampled.sort_unstable();
        sampled.dedup();
        let track = |body, point| -> Vec<World> {
            let at = |k: &usize| place(recording, *k, Some(body), point);
            sampled.iter().filter_map(at).collect()
        };
        let of_lines = lines.iter().flat_map(|(body, points)| {
            let stride = points.len() / 30 + 1;
            points.iter().step_by(stride).map(|p| (*body, *p))
        });
        let tracks: Vec<Vec<World>> = of_lines
            .chain(dots.iter().copied())
            .map(|(body, p)| track(body, p))
            .collect();
        let view = View::choose(&tracks);
        let flat = |k: usize, body: usize, p: &[f64; 3]| {
            Some(view.project(&place(recording, k, Some(body), *p)?))
        };
        let instants: Vec<Pose2> = chosen
            .iter()
            .map(|k| Pose2 {
                lines: lines
                    .iter()
                    .map(|(b, ps)| (*b, ps.iter().filter_map(|p| flat(*k, *b, p)).collect()))
                    .collect(),
                dots: dots
                    .iter()
                    .filter_map(|(b, p)| Some((*b, flat(*k, *b, p)?)))
                    .collect(),
                links: (recording.links.iter())
                    .filter_map(|l| {
                        let from = flat(*k, l.parent, &l.parent_point)?;
                        Some((l.parent, [from, flat(*k, l.child, &l.child_point)?]))
                    })
                    .collect(),
            })
            .collect();
        let feet = feet(recording);
        let traced: Vec<BodyDot> = traced(recording, |b, p| {
            track(b, p).windows(2).map(|w| (w[1] - w[0]).norm()).sum()
        });
        let path = |(body, point): &BodyDot| -> Vec<Point> {
            let stride = knots.div_ceil(TRACED).max(1);
            let all = (0..knots).step_by(stride).chain([knots.saturating_sub(1)]);
            all.filter_map(|k| flat(k, *body, point)).collect()
        };
        let paths: Vec<Vec<Point>> = traced.iter().map(path).collect();
        let fixed = |p: &[f64; 3]| Some(view.project(&place(recording, 0, None, *p)?));
        let ground_dots: Vec<Point> = recording
            .dots
            .iter()
            .filter(|d| d.body.is_none())
            .filter_map(|d| fixed(&d.point))
            .collect();
        let rails = recording.lines.iter().filter(|l| l.body.is_none());
        let ground_lines: Vec<[Point; 2]> = rails
            .flat_map(|l| {
                l.points
                    .windows(2)
                    .filter_map(|w| Some([fixed(&w[0])?, fixed(&w[1])?]))
            })
            .take(5000)
            .collect();
        let ground: Vec<Surface> = (recording.ground.iter())
            .filter_map(|g| Surface::new(g, &view))
            .collect();

        let shown = || {
            let lines = instants
                .iter()
                .flat_map(|i| i.lines.iter().flat_map(|l| l.1.iter()));
            lines
                .chain(instants.iter().flat_map(|i| i.dots.iter().map(|d| &d.1)))
                .chain(
                    instants
                        .iter()
                        .flat_map(|i| i.links.iter().flat_map(|l| &l.1)),
                )
                .chain(paths.iter().flatten())
        };
        shown().next()?;
        let places: Vec<Mark> = (recording.places.iter())
            .filter_map(|p| Mark::new(p, &view))
            .collect();
        let surfaces = || ground.iter().flat_map(|g| &g.corners);
        let wanted = || places.iter().map(|p| &p.at);
        let every = || {
            shown()
                .chain(&ground_dots)
                .chain(surfaces())
                .chain(wanted())
        };
        let (x, y) = (extent(every().map(|p| p.0))?, extent(every().map(|p| p.1))?);
        let size = (x.1 - x.0).max(y.1 - y.0);
        let forces = Forces::new(recording, &chosen, &view, size);
        // Rails may be much longer than the motion: they are cut a little beyond it.
        let reach = if size > 0.0 { 0.2 * size } else { 0.5 };
        let wide = |r: (f64, f64)| (r.0 - reach, r.1 + reach);
        let ground_lines: Vec<_> = ground_lines
            .iter()
            .filter_map(|[a, b]| clip(*a, *b, wide(x), wide(y)))
            .collect();
        let ends = || {
            let fixed = ground_lines.iter().flatten();
            fixed.chain(every()).chain(forces.points())
        };
        let (x, y) = (extent(ends().map(|p| p.0))?, extent(ends().map(|p| p.1))?);

        let mut drawn: Vec<usize> = lines
            .iter()
            .map(|l| l.0)
            .chain(dots.iter().map(|d| d.0))
            .chain(recording.links.iter().map(|l| l.parent))
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        let mut colors = vec![INK; drawn.last().map_or(0, |b| b + 1)];
        let mut rows: Vec<Row> = Vec::new();
        for (index, body) in drawn.iter().enumerate() {
            let ink = Ink {
                dash: None,
                ..Ink::nth(index)
            };
            colors[*body] = ink.color;
            if let Some(name) = recording.bodies.get(*body) {
                rows.push((Some(ink.into()), name.clone()));
            }
        }
        // a single path is grey, several have the colours of their bodies
        let ink = |body: usize| Ink {
            color: if feet.len() > 1 {
                colors[body].mix(WHITE, FAINT)
            } else {
                TRACE.color
            },
            ..TRACE
        };
        let rows_of_paths: Vec<Row> = (traced.iter())
            .flat_map(|t| trace_legend(recording, *t, ink(t.0), feet.is_empty()))
            .collect();
        let traces = (traced.iter().zip(paths))
            .map(|((body, _), path)| (ink(*body), path))
            .collect();
        let notes = (rows_of_paths.into_iter())
            .chain(goal_rows(places.iter().map(|p| (p.kind, true))))
            .chain(Surface::legend(&ground))
            .chain(forces.legend())
            .collect();
        let caption = caption(recording, &chosen);
        Some(Motion {
            view,
            instants,
            traces,
            ground_lines,
            ground_dots,
            ground,
            forces,
            places,
            x,
            y,
            legend: rows,
            notes,
            caption,
            colors,
        })
    }

    /// The times shown, and how to tell early from late.
    pub(super) fn caption(&self) -> &str {
        &self.caption
    }

    /// Height the picture wants at this width, at most `most`.
    pub(super) fn height(&self, width: f64, most: f64) -> f64 {
        let frame = self.frame(Rect::new(0.0, 0.0, width, most));
        let rows = self.legend.len().min(MOST_ROWS) + self.notes.len();
        (frame.rect().height() + FOOT + 12.0).max(12.0 + ROW * rows as f64)
    }

    fn legend_width(&self, area: Rect) -> f64 {
        let widest = self
            .legend
            .iter()
            .chain(&self.notes)
            .take(200)
            .map(|r| text_width(&r.1, SMALL))
            .fold(60.0, f64::max);
        (widest + 34.0).min(area.width() / 4.0)
    }

    /// The axes in `area`: one metre is as long along both.
    pub(super) fn frame(&self, area: Rect) -> Frame {
        let room_x = (area.width() - LEFT - 20.0 - self.legend_width(area)).max(80.0);
        let room_y = (area.height() - FOOT - 12.0).max(80.0);
        let (mut w, mut h) = (self.x.1 - self.x.0, self.y.1 - self.y.0);
        let size = w.max(h);
        // A mechanism that is a point, up to rounding, is shown in a window of a metre or its distance.
        let far = [self.x.0, self.x.1, self.y.0, self.y.1]
            .into_iter()
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        if size < 1e-290 || size < 1e-11 * far {
            (w, h) = (far.max(1.0), far.max(1.0));
        }
        let scale = ((room_x - 2.0 * PAD) / w).min((room_y - 2.0 * PAD) / h);
        let across = (w * scale + 2.0 * PAD).clamp(0.6 * room_x, room_x);
        // From the width, so that a frame drawn in the height it asked for is the same frame.
        let along = (h * scale + 2.0 * PAD).clamp(room_y.min(0.3 * room_x), room_y);
        let (left, top) = (area.x0 + LEFT, area.y0 + 12.0);
        let axis = |range: (f64, f64), pixels: (f64, f64), name: usize| {
            let (middle, half) = (
                (range.0 + range.1) / 2.0,
                (pixels.1 - pixels.0).abs() / scale / 2.0,
            );
            let range = (middle - half, middle + half);
            let label = self
                .view
                .plane
                .map_or(String::new(), |names| format!("{} [m]", names[name]));
            Axis {
                range,
                pixels,
                ticks: linear_ticks(range, (pixels.1 - pixels.0).abs() / 75.0, false),
                label,
            }
        };
        Frame {
            x: axis(self.x, (left, left + across), 0),
            y: axis(self.y, (top + along, top), 1),
            name_x: area.x0 + LABEL,
            foot: true,
        }
    }

    pub(super) fn draw(&self, sheet: &mut Sheet, area: Rect) {
        let frame = self.frame(area);
        let rect = frame.rect();
        for surface in &self.ground {
            surface.fill(sheet, &frame);
        }
        match self.view.plane {
            Some(_) => frame.draw(sheet),
            None => self.draw_triad(sheet, &frame),
        }
        for surface in &self.ground {
            surface.edge(sheet, &frame);
        }
        for line in &self.ground_lines {
            sheet.line(frame.at(line[0]), frame.at(line[1]), GUIDE, 2.0);
        }
        for (ink, path) in &self.traces {
            let path = path.iter().map(|p| frame.at(*p)).collect();
            sheet.path(path, ink.color, ink.width);
        }
        let last = self.instants.len().saturating_sub(1);
        for (i, instant) in self.instants.iter().enumerate() {
            // The only instant is the last one as well.
            self.draw_instant(
                sheet,
                &frame,
                instant,
                i as f64 / last.max(1) as f64,
                i == last,
            );
        }
        self.forces.draw(sheet, &frame, last);
        for place in &self.places {
            let of = |b: usize| self.colors.get(b).copied();
            place.draw(sheet, &frame, place.body.and_then(of).unwrap_or(INK));
        }
        for dot in &self.ground_dots {
            ground_mark(sheet, frame.at(*dot));
        }
        let mut rows = self.legend.clone();
        let fits = ((area.y1 - rect.y0) / ROW) as usize;
        shorten(&mut rows, fits.saturating_sub(self.notes.len()));
        rows.extend(self.notes.iter().cloned());
        legend(
            sheet,
            Rect::new(rect.x1 + 20.0, rect.y0, area.x1, rect.y1),
            &rows,
        );
    }

    /// The mechanism at `share` of the time, 0 to 1.
    fn draw_instant(
        &self,
        sheet: &mut Sheet,
        frame: &Frame,
        instant: &Pose2,
        share: f64,
        last: bool,
    ) {
        let tone = |color: Rgb| match last {
            true => color,
            false => color.mix(WHITE, 0.16 + 0.5 * share.powf(1.2)),
        };
        let color = |body: usize| self.colors.get(body).copied().unwrap_or(INK);
        for (body, points) in &instant.lines {
            let points = points.iter().map(|p| frame.at(*p)).collect();
            sheet.path(points, tone(color(*body)), if last { 3.5 } else { 2.0 });
        }
        for (body, ends) in &instant.links {
            let [from, to] = ends.map(|p| frame.at(p));
            sheet.line(from, to, tone(color(*body)), if last { 3.5 } else { 2.0 });
        }
        for (body, dot) in &instant.dots {
            // Joints are neutral, unless bodies have nothing else to show their colour with.
            let color = if instant.lines.is_empty() {
                color(*body)
            } else {
                INK
            };
            sheet.disc(frame.at(*dot), if last { 4.5 } else { 2.5 }, tone(color));
            if last {
                sheet.disc(frame.at(*dot), 2.0, WHITE);
            }
        }
    }

    /// Directions of the axes and a scale bar, beside and below the picture.
    fn draw_triad(&self, sheet: &mut Sheet, frame: &Frame) {
        let rect = frame.rect();
        let origin = (rect.x0 - LEFT + 36.0, rect.y1 - 4.0);
        for (name, (x, y)) in self.view.triad() {
            let end = (origin.0 + 34.0 * x, origin.1 - 34.0 * y);
            sheet.line(origin, end, INK, 1.5);
            let at = (origin.0 + 44.0 * x, origin.1 - 44.0 * y + 0.3 * SMALL);
            sheet.text(at, name, SMALL, Anchor::Middle, INK);
        }
        // The longest tick spacing that is about a fifth of the picture.
        let marks = &linear_ticks(frame.x.range, 5.0, false).marks;
        if let [(a, _), (b, _), ..] = marks.as_slice() {
            let length = frame.x.at(*b) - frame.x.at(*a);
            let (left, y) = (rect.x0, rect.y1 + 22.0);
            sheet.line((left, y), (left + length, y), INK, 1.5);
            for x in [left, left + length] {
                sheet.line((x, y - 4.0), (x, y + 4.0), INK, 1.5);
            }
            let text = format!("{} m", number(b - a, 3));
            sheet.text(
                (left + length + 10.0, y + 0.36 * SMALL),
                text,
                SMALL,
                Anchor::Start,
                INK,
            );
        }
    }
}

/// Which point the path is of.
fn trace_legend(
    recording: &Recording,
    (body, point): BodyDot,
    ink: Ink,
    with_point: bool,
) -> Vec<Row> {
    let name = recording.bodies.get(body).map_or("", String::as_str);
    let place = match point {
        [0.0, 0.0, 0.0] => "its center of mass".to_owned(),
        p => format!("its point {} m", p.map(|v| number(v, 3)).join(", ")),
    };
    let mut rows = vec![(Some(ink.into()), format!("path of {name}"))];
    if with_point || point == [0.0; 3] {
        rows.push((None, place));
    } else {
        rows[0].1.push_str("'s contact");
    }
    rows
}

fn caption(recording: &Recording, chosen: &[usize]) -> String {
    let time = |k: Option<&usize>| {
        k.and_then(|k| recording.time.get(*k))
            .copied()
            .and_then(drawable)
    };
    match (time(chosen.first()), time(chosen.last())) {
        (Some(a), _) if chosen.len() == 1 => format!("t = {} s", number(a, 4)),
        (Some(a), Some(b)) => format!(
            "t = {} s … {} s, faint to strong",
            number(a, 4),
            number(b, 4)
        ),
        _ => "first to last knot, faint to strong".to_owned(),
    }
}

/// A small hatched support below an anchor fixed to the world; reaches less than `PAD` around it.
fn ground_mark(sheet: &mut Sheet, at: Point) {
    let by = |dx: f64, dy: f64| (at.0 + dx, at.1 + dy);
    sheet.path(vec![by(-7.0, 11.0), at, by(7.0, 11.0)], MUTED, 1.5);
    sheet.line(by(-11.0, 11.0), by(11.0, 11.0), MUTED, 1.5);
    for x in [-8.0, -2.0, 4.0, 10.0] {
        sheet.line(by(x, 11.0), by(x - 4.0, 16.0), MUTED, 1.0);
    }
    sheet.disc(at, 4.0, INK);
    sheet.disc(at, 1.5, WHITE);
}
