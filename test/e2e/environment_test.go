//go:build e2e

package e2e

import (
	"context"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	client "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// testLabel marks the namespaces of these tests.
const testLabel = "test.breakwater.dev/e2e"

// environment holds the clients of the cluster.
type environment struct {
	kube    kubernetes.Interface
	change  client.AppV1alpha1Interface
	dynamic dynamic.Interface
	// double is the client of the server's double, in the groups of tests that install
	// it.
	double *serverdouble.Client
	// prometheus is the URL of the Prometheus of metricSpecs.
	prometheus string
}

func connect() (*environment, error) {
	c, err := clients.Connect()
	if err != nil {
		return nil, err
	}
	return &environment{kube: c.Kube, change: c.Breakwater.AppV1alpha1(), dynamic: c.Dynamic, double: serverdouble.New(nil)}, nil
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ofThisPackage is the value of testLabel on namespaces: other packages run beside it.
const ofThisPackage = "change"

// sweep deletes the settings and namespaces of an interrupted run.
func (e *environment) sweep(ctx context.Context) error {
	err := e.change.OpsConfigInfoes(v1alpha1.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: testLabel})
	if err != nil {
		return err
	}
	left, err := e.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: testLabel + "=" + ofThisPackage})
	if err != nil {
		return err
	}
	for i := range left.Items {
		err := e.kube.CoreV1().Namespaces().Delete(ctx, left.Items[i].Name, metav1.DeleteOptions{})
		if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
			return err
		}
	}
	return nil
}
