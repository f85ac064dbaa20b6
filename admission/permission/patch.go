package permission

import "strings"

// setMapKey returns the operation that sets a key of a map at path.
func setMapKey(path string, have map[string]string, name, value string) []Operation {
	if have == nil {
		return []Operation{{"add", path, map[string]string{name: value}}}
	}
	if current, ok := have[name]; ok && current == value {
		return nil
	}
	// Escaped as in RFC 6901. The operation "add" replaces an existing value.
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	return []Operation{{"add", path + "/" + name, value}}
}
