//! Recordings to draw: closed-form motions that look like runs.

use crate::format::recording::{
    Channel, Contact, Dot, Force, Ground, Group, Iteration, Line, Pose, Recording,
};
use std::f64::consts::PI;

pub(super) fn empty(title: &str) -> Recording {
    Recording {
        title: title.to_owned(),
        version: "0.1.0".to_owned(),
        status: "simulated".to_owned(),
        time: Vec::new(),
        channels: Vec::new(),
        bodies: Vec::new(),
        poses: Vec::new(),
        lines: Vec::new(),
        dots: Vec::new(),
        links: Vec::new(),
        places: Vec::new(),
        ground: Vec::new(),
        contacts: Vec::new(),
        visuals: Vec::new(),
        convergence: Vec::new(),
        parameters: indexmap::IndexMap::new(),
        mechanism: serde_json::Value::Null,
    }
}

pub(super) fn channel(name: &str, unit: &str, group: Group, values: Vec<f64>) -> Channel {
    let values = values
        .into_iter()
        .map(|v| v.is_finite().then_some(v))
        .collect();
    Channel {
        name: name.to_owned(),
        unit: unit.to_owned(),
        group,
        values,
        interval: None,
        not_unique: false,
        goals: Vec::new(),
        lower: None,
        upper: None,
    }
}

/// A rotation by `angle` about the y axis.
fn about_y(angle: f64) -> [f64; 4] {
    [(angle / 2.0).cos(), 0.0, (angle / 2.0).sin(), 0.0]
}

/// A pole swung up on a cart, the pole hanging along -z at angle zero.
pub(super) fn cart_pole() -> Recording {
    let knots = 101;
    let mut r = empty("Cart-pole swing-up");
    r.status = "solved".to_owned();
    r.time = (0..knots).map(|k| 0.02 * k as f64).collect();
    let at = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { r.time.iter().map(|t| f(*t)).collect() };
    let s = |t: f64| (t / 2.0).clamp(0.0, 1.0);
    let angle = |t: f64| {
        PI * (s(t).powi(3) * (10.0 - 15.0 * s(t) + 6.0 * s(t).powi(2)))
            - 1.1 * (PI * t).sin() * (1.0 - s(t))
    };
    let cart = |t: f64| 0.35 * (1.5 * PI * t).sin() * (1.0 - s(t)) + 0.3 * s(t) * s(t);
    let slope = |f: &dyn Fn(f64) -> f64, t: f64| (f(t + 1e-4) - f(t - 1e-4)) / 2e-4;
    let push = |t: f64| (20.0 * (1.5 * PI * t).cos() * (1.0 - 0.6 * s(t))).clamp(-15.0, 15.0);
    let kinetic = |t: f64| 0.5 * slope(&cart, t).powi(2) + 0.08 * slope(&angle, t).powi(2);
    let potential = |t: f64| -1.2 * angle(t).cos();
    let mut channels = vec![
        channel("slider", "m", Group::Coordinate, at(&cart)),
        channel("hinge", "rad", Group::Coordinate, at(&angle)),
        channel("slider rate", "m/s", Group::Rate, at(&|t| slope(&cart, t))),
        channel(
            "hinge rate",
            "rad/s",
            Group::Rate,
            at(&|t| slope(&angle, t)),
        ),
        channel("push", "N", Group::Control, at(&push)),
        channel(
            "slider force z",
            "N",
            Group::ConstraintForce,
            at(&|t| 14.0 + 3.0 * (4.0 * t).sin()),
        ),
        channel(
            "hinge force x",
            "N",
            Group::ConstraintForce,
            at(&|t| 6.0 * (5.0 * t).cos()),
        ),
        channel(
            "hinge force z",
            "N",
            Group::ConstraintForce,
            at(&|t| 5.0 + 4.0 * (3.0 * t).sin()),
        ),
        channel(
            "slider moment y",
            "N m",
            Group::ConstraintForce,
            at(&|t| 0.4 * (3.0 * t).sin()),
        ),
        channel("kinetic", "J", Group::Energy, at(&kinetic)),
        channel("potential", "J", Group::Energy, at(&potential)),
        channel(
            "total",
            "J",
            Group::Energy,
            at(&|t| kinetic(t) + potential(t)),
        ),
        channel(
            "work",
            "J",
            Group::Energy,
            at(&|t| kinetic(t) + potential(t) + 1.2),
        ),
        channel(
            "energy error",
            "J",
            Group::Energy,
            at(&|t| 3e-9 * (20.0 * t).sin() * t),
        ),
    ];
    channels[4].values[knots - 1] = None;
    channels[4].lower = Some(-15.0);
    channels[4].upper = Some(15.0);
    r.poses = (0..knots)
        .map(|k| {
            let (x, a) = (cart(r.time[k]), angle(r.time[k]));
            let middle = [x - 0.25 * a.sin(), 0.0, -0.25 * a.cos()];
            vec![
                Pose {
                    position: [x, 0.0, 0.0],
                    orientation: about_y(0.0),
                },
                Pose {
                    position: middle,
                    orientation: about_y(a),
                },
            ]
        })
        .collect();
    r.channels = channels;
    r.bodies = vec!["cart".to_owned(), "pole".to_owned()];
    let (w, h) = (0.12, 0.05);
    r.lines = vec![
        Line {
            body: None,
            points: vec![[-4.0, 0.0, 0.0], [4.0, 0.0, 0.0]],
        },
        Line {
            body: Some(0),
            points: vec![
                [-w, 0.0, -h],
                [w, 0.0, -h],
                [w, 0.0, h],
                [-w, 0.0, h],
                [-w, 0.0, -h],
            ],
        },
        Line {
            body: Some(1),
            points: vec![[0.0, 0.0, 0.25], [0.0, 0.0, -0.25]],
        },
    ];
    r.dots = vec![
        Dot {
            body: Some(1),
            point: [0.0, 0.0, 0.25],
        },
        Dot {
            body: Some(1),
            point: [0.0, 0.0, -0.25],
        },
    ];
    r.convergence = (0..42_u64)
        .map(|i| Iteration {
            iteration: i,
            objective: 4.0 + 300.0 * (-0.3 * i as f64).exp(),
            violation: if i > 38 {
                0.0
            } else {
                2.0 * (-0.6 * i as f64).exp()
            },
            optimality: 30.0 * (-0.35 * i as f64).exp() * (1.5 + (i as f64).sin()),
            ..Iteration::default()
        })
        .collect();
    r
}

