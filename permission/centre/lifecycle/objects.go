package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// objects reads each registered object at most once in a transaction.
type objects struct {
	view store.View
	read map[objectName]any
}

type objectName struct {
	kind store.Kind
	name string
}

func newObjects(v store.View) *objects { return &objects{v, map[objectName]any{}} }

// object reads an object. Its maps and slices are shared, so they must not be changed.
func object[T any](o *objects, kind store.Kind, name string) (value T, err error) {
	key := objectName{kind, name}
	if known, ok := o.read[key].(T); ok {
		return known, nil
	}
	stored, err := o.view.Object(kind, name)
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(stored.Body, &value); err != nil {
		return value, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	o.read[key] = value
	return value, nil
}

// requiredObject is object for a request, which names an object that must exist.
func requiredObject[T any](o *objects, kind store.Kind, name string) (T, error) {
	value, err := object[T](o, kind, name)
	if errors.Is(err, store.ErrNotFound) {
		return value, NotRegistered{fmt.Sprintf("%s %s does not exist; register it first", kind, name)}
	}
	return value, err
}
