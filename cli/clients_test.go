package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// People copy the commands.
func TestPrintedCommandsSelectTheSameCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kube config")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://c.example"}}],
		"contexts":[{"name":"prod","context":{"cluster":"c"}}],"current-context":"prod"}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[[2]string]string{
		{"", file}:     " --kubeconfig '" + file + "'",
		{"prod", file}: " --kubeconfig '" + file + "' --context prod",
	} {
		var out bytes.Buffer
		a := &app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, flags: genericclioptions.NewConfigFlags(true)}
		*a.flags.Context, *a.flags.KubeConfig = flags[0], flags[1]
		c, err := a.clients()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.command("status", "deployment/web", "shop"); got != "kubectl breakwater status deployment/web -n shop"+want {
			t.Errorf("%v: got %s", flags, got)
		}
		e := diagnosis.Explanation{WaysOut: []diagnosis.WayOut{{Do: "wait"}, {Do: "delete it", Command: "kubectl delete pod web -n shop"}}}
		if err := a.printExplanation("", e, c.flags); err != nil {
			t.Fatal(err)
		}
		if got := "  wait\n  delete it\n    kubectl delete pod web -n shop" + want + "\n"; !strings.HasSuffix(out.String(), got) {
			t.Errorf("%v: printed\n%s", flags, out.String())
		}
	}
}

func TestACommandWithoutAClusterSaysHowToSelectOne(t *testing.T) {
	noContext := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(noContext, []byte("{clusters: [{name: a, cluster: {server: 'http://a.example'}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "no cluster is selected: set KUBECONFIG or --kubeconfig, and a current context"
	for _, tc := range []struct{ kubeconfig, server, want string }{
		{os.DevNull, "", none},
		{noContext, "", none},
		{os.DevNull, "http://localhost:8080", ""},
	} {
		a := &app{flags: genericclioptions.NewConfigFlags(true)}
		*a.flags.KubeConfig, *a.flags.APIServer = tc.kubeconfig, tc.server
		if _, err := a.clients(); (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("server %q: error %v, want %q", tc.server, err, tc.want)
		}
	}
}
