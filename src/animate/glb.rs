//! glTF 2.0 in one binary file: bodies are nodes that carry the meshes of their shapes and move by an animation.

use super::AnimateError;
use super::frames::NUMBERS;
use super::look::Color;
use super::mesh::Mesh;
use super::scene::{Part, Run, Scene};
use crate::spatial::{Quat, Vec3};
use gltf_json as json;
use json::accessor::{ComponentType, GenericComponentType, Type};
use json::animation::{Interpolation, Property};
use json::buffer::Target;
use json::mesh::{Mode, Semantic};
use json::scene::UnitQuaternion;
use json::validation::{Checked::Valid, USize64};
use json::{Index, Node, Root};
use std::collections::HashMap;

/// `glTF`, and the types of chunks.
const MAGIC: u32 = 0x4654_6c67;
const JSON: u32 = 0x4e4f_534a;
const BINARY: u32 = 0x004e_4942;
const VERSION: u32 = 2;

/// Of the solid floor.
const FLOOR: Color = [0.9, 0.89, 0.87];
/// Surfaces are dull.
const ROUGHNESS: f32 = 0.7;

/// Turns up along z, which is ours, to up along y, which is the format's.
const UPRIGHT: [f32; 4] = [
    -std::f32::consts::FRAC_1_SQRT_2,
    0.0,
    0.0,
    std::f32::consts::FRAC_1_SQRT_2,
];

/// The scene as a glTF binary; `y` is up, lengths are in m, times in s.
///
/// # Errors
/// When it is too large for the format, 4 GB.
pub fn render_glb(scene: &Scene) -> Result<Vec<u8>, AnimateError> {
    let mut file = File::new(scene);
    let mut top = vec![];
    for run in &scene.runs {
        let node = file.run(run);
        top.push(node);
    }
    if scene.floor.is_solid {
        top.push(file.floor(scene));
    }
    let root = file.root.push(Node {
        name: Some(scene.title.clone()),
        rotation: Some(UnitQuaternion(UPRIGHT)),
        children: Some(top),
        ..Node::default()
    });
    let whole = file.root.push(json::Scene {
        nodes: vec![root],
        name: None,
        extensions: None,
        extras: Default::default(),
    });
    file.root.scene = Some(whole);
    file.bytes()
}

/// Accessors of a mesh: positions, normals, indices.
type Stored = [Index<json::Accessor>; 3];

struct File<'a> {
    meshes: &'a [Mesh],
    root: Root,
    binary: Vec<u8>,
    stored: HashMap<usize, Stored>,
    /// By mesh and colour.
    colored: HashMap<(usize, [u32; 3]), Index<json::Mesh>>,
    materials: HashMap<[u32; 3], Index<json::Material>>,
}

impl<'a> File<'a> {
    fn new(scene: &'a Scene) -> Self {
        let mut root = Root {
            asset: json::Asset {
                generator: Some(concat!("least-action ", env!("CARGO_PKG_VERSION")).into()),
                ..json::Asset::default()
            },
            ..Root::default()
        };
        root.buffers.push(json::Buffer {
            byte_length: USize64(0),
            name: None,
            uri: None,
            extensions: None,
            extras: Default::default(),
        });
        Self {
            meshes: &scene.meshes,
            root,
            binary: vec![],
            stored: HashMap::new(),
            colored: HashMap::new(),
            materials: HashMap::new(),
        }
    }

    /// Numbers of four bytes, `width` of them an element.
    fn accessor(
        &mut self,
        bytes: impl Iterator<Item = [u8; 4]>,
        (kind, width): (Type, usize),
        component: ComponentType,
        target: Option<Target>,
        bounds: Option<[Vec<f32>; 2]>,
    ) -> Index<json::Accessor> {
        let start = self.binary.len();
        self.binary.extend(bytes.flatten());
        let length = self.binary.len() - start;
        let view = self.root.push(json::buffer::View {
            buffer: Index::new(0),
            byte_length: USize64::from(length),
            byte_offset: Some(USize64::from(start)),
            byte_stride: None,
            name: None,
            target: target.map(Valid),
            extensions: None,
            extras: Default::default(),
        });
        let [min, max] = match bounds {
            Some(both) => both.map(|v| Some(json::Value::from(v))),
            None => [None, None],
        };
        self.root.push(json::Accessor {
            buffer_view: Some(view),
            byte_offset: Some(USize64(0)),
            count: USize64::from(length / (4 * width)),
            component_type: Valid(GenericComponentType(component)),
            type_: Valid(kind),
            min,
            max,
            name: None,
            normalized: false,
            sparse: None,
            extensions: None,
            extras: Default::default(),
        })
    }

