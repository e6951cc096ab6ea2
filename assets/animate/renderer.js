// Draws meshes, a floor, shadows and lines with WebGL 2.

const SHADOW_PIXELS = 1024;

const LIGHTING = `#version 300 es
precision highp float;
precision highp sampler2DShadow;
uniform vec3 eye, light;
uniform sampler2DShadow shadow;
uniform mat4 shadowFrom;
// the share of the light that comes to a place
float lit(vec3 world) {
  vec3 q = (shadowFrom * vec4(world, 1.0)).xyz * 0.5 + 0.5;
  if (any(lessThan(q.xy, vec2(0.0))) || any(greaterThan(q.xy, vec2(1.0)))) return 1.0;
  // what is farther than the map reaches is behind everything in it
  float depth = min(q.z, 1.0) - 0.002;
  float sum = 0.0;
  for (int i = -1; i < 2; i++) {
    for (int j = -1; j < 2; j++) {
      sum += texture(shadow, vec3(q.xy + vec2(i, j) / ${SHADOW_PIXELS}.0, depth));
    }
  }
  return sum / 9.0;
}
`;

const SOLID = {
  vertex: `#version 300 es
in vec3 position, normal;
uniform mat4 model, seen;
uniform mat3 turned;
out vec3 world, facing;
void main() {
  vec4 at = model * vec4(position, 1.0);
  world = at.xyz;
  facing = turned * normal;
  gl_Position = seen * at;
}`,
  fragment: LIGHTING + `
in vec3 world, facing;
uniform vec4 color;
out vec4 pixel;
void main() {
  vec3 toEye = normalize(eye - world), n = normalize(facing);
  if (dot(n, toEye) < 0.0) n = -n;
  float share = lit(world);
  float sky = 0.52 + 0.2 * (0.5 + 0.5 * n.z);
  float shine = pow(max(dot(n, normalize(light + toEye)), 0.0), 40.0);
  vec3 shaded = color.rgb * (sky + 0.4 * max(dot(n, light), 0.0) * share) + 0.07 * shine * share;
  pixel = vec4(shaded * color.a, color.a);
}`,
};

const FLAT = {
  vertex: `#version 300 es
in vec3 position;
uniform mat4 model, seen;
void main() { gl_Position = seen * model * vec4(position, 1.0); }`,
  fragment: `#version 300 es
precision highp float;
uniform vec4 color;
out vec4 pixel;
void main() { pixel = color; }`,
};

const FLOOR = {
  vertex: `#version 300 es
in vec3 position;
uniform mat4 model, seen;
out vec3 world;
out vec2 place;
void main() {
  vec4 at = model * vec4(position, 1.0);
  world = at.xyz;
  place = position.xy;
  gl_Position = seen * at;
}`,
  fragment: LIGHTING + `
in vec3 world;
in vec2 place;
uniform vec3 along, across, background, plain, line;
uniform float cell;
out vec4 pixel;
float onLine(float x) {
  float size = fwidth(x);
  float off = abs(fract(x / cell - 0.5) - 0.5) * cell;
  return clamp(1.2 - off / max(size, 1e-12), 0.0, 1.0) * min(1.0, cell / (6.0 * size));
}
void main() {
  float grid = max(onLine(dot(world, along)), onLine(dot(world, across)));
  vec3 shade = mix(plain, line, grid) * (1.0 - 0.26 * (1.0 - lit(world)));
  pixel = vec4(mix(shade, background, smoothstep(0.35, 1.0, length(place))), 1.0);
}`,
};

// Segments as ribbons of some pixels.
const RIBBON = {
  vertex: `#version 300 es
in vec2 corner;
in vec3 from, to;
uniform mat4 seen;
uniform vec3 offset;
uniform vec2 size;
uniform float width;
void main() {
  vec4 a = seen * vec4(from + offset, 1.0), b = seen * vec4(to + offset, 1.0);
  // behind the eye there is no place on the screen
  if (a.w <= 0.0 || b.w <= 0.0) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
  vec2 p = a.xy / a.w * size, q = b.xy / b.w * size;
  vec2 d = q - p;
  d = dot(d, d) > 1e-6 ? normalize(d) : vec2(1.0, 0.0);
  vec4 at = corner.x < 0.5 ? a : b;
  vec2 shift = (vec2(-d.y, d.x) * corner.y + d * (corner.x - 0.5)) * width;
  gl_Position = vec4(at.xy + shift / size * at.w, at.z - 0.0005 * at.w, at.w);
}`,
  fragment: FLAT.fragment,
};

