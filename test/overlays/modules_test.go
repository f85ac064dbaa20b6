package overlays

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// rabbitmq is not in the embedded cluster, so its version is pinned here.
const rabbitmq = "knative.dev/eventing-rabbitmq"

// rabbitmqVersion and rabbitmqSum pin the content, like a line of go.sum.
const (
	rabbitmqVersion = "v0.48.0"
	rabbitmqSum     = "h1:x20TB0TI+eF5Y9G2Irchtbr/FFRppWiZkoge78S5s/c="
)

// sources are the modules and file patterns of the CustomResourceDefinitions.
var sources = []struct{ module, pattern string }{
	{"knative.dev/eventing", "config/core/resources/*.yaml"},
	{"knative.dev/serving", "config/core/300-resources/*.yaml"},
	{rabbitmq, "config/broker/300-rabbitmqbrokerconfig.yaml"},
}

// module returns the folder of a module in Go's cache. The module is not in
// go.mod, because no code of it is compiled and it has many requirements.
func module(t *testing.T, path string) string {
	t.Helper()
	version, sum := rabbitmqVersion, rabbitmqSum
	if path != rabbitmq {
		version, sum = pinned(t, path)
	}
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path+"@"+version)
	command.Dir = t.TempDir() // outside any module
	out, err := command.Output()
	var got struct{ Dir, Sum, Error string }
	if unreadable := json.Unmarshal(out, &got); err != nil || unreadable != nil || got.Error != "" {
		t.Fatalf("download %s@%s: %v %s", path, version, err, got.Error)
	}
	if got.Sum != sum {
		t.Fatalf("%s@%s has the sum %s, want %s", path, version, got.Sum, sum)
	}
	return got.Dir
}

// pinned returns the version and sum of a module in the embedded cluster.
func pinned(t *testing.T, path string) (version, sum string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "cluster", "modules", "knative", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(path) + ` (v[^/\s]+) (h1:\S+)$`).FindSubmatch(raw)
	if line == nil {
		t.Fatalf("the embedded cluster has no %s", path)
	}
	return string(line[1]), string(line[2])
}