/// A box of 0.4 m falls on the ground, slides, and sticks; of its eight corners four touch.
pub(super) fn sliding_box() -> Recording {
    let knots = 121;
    let mut r = empty("Sliding box");
    r.time = (0..knots).map(|k| 0.01 * k as f64).collect();
    let touches = |t: f64| t > 0.3;
    let speed = |t: f64| (if touches(t) { 0.9 - t } else { 0.6 }).max(0.0);
    let height = |t: f64| {
        if touches(t) {
            0.2
        } else {
            0.2 + 4.9 * (0.09 - t * t)
        }
    };
    let mut x = 0.0;
    for k in 0..knots {
        let t = r.time[k];
        r.poses.push(vec![Pose {
            position: [x, 0.0, height(t)],
            orientation: about_y(0.0),
        }]);
        x += 0.01 * speed(t);
    }
    r.bodies = vec!["box".to_owned()];
    let corner = |i: usize| [0, 1, 2].map(|a| if i >> a & 1 == 0 { -0.2 } else { 0.2 });
    r.lines = (0..4)
        .map(|i| Line {
            body: Some(0),
            points: vec![corner(i), corner(i + 4)],
        })
        .collect();
    r.ground = vec![Ground {
        normal: [0.0, 0.0, 1.0],
        corners: [[-0.3, -0.3], [0.9, -0.3], [0.9, 0.3], [-0.3, 0.3]]
            .map(|[x, y]| [x, y, 0.0])
            .to_vec(),
    }];
    for i in 0..8 {
        let low = i < 4;
        let at = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { r.time.iter().map(|t| f(*t)).collect() };
        let normal = |t: f64| match t {
            _ if !(low && touches(t)) => 0.0,
            t if t < 0.32 => 75.0,
            _ => 2.5,
        };
        let friction = |t: f64| if speed(t) > 0.0 { 0.3 * normal(t) } else { 0.0 };
        let gap = |t: f64| height(t) - 0.2 + if low { 0.0 } else { 0.4 };
        let mut four = vec![
            channel(&format!("gap of box {i}"), "m", Group::Contact, at(&gap)),
            channel(
                &format!("normal force of box {i}"),
                "N",
                Group::Contact,
                at(&normal),
            ),
            channel(
                &format!("friction of box {i}"),
                "N",
                Group::Contact,
                at(&friction),
            ),
            channel(
                &format!("slip of box {i}"),
                "m/s",
                Group::Contact,
                at(&speed),
            ),
        ];
        four[1].values[0] = None;
        four[2].values[0] = None;
        let force = |k: usize| {
            let (t, p) = (r.time[k], r.poses[k][0].position);
            let c = corner(i);
            (normal(t) > 0.0).then(|| Force {
                knot: k,
                point: [p[0] + c[0], p[1] + c[1], p[2] + c[2]],
                force: [-friction(t), 0.0, normal(t)],
            })
        };
        r.contacts.push(Contact {
            name: format!("box.corner {i} on floor"),
            parent: None,
            child: 0,
            friction: 0.3,
            forces: (1..knots).filter_map(force).collect(),
            meets: vec![],
        });
        r.channels.append(&mut four);
    }
    r
}

