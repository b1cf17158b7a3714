"use strict";
document.querySelectorAll("figure.interactive").forEach((figure) => {
  const part = (name) => figure.querySelector("." + name);
  const data = JSON.parse(figure.querySelector("script").textContent);
  const holder = part("tree"), time = data.time;
  const ROW = 18, FONT = 12, SMALL = 9, MARGIN = 12, GAP = 4, DOT = 3.5, LETTER = 0.6 * FONT, DIGIT = 0.75 * SMALL;
  const isNarrow = matchMedia("(max-width: 40rem)").matches;  // a phone, see report.css; a support is only written where its branch has room for it
  const WIDTH = isNarrow ? Math.max(holder.clientWidth - 2, 240) : 980;
  const CROWDED = 60;  // rows from which on a support is only written where its branch has room for it
  const LINE = "#333333", TEXT = "#111111", LABEL = "#666666", BAND = "#9dbfe0", GRID = "#d0d0d0";
  const BEYOND = 200;  // at most, from a tip to its name
  const TICKS = 10, RANGE = 7;  // years with a line, roughly; width of the bar over the years of a node
  const SHADES = [[95, "#1b7837"], [80, "#b8860b"], [0, "#b2182b"]];

  // --- the tree without a root: nodes, and branches with their ends, lengths and labels ---

  const isRooted = data.parents.filter((parent) => parent === 0).length === 2;
  const hasLengths = data.lengths.some((length) => length > 0);
  const names = new Map();
  const branches = [];
  const links = data.parents.map(() => []);

  function addBranch(a, b, length, label, below) {  // below: the nodes that it was above at first, as the marks are listed
    links[a].push(branches.length);
    links[b].push(branches.length);
    branches.push({ ends: [a, b], length, label, below });
  }

  function readTree() {
    const hasChildren = new Set(data.parents);
    const top = [];
    data.parents.forEach((parent, node) => {
      if (!hasChildren.has(node)) names.set(node, data.labels[node]);
      if (node === 0) return;
      const length = hasLengths ? data.lengths[node] || 0 : 1;
      if (isRooted && parent === 0) top.push({ node, length });
      else addBranch(parent, node, length, names.has(node) ? "" : data.labels[node], [node]);
    });
    if (!isRooted) return { node: 0 };
    const [first, second] = top;
    const label = [first, second].map(({ node }) => (names.has(node) ? "" : data.labels[node])).find(Boolean) || "";
    addBranch(first.node, second.node, first.length + second.length, label, [first.node, second.node]);
    return { branch: branches.length - 1, above: first.length };
  }

  const firstRoot = readTree();
  const state = { root: firstRoot, collapsed: new Set(), current: 0, view: [] };

  // --- the tree as seen from the root: nodes in preorder ---

  const key = (visit) => visit.branch + ":" + visit.node;
  const other = (branch, node) => branches[branch].ends[branches[branch].ends[0] === node ? 1 : 0];

  function viewFrom(root) {
    const view = [{ node: root.branch === undefined ? root.node : -1, parent: -1, branch: -1, length: 0, label: "", children: [] }];
    const pending = [];
    if (root.branch === undefined) {
      links[root.node].forEach((branch) => pending.push([0, other(branch, root.node), branch, branches[branch].length]));
    } else {
      const { ends, length } = branches[root.branch];
      pending.push([0, ends[0], root.branch, root.above], [0, ends[1], root.branch, length - root.above]);
    }
    pending.reverse();
    while (pending.length) {
      const [parent, node, branch, length] = pending.pop();
      const own = view.length;
      view[parent].children.push(own);
      view.push({ node, parent, branch, length, label: branches[branch].label, name: names.get(node), children: [] });
      for (const next of [...links[node]].reverse()) {
        if (next !== branch) pending.push([own, other(next, node), next, branches[next].length]);
      }
    }
    for (let number = view.length - 1; number >= 0; number--) {
      const visit = view[number];
      visit.size = visit.children.length ? 0 : 1;
      visit.reach = 0;
      visit.children.forEach((child) => {
        visit.size += view[child].size;
        visit.reach = Math.max(visit.reach, view[child].reach + view[child].length);
      });
    }
    if (part("ladderize").checked) view.forEach((visit) => visit.children.sort((a, b) => view[a].size - view[b].size || a - b));
    return view;
  }

  function collapseLarge() {
    // opens the largest clades, one after the other, as long as there is room for their rows
    const view = viewFrom(state.root);
    state.collapsed.clear();
    if (view[0].size <= data.rows) return;
    const waiting = [0];
    let rows = 1;
    while (waiting.length) {
      waiting.sort((a, b) => view[a].size - view[b].size);
      const visit = view[waiting[waiting.length - 1]];
      if (rows + visit.children.length - 1 > data.rows) break;
      waiting.pop();
      rows += visit.children.length - 1;
      waiting.push(...visit.children.filter((child) => view[child].children.length));
    }
    waiting.forEach((number) => state.collapsed.add(key(view[number])));
  }

  // --- supports ---

  const supportsOf = (label) => label.split("/").map((text, number) => {
    const found = /^\d+(\.\d*)?/.exec(text);
    const kind = data.kinds[number];
    if (!found) return NaN;
    const value = Number(found[0]);
    const isShare = kind ? kind.largest === 1 : value <= 1 && found[0].includes(".");
    return isShare ? 100 * value : value;
  });
  const support = (visit) => (visit.label && !data.marks ? supportsOf(visit.label)[Number(part("kind").value) || 0] : NaN);
  const shade = (percent) => SHADES.find(([least]) => percent >= least)[1];

  // --- marks: text, dot and band of each branch; those of a collapsed clade may add up ---

  function markAll(view) {
    view.forEach((visit) => {
      const { below } = branches[visit.branch] || { below: [] };
      const [text, dot, band, colour] = data.marks ? data.marks[below.includes(visit.node) ? visit.node : below[0]] || ["", null, 0] : [visit.label, null, 0];
      Object.assign(visit, { text, dot, band, colour, number: Number(text) || 0, square: band * band });
    });
    if (!data.widest) return;
    for (let number = view.length - 1; number > 0; number--) {
      const visit = view[number], above = view[visit.parent];
      above.number += visit.number;
      above.square += visit.square;
      if (visit.children.length && !visit.open) {
        visit.text = visit.number ? String(visit.number) : "";
        visit.band = Math.min(data.widest, Math.sqrt(visit.square));
      }
    }
  }

  // --- drawing, as text of SVG ---

  const escapeText = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const fixed = (value) => String(Math.round(value * 100) / 100);

  function nice(about) {
    const power = 10 ** Math.floor(Math.log10(about));
    return Math.max(...[1, 2, 5].map((step) => step * power).filter((length) => length <= about * (1 + 1e-9)));
  }

  function placeRectangular(view, shown) {
    const rows = shown.filter((visit) => !visit.open);
    const longest = Math.max(...rows.map((visit) => titleOf(visit).length)) * LETTER;
    const room = Math.max(WIDTH - 2 * MARGIN - GAP - longest, WIDTH / 3);
    shown.forEach((visit) => { visit.depth = visit.parent < 0 ? 0 : view[visit.parent].depth + visit.length; });
    const deepest = Math.max(...shown.map((visit) => visit.depth + (visit.open ? 0 : visit.reach)), 1e-300);
    let row = 0;
    shown.forEach((visit) => {
      visit.x = MARGIN + (visit.depth / deepest) * room;
      visit.tail = MARGIN + ((visit.depth + visit.reach) / deepest) * room;
      if (!visit.open) visit.y = MARGIN + ROW / 2 + ROW * row++;
    });
    [...shown].reverse().filter((visit) => visit.open).forEach((visit) => {
      visit.y = (view[visit.children[0]].y + view[visit.children[visit.children.length - 1]].y) / 2;
    });
    if (time) placeInTime(view, shown, deepest, room);
    const cut = isNarrow ? 0 : Math.max(0, ...shown.filter(hasText).map((visit) => labelWidth(visit) - visit.x + 2 * GAP));
    shown.forEach((visit) => { visit.x += cut; visit.tail += cut; });
    return { scale: room / deepest, room, width: Math.max(WIDTH, cut + room + longest + GAP + 2 * MARGIN), height: 2 * MARGIN + ROW * row };
  }

  const rangeOf = (visit) => time.ranges[Math.max(visit.node, 0)];

  function placeInTime(view, shown, deepest, room) {
    const root = time.latest - view[0].reach, ranges = shown.map(rangeOf).filter(Boolean);
    const first = Math.min(root, ...ranges.map(([from]) => from)), last = Math.max(time.latest, ...ranges.map(([, to]) => to));
    const across = (year) => MARGIN + ((year - first) / Math.max(last - first, 1e-300)) * room;
    shown.forEach((visit) => {
      visit.x = across(root + visit.depth);
      visit.tail = across(root + visit.depth + visit.reach);
    });
    Object.assign(time, { first, last, across });
  }

  function drawYears(shown, height) {
    const step = nice(((time.last - time.first) / (TICKS - 1)) * 1.5), digits = Math.max(0, -Math.floor(Math.log10(step)));
    let under = "", over = "";
    for (let number = Math.ceil(time.first / step - 1e-9); number <= time.last / step + 1e-9; number++) {
      const x = fixed(time.across(number * step));
      under += `<path d="M${x} ${MARGIN}V${fixed(height)}" fill="none" stroke="${GRID}" stroke-width="1.2"/>`;
      over += `<text text-anchor="middle" x="${x}" y="${fixed(height + FONT + GAP)}" font-size="${SMALL}" fill="${LABEL}">${(number * step).toFixed(digits)}</text>`;
    }
    shown.filter(rangeOf).forEach((visit) => {
      const [from, to] = rangeOf(visit).map((year) => fixed(time.across(year)));
      if (from !== to) under += `<path class="range" d="M${from} ${fixed(visit.y)}H${to}" fill="none" stroke="${BAND}" stroke-width="${RANGE}"/>`;
    });
    return { under, over };
  }

  function placeUnrooted(view, shown) {
    const total = shown.filter((visit) => !visit.open).length;
    [...shown].reverse().forEach((visit) => {
      visit.rows = visit.open ? visit.children.reduce((sum, child) => sum + view[child].rows, 0) : 1;
    });
    shown.forEach((visit) => {
      const above = view[visit.parent];
      if (!above) Object.assign(visit, { start: 0, next: 0, angle: 0, x: 0, y: 0 });
      else {
        visit.start = visit.next = above.next;
        above.next += (2 * Math.PI * visit.rows) / total;
        visit.angle = (visit.start + above.next) / 2;
        visit.x = above.x + visit.length * Math.cos(visit.angle);
        visit.y = above.y + visit.length * Math.sin(visit.angle);
      }
    });
    const [left, right] = [Math.min(...shown.map((v) => v.x)), Math.max(...shown.map((v) => v.x))];
    const [top, bottom] = [Math.min(...shown.map((v) => v.y)), Math.max(...shown.map((v) => v.y))];
    const tips = shown.filter((v) => !v.open), names = MARGIN + GAP + Math.max(...tips.map((v) => titleOf(v).length)) * LETTER;
    const room = Math.max(WIDTH - 2 * names, WIDTH / 2);
    const scale = room / Math.max(right - left, bottom - top, 1e-300);
    shown.forEach((visit) => { visit.x = (visit.x - left) * scale; visit.y = (visit.y - top) * scale; });
    const taken = shown.slice(1).map((visit) => [view[visit.parent].x, view[visit.parent].y, visit.x, visit.y, 2]);
    tips.forEach((visit) => {  // a name goes outwards until it meets no branch and no other name
      const [x, y] = nameEnd(visit, true, BEYOND), range = [Math.min(x, visit.x), Math.min(y, visit.y), Math.max(x, visit.x), Math.max(y, visit.y)];
      const near = taken.filter((line) => meets(line, range)), own = titleOf(visit).length * LETTER;
      const isFree = (far) => {
        for (let back = 0; back < own; back += FONT / 2) {
          const [px, py] = nameEnd(visit, true, far - back);
          if (near.some((line) => meets(line, [px - 2, py - 2, px + 2, py + 2]))) return false;
        }
        return true;
      };
      visit.far = 0;
      while (visit.far < BEYOND && !isFree(visit.far)) visit.far += GAP;
      if (visit.far >= BEYOND) visit.far = 0;
      taken.push([...nameEnd(visit, true, visit.far - own), ...nameEnd(visit, true, visit.far), FONT / 2]);
    });
    const edge = names + Math.max(...tips.map((visit) => visit.far));
    shown.forEach((visit) => { visit.x += edge; visit.y += edge; });
    return { scale, room, width: (right - left) * scale + 2 * edge, height: (bottom - top) * scale + 2 * edge };
  }

  const hasText = (visit) => visit.text && visit.parent >= 0 && (visit.open || data.marks);
  const labelWidth = (visit) => 0.6 * SMALL * visit.text.length;
  const titleOf = (visit) => visit.name !== undefined ? visit.name : visit.size + " taxa";

  function draw() {
    const view = (state.view = viewFrom(state.root));
    const unrooted = figure.querySelector(".layout:checked").value === "unrooted";
    const shown = [];
    view.forEach((visit) => {
      const above = view[visit.parent];
      visit.shown = !above || (above.shown && above.open);
      visit.open = visit.children.length > 0 && !state.collapsed.has(key(visit));
    });
    markAll(view);
    const inOrder = [0];
    while (inOrder.length) {
      const visit = view[inOrder.pop()];
      shown.push(visit);
      if (visit.open) inOrder.push(...[...visit.children].reverse());
    }
    const sheet = unrooted ? placeUnrooted(view, shown) : placeRectangular(view, shown);
    const threshold = Number(part("threshold").value) || 0;
    const wanted = part("find").value.trim().toLowerCase();
    const found = new Set(wanted ? view.filter((v) => v.name !== undefined && v.name.toLowerCase().includes(wanted)) : []);
    const isCrowded = isNarrow || shown.filter((visit) => !visit.open).length > CROWDED;
    const written = shown.filter((visit) => hasText(visit) && (!isCrowded || visit.length * sheet.scale > labelWidth(visit)));
    const beside = placeTexts(view, shown, written, unrooted);
    const pieces = shown.map((visit) => drawNode(view, visit, unrooted, threshold, found, beside.get(visit) || ""));
    if (time && !unrooted) pieces.unshift(drawYears(shown, sheet.height));
    else if (hasLengths) pieces.push(drawScale(sheet));
    const height = sheet.height + (hasLengths ? FONT + GAP + MARGIN : 0);
    holder.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="${fixed(sheet.width)}" height="${fixed(height)}" ` +
      `viewBox="0 0 ${fixed(sheet.width)} ${fixed(height)}" font-family="Helvetica, Arial, sans-serif"><title>Tree of ${view[0].size} taxa</title>` +
      `${pieces.map((piece) => piece.under).join("")}${pieces.map((piece) => piece.over).join("")}</svg>`;
    state.shown = shown;
    tell(wanted ? `${found.size} of ${view[0].size} taxa found` : "");
    markCurrent();
  }

  function meets([x1, y1, x2, y2, radius], [left, top, right, bottom]) {  // whether a thick line crosses a box
    let from = 0, to = 1;
    for (const [at, along, low, high] of [[x1, x2 - x1 || 1e-9, left, right], [y1, y2 - y1 || 1e-9, top, bottom]]) {
      const ends = [(low - radius - at) / along, (high + radius - at) / along];
      from = Math.max(from, Math.min(...ends));
      to = Math.min(to, Math.max(...ends));
    }
    return from < to;
  }

  function placeTexts(view, shown, written, unrooted) {
    // the texts beside nodes: each where it meets the least of lines, dots, names and other texts
    const taken = [], places = unrooted ? [[1, -1], [-1, -1], [1, 1], [-1, 1]] : [[-1, -1], [1, 0], [-1, 1]];
    shown.forEach((visit) => {
      const { x, y, children } = visit, above = view[visit.parent];
      if (above) taken.push([above.x, unrooted ? above.y : y, x, y, 2, 1]);
      if (visit.open && !unrooted) taken.push([x, view[children[0]].y, x, view[children[children.length - 1]].y, 2, 1]);
      if (children.length && above) taken.push([x, y, x, y, DOT, 1]);
      if (!visit.open) taken.push([x, y, ...nameEnd(visit, unrooted, unrooted ? visit.far : 0), FONT / 2, 0.4]);
    });
    return new Map(written.map((visit) => {
      const wide = labelWidth(visit);
      const free = visit.open || unrooted ? places : places.filter(([, down]) => down);  // a tip has its name at its right
      const boxes = free.map(([right, down]) => {
        const left = visit.x + (right < 0 ? -GAP - wide : down ? GAP : 2 * GAP), bottom = visit.y + (down < 0 ? -GAP : down ? GAP + DIGIT : DIGIT / 2);
        return [left, bottom - DIGIT, left + wide, bottom, right];
      });
      const met = boxes.map((own) => taken.reduce((sum, other) => sum + (meets(other, own) ? other[5] : 0), 0)), least = Math.min(...met);
      const box = boxes[met.indexOf(least)], [left, top, right, bottom] = box;
      if (least && unrooted) return [visit, ""];
      taken.push([left, (top + bottom) / 2, right, (top + bottom) / 2, DIGIT / 2, 3]);
      const side = box[4] < 0 ? `text-anchor="end" x="${fixed(right)}"` : `x="${fixed(left)}"`;
      return [visit, `<text ${side} y="${fixed(bottom)}" font-size="${SMALL}" fill="${LABEL}">${escapeText(visit.text)}</text>`];
    }));
  }

  function nameEnd(visit, unrooted, far) {  // the point where the name of a tip ends that begins `far` beyond it
    const along = far + GAP + titleOf(visit).length * LETTER;
    return unrooted ? [visit.x + along * Math.cos(visit.angle), visit.y + along * Math.sin(visit.angle)] : [visit.tail + along, visit.y];
  }

  function drawNode(view, visit, unrooted, threshold, found, beside) {
    const above = view[visit.parent], number = view.indexOf(visit), percent = support(visit);
    let under = "", over = beside;
    if (above) {
      const line = unrooted ? `M${fixed(above.x)} ${fixed(above.y)}L${fixed(visit.x)} ${fixed(visit.y)}` : `M${fixed(above.x)} ${fixed(visit.y)}H${fixed(visit.x)}`;
      const faded = percent < threshold;
      if (visit.band) under += `<path class="band" d="${line}" fill="none" stroke="${visit.colour || BAND}" stroke-width="${visit.band.toFixed(1)}"/>`;
      under += `<path d="${line}" fill="none" stroke="${faded ? LABEL : LINE}" stroke-width="1.2"${faded ? ' class="faded" stroke-dasharray="3 3"' : ""}/>`;
      over += `<path class="hit" data-number="${number}" d="${line}" fill="none" stroke="none" stroke-width="9"/>`;
    }
    if (visit.open && !unrooted) {
      const [first, last] = [view[visit.children[0]], view[visit.children[visit.children.length - 1]]];
      under += `<path d="M${fixed(visit.x)} ${fixed(first.y)}V${fixed(last.y)}" fill="none" stroke="${LINE}" stroke-width="1.2"/>`;
    }
    if (!visit.open) over += drawTip(view, visit, unrooted, found);
    if (visit.children.length && above) {
      const colour = visit.dot || (Number.isNaN(percent) ? LABEL : shade(percent));
      over += `<circle class="node" data-number="${number}" cx="${fixed(visit.x)}" cy="${fixed(visit.y)}" r="${DOT}" fill="${colour}"><title>${escapeText(visit.text || visit.size + " taxa")}</title></circle>`;
    }
    return { under, over };
  }

  function drawTip(view, visit, unrooted, found) {
    const name = titleOf(visit);
    const isFound = visit.name !== undefined ? found.has(visit) : [...found].some((tip) => isBelow(view, tip, visit));
    let x = visit.x + GAP, turn = "", anchor = "", clade = "";
    if (unrooted) {
      const degrees = ((visit.angle * 180) / Math.PI + 360) % 360, flipped = degrees > 90 && degrees < 270;
      x = visit.x + (flipped ? -GAP - visit.far : GAP + visit.far);
      if (visit.far > 0) clade = `<path d="M${fixed(visit.x)} ${fixed(visit.y)}l${fixed(visit.far * Math.cos(visit.angle))} ${fixed(visit.far * Math.sin(visit.angle))}" fill="none" stroke="${GRID}" stroke-width="1.2"/>`;
      turn = ` transform="rotate(${fixed(flipped ? degrees - 180 : degrees)} ${fixed(visit.x)} ${fixed(visit.y)})"`;
      anchor = flipped ? ' text-anchor="end"' : "";
    } else if (visit.children.length) {
      const [top, bottom] = [visit.y - ROW / 3, visit.y + ROW / 3];
      clade = `<path class="clade" d="M${fixed(visit.x)} ${fixed(visit.y)}L${fixed(visit.tail)} ${fixed(top)}V${fixed(bottom)}Z" fill="#f3f4f6" stroke="${LINE}"/>`;
      x = visit.tail + GAP;
    }
    const mark = isFound && !unrooted ? `<rect class="found" x="${fixed(x - 1)}" y="${fixed(visit.y - ROW / 2)}" width="${fixed(name.length * LETTER * 1.1)}" height="${ROW}" fill="#ffe680"/>` : "";
    return `${clade}${mark}<text x="${fixed(x)}" y="${fixed(visit.y + FONT / 3)}" font-size="${FONT}" fill="${TEXT}"${anchor}${turn}${isFound ? ' class="found" font-weight="bold"' : ""}>${escapeText(name)}</text>`;
  }

  function isBelow(view, visit, clade) {
    while (visit && visit !== clade) visit = view[visit.parent];
    return visit === clade;
  }

  function drawScale(sheet) {
    const length = nice((sheet.room * 0.25) / sheet.scale), x = MARGIN + length * sheet.scale, y = sheet.height;
    const line = `M${MARGIN} ${y}H${fixed(x)}M${MARGIN} ${y - GAP}v${2 * GAP}M${fixed(x)} ${y - GAP}v${2 * GAP}`;
    const text = `<text x="${MARGIN}" y="${y + FONT + GAP}" font-size="${SMALL}" fill="${LABEL}">${Number(length.toPrecision(3))}</text>`;
    return { under: `<path d="${line}" fill="none" stroke="${LINE}" stroke-width="1.2"/>`, over: text };
  }

  // --- what the user does ---

  const tell = (text) => { part("status").textContent = text; };

  function toggle(visit) {
    if (!visit.children.length || visit.parent < 0) return;
    if (!state.collapsed.delete(key(visit))) state.collapsed.add(key(visit));
    draw();
    tell(`${state.collapsed.has(key(visit)) ? "Collapsed" : "Opened"} a clade of ${visit.size} taxa.`);
  }

  function rootAt(visit) {
    if (visit.parent < 0 || data.keepsRoot) return;
    state.root = { branch: visit.branch, above: branches[visit.branch].length / 2 };
    draw();
    tell(`The root is now beside ${visit.name !== undefined ? visit.name : "a clade of " + visit.size + " taxa"}.`);
  }

  function midpoint() {
    const farthest = (view) => {
      view.forEach((visit) => { visit.depth = visit.parent < 0 ? 0 : view[visit.parent].depth + visit.length; });
      return view.filter((visit) => !visit.children.length).reduce((a, b) => (b.depth > a.depth ? b : a));
    };
    const from = farthest(viewFrom({ node: state.view.find((visit) => visit.node >= 0 && visit.children.length).node })).node;
    const view = viewFrom({ node: from });
    let visit = farthest(view);
    const half = visit.depth / 2;
    while (visit.depth - visit.length > half) visit = view[visit.parent];
    const below = visit.depth - half, { ends, length } = branches[visit.branch];
    state.root = { branch: visit.branch, above: ends[0] === visit.node ? below : length - below };
    draw();
    tell("The root is in the middle of the longest path between two taxa.");
  }

  function markCurrent() {
    const marked = holder.querySelector("circle.current");
    if (marked) marked.classList.remove("current");
    const circle = holder.querySelector(`circle[data-number="${state.current}"]`);
    if (circle && document.activeElement === holder) circle.classList.add("current");
  }

  function step(event) {
    const shown = state.shown.filter((visit) => visit.children.length && visit.parent >= 0);
    if (!shown.length) return;
    const at = Math.max(0, shown.indexOf(state.view[state.current])), visit = shown[at];
    const parent = state.view[visit.parent];
    const moves = {
      ArrowDown: shown[Math.min(at + 1, shown.length - 1)], ArrowUp: shown[Math.max(at - 1, 0)],
      ArrowLeft: parent.parent >= 0 ? parent : visit, ArrowRight: shown.find((one) => state.view[one.parent] === visit) || visit,
    };
    if (moves[event.key]) {
      event.preventDefault();
      state.current = state.view.indexOf(moves[event.key]);
      markCurrent();
      tell(`Clade of ${moves[event.key].size} taxa${moves[event.key].text ? (data.marks ? ": " : ", support ") + moves[event.key].text : ""}.`);
    } else if (event.key === "Enter") toggle(visit);
    else if (event.key === "r" || event.key === "R") rootAt(visit);
  }

  // --- files ---

  function save(blob, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${figure.closest("section").id}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const svgText = () => new XMLSerializer().serializeToString(holder.querySelector("svg"));

  function savePng() {
    const svg = holder.querySelector("svg"), image = new Image(), canvas = document.createElement("canvas");
    const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
    const factor = Math.min(2, 16000 / Math.max(width, height));
    image.onload = () => {
      [canvas.width, canvas.height] = [width * factor, height * factor];
      const context = canvas.getContext("2d");
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, "png"));
      URL.revokeObjectURL(image.src);
    };
    image.src = URL.createObjectURL(new Blob([svgText()], { type: "image/svg+xml" }));
  }

  const quoted = (name) => /^[^\s()[\]{}:;,'"=]+$/.test(name) ? name : `'${name.replace(/'/g, "''")}'`;

  function newick() {
    const texts = [];
    for (let number = state.view.length - 1; number >= 0; number--) {
      const visit = state.view[number];
      const below = visit.children.length ? `(${visit.children.map((child) => texts[child]).join(",")})${visit.label}` : quoted(visit.name);
      texts[number] = below + (hasLengths && visit.parent >= 0 ? `:${visit.length}` : "");
    }
    return texts[0] + ";\n";
  }

  // --- begin ---

  data.kinds.forEach((kind, number) => part("kind").add(new Option(kind.name, number)));
  if (!data.kinds.length) figure.querySelectorAll(".needs-supports").forEach((label) => { label.hidden = true; });
  if (data.keepsRoot) figure.querySelectorAll(".moves-root").forEach((own) => { own.hidden = true; });
  holder.addEventListener("click", (event) => {
    const number = event.target.closest("[data-number]")?.dataset.number;
    if (number === undefined) return;
    const visit = state.view[number];
    const collapses = data.keepsRoot || event.target.matches("circle") || figure.querySelector(".action:checked").value === "collapse";
    (collapses ? toggle : rootAt)(visit);
  });
  holder.addEventListener("keydown", step);
  holder.addEventListener("focus", markCurrent);
  figure.querySelectorAll(".layout, .ladderize, .kind").forEach((input) => input.addEventListener("change", draw));
  ["find", "threshold"].forEach((name) => part(name).addEventListener("input", draw));
  part("midpoint").addEventListener("click", midpoint);
  part("open").addEventListener("click", () => { state.collapsed.clear(); draw(); });
  part("reset").addEventListener("click", () => { state.root = firstRoot; collapseLarge(); draw(); });
  part("save-svg").addEventListener("click", () => save(new Blob([svgText()], { type: "image/svg+xml" }), "svg"));
  part("save-png").addEventListener("click", savePng);
  part("save-newick").addEventListener("click", () => save(new Blob([newick()], { type: "text/plain" }), "nwk"));
  part("toolbar").hidden = false;
  part("toolbar").open = !isNarrow;
  collapseLarge();
  draw();
});
