// The frame of the pages: tabs, the choice of a trained model, the start page.

import { Page, el, isStill, letGo, replace, reporting, say } from "./page.js";
import { fetchJson, network } from "./networks.js";
import * as analogies from "./analogies.js";
import * as boxworld from "./boxworld.js";
import * as relations from "./relations.js";
import * as rules from "./rules.js";
import * as setGame from "./set_game.js";
import * as sorting from "./sorting.js";
import * as video from "./video.js";

// By the page that a preset names. A module has `title`, the text of its tab;
// `teaser`, a sentence; `thumbnail(context, seconds)`, which draws a picture of
// 240 by 150 for the start page; `show(root, page, described)`; and, if
// it has several presets, `first`, the name of the one to begin with.
const PAGES = {
  relations, boxworld, set_game: setGame, rules, sorting, video, analogies,
};
const THUMBNAIL = { width: 240, height: 150 };

let shown = null;

// The names in the address, or none if they are no text.
function wantedNames() {
  try {
    return location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return ["?"];
  }
}

const open = reporting(async ({ runner, home, presets }) => {
  shown?.leave();
  const [tab, chosen] = wantedNames();
  const tabs = Object.keys(PAGES).filter(
    (name) => presets.some(({ page }) => page === name),
  );
  if (!tabs.length) throw new Error("There are no presets to try.");
  const ofTab = presets.filter(({ page }) => page === tab);
  const names = ofTab.map(({ name }) => name);
  const { first } = PAGES[tab] ?? {};
  const preset = [chosen, first].find((name) => names.includes(name)) ?? names[0];
  replace(document.getElementById("tabs"), ...["", ...tabs].map((name) => el("a", {
    "aria-current": name === (preset ? tab : "") && "page",
    href: `#${name}`,
    id: `tab-${name || "start"}`,
    onclick: letGo,
  }, PAGES[name]?.title ?? "Start")));
  const chooser = document.getElementById("chooser");
  chooser.hidden = names.length < 2;
  const select = document.getElementById("preset");
  select.replaceChildren(
    ...names.map((n) => el("option", { selected: n === preset }, n)),
  );
  select.onchange = () => { location.hash = `${tab}/${encodeURIComponent(select.value)}`; };
  const about = document.getElementById("about");
  about.replaceChildren();
  if (preset) {
    const { headline } = ofTab.find(({ name }) => name === preset);
    about.append(home ? el("a", { href: `${home}presets/#${preset}` }, preset)
      : preset, `: ${headline}`);
  }
  const root = document.getElementById("page");
  const title = PAGES[preset ? tab : ""]?.title;
  document.title = `${title ? `${title} – ` : ""}keras_relational: playground`;
  if (preset) {
    const loading = network(runner, preset);
    const page = new Page(async (inputs) => (await loading)(inputs));
    shown = page;
    const described = await load(root, page, preset, loading);
    if (!described) return;
    await PAGES[tab].show(root, page, described);
    if (shown !== page) return;
  } else {
    shown = new Page(null);
    showStart(root, shown, tabs);
  }
  if (tab && (chosen ?? preset) !== preset) {
    say(`No page has the address “${location.hash}”. This is ${preset}.`);
  } else if (tab && !preset) {
    say(`No page has the address “${location.hash}”. This is the start.`);
  }
});

// What the page of a preset needs beside the network, once both are there, or
// null if another page is shown by then.
async function load(root, page, preset, loading) {
  root.replaceChildren(el("p", { class: "quiet" }, "Loading the model …"));
  try {
    const [described] = await Promise.all([
      fetchJson(`presets/${encodeURIComponent(preset)}.json`), loading,
    ]);
    if (shown !== page) return null;
    root.replaceChildren();
    return described;
  } catch (error) {
    if (shown !== page) return null;
    root.replaceChildren(
      el("button", { id: "reload", onclick: () => location.reload() }, "Try again"),
    );
    throw new Error(`${preset} did not load. ${error.message}`);
  }
}

// Tiles of all pages, each with a picture that moves.
function showStart(root, page, tabs) {
  const started = performance.now();
  const pictures = tabs.map((name) => {
    const canvas = el("canvas", { ...THUMBNAIL, "aria-hidden": "true" });
    return [name, canvas, canvas.getContext("2d")];
  });
  function draw() {
    const seconds = isStill.matches ? 3 : (performance.now() - started) / 1000;
    for (const [name, , context] of pictures) {
      context.save();
      context.clearRect(0, 0, THUMBNAIL.width, THUMBNAIL.height);
      PAGES[name].thumbnail(context, seconds);
      context.restore();
    }
  }
  root.replaceChildren(
    el("h2", {}, "Try the trained models"),
    el("p", {}, "Each page runs a model that comes with the library. Nothing is "
      + "trained, and nothing leaves this machine."),
    el("div", { class: "tiles" }, ...pictures.map(([name, canvas]) =>
      el("a", { class: "tile", href: `#${name}` }, canvas,
        el("b", {}, PAGES[name].title), el("span", {}, PAGES[name].teaser)))),
  );
  draw();
  if (!isStill.matches) page.repeat(draw, 50);
}

await reporting(async () => {
  const listed = await fetchJson("presets.json");
  const home = document.getElementById("home");
  if (listed.home) home.href = listed.home;
  window.onhashchange = () => open(listed);
  await open(listed);
})();
