// The page: time, camera, choices, and what they show.

const NUMBERS = 7; // of a pose: x, y, z, then the quaternion
const ARROW = 7; // of a force: frame, point, force
const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50];
const REST = 0.7; // s that the end is shown before it begins again

const at = (id) => document.getElementById(id);

class Run {
  constructor(data, renderer) {
    Object.assign(this, data);
    for (const name of ["times", "poses", "arrows"]) this[name] = floats(data[name]);
    this.knots = integers(data.knots);
    this.traces = data.traces.map((trace) => ({ ...trace, line: renderer.line(this.path(trace)) }));
  }

  pose(frame, body) {
    const p = this.poses.subarray(NUMBERS * (frame * this.bodies.length + body));
    return [[p[0], p[1], p[2]], [p[3], p[4], p[5], p[6]]];
  }

  path({ body, point }) {
    const out = new Float32Array(3 * this.times.length);
    for (let f = 0; f < this.times.length; f++) {
      const [x, q] = this.pose(f, body);
      out.set(add(x, turn(q, point)), 3 * f);
    }
    return out;
  }

  // The last frame that is not behind a time, and the share of the way to the next.
  locate(time) {
    let low = 0, high = this.times.length - 1;
    if (time >= this.times[high]) return [high, 0];
    if (time <= this.times[0]) return [0, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle;
      else high = middle;
    }
    return [low, (time - this.times[low]) / (this.times[high] - this.times[low])];
  }

  // Poses of all bodies.
  at(time) {
    const [frame, share] = this.locate(time);
    return this.bodies.map((_, b) => {
      const [p, q] = this.pose(frame, b);
      if (share === 0) return [p, q];
      const [next, r] = this.pose(frame + 1, b);
      return [mix(p, next, share), slerp(q, r, share)];
    });
  }

  // Point and force of contacts, which are those of the time before a frame.
  forces(time) {
    const [frame, share] = this.locate(time);
    const wanted = share > 0 ? frame + 1 : frame;
    const found = [];
    for (let i = this.firstArrow(wanted); i < this.arrows.length && this.arrows[i] === wanted; i += ARROW) {
      const a = this.arrows;
      found.push([[a[i + 1], a[i + 2], a[i + 3]], [a[i + 4], a[i + 5], a[i + 6]]]);
    }
    return found;
  }

  firstArrow(frame) {
    let low = 0, high = this.arrows.length / ARROW;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.arrows[ARROW * middle] < frame) low = middle + 1;
      else high = middle;
    }
    return ARROW * low;
  }
}

class Player {
  constructor(data, renderer) {
    this.data = data;
    this.renderer = renderer;
    const own = (m) => renderer.mesh({ positions: floats(m.positions), normals: floats(m.normals), indices: integers(m.indices) });
    this.meshes = data.meshes.map((m) => {
      const positions = floats(m.positions);
      let reach = 0;
      for (let i = 0; i < positions.length; i += 3) reach = Math.max(reach, Math.hypot(positions[i], positions[i + 1], positions[i + 2]));
      return { ...own(m), reach };
    });
    this.head = own(data.head_mesh);
    this.rod = own(data.rod_mesh);
    this.runs = data.runs.map((r) => new Run(r, renderer));
    [this.start, this.end] = data.span;
    this.time = this.start;
    this.playing = this.end > this.start && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.rest = 0;
    this.pointer = null;
    this.readColors();
    this.resetView();
    this.first = this.middle(this.runs.map((r) => r.at(this.start)));
    this.connect();
    requestAnimationFrame((now) => this.tick(now));
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    this.colors = {};
    for (const name of ["background", "floor", "line", "force"]) {
      const code = parseInt(style.getPropertyValue("--" + name).trim().slice(1), 16);
      this.colors[name] = [code >> 16, (code >> 8) & 255, code & 255].map((v) => v / 255);
    }
    this.changed = true;
  }

  // ---- the camera

  resetView() {
    const { azimuth, elevation } = this.data.view;
    this.view = { azimuth, elevation, target: null, distance: null, chosen: false };
    this.changed = true;
  }

