package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is a folder of config that has its own file in a release.
type part struct {
	// folder is its folder in config, and name its name in the values of the chart.
	folder, name string
	manifests    []manifest
}

// manifest is a file of a part.
type manifest struct{ name, text string }

// notParts are the folders of config that are not parts.
var notParts = []string{"overlays", "samples"}

// readParts reads the parts: the folders of config with numbered manifests.
func readParts(o options) ([]part, error) {
	entries, err := os.ReadDir(filepath.Join(o.root, "config"))
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, entry := range entries {
		folder := entry.Name()
		if !entry.IsDir() || slices.Contains(notParts, folder) || (o.only != nil && !slices.Contains(o.only, folder)) {
			continue
		}
		p := part{folder: folder, name: folder}
		if folder == "core" {
			p.name = "change"
		}
		files, err := filepath.Glob(filepath.Join(o.root, "config", folder, "[0-9]*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files { // sorted
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			p.manifests = append(p.manifests, manifest{filepath.Base(file), string(raw)})
		}
		if len(p.manifests) > 0 {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 || (o.only != nil && len(parts) != len(o.only)) {
		return nil, fmt.Errorf("-parts is %q: use folders of config with manifests", strings.Join(o.only, ","))
	}
	return parts, nil
}

// reference is an image in a manifest, by the Go package of its program.
var reference = regexp.MustCompile(`ko://(github\.com/breakwater-dev/breakwater/cmd/([a-z0-9/-]+))`)

// imageName returns the name of the image of a program: change-webhook for cmd/change/webhook.
func imageName(program string) string { return strings.ReplaceAll(program, "/", "-") }

// programs lists the programs of the parts, below cmd, once each.
func programs(parts []part) []string {
	var found []string
	for _, p := range parts {
		for _, m := range p.manifests {
			for _, match := range reference.FindAllStringSubmatch(m.text, -1) {
				found = append(found, match[2])
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// resolve replaces the programs in a manifest by their images.
func resolve(text string, images map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		return images[reference.FindStringSubmatch(found)[2]]
	})
}
