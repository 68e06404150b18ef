// Part of .ci/web: Debian's Chromium, one test after the other.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  workers: 1,
  timeout: 120_000,
  forbidOnly: true,
  reporter: "list",
  use: {
    viewport: { width: 1200, height: 850 },
    launchOptions: { executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] },
  },
});
