// Part of .ci/web: every page of `stillwell ui` in Chromium, as tests of Playwright.
//
//     WEB_URL          address of the server, with its token
//     WEB_TARGET       address of a test server that loads may be sent to
//     WEB_EXPERIMENT   the experiment file as it is in the folder of the server
//     WEB_FOLDER       where a screenshot of each page is written, light and dark, with scripts and without
//
// The tests share one server and run in this order. A page fails for a message of the console, for being wider than its
// window, and for a serious finding of axe.
import { expect, test } from "@playwright/test";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const axe = createRequire(import.meta.url)("axe-core").source;
const { WEB_URL: url, WEB_TARGET: target, WEB_FOLDER: folder } = process.env;
const base = new URL(url).origin;
const experiment = fs.readFileSync(process.env.WEB_EXPERIMENT, "utf8");

/** Pages that only show something: their names, and how to reach them. */
const pages = {
  results: (page) => page.goto(`${base}/`),
  suite: (page) => follow(page, "/", "20261112-020000-quickstart"),
  ab: (page) => follow(page, "/", "-ab"),
  load: (page) => follow(page, "/", "checkout-300"),
  run: (page) => follow(page, "/", "runs/20261113"),
  capacity: (page) => follow(page, "/", "capacity/"),
  stored: (page) => follow(page, "/", "sent-by-mail.html"),
  compare: comparedSuites,
  overlay: (page) => compare(page, "checkout-300", "checkout-600"),
  "overlay-runs": overlaidRuns,
  "compare-refused": (page) => compare(page, "checkout-300", "20261112"),
  "compare-empty": (page) => page.goto(`${base}/compare`),
  history: (page) => page.goto(`${base}/history`),
  "history-none": (page) => page.goto(`${base}/history?only=nothing`),
  start: (page) => page.goto(`${base}/start`),
  "start-error": startWrong,
  files: (page) => page.goto(`${base}/files`),
  edit: (page) => follow(page, "/files", "quickstart/experiment.yaml"),
  "edit-error": editWrong,
  cluster: (page) => page.goto(`${base}/cluster`),
  missing: (page) => page.goto(`${base}/nowhere`),
};
/** Pages that are errors: Chromium reports their status on the console. */
const errors = ["start-error", "compare-refused", "missing"];

for (const colorScheme of ["light", "dark"]) {
  for (const javaScriptEnabled of [true, false]) {
    const mode = javaScriptEnabled ? "script" : "plain";
    test.describe(`${colorScheme}, scripts ${javaScriptEnabled ? "on" : "off"}`, () => {
      test.use({ colorScheme, javaScriptEnabled });
      const shoot = (page, name) =>
        page.screenshot({ path: path.join(folder, `${name}-${colorScheme}-${mode}.png`), fullPage: true });

      for (const [name, open] of Object.entries(pages)) {
        test(name, async ({ page }) => {
          const messages = await enter(page);
          await open(page);
          expect(await page.locator("nav a, nav strong").count(), "parts of the navigation").toBeGreaterThan(3);
          await expectNarrow(page);
          await shoot(page, name);
          if (javaScriptEnabled) await audit(page);
          const isExpected = (text) => errors.includes(name) && /status of 4/.test(text);
          expect(messages.filter((text) => !isExpected(text)), "messages of the console").toEqual([]);
        });
      }

      test("a load that runs to its end", async ({ page }) => {
        await enter(page);
        await startLoad(page, "5s");
        await page.locator("a", { hasText: "Open the report" }).waitFor();
        await shoot(page, "command-done");
        await page.locator("a", { hasText: "Open the report" }).click();
        await page.waitForLoadState();
        expect(await page.locator("svg").count(), "charts of the report").toBeGreaterThan(0);
      });

      test("a load that is stopped", async ({ page }) => {
        await enter(page);
        await startLoad(page, "60s");
        await page.locator("pre", { hasText: "p99" }).first().waitFor();
        await expect(page.locator(".state")).toContainText("Running");
        await page.locator("figure svg").nth(1).waitFor();
        await shoot(page, "command-running");
        await page.locator("button", { hasText: "Stop" }).click();
        await page.locator(".state", { hasText: "Stopped" }).waitFor();
        await page.goto(`${base}/start`);
        await shoot(page, "start-commands");
      });

      test("a new experiment", async ({ page }) => {
        await enter(page);
        await follow(page, "/files", "New experiment");
        await page.locator("#init-folder").fill(`shop-${colorScheme}-${mode}`);
        await page.locator("#init-url").fill(`${target}\n${target}`);
        await shoot(page, "new-experiment");
        await page.locator("#init button[type=submit]").click();
        await page.waitForURL(/commands/);
        await page.locator("a", { hasText: "Open the experiment" }).click();
        await page.waitForLoadState();
        await expect(page.locator("#text")).toHaveValue(/baseline/);
      });

      test("an experiment without mistakes is saved", async ({ page }) => {
        await enter(page);
        await follow(page, "/files", "quickstart/experiment.yaml");
        await save(page, experiment);
        await expect(page.locator(".findings .worse")).toHaveCount(0);
      });
    });
  }
}

