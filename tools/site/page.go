package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Page is a page of the site.
type Page struct {
	// File is the Markdown file, and URL the page, both relative to their root.
	File, URL string
	Title     string
	// HTML is the content.
	HTML     template.HTML
	Sections []Section
	// Media are the pictures of the page and the recordings that it links, by their names in the repository.
	Media map[string][]byte
}

// Recordings returns the names of the recordings.
func (p *Page) Recordings() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Media)) {
		if isRecording(name) {
			names = append(names, name)
		}
	}
	return names
}

// isRecording reports whether a file is an asciinema recording, which the site plays.
func isRecording(file string) bool { return path.Ext(file) == ".cast" }

// Section is a part of a page that the search finds.
type Section struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
	URL     string `json:"url"`
	Text    string `json:"text"`
}

// Read reads the pages of a repository: the Markdown files in its root and in docs. Links to other
// files go to source. The error has all links without a target.
func Read(root, source string) ([]*Page, error) {
	files, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, err
	}
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".md") {
			files = append(files, file)
		}
		return err
	}); err != nil {
		return nil, err
	}
	var pages []*Page
	urls := map[string]string{}
	for _, file := range files {
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		p := &Page{File: filepath.ToSlash(relative)}
		p.URL = strings.TrimSuffix(p.File, ".md") + ".html"
		if p.File == "README.md" {
			p.URL = "index.html"
		}
		urls[p.File] = p.URL
		pages = append(pages, p)
	}
	var missing []error
	for _, p := range pages {
		if err := p.read(root, source, urls); err != nil {
			missing = append(missing, err)
		}
	}
	return pages, errors.Join(missing...)
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM))

func (p *Page) read(root, source string, urls map[string]string) error {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.File)))
	if err != nil {
		return err
	}
	document := markdown.Parser().Parse(text.NewReader(raw))
	for n := document.FirstChild(); n != nil; {
		next := n.NextSibling()
		if block, ok := n.(*ast.HTMLBlock); ok && bytes.HasPrefix(block.Lines().Value(raw), []byte("<!--")) {
			document.RemoveChild(document, n) // a comment for authors
		}
		n = next
	}
	p.sections(document, raw)
	if err := p.links(document, root, source, urls); err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	var html bytes.Buffer
	if err := markdown.Renderer().Render(&html, raw, document); err != nil {
		return fmt.Errorf("render %s: %w", p.File, err)
	}
	p.HTML = template.HTML(html.String()) //nolint:gosec // our pages; raw HTML in them is omitted
	return nil
}

// sections gives each heading the id that GitHub gives it, and collects the texts for the search.
func (p *Page) sections(document ast.Node, raw []byte) {
	ids := map[string]int{}
	current := Section{URL: p.URL}
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		heading, ok := n.(*ast.Heading)
		if !ok {
			current.Text += plain(n, raw) + " "
			continue
		}
		title := strings.TrimSpace(plain(heading, raw))
		id := anchor(title)
		if ids[id]++; ids[id] > 1 {
			id = fmt.Sprintf("%s-%d", id, ids[id]-1)
		}
		heading.SetAttributeString("id", []byte(id))
		if p.Title == "" {
			p.Title, current.Heading = title, title
			continue
		}
		p.Sections = append(p.Sections, current)
		current = Section{Heading: title, URL: p.URL + "#" + id}
	}
	p.Sections = append(p.Sections, current)
	for i := range p.Sections {
		p.Sections[i].Page = p.Title
		p.Sections[i].Text = strings.Join(strings.Fields(p.Sections[i].Text), " ")
	}
}

// plain returns the text of a node, without markup.
func plain(n ast.Node, raw []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(raw))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(n.Lines().Value(raw))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// links points links to pages of the site, or to source. It reads the media.
func (p *Page) links(document ast.Node, root, source string, urls map[string]string) error {
	var missing []error
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = p.target(string(n.Destination), false, root, source, urls)
		case *ast.Image:
			n.Destination, err = p.target(string(n.Destination), true, root, source, urls)
		}
		if err != nil {
			missing = append(missing, err)
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(append(missing, err)...)
}

// target returns the URL of the target of a link, or of a picture.
func (p *Page) target(link string, picture bool, root, source string, urls map[string]string) ([]byte, error) {
	target, fragment, _ := strings.Cut(link, "#")
	if target == "" || strings.Contains(target, ":") {
		return []byte(link), nil
	}
	file := path.Join(path.Dir(p.File), target)
	local := filepath.Join(root, filepath.FromSlash(file))
	url := source + file
	if page, isPage := urls[file]; isPage {
		url = upTo(p.URL) + page
	} else if picture || isRecording(file) {
		data, err := os.ReadFile(local)
		if err != nil {
			return nil, fmt.Errorf("link to %s: %w", target, err)
		}
		if p.Media == nil {
			p.Media = map[string][]byte{}
		}
		p.Media[file] = data
		url = upTo(p.URL) + file
	} else if _, err := os.Stat(local); err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	if fragment != "" {
		url += "#" + fragment
	}
	return []byte(url), nil
}

// upTo returns the path from a page to the root of the site.
func upTo(url string) string { return strings.Repeat("../", strings.Count(url, "/")) }
