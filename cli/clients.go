package cli

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// defaultHost is the host that client-go selects without a kubeconfig.
const defaultHost = "http://localhost:8080"

// clients are the clients of the cluster that the flags select.
type clients struct {
	kube       kubernetes.Interface
	breakwater versioned.Interface
	dynamic    dynamic.Interface
	mapper     meta.RESTMapper
	namespace  string
	// flags are the flags that select the cluster, as given, each after a space. Printed commands end in them.
	flags string
}

// command returns a command of the plugin for an object, if one is named, with the flags that select the cluster.
func (c *clients) command(verb, object, namespace string) string {
	return diagnosis.Command(verb, object, namespace) + c.flags
}

// clients returns the clients of the cluster that the flags select. Warnings of the API server are printed as kubectl does.
func (a *app) clients() (*clients, error) {
	return a.clientsWith(rest.NewWarningWriter(a.ErrOut, rest.WarningWriterOptions{Deduplicate: true}))
}

// listClients returns clients, and the namespace to list: all, or that of the flags.
func (a *app) listClients(all bool) (*clients, string, error) {
	c, err := a.clients()
	if err != nil || all {
		return c, metav1.NamespaceAll, err
	}
	return c, c.namespace, nil
}

// clientsWith returns clients that pass the warnings of the API server to a handler.
func (a *app) clientsWith(warnings rest.WarningHandler) (*clients, error) {
	loader := a.flags.ToRawKubeConfigLoader()
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	// In a cluster, the host is that of the pod's API server.
	if raw, err := loader.RawConfig(); err == nil && raw.CurrentContext+*a.flags.Context+*a.flags.ClusterName+*a.flags.APIServer == "" && config.Host == defaultHost {
		return nil, errors.New("no cluster is selected: set KUBECONFIG or --kubeconfig, and a current context")
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	c := &clients{namespace: namespace,
		flags: flag("kubeconfig", a.flags.KubeConfig) + flag("context", a.flags.Context) + flag("cluster", a.flags.ClusterName) + flag("server", a.flags.APIServer)}
	config.WarningHandler = warnings
	// A simulated drain sends a request for each pod.
	config.QPS, config.Burst = 50, 100
	if c.mapper, err = a.flags.ToRESTMapper(); err != nil {
		return nil, fmt.Errorf("read the resources of the cluster: %w", err)
	}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.breakwater, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	c.dynamic, err = dynamic.NewForConfig(config)
	return c, err
}

// withRole adds to an error about a missing right in a namespace the command that binds a role with it. Without role view,
// the namespace may also be the wrong one.
func (c *clients) withRole(err error, namespace, role string) error {
	if !apierrors.IsForbidden(err) || namespace == "" {
		return err
	}
	other := ""
	if role == "view" {
		other = "select another namespace with -n, or "
	}
	return fmt.Errorf("%w\n%[5]slet a cluster admin give you role %[2]s: kubectl create rolebinding %[2]s-USER -n %[3]s --clusterrole=%[2]s --user=USER%[4]s",
		err, role, namespace, c.flags, other)
}

// listError is the error of a list of objects that a command about a part of Breakwater reads in a namespace, with role view.
func (c *clients) listError(what, part, namespace string, err error) error {
	err = c.withRole(err, namespace, "view")
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("list the %s: %w: part %s is not installed in the cluster: %s", what, err, part, diagnosis.FixNotInstalled)
	}
	return fmt.Errorf("list the %s: %w", what, err)
}

// flag returns a flag for a shell, after a space, and "" if it has no value.
func flag(name string, value *string) string {
	if ptr.Deref(value, "") == "" {
		return ""
	}
	return " --" + name + " " + text.ShellQuote(*value)
}