    fn floats(
        &mut self,
        values: impl Iterator<Item = f32>,
        shape: (Type, usize),
        target: Option<Target>,
        bounds: Option<[Vec<f32>; 2]>,
    ) -> Index<json::Accessor> {
        let bytes = values.map(f32::to_le_bytes);
        self.accessor(bytes, shape, ComponentType::F32, target, bounds)
    }

    fn triangles(&mut self, mesh: &Mesh) -> Stored {
        let vec3 = (Type::Vec3, 3);
        let vertices = Some(Target::ArrayBuffer);
        let bounds = mesh.bounds().map(|b| b.map(|p| p.to_vec()));
        let positions = mesh.positions.iter().flatten().copied();
        let positions = self.floats(positions, vec3, vertices, bounds);
        // single precision keeps their length to a part in a million, the format asks for no more
        let normals = mesh.normals.iter().flatten().copied();
        let normals = self.floats(normals, vec3, vertices, None);
        let indices = self.accessor(
            mesh.indices.iter().map(|i| i.to_le_bytes()),
            (Type::Scalar, 1),
            ComponentType::U32,
            Some(Target::ElementArrayBuffer),
            None,
        );
        [positions, normals, indices]
    }

    fn material(&mut self, color: Color) -> Index<json::Material> {
        let root = &mut self.root;
        *(self.materials)
            .entry(color.map(f32::to_bits))
            .or_insert_with(|| {
                let [r, g, b] = color.map(linear);
                root.push(json::Material {
                    name: Some(hex(color)),
                    double_sided: true,
                    pbr_metallic_roughness: json::material::PbrMetallicRoughness {
                        base_color_factor: json::material::PbrBaseColorFactor([r, g, b, 1.0]),
                        metallic_factor: json::material::StrengthFactor(0.0),
                        roughness_factor: json::material::StrengthFactor(ROUGHNESS),
                        ..Default::default()
                    },
                    ..Default::default()
                })
            })
    }

    fn mesh(
        &mut self,
        [positions, normals, indices]: Stored,
        color: Color,
        name: String,
    ) -> Index<json::Mesh> {
        let material = self.material(color);
        let attributes = [
            (Valid(Semantic::Positions), positions),
            (Valid(Semantic::Normals), normals),
        ];
        self.root.push(json::Mesh {
            primitives: vec![json::mesh::Primitive {
                attributes: attributes.into_iter().collect(),
                indices: Some(indices),
                material: Some(material),
                mode: Valid(Mode::Triangles),
                targets: None,
                extensions: None,
                extras: Default::default(),
            }],
            weights: None,
            name: Some(name),
            extensions: None,
            extras: Default::default(),
        })
    }

    fn part(&mut self, part: &Part, owner: &str) -> Index<Node> {
        let key = (part.mesh, part.color.map(f32::to_bits));
        let mesh = match self.colored.get(&key) {
            Some(known) => *known,
            None => {
                let stored = match self.stored.get(&part.mesh) {
                    Some(known) => *known,
                    None => {
                        let meshes = self.meshes;
                        let new = self.triangles(&meshes[part.mesh]);
                        self.stored.insert(part.mesh, new);
                        new
                    }
                };
                let new = self.mesh(stored, part.color, format!("shape of {owner}"));
                self.colored.insert(key, new);
                new
            }
        };
        self.root.push(Node {
            name: Some(format!("{owner} shape")),
            mesh: Some(mesh),
            translation: Some(single(&part.position)),
            rotation: Some(rotation(&part.orientation)),
            ..Node::default()
        })
    }

    /// A node of everything in a run, which also moves.
    fn run(&mut self, run: &Run) -> Index<Node> {
        let mut bodies = vec![];
        for (b, name) in run.bodies.iter().enumerate() {
            let own = run.parts.iter().filter(|p| p.body == Some(b));
            let parts: Vec<_> = own.map(|p| self.part(p, name)).collect();
            let (x, q) = run.frames.pose(0, b);
            bodies.push(self.root.push(Node {
                name: Some(name.clone()),
                translation: Some(single(&x)),
                rotation: Some(rotation(&q)),
                children: (!parts.is_empty()).then_some(parts),
                ..Node::default()
            }));
        }
        self.motion(run, &bodies);
        let world = run.parts.iter().filter(|p| p.body.is_none());
        let fixed: Vec<_> = world.map(|p| self.part(p, "world")).collect();
        let children: Vec<_> = bodies.into_iter().chain(fixed).collect();
        self.root.push(Node {
            name: Some(run.name.clone()),
            translation: Some(single(&run.offset)),
            children: (!children.is_empty()).then_some(children),
            ..Node::default()
        })
    }

