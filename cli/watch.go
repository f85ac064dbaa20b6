package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	informers "github.com/breakwater-dev/breakwater/client/informers/externalversions"

	"k8s.io/client-go/tools/cache"
)

// watchInterval is the minimum time between two answers of a watch, so that a release of
// many pods does not flood the terminal and the API server.
const watchInterval = time.Second

func watchFlag(c *cobra.Command, watch *bool) {
	c.Flags().BoolVarP(watch, "watch", "w", false, "Print the output again when it changes, until interrupted")
}

// changes sends a value when a release or a batch of the namespace changed. Unreceived values
// are merged into one.
func (c *clients) changes(ctx context.Context, namespace string) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.breakwater, 0, informers.WithNamespace(namespace))
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.App().V1alpha1().ChangeWorkloads().Informer(), factory.App().V1alpha1().ChangePods().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch the releases: %w", err)
		}
	}
	// An informer retries a denied list for ever and returns no error.
	if _, err := c.breakwater.AppV1alpha1().ChangePods(namespace).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, c.listError("batches", "change", namespace, err)
	}
	factory.Start(ctx.Done())
	return changed, nil
}

// watch shows an answer now and after each change of it, until the context ends.
func (a *app) watch(ctx context.Context, c *clients, namespace string, show func(context.Context, io.Writer) error) error {
	var last []byte
	screen := terminal(a.Out)
	err := a.follow(ctx, c, namespace, func() (bool, error) {
		var next bytes.Buffer
		err := show(ctx, &next)
		if err != nil && screen != nil {
			last = nil // the next answer clears the error
		}
		if err != nil || bytes.Equal(last, next.Bytes()) {
			return false, err
		}
		before := ""
		if screen != nil {
			_, _ = fmt.Fprint(screen, "\x1b[H\x1b[2J") // clears it
		} else if last != nil {
			before = "\n"
		}
		last = next.Bytes()
		_, err = fmt.Fprintf(a.Out, "%s%s", before, last)
		return err != nil, err
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user ended the watch
	}
	return err
}