  axes() {
    const { azimuth, elevation } = this.view;
    const [sa, ca, se, ce] = [Math.sin(azimuth), Math.cos(azimuth), Math.sin(elevation), Math.cos(elevation)];
    return [[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]];
  }

  // As far away as it takes to see everything, with it in the middle.
  fit(aspect) {
    const { near, tangent } = this.data.view;
    // going along, only the mechanism; else everywhere it comes
    const points = this.data.view[at("follow").checked ? "close" : "points"];
    const axes = this.axes();
    const tangents = [tangent * aspect, tangent].map((t) => 0.8 * t);
    let target = times(points.reduce(add, [0, 0, 0]), 1 / Math.max(points.length, 1)), distance = near;
    for (let k = 0; k < 8; k++) {
      const local = points.map((p) => axes.map((a) => dot(a, sub(p, target))));
      distance = local.reduce((d, p) => Math.max(d, p[2] + Math.max(Math.abs(p[0]) / tangents[0], Math.abs(p[1]) / tangents[1])), near);
      for (const i of [0, 1]) {
        const seen = local.map((p) => p[i] / (distance - p[2]));
        if (seen.length) target = add(target, times(axes[i], 0.5 * (Math.min(...seen) + Math.max(...seen)) * distance));
      }
    }
    this.view.target = target;
    this.view.distance = distance;
  }

  camera(aspect, shift) {
    // a view that nobody chose fits the window, whatever its shape
    if (this.view.target === null || (!this.view.chosen && aspect !== this.aspect)) this.fit(aspect);
    this.aspect = aspect;
    const axes = this.axes();
    const target = add(this.view.target, shift);
    const eye = add(target, times(axes[2], this.view.distance));
    const far = this.view.distance + 4 * this.data.floor.reach;
    const seen = perspective(axes, eye, this.data.view.tangent, aspect, 0.02 * this.view.distance, far);
    return { seen, eye, axes };
  }

  orbit(dx, dy) {
    this.view.chosen = true;
    this.view.azimuth -= 0.008 * dx;
    this.view.elevation = Math.max(-1.55, Math.min(1.55, this.view.elevation + 0.008 * dy));
    this.changed = true;
  }

  pan(dx, dy) {
    this.view.chosen = true;
    const [right, up] = this.axes();
    const scale = (2 * this.data.view.tangent * this.view.distance) / this.renderer.canvas.clientHeight;
    this.view.target = add(this.view.target, add(times(right, -dx * scale), times(up, dy * scale)));
    this.changed = true;
  }

  zoom(factor) {
    this.view.chosen = true;
    const whole = this.data.floor.reach;
    this.view.distance = Math.max(1e-3 * this.data.size, Math.min(20 * whole, this.view.distance * factor));
    this.changed = true;
  }

  // ---- what is shown

  offset(run) {
    return at("apart").checked ? run.offset : [0, 0, 0];
  }

  // of the first run: runs that part cannot all be kept in view
  middle([bodies]) {
    const places = bodies.map(([x]) => add(x, this.offset(this.runs[0])));
    return times(places.reduce(add, [0, 0, 0]), 1 / Math.max(places.length, 1));
  }

  // A mesh along z between two points.
  along(mesh, from, direction, long, radius, color) {
    const [x, y, z] = facing(direction);
    const model = placement([x, y, z], from, [radius, radius, long]);
    const turned = new Float32Array([...times(x, 1 / radius), ...times(y, 1 / radius), ...times(z, 1 / long)]);
    return { mesh, model, turned, color, casts: true };
  }

