//! Every integrator behind one type, for what is chosen while the program runs.

use super::aligned::{Aligned, AlignedWork, Strikes};
use super::composed::{Composed, ComposedWork};
use super::divided::{Divided, DividedWork};
use super::external::ExternalWork;
use super::held::{Controls, Held, HeldWork};
use super::mechanical::{MatrixSize, Mechanical, Swing, VelocityChange, observable};
use super::minimal::Lagrangian;
use super::reading::Reading;
use super::{Options, choice::Choice};
use crate::contact::KnotWork;
use crate::contact::{Impacts, Loads};
use crate::dynamics::{
    Certificate, Charts, ContactUnknowns, Differentiable, Dims, Equations, Frame, Inputs, Knot,
    KnotPoint, LinearModel, Outputs, Parameter, SolvedStep, Start, Step, StepError, StepStats,
    Stored, Structure, UnsolvedStep,
};
use crate::mechanism::{
    Adjoint, KnotData, Mechanism, Mobility, ModelError, Motion, Needs, Quantity,
};
use crate::spatial::Pose;
use nalgebra::DMatrix;

/// Is an integrator one to take for a mechanism, by default? Of one that must be told there is no answer.
macro_rules! suits {
    ($system:ty, $m:expr) => {
        Some(<$system>::suits($m))
    };
    ($system:ty, $m:expr, $lagrangian:expr) => {
        None
    };
}

