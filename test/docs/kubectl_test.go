package docs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// invocation is a call of kubectl: its verb, its arguments and the values of its flags.
type invocation struct {
	verb  string
	args  []string
	flags map[string]string
	stdin string
}

// kubectlFlags are the flags on the pages, and whether they have a value.
var kubectlFlags = map[string]bool{
	"all": false, "all-namespaces": false, "as": true, "audience": true, "cascade": true, "clusterrole": true, "container": true, "dry-run": true,
	"duration": true, "field-selector": true, "filename": true, "for": true, "from-file": true, "group": true, "image": true, "kustomize": true, "manifest": true,
	"namespace": true, "output": true, "overwrite": false, "patch": true, "patch-file": true, "prefix": false, "replicas": true, "requests": true, "selector": true,
	"server-side": false, "serviceaccount": true, "sort-by": true, "stdin": false, "subresource": true, "tail": true, "timeout": true, "type": true,
}

var shorthands = map[string]string{
	"A": "all-namespaces", "c": "container", "f": "filename", "i": "stdin", "k": "kustomize", "l": "selector", "n": "namespace", "o": "output", "p": "patch",
}

// onKinds are verbs whose first argument is a kind, KIND/NAME or, with a subcommand, the second one.
var onKinds = []string{"annotate", "delete", "describe", "edit", "get", "label", "patch", "scale", "wait"}

// otherVerbs have arguments that are checked in another way, or not at all.
var otherVerbs = []string{"apply", "attach", "auth", "config", "create", "drain", "exec", "explain", "krew", "kustomize", "logs", "port-forward", "replace", "rollout", "set"}

// namespaces are the namespaces that pages name: of Breakwater, of other projects and of examples.
var namespaces = []string{v1alpha1.SystemNamespace, "argocd", "canary", "demo-shop", "knative-eventing", "knative-serving", "rabbitmq-system", "shop"}

func parseKubectl(call commands.Call) (invocation, error) {
	i := invocation{flags: map[string]string{}, stdin: call.Stdin}
	args := call.Args[1:]
	for n := 0; n < len(args); n++ {
		if args[n] == "--" { // the rest is the command of a container
			break
		}
		flag, isFlag := strings.CutPrefix(args[n], "-")
		if !isFlag || flag == "" {
			i.args = append(i.args, args[n])
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if !strings.HasPrefix(flag, "-") {
			name = shorthands[name]
		}
		hasValue, known := kubectlFlags[name]
		if !known {
			return i, fmt.Errorf("unknown flag %s", args[n])
		}
		if hasValue && !given {
			if n++; n == len(args) && name != "filename" { // `kubectl apply -f` is a mention
				return i, fmt.Errorf("flag %s has no value", args[n-1])
			} else if n < len(args) {
				value = args[n]
			}
		}
		i.flags[name] = value
	}
	if len(i.args) > 0 {
		i.verb, i.args = i.args[0], i.args[1:]
	}
	return i, nil
}

// isPlaceholder reports whether a word stands for a name of the reader.
func isPlaceholder(word string) bool {
	return word == strings.ToUpper(word) || strings.HasPrefix(word, "_") || strings.Contains(word, "…") || strings.HasPrefix(word, "$")
}

func (c *catalogue) kubectl(call commands.Call) error {
	i, err := parseKubectl(call)
	if err != nil {
		return err
	}
	var kinds []string
	switch {
	case slices.Contains(onKinds, i.verb):
		kinds, err = c.kindsOf(i.args, i.flags["namespace"])
	case slices.Contains([]string{"logs", "port-forward", "rollout"}, i.verb):
		args := i.args
		if i.verb == "rollout" && len(args) > 0 {
			args = args[1:]
		}
		if len(args) > 0 {
			_, err = c.kindsOf(args, i.flags["namespace"])
		}
	case i.verb == "create" && len(i.args) == 2 && i.args[0] == "token" && i.flags["namespace"] == v1alpha1.SystemNamespace:
		if !c.objects["serviceaccount/"+i.args[1]] {
			err = fmt.Errorf("config has no ServiceAccount %q", i.args[1])
		}
	case i.verb == "explain" && len(i.args) > 0:
		kind, path, _ := strings.Cut(i.args[0], ".")
		if _, err = c.kindsOf([]string{kind}, ""); err == nil {
			err = hasField(c.kinds[kind], strings.Split(path, "."))
		}
	case !slices.Contains(otherVerbs, i.verb) && i.verb != "" && !isPlaceholder(i.verb):
		err = fmt.Errorf("unknown verb %q", i.verb)
	}
	return errors.Join(err, c.flagsOf(i, kinds), c.manifest(i))
}

// kindsOf checks the kinds, and in our namespace the objects, of KIND[,KIND…] [NAME…] or KIND/NAME….
func (c *catalogue) kindsOf(args []string, namespace string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil // a mention of the verb
	}
	var named []string
	kinds := strings.Split(args[0], ",")
	if kind, _, slash := strings.Cut(args[0], "/"); slash {
		kinds, named = []string{kind}, args
	} else if len(kinds) == 1 {
		for _, name := range args[1:] {
			if !strings.Contains(name, "=") && !strings.HasSuffix(name, "-") { // labels
				named = append(named, kinds[0]+"/"+name)
			}
		}
	}
	for _, kind := range kinds {
		if _, known := c.kinds[kind]; !known && !isPlaceholder(kind) {
			return nil, fmt.Errorf("unknown kind %q", kind)
		}
	}
	for _, object := range named {
		kind, name, _ := strings.Cut(object, "/")
		if (namespace == v1alpha1.SystemNamespace || kind == "validatingwebhookconfiguration") && !isPlaceholder(name) && !c.exists(kind, name) {
			return nil, fmt.Errorf("config has no %s", object)
		}
	}
	return kinds, nil
}

