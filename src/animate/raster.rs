//! Triangles to pixels: a depth buffer, one light, and the shadows it throws.

use super::camera::Camera;
use super::look::Color;
use super::mesh::{Mesh, facing, vec3};
use super::scene::Floor;
use crate::spatial::{Mat3, Vec3};

/// Pixels along each side of the shadow map.
const SHADOW: usize = 1024;
/// A surface is in the shadow of what is nearer to the light than it by more than this part of the map's half width; looked
/// for these pixels above it, lest it be in its own.
const BIAS: f64 = 0.002;
const ABOVE: f64 = 2.5;
/// How dark a shadow on the floor is.
const DARK: f32 = 0.26;

/// A mesh in the world.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    pub mesh: &'a Mesh,
    pub position: Vec3,
    pub turn: Mat3,
    /// Of the mesh along its own axes.
    pub scale: Vec3,
    pub color: Color,
}

/// A corner of a triangle: in the world, with its normal, and seen from the eye.
#[derive(Clone, Copy)]
struct Corner {
    world: Vec3,
    normal: Vec3,
    local: Vec3,
}

impl Corner {
    fn between(&self, other: &Corner, share: f64) -> Corner {
        let mix = |a: Vec3, b: Vec3| a + (b - a) * share;
        Corner {
            world: mix(self.world, other.world),
            normal: mix(self.normal, other.normal),
            local: mix(self.local, other.local),
        }
    }
}

impl Placed<'_> {
    fn corners(&self, local: impl Fn(&Vec3) -> Vec3) -> Vec<Corner> {
        let inverse = self.scale.map(|s| 1.0 / s);
        let each = self.mesh.positions.iter().zip(&self.mesh.normals);
        each.map(|(p, n)| {
            let world = self.position + self.turn * vec3(*p).component_mul(&self.scale);
            Corner {
                world,
                normal: self.turn * vec3(*n).component_mul(&inverse),
                local: local(&world),
            }
        })
        .collect()
    }
}

/// Pixels inside a triangle, each with its shares of the corners.
fn fill(points: [[f64; 2]; 3], size: [usize; 2], mut pixel: impl FnMut(usize, [f64; 3])) {
    let [a, b, c] = points;
    let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if area == 0.0 || !area.is_finite() {
        return;
    }
    let range = |i: usize| {
        let (low, high) = (
            a[i].min(b[i]).min(c[i]) - 0.5,
            a[i].max(b[i]).max(c[i]) - 0.5,
        );
        // a float to integer cast saturates
        low.ceil().max(0.0) as usize..((high.floor() + 1.0).max(0.0) as usize).min(size[i])
    };
    let columns = range(0);
    // shares change by as much from pixel to pixel
    let share = |p: [f64; 2], q: [f64; 2], x: f64, y: f64| {
        ((q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])) / area
    };
    for y in range(1) {
        let at = y as f64 + 0.5;
        let start = columns.start as f64 + 0.5;
        let mut shares = [share(b, c, start, at), share(c, a, start, at), 0.0];
        let step = [(b[1] - c[1]) / area, (c[1] - a[1]) / area];
        for x in columns.clone() {
            shares[2] = 1.0 - shares[0] - shares[1];
            if shares.iter().all(|s| *s >= 0.0) {
                pixel(y * size[0] + x, shares);
            }
            shares[0] += step[0];
            shares[1] += step[1];
        }
    }
}

/// Depths of what the light sees, parallel.
pub(super) struct Shadow {
    /// Across the light and towards it, rows.
    turn: Mat3,
    middle: Vec3,
    /// Half of the map's width, m.
    reach: f64,
    /// Of each pixel how near to the light something comes.
    nearest: Vec<f32>,
}

impl Shadow {
    /// Of things within `reach` of `middle`, under a light from a direction of unit length.
    pub fn new(light: &Vec3, middle: Vec3, reach: f64, things: &[Placed]) -> Shadow {
        let mut shadow = Shadow {
            turn: facing(light).transpose(),
            middle,
            reach: reach.max(1e-9),
            nearest: vec![f32::NEG_INFINITY; SHADOW * SHADOW],
        };
        for thing in things {
            let corners = thing.corners(|p| shadow.local(p));
            for t in thing.mesh.indices.chunks_exact(3) {
                let [a, b, c] = [t[0], t[1], t[2]].map(|i| corners[i as usize].local);
                let points = [a, b, c].map(|p| [p.x, p.y]);
                fill(points, [SHADOW; 2], |i, [s, t, u]| {
                    let near = (s * a.z + t * b.z + u * c.z) as f32;
                    shadow.nearest[i] = shadow.nearest[i].max(near);
                });
            }
        }
        shadow
    }

