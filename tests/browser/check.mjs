// Opens a page of `least-action animate` in Chromium and does what a reader does. See README.md.
import { chromium } from "playwright-core";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [page_path, out = "screenshots"] = process.argv.slice(2);
if (!page_path) {
  console.error("usage: node check.mjs PAGE.html [DIRECTORY FOR SCREENSHOTS]");
  process.exit(2);
}
mkdirSync(out, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
const failures = [];
const check = (holds, what) => {
  console.log(`${holds ? "ok  " : "FAIL"} ${what}`);
  if (!holds) failures.push(what);
};

const context = await browser.newContext({ viewport: { width: 1100, height: 720 }, colorScheme: "light", reducedMotion: "reduce" });
const page = await context.newPage();
const errors = [], requests = [];
page.on("console", (m) => ["error", "warning"].includes(m.type()) && errors.push(m.text()));
page.on("pageerror", (e) => errors.push(String(e)));
page.on("request", (r) => requests.push(r.url()));
// decodes pictures, away from what is tested
const bench = await context.newPage();

// The share of pixels that differ visibly.
async function difference(a, b) {
  const urls = [a, b].map((p) => `data:image/png;base64,${p.toString("base64")}`);
  return bench.evaluate(async (urls) => {
    const pixels = await Promise.all(urls.map(async (url) => {
      const image = await createImageBitmap(await (await fetch(url)).blob());
      const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
      canvas.drawImage(image, 0, 0);
      return canvas.getImageData(0, 0, image.width, image.height).data;
    }));
    const [p, q] = pixels;
    if (p.length !== q.length) return 1;
    let count = 0;
    for (let i = 0; i < p.length; i += 4) {
      if (Math.abs(p[i] - q[i]) + Math.abs(p[i + 1] - q[i + 1]) + Math.abs(p[i + 2] - q[i + 2]) > 12) count += 1;
    }
    return (4 * count) / p.length;
  }, urls);
}

const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
async function shot(name) {
  await settle();
  const picture = await page.screenshot();
  writeFileSync(join(out, `${name}.png`), picture);
  return page.locator("main").screenshot();
}
const scrub = (share) => page.evaluate((share) => {
  const slider = document.getElementById("time");
  slider.value = Number(slider.min) + share * (slider.max - slider.min);
  slider.dispatchEvent(new Event("input"));
}, share);
const now = () => page.locator("#now").textContent();

await page.goto(pathToFileURL(resolve(page_path)).href);
await settle();
check(await page.locator("#trouble").isHidden(), "WebGL 2 is there");
const start = await shot("start");
check((await difference(start, await shot("start"))) === 0, "a still picture stays the same");
await scrub(0.6);
const later = await shot("later");
check((await difference(start, later)) > 0.001, "the slider moves the mechanism");

const before = await now();
await page.keyboard.press("ArrowRight");
await settle();
check((await now()) !== before, `an arrow key goes on by a knot: ${before} -> ${await now()}`);
await page.keyboard.press("ArrowLeft");

if (await page.locator("#forces_choice").isVisible()) {
  // somewhere there is a force
  let changed = 0;
  for (const share of [0.3, 0.5, 0.6, 0.8, 1]) {
    await scrub(share);
    const on = await shot("forces_on");
    await page.keyboard.press("f");
    const off = await shot("forces_off");
    await page.keyboard.press("f");
    changed = Math.max(changed, await difference(on, off));
    if (changed > 1e-4) break;
  }
  check(changed > 1e-4, "forces are shown and hidden");
}
await scrub(0.9);
const traced = await shot("traces_on");
await page.selectOption("#traces", "off");
check((await difference(traced, await shot("traces_off"))) > 1e-4, "traces are shown and hidden");

// the pointer over the page, from its middle outwards, until something has a name
let name = "";
const box = await page.locator("#canvas").boundingBox();
const places = [];
for (let i = 1; i < 24; i++) for (let j = 1; j < 16; j++) places.push([i / 24, j / 16]);
places.sort((a, b) => Math.hypot(a[0] - 0.5, a[1] - 0.5) - Math.hypot(b[0] - 0.5, b[1] - 0.5));
for (const [x, y] of places) {
  await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
  await settle();
  const tip = page.locator("#tip");
  if (!(await tip.isVisible())) continue;
  name = await tip.textContent();
  if (!name.startsWith("world")) break;
}
check(name !== "", `a body under the pointer is named: ${JSON.stringify(name)}`);
await shot("hover");

const still = await shot("before_drag");
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
await page.mouse.down();
await page.mouse.move(box.x + box.width / 2 + 120, box.y + box.height / 2 + 40, { steps: 4 });
await page.mouse.up();
const turned = await shot("turned");
check((await difference(still, turned)) > 0.01, "dragging turns the view");
await page.mouse.wheel(0, -400);
const near = await shot("zoomed");
check((await difference(turned, near)) > 0.01, "the wheel zooms");
await page.keyboard.down("Shift");
await page.mouse.down();
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 4 });
await page.mouse.up();
await page.keyboard.up("Shift");
check((await difference(near, await shot("moved"))) > 0.01, "dragging with shift moves the view");

// two fingers apart come nearer
const touch = await context.newCDPSession(page);
const finger = (type, apart) => touch.send("Input.dispatchTouchEvent", {
  type,
  touchPoints: apart === null ? [] : [-1, 1].map((side, id) => ({ x: box.x + box.width / 2 + side * apart, y: box.y + box.height / 2, id })),
});
await page.keyboard.press("r");
const unpinched = await shot("reset");
await finger("touchStart", 60);
for (const apart of [80, 110, 140]) await finger("touchMove", apart);
await finger("touchEnd", null);
check((await difference(unpinched, await shot("pinched"))) > 0.01, "two fingers zoom");
await page.keyboard.press("r");

await page.keyboard.press("c");
await shot("follow");
await page.keyboard.press("c");
if (await page.locator("#apart_choice").isVisible()) {
  const apart = await shot("side_by_side");
  await page.keyboard.press("b");
  check((await difference(apart, await shot("in_one_place"))) > 0.001, "runs stand apart or in one place");
  await page.keyboard.press("b");
}

await scrub(0);
const clock = await now();
await page.keyboard.press(" ");
await page.waitForTimeout(600);
await page.keyboard.press(" ");
await settle();
check((await now()) !== clock, `it plays: ${clock} -> ${await now()}`);

await page.emulateMedia({ colorScheme: "dark" });
await scrub(0.6);
await shot("dark");
await page.setViewportSize({ width: 420, height: 720 });
await shot("narrow");
const size = await page.evaluate(() => [document.getElementById("canvas").width, document.getElementById("canvas").clientWidth * devicePixelRatio]);
check(Math.abs(size[0] - size[1]) <= 1, "the picture has the window's size");

const plain = await context.newPage();
await plain.addInitScript(() => { HTMLCanvasElement.prototype.getContext = () => null; });
await plain.goto(pathToFileURL(resolve(page_path)).href);
check(/WebGL/.test(await plain.locator("#trouble").textContent()), "without WebGL the page says so");

check(requests.every((r) => r.startsWith("file:") || r.startsWith("data:") || r.startsWith("blob:")), "nothing is fetched");
check(errors.length === 0, `no errors: ${errors.join("; ")}`);
await browser.close();
process.exit(failures.length ? 1 : 0);