    fn motion(&mut self, run: &Run, bodies: &[Index<Node>]) {
        let frames = &run.frames;
        if frames.len() < 2 || bodies.is_empty() {
            return;
        }
        // viewers begin at zero
        let times = || frames.times.iter().map(|t| t - frames.times[0]);
        let bounds = [vec![0.0], vec![times().fold(0.0, f32::max)]];
        let input = self.floats(times(), (Type::Scalar, 1), None, Some(bounds));
        let (mut samplers, mut channels) = (vec![], vec![]);
        for (b, node) in bodies.iter().enumerate() {
            for (property, range, kind) in [
                (Property::Translation, 0..3, Type::Vec3),
                (Property::Rotation, 3..NUMBERS, Type::Vec4),
            ] {
                let of = |f: usize| frames.numbers(f, b)[range.clone()].iter().copied();
                let values = (0..frames.len()).flat_map(of);
                let output = self.floats(values, (kind, range.len()), None, None);
                channels.push(json::animation::Channel {
                    sampler: Index::new(samplers.len() as u32),
                    target: json::animation::Target {
                        node: *node,
                        path: Valid(property),
                        extensions: None,
                        extras: Default::default(),
                    },
                    extensions: None,
                    extras: Default::default(),
                });
                samplers.push(json::animation::Sampler {
                    input,
                    interpolation: Valid(Interpolation::Linear),
                    output,
                    extensions: None,
                    extras: Default::default(),
                });
            }
        }
        self.root.animations.push(json::Animation {
            name: Some(run.name.clone()),
            channels,
            samplers,
            extensions: None,
            extras: Default::default(),
        });
    }

    fn floor(&mut self, scene: &Scene) -> Index<Node> {
        let f = &scene.floor;
        let (u, v) = (f.along * f.reach, f.normal.cross(&f.along) * f.reach);
        let mesh = Mesh::polygon(&f.normal, &[-u - v, u - v, u + v, v - u]);
        let stored = self.triangles(&mesh);
        let mesh = self.mesh(stored, FLOOR, "ground".into());
        self.root.push(Node {
            name: Some("ground".into()),
            mesh: Some(mesh),
            translation: Some(single(&f.point)),
            ..Node::default()
        })
    }

    /// Header and chunks, each to whole words.
    fn bytes(mut self) -> Result<Vec<u8>, AnimateError> {
        let failed = |e: &dyn std::fmt::Display| AnimateError::Encoding(e.to_string());
        self.root.buffers[0].byte_length = USize64::from(self.binary.len());
        if self.binary.is_empty() {
            self.root.buffers.clear();
        }
        let mut text = json::serialize::to_vec(&self.root).map_err(|e| failed(&e))?;
        text.resize(text.len().next_multiple_of(4), b' ');
        let mut chunks = vec![(JSON, text)];
        if !self.binary.is_empty() {
            chunks.push((BINARY, self.binary));
        }
        let length = 12 + chunks.iter().map(|(_, c)| 8 + c.len()).sum::<usize>();
        let length = u32::try_from(length)
            .map_err(|_| failed(&"it is larger than the 4 GB that the format allows"))?;
        let mut bytes: Vec<u8> = vec![];
        let word = |bytes: &mut Vec<u8>, w: u32| bytes.extend(w.to_le_bytes());
        for w in [MAGIC, VERSION, length] {
            word(&mut bytes, w);
        }
        for (kind, chunk) in chunks {
            word(&mut bytes, chunk.len() as u32);
            word(&mut bytes, kind);
            bytes.extend(chunk);
        }
        Ok(bytes)
    }
}

fn single(v: &Vec3) -> [f32; 3] {
    [v.x, v.y, v.z].map(|x| x as f32)
}

fn rotation(q: &Quat) -> UnitQuaternion {
    UnitQuaternion([q.i, q.j, q.k, q.w].map(|x| x as f32))
}

/// From sRGB.
fn linear(v: f32) -> f32 {
    match v <= 0.04045 {
        true => v / 12.92,
        false => ((v + 0.055) / 1.055).powf(2.4),
    }
}