/// A type of all integrators, by a table of them, one line each: its name in files, and its type, which has a memory of its
/// own and is built by `new` of a mechanism, tree coordinates and [`Options`]; then its discrete Lagrangian, where it is not the
/// type's own, and, where there is one, the name of the variant whose steps are split at impacts. Unless told the last that `suits`
/// the mechanism is taken; one with a Lagrangian of its own is told.
macro_rules! integrators {
    ($($name:literal: $kind:ident($system:ty) $(with $lagrangian:expr)? $(, $aligned:ident)?;)* planned: $($planned:literal),*) => {
        /// An integrator, not yet of any mechanism.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind {
            $(#[doc = concat!("See [`", stringify!($kind), "`](", stringify!($system), ").")]
            $kind),*
        }

        impl Kind {
            /// All there are.
            pub(super) const ALL: &[Self] = &[$(Self::$kind),*];

            /// Names of those that are to come.
            pub(super) const PLANNED: &[&str] = &[$($planned),*];

            /// Name in files and on the command line.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            fn suits(self, m: &Mechanism) -> Option<Result<(), ModelError>> {
                match self { $(Self::$kind => suits!($system, m $(, $lagrangian)?)),* }
            }

            /// The last that suits a mechanism.
            fn of(m: &Mechanism) -> Option<Self> {
                let mut all = Self::ALL.iter().rev();
                all.find(|kind| matches!(kind.suits(m), Some(Ok(())))).copied()
            }

            fn build(self, m: Mechanism, q: &[f64], options: Options) -> Result<System, ModelError> {
                let splits = options.contact.impacts == Some(Impacts::Aligned);
                match self {
                    $(Self::$kind => {
                        let system = <$system>::new(m, q, options)?$(.with_lagrangian($lagrangian))?;
                        $(if splits && system.has_impacts() {
                            return Ok(System::$aligned(Aligned::new(system)));
                        })?
                        Ok(System::$kind(Box::new(system)))
                    })*
                }
            }
        }

        /// A mechanism with one of the integrators.
        #[derive(Debug)]
        pub enum System {
            $(#[doc = concat!("See [`", stringify!($kind), "`](", stringify!($system), ").")]
            $kind(Box<$system>),
            $(/// The same, its steps split at impacts.
            $aligned(Aligned<$system>),)?)*
            /// Another one, its controls held between knots.
            Held(Held<System>),
            /// The steps of another one, composed to a higher order.
            Composed(Composed<System>),
            /// The steps of another one, divided as their fastest swings ask for.
            Divided(Divided<System>),
        }

        /// Memory of one thread for a [`System`].
        pub enum SystemWork {
            $(#[doc = concat!("Of [`", stringify!($kind), "`](", stringify!($system), ").")]
            $kind(Box<<$system as Step>::Work>),
            $(/// Of the same, its steps split at impacts.
            $aligned(Box<AlignedWork<<$system as Step>::Work>>),)?)*
            /// Of held controls.
            Held(Box<HeldWork<SystemWork>>),
            /// Of a composition.
            Composed(Box<ComposedWork<SystemWork>>),
            /// Of divided steps.
            Divided(Box<DividedWork<SystemWork>>),
        }

        /// What the system itself says.
        macro_rules! of {
            ($own:expr, $s:ident => $do:expr) => {
                match $own {
                    $(System::$kind($s) => $do,
                    $(System::$aligned($s) => $do,)?)*
                    System::Held($s) => $do,
                    System::Composed($s) => $do,
                    System::Divided($s) => $do,
                }
            };
        }

        /// What the system says with its memory.
        macro_rules! with {
            ($own:expr, $memory:expr, ($s:ident, $w:ident) => $do:expr) => {
                match ($own, $memory) {
                    $((System::$kind($s), SystemWork::$kind($w)) => $do,
                    $((System::$aligned($s), SystemWork::$aligned($w)) => $do,)?)*
                    (System::Held($s), SystemWork::Held($w)) => $do,
                    (System::Composed($s), SystemWork::Composed($w)) => $do,
                    (System::Divided($s), SystemWork::Divided($w)) => $do,
                    _ => panic!("a system is used with the memory of another; make it by its own `work`"),
                }
            };
        }

        /// The same integrator, made of another.
        macro_rules! again {
            ($own:expr, $s:ident => $do:expr) => {
                match $own {
                    $(System::$kind($s) => System::$kind(Box::new($do)),
                    $(System::$aligned($s) => System::$aligned($do),)?)*
                    System::Held($s) => System::Held($do),
                    System::Composed($s) => System::Composed($do),
                    System::Divided($s) => System::Divided($do),
                }
            };
        }

        /// The same of a result.
        macro_rules! retry {
            ($own:expr, $s:ident => $do:expr) => {
                match $own {
                    $(System::$kind($s) => $do.map(|s| System::$kind(Box::new(s))),
                    $(System::$aligned($s) => $do.map(System::$aligned),)?)*
                    System::Held($s) => $do.map(System::Held),
                    System::Composed($s) => $do.map(System::Composed),
                    System::Divided($s) => $do.map(System::Divided),
                }
            };
        }

        impl System {
            /// The integrator.
            pub fn choice(&self) -> Choice {
                match self {
                    $(Self::$kind(_) $(| Self::$aligned(_))? => Choice::from(Kind::$kind),)*
                    Self::Held(s) => s.inner().choice(),
                    Self::Composed(s) => s.inner().choice().composed(s.order()),
                    Self::Divided(s) => s.inner().choice().divided(),
                }
            }

            fn memory(&self) -> SystemWork {
                match self {
                    $(Self::$kind(s) => SystemWork::$kind(Box::new(s.work())),
                    $(Self::$aligned(s) => SystemWork::$aligned(Box::new(s.work())),)?)*
                    Self::Held(s) => SystemWork::Held(Box::new(s.work())),
                    Self::Composed(s) => SystemWork::Composed(Box::new(s.work())),
                    Self::Divided(s) => SystemWork::Divided(Box::new(s.work())),
                }
            }
        }
    };
}

integrators! {
    "maximal": Maximal(super::Maximal), MaximalAligned;
    "minimal": Minimal(super::Minimal);
    "screw": Screw(super::Minimal) with Lagrangian::Screw;
    planned: "natural", "verlet"
}

impl System {
    /// A mechanism with the integrator chosen; `q` are tree coordinates at which its loops close.
    ///
    /// # Errors
    /// When the loops do not close there, or the mechanism has what the integrator does not offer.
    pub fn new(
        choice: Choice,
        mechanism: Mechanism,
        q: &[f64],
        options: Options,
    ) -> Result<Self, ModelError> {
        let kind = choice.kind().or_else(|| Kind::of(&mechanism));
        let options = Options {
            is_divided: choice.is_divided(),
            ..options
        };
        // whatever suits none is refused by the first
        let mut system = kind.unwrap_or(Kind::ALL[0]).build(mechanism, q, options)?;
        // steps that start anew at every knot hold their controls by themselves
        let starts_anew = system.last_share() == 0.0;
        let has_controls = system.dims().nu > 0;
        if options.controls == Controls::Held && has_controls && !starts_anew {
            system = Self::Held(Held::new(system));
        }
        for order in choice.compositions() {
            system = Composed::new(system, order).map(Self::Composed)?;
        }
        Ok(match choice.is_divided() {
            true => Self::Divided(Divided::new(system)),
            false => system,
        })
    }

