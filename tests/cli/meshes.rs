//! Collision meshes of many vertices: bodies rest on the mesh, not on a coarse hull of it.

use super::*;
use std::f64::consts::{PI, TAU};

/// An ellipsoid as a mesh of rings with poles, about the body's center.
#[derive(Clone, Copy)]
struct Ellipsoid {
    half: [f64; 3],
    rings: usize,
    around: usize,
}

const BALL: Ellipsoid = Ellipsoid {
    half: [0.1; 3],
    rings: 24,
    around: 32,
};

impl Ellipsoid {
    fn vertex(&self, ring: usize, k: usize) -> [f64; 3] {
        let polar = PI * ring as f64 / self.rings as f64;
        let turn = TAU * (k % self.around) as f64 / self.around as f64;
        let at = [
            polar.sin() * turn.cos(),
            polar.sin() * turn.sin(),
            polar.cos(),
        ];
        [0, 1, 2].map(|i| self.half[i] * at[i])
    }

    fn vertices(&self) -> impl Iterator<Item = [f64; 3]> + '_ {
        let ring = move |i: usize| (0..self.around).map(move |k| self.vertex(i, k));
        (0..=self.rings).flat_map(ring)
    }

    /// Half of the largest extent, m.
    fn reach(&self) -> f64 {
        self.half.iter().fold(0.0, |m, v| v.max(m))
    }

    /// How far the mesh reaches below the center with an attitude (w, x, y, z), m.
    fn below(&self, q: &[f64]) -> f64 {
        let [w, x, y, z] = [q[0], q[1], q[2], q[3]];
        let row = [
            2.0 * (x * z - w * y),
            2.0 * (y * z + w * x),
            1.0 - 2.0 * (x * x + y * y),
        ];
        let height = |p: [f64; 3]| row.iter().zip(p).map(|(r, p)| r * p).sum::<f64>();
        -self.vertices().map(height).fold(f64::INFINITY, f64::min)
    }

    /// Writes the mesh and a body of 1 kg that has it.
    fn write(&self, folder: &Folder) {
        let mut mesh: String = (self.vertices())
            .map(|[x, y, z]| format!("v {x} {y} {z}\n"))
            .collect();
        let at = |i: usize, k: usize| self.around * i + k % self.around + 1;
        for i in 0..self.rings {
            for k in 0..self.around {
                let (a, b, c, d) = (at(i, k), at(i + 1, k), at(i + 1, k + 1), at(i, k + 1));
                mesh += &format!("f {a} {b} {c}\nf {a} {c} {d}\n");
            }
        }
        folder.write("body.obj", &mesh);
        let i = 0.4 * self.reach() * self.reach();
        folder.write(
            "body.urdf",
            &format!(
                "<robot name=\"r\"><link name=\"base\"><inertial><mass value=\"1\"/>\
                 <inertia ixx=\"{i}\" ixy=\"0\" ixz=\"0\" iyy=\"{i}\" iyz=\"0\" izz=\"{i}\"/></inertial>\
                 <collision><geometry><mesh filename=\"body.obj\"/></geometry></collision></link></robot>"
            ),
        );
    }
}

const PLANE: &str = "half_spaces.floor = { friction = 0.5 }\n";
const SLAB: &str = "terrain.slab = { shape = { box = [9.0, 9.0, 0.2] }, position = [0.0, 0.0, -0.1], friction = 0.5 }\n";

/// The result of a simulation that begins at a height, as `[import]` says beside that.
fn simulated(
    folder: &Folder,
    (h, integrator): (f64, &str),
    (height, rpy): (f64, [f64; 3]),
    import: &str,
) -> Value {
    folder.write(
        "body.toml",
        &format!(
            "time_step = {h}\nhorizon = 3.0\nmechanism = \"body.urdf\"\n[import]\nbase = \"free\"\ncontacts = \"all\"\n\
             friction = 0.5\n{import}[initial]\n\
             base = {{ position = [0.0, 0.0, {height:?}], orientation = {{ rpy = {rpy:?} }} }}\n"
        ),
    );
    let v = folder.json(&[
        "simulate",
        "body.toml",
        "--integrator",
        integrator,
        "--json",
    ]);
    assert_eq!(v["status"], "done", "{v:#}");
    assert!(
        v["max_penetration"].as_f64().is_some_and(|d| d < 1e-9),
        "{v:#}"
    );
    v
}

fn height(v: &Value) -> f64 {
    numbers(&v["final"]["bodies"]["base"]["position"])[2]
}