    fn local(&self, p: &Vec3) -> Vec3 {
        let q = self.turn * (p - self.middle) / self.reach;
        let half = 0.5 * SHADOW as f64;
        Vec3::new(half * (1.0 + q.x), half * (1.0 + q.y), q.z)
    }

    /// The share of the light that comes to a point of a surface: the mean around it.
    fn light(&self, p: &Vec3, normal: &Vec3) -> f32 {
        let q = self.local(&(p + normal * (ABOVE * 2.0 * self.reach / SHADOW as f64)));
        let (x, y) = ((q.x - 0.5).floor(), (q.y - 0.5).floor());
        let inside = |v: f64| v >= 1.0 && v < (SHADOW - 2) as f64;
        if !(inside(x) && inside(y)) {
            return 1.0;
        }
        let (fx, fy) = ((q.x - 0.5 - x) as f32, (q.y - 0.5 - y) as f32);
        let depth = (q.z + BIAS) as f32;
        let start = (y as usize - 1) * SHADOW + x as usize - 1;
        let mut sum = 0.0;
        for (j, wy) in [1.0 - fy, 1.0, 1.0, fy].into_iter().enumerate() {
            for (i, wx) in [1.0 - fx, 1.0, 1.0, fx].into_iter().enumerate() {
                let free = self.nearest[start + j * SHADOW + i] <= depth;
                sum += if free { wx * wy } else { 0.0 };
            }
        }
        sum / 9.0
    }
}

/// A picture being drawn.
pub(super) struct Picture {
    pub width: usize,
    pub height: usize,
    pub color: Vec<Color>,
    /// One over the distance from the eye.
    near: Vec<f32>,
}

impl Picture {
    pub fn new(width: usize, height: usize, background: Color) -> Picture {
        Picture {
            width,
            height,
            color: vec![background; width * height],
            near: vec![0.0; width * height],
        }
    }

    /// Draws triangles that pass the depth test, in the colour that `shade` gives for a place in the world, its normal and
    /// what was there; without one they cast no shade and hide nothing.
    fn triangles(
        &mut self,
        camera: &Camera,
        thing: &Placed,
        mut shade: impl FnMut(Vec3, Vec3, bool, Color) -> Option<Color>,
    ) {
        let corners = thing.corners(|p| camera.local(p));
        let size = [self.width, self.height];
        for t in thing.mesh.indices.chunks_exact(3) {
            let all = [t[0], t[1], t[2]].map(|i| corners[i as usize]);
            let cut = before_eye(&all, camera.near);
            for i in 2..cut.len() {
                let [a, b, c] = [cut[0], cut[i - 1], cut[i]];
                let depth = [a, b, c].map(|c| 1.0 / c.local.z);
                let points = [a, b, c].map(|c| camera.pixel(&c.local));
                fill(points, size, |pixel, shares| {
                    let w = [0, 1, 2].map(|k| shares[k] * depth[k]);
                    let sum = w[0] + w[1] + w[2];
                    let hidden = sum as f32 <= self.near[pixel];
                    let mix = |f: fn(&Corner) -> &Vec3| {
                        (f(&a) * w[0] + f(&b) * w[1] + f(&c) * w[2]) / sum
                    };
                    let (world, normal) = (mix(|c| &c.world), mix(|c| &c.normal));
                    let old = self.color[pixel];
                    if let Some(color) = shade(world, normal, hidden, old) {
                        self.color[pixel] = color;
                        if !hidden {
                            self.near[pixel] = sum as f32;
                        }
                    }
                });
            }
        }
    }

    /// Draws something solid.
    pub fn solid(&mut self, camera: &Camera, light: &Vec3, shadow: &Shadow, thing: &Placed) {
        self.triangles(camera, thing, |world, normal, hidden, _| {
            (!hidden).then(|| {
                let to_eye = (camera.eye - world).normalize();
                let normal = normal.normalize();
                // surfaces that are open are seen from behind, too
                let normal = if normal.dot(&to_eye) < 0.0 {
                    -normal
                } else {
                    normal
                };
                let lit = shadow.light(&world, &normal);
                lighted(thing.color, &normal, light, &to_eye, lit)
            })
        });
    }

    /// Draws something that shines through what hides it.
    pub fn through(&mut self, camera: &Camera, light: &Vec3, thing: &Placed) {
        const THROUGH: f32 = 0.5;
        self.triangles(camera, thing, |world, normal, hidden, old| {
            let to_eye = (camera.eye - world).normalize();
            let normal = normal.normalize();
            let own = lighted(thing.color, &normal, light, &to_eye, 1.0);
            // of what is behind itself nothing
            (normal.dot(&to_eye) > 0.0).then(|| if hidden { mix(old, own, THROUGH) } else { own })
        });
    }

