// Command eventtypegen writes the EventType manifests of package events to
// config/core/310-eventtypes.yaml. hack/generate.sh runs it in the root of the
// repository.
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
