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
	if err := os.WriteFile("permission/centre/rest/openapi.json", text.Bytes(), 0o644); err != nil {
		log.Fatal(fmt.Errorf("write OpenAPI document: %w", err))
	}
}
