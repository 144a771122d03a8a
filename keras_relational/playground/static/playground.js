// The page: tabs, the choice of a trained model, and the page of its kind.

import { Page, el, fetchJson, replace, reporting, say } from "./page.js";
import * as boxworld from "./boxworld.js";
import * as relationsGame from "./relations_game.js";
import * as rules from "./rules.js";
import * as video from "./video.js";

const PAGES = {
  relations_game: ["Relations", relationsGame],
  boxworld: ["BoxWorld", boxworld],
  rules: ["Rules", rules],
  video: ["Video", video],
};

let page = null;

// The names in the address, or none if they are no text.
function wantedNames() {
  try {
    return location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

const open = reporting(async (presets) => {
  page?.leave();
  const [wanted, chosen] = wantedNames();
  const pages = Object.keys(PAGES).filter((page) => page in presets);
  const kind = pages.includes(wanted) ? wanted : pages[0];
  if (!kind) throw new Error("There are no presets to try.");
  const names = presets[kind];
  const preset = names.includes(chosen) ? chosen : names[0];
  replace(document.getElementById("tabs"), ...pages.map((name) => el("a", {
    "aria-current": name === kind && "page",
    href: `#${name}`,
    id: `tab-${name}`,
    onclick: letGo,
  }, PAGES[name][0])));
  const select = document.getElementById("preset");
  select.replaceChildren(
    ...names.map((n) => el("option", { selected: n === preset }, n)),
  );
  select.onchange = () => { location.hash = `${kind}/${encodeURIComponent(select.value)}`; };
  const root = document.getElementById("page");
  root.replaceChildren(el("p", { class: "quiet" }, "Loading the model …"));
  page = new Page(preset);
  const shown = page;
  const described = await shown.describe();
  root.replaceChildren();
  await PAGES[kind][1].show(root, shown, described);
  const found = wanted === kind && (chosen || preset) === preset;
  if (location.hash && !found && shown === page) {
    say(`No page has the address “${location.hash}”. This is ${preset}.`);
  }
});

// After a click of the mouse, keys go to the page. A click by a key has no
// detail, and keeps the focus.
function letGo(event) {
  if (event.detail) event.currentTarget.blur();
}

await reporting(async () => {
  const presets = await fetchJson("presets");
  window.onhashchange = () => open(presets);
  await open(presets);
})();
