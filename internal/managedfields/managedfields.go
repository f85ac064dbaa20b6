// Package managedfields reads metadata.managedFields: who has written a field of an object, and when.
package managedfields

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastWrite returns the latest possible time when the field of the path got its value: the last
// write of its managers. A manager may have written other fields since, so the value may be older
// than that, but not newer. It returns false if the time is unknown.
func LastWrite(entries []metav1.ManagedFieldsEntry, path ...string) (time.Time, bool) {
	var last time.Time
	for _, entry := range entries {
		if !Has(entry.FieldsV1, path...) {
			continue
		}
		if entry.Time == nil {
			return time.Time{}, false
		}
		if entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last, !last.IsZero()
}

// Has reports whether the set has the field of the path.
func Has(set *metav1.FieldsV1, path ...string) bool {
	if set == nil {
		return false
	}
	raw := json.RawMessage(set.Raw)
	for _, name := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(raw, &level) != nil {
			return false
		}
		var ok bool
		if raw, ok = level["f:"+name]; !ok {
			return false
		}
	}
	return true
}