test("the list is used with keys alone", async ({ page }) => {
  await enter(page);
  await page.goto(`${base}/`);
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.textContent);
  expect(first, "the first stop").toBe("Skip to the content");
  await page.screenshot({ path: path.join(folder, "keyboard-light-script.png") });
  await page.keyboard.press("Enter");
  await tabTo(page, "[type=search]", 20);
  await page.keyboard.type("checkout");
  await page.keyboard.press("Enter");
  expect(page.url(), "Enter in the filter must not compare").not.toContain("compare");
  await expect(page.locator("#results tbody tr:visible")).toHaveCount(2);
  await tabTo(page, "[type=radio]", 8);
  await page.keyboard.press("Space");
  await expect(page.locator("[type=radio]:checked")).toHaveCount(1);
});

test.describe("a narrow window", () => {
  test.use({ viewport: { width: 400, height: 800 } });
  for (const name of ["results", "suite", "start", "edit"]) {
    test(name, async ({ page }) => {
      await enter(page);
      await pages[name](page);
      await expectNarrow(page);
      await page.screenshot({ path: path.join(folder, `${name}-narrow.png`), fullPage: true });
    });
  }
});

test("requests are refused without the token, from another origin and to another host", async ({ context, page }) => {
  const response = await page.goto(`${base}/`);
  expect(response.status(), "without the token").toBe(403);
  await page.screenshot({ path: path.join(folder, "refused-light-script.png") });
  await page.goto(url);
  // A page of another origin in the same browser sends a form.
  const otherOrigin = `http://localhost:${new URL(base).port}`;
  const foreign = await context.request.post(`${base}/start/load`, { headers: { origin: otherOrigin }, form: { url: target } });
  expect(foreign.status(), "from another origin").toBe(403);
  const rebound = await context.request.get(`${base}/`, { headers: { host: "rebound.example" } });
  expect(rebound.status(), "with another host").toBe(403);
});

/** Gives the token to a browser. Returns the list to which messages of the console are added. */
async function enter(page) {
  const messages = [];
  page.on("console", (message) => messages.push(message.text()));
  page.on("pageerror", (error) => messages.push(String(error)));
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto(url);
  // The token leaves the address.
  await page.waitForURL(`${base}/`);
  messages.length = 0;
  return messages;
}

async function expectNarrow(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(wide, "pixels beyond the window").toBeLessThanOrEqual(0);
}

/** Follows the first link of a page with this text. */
async function follow(page, from, text) {
  await page.goto(`${base}${from}`);
  await page.locator("main a", { hasText: text }).first().click();
  await page.waitForLoadState();
}

/** Chooses two results in the list. */
async function compare(page, a, b) {
  await page.goto(`${base}/`);
  for (const [side, text] of [["a", a], ["b", b]]) {
    const row = page.locator("#results tbody tr", { has: page.locator("a", { hasText: text }) }).first();
    await row.locator(`input[name=${side}]`).check();
  }
  await page.locator("button", { hasText: "Compare A with B" }).click();
  await page.waitForLoadState();
}

async function comparedSuites(page) {
  await compare(page, "20261101", "20261112");
  expect(await page.locator("svg").count(), "charts of the runs of both suites").toBeGreaterThan(1);
}

async function overlaidRuns(page) {
  await compare(page, "runs/20261113", "runs/20261114");
  expect(await page.locator("svg").count(), "charts of both runs").toBeGreaterThan(0);
}

async function startLoad(page, duration) {
  await page.goto(`${base}/start`);
  await page.locator("#load-url").fill(target);
  await page.locator("#load-rate").fill("200/s");
  await page.locator("#load-duration").fill(duration);
  await page.locator("#load button[type=submit]").click();
  await page.waitForURL(/commands/);
}

async function startWrong(page) {
  await page.goto(`${base}/start`);
  await page.locator("#load-url").fill(target);
  await page.locator("#load-rate").fill("quickly");
  await page.locator("#load button[type=submit]").click();
  await page.waitForLoadState();
  await expect(page.locator("[role=alert]"), "a wrong rate is reported").toHaveCount(1);
  await expect(page.locator("#load-rate"), "a refused form keeps its values").toHaveValue("quickly");
}

/** Saves an experiment with a mistake. */
async function editWrong(page) {
  await follow(page, "/files", "quickstart/experiment.yaml");
  await save(page, `${experiment}\nbaselin: 1\n`);
  await expect(page.locator(".findings li").first(), "a mistake has a line").toContainText(/line \d+: error/);
}

async function save(page, text) {
  await page.locator("#text").fill(text);
  await page.locator("button", { hasText: "Save and check" }).click();
  await page.waitForLoadState();
}

/** Presses Tab until the focus is on an element of this kind. */
async function tabTo(page, kind, most) {
  for (let count = 0; count < most; count += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((kind) => document.activeElement.matches(kind), kind)) return;
  }
  throw new Error(`no ${kind} within ${most} stops`);
}

/** Checks the page in its current state, and fails for serious findings. */
async function audit(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  // The policy of a page forbids foreign scripts in it, but not those of the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const text = ({ id, impact, help, nodes }) => `${impact}: ${id}: ${help} (${nodes.length}): ${nodes[0].html.slice(0, 160)}`;
  const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
  for (const violation of violations.filter((violation) => !isSerious(violation))) console.log(`axe, ${text(violation)}`);
  expect(violations.filter(isSerious).map(text), "serious findings of axe").toEqual([]);
}
