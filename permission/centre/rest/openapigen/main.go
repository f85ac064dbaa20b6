// Command generate writes the OpenAPI document of the permission centre: the
// operations of operations.go, with the types of permission/api and their
// comments as schemas. `make generate` runs it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
)

// files are the one that is served, and the one that is read.
var files = []string{"permission/centre/rest/openapi.json", "docs/permission/openapi.json"}

func main() {
	comments, err := readComments("permission/api")
	if err != nil {
		log.Fatal(err)
	}
	document := build(newSchemas(comments))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		log.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			log.Fatal(fmt.Errorf("write the document: %w", err))
		}
	}
}
