//! Files of triangles: STL and OBJ.

use crate::spatial::Vec3;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Triangles of a file beside a robot's, m.
pub(super) fn read(robot: &Path, file: &str, scale: &[f64; 3]) -> Result<Vec<[Vec3; 3]>, String> {
    let path = find(robot, file)?;
    let shown = path.display();
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    let fails = |e: &dyn std::fmt::Display| format!("cannot read `{shown}`: {e}");
    let raw: Vec<[[f32; 3]; 3]> = match ending.to_str() {
        Some("stl") => {
            let mut f = std::fs::File::open(&path).map_err(|e| fails(&e))?;
            let mesh = stl_io::read_stl(&mut f).map_err(|e| fails(&e))?;
            let corner = |i: usize| mesh.vertices[i].0;
            mesh.faces.iter().map(|f| f.vertices.map(corner)).collect()
        }
        Some("obj") => {
            let options = tobj::LoadOptions {
                triangulate: true,
                ..Default::default()
            };
            let (models, _) = tobj::load_obj(&path, &options).map_err(|e| fails(&e))?;
            let mut all = vec![];
            for m in &models {
                let at = |i: u32| m.mesh.positions.as_chunks::<3>().0.get(i as usize).copied();
                for t in m.mesh.indices.as_chunks::<3>().0 {
                    let [Some(a), Some(b), Some(c)] = t.map(at) else {
                        return Err(format!("`{shown}` names a corner that it does not have"));
                    };
                    all.push([a, b, c]);
                }
            }
            all
        }
        _ => {
            return Err(format!(
                "`{shown}` is no STL or OBJ file; convert it, or take a box, sphere or cylinder"
            ));
        }
    };
    let place = |p: [f32; 3]| Vec3::from_fn(|i, _| f64::from(p[i]) * scale[i]);
    let all: Vec<[Vec3; 3]> = raw.into_iter().map(|t| t.map(place)).collect();
    match all.is_empty() {
        true => Err(format!("`{shown}` has no triangles")),
        false => Ok(all),
    }
}

/// The file that a robot's file means: `package://` and relative paths are looked for beside it, and in the folders that
/// this one is in.
fn find(robot: &Path, file: &str) -> Result<PathBuf, String> {
    let inner = ["package://", "model://"]
        .iter()
        .find_map(|p| file.strip_prefix(p));
    let plain = file.strip_prefix("file://").unwrap_or(file);
    let beside = robot.parent().unwrap_or(Path::new(""));
    let mut tried = vec![];
    match inner {
        None => tried.push(beside.join(plain)),
        Some(inner) => {
            let within = inner.split_once('/').map_or(inner, |p| p.1);
            // relative folders have no parents of their own
            let from = beside.canonicalize().unwrap_or(beside.into());
            for folder in from.ancestors() {
                tried.push(folder.join(inner));
                tried.push(folder.join(within));
            }
        }
    }
    match tried.iter().find(|p| p.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(format!(
            "there is no `{file}` beside the robot's file or above it"
        )),
    }
}

/// Cells along the longest edge of a mesh that is simplified: corners of a cell become one.
const CELLS: f64 = 48.0;
/// Triangles from which on a mesh is simplified: pictures show no more, and recordings hold every one.
const MANY: usize = 3000;

/// A mesh as pictures show it: its corners, each once, and the triangles between them.
pub(super) fn simplified(triangles: &[[Vec3; 3]]) -> (Vec<Vec3>, Vec<[u32; 3]>) {
    let all = || triangles.iter().flatten();
    let least = all().fold(Vec3::repeat(f64::INFINITY), |m, p| m.inf(p));
    let most = all().fold(Vec3::repeat(f64::NEG_INFINITY), |m, p| m.sup(p));
    let cell = match triangles.len() > MANY {
        true => (most - least).max() / CELLS,
        // files have single precision
        false => f64::from(f32::EPSILON) * (most - least).max(),
    };
    let mut places: HashMap<[i64; 3], u32> = HashMap::new();
    let mut sums: Vec<(Vec3, f64)> = vec![];
    let mut index = |p: &Vec3| {
        let at = (p - least).map(|v| (v / cell).floor() as i64).into();
        let own = *places.entry(at).or_insert_with(|| {
            sums.push((Vec3::zeros(), 0.0));
            sums.len() as u32 - 1
        });
        let sum = &mut sums[own as usize];
        (sum.0, sum.1) = (sum.0 + p, sum.1 + 1.0);
        own
    };
    let mut kept: Vec<[u32; 3]> = triangles
        .iter()
        .map(|t| [0, 1, 2].map(|i| index(&t[i])))
        .collect();
    kept.retain(|[a, b, c]| a != b && b != c && c != a);
    (sums.into_iter().map(|(sum, n)| sum / n).collect(), kept)
}

/// A hundredth of a millimetre is enough for pictures.
pub(super) fn rounded(v: f64) -> f64 {
    (1e5 * v).round() / 1e5
}
