package docs

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// The versions have the fix of a vulnerability. `make vuln` looks for newer ones in a
// database, which not every machine can reach.
var fixedIn = map[string]string{
	"filippo.io/edwards25519":       "v1.1.1",
	"github.com/getkin/kin-openapi": "v0.144.0",
	"github.com/go-jose/go-jose/v4": "v4.1.4",
	"github.com/jackc/pgx/v5":       "v5.9.2",
	"github.com/labstack/echo/v4":   "v4.16.0",
	"go.opentelemetry.io/otel/sdk":  "v1.40.0",
	"golang.org/x/crypto":           "v0.45.0",
	"golang.org/x/net":              "v0.55.0",
	"google.golang.org/grpc":        "v1.79.3",
}

// released are programs of others, by folder of test/cluster/modules, and their modules without
// the fix. The embedded cluster and its tests run each program as its project released it, as users do,
// and serve only this machine. A new version of the program is the fix.
var released = map[string][]string{
	"kn":         {"golang.org/x/net", "google.golang.org/grpc"},
	"kruise":     {"go.opentelemetry.io/otel/sdk", "golang.org/x/crypto", "golang.org/x/net", "google.golang.org/grpc"},
	"kubernetes": {"go.opentelemetry.io/otel/sdk", "golang.org/x/net", "google.golang.org/grpc"},
	"kwok":       {"golang.org/x/net"},
	"traefik":    {"github.com/go-jose/go-jose/v4", "golang.org/x/net"},
}

// outdated returns the modules in a go.mod that are older than their fix, and those that are not.
func outdated(gomod string) (old, fixed []string) {
	for module, fix := range fixedIn {
		line := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(gomod)
		switch {
		case line == nil:
		case version.MustParseSemantic(line[1]).LessThan(version.MustParseSemantic(fix)):
			old = append(old, module)
		default:
			fixed = append(fixed, module)
		}
	}
	slices.Sort(old)
	return old, fixed
}

func TestModulesHaveTheFixesOfKnownVulnerabilities(t *testing.T) {
	found := map[string]bool{}
	for _, file := range tracked(t, "*go.mod") {
		old, fixed := outdated(read(t, file))
		for _, module := range append(fixed, old...) {
			found[module] = true
		}
		if folder, ok := released[path.Base(path.Dir(file))]; ok && path.Dir(path.Dir(file)) == "test/cluster/modules" {
			if !slices.Equal(old, folder) {
				t.Errorf("%s: modules without a fix are %v, and this test names %v", file, old, folder)
			}
			continue
		}
		for _, module := range old {
			t.Errorf("%s: the vulnerability of %s is fixed in %s", file, module, fixedIn[module])
		}
	}
	for module := range fixedIn {
		if !found[module] {
			t.Errorf("no go.mod has %s: remove it from fixedIn", module)
		}
	}
}

func TestAModuleThatIsOlderThanItsFixIsFound(t *testing.T) {
	for gomod, want := range map[string][]string{
		"require github.com/jackc/pgx/v5 v5.9.1":                                    {"github.com/jackc/pgx/v5"},
		"require (\n\tgolang.org/x/net v0.54.0 // indirect\n)":                      {"golang.org/x/net"},
		"require (\n\tgolang.org/x/net v0.55.0\n\tgolang.org/x/crypto v0.45.0\n)\n": nil,
		"module golang.org/x/net\n":                                                 nil,
	} {
		if old, _ := outdated(gomod); !slices.Equal(old, want) {
			t.Errorf("%q: got %v, want %v", gomod, old, want)
		}
	}
}

// Another version of libc compiles, but SQLite supports only this one. Other modules raise it, too.
func TestSQLiteHasTheLibcOfItsOwnModule(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite")
	command.Dir = root
	file, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	gomod, err := os.ReadFile(strings.TrimSpace(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	libc := regexp.MustCompile(`modernc\.org/libc v\S+`)
	want, got := libc.FindString(string(gomod)), libc.FindString(read(t, "go.mod"))
	if got != want || want == "" {
		t.Errorf("go.mod has %q, and SQLite needs %q", got, want)
	}
}
