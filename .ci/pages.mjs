// Part of .ci/pages: opens pages in Chromium, light and dark, with scripts and without, and checks them with axe.
//
//     node pages.mjs CHROMIUM FOLDER PAGE...
//
// Writes a screenshot of each page and a PDF into FOLDER. Exits with 1 after a message of the console, an empty chart, a
// cursor that does not move, a range or a frame that cannot be chosen, or a serious finding of axe.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "any"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;
const [program, folder, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
let failures = 0;
let unequal = 0;
const fail = (text) => {
  failures += 1;
  console.log(`FAILED: ${text}`);
};

for (const file of pages) {
  const name = path.basename(file, ".html");
  for (const colorScheme of ["light", "dark"]) {
    for (const javaScriptEnabled of [true, false]) {
      const context = await browser.newContext({
        bypassCSP: javaScriptEnabled && colorScheme === "dark",
        colorScheme,
        javaScriptEnabled,
        viewport: { width: 1100, height: 900 },
      });
      const page = await context.newPage();
      const about = `${name}, ${colorScheme}, scripts ${javaScriptEnabled ? "on" : "off"}`;
      page.on("console", (message) => fail(`${about}: ${message.text()}`));
      page.on("pageerror", (error) => fail(`${about}: ${error}`));
      await page.goto(`file://${path.resolve(file)}`);
      const charts = await page.locator("svg").count();
      if (javaScriptEnabled && (await page.locator("svg[data-axes]").count()) > 0) {
        const chart = page.locator("svg[data-axes]").first();
        await chart.focus();
        await page.keyboard.press("ArrowRight");
        if ((await page.locator("svg .cursor[x1]").count()) === 0) fail(`${about}: no cursor`);
        await zoom(page, about);
      }
      if (javaScriptEnabled && (await page.locator("svg.flame").count()) > 0) await widen(page, about);
      // The page's own policy forbids foreign scripts, so axe needs a context that ignores it.
      if (javaScriptEnabled && colorScheme === "dark") await audit(page, about);
      if (javaScriptEnabled && colorScheme === "light") {
        await page.pdf({ path: path.join(folder, `${name}.pdf`), format: "A4" });
      }
      const picture = `${name}-${colorScheme}-${javaScriptEnabled ? "script" : "plain"}.png`;
      await page.screenshot({ path: path.join(folder, picture), fullPage: true });
      console.log(`${about}: ${charts} charts`);
      await context.close();
    }
  }
  const context = await browser.newContext({ bypassCSP: true, colorScheme: "light" });
  const page = await context.newPage();
  await page.goto(`file://${path.resolve(file)}`);
  await audit(page, `${name}, light`);
  const copy = await shortened(page, file);
  if (copy) {
    unequal += 1;
    const about = `${name}, axes of unequal length`;
    page.on("console", (message) => fail(`${about}: ${message.text()}`));
    page.on("pageerror", (error) => fail(`${about}: ${error}`));
    await page.goto(`file://${copy}`);
    await zoom(page, about);
  }
  await context.close();
}
if (unequal === 0) fail("no page has two charts with the same axis");

/** Chooses a range of the first chart over time with the pointer and by keyboard: its peers follow, and Escape ends it. */
async function zoom(page, about) {
  const axes = await page.locator("svg[data-axes]").evaluateAll((all) => all.map((svg) => svg.dataset.axes.split(";")));
  const first = axes.findIndex(([across]) => across.endsWith(",0"));
  if (first < 0) return;
  const peers = axes.filter(([across, , unit]) => across.endsWith(",0") && unit === axes[first][2]).length;
  const zoomed = async (wanted, why) => {
    const count = await page.locator("svg.zoomed").count();
    const buttons = page.locator("button", { hasText: "Show all" });
    const shown = await buttons.evaluateAll((all) => all.filter(({ hidden }) => !hidden).length);
    if (shown !== count) fail(`${about}: ${why}: ${shown} buttons for ${count} zoomed charts`);
    if (wanted ? count === 0 || count > peers : count !== 0) fail(`${about}: ${why}: ${count} of ${peers} charts are zoomed`);
  };
  const chart = page.locator("svg[data-axes]").nth(first);
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (!box) return fail(`${about}: the first chart over time is not visible`);
  const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
  await page.mouse.move(...at(0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.6), { steps: 4 });
  if (Number(await chart.locator(".selection").getAttribute("width")) <= 0) fail(`${about}: no selection while dragging`);
  await page.mouse.up();
  await zoomed(true, "after dragging");
  // The line's left end is where the axis begins, so it leaves the shown range.
  const shape = await chart.locator("polyline").first().getAttribute("transform");
  if (!/^matrix\([2-4]\./.test(shape)) fail(`${about}: the line is not stretched: ${shape}`);
  await chart.screenshot({ path: path.join(folder, `${about.replaceAll(/[ ,]+/g, "-")}-range.png`) });
  await page.keyboard.press("Escape");
  await zoomed(false, "after Escape");
  await chart.focus();
  await page.keyboard.press("+");
  await zoomed(true, "after +");
  await page.keyboard.press("-");
  await zoomed(false, "after + and -");
}

/**
 * Writes a copy of a page in which the last peer of the first chart over time has a tenth of its axis. Returns the path, or
 * nothing if there is no peer.
 */
async function shortened(page, file) {
  const last = await page.locator("svg[data-axes]").evaluateAll((all) => {
    const kind = (svg) => {
      const [across, , unit] = svg.dataset.axes.split(";");
      return `${across.endsWith(",0")};${unit}`;
    };
    const first = all.find((svg) => kind(svg).startsWith("true"));
    if (!first) return -1;
    const isPeer = (svg) => svg !== first && kind(svg) === kind(first) && svg.closest(".part") === first.closest(".part");
    return all.findLastIndex(isPeer);
  });
  if (last < 0) return undefined;
  let index = 0;
  const text = fs.readFileSync(file, "utf8").replace(/data-axes="([^",]+),([^",]+)/g, (axes, low, high) => {
    index += 1;
    return index - 1 === last ? `data-axes="${low},${Number(low) + (high - low) / 10}` : axes;
  });
  const copy = path.resolve(folder, `${path.basename(file, ".html")}-unequal.html`);
  fs.writeFileSync(copy, text);
  return copy;
}

/** Enlarges a frame of the first flame graph by a click, and by keyboard. */
async function widen(page, about) {
  const graph = page.locator("svg.flame").first();
  const hidden = () => graph.locator('g[visibility="hidden"]').count();
  const frame = graph.locator("g").last();
  const title = await frame.locator("title").textContent();
  await frame.click();
  const [width, whole] = [Number(await frame.locator("rect").getAttribute("width")), 760];
  if (Math.abs(width - whole) > 1) fail(`${about}: "${title}" is ${width} wide after a click`);
  await graph.screenshot({ path: path.join(folder, `${about.replaceAll(/[ ,]+/g, "-")}-frame.png`) });
  await page.keyboard.press("Escape");
  if ((await hidden()) !== 0) fail(`${about}: frames stay hidden after Escape`);
  await graph.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  if ((await graph.locator("g.chosen").count()) !== 1) fail(`${about}: no frame is chosen by keyboard`);
  await page.keyboard.press("Escape");
}

/** Checks the page in its current state, and fails for serious findings. */
async function audit(page, about) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  await page.addScriptTag({ content: axe });
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, impact, help, nodes } of violations) {
    const text = `${about}: axe ${impact}: ${id}: ${help} (${nodes.length}): ${nodes[0].html.slice(0, 160)}`;
    if (impact === "serious" || impact === "critical") fail(text);
    else console.log(text);
  }
}

await browser.close();
process.exit(failures > 0 ? 1 : 0);
