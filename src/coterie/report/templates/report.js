"use strict";
(function () {
  const page = JSON.parse(document.getElementById("page").textContent);
  const select = document.getElementById("colour");
  const coefficient = document.getElementById("coefficient");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const NODES = 2, FOUND = 3; // traces of the network, after two of edges
  const LINES = 25; // rows of the table of nodes that are shown at a time
  const narrow = window.matchMedia("(max-width: 560px)");
  const touch = window.matchMedia("(pointer: coarse)");

  // A copy of a figure with the colours of the present theme in place of CSS variables.
  function themed(value, style) {
    if (typeof value === "string") {
      return value.startsWith("var(") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => themed(item, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, style)]));
    }
    return value;
  }

  function colour(figure) {
    const channel = page.channels[select.value];
    const marker = figure.data[NODES].marker;
    marker.color = channel.values;
    for (const name of ["colorscale", "cmin", "cmax", "showscale"]) marker[name] = channel[name];
    document.getElementById("legend").hidden = channel.showscale;
  }

  // The network at several times, and the lines of places, in the numbers of the coefficient that is chosen.
  function overTime(name, figure) {
    const chosen = page.coefficients[coefficient.value];
    if (name === "lines") {
      figure.data.forEach((line, k) => { line.y = chosen.lines[k]; });
      figure.layout.yaxis.title.text = chosen.name.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
      return;
    }
    const marker = figure.data[1].marker;
    marker.color = chosen.slices[Number(name.slice("slice-".length))];
    for (const end of ["cmin", "cmax"]) marker[end] = chosen[end];
    for (const end of ["low", "high"]) document.getElementById(`scale-${end}`).textContent = chosen[end];
  }
  const isOverTime = (name) => name === "lines" || name.startsWith("slice-");

  function draw(name) {
    const figure = page.figures[name];
    if (name === "network") colour(figure);
    if (isOverTime(name)) overTime(name, figure);
    const { data, layout } = themed(figure, getComputedStyle(document.documentElement));
    if (name === "network" && narrow.matches && !page.nodes.sized) data[NODES].marker.size *= 0.6;
    if (touch.matches) layout.dragmode = false; // a finger scrolls the page
    Plotly.react(name, data, layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: name === "network" ? "hover" : false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
      plotlyServerURL: "",
      doubleClick: "reset",
    });
  }

  // Numbers as plotly packs them: four or eight bytes each.
  function unpacked(packed) {
    if (!packed.bdata) return packed;
    const bytes = Uint8Array.from(atob(packed.bdata), (letter) => letter.charCodeAt(0));
    return new { f4: Float32Array, f8: Float64Array }[packed.dtype](bytes.buffer);
  }

  const nodes = page.nodes;
  const names = nodes.names.map((name) => name.toLowerCase());
  const columns = nodes.values.map(unpacked);
  const all = names.map((_, k) => k);
  const matching = (text) => all.filter((k) => names[k].includes(text.trim().toLowerCase()));
  const byName = new Intl.Collator(undefined, { numeric: true });
  const digits = (value, count) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(count))));
  let order = { asked: false };

  // Rings around the nodes whose names contain what is looked for.
  function find() {
    const text = find.input.value, { x, y } = page.figures.network.data[NODES];
    const at = text.trim() ? matching(text) : [];
    const ring = page.figures.network.data[FOUND], [across, up] = [x, y].map(unpacked);
    ring.x = at.map((k) => across[k]);
    ring.y = at.map((k) => up[k]);
    document.getElementById("found").textContent = text.trim() ? `${at.length.toLocaleString("en")} found` : "";
    draw("network");
  }
  find.input = document.getElementById("find");

  function sorted(rows) {
    const { column, descending } = order, sign = descending ? -1 : 1;
    const values = columns[column];
    if (!values) return rows.sort((a, b) => sign * byName.compare(nodes.names[a], nodes.names[b]));
    const last = (k) => (Number.isNaN(values[k]) ? 1 : 0); // what is not known comes last, either way
    return rows.sort((a, b) => last(a) - last(b) || sign * (values[a] - values[b]) || a - b);
  }

  function listed() {
    const rows = matching(document.getElementById("search").value);
    return order.asked ? sorted(rows) : rows;
  }

  function cell(tag, text, scope) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (scope) made.scope = scope;
    return made;
  }

  function heading(name, column) {
    const made = cell("th", "", "col"), button = cell("button", name);
    const chosen = order.asked && order.column === column;
    button.type = "button";
    button.addEventListener("click", () => {
      order = { column, asked: true, descending: chosen && !order.descending };
      list();
    });
    made.append(button);
    made.setAttribute("aria-sort", chosen ? (order.descending ? "descending" : "ascending") : "none");
    if (column === -1) made.className = "text";
    return made;
  }

  function list() {
    const table = document.getElementById("nodes"), rows = listed(), shown = rows.slice(0, LINES);
    table.tHead.rows[0].replaceChildren(heading(nodes.of, -1), ...nodes.columns.map(heading));
    table.tBodies[0].replaceChildren(...shown.map((k) => {
      const line = document.createElement("tr"), head = cell("th", "", "row"), name = cell("button", nodes.names[k]);
      name.type = "button";
      name.addEventListener("click", () => {
        find.input.value = nodes.names[k];
        find();
        document.getElementById("network").scrollIntoView({ block: "center" });
      });
      head.className = "text";
      head.append(name);
      line.append(head, ...columns.map((values) => cell("td", digits(values[k], 4))));
      return line;
    }));
    const left = rows.length - shown.length;
    document.getElementById("more").textContent = left > 0 ? `… ${left.toLocaleString("en")} more.` : rows.length ? "" : "None.";
  }

  function download() {
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [[nodes.of, ...nodes.columns].map(quoted)];
    for (const k of listed()) lines.push([quoted(nodes.names[k]), ...columns.map((values) => digits(values[k], 7))]);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.map((line) => line.join(",") + "\r\n").join("")], { type: "text/csv" }));
    link.download = `${nodes.of}s.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  find.input.addEventListener("input", find);
  document.getElementById("search").addEventListener("input", list);
  document.getElementById("download").addEventListener("click", download);
  list();

  const drawAll = () => Object.keys(page.figures).forEach(draw);
  select.addEventListener("change", () => draw("network"));
  coefficient?.addEventListener("change", () => Object.keys(page.figures).filter(isOverTime).forEach(draw));
  dark.addEventListener("change", drawAll);
  drawAll();
})();
