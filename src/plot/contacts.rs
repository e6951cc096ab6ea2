//! Panels of what contacts do, summed per pair of bodies: stick and slip, forces, gap and slip.

use super::axis::{drawable, number};
use super::goal::Mark;
use super::panel::{BAR, BOUND, Curve, Ink, Panel, Row, decimate};
use super::sheet::{MUTED, Point, WHITE};
use crate::format::recording::{Channel, Contact, Group, LEAST_FORCE, Recording};

/// Surfaces that slide slower stick, m/s.
const SLOW: f64 = 1e-3;
/// Curves of a panel: pairs of bodies, the last one is all others.
const MOST: usize = 7;
/// Forces that peak at so many times their median are drawn on a logarithmic axis.
const PEAKS: f64 = 10.0;
/// Stretches of stick and slip closer than this share of the time are one.
const CLOSE: f64 = 1e-3;

/// Places of a contact's channels.
const GAP: usize = 0;
const NORMAL: usize = 1;
const FRICTION: usize = 2;
const SLIP: usize = 3;

/// A contact and its channels.
struct One<'a> {
    contact: &'a Contact,
    /// Gap, normal force, friction, slip.
    channels: [&'a Channel; 4],
}

impl One<'_> {
    fn value(&self, channel: usize, knot: usize) -> Option<f64> {
        let value = *self.channels[channel].values.get(knot)?;
        value.and_then(drawable)
    }

    /// What the surfaces press with, if they do.
    fn normal(&self, knot: usize, least: f64) -> Option<f64> {
        self.value(NORMAL, knot).filter(|n| *n > least)
    }
}

/// Contacts of the same two bodies.
struct Pair<'a> {
    name: String,
    of: Vec<One<'a>>,
}

impl Pair<'_> {
    fn over<'b>(&'b self, f: impl Fn(&One) -> Option<f64> + 'b) -> impl Iterator<Item = f64> {
        self.of.iter().filter_map(f)
    }

    fn least_gap(&self, knot: usize) -> Option<f64> {
        self.over(|c| c.value(GAP, knot)).reduce(f64::min)
    }

    fn sum(&self, knot: usize, f: impl Fn(&One) -> Option<f64>) -> Option<f64> {
        // none at the first knot
        self.of.first()?.value(NORMAL, knot)?;
        Some(self.over(f).sum())
    }

    fn fastest(&self, knot: usize, least: f64) -> Option<f64> {
        let slip = |c: &One| c.normal(knot, least).and_then(|_| c.value(SLIP, knot));
        self.over(slip).reduce(f64::max)
    }
}

/// What a half-space is called, which has a name in that of the contact alone, `child on parent`.
fn ground(c: &Contact) -> Option<&str> {
    let name = c.name.rsplit_once(" on ").map(|n| n.1);
    name.filter(|_| c.parent.is_none())
}

struct Contacts<'a> {
    pairs: Vec<Pair<'a>>,
    /// Of all contacts and of those that ever touch.
    counts: [usize; 2],
    /// N
    least: f64,
    time: &'a [f64],
}

impl<'a> Contacts<'a> {
    fn new(recording: &'a Recording) -> Self {
        let of_group = |c: &&Channel| c.group == Group::Contact;
        let channels: Vec<_> = recording.channels.iter().filter(of_group).collect();
        let all: Vec<One> = (channels.as_chunks::<4>().0.iter())
            .zip(&recording.contacts)
            .map(|(channels, contact)| One {
                contact,
                channels: *channels,
            })
            .collect();
        let knots = recording.time.len();
        let forces = all
            .iter()
            .flat_map(|c| (0..knots).filter_map(|k| c.value(NORMAL, k)));
        let least = LEAST_FORCE * forces.fold(0.0, f64::max);
        let touches = |c: &One| (0..knots).any(|k| c.normal(k, least).is_some());
        let counts = [all.len(), all.iter().filter(|c| touches(c)).count()];
        let name = |body: Option<usize>| {
            let name = body.and_then(|b| recording.bodies.get(b));
            name.map_or("world", String::as_str)
        };
        let mut pairs: Vec<(f64, Pair)> = vec![];
        for one in all {
            let c = one.contact;
            let key = |p: &(f64, Pair)| {
                let other = p.1.of[0].contact;
                (other.parent, other.child, ground(other)) == (c.parent, c.child, ground(c))
            };
            let impulse: f64 = (0..knots).filter_map(|k| one.normal(k, least)).sum();
            if let Some((sum, pair)) = pairs.iter_mut().find(|p| key(p)) {
                *sum += impulse;
                pair.of.push(one);
                continue;
            }
            let name = match c.parent {
                None => match ground(c) {
                    Some(ground) => format!("{} on {ground}", name(Some(c.child))),
                    None => name(Some(c.child)).to_owned(),
                },
                parent => format!("{} on {}", name(Some(c.child)), name(parent)),
            };
            pairs.push((
                impulse,
                Pair {
                    name,
                    of: vec![one],
                },
            ));
        }
        // those that never touch have nothing to show but gaps
        if counts[1] > 0 {
            pairs.retain(|p| p.0 > 0.0);
        }
        if pairs.len() > MOST {
            let mut ranked: Vec<f64> = pairs.iter().map(|p| p.0).collect();
            ranked.sort_by(|a, b| b.total_cmp(a));
            // those that differ little come as in the mechanism
            let least = ranked[MOST - 2].min(0.5 * ranked[0]);
            let (mut kept, mut rest) = (vec![], vec![]);
            for p in pairs {
                let room = kept.len() < MOST - 1;
                if room && p.0 >= least {
                    kept.push(p);
                } else {
                    rest.push(p);
                }
            }
            let name = format!("{} others", rest.len());
            let of = rest.into_iter().flat_map(|p| p.1.of).collect();
            kept.push((0.0, Pair { name, of }));
            pairs = kept;
        }
        Self {
            pairs: pairs.into_iter().map(|p| p.1).collect(),
            counts,
            least,
            time: &recording.time,
        }
    }