/// A ball of 738 vertices, on its pole: with 32 of them it tips over and rests at 0.088 m.
#[test]
fn a_finely_meshed_ball_rests_at_its_radius() {
    let folder = Folder::new("mesh_ball");
    BALL.write(&folder);
    for ground in [PLANE, SLAB] {
        for h in [0.01, 0.005, 0.002] {
            for integrator in ["minimal", "maximal"] {
                // dropped and placed
                for from in [0.12, 0.1 + 1e-6] {
                    let upright = (from, [0.0; 3]);
                    let v = simulated(&folder, (h, integrator), upright, ground);
                    let z = height(&v);
                    assert!(
                        (0.0995..=0.1 + 1e-6).contains(&z),
                        "{ground}{h} {integrator} from {from}: {z}"
                    );
                }
            }
        }
    }
    // as many as are asked for
    for (vertices, least) in [(4, 0.03), (32, 0.087), (128, 0.0985), (2000, 0.0995)] {
        let import = format!("hull_vertices = {vertices}\n{PLANE}");
        let start = (0.12, [0.3, 0.2, 0.1]);
        let z = height(&simulated(&folder, (0.01, "minimal"), start, &import));
        assert!((least..0.1).contains(&z), "{vertices}: {z}");
    }
}

/// Whatever its size, its attitude and the step, no part of the mesh is deeper in the ground than the hull may be smaller than it, which is
/// 0.001 of its extents, and none is above it.
#[test]
fn finely_meshed_bodies_rest_on_their_surface() {
    let folder = Folder::new("mesh_ellipsoids");
    let ellipsoid = |half, rings, around| Ellipsoid {
        half,
        rings,
        around,
    };
    let shapes = [
        BALL,
        ellipsoid([0.02; 3], 24, 48),
        ellipsoid([0.15, 0.1, 0.06], 20, 30),
        ellipsoid([0.5, 0.4, 0.5], 16, 40),
        ellipsoid([0.05, 0.05, 0.09], 30, 40),
        ellipsoid([0.3, 0.29, 0.02], 18, 24),
    ];
    for (i, shape) in shapes.iter().enumerate() {
        shape.write(&folder);
        for k in 0..4 {
            let h = [0.01, 0.005, 0.002, 0.02][(i + k) % 4];
            let integrator = ["minimal", "maximal"][k % 2];
            let ground = if k == 3 { SLAB } else { PLANE };
            let number = |j: usize| ((10 * i + k) as f64 * [0.618, 0.755, 0.57][j]).sin();
            let rpy = [0, 1, 2].map(|j| if k == 0 { 0.0 } else { 3.0 * number(j) });
            let from = shape.reach() * [1.01, 1.3, 2.0, 1.1][k];
            let v = simulated(&folder, (h, integrator), (from, rpy), ground);
            let q = numbers(&v["final"]["bodies"]["base"]["orientation"]);
            let off = (height(&v) - shape.below(&q)) / (2.0 * shape.reach());
            let what = format!("{:?} {h} {integrator} {ground}: {off:e}", shape.half);
            assert!((-1.001e-3..1e-5).contains(&off), "{what}");
        }
    }
}

/// The remark says how many vertices a hull has and by how much it is smaller than the mesh; there is none where it is as large.
#[test]
fn a_remark_says_by_how_much_a_hull_is_smaller() {
    let folder = Folder::new("mesh_remarks");
    BALL.write(&folder);
    let remark = |vertices: Option<usize>| {
        let own = vertices.map_or(String::new(), |n| format!("hull_vertices = {n}\n"));
        simulated(
            &folder,
            (0.01, "minimal"),
            (0.12, [0.0; 3]),
            &format!("{own}{PLANE}"),
        );
        let run = folder.run(&["describe", "body.toml"]);
        let all = run.out + &run.err;
        let at = all.find("its hull has")?;
        let text = all[at..].split(';').next()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(remark(Some(738)), None);
    let of = |text: &str| -> (usize, f64) {
        let words: Vec<&str> = text.split(' ').collect();
        let after = |word: &str| words.iter().position(|w| *w == word).map(|i| words[i + 1]);
        let number = |text: Option<&str>| text.and_then(|t| t.parse().ok());
        let length = number(after("to")).expect("a length");
        (number(after("has")).expect("a number") as usize, length)
    };
    let few = of(&remark(Some(32)).expect("a remark"));
    assert!(few.0 == 32 && (5.0..15.0).contains(&few.1), "{few:?}");
    // by default 0.001 of 0.2 m at most
    let usual = remark(None).map(|text| of(&text));
    assert!(
        usual.is_none_or(|(n, by)| n > 500 && by <= 0.2),
        "{usual:?}"
    );
}