  things(poses) {
    const things = [];
    let low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    this.runs.forEach((run, r) => {
      const offset = this.offset(run);
      for (const part of run.parts) {
        const [x, q] = part.body === null ? [[0, 0, 0], [0, 0, 0, 1]] : poses[r][part.body];
        const p = add(offset, add(x, turn(q, part.position)));
        const axes = columns(product(q, part.orientation));
        const mesh = this.meshes[part.mesh];
        things.push({ mesh, model: placement(axes, p), turned: new Float32Array(axes.flat()), color: part.color, run: r, body: part.body, casts: part.casts });
        if (part.body !== null) {
          low = low.map((v, i) => Math.min(v, p[i] - mesh.reach));
          high = high.map((v, i) => Math.max(v, p[i] + mesh.reach));
        }
      }
      for (const link of run.links) {
        const [a, b] = link.bodies.map((body, i) => add(offset, add(poses[r][body][0], turn(poses[r][body][1], link.points[i]))));
        const long = length(sub(b, a));
        if (long > 0) things.push({ ...this.along(this.rod, a, unit(sub(b, a)), long, this.data.rod, run.colors[link.bodies[0]]), run: r, body: link.bodies[0] });
      }
    });
    if (!things.some((t) => t.body !== null)) [low, high] = [[-1, -1, -1], [1, 1, 1]];
    return { things, middle: times(add(low, high), 0.5), reach: Math.max(0.5 * length(sub(high, low)), 1e-9) };
  }

  arrows() {
    if (!at("forces").checked) return [];
    const { scale, most, radius, plump, head } = this.data.arrow;
    return this.runs.flatMap((run) => run.forces(this.time).flatMap(([point, force]) => {
      const long = Math.min(length(force), most) * scale, direction = unit(force);
      const thick = Math.min(radius, plump * long), from = add(this.offset(run), point);
      const neck = long - head * thick;
      return [
        this.along(this.rod, from, direction, neck, thick, this.colors.force),
        this.along(this.head, add(from, times(direction, neck)), direction, head * thick, 2 * thick, this.colors.force),
      ];
    }));
  }

  lines() {
    const wanted = at("traces").value;
    if (wanted === "off") return [];
    return this.runs.flatMap((run) => run.traces.filter((t) => t.main === (wanted === "main")).flatMap((trace) => {
      const [frame] = run.locate(this.time);
      const all = { line: trace.line, offset: this.offset(run), color: times(run.colors[trace.body], 0.8) };
      return [{ ...all, count: trace.line.count, alpha: 0.3, width: 1.2 }, { ...all, count: frame, alpha: 1, width: 2 }];
    }));
  }

  draw() {
    const aspect = this.renderer.resize();
    const poses = this.runs.map((r) => r.at(this.time));
    const shift = at("follow").checked ? sub(this.middle(poses), this.first) : [0, 0, 0];
    const camera = this.camera(aspect, shift);
    const { things, middle, reach } = this.things(poses);
    const light = { direction: this.data.view.light, middle, reach };
    this.renderer.draw({ things, arrows: this.arrows(), lines: this.lines(), floor: this.data.floor, camera, light, colors: this.colors });
    this.shown = { things, camera, poses };
    this.showNames(camera, shift);
    this.showTip();
    this.showTime();
  }

  // Every run's name where its lane ends.
  showNames(camera, shift) {
    this.names.forEach((label, r) => {
      const place = add(this.runs[r].label, shift);
      const [x, y, w] = [0, 1, 3].map((i) => camera.seen[i] * place[0] + camera.seen[4 + i] * place[1] + camera.seen[8 + i] * place[2] + camera.seen[12 + i]);
      label.hidden = w <= 0 || !at("apart").checked;
      label.style.left = `${50 * (1 + x / w)}%`;
      label.style.top = `${50 * (1 - y / w)}%`;
    });
  }