    fn points(&self, value: impl Fn(usize) -> Option<f64>) -> Vec<Option<Point>> {
        let at = |k: usize| Some((drawable(self.time[k])?, value(k)?));
        (0..self.time.len()).map(at).collect()
    }

    /// What is wanted of a channel of a pair's contacts, of which the curve shows the least, or the only one.
    fn goals(&self, pair: &Pair, channel: usize) -> Vec<Mark> {
        let of = pair
            .of
            .iter()
            .filter(|_| channel == GAP || pair.of.len() == 1);
        of.flat_map(|c| &c.channels[channel].goals)
            .filter_map(|g| Mark::new(g, self.time))
            .collect()
    }

    /// A curve for every pair, of a channel of its contacts.
    fn panel(
        &self,
        label: &str,
        channel: usize,
        value: impl Fn(&Pair, usize) -> Option<f64>,
    ) -> Panel {
        let curve = |(i, pair): (usize, &Pair)| Curve {
            name: pair.name.clone(),
            ink: Ink::nth(i),
            points: decimate(self.points(|k| value(pair, k))),
            bounds: [None, None],
            goals: self.goals(pair, channel),
            dots: false,
        };
        Panel {
            label: label.to_owned(),
            curves: self.pairs.iter().enumerate().map(curve).collect(),
            zero: true,
            ..Panel::default()
        }
    }

    /// Normal force and friction, with the bound of the latter.
    fn forces(&self) -> Vec<Panel> {
        let least = self.least;
        let normal = |p: &Pair, k: usize| p.sum(k, |c| c.value(NORMAL, k));
        let friction = |p: &Pair, k: usize| p.sum(k, |c| c.value(FRICTION, k));
        let bound =
            |p: &Pair, k: usize| p.sum(k, |c| Some(c.contact.friction * c.value(NORMAL, k)?));
        let mut carried: Vec<f64> = (self.pairs.iter())
            .flat_map(|p| (0..self.time.len()).filter_map(|k| normal(p, k)))
            .filter(|n| *n > least)
            .collect();
        carried.sort_by(f64::total_cmp);
        let log = match carried.as_slice() {
            [] => false,
            all => all[all.len() - 1] > PEAKS * all[all.len() / 2],
        };
        // the axis shows what is not negligible, as does the list of what touches
        let scaled = |v: Option<f64>| match log {
            true => v.filter(|v| *v > least).map(f64::log10),
            false => v,
        };
        let scale = |panel: Panel| {
            let mut panel = Panel {
                log,
                zero: !log,
                ..panel
            };
            for curve in panel.curves.iter_mut().filter(|_| log) {
                curve.goals.retain(|g| g.value > 0.0);
                curve
                    .goals
                    .iter_mut()
                    .for_each(|g| g.value = g.value.log10());
            }
            panel
        };
        let normals = self.panel("normal force [N]", NORMAL, |p, k| scaled(normal(p, k)));
        let mut panels = vec![scale(normals)];
        let rough = |p: &Pair| p.of.iter().any(|c| c.contact.friction > 0.0);
        if self.pairs.iter().any(rough) {
            let frictions = |p: &Pair, k: usize| scaled(friction(p, k));
            let mut panel = scale(self.panel("friction [N]", FRICTION, frictions));
            let thin = |color| Ink {
                color,
                dash: Some(BOUND),
                width: 1.0,
            };
            for (i, pair) in self.pairs.iter().enumerate() {
                panel.curves.push(Curve {
                    name: String::new(),
                    ink: thin(Ink::nth(i).color),
                    points: decimate(self.points(|k| scaled(bound(pair, k)))),
                    bounds: [None, None],
                    goals: vec![],
                    dots: false,
                });
            }
            panel
                .notes
                .push((Some(thin(MUTED).into()), "μ × normal force".to_owned()));
            panels.push(panel);
        }
        panels
    }

