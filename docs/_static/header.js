// Turn the version in the header into a list of all versions. The list is the file versions.js
// beside the folders of the versions, which .ci/publish_docs.py writes. A script is loaded from
// disk, too, where fetch is not allowed; without the file, the header keeps the plain version.
document.addEventListener("DOMContentLoaded", () => {
  // Screen readers and voice control should know the search button by the text that it shows.
  // On phones it shows none, and keeps the name that the theme gives it.
  for (const button of document.querySelectorAll(".search-button-field")) {
    if (!button.closest(".navbar-persistent--mobile")) button.removeAttribute("aria-label");
  }
  for (const arrow of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const link = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
  for (const place of document.querySelectorAll(".version")) {
    const root = place.dataset.root;
    const list = document.createElement("script");
    list.src = `${root}../versions.js`;
    list.onload = () => {
      const folder = new URL(root || ".", location.href).pathname.split("/").at(-2);
      const select = document.createElement("select");
      select.className = "version-list";
      select.setAttribute("aria-label", "Version of the documentation");
      for (const version of window.isthmusVersions) {
        const own = version === decodeURIComponent(folder);
        select.add(new Option(version, version, own, own));
      }
      select.onchange = () => {
        location.href = `${root}../${select.value}/index.html`;
      };
      place.replaceChildren(select);
    };
    document.head.append(list);
  }
});
