package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/breakwater-dev/breakwater/tools/release/chart"
)

// writeChart writes the Helm chart of the parts.
func writeChart(o options, parts []part, images map[string]string) error {
	described := chart.Options{Version: o.version, Registry: o.registry}
	for _, p := range parts {
		converted := chart.Part{Name: p.name}
		for _, m := range p.manifests {
			converted.Manifests = append(converted.Manifests, chart.Manifest{Name: m.name, Text: resolve(m.text, images)})
		}
		described.Parts = append(described.Parts, converted)
	}
	made, err := chart.Files(described)
	if err != nil {
		return err
	}
	var files []file
	for _, f := range made {
		files = append(files, file{f.Name, 0o644, []byte(f.Content)})
	}
	packed, err := archive(files, o.time)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "breakwater-"+strings.TrimPrefix(o.version, "v")+".tgz"), packed, 0o644)
}
