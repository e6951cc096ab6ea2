//! What integrators that make steps of another one's hand on to it.
//!
//! A state of theirs is the inner one's, with numbers of their own behind it; at a knot the inner one sees its own state and
//! the intervals that meet there for it (`knot`). They have the fields `inner` and `inner_dims`, and their memory the
//! inner one's as `own`. Each macro stands for the methods that say no more than that, in the role of its name.

/// Of [`Step`](crate::dynamics::Step): names.
macro_rules! step_within {
    () => {
        fn dims(&self) -> Dims {
            self.dims
        }

        fn controls(&self) -> Vec<(String, String)> {
            self.inner.controls()
        }

        fn parameters(&self) -> Vec<Parameter> {
            self.inner.parameters()
        }
    };
}

/// Of [`Step`](crate::dynamics::Step): derivatives of a start that is the inner one's.
macro_rules! start_within {
    () => {
        fn initial_by_parameters(
            &self,
            start: &Start,
            p: &[f64],
            w: &mut Self::Work,
        ) -> Result<DMatrix<f64>, StepError> {
            self.inner.initial_by_parameters(start, p, &mut w.own)
        }

        fn initial_by_coordinates(
            &self,
            start: &Start,
            p: &[f64],
            w: &mut Self::Work,
        ) -> Result<DMatrix<f64>, StepError> {
            self.inner.initial_by_coordinates(start, p, &mut w.own)
        }
    };
}

/// [`Charts`](crate::dynamics::Charts) and [`Stored`](crate::dynamics::Stored): own numbers of a state stay.
macro_rules! charts_within {
    ($outer:ident<$inner:ident: $bound:ident>) => {
        impl<$inner: $bound> $outer<$inner> {
            /// The integrator whose steps are made.
            pub fn inner(&self) -> &$inner {
                &self.inner
            }

            /// The inner integrator's part of a state.
            fn within<'a>(&self, x: &'a [f64]) -> &'a [f64] {
                &x[..self.inner_dims.nx]
            }
        }

        impl<$inner: $bound> Charts for $outer<$inner> {
            fn frame_in(
                &self,
                at: &Knot,
                x: &[f64],
                p: &[f64],
                previous: Option<&Frame>,
                w: &mut Self::Work,
                out: &mut Frame,
            ) -> Result<(), StepError> {
                let own = self.knot(at, x);
                self.inner
                    .frame_in(&own, self.within(x), p, previous, &mut w.own, out)
            }

            fn has_identity_frames(&self) -> bool {
                self.inner.has_identity_frames()
            }

            fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
                let own = self.knot(at, x);
                self.inner.by_interval(&own, self.within(x), out);
                // what the inner one sees is a part of the interval
                if at.h_prev != 0.0 {
                    out.iter_mut().for_each(|o| *o *= own.h_prev / at.h_prev);
                }
            }

            fn retract(
                &self,
                at: &Knot,
                x: &[f64],
                p: &[f64],
                frame: &Frame,
                d: &[f64],
                w: &mut Self::Work,
                out: &mut [f64],
            ) -> Result<(), StepError> {
                let own = self.knot(at, x);
                let (x, numbers) = x.split_at(self.inner_dims.nx);
                let (moved, kept) = out.split_at_mut(self.inner_dims.nx);
                kept.copy_from_slice(numbers);
                self.inner.retract(&own, x, p, frame, d, &mut w.own, moved)
            }

            fn difference(
                &self,
                at: &Knot,
                x: &[f64],
                p: &[f64],
                frame: &Frame,
                to: &[f64],
                w: &mut Self::Work,
                out: &mut [f64],
            ) {
                let own = self.knot(at, x);
                let (x, to) = (self.within(x), self.within(to));
                self.inner
                    .difference(&own, x, p, frame, to, &mut w.own, out);
            }

            fn difference_by(
                &self,
                at: &Knot,
                x: &[f64],
                p: &[f64],
                frame: &Frame,
                to: &[f64],
                w: &mut Self::Work,
            ) -> Result<DMatrix<f64>, StepError> {
                let own = self.knot(at, x);
                let (x, to) = (self.within(x), self.within(to));
                self.inner.difference_by(&own, x, p, frame, to, &mut w.own)
            }

            fn linear_model_in(
                &self,
                w: &mut Self::Work,
                from: &Frame,
                to: &Frame,
                out: &mut LinearModel,
            ) {
                model_by_pushes(self, w, from, to, out);
            }
        }

        impl<$inner: $bound + Stored> Stored for $outer<$inner> {
            fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
                let (inner, own) = stored.split_at_mut(self.inner_dims.nx);
                own.fill(0.0);
                self.inner.stored_push(self.within(x), free, inner);
            }

            fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
                let (inner, own) = stored.split_at_mut(self.inner_dims.nx);
                own.fill(0.0);
                self.inner.stored_pull(self.within(x), free, inner);
            }
        }
    };
}

