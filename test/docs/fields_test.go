package docs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// simplePath is the beginning of a JSON path that has names only.
var simplePath = regexp.MustCompile(`^\{((?:\.\w+)+)`)

func (c *catalogue) jsonPath(template string, kinds []string) error {
	if err := jsonpath.New("").Parse(template); err != nil {
		return fmt.Errorf("parse %s: %w", template, err)
	}
	m := simplePath.FindStringSubmatch(template)
	for _, kind := range kinds {
		if m == nil {
			break
		}
		if err := hasField(c.kinds[kind], strings.Split(m[1], ".")[1:]); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// patch checks the syntax of a patch, and the fields if the kind is ours.
func (c *catalogue) patch(text string, kinds []string) error {
	var patch map[string]any
	// kubectl accepts YAML as well.
	parse := yaml.Unmarshal
	if strings.HasPrefix(text, "{") {
		parse = func(raw []byte, into any, _ ...yaml.JSONOpt) error { return json.Unmarshal(raw, into) }
	}
	if err := parse([]byte(text), &patch); err != nil {
		return fmt.Errorf("parse patch: %w", err)
	}
	for _, kind := range kinds {
		if err := hasFields(c.kinds[kind], patch); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// hasField reports the first name of a path that a schema does not have.
func hasField(schema *apiextensionsv1.JSONSchemaProps, path []string) error {
	for _, name := range path {
		if schema == nil || name == "metadata" || len(schema.Properties) == 0 {
			return nil
		}
		next, ok := schema.Properties[name]
		if !ok {
			return fmt.Errorf("there is no field %q", name)
		}
		schema = &next
	}
	return nil
}

// hasFields reports the first field of a value that a schema does not have.
func hasFields(schema *apiextensionsv1.JSONSchemaProps, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if schema == nil || name == "metadata" || len(schema.Properties) == 0 {
				return nil
			}
			next, ok := schema.Properties[name]
			if !ok {
				return fmt.Errorf("there is no field %q", name)
			}
			if err := hasFields(&next, inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range value {
			if schema != nil && schema.Items != nil {
				if err := hasFields(schema.Items.Schema, inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
