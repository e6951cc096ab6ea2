//! Holds the derivatives of users' elements against finite differences.

use super::element::{Hessian, HolonomicConstraint, Jacobian, Potential, VelocityConstraint};
use super::joint::{Mat6, Vec6};
use crate::spatial::{Pose, Vec3, exp};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Largest difference that is accepted, relative to the largest entry, or absolute where that is below 1.
const TOLERANCE: f64 = 1e-7;
/// Displacement of the fourth-order differences, m and rad.
const STEP: f64 = 1e-3;

/// A derivative that disagrees with finite differences.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{what}: the element says {given:.9e}, differences say {difference:.9e}; check the formula, its sign, and that displacements are (dx in the world, dphi in the body frame)"
)]
pub struct DerivativeError {
    /// Which entry of which block.
    pub what: String,
    /// What the element says.
    pub given: f64,
    /// What finite differences say.
    pub difference: f64,
}

/// `n` poses with positions within 1 m of the origin along each axis and rotations up to some 1.7 rad.
pub fn random_poses(n: usize, seed: u64) -> Vec<Pose> {
    let mut source = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut vector = || Vec3::from_fn(|_, _| source.random_range(-1.0..=1.0));
    (0..n)
        .map(|_| Pose::new(vector(), exp(&vector())))
        .collect()
}

/// Checks the Jacobian and the Hessian of a holonomic constraint at the poses of its bodies.
///
/// # Errors
/// The first entry that is wrong.
pub fn check_constraint(
    c: &dyn HolonomicConstraint,
    poses: &[Pose],
) -> Result<(), DerivativeError> {
    count(c.bodies(), poses)?;
    let (n, rows) = (poses.len(), c.rows());
    let jacobian = |poses: &[Pose]| rows_at(n, rows, |out| c.jacobian(poses, out));
    let value = |poses: &[Pose]| {
        let mut g = vec![0.0; rows];
        c.value(poses, &mut g);
        g
    };
    check_rows("jacobian", &jacobian(poses), poses, value)?;
    check_blocks(rows, poses, jacobian, |lambda, out| {
        c.hessian(poses, lambda, out);
    })
}

/// Checks the Hessian of a velocity constraint at the poses of its bodies.
///
/// # Errors
/// The first entry that is wrong.
pub fn check_velocity_constraint(
    c: &dyn VelocityConstraint,
    poses: &[Pose],
) -> Result<(), DerivativeError> {
    count(c.bodies(), poses)?;
    let (n, rows) = (poses.len(), c.rows());
    let jacobian = |poses: &[Pose]| rows_at(n, rows, |out| c.jacobian(poses, out));
    check_blocks(rows, poses, jacobian, |lambda, out| {
        c.hessian(poses, lambda, out);
    })
}

/// Checks the gradient and the Hessian of a potential at the poses of its bodies.
///
/// # Errors
/// The first entry that is wrong.
pub fn check_potential(p: &dyn Potential, poses: &[Pose]) -> Result<(), DerivativeError> {
    count(p.bodies(), poses)?;
    let n = poses.len();
    let gradient = |poses: &[Pose]| rows_at(n, 1, |out| p.gradient(poses, out));
    check_rows("gradient", &gradient(poses), poses, |poses| {
        vec![p.energy(poses)]
    })?;
    check_blocks(1, poses, gradient, |lambda, out| {
        // a potential has no multiplier
        if lambda[0] == 1.0 {
            p.hessian(poses, out);
        }
    })
}

fn count(expected: usize, poses: &[Pose]) -> Result<(), DerivativeError> {
    if expected == poses.len() {
        return Ok(());
    }
    Err(DerivativeError {
        what: "number of bodies against poses".into(),
        given: expected as f64,
        difference: poses.len() as f64,
    })
}

fn rows_at(bodies: usize, rows: usize, fill: impl Fn(&mut Jacobian)) -> Vec<Vec6> {
    let mut out = vec![Vec6::zeros(); rows * bodies];
    fill(&mut Jacobian::new(bodies, &mut out));
    out
}

/// `dx`, `dphi` and the axis of a component of a displacement or a wrench.
fn component(i: usize, of: [&str; 2]) -> String {
    format!("{} {}", of[i / 3], ["x", "y", "z"][i % 3])
}

