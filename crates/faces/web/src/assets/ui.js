"use strict";
// What pages have beyond HTML: events of a command, filters of lists, numbers of lines in the editor. Everything works
// without it.
(() => {
  const job = document.querySelector("#job[data-events]");
  if (job) {
    const isAtEnd = (part) => part.scrollTop + part.clientHeight >= part.scrollHeight - 2;
    const toEnd = (part) => {
      part.scrollTop = part.scrollHeight;
    };
    // The same part of the new text has the focus and the place that it had. Text that grows stays at its end, unless
    // it was scrolled. The server is the only source of this text, and it escapes what commands print.
    const show = (event) => {
      const focused = job.contains(document.activeElement) ? document.activeElement : null;
      const places = new Map();
      for (const part of job.querySelectorAll("pre[id]")) {
        const canScroll = part.scrollHeight > part.clientHeight;
        places.set(part.id, isAtEnd(part) && (canScroll || "tail" in part.dataset) ? null : part.scrollTop);
      }
      job.innerHTML = event.data;
      for (const part of job.querySelectorAll("pre[id]")) {
        const place = places.get(part.id);
        if (place === null || (place === undefined && "tail" in part.dataset)) toEnd(part);
        else part.scrollTop = place ?? 0;
      }
      if (!focused) return;
      const same = focused.id ? document.getElementById(focused.id) : job.querySelector(focused.localName);
      (same || job.querySelector("a"))?.focus({ preventScroll: true });
    };
    const source = new EventSource(job.dataset.events);
    source.addEventListener("job", show);
    source.addEventListener("end", (event) => {
      source.close();
      show(event);
    });
    window.addEventListener("pagehide", () => source.close());
    job.querySelectorAll("[data-tail]").forEach(toEnd);
  }

  for (const input of document.querySelectorAll("[data-filter]")) {
    input.parentElement.hidden = false;
    input.addEventListener("input", () => {
      const text = input.value.trim().toLowerCase();
      const groups = new Set();
      for (const part of document.querySelectorAll(input.dataset.filter)) {
        const next = "withNext" in input.dataset ? part.nextElementSibling : null;
        const words = part.textContent + (next ? next.textContent : "");
        const isShown = words.toLowerCase().includes(text);
        part.hidden = !isShown;
        if (next) next.hidden = !isShown;
        const group = part.closest("details");
        if (group && isShown) groups.add(group);
      }
      if ("withNext" in input.dataset) {
        for (const group of document.querySelectorAll(".keys details")) {
          group.open = text !== "" && groups.has(group);
          group.hidden = text !== "" && !groups.has(group);
        }
      }
    });
    // Enter filters already; it must not send the form around it.
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
  }

  // A link to an element opens it.
  const open = () => {
    const part = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (part && part.tagName === "DETAILS") part.open = true;
  };
  window.addEventListener("hashchange", open);
  open();

  const text = document.querySelector("textarea[data-lines]");
  if (text) {
    const gutter = document.createElement("div");
    gutter.className = "gutter";
    gutter.setAttribute("aria-hidden", "true");
    text.before(gutter);
    const number = () => {
      const count = text.value.split("\n").length;
      gutter.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
      gutter.style.height = `${text.offsetHeight}px`;
      gutter.scrollTop = text.scrollTop;
    };
    text.addEventListener("input", number);
    text.addEventListener("scroll", () => {
      gutter.scrollTop = text.scrollTop;
    });
    new ResizeObserver(number).observe(text);
    number();
    for (const link of document.querySelectorAll("a[data-line]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const lines = text.value.split("\n");
        const line = Number(link.dataset.line) - 1;
        const start = lines.slice(0, line).reduce((sum, part) => sum + part.length + 1, 0);
        text.focus();
        text.setSelectionRange(start, start + (lines[line] || "").length);
        text.scrollTop = Math.max(0, (line - 4) * 21);
      });
    }
    let isChanged = false;
    text.addEventListener("input", () => {
      isChanged = true;
    });
    text.form.addEventListener("submit", () => {
      isChanged = false;
    });
    window.addEventListener("beforeunload", (event) => {
      if (isChanged) event.preventDefault();
    });
  }
})();
