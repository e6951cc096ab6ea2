//! What is computed for the elements of a step: made, read and written, and the parameter of the central path that it is at.

use super::cone::{Law, Linear, Local, Target};
use super::derivative::Response;
use super::element::Sides;
use super::pyramid::{Facets, Pyramid};
use super::{Element, Layout, Memory, Moment, NOWHERE, Slot, UNKNOWNS, View};
use crate::mechanism::{Meeting, Row, Vec6};

impl Layout {
    /// Memory of a step with so many unknowns but for those of contacts, and so many numbers of its matrix.
    pub(crate) fn memory(&self, unknowns: usize, values: usize) -> Memory {
        let or_none = |n| if self.is_empty() { 0 } else { n };
        let dim = or_none(unknowns);
        let law = Law {
            gap: false,
            frictional: false,
            mu: 0.0,
            bound: 0.0,
        };
        let element = Element {
            law,
            whole: law,
            normal: Row::ZERO,
            tangents: [Row::ZERO; 2],
            held: Meeting::default(),
            found: Meeting::default(),
            kept: Meeting::default(),
            here: NOWHERE,
            gap: 0.0,
            next: NOWHERE,
            floor: 0.0,
            noise: 0.0,
            arm: None,
            by_velocity: [Vec6::zeros(); 2],
            slides: [Row::ZERO; 2],
            slide_by_velocity: [[Vec6::zeros(); 2]; 2],
            slip_noise: 0.0,
            slide_turn: [[Vec6::zeros(); 2]; 2],
            restitution: 0.0,
            bounces: false,
            told: None,
            left: 0.0,
            follows: None,
            local: Local::default(),
            linear: Linear::default(),
            is_unknown: false,
            target: Target::default(),
            direction: Local::default(),
            next_row: Row::ZERO,
            response: Response::default(),
            affine: Local::default(),
            spare: Local::default(),
            point: Local::default(),
            tangent: [0.0; 5],
        };
        Memory {
            elements: vec![element; self.slots.len()],
            facets: vec![
                Facets::ZERO;
                if self.pyramid.is_some() {
                    self.slots.len()
                } else {
                    0
                }
            ],
            kappa: 0.0,
            softness: 0.0,
            level: None,
            levelled: false,
            smoothing: 0.0,
            interval: 1.0,
            moment: Moment::Plain,
            spent: 0,
            most: usize::MAX,
            places: vec![0.0; self.rim_points().len()],
            idle: false,
            coupled: false,
            last: vec![0.0; dim],
            point: vec![0.0; dim],
            delta: vec![0.0; dim],
            spare: vec![0.0; dim],
            rhs: vec![0.0; dim],
            more: vec![0.0; dim],
            bare: vec![0.0; or_none(values)],
            collected: vec![],
            extended: None,
            delassus: None,
        }
    }
}

impl Memory {
    /// Takes contacts out of the step prepared.
    pub(crate) fn set_aside(&mut self) {
        self.idle = true;
    }

    /// Limits the iterations of a step further than its options do.
    pub(crate) fn limit_iterations(&mut self, most: usize) {
        self.most = most;
    }

    /// May the step be made in smaller parts if no good solution of it is found?
    pub(crate) fn may_divide(&self) -> bool {
        self.most != usize::MAX
    }

    /// Takes contacts out of the step prepared, or not; were they out?
    pub(crate) fn replace_idle(&mut self, idle: bool) -> bool {
        std::mem::replace(&mut self.idle, idle)
    }

