// Playing a recording: the audio is asked for when it is first played, the cursor follows it, and keys do what buttons do.
"use strict";

const BEFORE_S = 2;

const SILENT = { none: "this report was made without audio", changed: "this report has the audio of what has changed; --audio=linked has all of it" };

// Keys of a page with a recording. One player at a time has them: the one last touched.
let active = null;

const KEYS = {
  " ": (player) => player.toggle(),
  k: (player) => player.toggle(),
  ArrowLeft: (player, event) => player.seek(player.time() - (event.shiftKey ? 0.1 : 1)),
  ArrowRight: (player, event) => player.seek(player.time() + (event.shiftKey ? 0.1 : 1)),
  Home: (player) => player.seek(0),
  End: (player) => player.seek(player.duration),
  w: (player) => player.playWindow(),
  z: (player) => player.zoom(),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !active) return;
  const on = event.target.closest("input, select, textarea, button, a, .scroller");
  if (on && (event.key === " " || event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End" || on.matches("input, select, textarea"))) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act(active, event);
});

dsb.player = (take, wave) => {
  const audio = take.audio ? dsb.h("audio", { src: take.audio, preload: "none" }) : null;
  const clock = dsb.h("output", { class: "clock", "aria-live": "off" }, "");
  const state = dsb.h("p", { class: "notice warning", role: "alert", hidden: true });
  const followers = [];
  let position = 0;
  let until = null;

  const show = () => {
    wave.cursor(position);
    clock.textContent = `${position.toFixed(2)} / ${take.duration.toFixed(2)} s`;
    followers.forEach((follow) => follow(position));
  };
  const tick = () => {
    position = audio.currentTime;
    if (until !== null && position >= until) {
      audio.pause();
      until = null;
    }
    show();
    if (!audio.paused) requestAnimationFrame(tick);
  };

  const play = dsb.h("button", { type: "button", class: "play", "aria-keyshortcuts": "Space", disabled: !audio, onclick: () => api.toggle() }, "▶ Play");
  const api = {
    duration: take.duration,
    time: () => position,
    seek(t) {
      position = Math.min(take.duration, Math.max(0, t));
      until = null;
      if (audio && audio.readyState) audio.currentTime = position;
      show();
    },
    async start(from) {
      if (!audio) return;
      if (active && active !== api) active.pause();
      active = api;
      if (from !== undefined) position = from;
      if (position >= take.duration - 0.05) position = 0;
      // Before there is anything to seek in, the place is kept and gone to when there is.
      if (audio.readyState) audio.currentTime = position;
      else {
        const there = position;
        audio.addEventListener("loadedmetadata", () => (audio.currentTime = there), { once: true });
      }
      try {
        await audio.play();
      } catch (error) {
        if (error.name === "NotSupportedError") api.fail();
      }
    },
    pause: () => audio && audio.pause(),
    toggle: () => (audio && audio.paused ? api.start() : api.pause()),
    async playWindow() {
      if (!take.window) return;
      const end = Math.min(take.duration, take.window[1] + 1);
      await api.start(Math.max(0, take.window[0] - BEFORE_S));
      until = end;
    },
    zoom() {
      const whole = wave.stretch()[1] - wave.stretch()[0] >= take.duration - 1e-6;
      if (whole && take.window) wave.view(take.window[0] - BEFORE_S, take.window[1] + BEFORE_S);
      else wave.view(0, take.duration);
      show();
    },
    fail() {
      state.hidden = false;
      state.textContent = `The audio could not be loaded: ${decodeURIComponent(take.audio)}. "dsbeval report RUN" puts it there again.`;
    },
    follow: (what) => followers.push(what),
  };

  if (audio) {
    audio.addEventListener("play", () => {
      play.textContent = "❚❚ Pause";
      requestAnimationFrame(tick);
    });
    audio.addEventListener("pause", () => (play.textContent = "▶ Play"));
    audio.addEventListener("ended", () => (until = null));
    audio.addEventListener("error", api.fail);
  }
  wave.element.addEventListener("pointerdown", (event) => {
    active = api;
    api.seek(wave.time(event));
  });
  wave.element.addEventListener("focus", () => (active = api));
  active = active || api;
  dsb.leave(() => {
    api.pause();
    if (active === api) active = null;
  });
  const rate = dsb.h("select", { "aria-label": "Speed", disabled: !audio, onchange: (event) => (audio.playbackRate = Number(event.target.value)) }, [0.5, 0.75, 1, 1.5].map((value) => dsb.h("option", { value: String(value), selected: value === 1 }, `${value}×`)));
  api.controls = dsb.h(
    "div",
    { class: "controls" },
    play,
    take.window ? dsb.h("button", { type: "button", "aria-keyshortcuts": "w", disabled: !audio, onclick: () => api.playWindow() }, "▶ Window") : null,
    dsb.h("button", { type: "button", "aria-keyshortcuts": "z", onclick: () => api.zoom(), disabled: !take.window }, "Zoom"),
    rate,
    clock,
    audio ? null : dsb.h("span", { class: "none" }, take.peaks ? SILENT[dsb.report.audio] || SILENT.none : "the audio of this recording is gone"),
    audio
  );
  api.state = state;
  show();
  return api;
};