    /// Integrators that would be taken before the one that suits a mechanism, by name, and what of it they do not offer.
    pub fn passed_over(m: &Mechanism) -> impl Iterator<Item = (&'static str, ModelError)> {
        let asked = Kind::ALL
            .iter()
            .rev()
            .filter_map(|k| Some((k.name(), k.suits(m)?)));
        asked.map_while(|(name, suits)| Some((name, suits.err()?)))
    }
}

impl Step for System {
    type Work = SystemWork;

    fn dims(&self) -> Dims {
        of!(self, s => Step::dims(s))
    }

    fn work(&self) -> SystemWork {
        self.memory()
    }

    fn controls(&self) -> Vec<(String, String)> {
        of!(self, s => s.controls())
    }

    fn parameters(&self) -> Vec<Parameter> {
        of!(self, s => s.parameters())
    }

    fn initial(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut SystemWork,
        x: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.initial(start, p, w, x))
    }

    fn initial_by_parameters(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut SystemWork,
    ) -> Result<DMatrix<f64>, StepError> {
        with!(self, w, (s, w) => s.initial_by_parameters(start, p, w))
    }

    fn initial_by_coordinates(
        &self,
        start: &Start,
        p: &[f64],
        w: &mut SystemWork,
    ) -> Result<DMatrix<f64>, StepError> {
        with!(self, w, (s, w) => s.initial_by_coordinates(start, p, w))
    }

    fn step(
        &self,
        at: &Knot,
        x: &[f64],
        u: &[f64],
        p: &[f64],
        w: &mut SystemWork,
        next: &mut [f64],
        y: &mut [f64],
    ) -> Result<StepStats, StepError> {
        with!(self, w, (s, w) => s.step(at, x, u, p, w, next, y))
    }

    fn soften(&self, w: &mut SystemWork, kappa: f64) -> bool {
        with!(self, w, (s, w) => s.soften(w, kappa))
    }
}

impl Differentiable for System {
    fn linearize_in(&self, at: &SolvedStep, w: &mut SystemWork) -> Result<Certificate, StepError> {
        with!(self, w, (s, w) => s.linearize_in(at, w))
    }

    fn smoothing(&self, w: &mut SystemWork, kappa: f64) {
        with!(self, w, (s, w) => s.smoothing(w, kappa));
    }

    fn kept(&self) -> usize {
        of!(self, s => s.kept())
    }

    fn keep_in(&self, w: &SystemWork, kept: &mut [f64]) -> bool {
        with!(self, w, (s, w) => s.keep_in(w, kept))
    }

    fn restore_in(
        &self,
        at: &SolvedStep,
        kept: &[f64],
        w: &mut SystemWork,
    ) -> Result<bool, StepError> {
        with!(self, w, (s, w) => s.restore_in(at, kept, w))
    }

    fn push_in(&self, w: &mut SystemWork, d: &Inputs, out: &mut Outputs) {
        with!(self, w, (s, w) => s.push_in(w, d, out));
    }

    fn pull_in(&self, w: &mut SystemWork, adjoint: &Outputs, out: &mut Inputs) {
        with!(self, w, (s, w) => s.pull_in(w, adjoint, out));
    }
}

impl Charts for System {
    fn frame_in(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        previous: Option<&Frame>,
        w: &mut SystemWork,
        out: &mut Frame,
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.frame_in(at, x, p, previous, w, out))
    }

    fn has_identity_frames(&self) -> bool {
        of!(self, s => s.has_identity_frames())
    }

    fn by_interval(&self, at: &Knot, x: &[f64], out: &mut [f64]) {
        of!(self, s => s.by_interval(at, x, out));
    }

    fn retract(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        d: &[f64],
        w: &mut SystemWork,
        out: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.retract(at, x, p, frame, d, w, out))
    }

    fn difference(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut SystemWork,
        out: &mut [f64],
    ) {
        with!(self, w, (s, w) => s.difference(at, x, p, frame, to, w, out));
    }

    fn difference_by(
        &self,
        at: &Knot,
        x: &[f64],
        p: &[f64],
        frame: &Frame,
        to: &[f64],
        w: &mut SystemWork,
    ) -> Result<DMatrix<f64>, StepError> {
        with!(self, w, (s, w) => s.difference_by(at, x, p, frame, to, w))
    }

    fn linear_model_in(&self, w: &mut SystemWork, from: &Frame, to: &Frame, out: &mut LinearModel) {
        with!(self, w, (s, w) => s.linear_model_in(w, from, to, out));
    }
}

