"use strict";
// What pages have beyond HTML: events of a command, news of clusters, filters of lists, numbers of lines in the editor.
// Everything works without it.
(() => {
  // A text about the page itself.
  const notice = document.createElement("div");
  notice.setAttribute("role", "status");
  const tell = (text) => {
    if (notice.textContent === text) return;
    notice.textContent = text;
    notice.className = text && "remark warning";
  };
  const lost = "Connection lost: this page may be out of date";
  const held = "Not updated while text is selected";
  const isSelected = (part) => {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(part, true);
  };
  // A part that is the same stays, so a click on it is not lost. A part of which only the text is new keeps its focus.
  const update = (shown, parts) => {
    parts.forEach((part, index) => {
      const old = shown.children[index];
      if (!old) shown.append(part);
      else if (old.isEqualNode(part)) return;
      else if (!old.childElementCount && !part.childElementCount && old.cloneNode().isEqualNode(part.cloneNode())) {
        old.textContent = part.textContent;
      } else old.replaceWith(part);
    });
    while (shown.childElementCount > parts.length) shown.lastElementChild.remove();
  };
  const readAgain = async () => {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const job = document.querySelector("#job[data-events]");
  if (job) {
    job.before(notice);
    const isAtEnd = (part) => part.scrollTop + part.clientHeight >= part.scrollHeight - 2;
    const toEnd = (part) => {
      part.scrollTop = part.scrollHeight;
    };
    // The same part of the new text has the focus and the place that it had. Text that grows stays at its end, unless
    // it was scrolled. The server is the only source of this text, and it escapes what commands print.
    const show = (text) => {
      const focused = job.contains(document.activeElement) ? document.activeElement : null;
      const places = new Map();
      for (const part of job.querySelectorAll("pre[id]")) {
        const canScroll = part.scrollHeight > part.clientHeight;
        places.set(part.id, isAtEnd(part) && (canScroll || "tail" in part.dataset) ? null : part.scrollTop);
      }
      const next = document.createElement("div");
      next.innerHTML = text;
      update(job, [...next.children]);
      for (const part of job.querySelectorAll("pre[id]")) {
        const place = places.get(part.id);
        if (place === null || (place === undefined && "tail" in part.dataset)) toEnd(part);
        else part.scrollTop = place ?? 0;
      }
      if (!focused || focused.isConnected) return;
      const same = focused.id ? document.getElementById(focused.id) : job.querySelector(focused.localName);
      (same || job.querySelector("a"))?.focus({ preventScroll: true });
    };
    let waiting = null;
    let isPressed = false;
    let isLost = false;
    // A state waits until a press or a selection ends.
    const apply = () => {
      if (waiting !== null && !isPressed && !isSelected(job)) {
        show(waiting);
        waiting = null;
      }
      tell(isLost ? lost : waiting !== null && !isPressed ? held : "");
    };
    const receive = (event) => {
      isLost = false;
      waiting = event.data;
      apply();
    };
    const source = new EventSource(job.dataset.events);
    source.addEventListener("job", receive);
    source.addEventListener("end", (event) => {
      source.close();
      receive(event);
      // Commands may wait behind this one.
      document.querySelector(".running")?.remove();
      const count = (page) => document.querySelector(".bar nav").append(...page.querySelectorAll(".running"));
      readAgain().then(count, () => {});
    });
    source.addEventListener("error", () => {
      isLost = true;
      apply();
    });
    // The click comes first.
    const release = () =>
      setTimeout(() => {
        isPressed = false;
        apply();
      });
    for (const press of ["pointerdown", "keydown"]) {
      job.addEventListener(press, () => {
        isPressed = true;
      });
    }
    for (const end of ["pointerup", "pointercancel", "keyup", "blur"]) window.addEventListener(end, release);
    // A scroll bar has no `pointerup`.
    window.addEventListener("pointermove", (event) => {
      if (isPressed && !event.buttons) release();
    });
    document.addEventListener("selectionchange", apply);
    window.addEventListener("pagehide", () => source.close());
    job.querySelectorAll("[data-tail]").forEach(toEnd);
  }

  const live = document.querySelector("[data-refresh]");
  if (live) {
    live.before(notice);
    const refresh = async () => {
      try {
        const page = await readAgain();
        const isHeld = isSelected(live);
        if (!isHeld) update(live, [...page.querySelector("[data-refresh]").children]);
        tell(isHeld ? held : "");
      } catch {
        tell(lost);
      }
      setTimeout(refresh, 2000);
    };
    setTimeout(refresh, 2000);
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
    // A text that could not be saved is on this page alone.
    let isChanged = "unsaved" in text.dataset;
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
