"use strict";
// Charts with the same horizontal axis in one part of the page share a cursor, with the values at it, and the shown range of that
// axis. A pointer moves the cursor and drags a range; arrows, plus and minus do the same. A frame of a flame graph can become as
// wide as the graph. Escape shows everything again; Enter and a double click make a chart larger or smaller.
(() => {
  const set = (element, attributes) => {
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    return element;
  };
  const make = (parent, name, attributes) =>
    parent.appendChild(set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes));
  const within = (number, [low, high]) => Math.min(Math.max(number, low), high);
  const number = (element, name) => Number(element.getAttribute(name));
  const visibility = (isShown) => (isShown ? "visible" : "hidden");
  const resets = [];
  const withReadout = (svg, hint) => {
    const readout = document.createElement("div");
    Object.assign(readout, { className: "readout", textContent: hint });
    svg.before(readout);
    svg.tabIndex = 0;
    return readout;
  };

  const plots = [...document.querySelectorAll("svg[data-axes]")].map((svg, index) => {
    const [across, up, ...units] = svg.dataset.axes.split(";");
    const [x, y] = [across, up].map((axis) => axis.split(",").map(Number));
    const lines = [...svg.querySelectorAll("g[data-name]")].map((line) => {
      const points = line.querySelector("polyline").getAttribute("points").split(" ");
      return [line.dataset.name, points.map((point) => point.split(",").map(Number))];
    });
    const fixed = [...svg.querySelectorAll("circle, .shade + text")].map((mark) => {
      const name = mark.matches("text") ? "x" : "cx";
      return [mark, name, number(mark, name)];
    });
    const foot = svg.viewBox.baseVal.height - 44;
    return { svg, x, y, units, lines, fixed, foot, id: `range${index}`, view: x, part: svg.closest(".part") };
  });
  const digits = (value) => {
    const small = value !== 0 && Math.abs(value) < 0.0009995;
    return small ? value.toExponential(2) : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 6 });
  };
  const scaled = (value, step, names) => {
    let index = 0;
    while (Math.abs(value) >= step && index < names.length - 1) [value, index] = [value / step, index + 1];
    return `${digits(value)} ${names[index]}`;
  };
  const text = (value, unit) => {
    if (unit === "ns") return scaled(value, 1000, ["ns", "µs", "ms", "s"]);
    if (unit === "B") return scaled(value, 1024, ["B", "KiB", "MiB", "GiB"]);
    if (unit === "ratio") return `${digits(value * 100)} %`;
    if (unit === "share") return `${value > 0 ? "+" : ""}${digits(value * 100)} %`;
    if (unit === "percentile") return `p${Number((100 - 100 / value).toPrecision(6))}`;
    return `${digits(value)} ${unit}`.trim();
  };
  const scale = (place, [low, high], [start, end]) => start + ((place - low) / (high - low)) * (end - start);
  const ends = ([, , start, end]) => [start, end];
  const nearest = (all, x) => all.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
  const inverse = (axis, at) => (axis[4] ? 10 ** at : at);
  const show = (plot, place) => {
    plot.place = within(place, plot.view);
    const at = scale(plot.place, plot.x, ends(plot.x));
    const parts = plot.lines
      .filter(([, all]) => all.length > 0)
      .map(([name, all]) => [name, inverse(plot.y, scale(nearest(all, at)[1], ends(plot.y), plot.y))])
      .map(([name, value]) => `${name} ${text(value, plot.units[1])}`);
    plot.readout.textContent = `at ${text(inverse(plot.x, plot.place), plot.units[0])}: ${parts.join(", ")}`;
    const x = scale(plot.place, plot.view, ends(plot.x));
    set(plot.cursor, { x1: x, x2: x, y1: 30, y2: plot.foot });
  };
  const peers = (plot) =>
    plots.filter(({ part, units, x }) => part === plot.part && units[0] === plot.units[0] && x[4] === plot.x[4]);
  const showAll = (plot, place) => peers(plot).forEach((peer) => show(peer, place));
  const drawTicks = (plot, [low, high]) => {
    const decade = 10 ** Math.floor(Math.log10((high - low) / 6));
    const step = decade * [1, 2, 5, 10].find((digit) => digit * decade * 6 >= high - low);
    for (let count = Math.ceil(low / step); count * step <= high; count += 1) {
      const [x, value] = [scale(count * step, plot.view, ends(plot.x)), Number((count * step).toPrecision(9))];
      const unit = plot.units[0];
      make(plot.ticks, "path", { class: "grid", d: `M${x} 30V${plot.foot}` });
      make(plot.ticks, "text", { x, y: plot.foot + 16, "text-anchor": "middle" }).textContent =
        unit === "ns" || unit === "B" ? text(value, unit) : value.toLocaleString("en", { maximumFractionDigits: 9 });
    }
  };
  const covers = ({ x }, low, high) => high - low > (x[1] - x[0]) * 0.999;
  // Shapes are stretched and cut off at the range. Marks and names only move.
  const showRange = (plot, range) => {
    const [low, high] = range.map((end) => within(end, plot.x));
    // A chart without a part of the range stays whole.
    const isWhole = low >= high || covers(plot, low, high);
    plot.view = isWhole ? plot.x : [low, high];
    const cut = plot.view.slice(0, 2).map((end) => scale(end, plot.x, ends(plot.x)));
    const moved = (x) => scale(x, cut, ends(plot.x));
    set(plot.clip, { x: cut[0], width: cut[1] - cut[0] });
    const transform = `matrix(${moved(1) - moved(0)} 0 0 1 ${moved(0)} 0)`;
    for (const shape of plot.svg.querySelectorAll("polyline, .area, .shade")) {
      set(shape, { transform, "clip-path": `url(#${plot.id})` });
    }
    for (const [mark, name, x] of plot.fixed) {
      set(mark, { [name]: moved(x), visibility: visibility(x >= cut[0] - 1 && x <= cut[1] + 1) });
    }
    plot.ticks.replaceChildren();
    plot.svg.classList.toggle("zoomed", !isWhole);
    if (!isWhole) drawTicks(plot, plot.view);
    plot.button.hidden = isWhole;
  };
  // A range that covers one chart shows all of each, because the axes of some are longer.
  const zoom = (plot, low, high) => {
    if (high - low <= (plot.x[1] - plot.x[0]) / 1000) return;
    peers(plot).forEach((peer) => showRange(peer, covers(plot, low, high) ? peer.x : [low, high]));
  };
  const press = (plot, key) => {
    const length = plot.view[1] - plot.view[0];
    const place = plot.place ?? (plot.view[0] + plot.view[1]) / 2;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const wide = length * (plot.x[4] ? 0 : ({ "+": 0.5, "=": 0.5, "-": 2 }[key] ?? 0));
    if (key === "Enter") plot.svg.parentElement.classList.toggle("large");
    else if (step) {
      showAll(plot, place + (step * length) / 50);
    } else if (wide) {
      const start = within(place - wide / 2, [plot.x[0], plot.x[1] - wide]);
      zoom(plot, start, start + wide);
      showAll(plot, place);
    } else return false;
    return true;
  };
  for (const plot of plots) {
    const { svg } = plot;
    // One hint is enough.
    const isFirst = plot === plots.find(({ x }) => !x[4]);
    plot.readout = withReadout(svg, isFirst ? "drag, or press + and -, to choose a range; Escape shows everything" : "");
    plot.ticks = make(svg, "g", { class: "tick" });
    svg.querySelector(".grid")?.before(plot.ticks);
    plot.selection = make(svg, "rect", { class: "selection", y: 30, height: plot.foot - 30 });
    plot.cursor = make(svg, "line", { class: "cursor" });
    plot.clip = make(make(svg, "clipPath", { id: plot.id }), "rect", { height: plot.foot + 2 });
    plot.button = document.createElement("button");
    const reset = () => zoom(plot, plot.x[0], plot.x[1]);
    Object.assign(plot.button, { textContent: "Show all", hidden: true, onclick: reset });
    plot.readout.before(plot.button);
    let start;
    const drop = () => {
      start = undefined;
      set(plot.selection, { width: 0 });
    };
    resets.push(drop, reset);
    const under = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      return within(scale(x, ends(plot.x), plot.view), plot.view);
    };
    const range = (event) => [start, under(event)].sort((a, b) => a - b);
    svg.onpointerdown = (event) => {
      if (event.button !== 0 || plot.x[4]) return;
      start = under(event);
      svg.setPointerCapture(event.pointerId);
    };
    svg.onpointermove = (event) => {
      showAll(plot, under(event));
      if (start === undefined) return;
      const [from, to] = range(event).map((place) => scale(place, plot.view, ends(plot.x)));
      set(plot.selection, { x: from, width: to - from });
    };
    svg.onpointerup = (event) => {
      if (start === undefined) return;
      const [low, high] = range(event);
      drop();
      if (high - low > (plot.view[1] - plot.view[0]) / 100) zoom(plot, low, high);
    };
    svg.onpointercancel = drop;
    svg.ondblclick = () => svg.parentElement.classList.toggle("large");
    svg.onkeydown = (event) => {
      if (!event.ctrlKey && !event.metaKey && press(plot, event.key)) event.preventDefault();
    };
  }

  for (const svg of document.querySelectorAll("svg.flame")) {
    const readout = withReadout(svg, "click a frame to enlarge it; Escape shows everything");
    const whole = { left: 0, top: 0, width: svg.viewBox.baseVal.width };
    const frames = [...svg.querySelectorAll("g")].map((group) => {
      const rect = group.querySelector("rect");
      const [left, top, width] = ["x", "y", "width"].map((name) => number(rect, name));
      const title = group.querySelector("title").textContent;
      const label = group.querySelector("text") || make(group, "text", { y: top + 12.5 });
      return { group, rect, label, left, top, width, title, name: title.slice(0, title.lastIndexOf(": ")) };
    });
    // The order of a walk through the stacks: a caller, then what it called.
    frames.sort((a, b) => a.left - b.left || a.top - b.top);
    const isIn = (inner, outer) => inner.left > outer.left - 0.2 && inner.left + inner.width < outer.left + outer.width + 0.2;
    let shown = whole;
    let chosen;
    const choose = (frame) => {
      if (!frame) return;
      chosen?.group.classList.remove("chosen");
      chosen = frame;
      frame.group.classList.add("chosen");
      readout.textContent = frame.title;
    };
    const widen = (frame) => {
      shown = frame;
      for (const { group, rect, label, name, ...other } of frames) {
        const isCaller = other.top < frame.top && isIn(frame, other);
        const [low, high] = [frame.left, frame.left + frame.width];
        const at = (x) => scale(within(x, [low, high]), [low, high], [0, whole.width]);
        const [x, width] = [at(other.left), at(other.left + other.width) - at(other.left)];
        const room = Math.floor((width - 6) / 7.4);
        set(group, { visibility: visibility(isCaller || (other.top >= frame.top && isIn(other, frame))) });
        group.classList.toggle("caller", isCaller);
        set(rect, { x, width });
        set(label, { x: x + 3 }).textContent = room < 3 ? "" : name.length > room ? `${name.slice(0, room)}…` : name;
      }
    };
    const toggle = (frame) => {
      choose(frame);
      if (frame) widen(frame === shown ? whole : frame);
    };
    const of = (event) => frames.find(({ group }) => group.contains(event.target));
    resets.push(() => widen(whole));
    svg.onclick = (event) => toggle(of(event));
    svg.onpointermove = (event) => choose(of(event));
    svg.onkeydown = (event) => {
      const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      const visible = frames.filter(({ group }) => group.getAttribute("visibility") !== "hidden");
      if (step) choose(visible[visible.indexOf(chosen) + step]);
      else if (event.key === "Enter") toggle(chosen);
      else return;
      event.preventDefault();
    };
  }
  document.addEventListener("keydown", ({ key }) => key === "Escape" && resets.forEach((reset) => reset()));
})();
