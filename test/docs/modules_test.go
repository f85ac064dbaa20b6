package docs

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// The versions have the fix of a vulnerability. `make vuln` looks for newer ones in a
// database, which not every machine can reach.
var fixedIn = map[string]string{
	"filippo.io/edwards25519":       "v1.1.1",
	"github.com/getkin/kin-openapi": "v0.144.0",
	"github.com/jackc/pgx/v5":       "v5.9.2",
	"github.com/labstack/echo/v4":   "v4.16.0",
}

func TestModulesHaveTheFixesOfKnownVulnerabilities(t *testing.T) {
	gomod := read(t, "go.mod")
	for module, fixed := range fixedIn {
		line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(gomod)
		if line == nil {
			continue // the module is not used any more
		}
		if version.MustParseSemantic(line[1]).LessThan(version.MustParseSemantic(fixed)) {
			t.Errorf("%s is %s in go.mod; its vulnerability is fixed in %s", module, line[1], fixed)
		}
	}
}
