// Searches the sections of all pages. All words must occur; headings count more than texts.
const root = document.body.dataset.root;
const input = document.getElementById("search");
const results = document.getElementById("results");

function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const heading = (section.heading + " " + section.page).toLowerCase();
    const count = section.text.toLowerCase().split(word).length - 1;
    if (!heading.includes(word) && count === 0) return 0;
    sum += (heading.includes(word) ? 10 : 0) + Math.min(count, 5);
  }
  return sum;
}

function excerpt(section, words) {
  const at = Math.max(0, section.text.toLowerCase().indexOf(words[0]) - 40);
  return (at > 0 ? "… " : "") + section.text.slice(at, at + 120) + " …";
}

input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : searchIndex
    .map((section) => ({ section, score: score(section, words) }))
    .filter((f) => f.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 15);
  results.replaceChildren(...found.map(({ section }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = root + section.url;
    link.textContent = section.page === section.heading ? section.page : `${section.page}: ${section.heading}`;
    const text = document.createElement("small");
    text.textContent = excerpt(section, words);
    item.append(link, text);
    return item;
  }));
  results.hidden = words.length === 0;
  if (!results.hidden && found.length === 0) results.textContent = "Nothing found.";
});
