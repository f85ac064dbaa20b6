//go:build e2e

// Package permission proves pre-authorization on a real cluster: containers
// really wait on a real node, for a provider's double that runs in the cluster
// and whose books are compared.
//
// It shortens deadlines and intervals in config-permission while it runs, and
// registers what it needs at the installed permission centre.
package permission

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/database"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// soon is how long something may take that takes a moment.
const soon = 90 * time.Second

// hurried are deadlines and intervals that a test can wait for.
const hurried = `{"data":{"revoke-deadline":"20s","sweep-interval":"10s","backoff-duration":"6s","backoff-jitter":"0","backoff-cap":"1m"}}`

// usual are those of config/permission.
const usual = `{"data":{"revoke-deadline":"5m","sweep-interval":"1h","backoff-duration":"2m","backoff-jitter":"1.0","backoff-cap":"1h"}}`

func TestMain(m *testing.M) {
	code := 1
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
	} else {
		code = m.Run()
	}
	database.Stop()
	if err := configure(context.Background(), usual); err != nil {
		fmt.Fprintln(os.Stderr, "restore:", err)
		code = 1
	}
	os.Exit(code)
}

func configure(ctx context.Context, patch string) error {
	return setup.Kubectl(ctx, "-n", setup.System, "patch", "configmap", "config-permission", "--type=merge", "-p", patch)
}
