//go:build controlplane

package openkruise

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// turnBudgetsOff deletes OpenKruise's webhook for budgets as the page says. Until then the
// webhook denies the budget of the manifests, and the plugin and the installation report it.
func turnBudgetsOff(t *testing.T, manifests string) {
	t.Helper()
	admit := func(ctx context.Context) (string, error) {
		command := exec.CommandContext(ctx, "kubectl", "apply", "--dry-run=server", "-f", "-")
		command.Stdin = strings.NewReader(manifests)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	await(t, "OpenKruise denies budgets", func(ctx context.Context) error {
		if out, err := admit(ctx); err == nil || !strings.Contains(out, "feature PodUnavailableBudget is invalid") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	const failed = "FAIL protection: webhooks of others: OpenKruise's webhook vpodunavailablebudget.kb.io denies every budget"
	if out := doctor(t); !strings.Contains(out, failed) {
		t.Errorf("doctor does not print %q:\n%s", failed, out)
	}
	const warning = "warning: OpenKruise's webhook vpodunavailablebudget.kb.io denies budgets"
	if out := checkCRDs(t); !strings.Contains(out, warning) {
		t.Errorf("the installation does not print %q:\n%s", warning, out)
	}

	script := documented(t)
	await(t, "the documented command is not in conflict with OpenKruise", func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	await(t, "budgets are admitted", func(ctx context.Context) error {
		if out, err := admit(ctx); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	const passed = "OK   protection: webhooks of others: none is called for budgets"
	if out := doctor(t); !strings.Contains(out, passed) {
		t.Errorf("doctor does not print %q:\n%s", passed, out)
	}
	if out := checkCRDs(t); out != "" {
		t.Errorf("the installation prints %s", out)
	}
}

// documented returns the command of the page.
func documented(t *testing.T) string {
	t.Helper()
	const name = "../../docs/protection/openkruise.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := commands.Of(name, string(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if strings.Contains(c.Text, "jq ") {
			return c.Text
		}
	}
	t.Fatalf("%s has no command with jq", name)
	return ""
}

// doctor runs `kubectl breakwater doctor`. It fails in any case, because Breakwater runs
// in the process of the tests.
func doctor(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	cli.Run(t.Context(), "test", []string{"doctor"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	return out.String()
}

func checkCRDs(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../hack/check-crds.sh").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}