impl Stored for System {
    fn stored_push(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        of!(self, s => s.stored_push(x, free, stored));
    }

    fn stored_pull(&self, x: &[f64], free: &[f64], stored: &mut [f64]) {
        of!(self, s => s.stored_pull(x, free, stored));
    }
}

impl Equations for System {
    fn check_equations(&self) -> Result<(), String> {
        of!(self, s => s.check_equations())
    }

    fn structure(&self, has_end: bool) -> Structure {
        of!(self, s => s.structure(has_end))
    }

    fn residual(
        &self,
        at: &UnsolvedStep,
        w: &mut SystemWork,
        r: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.residual(at, w, r))
    }

    fn advance(
        &self,
        at: &KnotPoint,
        w: &mut SystemWork,
        next: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.advance(at, w, next))
    }

    fn displace(&self, x: &[f64], d: &[f64], out: &mut [f64]) -> bool {
        of!(self, s => s.displace(x, d, out))
    }

    fn separation(&self, x: &[f64], to: &[f64], out: &mut [f64]) {
        of!(self, s => s.separation(x, to, out));
    }

    fn pull_separation(&self, x: &[f64], to: &[f64], adjoint: &mut [f64]) {
        of!(self, s => s.pull_separation(x, to, adjoint));
    }

    fn copies(&self) -> Vec<(usize, usize)> {
        of!(self, s => s.copies())
    }

    fn stays(&self, at: &Knot) -> Vec<usize> {
        of!(self, s => s.stays(at))
    }

    fn contact_unknowns(&self) -> Vec<ContactUnknowns> {
        of!(self, s => s.contact_unknowns())
    }

    fn domain(&self, h: f64) -> Vec<(usize, f64)> {
        of!(self, s => s.domain(h))
    }

    fn set_central_path(&self, w: &mut SystemWork, kappa: f64) {
        with!(self, w, (s, w) => s.set_central_path(w, kappa));
    }

    fn center(
        &self,
        at: &UnsolvedStep,
        w: &mut SystemWork,
        y: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.center(at, w, y))
    }

    fn derivatives(
        &self,
        at: &UnsolvedStep,
        structure: &Structure,
        w: &mut SystemWork,
        values: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.derivatives(at, structure, w, values))
    }

    fn pull_equations(
        &self,
        at: &UnsolvedStep,
        adjoint: &Outputs,
        w: &mut SystemWork,
        out: &mut Inputs,
        y: &mut [f64],
        end: &mut [f64],
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.pull_equations(at, adjoint, w, out, y, end))
    }
}

impl Mechanical for System {
    fn mechanism(&self) -> &Mechanism {
        of!(self, s => s.mechanism())
    }

    fn mobility(&self) -> Mobility {
        of!(self, s => s.mobility())
    }

    fn outputs(&self) -> &[Quantity] {
        of!(self, s => s.outputs())
    }

    fn with_outputs(self, outputs: Vec<Quantity>) -> Self {
        again!(self, s => s.with_outputs(outputs))
    }

    fn holding(self, q: &[f64], preferred: &[bool]) -> Self {
        again!(self, s => s.holding(q, preferred))
    }

    fn rebuilt(&self, mechanism: Mechanism, q: &[f64]) -> Result<Self, ModelError> {
        retry!(self, s => s.rebuilt(mechanism, q))
    }