// notInConfig are objects that processes, people or OpenKruise create.
var notInConfig = []string{
	"configmap/permission-ca", "lease/controller.00-of-02", "pod/centre-import", "secret/external-judge-keys",
	"validatingwebhookconfiguration/kruise-validating-webhook-configuration",
}

func (c *catalogue) exists(kind, name string) bool {
	kind = strings.TrimSuffix(kind, "s")
	if kind == "opsconfiginfo" {
		return name == "blocking" || v1alpha1.KnownConfigType(v1alpha1.ConfigType(name))
	}
	return c.objects[kind+"/"+name] || slices.Contains(notInConfig, kind+"/"+name)
}

var eventReason = regexp.MustCompile(`\breason=(\w+)`)

func (c *catalogue) flagsOf(i invocation, kinds []string) error {
	var all []error
	report := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if n := i.flags["namespace"]; n != "" && !isPlaceholder(n) && !slices.Contains(namespaces, n) {
		report("unknown namespace %q", n)
	}
	if m := eventReason.FindStringSubmatch(i.flags["field-selector"]); m != nil && !isPlaceholder(m[1]) && !c.literals[m[1]] {
		report("no code has the reason %q", m[1])
	}
	if role := i.flags["clusterrole"]; role != "" && !c.objects["clusterrole/"+role] {
		report("config has no ClusterRole %q", role)
	}
	if function, ok := strings.CutPrefix(i.flags["selector"], "serving.knative.dev/service="); ok && !c.objects["ksvc/"+function] {
		report("config has no Knative Service %q", function)
	}
	if template, ok := strings.CutPrefix(i.flags["output"], "jsonpath="); ok {
		all = append(all, c.jsonPath(template, kinds))
	}
	if path := i.flags["sort-by"]; path != "" {
		all = append(all, c.jsonPath("{"+path+"}", kinds))
	}
	if patch := i.flags["patch"]; patch != "" {
		all = append(all, c.patch(patch, kinds))
	}
	return errors.Join(all...)
}

// manifest checks a here-document that is applied.
func (c *catalogue) manifest(i invocation) error {
	if i.stdin == "" {
		return nil
	}
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(i.stdin), &o.Object); err != nil {
		return fmt.Errorf("parse manifest: %w", err)
	}
	if _, err := c.kindsOf([]string{strings.ToLower(o.GetKind())}, ""); err != nil || o.GetKind() != "OpsConfigInfo" {
		return err
	}
	var setting v1alpha1.OpsConfigInfo
	if err := yaml.UnmarshalStrict([]byte(i.stdin), &setting); err != nil {
		return fmt.Errorf("parse manifest: %w", err)
	}
	if err := setting.Validate(context.Background()); err != nil {
		return err
	}
	return nil
}
