// Part of .ci/pages: opens pages in Chromium, light and dark, with scripts and without, and checks them with axe.
//
//     node pages.mjs CHROMIUM FOLDER PAGE...
//
// Writes a screenshot of each page and a PDF into FOLDER. Exits with 1 after a message of the console, an empty chart, a
// cursor that does not move, or a serious finding of axe.
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "any"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;
const [program, folder, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-gpu"] });
let failures = 0;
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
      }
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
  await context.close();
}

/** Checks the page as it is, and fails for serious findings. */
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
