package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

// OpenKruise selects the parts of OpenKruise that RunOpenKruise installs.
type OpenKruise struct {
	// Webhooks are the resources with OpenKruise's webhooks, such as cloneset.
	Webhooks []string
	// FeatureGates are the feature gates of the manager.
	FeatureGates string
}

// RunOpenKruise installs the CRDs of apps.kruise.io and webhooks of OpenKruise, runs its
// manager, and returns the manager's user.
func (p *ControlPlane) RunOpenKruise(ctx context.Context, o OpenKruise) (user string, err error) {
	kruise, err := p.Build(ctx, "kruise")
	if err != nil {
		return "", err
	}
	crds, err := filepath.Glob(filepath.Join(kruise.Module, "config", "crd", "bases", "apps.kruise.io_*.yaml"))
	if err != nil {
		return "", err
	}
	webhooks, err := o.webhooks(filepath.Join(kruise.Module, "config", "webhook", "manifests.yaml"))
	if err != nil {
		return "", err
	}
	if err := p.kubectl(ctx, "", "create", "namespace", "kruise-system"); err != nil {
		return "", err
	}
	if err := p.kubectl(ctx, "", "apply", "--server-side", "-f", strings.Join(crds, ",")); err != nil {
		return "", err
	}
	if err := p.kubectl(ctx, webhooks, "apply", "-f", "-"); err != nil {
		return "", err
	}
	if err := p.kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", strings.Join(crds, ",")); err != nil {
		return "", err
	}
	webhookPort, err := p.runManager(ctx, kruise.Binaries, o.FeatureGates)
	if err != nil {
		return "", err
	}
	// The manager completes its webhooks, one configuration after the other.
	for _, configuration := range []string{"mutating", "validating"} {
		err := p.kubectl(ctx, "", "wait", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", "--timeout=60s",
			configuration+"webhookconfiguration/kruise-"+configuration+"-webhook-configuration")
		if err != nil {
			return "", err
		}
	}
	// The manager listens only after it has completed its webhooks.
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", "localhost:"+webhookPort)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, connection.Close()
	})
	if err != nil {
		return "", fmt.Errorf("wait for the webhooks of OpenKruise: %w", err)
	}
	return "system:serviceaccount:kruise-system:kruise-manager", nil
}

// runManager starts OpenKruise's manager and returns the port of its webhooks.
func (p *ControlPlane) runManager(ctx context.Context, binaries, gates string) (webhookPort string, err error) {
	kubeconfig, err := p.KubeconfigOf("kruise-system", "kruise-manager")
	if err != nil {
		return "", err
	}
	certificates, err := os.MkdirTemp(p.dir, "kruise-certificates-")
	if err != nil {
		return "", err
	}
	var ports [3]string
	for i := range ports {
		port, err := freeport.Find(ctx)
		if err != nil {
			return "", err
		}
		ports[i] = strconv.Itoa(port)
	}
	// The API server calls its webhooks at an address of this machine.
	environment := []string{
		"POD_NAMESPACE=kruise-system", "WEBHOOK_HOST=localhost", "WEBHOOK_PORT=" + ports[0], "WEBHOOK_CERT_DIR=" + certificates,
	}
	err = p.RunProgram(filepath.Join(binaries, "kruise-manager"), environment, "--kubeconfig", kubeconfig,
		"--enable-leader-election=false", "--enable-pprof=false",
		"--metrics-addr=127.0.0.1:"+ports[1], "--health-probe-addr=127.0.0.1:"+ports[2],
		"--rest-config-qps=200", "--rest-config-burst=400", "--feature-gates="+gates)
	return ports[0], err
}

// webhooks returns the webhooks in a file of OpenKruise that are installed.
func (o OpenKruise) webhooks(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		switch {
		case strings.Contains(document, "kind: MutatingWebhookConfiguration"):
			err = yaml.Unmarshal([]byte(document), &mutating)
		case strings.Contains(document, "kind: ValidatingWebhookConfiguration"):
			err = yaml.Unmarshal([]byte(document), &validating)
		}
		if err != nil {
			return "", fmt.Errorf("read %s: %w", file, err)
		}
	}
	mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return !o.has(w.Name, "m")
	})
	validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return !o.has(w.Name, "v")
	})
	// Budgets have no mutating webhook.
	if n := len(o.Webhooks); len(mutating.Webhooks) == 0 || len(validating.Webhooks) != n {
		return "", fmt.Errorf("%s has %d and %d webhooks of %v", file, len(mutating.Webhooks), len(validating.Webhooks), o.Webhooks)
	}
	mutating.Name, validating.Name = "kruise-"+mutating.Name, "kruise-"+validating.Name
	// To validate a List, kubectl would read the OpenAPI document of all kinds, which takes long after new CRDs.
	first, err := json.Marshal(mutating)
	if err != nil {
		return "", err
	}
	second, err := json.Marshal(validating)
	return string(first) + "\n---\n" + string(second), err
}

func (o OpenKruise) has(name, prefix string) bool {
	resource, isKruise := strings.CutSuffix(strings.TrimPrefix(name, prefix), ".kb.io")
	return isKruise && slices.Contains(o.Webhooks, resource)
}