/// Fourth-order difference by component `i` of the displacement of a body.
fn difference(poses: &[Pose], body: usize, i: usize, f: impl Fn(&[Pose]) -> Vec<f64>) -> Vec<f64> {
    let at = |e: f64| {
        let mut moved = poses.to_vec();
        let mut d = [Vec3::zeros(); 2];
        d[i / 3][i % 3] = e;
        moved[body] = moved[body].moved(&d[0], &d[1]);
        f(&moved)
    };
    let (p, m, pp, mm) = (at(STEP), at(-STEP), at(2.0 * STEP), at(-2.0 * STEP));
    (0..p.len())
        .map(|k| (8.0 * (p[k] - m[k]) - (pp[k] - mm[k])) / (12.0 * STEP))
        .collect()
}

fn compare(
    given: f64,
    difference: f64,
    scale: f64,
    what: impl FnOnce() -> String,
) -> Result<(), DerivativeError> {
    // what is not a number is wrong, too
    if (given - difference).abs() <= TOLERANCE * scale {
        return Ok(());
    }
    Err(DerivativeError {
        what: what(),
        given,
        difference,
    })
}

fn check_rows(
    name: &str,
    rows: &[Vec6],
    poses: &[Pose],
    value: impl Fn(&[Pose]) -> Vec<f64>,
) -> Result<(), DerivativeError> {
    let n = poses.len();
    let scale = rows.iter().fold(1.0_f64, |m, r| m.max(r.amax()));
    for body in 0..n {
        for i in 0..6 {
            let by = difference(poses, body, i, &value);
            for (row, (d, own)) in by.into_iter().zip(rows.chunks_exact(n)).enumerate() {
                compare(own[body][i], d, scale, || {
                    format!(
                        "{name}, row {row}, body {body}, by {}",
                        component(i, ["dx", "dphi"])
                    )
                })?;
            }
        }
    }
    Ok(())
}

fn check_blocks(
    rows: usize,
    poses: &[Pose],
    jacobian: impl Fn(&[Pose]) -> Vec<Vec6>,
    hessian: impl Fn(&[f64], &mut Hessian),
) -> Result<(), DerivativeError> {
    let n = poses.len();
    for row in 0..rows {
        let mut lambda = vec![0.0; rows];
        lambda[row] = 1.0;
        let mut blocks = vec![Mat6::zeros(); n * n];
        hessian(&lambda, &mut Hessian::new(n, &mut blocks));
        let scale = blocks.iter().fold(1.0_f64, |m, b| m.max(b.amax()));
        let wrenches = |poses: &[Pose]| -> Vec<f64> {
            let own = jacobian(poses)[row * n..(row + 1) * n].to_vec();
            own.iter().flat_map(|r| r.iter().copied()).collect()
        };
        for by in 0..n {
            for i in 0..6 {
                for (k, d) in difference(poses, by, i, wrenches).into_iter().enumerate() {
                    let (on, part) = (k / 6, k % 6);
                    compare(blocks[on * n + by][(part, i)], d, scale, || {
                        format!(
                            "hessian, multiplier of row {row}, {} on body {on} by {} of body {by}",
                            component(part, ["force", "torque"]),
                            component(i, ["dx", "dphi"])
                        )
                    })?;
                }
            }
        }
    }
    // several multipliers at once: the Hessian is linear in them
    let n2 = n * n;
    let sum = |lambda: &[f64]| {
        let mut blocks = vec![Mat6::zeros(); n2];
        hessian(lambda, &mut Hessian::new(n, &mut blocks));
        blocks
    };
    if rows > 1 {
        let lambda: Vec<f64> = (0..rows).map(|i| 0.5 - 0.7 * i as f64).collect();
        let together = sum(&lambda);
        let mut apart = vec![Mat6::zeros(); n2];
        for (row, l) in lambda.iter().enumerate() {
            let mut unit = vec![0.0; rows];
            unit[row] = 1.0;
            apart
                .iter_mut()
                .zip(sum(&unit))
                .for_each(|(a, b)| *a += b * *l);
        }
        let scale = apart.iter().fold(1.0_f64, |m, b| m.max(b.amax()));
        for (k, (a, b)) in together.iter().zip(&apart).enumerate() {
            for (a, b) in a.iter().zip(b.iter()) {
                compare(*a, *b, scale, || {
                    let (on, by) = (k / n, k % n);
                    format!("hessian on body {on} by body {by}, several multipliers at once")
                })?;
            }
        }
    }
    Ok(())
}

/// Checks one row of a Jacobian against a value.
#[cfg(test)]
pub(super) fn check_value(
    poses: &[Pose],
    row: impl Fn(&mut Jacobian),
    value: impl Fn(&[Pose]) -> Vec<f64>,
) -> Result<(), DerivativeError> {
    check_rows("jacobian", &rows_at(poses.len(), 1, row), poses, value)
}
