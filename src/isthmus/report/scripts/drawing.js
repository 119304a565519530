"use strict";
// The drawing waits in the page as text: it starts when the rest can be read, searched and clicked.
Report.network = (() => {
  const parts = [...document.querySelectorAll("script.drawing")]; // libraries first
  const waiting = document.querySelector("#waiting");
  const network = { cy: null, draw() {}, fit() {}, zoom() {}, resize() {}, restyle() {}, start };

  function run() {
    const script = document.createElement("script");
    const part = parts.shift();
    script.textContent = part.textContent;
    part.replaceWith(script); // runs now
    if (!parts.length) finish();
  }

  function finish() {
    network.draw();
    if (network.cy) waiting.remove();
    else waiting.textContent = "This browser cannot draw the network. The table of edges has the same content.";
    requestAnimationFrame(() => setTimeout(reveal));
  }

  // One section per frame: the next waits until this one is laid out.
  function reveal() {
    const section = document.querySelector("#explorer ~ section:not(.ready)");
    section?.classList.add("ready");
    if (section) requestAnimationFrame(() => setTimeout(reveal));
  }

  // One script per task, so that the page answers in between.
  function step() {
    if (parts.length) run();
    if (parts.length) setTimeout(step);
  }

  // All at once, for those who cannot wait.
  function start() {
    while (parts.length) run();
  }

  addEventListener("load", () => requestAnimationFrame(() => setTimeout(step)));
  addEventListener("beforeprint", start);
  return network;
})();