/// A closed loop of five bars in the x-z plane, drawn by its two cranks.
pub(super) fn five_bar() -> Recording {
    let knots = 201;
    let mut r = empty("Five-bar linkage tracing a curve");
    r.time = (0..knots)
        .map(|k| 5.0 * k as f64 / (knots - 1) as f64)
        .collect();
    let (base, crank, rod) = (0.3, 0.35, 0.75);
    let cranks = |t: f64| {
        (
            PI * 0.68 + 0.45 * (1.2 * t).sin(),
            PI * 0.32 + 0.45 * (1.9 * t).cos(),
        )
    };
    let bar = |a: [f64; 2], b: [f64; 2]| Pose {
        position: [(a[0] + b[0]) / 2.0, 0.0, (a[1] + b[1]) / 2.0],
        orientation: about_y(-(b[1] - a[1]).atan2(b[0] - a[0])),
    };
    r.poses = r
        .time
        .iter()
        .map(|t| {
            let (p, q) = cranks(*t);
            let (o1, o2) = ([-base, 0.0], [base, 0.0]);
            let k1 = [o1[0] + crank * p.cos(), crank * p.sin()];
            let k2 = [o2[0] + crank * q.cos(), crank * q.sin()];
            let (dx, dz) = (k2[0] - k1[0], k2[1] - k1[1]);
            let d = dx.hypot(dz);
            let up = (rod * rod - d * d / 4.0).max(0.0).sqrt();
            let tip = [
                (k1[0] + k2[0]) / 2.0 - dz / d * up,
                (k1[1] + k2[1]) / 2.0 + dx / d * up,
            ];
            vec![bar(o1, k1), bar(o2, k2), bar(k1, tip), bar(k2, tip)]
        })
        .collect();
    r.bodies = ["left crank", "right crank", "left rod", "right rod"]
        .map(String::from)
        .to_vec();
    let line = |body, half: f64| Line {
        body: Some(body),
        points: vec![[-half, 0.0, 0.0], [half, 0.0, 0.0]],
    };
    let (c, d) = (crank / 2.0, rod / 2.0);
    r.lines = vec![line(0, c), line(1, c), line(2, d), line(3, d)];
    let dot = |body, x| Dot {
        body,
        point: [x, 0.0, 0.0],
    };
    r.dots = vec![
        dot(None, -base),
        dot(None, base),
        dot(Some(0), c),
        dot(Some(1), c),
        dot(Some(2), d),
    ];
    let at = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { r.time.iter().map(|t| f(*t)).collect() };
    r.channels = vec![
        channel(
            "left shoulder",
            "rad",
            Group::Coordinate,
            at(&|t| cranks(t).0),
        ),
        channel(
            "right shoulder",
            "rad",
            Group::Coordinate,
            at(&|t| cranks(t).1),
        ),
        channel(
            "left shoulder rate",
            "rad/s",
            Group::Rate,
            at(&|t| 0.54 * (1.2 * t).cos()),
        ),
        channel(
            "right shoulder rate",
            "rad/s",
            Group::Rate,
            at(&|t| -0.855 * (1.9 * t).sin()),
        ),
        channel(
            "left torque",
            "N m",
            Group::Control,
            at(&|t| {
                if t < 4.99 {
                    0.02 * (2.0 * t).sin()
                } else {
                    f64::NAN
                }
            }),
        ),
        channel(
            "right torque",
            "N m",
            Group::Control,
            at(&|t| {
                if t < 4.99 {
                    0.03 * (3.0 * t).cos()
                } else {
                    f64::NAN
                }
            }),
        ),
    ];
    for i in 0..12 {
        let values = at(&|t| (t + 0.5 * f64::from(i)).sin() * (1.0 + 0.2 * f64::from(i)));
        r.channels.push(channel(
            &format!("loop closure force {i}"),
            "N",
            Group::ConstraintForce,
            values,
        ));
    }
    r.channels.push(channel(
        "total",
        "J",
        Group::Energy,
        at(&|t| 9.81 + 1e-9 * (7.0 * t).sin()),
    ));
    r
}

