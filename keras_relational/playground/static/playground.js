// The page: tabs, the choice of a trained model, and the page of its kind.

import { describe, el, fetchJson, reporting } from "./page.js";
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

let leave = () => {};

const open = reporting(async (presets) => {
  const place = decodeURIComponent(location.hash.slice(1));
  const [wanted, chosen] = place.split("/");
  const pages = Object.keys(PAGES).filter((page) => page in presets);
  const page = pages.includes(wanted) ? wanted : pages[0];
  if (!page) throw new Error("There are no presets to try.");
  const names = presets[page];
  const preset = names.includes(chosen) ? chosen : names[0];
  document.getElementById("tabs").replaceChildren(
    ...pages.map((name) => {
      const current = name === page && { "aria-current": "page" };
      return el("a", { href: `#${name}`, ...current }, PAGES[name][0]);
    }),
  );
  const select = document.getElementById("preset");
  select.replaceChildren(
    ...names.map((n) => el("option", { selected: n === preset }, n)),
  );
  select.onchange = () => { location.hash = `${page}/${encodeURIComponent(select.value)}`; };
  leave();
  leave = () => {};
  const root = document.getElementById("page");
  root.replaceChildren(el("p", { class: "quiet" }, "Loading the model …"));
  const described = await describe(preset);
  root.replaceChildren();
  leave = (await PAGES[page][1].show(root, preset, described)) ?? leave;
});

const presets = await fetchJson("presets");
window.onhashchange = () => open(presets);
await open(presets);
