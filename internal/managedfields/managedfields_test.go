package managedfields_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/managedfields"
)

func TestTheLastWriteOfAFieldIsThatOfItsManagers(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0)} }
	entry := func(time *metav1.Time, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: time, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	const paused, replicas = `{"f:spec":{"f:paused":{}}}`, `{"f:spec":{"f:replicas":{}}}`
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    int64 // 0 means unknown
	}{
		"no manager":                      {nil, 0},
		"a manager of another field":      {[]metav1.ManagedFieldsEntry{entry(at(9), replicas)}, 0},
		"one manager":                     {[]metav1.ManagedFieldsEntry{entry(at(9), paused)}, 9},
		"two managers":                    {[]metav1.ManagedFieldsEntry{entry(at(9), paused), entry(at(7), paused), entry(at(10), replicas)}, 9},
		"one of two without a time":       {[]metav1.ManagedFieldsEntry{entry(at(9), paused), entry(nil, paused)}, 0},
		"another manager without a time":  {[]metav1.ManagedFieldsEntry{entry(at(9), paused), entry(nil, replicas)}, 9},
		"an entry without fields":         {[]metav1.ManagedFieldsEntry{{Time: at(9)}}, 0},
		"an entry with malformed fields":  {[]metav1.ManagedFieldsEntry{entry(at(9), `{"f:spec":[]}`)}, 0},
		"an entry with the parent only":   {[]metav1.ManagedFieldsEntry{entry(at(9), `{"f:spec":{}}`)}, 0},
		"an entry with a field in a list": {[]metav1.ManagedFieldsEntry{entry(at(9), `{"f:spec":{"k:{\"paused\":1}":{}}}`)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := managedfields.LastWrite(tc.entries, "spec", "paused")
			if known != (tc.want != 0) || known && got.Unix() != tc.want {
				t.Errorf("got %s, known %t, want %d", got, known, tc.want)
			}
		})
	}
}
