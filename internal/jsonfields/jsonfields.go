// Package jsonfields reads the JSON fields of Go types, and the names of fields that a decoder does not know.
package jsonfields

import (
	"reflect"
	"strings"
	"sync"
)

// fieldsOf has the results of Of: each workload that is read asks for those of a pod template.
var fieldsOf sync.Map

// Of returns the types of the JSON fields of a struct, with those of embedded structs;
// nil for other types. The result is shared and must not be changed.
func Of(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if of, ok := fieldsOf.Load(t); ok {
		return of.(map[string]reflect.Type)
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			all[name] = f.Type
		}
	}
	fieldsOf.Store(t, all)
	return all
}

// Unknown returns the field that a decoder did not know (json.Decoder.DisallowUnknownFields); false for another error.
func Unknown(err error) (string, bool) {
	quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	return strings.Trim(quoted, `"`), ok
}