    /// Every element with its facets.
    pub(super) fn each<'a>(
        &'a mut self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (&'a mut Element, Sides<'a>, &'a Slot)> {
        let mut facets = self.facets.iter_mut();
        let elements = self.elements.iter_mut().zip(&layout.slots);
        elements.map(move |(e, slot)| {
            let own = facets.next();
            let frictional = e.law.gap && e.law.frictional;
            let sides = layout.pyramid.as_ref().zip(own).filter(|_| frictional);
            (e, sides, slot)
        })
    }

    /// The facets of an element.
    pub(super) fn sides<'a>(
        &'a self,
        i: usize,
        layout: &'a Layout,
    ) -> Option<(&'a Pyramid, &'a Facets)> {
        let law = &self.elements[i].law;
        let sides = layout.pyramid.as_ref().zip(self.facets.get(i));
        sides.filter(|_| law.gap && law.frictional)
    }

    /// Takes the unknowns of a step.
    pub(crate) fn read(&mut self, y: &[f64], layout: &Layout) {
        let places = layout.rim_points();
        let first = places.start - layout.rows;
        self.places.copy_from_slice(&y[first..first + places.len()]);
        let (own, facets) = y.split_at(UNKNOWNS * layout.slots.len());
        for (e, y) in self.elements.iter_mut().zip(own.chunks_exact(UNKNOWNS)) {
            e.local = Local {
                s: y[0],
                g: y[1],
                psi: y[2],
                b: [y[3], y[4]],
                eta: e.local.eta,
            };
        }
        if let Some(p) = &layout.pyramid {
            let each = self
                .facets
                .iter_mut()
                .zip(facets.chunks_exact(p.unknowns()));
            each.for_each(|(f, y)| p.read(y, f));
        }
    }

    /// Writes them.
    pub(crate) fn write(&self, y: &mut [f64], layout: &Layout) {
        self.write_places(y, layout);
        let (own, facets) = y.split_at_mut(UNKNOWNS * layout.slots.len());
        for (e, y) in self.elements.iter().zip(own.chunks_exact_mut(UNKNOWNS)) {
            let l = &e.local;
            y.copy_from_slice(&[l.s, l.g, l.psi, l.b[0], l.b[1]]);
        }
        if let Some(p) = &layout.pyramid {
            let each = self
                .facets
                .iter()
                .zip(facets.chunks_exact_mut(p.unknowns()));
            each.for_each(|(f, y)| p.write(f, y));
        }
    }

    /// Central-path parameter of the linearizations to come, m^2/s^2; zero is the step's own.
    pub(crate) fn relax(&mut self, kappa: f64) {
        self.smoothing = kappa;
    }

    /// Least central-path parameter of the steps to come, m^2/s^2.
    pub(crate) fn soften(&mut self, kappa: f64) {
        self.softness = kappa;
    }

    /// Central-path parameter of the unsolved equations to come, m^2/s^2.
    pub(crate) fn set_level(&mut self, kappa: f64) {
        self.level = Some(kappa);
    }

    /// Sets the unsolved equations of the step prepared to their level; the step's own where there is none.
    pub(crate) fn take_level(&mut self) {
        if let Some(kappa) = self.level {
            self.kappa = kappa;
        }
        self.levelled = self.level.is_some();
    }

    /// Parameter that derivatives are taken at.
    pub(crate) fn path_of_derivatives(&self) -> f64 {
        self.smoothing.max(self.kappa).max(f64::MIN_POSITIVE)
    }

    /// What effort limits are rounded by, beside their range, squared.
    pub(crate) fn relaxed(&self) -> f64 {
        self.smoothing
    }

    /// Is the interval that gaps are over the one after the knot?
    pub(super) fn takes_coming(&self, w: &View) -> bool {
        w.at.steps() || matches!(self.moment, Moment::Blow(_))
    }

    /// Derivative of the path's parameter in use by the interval.
    pub(super) fn path(&self) -> f64 {
        if self.levelled || self.smoothing > self.kappa || self.softness >= self.kappa {
            // it does not depend on the interval
            0.0
        } else {
            self.kappa / self.interval
        }
    }

    /// The step's matrix without contacts, where it was kept.
    pub(crate) fn bare(&self) -> &[f64] {
        &self.bare
    }

    /// Keeps the step's matrix as it is before contacts are added.
    pub(crate) fn keep(&mut self, values: &[f64]) {
        self.bare.copy_from_slice(values);
    }

    /// Iterations of the step so far.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> usize {
        self.spent
    }
}
