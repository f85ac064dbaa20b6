package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

type object = map[string]any

// required lists the fields that a request must have and a response has.
var required = map[string][]string{
	"Provider": {"name", "owner", "type", "endpoint"}, "Permission": {"name", "owner", "provider"}, "PermissionSet": {"name", "owner", "permissions"},
	"ApplicationRequest":    {"cluster", "namespace", "pod", "podUID", "podIPs", "set"},
	"Application":           {"id", "cluster", "namespace", "pod", "podUID", "podIPs", "set", "state", "attempt", "permissions", "created", "updated", "version"},
	"ApplicationPermission": {"permission", "provider", "owner", "state", "calls", "since"}, "ApplicationList": {"items"}, "RevokeResult": {"items"}, "OtherName": {"cluster", "held"}, "History": {"items"},
	"HistoryEntry": {"time", "to", "attempt"}, "RevokeRequest": {"cluster", "podUID"}, "PodReport": {"observed", "pods"}, "LivePod": {"uid"},
	"PodReportResult": {"checked", "revoked"}, "Error": {"reason", "message"}, "AuditEntry": {"id", "time", "who", "verb", "kind", "name"},
	"LeakedGrant": {"ip", "application", "namespace", "pod", "permission", "owner", "since"},
}

// readOnly lists the fields that the centre sets.
var readOnly = map[string]bool{"Meta.Version": true, "Meta.Created": true, "Meta.Updated": true, "PermissionSet.NodeScoped": true}

// enums lists the values of string types.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[api.State]():        {"Requested", "Applying", "Granted", "Denied", "Failed", "Revoking", "Revoked", "Leaked"},
	reflect.TypeFor[api.ProviderType](): {"http", "mysql", "cmdb"},
}

// schemas collects schemas by type name.
type schemas struct {
	comments comments
	all      object
}

func newSchemas(c comments) *schemas { return &schemas{comments: c, all: object{}} }

// of returns the schema of a type; a reference for a struct.
func (s *schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case enums[t] != nil:
		return object{"type": "string", "enum": enums[t]}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		// A nil slice is encoded as null.
		return object{"type": "array", "nullable": true, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Interface:
		return object{"nullable": true}
	case reflect.Struct:
		return s.named(t)
	default:
		panic("no schema for " + t.String())
	}
}

// named adds the schema of a struct and returns a reference to it.
func (s *schemas) named(t reflect.Type) object {
	name := t.Name()
	if i := strings.IndexByte(name, '['); i >= 0 { // List[….Provider]
		name = strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "]") + name[:i]
	}
	if _, ok := s.all[name]; !ok {
		properties := object{}
		schema := object{"type": "object", "description": s.comments[strings.TrimSuffix(t.Name(), "]")], "additionalProperties": false, "properties": properties}
		s.all[name] = schema
		s.fields(t, properties)
		if r := required[name]; r != nil {
			schema["required"] = r
		}
		if schema["description"] == "" {
			delete(schema, "description")
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) fields(t reflect.Type, properties object) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.fields(f.Type, properties)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema := s.of(f.Type)
		key := t.Name() + "." + f.Name
		described := object{}
		if text := s.comments[key]; text != "" {
			described["description"] = text
		}
		if readOnly[key] {
			described["readOnly"] = true
		}
		if schema["$ref"] != nil && len(described) > 0 {
			described["allOf"] = []any{schema}
			schema = described
		} else {
			for k, v := range described {
				schema[k] = v
			}
		}
		properties[name] = schema
	}
}
