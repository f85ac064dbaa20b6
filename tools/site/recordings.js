// Replaces each picture that links a recording with a player of the recording. The player first shows
// a moment of the recording that says what it is about.
for (const link of document.querySelectorAll('a[href$=".cast"]:has(img)')) {
  const name = link.getAttribute("href").slice(document.body.dataset.root.length);
  const box = document.createElement("div");
  link.replaceWith(box);
  AsciinemaPlayer.create({ data: recordings[name] }, box, { poster: "npt:40", preload: true, fit: "width", terminalFontSize: "small" });
}
