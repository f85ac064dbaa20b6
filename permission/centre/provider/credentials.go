package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Credentials reads the keys of a Secret that is mounted at Dir. A credential is
// read for each call, so that a changed value is used at once.
type Credentials struct{ Dir string }

// CheckName checks that a reference is a valid key of a Secret.
func (Credentials) CheckName(name string) error {
	if problems := validation.IsConfigMapKey(name); len(problems) > 0 {
		return fmt.Errorf("%q is not a valid Secret key: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// Get reads a credential; it returns "" for an empty name.
func (c Credentials) Get(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if err := c.CheckName(name); err != nil {
		return "", err
	}
	value, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		return "", fmt.Errorf("credential %q is not mounted in CREDENTIALS_DIR", name)
	}
	return strings.TrimSpace(string(value)), nil
}
