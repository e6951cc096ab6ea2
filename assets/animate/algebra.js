// Vectors [x, y, z], quaternions [x, y, z, w] (body to world), and matrices by columns, as WebGL takes them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const times = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const length = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => times(a, 1 / (length(a) || 1));
const mix = (a, b, share) => add(a, times(sub(b, a), share));

function turn(q, v) {
  const u = [q[0], q[1], q[2]];
  const t = times(cross(u, v), 2);
  return add(v, add(times(t, q[3]), cross(u, t)));
}

function product(p, q) {
  const [a, b, c, d] = p, [e, f, g, h] = q;
  return [d * e + a * h + b * g - c * f, d * f - a * g + b * h + c * e, d * g + a * f - b * e + c * h, d * h - a * e - b * f - c * g];
}

// Along the great circle, the short way.
function slerp(p, q, share) {
  let cosine = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
  const sign = cosine < 0 ? -1 : 1;
  cosine = Math.min(cosine * sign, 1);
  const angle = Math.acos(cosine), sine = Math.sin(angle);
  const [a, b] = sine < 1e-6 ? [1 - share, share] : [Math.sin((1 - share) * angle) / sine, Math.sin(share * angle) / sine];
  const sum = p.map((x, i) => a * x + b * sign * q[i]);
  const size = Math.hypot(...sum);
  return sum.map((x) => x / size);
}

// A rotation that turns z into a direction of unit length, as columns.
function facing(direction) {
  const side = Math.abs(direction[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0];
  const across = unit(cross(direction, side));
  return [cross(across, direction), across, direction];
}

// Columns of a rotation.
const columns = (q) => [turn(q, [1, 0, 0]), turn(q, [0, 1, 0]), turn(q, [0, 0, 1])];

// Scaled columns and a place.
function placement([x, y, z], p, scale = [1, 1, 1]) {
  return new Float32Array([...times(x, scale[0]), 0, ...times(y, scale[1]), 0, ...times(z, scale[2]), 0, ...p, 1]);
}

function multiplied(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++) {
    for (let r = 0; r < 4; r++) {
      for (let k = 0; k < 4; k++) out[4 * c + r] += a[4 * k + r] * b[4 * c + k];
    }
  }
  return out;
}

// From the world to clip space, seen from an eye with the axes right, up and towards it.
function perspective(axes, eye, tangent, aspect, near, far) {
  const [r, u, b] = axes;
  const view = [r[0], u[0], b[0], 0, r[1], u[1], b[1], 0, r[2], u[2], b[2], 0, -dot(r, eye), -dot(u, eye), -dot(b, eye), 1];
  const lens = [1 / (tangent * aspect), 0, 0, 0, 0, 1 / tangent, 0, 0, 0, 0, (near + far) / (near - far), -1, 0, 0, (2 * near * far) / (near - far), 0];
  return multiplied(lens, view);
}

// From the world to a map of what a light sees, around a ball.
function lightMap(light, middle, reach) {
  const [x, y, z] = facing(light).map((v) => times(v, 1 / reach));
  return new Float32Array([x[0], y[0], -z[0], 0, x[1], y[1], -z[1], 0, x[2], y[2], -z[2], 0, -dot(x, middle), -dot(y, middle), dot(z, middle), 1]);
}

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}
const floats = (text) => new Float32Array(bytes(text));
const integers = (text) => new Uint32Array(bytes(text));
