// What scripts/checks/check_pages.py runs: node check_pages.mjs CHROMIUM FOLDER PAGE...
// Prints a line for each finding; FOLDER gets pictures of each page: wide, dark, narrow as a phone, and printed.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.cwd(), "package.json"));
const puppeteer = require("puppeteer-core");
const { HtmlValidate } = require("html-validate");
const axe = require("axe-core").source;

const [chromium, folder, ...pages] = process.argv.slice(2);
const VIEWS = [
  { name: "wide", width: 1280, scheme: "light" },
  { name: "dark", width: 1280, scheme: "dark" },
  { name: "phone", width: 390, scheme: "light" },
  { name: "phone-dark", width: 390, scheme: "dark" },
  { name: "print", width: 800, scheme: "light", media: "print" },
];
const SPARED = {
  "long-title": "off", // a prefix may be long
  "no-inline-style": "off", // pictures are files of their own, too
  "svg-focusable": "off", // for Internet Explorer
  "prefer-native-element": "off", // a group that scrolls is no fieldset
  "tel-non-breaking": "off", // numbers of a model are not those of a telephone
};

let nFound = 0;
const tell = (file, view, text) => {
  nFound += 1;
  console.log(`${file}: ${view}: ${text}`);
};

async function validate(file) {
  const validator = new HtmlValidate({ root: true, extends: ["html-validate:recommended"], rules: SPARED });
  const report = await validator.validateFile(file);
  for (const { messages } of report.results)
    for (const { line, ruleId, message } of messages) tell(file, "html-validate", `line ${line}: ${ruleId}: ${message}`);
}

async function look(browser, file, view) {
  const page = await browser.newPage();
  const told = (text) => tell(file, view.name, text);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && told(`console: ${message.text()}`));
  page.on("pageerror", (error) => told(`script: ${error.message}`));
  page.on("request", (request) => /^https?:/.test(request.url()) && told(`loads ${request.url()}`));
  await page.setViewport({ width: view.width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.scheme }]);
  if (view.media) await page.emulateMediaType(view.media);
  await page.goto(pathToFileURL(file).href);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > view.width) told(`${width} pixels wide, the window has ${view.width}`);
  const client = await page.createCDPSession(); // a world of its own, where the page's policy does not hold
  const { frameTree } = await client.send("Page.getFrameTree");
  const { executionContextId } = await client.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const expression = `${axe}; axe.run({ resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations))`;
  const { result, exceptionDetails } = await client.send("Runtime.evaluate", {
    expression, contextId: executionContextId, awaitPromise: true, returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  for (const { id, impact, help, nodes } of JSON.parse(result.value))
    told(`axe: ${impact}: ${id}: ${help}: ${nodes.length} times, such as ${nodes[0].target.join(" ")}`);
  const picture = path.join(folder, `${path.basename(file, ".html")}-${view.name}.png`);
  const height = await page.evaluate(() => Math.min(document.documentElement.scrollHeight, 12000));
  await page.screenshot({ path: picture, clip: { x: 0, y: 0, width: view.width, height }, captureBeyondViewport: true });
  await page.close();
}

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
for (const file of pages) {
  await validate(file);
  for (const view of VIEWS) await look(browser, file, view);
}
await browser.close();
console.log(`${pages.length} pages, ${VIEWS.length} views of each, ${nFound} findings`);
process.exitCode = nFound ? 1 : 0;
