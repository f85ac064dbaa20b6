package permission

import (
	"strconv"
	"strings"
)

// key sets one key of a map of the object.
func setMapKey(path string, have map[string]string, name, value string) []Operation {
	if have == nil {
		return []Operation{{"add", path, map[string]string{name: value}}}
	}
	if current, ok := have[name]; ok && current == value {
		return nil
	}
	// As RFC 6901 wants it. Adding replaces what there is.
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	return []Operation{{"add", path + "/" + name, value}}
}

func itoa(n int) string { return strconv.Itoa(n) }