    /// A row of bars for every pair.
    fn states(&self) -> Panel {
        let tone = |color: super::sheet::Rgb, slides: bool| Ink {
            color: color.mix(WHITE, if slides { 1.0 } else { 0.4 }),
            dash: None,
            width: BAR,
        };
        let mut curves = vec![];
        for (i, pair) in self.pairs.iter().enumerate() {
            let state = |k: usize| pair.fastest(k, self.least).map(|v| v > SLOW);
            for slides in [false, true] {
                curves.push(Curve {
                    name: String::new(),
                    ink: tone(Ink::nth(i).color, slides),
                    points: self.bars(-1.0 - i as f64, |k| state(k) == Some(slides)),
                    bounds: [None, None],
                    goals: vec![],
                    dots: false,
                });
            }
        }
        let row =
            |slides, name: &str| -> Row { (Some(tone(MUTED, slides).into()), name.to_owned()) };
        let slow = number(1e3 * SLOW, 3);
        // on the same ground bodies' names are enough
        let on = self.pairs.first().and_then(|p| ground(p.of[0].contact));
        let shared = on.filter(|on| {
            self.pairs
                .iter()
                .all(|p| ground(p.of[0].contact) == Some(on))
        });
        let row_name = |p: &Pair| match shared.and_then(|on| p.name.strip_suffix(on)) {
            Some(name) => name.trim_end_matches(" on ").to_owned(),
            None => p.name.clone(),
        };
        Panel {
            label: shared.map_or("contact".to_owned(), |on| format!("on {on}")),
            curves,
            rows: self.pairs.iter().map(row_name).collect(),
            notes: vec![
                row(true, &format!("slips, > {slow} mm/s")),
                row(false, "sticks or rolls"),
            ],
            ..Panel::default()
        }
    }

    /// Stretches of time in which something holds: the intervals before its knots.
    fn bars(&self, height: f64, holds: impl Fn(usize) -> bool) -> Vec<Option<Point>> {
        let mut stretches: Vec<(f64, f64)> = vec![];
        let ends = self.time.first().zip(self.time.last());
        let close = ends.map_or(0.0, |(a, b)| CLOSE * (b - a));
        for k in (1..self.time.len()).filter(|k| holds(*k)) {
            let [from, to] = [k - 1, k].map(|k| drawable(self.time[k]));
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            match stretches.last_mut() {
                Some(last) if from - last.1 <= close => last.1 = to,
                _ => stretches.push((from, to)),
            }
        }
        let bar = |(a, b): (f64, f64)| [Some((a, height)), Some((b, height)), None];
        stretches.into_iter().flat_map(bar).collect()
    }
}

/// The panels of the figure.
pub(super) fn panels(recording: &Recording) -> Vec<Panel> {
    let c = Contacts::new(recording);
    if c.pairs.is_empty() {
        return vec![];
    }
    let gap = c.panel("gap [m]", GAP, |p, k| p.least_gap(k));
    if c.counts[1] == 0 {
        return vec![gap];
    }
    let slip = c.panel("slip [m/s]", SLIP, |p, k| p.fastest(k, c.least));
    let mut panels = vec![c.states()];
    panels.extend(c.forces());
    panels.extend([gap, slip]);
    panels
}

/// Those among others: stick and slip, and forces.
pub(super) fn overview(recording: &Recording) -> Vec<Panel> {
    let mut panels = panels(recording);
    let forces = |p: &Panel| !p.rows.is_empty() || p.label.ends_with("[N]");
    panels.retain(forces);
    panels
}

/// Below the panels.
pub(super) const NOTE: &str = "Forces and slip at a knot are those of the step that ends there; its impulse closes the gap there, or with restitution turns it before.";

/// What is summed, and how many touch.
pub(super) fn caption(recording: &Recording) -> String {
    let c = Contacts::new(recording);
    let [all, touching] = c.counts;
    let counted = match touching {
        0 => format!("none of {all} touches"),
        n if n == all => format!("all {n} touch at some time"),
        n => format!("{n} of {all} touch at some time"),
    };
    let several = c.pairs.iter().any(|p| p.of.len() > 1);
    match (several, touching) {
        (true, 1..) => {
            counted + "; per pair of bodies sums of the forces' sizes, least gap, fastest slip"
        }
        (true, 0) => counted + "; least gap per pair of bodies",
        _ => counted,
    }
}
