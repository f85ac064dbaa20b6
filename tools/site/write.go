package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed page.html style.css search.js recordings.js player
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "page.html"))

// folders are the groups of the navigation, in order. Pages of other folders follow.
var folders = []string{".", "docs", "docs/change", "docs/judge", "docs/protection", "docs/permission", "docs/operate", "docs/runbooks"}

// group is a group of the navigation.
type group struct {
	Name  string
	Pages []*Page
}

// view is what a page shows.
type view struct {
	*Page
	// Root is the path to the root of the site.
	Root   string
	Groups []group
}

// index is the file with the sections for the search.
const index = "search-index.js"

// Write writes the site to a folder, which it replaces: one that does not exist, is empty or has a site.
func Write(pages []*Page, out string) error {
	files, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(files) > 0 && !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == index }) {
		return fmt.Errorf("folder %s is not empty and has no site: choose another one with -out", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	// A run that is interrupted leaves a folder that the next one replaces.
	if err := write(out, index, nil); err != nil {
		return err
	}
	groups := groupsOf(pages)
	var sections []Section
	for _, p := range pages {
		var html bytes.Buffer
		if err := layout.Execute(&html, view{p, upTo(p.URL), groups}); err != nil {
			return err
		}
		if err := write(out, p.URL, html.Bytes()); err != nil {
			return err
		}
		if err := p.writeMedia(out); err != nil {
			return err
		}
		sections = append(sections, p.Sections...)
	}
	// A script and no JSON: a browser loads it from a folder, too.
	list, err := json.Marshal(sections)
	if err != nil {
		return err
	}
	if err := write(out, index, []byte("const searchIndex = "+string(list)+";\n")); err != nil {
		return err
	}
	for _, name := range []string{"style.css", "search.js", "recordings.js", "player/asciinema-player.css", "player/asciinema-player.min.js"} {
		data, err := assets.ReadFile(name)
		if err != nil {
			return err
		}
		if err := write(out, name, data); err != nil {
			return err
		}
	}
	return nil
}

// writeMedia writes the pictures and recordings of a page. A browser that reads the site from a folder
// loads only scripts, so a recording is written as a script, too.
func (p *Page) writeMedia(out string) error {
	for name, data := range p.Media {
		if err := write(out, name, data); err != nil {
			return err
		}
		if !isRecording(name) {
			continue
		}
		entry, err := json.Marshal(map[string]string{name: string(data)})
		if err != nil {
			return err
		}
		if err := write(out, name+".js", []byte("Object.assign(window.recordings ??= {}, "+string(entry)+");\n")); err != nil {
			return err
		}
	}
	return nil
}

func write(out, url string, data []byte) error {
	file := filepath.Join(out, filepath.FromSlash(url))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// groupsOf groups pages by folder.
func groupsOf(pages []*Page) []group {
	byFolder := map[string][]*Page{}
	order := slices.Clone(folders)
	for _, p := range pages {
		folder := path.Dir(p.File)
		if !slices.Contains(order, folder) {
			order = append(order, folder)
		}
		byFolder[folder] = append(byFolder[folder], p)
	}
	var groups []group
	for _, folder := range order {
		list := byFolder[folder]
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(a, b *Page) int {
			if first := "index.html"; a.URL == first || b.URL == first {
				return map[bool]int{true: -1, false: 1}[a.URL == first]
			}
			return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title))
		})
		name := map[string]string{".": "Project", "docs": "Documentation"}[folder]
		if name == "" {
			name = strings.ToUpper(path.Base(folder)[:1]) + path.Base(folder)[1:]
		}
		groups = append(groups, group{name, list})
	}
	return groups
}
