// Command generate writes the EventType manifests of package events to
// config/core/310-eventtypes.yaml. It is run in the repository's root, by
// hack/generate.sh.
package main

import (
	"log"
	"os"
	"path/filepath"
)

func main() {
	raw, err := manifests()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("config", "core", "310-eventtypes.yaml"), raw, 0o644); err != nil {
		log.Fatal(err)
	}
}
