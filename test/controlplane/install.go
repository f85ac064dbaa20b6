package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// componentsGroup is the group of the components of this process. Each uses its
// ServiceAccount and has the permissions of all, because the informers of all are
// registered in one process.
const componentsGroup = "breakwater:controlplane"

// Install applies a folder of manifests, such as config/protection, with two differences:
// the components run in this process and not as Deployments, and there is no Knative.
func (p *ControlPlane) Install(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(p.root, filepath.FromSlash(folder), "*.yaml"))
	if err != nil {
		return err
	}
	var stream bytes.Buffer
	for _, file := range files {
		objects, err := read(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, o := range objects {
			data, err := json.Marshal(o)
			if err != nil {
				return fmt.Errorf("encode %s: %w", o.GetName(), err)
			}
			_, _ = fmt.Fprintf(&stream, "---\n%s\n", data)
		}
	}
	return p.kubectl(ctx, stream.String(), "apply", "--server-side", "-f", "-")
}

func (p *ControlPlane) kubectl(ctx context.Context, stdin string, args ...string) error {
	_, err := kubectl.Kubectl{}.Output(ctx, stdin, args...)
	return err
}

// read returns the objects of a file without Deployments and objects of Knative. For
// each binding of a role it adds a binding to componentsGroup.
func read(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if strings.HasSuffix(o.GroupVersionKind().Group, "knative.dev") {
			continue
		}
		switch o.GetKind() {
		case "", "Deployment", "PodDisruptionBudget":
		case "RoleBinding", "ClusterRoleBinding":
			group := o.DeepCopy()
			group.SetName(o.GetName() + "-components")
			group.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": componentsGroup}}
			all = append(all, o, group)
		default:
			all = append(all, o)
		}
	}
}