class Renderer {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false });
    if (!gl) throw new Error("no WebGL 2");
    this.gl = gl;
    this.canvas = canvas;
    this.solid = this.program(SOLID);
    this.flat = this.program(FLAT);
    this.ground = this.program(FLOOR);
    this.ribbon = this.program(RIBBON);
    this.square = this.mesh({ positions: new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]), indices: new Uint32Array([0, 1, 2, 0, 2, 3]) });
    this.shadow = this.shadowMap();
    this.picked = this.pickTarget();
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  program({ vertex, fragment }) {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader) || "a shader does not compile");
      gl.attachShader(program, shader);
    }
    ["position", "normal"].forEach((name, i) => gl.bindAttribLocation(program, i, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) || "shaders do not link");
    const at = {};
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(program, i).name;
      at[name] = gl.getUniformLocation(program, name);
    }
    return { program, at };
  }

  buffer(data, target = this.gl.ARRAY_BUFFER) {
    const buffer = this.gl.createBuffer();
    this.gl.bindBuffer(target, buffer);
    this.gl.bufferData(target, data, this.gl.STATIC_DRAW);
    return buffer;
  }

  mesh({ positions, normals, indices }) {
    const gl = this.gl;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    [positions, normals].forEach((data, i) => {
      if (!data) return;
      this.buffer(data);
      gl.enableVertexAttribArray(i);
      gl.vertexAttribPointer(i, 3, gl.FLOAT, false, 0, 0);
    });
    this.buffer(indices, gl.ELEMENT_ARRAY_BUFFER);
    gl.bindVertexArray(null);
    return { array, count: indices.length };
  }

  // A line through points, drawn as one ribbon for each pair.
  line(points) {
    const gl = this.gl, { program } = this.ribbon;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const corner = gl.getAttribLocation(program, "corner");
    this.buffer(new Float32Array([0, -0.5, 1, -0.5, 0, 0.5, 1, 0.5]));
    gl.enableVertexAttribArray(corner);
    gl.vertexAttribPointer(corner, 2, gl.FLOAT, false, 0, 0);
    this.buffer(points);
    ["from", "to"].forEach((name, i) => {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, 3, gl.FLOAT, false, 12, 12 * i);
      gl.vertexAttribDivisor(at, 1);
    });
    gl.bindVertexArray(null);
    return { array, count: points.length / 3 - 1 };
  }

  shadowMap() {
    const gl = this.gl;
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_PIXELS, SHADOW_PIXELS);
    for (const [name, value] of [
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR],
      [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ]) gl.texParameteri(gl.TEXTURE_2D, name, value);
    const target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, texture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return { texture, target };
  }

  // A single pixel, to ask what is in it.
  pickTarget() {
    const gl = this.gl;
    const target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    for (const [format, place] of [[gl.RGBA8, gl.COLOR_ATTACHMENT0], [gl.DEPTH_COMPONENT24, gl.DEPTH_ATTACHMENT]]) {
      const storage = gl.createRenderbuffer();
      gl.bindRenderbuffer(gl.RENDERBUFFER, storage);
      gl.renderbufferStorage(gl.RENDERBUFFER, format, 1, 1);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, place, gl.RENDERBUFFER, storage);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return target;
  }

  // As large as it is shown.
  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.ratio = ratio;
    return width / height;
  }

  elements(mesh) {
    this.gl.bindVertexArray(mesh.array);
    this.gl.drawElements(this.gl.TRIANGLES, mesh.count, this.gl.UNSIGNED_INT, 0);
  }

  // things and arrows: { mesh, model, turned, color, casts }; lines: { line, count, offset, color, width }; floor; camera:
  // { seen, eye }; light: { direction, middle, reach }; colors by name.
  draw({ things, arrows, lines, floor, camera, light, colors }) {
    const gl = this.gl;
    const shadowFrom = lightMap(light.direction, light.middle, light.reach);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadow.target);
    gl.viewport(0, 0, SHADOW_PIXELS, SHADOW_PIXELS);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 2);
    gl.useProgram(this.flat.program);
    gl.uniformMatrix4fv(this.flat.at.seen, false, shadowFrom);
    for (const thing of things.filter((t) => t.casts)) {
      gl.uniformMatrix4fv(this.flat.at.model, false, thing.model);
      this.elements(thing.mesh);
    }
    gl.disable(gl.POLYGON_OFFSET_FILL);

    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...colors.background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.shadow.texture);
    for (const { program, at } of [this.solid, this.ground]) {
      gl.useProgram(program);
      gl.uniformMatrix4fv(at.seen, false, camera.seen);
      gl.uniformMatrix4fv(at.shadowFrom, false, shadowFrom);
      gl.uniform3fv(at.eye, camera.eye);
      gl.uniform3fv(at.light, light.direction);
      gl.uniform1i(at.shadow, 0);
    }
    this.drawSolids(things, 1);
    this.drawFloor(floor, camera, colors);
    this.drawLines(lines, camera);
    // forces shine through what hides them
    this.drawSolids(arrows, 1);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.depthFunc(gl.GREATER);
    this.drawSolids(arrows, 0.5);
    gl.depthFunc(gl.LEQUAL);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  drawSolids(things, alpha) {
    const gl = this.gl, { program, at } = this.solid;
    gl.useProgram(program);
    for (const thing of things) {
      gl.uniformMatrix4fv(at.model, false, thing.model);
      gl.uniformMatrix3fv(at.turned, false, thing.turned);
      gl.uniform4f(at.color, ...thing.color, alpha);
      this.elements(thing.mesh);
    }
  }

  drawFloor(floor, camera, colors) {
    const gl = this.gl, { program, at } = this.ground;
    const across = cross(floor.normal, floor.along);
    // from below it would hide everything
    if (dot(floor.normal, sub(camera.eye, floor.point)) < 0) return;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.model, false, placement([floor.along, across, floor.normal], floor.point, [floor.reach, floor.reach, 1]));
    gl.uniform3fv(at.along, floor.along);
    gl.uniform3fv(at.across, across);
    gl.uniform3fv(at.background, colors.background);
    gl.uniform3fv(at.plain, floor.solid ? colors.floor : mix(colors.background, colors.floor, 0.5));
    gl.uniform3fv(at.line, colors.line);
    gl.uniform1f(at.cell, floor.cell);
    this.elements(this.square);
  }

  drawLines(lines, camera) {
    const gl = this.gl, { program, at } = this.ribbon;
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.seen, false, camera.seen);
    gl.uniform2f(at.size, this.canvas.width / 2, this.canvas.height / 2);
    gl.enable(gl.BLEND);
    // lines that cross do not cut each other
    gl.depthMask(false);
    for (const { line, count, offset, color, alpha, width } of lines) {
      if (count < 1) continue;
      gl.uniform3fv(at.offset, offset);
      gl.uniform4f(at.color, ...times(color, alpha), alpha);
      gl.uniform1f(at.width, width * this.ratio);
      gl.bindVertexArray(line.array);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    }
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  // The index of the thing at a place of the canvas, in its pixels on the page; -1 where there is none.
  pick(things, camera, x, y) {
    const gl = this.gl, { program, at } = this.flat;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.picked);
    const { width, height } = this.canvas;
    gl.viewport(-Math.floor(x * this.ratio), -Math.floor(height - 1 - y * this.ratio), width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(program);
    gl.uniformMatrix4fv(at.seen, false, camera.seen);
    things.forEach((thing, i) => {
      const code = i + 1;
      gl.uniform4f(at.color, (code & 255) / 255, ((code >> 8) & 255) / 255, ((code >> 16) & 255) / 255, 1);
      gl.uniformMatrix4fv(at.model, false, thing.model);
      this.elements(thing.mesh);
    });
    const pixel = new Uint8Array(4);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return (pixel[0] | (pixel[1] << 8) | (pixel[2] << 16)) - 1;
  }
}