    /// Draws the floor: lines of a grid and shadows, which fade away into the background.
    pub fn floor(&mut self, camera: &Camera, floor: &Floor, shadow: &Shadow, colors: [Color; 3]) {
        let [background, plain, line] = colors;
        let across = floor.normal.cross(&floor.along);
        let (u, v) = (floor.along * floor.reach, across * floor.reach);
        let p = floor.point;
        let mesh = Mesh::polygon(&floor.normal, &[p - u - v, p + u - v, p + u + v, p - u + v]);
        let thing = Placed {
            mesh: &mesh,
            position: Vec3::zeros(),
            turn: Mat3::identity(),
            scale: Vec3::repeat(1.0),
            color: plain,
        };
        self.triangles(camera, &thing, |world, _, hidden, _| {
            (!hidden).then(|| {
                let from = world - p;
                let to_eye = camera.eye - world;
                let distance = to_eye.norm();
                // metres that a pixel covers, stretched where it is seen at a grazing angle
                let grazing = (to_eye.dot(&floor.normal) / distance).abs().max(0.05);
                let pixel = distance / camera.focal / grazing.sqrt();
                let on_line = |x: f64| {
                    let off = (x / floor.cell - (x / floor.cell).round()).abs() * floor.cell;
                    let cover = (1.5 - off / pixel).clamp(0.0, 1.0);
                    // lines closer than pixels are a grey area, not a pattern
                    cover * (floor.cell / (8.0 * pixel)).min(1.0)
                };
                let grid = on_line(world.dot(&floor.along)).max(on_line(world.dot(&across)));
                let lit = mix(plain, line, grid as f32);
                let dark = 1.0 - DARK * (1.0 - shadow.light(&world, &floor.normal));
                let fade = smooth(0.35, 1.0, from.norm() / floor.reach) as f32;
                mix(lit.map(|c| c * dark), background, fade)
            })
        });
    }

    /// Draws a line over what is behind it.
    pub fn line(&mut self, camera: &Camera, from: &Vec3, to: &Vec3, radius: f64, color: Color) {
        let (a, b) = (camera.local(from), camera.local(to));
        if a.z < camera.near || b.z < camera.near {
            return;
        }
        let (p, q) = (camera.pixel(&a), camera.pixel(&b));
        let along = [q[0] - p[0], q[1] - p[1]];
        let length = along[0] * along[0] + along[1] * along[1];
        let range = |i: usize, most: usize| {
            let (low, high) = (p[i].min(q[i]) - radius, p[i].max(q[i]) + radius);
            low.max(0.0) as usize..((high + 1.0).max(0.0) as usize).min(most)
        };
        for y in range(1, self.height) {
            for x in range(0, self.width) {
                let d = [x as f64 + 0.5 - p[0], y as f64 + 0.5 - p[1]];
                let share = if length > 0.0 {
                    ((d[0] * along[0] + d[1] * along[1]) / length).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let off = (d[0] - share * along[0]).hypot(d[1] - share * along[1]);
                let near = (1.0 / a.z + (1.0 / b.z - 1.0 / a.z) * share) as f32;
                let pixel = y * self.width + x;
                if off <= radius && near * 1.01 >= self.near[pixel] {
                    self.color[pixel] = color;
                }
            }
        }
    }
}

/// The part of a triangle that is before the eye.
fn before_eye(corners: &[Corner; 3], near: f64) -> Vec<Corner> {
    let mut left = Vec::with_capacity(4);
    for i in 0..3 {
        let (a, b) = (&corners[i], &corners[(i + 1) % 3]);
        if a.local.z >= near {
            left.push(*a);
        }
        if (a.local.z < near) != (b.local.z < near) {
            left.push(a.between(b, (near - a.local.z) / (b.local.z - a.local.z)));
        }
    }
    left
}

/// A surface under the sky and one light, which the page's shader does likewise.
fn lighted(base: Color, normal: &Vec3, light: &Vec3, to_eye: &Vec3, lit: f32) -> Color {
    let sky = 0.52 + 0.2 * (0.5 + 0.5 * normal.z) as f32;
    let direct = 0.4 * normal.dot(light).max(0.0) as f32 * lit;
    let shine = normal.dot(&(light + to_eye).normalize()).max(0.0).powi(40) as f32;
    base.map(|c| (c * (sky + direct) + 0.07 * shine * lit).min(1.0))
}

pub(super) fn mix(a: Color, b: Color, share: f32) -> Color {
    [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * share)
}

/// 0 below the first, 1 above the second, smooth between.
fn smooth(from: f64, to: f64, x: f64) -> f64 {
    let t = ((x - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
