// Part of .ci/web: visits every page of `stillwell ui` in Chromium.
//
//     node web.mjs CHROMIUM URL TARGET FOLDER
//
// Writes a screenshot of each page into FOLDER, light and dark, with scripts and without. Exits with 1 after a message
// of the console, a page that is not as expected, or a serious finding of axe.
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "any"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;
const [program, url, target, folder] = process.argv.slice(2);
const base = new URL(url).origin;
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
let failures = 0;
const fail = (text) => {
  failures += 1;
  console.log(`FAILED: ${text}`);
};
const expect = (holds, text) => holds || fail(text);
/** Text of the experiment before it got a mistake. */
let made = 0;
let original;

/** Pages that only show something: their names, and how to reach them. */
const pages = [
  ["results", (page) => page.goto(`${base}/`)],
  ["suite", (page) => follow(page, "/", "20261112-020000-quickstart")],
  ["ab", (page) => follow(page, "/", "-ab")],
  ["load", (page) => follow(page, "/", "checkout-300")],
  ["run", (page) => follow(page, "/", "runs/20261113")],
  ["capacity", (page) => follow(page, "/", "capacity/")],
  ["stored", (page) => follow(page, "/", "sent-by-mail.html")],
  ["compare", compare("20261101", "20261112")],
  ["overlay", compare("checkout-300", "checkout-600")],
  ["compare-refused", compare("checkout-300", "20261112")],
  ["compare-empty", (page) => page.goto(`${base}/compare`)],
  ["history", (page) => page.goto(`${base}/history`)],
  ["history-none", (page) => page.goto(`${base}/history?only=nothing`)],
  ["start", (page) => page.goto(`${base}/start`)],
  ["start-error", startWrong],
  ["files", (page) => page.goto(`${base}/files`)],
  ["edit", (page) => follow(page, "/files", "quickstart/experiment.yaml")],
  ["edit-error", editWrong],
  ["missing", (page) => page.goto(`${base}/nowhere`)],
];

for (const colorScheme of ["light", "dark"]) {
  for (const javaScriptEnabled of [true, false]) {
    const { context, page, about, said } = await visitor({ colorScheme, javaScriptEnabled });
    for (const [name, open] of pages) {
      await visit(name, open, page, { colorScheme, javaScriptEnabled, about, said });
    }
    await liveCommand(page, { colorScheme, javaScriptEnabled, about });
    await context.close();
  }
}
await keyboard();
await narrow();
await refusals();
await browser.close();
process.exit(failures > 0 ? 1 : 0);

/** A browser that has the token. */
async function visitor(options) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 850 }, ...options });
  const page = await context.newPage();
  const about = `${options.colorScheme}, scripts ${options.javaScriptEnabled ? "on" : "off"}`;
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => fail(`${about}: ${error}`));
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto(url);
  expect(page.url() === `${base}/`, `${about}: the token is still in ${page.url()}`);
  return { context, page, about, said };
}