fn hex(color: Color) -> String {
    let [r, g, b] = color.map(|v| (v * 255.0).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animate::Scene;
    use crate::format::{self, Overrides};
    use json::validation::Validate;

    /// A pendulum and a ball on the ground, simulated.
    fn recorded() -> crate::format::recording::Recording {
        let text = r#"
            title = "Two"
            time_step = 0.02
            horizon = 0.4
            [mechanism.bodies.rod]
            mass = 1.0
            shape = { box = [0.05, 0.05, 0.6] }
            [mechanism.bodies.ball]
            mass = 1.0
            shape = { sphere = 0.1 }
            free = true
            contacts.skin = { friction = 0.4 }
            [mechanism.joints.pivot]
            kind = "revolute"
            child = "rod"
            axis = [0.0, 1.0, 0.0]
            child_anchor = [0.0, 0.0, 0.3]
            [mechanism.half_spaces.ground]
            offset = -1.0
            [initial]
            pivot = 1.0
            ball = { position = [0.5, 0.0, -0.9] }
        "#;
        let model = format::parse(text, "two.toml").and_then(|d| d.build(&Overrides::default()));
        let model = model.expect("a model");
        let mut t = crate::rollout::Trajectory::new(
            &model.system,
            model.problem.intervals.clone(),
            &model.x0,
        );
        let mut work = crate::dynamics::Step::work(&model.system);
        t.roll(&model.system, &mut work, &mut Default::default())
            .expect("rolls");
        format::record(&model, &t, "done", &[]).expect("a recording")
    }

    fn word(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }

    #[test]
    fn a_binary_reads_back() {
        let recording = recorded();
        let scene = Scene::new(&[("two", &recording)]).expect("a scene");
        let bytes = render_glb(&scene).expect("a file");
        assert_eq!(&bytes[..4], b"glTF");
        assert_eq!((word(&bytes, 4), word(&bytes, 8)), (2, bytes.len()));
        let text = word(&bytes, 12);
        assert_eq!((&bytes[16..20], text % 4), (&b"JSON"[..], 0));
        let root: Root = json::deserialize::from_slice(&bytes[20..20 + text]).expect("JSON");
        let chunk = 20 + text;
        let length = word(&bytes, chunk);
        assert_eq!(
            (&bytes[chunk + 4..chunk + 8], length % 4),
            (&b"BIN\0"[..], 0)
        );
        let binary = &bytes[chunk + 8..];
        assert_eq!(
            (binary.len(), root.buffers[0].byte_length.0 as usize),
            (length, length)
        );

        let mut faults = vec![];
        root.validate(&root, json::Path::new, &mut |path, e| {
            faults.push(format!("{} {e:?}", path()));
        });
        assert!(faults.is_empty(), "{faults:?}");

        let view = |a: &json::Accessor| {
            let view = &root.buffer_views[a.buffer_view.expect("a view").value()];
            let from = view.byte_offset.map_or(0, |o| o.0 as usize);
            let to = from + view.byte_length.0 as usize;
            assert!(to <= binary.len() && from.is_multiple_of(4));
            &binary[from..to]
        };
        let numbers = |a: &json::Accessor| -> Vec<f32> {
            let words = view(a).chunks_exact(4);
            words
                .map(|w| f32::from_le_bytes(w.try_into().expect("four bytes")))
                .collect()
        };
        for mesh in &root.meshes {
            let p = &mesh.primitives[0];
            let positions = &root.accessors[p.attributes[&Valid(Semantic::Positions)].value()];
            let all = numbers(positions);
            assert_eq!(all.len(), 3 * positions.count.0 as usize);
            for (bound, f) in [
                (&positions.min, f32::min as fn(f32, f32) -> f32),
                (&positions.max, f32::max),
            ] {
                let own = (0..3).map(|i| all.iter().skip(i).step_by(3).copied().reduce(f));
                let own: Vec<f32> = own.map(|v| v.expect("some")).collect();
                let told: Vec<f32> =
                    json::deserialize::from_value(bound.clone().expect("bounds")).expect("numbers");
                assert_eq!(own, told);
            }
            let indices =
                view(&root.accessors[p.indices.expect("indices").value()]).chunks_exact(4);
            let mut each = indices.map(|w| u32::from_le_bytes(w.try_into().expect("four bytes")));
            assert!(each.all(|i| u64::from(i) < positions.count.0));
        }
        let motion = &root.animations[0];
        assert_eq!(motion.channels.len(), 4);
        for (i, s) in motion.samplers.iter().enumerate() {
            let input = &root.accessors[s.input.value()];
            let times = numbers(input);
            assert!(times[0] == 0.0 && times.windows(2).all(|t| t[0] < t[1]));
            assert_eq!(
                input.max,
                Some(json::Value::from(vec![times[times.len() - 1]]))
            );
            let output = numbers(&root.accessors[s.output.value()]);
            let width = if i % 2 == 0 { 3 } else { 4 };
            assert_eq!(output.len(), width * times.len());
            for q in output.chunks_exact(width).filter(|q| q.len() == 4) {
                assert!((q.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
        // the rod's last place is that of the recording
        let last = recording.poses[recording.poses.len() - 1][0].position;
        let places = numbers(&root.accessors[motion.samplers[0].output.value()]);
        let end = &places[places.len() - 3..];
        assert!((0..3).all(|i| (f64::from(end[i]) - last[i]).abs() < 1e-6));
        let names: Vec<&str> = root
            .nodes
            .iter()
            .filter_map(|n| n.name.as_deref())
            .collect();
        for name in ["rod", "ball", "ground", "two", "Two"] {
            assert!(names.contains(&name), "{names:?}");
        }
    }
}
