// The picture of a recording: both channels on one time axis, with speech, scored window, limit, what was measured, and words.
// Everything is placed in percent of the stretch of time that is shown, so it fits any width.
"use strict";

const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

// A path of peaks, mirrored about the middle: x is seconds, y from -1 to 1.
const outline = (values, perSecond, from, to) => {
  const first = Math.max(0, Math.floor(from * perSecond));
  const last = Math.min(values.length, Math.ceil(to * perSecond) + 1);
  const group = Math.max(1, Math.floor((last - first) / 1600));
  const top = [];
  for (let k = first; k < last; k += group) {
    let peak = 0;
    for (let j = k; j < Math.min(k + group, last); j++) peak = Math.max(peak, values[j]);
    top.push([k / perSecond, Math.max(0.012, peak / 255)]);
  }
  const d = [...top.map(([x, y]) => `${x.toFixed(3)} ${(-y).toFixed(3)}`), ...top.reverse().map(([x, y]) => `${x.toFixed(3)} ${y.toFixed(3)}`)];
  return d.length ? `M${d.join("L")}Z` : "";
};

const svg = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30];

// take: a case's detail. Returns the element; .view(from, to) shows a stretch, .cursor(t) moves the cursor.
dsb.wave = (take, describe) => {
  const box = dsb.h("div", { class: "wave", role: "slider", tabindex: "0", "aria-label": `Position in the recording. ${describe}`, "aria-valuemin": "0", "aria-valuemax": String(take.duration), "aria-valuenow": "0", "aria-valuetext": "0.0 s" });
  const channels = take.peaks ? take.peaks.channels.map(bytes) : [];
  const cursor = dsb.h("div", { class: "cursor" });
  let [from, to] = [0, take.duration];

  const at = (t) => `${((100 * (t - from)) / (to - from)).toFixed(4)}%`;
  const wide = (a, b) => `${((100 * (b - a)) / (to - from)).toFixed(4)}%`;
  const seen = (a, b) => b > from && a < to;
  const mark = (kind, a, b, ...inside) => (seen(a, b ?? a + 1e-9) ? dsb.h("div", { class: kind, style: b === undefined ? { left: at(a) } : { left: at(a), width: wide(a, b) } }, inside) : null);

  const lane = (k) => {
    const name = take.channels[k];
    const values = channels[k];
    const shape = values
      ? svg("svg", { viewBox: `${from} -1 ${to - from} 2`, preserveAspectRatio: "none", class: "peaks", "aria-hidden": "true" }, svg("path", { d: outline(values, take.peaks.per_s, from, to) }))
      : dsb.h("span", { class: "none" }, "no audio");
    return dsb.h(
      "div",
      { class: `lane channel-${k}` },
      dsb.h("span", { class: "who" }, take.titles ? take.titles[k] : name),
      shape,
      (take.speech[name] || []).map(([a, b]) => mark("speech", a, b))
    );
  };

  const words = (k) =>
    dsb.h("div", { class: `said channel-${k}` }, dsb.phrases(take, take.channels[k]).map((phrase) => mark("phrase", phrase.start, phrase.end, dsb.h("span", { dir: "auto" }, phrase.text))));

  const axis = () => {
    const step = STEPS.find((one) => (to - from) / one <= 14) || 60;
    const ticks = [];
    for (let t = Math.ceil(from / step) * step; t <= to + 1e-9; t += step) ticks.push(mark("tick", t, undefined, dsb.h("span", {}, step < 1 ? t.toFixed(1) : String(Math.round(t)))));
    return dsb.h("div", { class: "axis", "aria-hidden": "true" }, ticks);
  };

  const draw = () => {
    box.replaceChildren(
      dsb.h(
        "div",
        { class: "lanes" },
        take.window ? mark("window", take.window[0], Math.max(take.window[1], take.window[0] + 0.001)) : null,
        take.lead_in ? mark("lead-in", 0, take.lead_in) : null,
        lane(0),
        words(0),
        lane(1),
        words(1),
        take.limit === null || take.limit === undefined ? null : mark("limit", take.limit),
        (take.measured || []).map(([t, name]) => mark("measured", t, undefined, dsb.h("span", {}, name))),
        cursor
      ),
      axis()
    );
  };

  const api = {
    element: box,
    stretch: () => [from, to],
    view(a, b) {
      [from, to] = [Math.max(0, a), Math.min(take.duration, b)];
      draw();
    },
    cursor(t) {
      cursor.style.left = at(t);
      cursor.hidden = t < from || t > to;
      box.setAttribute("aria-valuenow", t.toFixed(2));
      box.setAttribute("aria-valuetext", `${t.toFixed(1)} s`);
    },
    time(event) {
      const lanes = box.querySelector(".lanes").getBoundingClientRect();
      return Math.min(take.duration, Math.max(0, from + ((event.clientX - lanes.left) / lanes.width) * (to - from)));
    },
  };
  draw();
  api.cursor(0);
  return api;
};

// What a channel says, in phrases: the user's segments as they are, a model's words joined until it pauses.
const PAUSE_S = 1.0;

dsb.phrases = (take, channel) => {
  const out = [];
  for (const entry of take.said[channel] || []) {
    if (entry.length === 3) {
      out.push({ start: entry[0], end: entry[1], text: entry[2] });
      continue;
    }
    const [start, text] = entry;
    const last = out[out.length - 1];
    if (last && start - last.last < PAUSE_S) {
      last.text += text;
      last.last = start;
    } else out.push({ start, last: start, text });
  }
  return out.map((phrase, k) => {
    if (phrase.end !== undefined) return phrase;
    const after = (take.speech[channel] || []).find(([a, b]) => a <= phrase.last + 0.3 && b >= phrase.last);
    const next = out[k + 1] ? out[k + 1].start : take.duration;
    return { ...phrase, end: Math.min(next, Math.max(phrase.last + 0.3, after ? after[1] : phrase.last + 0.6)) };
  });
};
