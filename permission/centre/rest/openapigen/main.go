// Command openapigen writes the OpenAPI document of the permission centre: the
// operations of operations.go, and the types and comments of permission/api as
// schemas. `make generate` runs it from the root of the repository.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
)

// files are the document that the centre serves and its copy for the docs.
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
			log.Fatal(fmt.Errorf("write OpenAPI document: %w", err))
		}
	}
}
