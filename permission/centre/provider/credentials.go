package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Credentials are the files of a folder, each the value of a key of a mounted
// Secret. They are read at each use, so that a new one counts at once.
type Credentials struct{ Dir string }

// CheckName says whether a reference can be a key.
func (Credentials) CheckName(name string) error {
	if problems := validation.IsConfigMapKey(name); len(problems) > 0 {
		return fmt.Errorf("%q is no key of a Secret: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// Get reads a credential; "" for no reference.
func (c Credentials) Get(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if err := c.CheckName(name); err != nil {
		return "", err
	}
	value, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		return "", fmt.Errorf("credential %q is not mounted", name)
	}
	return strings.TrimSpace(string(value)), nil
}
