// The page of a server in headless Chromium. `cargo test` starts the server, fills it, and says where
// things are: EVERBLOOM_PAGE is the page's address, EVERBLOOM_CHROMIUM the browser's program, and
// EVERBLOOM_SHOTS a folder for pictures.

import assert from 'node:assert/strict';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const address = process.env.EVERBLOOM_PAGE;
const origin = new URL(address).origin;
const hostile = "<img src=x onerror=document.title='owned'>";

const browser = await chromium.launch({
  executablePath: process.env.EVERBLOOM_CHROMIUM,
  // A container's root has no sandbox, and its /dev/shm is small.
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});

// Opens the page in a window, and collects all that should not be: messages in the console, errors,
// requests to another address.
async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const wrong = [];
  page.on('console', (message) => wrong.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('requestfailed', (request) => {
    const { errorText } = request.failure();
    // The page was left while it asked.
    if (errorText !== 'net::ERR_ABORTED') wrong.push(`failed: ${request.url()} ${errorText}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) wrong.push(`request: ${url}`);
  });
  await page.goto(address);
  return { page, wrong };
}

const text = (page, selector) => page.locator(selector).textContent();
const names = (page) => page.locator('#rows th').allTextContents();

// Waits until the status of the table says so.
async function matches(page, expected) {
  try {
    await page.locator('#matches', { hasText: expected }).waitFor();
  } catch (error) {
    const shown = await page.locator('#matches, #trouble').allTextContents();
    throw new Error(`the page shows ${JSON.stringify(shown)}`, { cause: error });
  }
}

async function shoot(page, name) {
  await page.screenshot({ path: join(process.env.EVERBLOOM_SHOTS, `${name}.png`), fullPage: true });
}

// Presses Tab until the focus is on an element that fits.
async function tabTo(page, selector, most = 60) {
  for (let presses = 0; presses < most; presses += 1) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate((it) => document.activeElement.matches(it), selector);
    if (found) return;
  }
  assert.fail(`no way to ${selector} by Tab`);
}

async function byKeyboard(page) {
  await matches(page, /^1 to 50 of 10,0\d\d filters$/);
  assert.match(await text(page, '#sums'), /^10,0\d\d filters with [\d,]+ items in .* 2 filters err at least a quarter more often than asked\.$/);
  // Search.
  await tabTo(page, '#search');
  await page.keyboard.type('FILTER:0999');
  await matches(page, '10 filters whose name contains “FILTER:0999”');
  // Sort by name, both ways.
  await tabTo(page, '#column-name button');
  await page.keyboard.press('Enter');
  await page.locator('#column-name[aria-sort=ascending]').waitFor();
  assert.equal((await names(page))[0], 'filter:09990');
  await page.keyboard.press('Enter');
  await page.locator('#column-name[aria-sort=descending]').waitFor();
  assert.equal((await names(page))[0], 'filter:09999');
  assert.equal(await page.locator('#columns [aria-sort]').count(), 1);
  const focused = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(focused, 'solid');
  // Open the first.
  await tabTo(page, '#rows a');
  await page.keyboard.press('Enter');
  await page.locator('#name', { hasText: 'filter:09999' }).waitFor();
  await page.waitForFunction(() => document.activeElement.id === 'name');
  assert.match(await text(page, '#facts'), /Capacity10,099/);
  assert.equal(await page.title(), 'filter:09999 · everbloom');
  // And back.
  await tabTo(page, '#all');
  await page.keyboard.press('Enter');
  await matches(page, '10 filters');
}

// A late answer does not take the focus from the search.
async function slowAnswer(page) {
  await page.goto(`${address}#db=0&key=grown`);
  await page.locator('#facts', { hasText: 'Layout' }).waitFor();
  let answer;
  const asked = new Promise((resolve) => { answer = resolve; });
  await page.route('**/filters.json?*', async (route) => {
    await asked;
    await route.continue();
  });
  await page.locator('#all').click();
  await page.locator('#search').focus();
  await page.keyboard.type('fu');
  const answered = page.waitForResponse('**/filters.json?*');
  answer();
  await answered;
  await matches(page, '1 filter whose name contains “fu”');
  await page.keyboard.type('ll');
  await matches(page, '1 filter whose name contains “full”');
  await page.unroute('**/filters.json?*');
}

// What an operator looks for first, and the values below the pointer.
async function statuses(page) {
  for (const [search, expected] of [['erring', 'above its rate'], ['full', 'full'], ['grown', 'ok']]) {
    await page.locator('#search').fill(search);
    await matches(page, `1 filter whose name contains “${search}”`);
    assert.equal(await page.locator('#rows td').first().textContent(), expected);
  }
  await page.locator('#age', { hasText: /^As of .+ ago\.$/ }).waitFor();
  await page.locator('#rate svg').hover();
  await page.locator('#rate .at', { hasText: /^commands\/s [\d.]+/ }).waitFor();
  // They stay when the chart is drawn again.
  const redrawn = await page.evaluate(() => {
    showNow(lastNow);
    return document.querySelector('#rate .at').textContent;
  });
  assert.match(redrawn, /^commands\/s [\d.]+/);
  // A burst between quiet minutes is a dot.
  await page.evaluate(() => chart('times', {
    lines: [{ name: 'mean', ink: 'c2', points: [[0, null], [1, 1e-6], [2, null]] }],
    x: [0, 2], ticks: [], format: time, text: '',
  }));
  assert.equal(await page.locator('#times circle').count(), 1);
  // One unit in a column.
  assert.deepEqual(
    await page.evaluate(() => [0, 1.7e-12, 1.85e-8, 1e-6, 9.96e-6, 1e-5, 0.001].map(percent)),
    ['0 %', '2e-10 %', '0.0000019 %', '0.0001 %', '0.001 %', '0.001 %', '0.1 %'],
  );
  // A full filter has a full bar.
  await page.locator('#search').fill('full');
  await matches(page, '1 filter whose name contains “full”');
  assert.equal(await page.locator('#rows meter').getAttribute('value'), '1');
}

async function sinceTheStart(page) {
  const rows = await page.locator('#commands tr').allTextContents();
  assert.match(rows.find((row) => row.startsWith('BF.RESERVE')), /^BF\.RESERVE10,0\d\d\d+(\.\d+)? .s00$/);
  assert.match(await text(page, '#server-facts'), /^Last snapshot.+Changes not in a snapshot[\d,]+Log of changes.+Error replies1 ERR(, \d+ LOADING)?$/);
}

async function pages(page) {
  await page.locator('#search').fill('');
  await matches(page, /^1 to 50 of 10,0\d\d filters$/);
  await page.getByRole('button', { name: 'Next page' }).click();
  await matches(page, /^51 to 100 of/);
  await page.getByRole('button', { name: 'Previous page' }).click();
  await matches(page, /^1 to 50 of/);
  assert.ok(await page.getByRole('button', { name: 'Previous page' }).isDisabled());
  await page.getByRole('button', { name: 'Memory' }).click();
  await page.locator('#column-bytes[aria-sort=descending]').waitFor();
}

// Names are shown as they are, and lead to their filters.
async function hostileNames(page) {
  for (const [search, name, items] of [
    ['<img', hostile, 1], ['%20', '"\'&%20?#db=1', 1], ['\\xff', '\\xff\\u{0}bytes', 1], ['größe', 'Größe 水', 1],
  ]) {
    await page.locator('#search').fill(search);
    await matches(page, `1 filter whose name contains “${search}”`);
    assert.deepEqual(await names(page), [name]);
    await page.locator('#rows a').click();
    await page.locator('#facts', { hasText: `Items${items}` }).waitFor();
    assert.equal(await text(page, '#name'), name);
    await page.locator('#all').click();
    await page.locator('#rows').waitFor();
  }
  assert.equal(await page.locator('main img').count(), 0);
  assert.equal(await page.title(), 'everbloom');
  // Of exactly this name, listed or not.
  const exactly = page.getByRole('button', { name: 'Open exactly this name' });
  await page.locator('#search').fill(hostile);
  await exactly.click();
  await page.locator('#facts', { hasText: 'Items1' }).waitFor();
  assert.equal(await text(page, '#name'), hostile);
  await page.locator('#all').click();
  await page.locator('#search').fill('not there');
  await matches(page, 'No filter whose name contains “not there” is listed.');
  await exactly.click();
  await page.locator('#forecast', { hasText: 'There is no filter of this name in database 0.' }).waitFor();
  await page.locator('#all').click();
  await page.locator('#search').fill('');
}

// What a filter's own view says, and that it goes on with the time.
async function oneFilter(page) {
  await page.goto(`${address}#db=0&key=grown`);
  await page.locator('#facts', { hasText: /Items(3,9|4,0)/ }).waitFor();
  assert.match(await text(page, '#parts-title'), /^Layers/);
  const layers = await page.locator('#parts li').allTextContents();
  assert.equal(layers.length, 3);
  assert.match(layers[0], /^Layer 1: .* 1,000 of 1,000 items, \d hashes, 1[\d.]+ bits an item, error rate 0\.5 % when full$/);
  await page.locator('#forecast', { hasText: 'No items were added in the last' }).waitFor();
  assert.match(await text(page, '#forecast'), /it grows: it adds layer 4\. Until then it keeps its error rate of 1 %\./);
  const errors = page.locator('#errors svg');
  assert.match(await errors.getAttribute('aria-label'), /^Expected error rate against items: 0\.\d+ % now\./);
  for (const label of ['expected', 'asked', 'now', 'grows']) {
    assert.equal(await errors.getByText(label, { exact: true }).count(), 1, label);
  }
  await page.goto(`${address}#db=0&key=erring`);
  await page.locator('#forecast', { hasText: 'already exceeds its error rate of 0.1 %' }).waitFor();
  await page.goto(`${address}#db=0&key=full`);
  await page.locator('#forecast', { hasText: /^Full: it refuses new items\.$/ }).waitFor();
  await page.goto(`${address}#db=0&key=nearly`);
  await page.locator('#forecast', { hasText: /it is full and refuses items\. Until then it keeps its error rate of 1 %\./ }).waitFor();
  for (const [name, forecast, facts] of [
    ['seconds', /^A new generation begins in /, /Remembersthe last 1 h/],
    ['items', /it begins a new generation\. Until then it keeps/, /Remembersthe last 100 items/],
  ]) {
    await page.goto(`${address}#db=0&key=window:${name}`);
    await page.locator('#forecast', { hasText: forecast }).waitFor();
    assert.match(await text(page, '#facts'), facts);
  }
  await page.goto(`${address}#db=0&key=cuckoo`);
  await page.locator('#parts-title', { hasText: 'Tables' }).waitFor();
  assert.match(await text(page, '#facts'), /Slots1,024/);
  const bar = await page.locator('#parts .used').getAttribute('width');
  assert.ok(Number.parseFloat(bar) > 40, bar);
  // A filter that items are added to meanwhile.
  await page.goto(`${address}#db=0&key=growing`);
  await page.locator('#forecast', { hasText: /^At the present rate of adds it grows: it adds layer 2 in \d/ }).waitFor();
  assert.match(await text(page, '#basis'), /items came in the last/);
}

for (const colorScheme of ['light', 'dark']) {
  const { page, wrong } = await open({ colorScheme, viewport: { width: 1200, height: 900 } });
  const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(back, colorScheme === 'light' ? 'rgb(255, 255, 255)' : 'rgb(13, 17, 23)');
  await page.locator('#rate svg path').waitFor();
  await byKeyboard(page);
  await pages(page);
  await slowAnswer(page);
  await statuses(page);
  await sinceTheStart(page);
  await page.locator('#search').fill('');
  await matches(page, /^1 to 50 of/);
  await shoot(page, `${colorScheme}-list`);
  await hostileNames(page);
  await oneFilter(page);
  await shoot(page, `${colorScheme}-growing`);
  await page.goto(`${address}#db=0&key=grown`);
  await page.locator('#parts li').nth(2).waitFor();
  await shoot(page, `${colorScheme}-grown`);
  assert.deepEqual(wrong, []);
  await page.close();
}

// What leaves its card, and texts of a chart that overlap.
function misplaced() {
  const found = [];
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide} pixels too wide`);
  for (const table of document.querySelectorAll('.scroll')) {
    if (table.scrollWidth > table.clientWidth) found.push(`${table.id || 'the commands'}: a table too wide`);
  }
  for (const card of document.querySelectorAll('figure')) {
    const inside = card.getBoundingClientRect();
    const texts = [...card.querySelectorAll('text')].filter((text) => text.textContent);
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [number, [text, box]] of boxes.entries()) {
      if (box.left < inside.left || box.right > inside.right) found.push(`${text}: outside`);
      for (const [other, it] of boxes.slice(0, number)) {
        const over = box.left < it.right && it.left < box.right && box.top + 3 < it.bottom && it.top + 3 < box.bottom;
        if (over) found.push(`${text} is on ${other}`);
      }
    }
  }
  return found;
}

// A phone in both positions, a tablet, a laptop. The window changes while the page is open.
const { page, wrong } = await open({ viewport: { width: 1200, height: 800 } });
for (const [view, ready] of [['', '#rate svg path'], ['#db=0&key=grown', '#parts li'], ['#db=0&key=strict', '#parts li']]) {
  await page.goto(address + view);
  await page.locator(ready).first().waitFor();
  for (const width of [360, 420, 600, 800, 1200]) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(() => new Promise((drawn) => { requestAnimationFrame(() => setTimeout(drawn)); }));
    assert.deepEqual(await page.evaluate(misplaced), [], `${view} at ${width} pixels`);
    await shoot(page, `${view.replace(/.*=/, '') || 'list'}-${width}`);
  }
}
// Reserved memory that was not written to is not the process's yet.
await page.goto(address);
await page.waitForFunction(() => lastNow);
await page.evaluate(() => {
  const { now, samples } = lastNow;
  showNow({ ...lastNow, samples: [...samples, [now, 1, null, null, null, 2e9, 1e9]] });
});
await page.locator('#untouched', { hasText: 'counts all memory that was reserved' }).waitFor();
assert.deepEqual(wrong, []);
await browser.close();
