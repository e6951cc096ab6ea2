//! A page that needs nothing but a browser: the scene as JSON and base64 beside the script that draws it.

use super::look::Color;
use super::scene::{ARROW, Arrow, HEAD, PLUMP, Part, Run, Scene};
use crate::spatial::{Quat, Vec3};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../assets/animate/page.html");
const STYLE: &str = include_str!("../../assets/animate/style.css");
const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/animate/algebra.js"),
    include_str!("../../assets/animate/renderer.js"),
    include_str!("../../assets/animate/player.js"),
];

/// The scene as a page.
pub fn render_html(scene: &Scene) -> String {
    let data = json!({
        "title": scene.title,
        "span": scene.span(),
        "size": scene.size,
        "follows": scene.view.follows,
        "speed": scene.speed(),
        "arrow": {
            "scale": scene.arrow_scale,
            "most": scene.most_force,
            "cut": scene.cuts_forces,
            "radius": ARROW * scene.size,
            "plump": PLUMP,
            "head": HEAD,
        },
        "rod": scene.rod_radius(),
        "view": {
            "azimuth": scene.view.azimuth,
            "elevation": scene.view.elevation,
            "points": scene.view.points.iter().map(vec3).collect::<Vec<_>>(),
            "close": scene.view.close.iter().map(vec3).collect::<Vec<_>>(),
            "near": scene.view.near,
            "tangent": super::view::TANGENT,
            "light": vec3(&scene.view.light()),
        },
        "floor": {
            "point": vec3(&scene.floor.point),
            "normal": vec3(&scene.floor.normal),
            "along": vec3(&scene.floor.along),
            "reach": scene.floor.reach,
            "cell": scene.floor.cell,
            "solid": scene.floor.is_solid,
        },
        "meshes": scene.meshes.iter().map(shape).collect::<Vec<_>>(),
        "head_mesh": shape(&super::Mesh::head()),
        "rod_mesh": shape(&super::Mesh::rod()),
        "runs": scene.runs.iter().map(run).collect::<Vec<_>>(),
    });
    // text of the data never ends the script that holds it
    let data = data.to_string().replace('<', "\\u003c");
    let title = scene.title.replace('&', "&amp;").replace('<', "&lt;");
    let script = SCRIPTS.join("\n");
    let mut page = String::new();
    let mut rest = PAGE;
    // in one pass, so that nothing is looked for in what was put in
    for (mark, text) in [
        ("{{title}}", &*title),
        ("{{style}}", STYLE),
        ("{{data}}", &data),
        ("{{script}}", &script),
    ] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page + rest
}

fn shape(m: &super::Mesh) -> Value {
    json!({
        "positions": floats(m.positions.iter().flatten().copied()),
        "normals": floats(m.normals.iter().flatten().copied()),
        "indices": base64(m.indices.iter().flat_map(|i| i.to_le_bytes())),
    })
}

fn run(r: &Run) -> Value {
    let part = |p: &Part| {
        json!({
            "body": p.body,
            "mesh": p.mesh,
            "position": vec3(&p.position),
            "orientation": quaternion(&p.orientation),
            "color": rgb(p.color),
            "casts": p.casts,
        })
    };
    let arrow = |a: &Arrow| {
        let [point, force] = [a.point, a.force];
        [[a.frame as f32; 1].to_vec(), point.to_vec(), force.to_vec()].concat()
    };
    json!({
        "name": r.name,
        "status": r.status,
        "bodies": r.bodies,
        "colors": r.colors.iter().map(|c| rgb(*c)).collect::<Vec<_>>(),
        "color": rgb(r.color),
        "offset": vec3(&r.offset),
        "label": vec3(&r.label),
        "parts": r.parts.iter().map(part).collect::<Vec<_>>(),
        "knots": base64(r.frames.knots.iter().flat_map(|k| (*k as u32).to_le_bytes())),
        "times": floats(r.frames.times.iter().copied()),
        "poses": floats(r.frames.poses.iter().copied()),
        "arrows": floats(r.arrows.iter().flat_map(arrow)),
        "traces": r.traces.iter().map(|t| json!({
            "body": t.body, "point": t.point, "main": t.is_main,
        })).collect::<Vec<_>>(),
        "links": r.links.iter().map(|l| json!({
            "bodies": l.ends.map(|e| e.0), "points": l.ends.map(|e| e.1),
        })).collect::<Vec<_>>(),
    })
}

fn vec3(v: &Vec3) -> [f32; 3] {
    [v.x, v.y, v.z].map(|x| x as f32)
}

/// x, y, z, w.
fn quaternion(q: &Quat) -> [f32; 4] {
    [q.i, q.j, q.k, q.w].map(|x| x as f32)
}

fn rgb(color: Color) -> [f32; 3] {
    // shorter, and none sees the difference
    color.map(|v| (v * 1000.0).round() / 1000.0)
}

fn floats(values: impl Iterator<Item = f32>) -> String {
    base64(values.flat_map(f32::to_le_bytes))
}

/// RFC 4648.
pub(super) fn base64(bytes: impl Iterator<Item = u8>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = bytes.collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i > group.len() { '=' } else { digit.into() });
        }
    }
    text
}
