"use strict";
(function () {
  const page = JSON.parse(document.getElementById("page").textContent);
  const select = document.getElementById("colour");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
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
    const marker = figure.data[figure.data.length - 1].marker;
    marker.color = channel.values;
    for (const name of ["colorscale", "cmin", "cmax", "showscale"]) marker[name] = channel[name];
    document.getElementById("legend").hidden = channel.showscale;
  }

  function draw(name) {
    const figure = page.figures[name];
    if (name === "network") colour(figure);
    const { data, layout } = themed(figure, getComputedStyle(document.documentElement));
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

  const drawAll = () => Object.keys(page.figures).forEach(draw);
  select.addEventListener("change", () => draw("network"));
  dark.addEventListener("change", drawAll);
  drawAll();
})();
