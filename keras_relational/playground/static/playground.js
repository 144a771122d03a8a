// The page: tabs, the choice of a trained model, and the page of its kind.

import { Page, el, fetchJson, replace, reporting, say } from "./page.js";
import * as boxworld from "./boxworld.js";
import * as relationsGame from "./relations_game.js";
import * as rules from "./rules.js";
import * as video from "./video.js";

// By the page of a kind of preset: the title of its tab, and its module.
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
  const tabs = Object.keys(PAGES).filter((name) => name in presets);
  const tab = tabs.includes(wanted) ? wanted : tabs[0];
  if (!tab) throw new Error("There are no presets to try.");
  const names = presets[tab];
  const preset = names.includes(chosen) ? chosen : names[0];
  replace(document.getElementById("tabs"), ...tabs.map((name) => el("a", {
    "aria-current": name === tab && "page",
    href: `#${name}`,
    id: `tab-${name}`,
    onclick: letGo,
  }, PAGES[name][0])));
  const select = document.getElementById("preset");
  select.replaceChildren(
    ...names.map((n) => el("option", { selected: n === preset }, n)),
  );
  select.onchange = () => { location.hash = `${tab}/${encodeURIComponent(select.value)}`; };
  const root = document.getElementById("page");
  root.replaceChildren(el("p", { class: "quiet" }, "Loading the model …"));
  page = new Page(preset);
  const shown = page;
  const described = await shown.describe();
  root.replaceChildren();
  await PAGES[tab][1].show(root, shown, described);
  const found = wanted === tab && (chosen || preset) === preset;
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
