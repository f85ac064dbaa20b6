package networkpolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Place is where a connection comes from.
type Place string

// The places that the policies distinguish.
const (
	// Outside is an address that no pod has, such as that of a node or of the API server. The
	// node of the embedded cluster is not restricted, so only unit tests connect from there.
	Outside Place = "outside of the pod network"
	// Elsewhere is a pod of any other namespace.
	Elsewhere Place = "a pod of another namespace"
	// Knative is a pod in the namespace of Knative Serving.
	Knative Place = "a pod of knative-serving"
	// Beside is a pod in the namespace of Breakwater without its label.
	Beside Place = "a pod of the namespace without the label of Breakwater"
	// Own is a pod of Breakwater.
	Own Place = "a pod of Breakwater"
)

// Probe is a port of a component. Connections from the places in From are accepted, and those
// from all other places are not.
type Probe struct {
	Port int32
	From []Place
	// Silent is set if nothing listens on the port of the embedded cluster. A connection that
	// the policies accept is then refused by the pod, and any other connection is not answered.
	Silent bool
}

// Component has the pods of a Deployment or of a function (a Service of Knative).
type Component struct {
	Name     string
	Function bool
}

// Another is a pod in the namespace of Breakwater that is not in the manifests.
var Another = Component{Name: "another"}

// Anyone and the following are the places of several ports.
var (
	Anyone = []Place{Outside, Elsewhere, Knative, Beside, Own}
	pods   = []Place{Elsewhere, Knative, Beside, Own}
	inside = []Place{Beside, Own}
)

// Probes returns the ports of a component. This table and the policies are written
// independently, so that each checks the other.
func Probes(c Component) ([]Probe, error) {
	webhook := []Probe{{Port: 8443, From: Anyone}, {Port: 9090, From: pods}, {Port: 8080}}
	controller := []Probe{{Port: 9090, From: pods}, {Port: 8080}}
	if c.Function {
		return []Probe{
			{Port: 8012, From: Anyone},               // queue-proxy, HTTP/1
			{Port: 8013, From: Anyone, Silent: true}, // queue-proxy, HTTP/2
			{Port: 8112, From: Anyone, Silent: true}, // queue-proxy, with TLS inside of the cluster
			{Port: 9090, From: []Place{Knative}},     // queue-proxy, for the autoscaler
			{Port: 9091, From: pods},                 // queue-proxy, metrics of requests
			{Port: 9095, From: pods},                 // metrics of the function
			{Port: 8022},                             // queue-proxy, for probes
			{Port: 8080},                             // the function, behind the queue-proxy
		}, nil
	}
	probes, ok := map[string][]Probe{
		"webhook": webhook, "protection-webhook": webhook, "permission-webhook": webhook,
		"controller": controller, "protection-controller": controller, "permission-controller": controller,
		"init-action-server": {{Port: 8443, From: pods}, {Port: 9090, From: pods}, {Port: 8080}},
		"openapi":            {{Port: 8443, From: pods}, {Port: 9090, From: pods}, {Port: 8080}},
		"permission-centre":  {{Port: 8443, From: []Place{Own}}, {Port: 9090, From: pods}, {Port: 8080, Silent: true}},
		// A pod that a test adds to the namespace; of Breakwater's policies only deny-ingress selects it.
		Another.Name: {{Port: 8080, Silent: true}},
		// Of overlay rabbitmq. 9090 and 8080 serve metrics and events.
		"broker-ingress": {{Port: 8080, From: inside}, {Port: 9090}},
	}[c.Name]
	if !ok {
		return nil, fmt.Errorf("component %s is in the manifests, and not in this table: add its ports", c.Name)
	}
	return probes, nil
}

// parts are the folders with the manifests of Breakwater's parts.
var parts = []string{"core", "judge", "protection", "permission"}

// Components returns the components of the manifests below a folder, and the labels of their
// pods.
func Components(config string) (components []Component, labels []map[string]string, err error) {
	err = objects(config, parts, func(raw []byte) error {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Template struct {
					metav1.ObjectMeta `json:"metadata"`
				} `json:"template"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		function := o.APIVersion == "serving.knative.dev/v1" && o.Kind == "Service"
		if o.Kind != "Deployment" && !function {
			return nil
		}
		of := o.Spec.Template.Labels
		if function { // Knative adds it
			of["serving.knative.dev/service"] = o.Name
		}
		components, labels = append(components, Component{o.Name, function}), append(labels, of)
		return nil
	})
	return components, labels, err
}

// objects calls read with each object of the manifests in folders.
func objects(config string, folders []string, read func(raw []byte) error) error {
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(config, folder, "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			content, err := os.ReadFile(file) //nolint:gosec // a manifest of this repository
			if err != nil {
				return err
			}
			for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); err == nil; {
				var object json.RawMessage
				if err = decoder.Decode(&object); err == nil && bytes.HasPrefix(object, []byte("{")) { // not a patch
					err = read(object)
				}
			}
			if !errors.Is(err, io.EOF) {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}
