package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// siteIn makes the site of the repository in a folder.
func siteIn(t *testing.T, out string) (pages []*Page) {
	t.Helper()
	pages, err := Read(root, repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(pages, out); err != nil {
		t.Fatal(err)
	}
	return pages
}

// build makes the site of the repository, and returns its files by URL.
func build(t *testing.T) (pages []*Page, files map[string]string) {
	t.Helper()
	out := t.TempDir()
	pages = siteIn(t, out)
	files = map[string]string{}
	if err := filepath.WalkDir(out, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		relative, relErr := filepath.Rel(out, file)
		files[filepath.ToSlash(relative)] = string(data)
		if err == nil {
			err = relErr
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return pages, files
}

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	id        = regexp.MustCompile(` id="([^"]*)"`)
)

func TestEachReferenceOfTheSiteHasATarget(t *testing.T) {
	_, files := build(t)
	ids := map[string]bool{}
	for url, text := range files {
		for _, m := range id.FindAllStringSubmatch(text, -1) {
			ids[url+"#"+m[1]] = true
		}
	}
	checked := 0
	for url, text := range files {
		if !strings.HasSuffix(url, ".html") {
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			checked++
			file := url
			if target != "" {
				file = path.Join(path.Dir(url), target)
			}
			if _, exists := files[file]; !exists {
				t.Errorf("%s refers to %s, which the site does not have", url, m[1])
			} else if fragment != "" && !ids[file+"#"+fragment] {
				t.Errorf("%s refers to %s, but %s has no such heading", url, m[1], file)
			}
		}
	}
	if checked < 3000 {
		t.Errorf("%d references checked", checked)
	}
}

func TestTheSiteLoadsNothingFromElsewhere(t *testing.T) {
	_, files := build(t)
	loaded := regexp.MustCompile(`(?:src="|<link [^>]*href="|url\(|import )([^">)]*)`)
	for url, text := range files {
		if strings.HasSuffix(url, "search-index.js") {
			continue // texts of pages
		}
		for _, m := range loaded.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "//") {
				t.Errorf("%s loads %s", url, m[1])
			}
		}
		if strings.HasSuffix(url, ".html") && strings.Contains(text, "raw HTML omitted") {
			t.Errorf("%s has HTML of its page, which the site omits: use Markdown, or a code span", url)
		}
	}
}

func TestTheSearchFindsEachSection(t *testing.T) {
	pages, files := build(t)
	raw, ok := strings.CutPrefix(files["search-index.js"], "const searchIndex = ")
	var sections []Section
	if err := json.Unmarshal([]byte(strings.TrimSuffix(raw, ";\n")), &sections); err != nil || !ok {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, s := range sections {
		if s.Page == "" || s.Heading == "" {
			t.Errorf("a section of %s has no heading: %q", s.URL, s.Text)
		}
		file, fragment, _ := strings.Cut(s.URL, "#")
		if fragment != "" && !strings.Contains(files[file], ` id="`+fragment+`"`) {
			t.Errorf("%s does not exist", s.URL)
		}
		texts[s.URL] = s.Text
	}
	for _, p := range pages {
		if _, found := texts[p.URL]; !found {
			t.Errorf("%s is not in the index", p.URL)
		}
	}
	for url, word := range map[string]string{
		"docs/kubectl.html#exit-codes": "timeout", "docs/change/altershield.html#connect": "kubectl breakwater connect", "index.html": "A release should stop when a pod of it fails",
	} {
		if !strings.Contains(texts[url], word) {
			t.Errorf("the text of %s lacks %q: %q", url, word, texts[url])
		}
	}
}

func TestALinkWithoutATargetIsAnError(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"README.md": "# A\n[b](docs/b.md#x) [c](main.go) [d](https://example.com) [e](gone.md)\n", "docs/b.md": "# B\n[a](../README.md) [![f](f.svg)](f.cast)\n", "main.go": "", "docs/f.cast": "{}"} {
		if err := write(folder, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Read(folder, "https://source/")
	for text, want := range map[string]bool{"README.md: link to gone.md": true, "docs/b.md: link to f.svg": true, "main.go": false} {
		if err == nil || strings.Contains(err.Error(), text) != want {
			t.Errorf("error is %v", err)
		}
	}
	for _, name := range []string{"gone.md", "docs/f.svg"} {
		if err := write(folder, name, []byte("# E\n")); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := Read(folder, "https://source/")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range pages {
		for _, m := range reference.FindAllStringSubmatch(string(p.HTML), -1) {
			got[p.File] += m[1] + " "
		}
	}
	if got["README.md"] != "docs/b.html#x https://source/main.go https://example.com gone.html " || got["docs/b.md"] != "../index.html ../docs/f.cast ../docs/f.svg " {
		t.Errorf("links are %q", got)
	}
}

func TestAnAnchorIsThatOfGitHub(t *testing.T) {
	for heading, want := range map[string]string{
		"Exit codes": "exit-codes", "Sets: a, b/c": "sets-a-bc", "`no-verdict` and more": "no-verdict-and-more", "安装 一": "安装-一",
	} {
		if got := anchor(strings.ReplaceAll(heading, "`", "")); got != want {
			t.Errorf("%s: got %s, want %s", heading, got, want)
		}
	}
}

func TestASiteReplacesNoOtherFolder(t *testing.T) {
	out := t.TempDir()
	for range 2 { // into an empty folder, and over a site
		if err := Write(nil, out); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	file := filepath.Join(other, "main.go")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(nil, other); err == nil {
		t.Error("no error for a folder that is no site")
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
