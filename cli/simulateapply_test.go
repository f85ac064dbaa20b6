package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// lastApplied returns the object as kubectl apply left it.
func lastApplied(t *testing.T, manifest string) string {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	metadata := o["metadata"].(map[string]any)
	metadata["annotations"] = map[string]any{}
	applied, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	metadata["annotations"] = map[string]any{corev1.LastAppliedConfigAnnotation: string(applied) + "\n"}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const (
	deploymentPath  = "/apis/apps/v1/namespaces/shop/deployments"
	flowControlPath = "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols"
)

// deployment returns a manifest of a Deployment whose container has the variables.
func deployment(variables ...string) string {
	env := make([]string, 0, len(variables))
	for _, name := range variables {
		env = append(env, fmt.Sprintf(`{"name":%q,"value":"1"}`, name))
	}
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"template":{"spec":{"containers":[{"env":[%s],"name":"web"}]}}}}`, strings.Join(env, ","))
}

// flowControl returns a manifest of a PodDeletionFlowControl with the fields of its spec.
func flowControl(spec string) string {
	return fmt.Sprintf(`{"apiVersion":"policy.kruise.io/v1alpha1","kind":"PodDeletionFlowControl","metadata":{"name":"web"},"spec":{%s}}`, spec)
}

func TestASimulatedApplySendsWhatKubectlApplySends(t *testing.T) {
	const (
		strategic, merge, apply = "application/strategic-merge-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"
		clientSide              = "kubectl-client-side-apply"
	)
	removed := `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"web"}],"containers":[{"$setElementOrder/env":[{"name":"A"}],"env":[{"$patch":"delete","name":"B"}],"name":"web"}]}}}}`
	for name, tc := range map[string]struct {
		server   apiServer
		manifest string
		flags    []string
		// want are the requests. The annotation of kubectl apply is left out.
		want []string
		// output is a part of the output.
		output string
		code   int
	}{
		"an object that does not exist is created": {
			discovery, deployment("A"), nil, []string{"POST " + deploymentPath + " application/json " + clientSide + " " + deployment("A")}, "shop/deployment/web would be allowed\n", 0,
		},
		"a variable that the manifest no longer has is removed": {
			discovery.with(deploymentPath+"/web", lastApplied(t, deployment("A", "B"))), deployment("A"), nil,
			[]string{"PATCH " + deploymentPath + "/web " + strategic + " " + clientSide + " " + removed}, "shop/deployment/web would be allowed\n", 0,
		},
		"a field of a custom resource that the manifest no longer has is removed": {
			discovery.with(flowControlPath+"/web", lastApplied(t, flowControl(`"a":1,"b":2`))), flowControl(`"a":1`), nil,
			[]string{"PATCH " + flowControlPath + "/web " + merge + " " + clientSide + ` {"spec":{"b":null}}`}, "poddeletionflowcontrol/web would be allowed\n", 0,
		},
		"a field that was never applied is kept, with a warning": {
			discovery.with(flowControlPath+"/web", flowControl(`"a":1,"b":2`)), flowControl(`"a":1`), nil,
			[]string{"PATCH " + flowControlPath + "/web " + merge + " " + clientSide + " {}"}, "use --server-side", 0,
		},
		"an object that does not change gets no request": {
			discovery.with(deploymentPath+"/web", lastApplied(t, deployment("A"))), deployment("A"), nil, nil, "shop/deployment/web would be allowed\n", 0,
		},
		"each document is sent": {
			discovery.with(deploymentPath+"/web", lastApplied(t, deployment("A", "B"))), flowControl("") + "\n---\n" + deployment("A"), nil,
			[]string{
				"POST " + flowControlPath + " application/json " + clientSide + " " + flowControl(""),
				"PATCH " + deploymentPath + "/web " + strategic + " " + clientSide + " " + removed,
			}, "poddeletionflowcontrol/web would be allowed\nshop/deployment/web would be allowed\n", 0,
		},
		"server-side without force": {
			discovery, deployment("A"), []string{"--server-side"},
			[]string{"PATCH " + deploymentPath + "/web " + apply + " kubectl force=false " + deployment("A")}, "shop/deployment/web would be allowed\n", 0,
		},
		"server-side with force, as another manager": {
			discovery, deployment("A"), []string{"--server-side", "--force-conflicts", "--field-manager", "kustomize-controller"},
			[]string{"PATCH " + deploymentPath + "/web " + apply + " kustomize-controller force=true " + deployment("A")}, "shop/deployment/web would be allowed\n", 0,
		},
		"force without server-side is an error": {discovery, deployment("A"), []string{"--force-conflicts"}, nil, "error: --force-conflicts", 1},
		"a file without a manifest is an error": {discovery, "", nil, nil, "no manifest is in the files", 1},
		"another namespace than that of -n is an error": {
			discovery, strings.Replace(deployment("A"), "shop", "other", 1), nil, nil, "does not match the namespace", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(tc.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			requests, output, code := tc.server.run(t, append([]string{"simulate", "apply", "-f", file}, tc.flags...)...)
			var got []string
			for _, r := range requests {
				if r.Query.Get("dryRun") != "All" || r.Query.Get("fieldValidation") != "Strict" {
					t.Errorf("%s %s has the options %v, want a dry run with strict validation", r.Method, r.Path, r.Query)
				}
				words := []string{r.Method, r.Path, r.Type, r.Query.Get("fieldManager")}
				if force := r.Query.Get("force"); force != "" {
					words = append(words, "force="+force)
				}
				got = append(got, strings.Join(append(words, r.withoutLastApplied(t)), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if !strings.Contains(output, tc.output) || code != tc.code {
				t.Errorf("exit code %d, output %q, want %d, %q", code, output, tc.code, tc.output)
			}
		})
	}
}

// withoutLastApplied returns the body without the annotation of kubectl apply, which a client-side
// apply must have.
func (r written) withoutLastApplied(t *testing.T) string {
	t.Helper()
	metadata, _ := r.Body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[corev1.LastAppliedConfigAnnotation] != nil {
		delete(metadata, "annotations")
		if len(metadata) == 0 {
			delete(r.Body, "metadata")
		}
	} else if r.Type != "application/apply-patch+yaml" {
		t.Errorf("%s %s has no annotation %s", r.Method, r.Path, corev1.LastAppliedConfigAnnotation)
	}
	raw, err := json.Marshal(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
