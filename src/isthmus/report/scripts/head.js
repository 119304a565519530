"use strict";
// Sections below the drawing are laid out after it, and soon after the page has loaded in any case.
(() => {
  const { classList } = document.documentElement;
  classList.add("js");
  addEventListener("load", () => setTimeout(() => classList.add("ready"), 3_000));
})();
