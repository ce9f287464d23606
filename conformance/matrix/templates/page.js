"use strict";
(() => {
  const form = document.getElementById("filter");
  const fields = ["text", "subject", "verdict"];
  const grid = document.getElementById("grid");
  const suites = [...grid.tBodies];
  const findings = [...document.querySelectorAll("#findings tbody tr")];
  const only = document.head.appendChild(document.createElement("style"));
  const asked = { all: null, differ: ["new", "known"], new: ["new"], known: ["known"], dies: ["dies", "hangs", "memory"], numbers: ["numbers"], skip: ["skip"] };
  const texts = new Map();

  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const has = (element, classes) => classes.some((name) => element.classList.contains(name));

  // The text may stand in a row's ids, in its suite's name, or in what is told of a divergence that one of its cells leads to.
  const holds = (row, suite, state) => {
    if (!state.text || textOf(row).includes(state.text) || suite.includes(state.text)) return true;
    return [...row.querySelectorAll("a")].some((link) => state.told.has(link.getAttribute("href")));
  };
  // A row is shown where it holds the text and one cell in view is of the wanted kind.
  const fits = (row, suite, state) => {
    if (!holds(row, suite, state)) return false;
    const classes = asked[state.verdict];
    const cells = state.subject === "" ? [...row.cells].slice(1) : [row.cells[Number(state.subject) + 1]];
    return !classes || cells.some((cell) => has(cell, classes));
  };
  const findingFits = (row, state) => {
    if (state.text && !textOf(row).includes(state.text)) return false;
    if (state.subject !== "" && !row.dataset.who.split(" ").includes(state.subject)) return false;
    const classes = asked[state.verdict];
    return !classes || has(row, classes);
  };

  // The column that was chosen, and the authorities beside it.
  const showColumns = (subject) => {
    const authorities = Number(grid.dataset.authorities);
    const columns = Number(grid.dataset.columns);
    const away = [];
    for (let place = authorities; place < columns; place += 1) {
      if (subject !== "" && place !== Number(subject)) away.push("#grid tr > :nth-child(" + (place + 2) + ")");
    }
    only.textContent = away.length ? away.join(",") + "{display:none}" : "";
  };

  const apply = (state) => {
    let shown = 0;
    let all = 0;
    const telling = state.text ? findings.filter((row) => textOf(row).includes(state.text)) : [];
    state.told = new Set(telling.map((row) => row.querySelector("a").getAttribute("href")));
    const filtered = state.text !== "" || state.verdict !== "all";
    for (const suite of suites) {
      const [head, ...rows] = suite.rows;
      const name = textOf(head);
      let left = 0;
      for (const row of rows) {
        const fit = fits(row, name, state);
        row.hidden = !fit;
        left += fit ? Number(row.dataset.cases) : 0;
        all += Number(row.dataset.cases);
      }
      suite.hidden = left === 0;
      shown += left;
      toggle(suite, filtered);
    }
    for (const row of findings) row.hidden = !findingFits(row, state);
    const told = findings.filter((row) => !row.hidden).length;
    showColumns(state.subject);
    document.getElementById("shown").textContent = shown + " of " + all + " cases, " + told + " of " + findings.length + " divergences";
  };
  const toggle = (suite, open) => {
    suite.classList.toggle("closed", !open);
    suite.rows[0].querySelector("button").setAttribute("aria-expanded", String(open));
  };

  const read = () => {
    const state = {};
    for (const name of fields) state[name] = form.elements[name].value;
    state.text = state.text.trim().toLowerCase();
    return state;
  };
  // Subjects are named in the address, so that it stays right when a column is added.
  const fromHash = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of fields) {
      const field = form.elements[name];
      const value = given.get(name) || "";
      if (name === "text") { field.value = value; continue; }
      const option = [...field.options].find((one) => (one.dataset.name || one.value) === value);
      field.value = option ? option.value : field.options[0].value;
    }
    apply(read());
  };
  const toHash = () => {
    const state = read();
    const kept = new URLSearchParams();
    if (state.text) kept.set("text", state.text);
    if (state.subject !== "") kept.set("subject", form.elements.subject.selectedOptions[0].dataset.name);
    if (state.verdict !== "all") kept.set("verdict", state.verdict);
    history.replaceState(null, "", kept.toString() ? "#" + kept : location.pathname + location.search);
    apply(state);
  };

  // A title says what its cell means; whose cell it is, is added when somebody looks at it.
  const headings = [...grid.tHead.rows[0].cells].map((one) => one.innerText.trim().split("\n")[0]);
  const nameCell = (event) => {
    const cell = event.target.closest("td");
    if (!cell || cell.dataset.named) return;
    cell.dataset.named = "1";
    cell.title = headings[cell.cellIndex] + ": " + cell.title;
  };

  form.hidden = false;
  grid.addEventListener("pointerover", nameCell);
  grid.addEventListener("focusin", nameCell);
  form.addEventListener("input", toHash);
  form.addEventListener("submit", (event) => event.preventDefault());
  grid.addEventListener("click", (event) => {
    const button = event.target.closest(".suite button");
    if (button) toggle(button.closest("tbody"), button.getAttribute("aria-expanded") !== "true");
  });
  document.getElementById("open").addEventListener("click", () => suites.forEach((suite) => toggle(suite, true)));
  document.getElementById("close").addEventListener("click", () => suites.forEach((suite) => toggle(suite, false)));
  window.addEventListener("hashchange", () => { if (!location.hash || location.hash.includes("=")) fromHash(); });
  fromHash();
})();
