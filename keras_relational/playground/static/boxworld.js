import { el } from "./page.js";

export const title = "boxworld";
export const teaser = "";

export function thumbnail() {}

export function show(root) {
  root.append(el("h2", {}, title));
}
