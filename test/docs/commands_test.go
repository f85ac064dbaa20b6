package docs

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// otherBlocks are the first words of blocks of code without commands.
var otherBlocks = []string{
	"A", "deletionflow:", // a message of a commit
	"apiVersion:", "metadata:", "spec:", "resources:", // manifests, an overlay
	"scrape_configs:",                                                               // settings of Prometheus
	"Error", "TIMES", "breakwater_guard_unenforced{reason=\"FailurePolicyIgnore\"}", // output
	"Requested", "open", "apis/", // states, folders
	"client,", // Go
	"while",   // a loop of the shell
}

// commandsOf returns the commands of all pages.
func commandsOf(t *testing.T) (all []commands.Command) {
	t.Helper()
	for _, page := range pages(t) {
		if slices.Contains(commands.NotRead, page) {
			continue
		}
		found, other, err := commands.Of(page, read(t, page))
		if err != nil {
			t.Error(err)
		}
		for _, line := range other {
			if first := strings.Fields(line)[0]; !slices.Contains(otherBlocks, first) {
				t.Errorf("%s: a block of code begins with %q, which begins neither a command nor one of otherBlocks", page, line)
			}
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		t.Fatal("the pages have no commands")
	}
	return all
}

// ourKey is a label or annotation with one of our domains.
var ourKey = regexp.MustCompile(`([a-z.-]+\.)?(alipay\.com|antgroup\.com|breakwater\.dev|kruise\.io|stke\.io)/[A-Za-z0-9.-]+|admission-webhook-altershield=\w+`)

// keys checks that the product has the labels and annotations of a command.
func (c *catalogue) keys(text string) error {
	for _, key := range ourKey.FindAllString(strings.ReplaceAll(text, `\.`, "."), -1) {
		key = strings.TrimPrefix(strings.TrimPrefix(key, ".metadata.annotations."), ".metadata.labels.")
		if key == "admission-webhook-altershield=enabled" || strings.Contains(key, "/v1") {
			continue
		}
		key = strings.TrimSuffix(key, "-")
		_, name, domain := strings.Cut(key, "/")
		// Some constants join a domain and a name.
		if known := c.literals[key] || domain && c.literals["/"+name]; !known {
			return fmt.Errorf("no code has the label or annotation %s", key)
		}
	}
	return nil
}

func (c *catalogue) check(command commands.Command, folder string) error {
	all := []error{c.keys(command.Text)}
	for _, call := range command.Calls {
		all = append(all, c.call(call, folder))
	}
	return errors.Join(all...)
}

func TestCommandsOfPagesAreValid(t *testing.T) {
	known := newCatalogue(t)
	var folder string
	var last commands.Command
	for _, c := range commandsOf(t) {
		if c.Page != last.Page || c.Line != last.Line+1 {
			folder = "" // another block
		}
		last = c
		if c.Inline && path.Dir(c.Page) == "test/shop" && strings.HasPrefix(c.Text, "go run ./cmd/") {
			folder = "test/shop" // a module of its own
		}
		if err := known.check(c, folder); err != nil {
			t.Errorf("%s\n%v", c, err)
		}
		if to, ok := strings.CutPrefix(c.Text, "cd "); ok {
			folder = path.Join(folder, to)
		}
	}
}

func TestWrongCommandsAreFound(t *testing.T) {
	known := newCatalogue(t)
	const system = "kubectl -n altershieldoperator-system "
	for command, want := range map[string]string{
		"make apply OVERLAY=strict": "", "make aply": `no target "aply"`, "make apply OVERLY=strict": "no variable OVERLY",
		"make apply OVERLAY=none": "config/overlays/none does not exist", "make apply PARTS='config/core config/x'": "config/x does not exist",
		"kubectl get changepods -A": "", "kubectl get changepod,changes": `unknown kind "changes"`, "kubectl gte pods": `unknown verb "gte"`,
		"kubectl get pods --al": "unknown flag --al", "kubectl get pods -n altershield": `unknown namespace "altershield"`,
		system + "logs deployment/centre":                                                  "config has no deployment/centre",
		system + "get configmap config-kinds":                                              "config has no configmap/config-kinds",
		system + "patch opsconfiginfo no-verdicts -p '{}'":                                 "config has no opsconfiginfo/no-verdicts",
		system + "create token admin":                                                      `no ServiceAccount "admin"`,
		system + "get pods -l serving.knative.dev/service=submitter":                       `no Knative Service "submitter"`,
		"kubectl get events --field-selector reason=LeakedAway":                            `no code has the reason "LeakedAway"`,
		"kubectl create rolebinding a --clusterrole=breakwater-judges":                     `no ClusterRole "breakwater-judges"`,
		"kubectl apply -f config/samples/none.yaml":                                        "config/samples/none.yaml does not exist",
		"kubectl apply -f - <<E\nkind: OpsConfigInfo\nspec: {type: none, enable: true}\nE": `unknown type "none"`,
		"kubectl apply -f - <<E\nkind: OpsConfigInfo\nspec: {typ: branch}\nE":              `unknown field "typ"`,
		`kubectl patch changepod a -p '{"status":'`:                                        "parse patch",
		`kubectl patch changepod a -p '{"status":{"podResults":[{"verdit":"pass"}]}}'`:     `no field "verdit"`,
		"kubectl get changepod a -o jsonpath='{.status.record}'":                           `no field "record"`,
		"kubectl get changepod a -o jsonpath='{.status'":                                   "parse {.status",
		"kubectl explain metriccheck.specs":                                                `no field "specs"`,
		"kubectl label pod web policy.kruise.io/disable-cascade=true":                      "policy.kruise.io/disable-cascade",
		"kubectl annotate deployment web stke.io/permission-sets-":                         "stke.io/permission-sets",
		"kubectl label namespace a admission-webhook-altershield=on":                       "admission-webhook-altershield=on",
		"kubectl breakwater aprove deployment/web":                                         `unknown command "aprove"`,
		"kubectl breakwater status deployment/web --time 5m":                               "unknown flag: --time",
		"kubectl breakwater simulate drain a b":                                            "accepts 1 arg",
		"bin/judge replay --prom http://a":                                                 `does not have "prom"`,
		"judge replai --new a":                                                             `does not have "replai"`,
		"go run ./test/conformance -uri http://a":                                          `does not have "uri"`,
		"go run ./test/conform":                                                            "test/conform does not exist",
		"./uninstall.sh --no":                                                              "does not have --no",
		"bash uninstall.sh --no":                                                           "does not have --no",
		"hack/fuzzy.sh":                                                                    "hack/fuzzy.sh does not exist",
		"bin/cluster exec -- kubectl get changes":                                          `unknown kind "changes"`,
		"kubectl get pods | kubectx a":                                                     `unknown program "kubectx"`,
	} {
		found, _, err := commands.Of("page.md", "```\n"+command+"\n```\n")
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %d commands, %v", command, len(found), err)
			continue
		}
		err = known.check(found[0], "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
}
