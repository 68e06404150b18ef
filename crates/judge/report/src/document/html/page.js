"use strict";
// A cursor over all charts with the same horizontal axis of one part of the page, with the values at it. Left and
// right move it, Enter and a double click make a chart larger or smaller.
(() => {
  const plots = [...document.querySelectorAll("svg[data-axes]")].map((svg) => {
    const [across, up, ...units] = svg.dataset.axes.split(";");
    const [x, y] = [across, up].map((axis) => axis.split(",").map(Number));
    const part = svg.closest(".part") || document.body;
    return { svg, x, y, units, part };
  });
  const value = ([low, high, start, end, isLog], place) => {
    const at = low + ((place - start) / (end - start)) * (high - low);
    return isLog ? 10 ** at : at;
  };
  const digits = (number) => Number(number.toPrecision(3)).toLocaleString("en");
  const scaled = (number, step, names) => {
    let index = 0;
    while (Math.abs(number) >= step && index < names.length - 1) [number, index] = [number / step, index + 1];
    return `${digits(number)} ${names[index]}`;
  };
  const text = (number, unit) => {
    if (unit === "ns") return scaled(number, 1000, ["ns", "µs", "ms", "s"]);
    if (unit === "B") return scaled(number, 1024, ["B", "KiB", "MiB", "GiB"]);
    if (unit === "share") return `${number > 0 ? "+" : ""}${digits(number * 100)} %`;
    if (unit === "percentile") return `p${Number((100 - 100 / number).toPrecision(6))}`;
    return `${digits(number)} ${unit}`.trim();
  };
  const points = (line) => line.getAttribute("points").split(" ").map((point) => point.split(",").map(Number));
  const nearest = (all, place) =>
    all.reduce((best, point) => (Math.abs(point[0] - place) < Math.abs(best[0] - place) ? point : best));
  const show = (plot, place) => {
    const ends = plot.svg.viewBox.baseVal;
    const x = plot.x[2] + ((place - plot.x[0]) / (plot.x[1] - plot.x[0])) * (plot.x[3] - plot.x[2]);
    const parts = plot.lines
      .filter(([, all]) => all.length > 0)
      .map(([name, all]) => `${name} ${text(value(plot.y, nearest(all, x)[1]), plot.units[1])}`);
    const head = text(plot.x[4] ? 10 ** place : place, plot.units[0]);
    plot.readout.textContent = `at ${head}: ${parts.join(", ")}`;
    for (const [name, number] of [["x1", x], ["x2", x], ["y1", 30], ["y2", ends.height - 44]]) {
      plot.cursor.setAttribute(name, number);
    }
  };
  const showAll = (plot, place) => {
    const inside = Math.min(Math.max(place, plot.x[0]), plot.x[1]);
    plot.place = inside;
    for (const other of plots) {
      if (other.part === plot.part && other.units[0] === plot.units[0] && other.x[4] === plot.x[4]) {
        show(other, Math.min(Math.max(inside, other.x[0]), other.x[1]));
      }
    }
  };
  for (const plot of plots) {
    plot.cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    plot.cursor.setAttribute("class", "cursor");
    plot.svg.append(plot.cursor);
    plot.readout = document.createElement("div");
    plot.readout.className = "readout";
    plot.svg.before(plot.readout);
    plot.lines = [...plot.svg.querySelectorAll("g[data-name]")].map((line) => [
      line.dataset.name,
      points(line.querySelector("polyline")),
    ]);
    plot.svg.tabIndex = 0;
    plot.svg.addEventListener("pointermove", (event) => {
      const box = plot.svg.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * plot.svg.viewBox.baseVal.width;
      const share = (place - plot.x[2]) / (plot.x[3] - plot.x[2]);
      showAll(plot, plot.x[0] + share * (plot.x[1] - plot.x[0]));
    });
    plot.svg.addEventListener("dblclick", () => plot.svg.parentElement.classList.toggle("large"));
    plot.svg.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (steps) {
        const middle = (plot.x[0] + plot.x[1]) / 2;
        showAll(plot, (plot.place ?? middle) + (steps * (plot.x[1] - plot.x[0])) / 50);
      } else if (event.key === "Enter") {
        plot.svg.parentElement.classList.toggle("large");
      } else {
        return;
      }
      event.preventDefault();
    });
  }
})();