/// A top on its tip, precessing about z: nothing stays in a plane.
pub(super) fn top() -> Recording {
    let knots = 301;
    let mut r = empty("Spinning top <heavy & fast>");
    r.time = (0..knots).map(|k| 0.005 * k as f64).collect();
    r.poses = r
        .time
        .iter()
        .map(|t| {
            let (lean, turn, spin) = (0.45 + 0.06 * (20.0 * t).sin(), 3.0 * t, 40.0 * t);
            let q = nalgebra::UnitQuaternion::from_axis_angle(&nalgebra::Vector3::z_axis(), turn)
                * nalgebra::UnitQuaternion::from_axis_angle(&nalgebra::Vector3::y_axis(), lean)
                * nalgebra::UnitQuaternion::from_axis_angle(&nalgebra::Vector3::z_axis(), spin);
            let p = q * nalgebra::Vector3::new(0.0, 0.0, 0.1);
            vec![Pose {
                position: [p.x, p.y, p.z],
                orientation: [q.w, q.i, q.j, q.k],
            }]
        })
        .collect();
    r.bodies = vec!["top".to_owned()];
    let rim = (0..=32)
        .map(|i| PI * f64::from(i) / 16.0)
        .map(|a| [0.06 * a.cos(), 0.06 * a.sin(), 0.02])
        .collect();
    r.lines = vec![
        Line {
            body: Some(0),
            points: vec![[0.0, 0.0, -0.1], [0.0, 0.0, 0.08]],
        },
        Line {
            body: Some(0),
            points: rim,
        },
    ];
    r.dots = vec![Dot {
        body: None,
        point: [0.0; 3],
    }];
    let at = |f: &dyn Fn(f64) -> f64| -> Vec<f64> { r.time.iter().map(|t| f(*t)).collect() };
    r.channels = vec![
        channel(
            "tip rotation x",
            "rad",
            Group::Coordinate,
            at(&|t| 0.4 * (3.0 * t).cos()),
        ),
        channel(
            "tip rotation z",
            "rad",
            Group::Coordinate,
            at(&|t| 43.0 * t),
        ),
        channel(
            "kinetic",
            "J",
            Group::Energy,
            at(&|t| 4.0 - 0.05 * (20.0 * t).sin()),
        ),
        channel(
            "potential",
            "J",
            Group::Energy,
            at(&|t| 0.9 + 0.05 * (20.0 * t).sin()),
        ),
    ];
    r
}