  showTip() {
    const { things, camera, poses } = this.shown;
    const tip = at("tip");
    const found = this.pointer === null ? -1 : this.renderer.pick(things, camera, ...this.pointer);
    const thing = things[found];
    tip.hidden = !thing;
    if (!thing) return;
    const run = this.runs[thing.run];
    let text = thing.body === null ? "world" : run.bodies[thing.body];
    if (this.runs.length > 1) text += `, ${run.name}`;
    if (thing.body !== null) text += `\n${poses[thing.run][thing.body][0].map((v) => v.toFixed(3)).join(", ")} m`;
    tip.textContent = text;
    const room = this.renderer.canvas.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, Math.min(this.pointer[0] + 14, room))}px`;
    tip.style.top = `${Math.max(4, this.pointer[1] - tip.offsetHeight - 8)}px`;
  }

  showTime() {
    const [run] = this.runs;
    const [frame] = run.locate(this.time);
    at("time").value = this.time;
    at("now").textContent = `${this.time.toFixed(3)} s of ${this.end.toFixed(3)} s, knot ${run.knots[frame]}`;
    at("play").textContent = this.playing ? "❚❚" : "►";
  }

  // ---- time

  tick(now) {
    const passed = Math.min((now - (this.last ?? now)) / 1000, 0.1);
    this.last = now;
    if (this.playing) {
      this.time += passed * Number(at("speed").value);
      if (this.time >= this.end) {
        this.time = this.end;
        this.rest += passed;
        if (this.rest > REST) [this.time, this.rest] = [this.start, 0];
      }
      this.changed = true;
    }
    if (this.changed) this.draw();
    else if (this.hovers) this.showTip();
    this.changed = this.hovers = false;
    requestAnimationFrame((next) => this.tick(next));
  }

  play(on = !this.playing) {
    this.playing = on && this.end > this.start;
    if (this.playing && this.time >= this.end) this.time = this.start;
    this.rest = 0;
    this.changed = true;
  }

  go(time) {
    this.play(false);
    this.time = Math.max(this.start, Math.min(this.end, time));
  }

  // To the next knot of any run, or the one before.
  step(count) {
    const tiny = 1e-6 * (this.end - this.start);
    for (let i = 0; i < Math.abs(count); i++) {
      const times = this.runs.map((run) => {
        const [frame, share] = run.locate(this.time + (count > 0 ? tiny : -tiny));
        const wanted = count > 0 ? frame + 1 : frame;
        return run.times[Math.max(0, Math.min(run.times.length - 1, wanted))];
      });
      const next = count > 0 ? times.filter((t) => t > this.time + tiny) : times.filter((t) => t < this.time - tiny);
      if (!next.length) break;
      this.time = count > 0 ? Math.min(...next) : Math.max(...next);
    }
    this.go(this.time);
  }

  // ---- the page

  connect() {
    this.fillPage();
    const redraw = () => { this.changed = true; };
    at("play").onclick = () => this.play();
    at("back").onclick = () => this.step(-1);
    at("forth").onclick = () => this.step(1);
    at("reset").onclick = () => this.resetView();
    at("time").oninput = (e) => this.go(Number(e.target.value));
    for (const id of ["forces", "traces"]) at(id).onchange = redraw;
    at("follow").onchange = () => this.resetView();
    at("apart").onchange = () => {
      this.first = this.middle(this.runs.map((r) => r.at(this.start)));
      redraw();
    };
    new ResizeObserver(redraw).observe(this.renderer.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColors());
    document.addEventListener("keydown", (e) => this.key(e));
    this.connectPointers(this.renderer.canvas);
  }

  fillPage() {
    const { data } = this;
    at("title").textContent = data.title;
    const several = this.runs.length > 1;
    const label = (text, color) => {
      const item = document.createElement("span");
      if (color) {
        const mark = document.createElement("i");
        mark.style.background = color;
        item.append(mark);
      }
      item.append(text);
      at("legend").append(item);
      return item;
    };
    const css = (color) => `rgb(${color.map((v) => Math.round(255 * v))})`;
    const most = 10;
    if (several) this.runs.forEach((r) => label(`${r.name} (${r.status})`, css(r.color)));
    else {
      const [run] = this.runs;
      label(`status: ${run.status}`);
      if (run.bodies.length <= most) run.bodies.forEach((name, b) => label(name, css(run.colors[b])));
    }
    label(`grid ${data.floor.cell} m`);
    at("forces_choice").hidden = data.arrow.scale === 0;
    if (data.arrow.scale > 0) label(`force, longest arrow ${Number(data.arrow.most.toPrecision(2))} N${data.arrow.cut ? " and more" : ""}`, "var(--force)");
    at("apart_choice").hidden = !several;
    at("follow").checked = data.follows;
    const option = (select, value, text, chosen) => select.append(new Option(text, value, chosen, chosen));
    const speed = SPEEDS.filter((s) => s <= 1.001 * data.speed).pop() || SPEEDS[0];
    SPEEDS.forEach((s) => option(at("speed"), s, `${s}×`, s === speed));
    option(at("traces"), "off", "off");
    for (const [value, main, text] of [["main", true, "feet or tip"], ["bodies", false, "bodies"]]) {
      if (this.runs.some((r) => r.traces.some((t) => t.main === main))) option(at("traces"), value, text, main);
    }
    Object.assign(at("time"), { min: this.start, max: this.end, value: this.start });
    this.names = several ? this.runs.map((r) => {
      const name = document.createElement("span");
      name.textContent = r.name;
      at("names").append(name);
      return name;
    }) : [];
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT") return;
    const toggle = (id) => at(id).click();
    const cycle = () => {
      const select = at("traces");
      select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
      this.changed = true;
    };
    const actions = {
      " ": () => this.play(),
      ArrowLeft: () => this.step(e.shiftKey ? -10 : -1),
      ArrowRight: () => this.step(e.shiftKey ? 10 : 1),
      Home: () => this.go(this.start),
      End: () => this.go(this.end),
      f: () => toggle("forces"),
      t: cycle,
      c: () => toggle("follow"),
      b: () => toggle("apart"),
      r: () => this.resetView(),
      "+": () => this.zoom(0.85),
      "-": () => this.zoom(1 / 0.85),
    };
    const action = actions[e.key] || actions[e.key.toLowerCase()];
    if (!action) return;
    e.preventDefault();
    action();
  }

  connectPointers(canvas) {
    const down = new Map();
    const place = (e) => {
      const box = canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (e) => {
      canvas.focus();
      canvas.setPointerCapture(e.pointerId);
      down.set(e.pointerId, place(e));
      this.pointer = null;
      this.changed = true;
    });
    canvas.addEventListener("pointermove", (e) => {
      const now = place(e), before = down.get(e.pointerId);
      if (!before) {
        if (e.pointerType === "mouse") this.pointer = now;
        this.hovers = true;
        return;
      }
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      if (down.size === 1) {
        if (e.shiftKey || e.buttons & 6) this.pan(dx, dy);
        else this.orbit(dx, dy);
      } else {
        // two fingers: their distance zooms, their middle moves
        const other = [...down].find(([id]) => id !== e.pointerId)[1];
        const apart = (p) => Math.max(Math.hypot(p[0] - other[0], p[1] - other[1]), 1);
        this.zoom(apart(before) / apart(now));
        this.pan(dx / 2, dy / 2);
      }
      down.set(e.pointerId, now);
    });
    const up = (e) => {
      down.delete(e.pointerId);
      // a finger that was lifted points at nothing
      this.pointer = e.type === "pointerup" && e.pointerType === "mouse" ? place(e) : null;
      this.changed = true;
    };
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) canvas.addEventListener(name, up);
    canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    canvas.addEventListener("dblclick", () => this.resetView());
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const pixels = e.deltaMode === 1 ? 16 * e.deltaY : e.deltaY;
      this.zoom(Math.exp(0.0012 * pixels));
    }, { passive: false });
  }
}

function main() {
  const trouble = (text) => {
    at("trouble").textContent = text;
    at("trouble").hidden = false;
  };
  const canvas = at("canvas");
  let renderer;
  try {
    renderer = new Renderer(canvas);
  } catch (e) {
    return trouble(`This animation needs WebGL 2, which this browser does not offer or has switched off (${e.message}). Allow hardware acceleration in its settings, open the page in another browser, or write a .gif instead: least-action animate TRAJECTORY --out motion.gif`);
  }
  canvas.addEventListener("webglcontextlost", () => trouble("The browser has taken the graphics away; load the page again."));
  const data = JSON.parse(at("data").textContent);
  new Player(data, renderer);
}
main();