    fn mechanism_with<'a>(
        &'a self,
        p: &[f64],
        w: &'a mut SystemWork,
    ) -> Result<&'a Mechanism, StepError> {
        with!(self, w, (s, w) => s.mechanism_with(p, w))
    }

    fn start(&self, q: &[f64], rates: &[f64], held: &[bool]) -> Result<Vec<f64>, ModelError> {
        of!(self, s => s.start(q, rates, held))
    }

    fn state_after(&self, x: &[f64], poses: &[Pose], q: &[f64], h: f64) -> Vec<f64> {
        of!(self, s => s.state_after(x, poses, q, h))
    }

    fn poses(&self, x: &[f64]) -> Vec<Pose> {
        of!(self, s => s.poses(x))
    }

    fn interval_velocities(&self, x: &[f64], h: f64) -> Vec<Motion> {
        of!(self, s => s.interval_velocities(x, h))
    }

    fn last_share(&self) -> f64 {
        of!(self, s => s.last_share())
    }

    fn longest_share(&self) -> f64 {
        of!(self, s => s.longest_share())
    }

    fn winding_angle(&self, x: &[f64], joint: usize) -> f64 {
        of!(self, s => s.winding_angle(x, joint))
    }

    fn evaluate_knot(
        &self,
        seen: &KnotPoint,
        needs: Needs,
        w: &mut SystemWork,
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.evaluate_knot(seen, needs, w))
    }

    fn reading(&self, seen: &KnotPoint, quantity: &Quantity) -> Option<Reading> {
        of!(self, s => s.reading(seen, quantity))
    }

    fn joint_rate(&self, quantity: &Quantity, w: &SystemWork) -> Option<(usize, f64)> {
        with!(self, w, (s, w) => s.joint_rate(quantity, w))
    }

    fn knot_data<'a>(&'a self, seen: &KnotPoint<'a>, w: &'a SystemWork) -> KnotData<'a> {
        with!(self, w, (s, w) => s.knot_data(seen, w))
    }

    fn adjoint<'a>(&self, w: &'a mut SystemWork) -> &'a mut Adjoint {
        with!(self, w, (s, w) => s.adjoint(w))
    }

    fn pull_knot(
        &self,
        seen: &KnotPoint,
        w: &mut SystemWork,
        adjoint: &Adjoint,
        out: &mut Inputs,
        y: &mut [f64],
    ) {
        with!(self, w, (s, w) => s.pull_knot(seen, w, adjoint, out, y));
    }

    fn contact_work(
        &self,
        seen: &KnotPoint,
        loads: &mut Loads,
        w: &mut SystemWork,
    ) -> Result<Option<KnotWork>, StepError> {
        with!(self, w, (s, w) => s.contact_work(seen, loads, w))
    }

    fn work_at(
        &self,
        seen: &KnotPoint,
        w: &mut SystemWork,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.work_at(seen, w, external))
    }

    fn work_within(
        &self,
        seen: &KnotPoint,
        w: &mut SystemWork,
        external: &mut ExternalWork,
    ) -> Result<(), StepError> {
        with!(self, w, (s, w) => s.work_within(seen, w, external))
    }

    fn gave_way(&self, seen: &KnotPoint, w: &mut SystemWork) -> Result<bool, StepError> {
        with!(self, w, (s, w) => s.gave_way(seen, w))
    }

    fn holds_controls(&self) -> bool {
        of!(self, s => s.holds_controls())
    }

    fn previous_controls(&self) -> Option<std::ops::Range<usize>> {
        of!(self, s => s.previous_controls())
    }

    fn parts_after(&self, y: &[f64]) -> usize {
        of!(self, s => s.parts_after(y))
    }

    fn tensions(&self) -> usize {
        of!(self, s => s.tensions())
    }

    fn write_tensions(&self, at: &Knot, w: &mut SystemWork, out: &mut [f64]) {
        with!(self, w, (s, w) => s.write_tensions(at, w, out));
    }

    fn limit_iterations(&self, w: &mut SystemWork, most: usize) {
        with!(self, w, (s, w) => s.limit_iterations(w, most));
    }

    fn swing(
        &self,
        seen: &KnotPoint,
        weight: f64,
        above: f64,
        w: &mut SystemWork,
    ) -> Result<Swing, StepError> {
        with!(self, w, (s, w) => s.swing(seen, weight, above, w))
    }

    fn add_velocity_changes(
        &self,
        w: &SystemWork,
        groups: &[usize],
        out: &mut [VelocityChange],
    ) -> bool {
        with!(self, w, (s, w) => s.add_velocity_changes(w, groups, out))
    }

    fn tangents(&self, frame: &Frame) -> Option<[DMatrix<f64>; 2]> {
        of!(self, s => s.tangents(frame))
    }

    fn chart_coordinates(&self) -> Option<&[usize]> {
        of!(self, s => s.chart_coordinates())
    }

    fn certify(&self, w: &mut SystemWork) {
        with!(self, w, (s, w) => s.certify(w));
    }

    fn linear_residual(&self, w: &SystemWork) -> Option<f64> {
        with!(self, w, (s, w) => s.linear_residual(w))
    }

    fn matrix(&self) -> MatrixSize {
        of!(self, s => s.matrix())
    }
}

observable!(System);