async function visit(name, open, page, { colorScheme, javaScriptEnabled, about, said }) {
  said.length = 0;
  await open(page);
  // Chromium reports each response that is an error; these pages are.
  const isError = ["start-error", "compare-refused", "missing"].includes(name);
  const unexpected = said.filter((text) => !(isError && /status of 4/.test(text)));
  for (const text of unexpected) fail(`${about}: ${name}: ${text}`);
  expect((await page.locator("nav a, nav strong").count()) > 3, `${about}: ${name}: no navigation`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth).catch(() => 0);
  expect(wide <= 0, `${about}: ${name}: wider than the window by ${wide}`);
  const mode = javaScriptEnabled ? "script" : "plain";
  await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}-${mode}.png`), fullPage: true });
  if (javaScriptEnabled) await audit(page, `${about}: ${name}`);
  console.log(`${about}: ${name}`);
}

/** Follows the first link of a page with this text. */
async function follow(page, from, text) {
  await page.goto(`${base}${from}`);
  await page.locator("main a", { hasText: text }).first().click();
  await page.waitForLoadState();
}

/** Chooses two results in the list. */
function compare(a, b) {
  return async (page) => {
    await page.goto(`${base}/`);
    for (const [side, text] of [["a", a], ["b", b]]) {
      const row = page.locator("#results tbody tr", { has: page.locator("a", { hasText: text }) }).first();
      await row.locator(`input[name=${side}]`).check();
    }
    await page.locator("button", { hasText: "Compare A with B" }).click();
    await page.waitForLoadState();
  };
}

async function startWrong(page) {
  await page.goto(`${base}/start`);
  await page.locator("#load-url").fill(target);
  await page.locator("#load-rate").fill("quickly");
  await page.locator("#load button[type=submit]").click();
  await page.waitForLoadState();
  expect((await page.locator("[role=alert]").count()) === 1, "a wrong rate is not reported");
  expect((await page.locator("#load-rate").inputValue()) === "quickly", "a refused form is empty");
}

/** Saves an experiment with a mistake. */
async function editWrong(page) {
  await follow(page, "/files", "quickstart/experiment.yaml");
  original ??= await page.locator("#text").inputValue();
  await save(page, `${original}\nbaselin: 1\n`);
  const finding = page.locator(".findings li").first();
  expect(/line \d+: error/.test(await finding.innerText()), "a mistake has no line");
}

async function save(page, text) {
  await page.locator("#text").fill(text);
  await page.locator("button", { hasText: "Save and check" }).click();
  await page.waitForLoadState();
}

async function liveCommand(page, { colorScheme, javaScriptEnabled, about }) {
  const mode = javaScriptEnabled ? "script" : "plain";
  const shoot = (name) => page.screenshot({ path: path.join(folder, `${name}-${colorScheme}-${mode}.png`), fullPage: true });
  await follow(page, "/files", "quickstart/experiment.yaml");
  await save(page, original);
  expect((await page.locator(".findings .worse").count()) === 0, `${about}: the old text has mistakes`);
  await page.goto(`${base}/start`);
  await page.locator("#load-url").fill(target);
  await page.locator("#load-rate").fill("200/s");
  await page.locator("#load-duration").fill("5s");
  await page.locator("#load button[type=submit]").click();
  await page.waitForURL(/commands/);
  await page.locator("pre", { hasText: "p99" }).first().waitFor({ timeout: 20_000 });
  expect(/Running/.test(await page.locator(".state").innerText()), `${about}: the command does not run`);
  await page.locator("figure svg").nth(1).waitFor({ timeout: 20_000 });
  await shoot("command-running");
  await page.locator("a", { hasText: "Open the report" }).waitFor({ timeout: 30_000 });
  await shoot("command-done");
  await page.locator("a", { hasText: "Open the report" }).click();
  await page.waitForLoadState();
  expect((await page.locator("svg").count()) > 0, `${about}: the report of a load has no chart`);
  // Stopped while it runs.
  await page.goto(`${base}/start`);
  await page.locator("#load-url").fill(target);
  await page.locator("#load-duration").fill("60s");
  await page.locator("#load button[type=submit]").click();
  await page.waitForURL(/commands/);
  await page.locator("button", { hasText: "Stop" }).click();
  await page.locator(".state", { hasText: "Stopped" }).waitFor({ timeout: 30_000 });
  await page.goto(`${base}/start`);
  await shoot("start-commands");
  await newExperiment(page, shoot);
  console.log(`${about}: commands`);
}

/** Makes an experiment file for two services that run, and opens it in the editor. */
async function newExperiment(page, shoot) {
  await follow(page, "/files", "New experiment");
  await page.locator("#init-folder").fill(`shop-${(made += 1)}`);
  await page.locator("#init-url").fill(`${target}\n${target}`);
  await shoot("new-experiment");
  await page.locator("#init button[type=submit]").click();
  await page.waitForURL(/commands/);
  await page.locator("a", { hasText: "Open the experiment" }).waitFor({ timeout: 30_000 });
  await page.locator("a", { hasText: "Open the experiment" }).click();
  await page.waitForLoadState();
  expect((await page.locator("#text").inputValue()).includes("baseline"), "the new experiment has no text");
}

/** Reaches the first link, the filter and a comparison with keys alone. */
async function keyboard() {
  const { context, page } = await visitor({ colorScheme: "light", javaScriptEnabled: true });
  await page.goto(`${base}/`);
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent);
  expect(first === "Skip to the content", `the first stop is ${first}`);
  await page.screenshot({ path: path.join(folder, "keyboard-light-script.png") });
  await page.keyboard.press("Enter");
  for (let count = 0; count < 20; count += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.matches("[type=search]"))) break;
  }
  await page.keyboard.type("checkout");
  await page.keyboard.press("Enter");
  expect(page.url().startsWith(`${base}/`) && !page.url().includes("compare"), "Enter in the filter compares");
  const shown = await page.locator("#results tbody tr:visible").count();
  expect(shown === 2, `the filter shows ${shown} rows`);
  for (let count = 0; count < 8; count += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.matches("[type=radio]"))) break;
  }
  await page.keyboard.press("Space");
  expect((await page.locator("[type=radio]:checked").count()) === 1, "no row is chosen by keys");
  await context.close();
}

/** The widest pages on a narrow screen. */
async function narrow() {
  const { context, page, about } = await visitor({
    colorScheme: "light",
    javaScriptEnabled: true,
    viewport: { width: 400, height: 800 },
  });
  for (const [name, open] of pages) {
    if (!["results", "suite", "start", "edit"].includes(name)) continue;
    await open(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide <= 0, `${about}: ${name}: wider than a narrow window by ${wide}`);
    await page.screenshot({ path: path.join(folder, `${name}-narrow.png`), fullPage: true });
  }
  await context.close();
}

/** Requests without the token, from another origin and to another host. */
async function refusals() {
  const context = await browser.newContext();
  const page = await context.newPage();
  const response = await page.goto(`${base}/`);
  expect(response.status() === 403, `without the token: ${response.status()}`);
  await page.screenshot({ path: path.join(folder, "refused-light-script.png") });
  await page.goto(url);
  // A page of another origin in the same browser sends a form.
  const other = `http://localhost:${new URL(base).port}`;
  const foreign = await context.request.post(`${base}/start/load`, { headers: { origin: other }, form: { url: target } });
  expect(foreign.status() === 403, `from another origin: ${foreign.status()}`);
  const rebound = await context.request.get(`${base}/`, { headers: { host: "rebound.example" } });
  expect(rebound.status() === 403, `with another host: ${rebound.status()}`);
  await context.close();
}

/** Checks the page as it is, and fails for serious findings. */
async function audit(page, about) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  // The policy of a page forbids foreign scripts in it, but not those of the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, impact, help, nodes } of violations) {
    const text = `${about}: axe ${impact}: ${id}: ${help} (${nodes.length}): ${nodes[0].html.slice(0, 160)}`;
    if (impact === "serious" || impact === "critical") fail(text);
    else console.log(text);
  }
}
