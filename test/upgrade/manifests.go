package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Object identifies an object of a manifest, as arguments of kubectl do.
type Object struct{ Resource, Namespace, Name string }

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Resource + "/" + o.Name
	}
	return o.Namespace + "/" + o.Resource + "/" + o.Name
}

// Installation has the objects and the webhooks of the manifests of a version.
type Installation struct {
	Objects  map[Object]bool
	Webhooks map[string]bool
}

// parts are the folders of config that `make apply` installs.
func parts() []string { return []string{"core", "judge", "protection", "permission"} }

// ReadInstallation reads the manifests in a folder config.
func ReadInstallation(config fs.FS) (Installation, error) {
	out := Installation{Objects: map[Object]bool{}, Webhooks: map[string]bool{}}
	for _, part := range parts() {
		files, err := fs.Glob(config, part+"/*.yaml")
		if err != nil {
			return out, err
		}
		for _, file := range files {
			raw, err := fs.ReadFile(config, file)
			if err == nil {
				err = out.add(raw)
			}
			if err != nil {
				return out, fmt.Errorf("read %s: %w", filepath.Base(file), err)
			}
		}
	}
	if len(out.Objects) == 0 {
		return out, errors.New("there are no manifests")
	}
	return out, nil
}

// add adds the objects of a manifest.
func (i *Installation) add(manifest []byte) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		var d struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Webhooks         []struct{ Name string }
		}
		if err := documents.Decode(&d); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if d.Kind == "" {
			continue // only comments
		}
		resource := d.Kind
		if group, version, grouped := strings.Cut(d.APIVersion, "/"); grouped {
			resource += "." + version + "." + group
		}
		i.Objects[Object{resource, d.Metadata.Namespace, d.Metadata.Name}] = true
		for _, w := range d.Webhooks {
			i.Webhooks[w.Name] = true
		}
	}
}

// Without returns the objects that another version does not have.
func (i *Installation) Without(other Installation) []Object {
	lacking := maps.Clone(i.Objects)
	maps.DeleteFunc(lacking, func(o Object, _ bool) bool { return other.Objects[o] })
	return slices.SortedFunc(maps.Keys(lacking), func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
}
