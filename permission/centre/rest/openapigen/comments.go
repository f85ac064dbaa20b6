package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// comments maps a type, or Type.Field, to its doc comment.
type comments map[string]string

// readComments reads the comments of a package.
func readComments(dir string) (comments, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := comments{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			declaration, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range declaration.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					found.add(spec, declaration.Doc)
				}
			}
		}
	}
	return found, nil
}

func (c comments) add(spec *ast.TypeSpec, doc *ast.CommentGroup) {
	c[spec.Name.Name] = text.OneLine(doc.Text())
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			c[spec.Name.Name+"."+name.Name] = text.OneLine(field.Doc.Text())
		}
	}
}