/// Of [`Mechanical`](super::Mechanical): `first` is what is seen at a knot as the inner integrator sees it, `whole` a state
/// with velocities of the whole interval before.
macro_rules! mechanics_within {
    () => {
        fn mechanism(&self) -> &Mechanism {
            self.inner.mechanism()
        }

        fn mobility(&self) -> Mobility {
            self.inner.mobility()
        }

        fn outputs(&self) -> &[Quantity] {
            self.inner.outputs()
        }

        fn with_outputs(self, outputs: Vec<Quantity>) -> Self {
            Self {
                inner: Box::new(self.inner.with_outputs(outputs)),
                ..self
            }
        }

        fn holding(self, q: &[f64], preferred: &[bool]) -> Self {
            Self {
                inner: Box::new(self.inner.holding(q, preferred)),
                ..self
            }
        }

        fn mechanism_with<'a>(
            &'a self,
            p: &[f64],
            w: &'a mut Self::Work,
        ) -> Result<&'a Mechanism, StepError> {
            self.inner.mechanism_with(p, &mut w.own)
        }

        fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
            Ok(self.whole(self.inner.start(q, rates, held)?))
        }

        fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
            self.whole(self.inner.state_after(self.within(x), poses, q, h))
        }

        fn poses(&self, x: &[f64]) -> Vec<Pose> {
            self.inner.poses(self.within(x))
        }

        fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion> {
            let at = $crate::dynamics::Knot {
                k: 0,
                t: 0.0,
                h_prev: h,
                h: 0.0,
            };
            let h = self.knot(&at, x).h_prev;
            self.inner.interval_velocities(self.within(x), h)
        }

        fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
            self.inner.winding_angle(self.within(x), joint)
        }

        fn evaluate_knot(
            &self,
            seen: &KnotPoint,
            needs: Needs,
            w: &mut Self::Work,
        ) -> Result<(), StepError> {
            self.inner
                .evaluate_knot(&self.first(seen), needs, &mut w.own)
        }

        fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a Self::Work) -> KnotData<'a> {
            let inner = self.inner.knot_data(&self.first(seen), &w.own);
            KnotData {
                part: inner.part * self.part_of(seen.x),
                ..inner
            }
        }

        fn adjoint<'a>(&self, w: &'a mut Self::Work) -> &'a mut Adjoint {
            self.inner.adjoint(&mut w.own)
        }

        fn contact_work(
            &self,
            seen: &KnotPoint,
            loads: &mut Loads,
            w: &mut Self::Work,
        ) -> Result<Option<KnotWork>, StepError> {
            (self.inner).contact_work(&self.first(seen), loads, &mut w.own)
        }

        fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
            self.inner.tangents(frame)
        }

        /// The previous control is a number of the inner state; other readings refer to the intervals of the inner steps.
        fn reading(
            &self,
            seen: &KnotPoint,
            quantity: &Quantity,
        ) -> Option<$crate::integrator::reading::Reading> {
            match quantity {
                Quantity::PreviousControl(_) => self.inner.reading(&self.first(seen), quantity),
                _ => None,
            }
        }

        fn holds_controls(&self) -> bool {
            self.inner.holds_controls()
        }

        fn previous_controls(&self) -> Option<std::ops::Range<usize>> {
            self.inner.previous_controls()
        }

        fn chart_coordinates(&self) -> Option<&[usize]> {
            self.inner.chart_coordinates()
        }

        fn matrix(&self) -> MatrixSize {
            self.inner.matrix()
        }
    };
}

pub(super) use {charts_within, mechanics_within, start_within, step_within};
