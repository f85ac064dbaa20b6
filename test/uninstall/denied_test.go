package uninstall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// removeWith runs uninstall.sh --yes, and further arguments, with a kubectl that is a script, and returns its output, the calls of kubectl and
// whether it ended without an error. The script of kubectl has the call in $*, and a folder for its state in $bin.
func removeWith(t *testing.T, kubectl string, args ...string) (out string, calls []string, ok bool) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\nbin='" + bin + "'\necho \"$*\" >>$bin/calls\n" + kubectl
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "../../hack/uninstall.sh", append([]string{"--yes"}, args...)...)
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	raw, err := command.CombinedOutput()
	called, readErr := os.ReadFile(filepath.Join(bin, "calls"))
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		t.Fatal(readErr)
	}
	return string(raw), strings.Split(string(called), "\n"), err == nil
}

// contains reports whether a call contains all parts.
func contains(calls []string, parts ...string) bool {
next:
	for _, c := range calls {
		for _, p := range parts {
			if !strings.Contains(c, p) {
				continue next
			}
		}
		return true
	}
	return false
}

func TestUninstallGoesOnAfterADenialAndListsWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		// denied are arguments of deletions, left those of the lists in which something is left.
		denied, left []string
		stops        bool
	}{
		// Webhooks deny requests without their processes, and controllers write finalizers again.
		"webhooks":  {[]string{"validatingwebhookconfigurations,"}, []string{"validatingwebhookconfigurations,"}, true},
		"processes": {[]string{"deployments.apps"}, []string{"namespace"}, true},
		"others": {[]string{"controllerrevisions.apps", "poddisruptionbudgets.policy", "rolebindings,roles", "flowschemas", "clusterroles"},
			[]string{"controllerrevisions.apps", "poddisruptionbudgets.policy", "rolebindings,roles", "validatingwebhookconfigurations,"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var script strings.Builder
			script.WriteString("case \"$*\" in\n")
			for _, d := range tc.denied {
				fmt.Fprintf(&script, "\"delete \"*\" %s\"*) echo \"denied: %[1]s\" >&2; exit 1 ;;\n", d)
			}
			for _, l := range tc.left {
				fmt.Fprintf(&script, "\"get %s\"*) case \"$*\" in *\" -l \"* | *\" namespace \"*) echo \"left: %[1]s\" ;; esac ;;\n", l)
			}
			script.WriteString("\"get crd \"*) exit 1 ;;\nesac\n")
			out, calls, ok := removeWith(t, script.String())
			for _, want := range slices.Concat(tc.denied, tc.left) {
				if !strings.Contains(out, "denied: "+want) && !strings.Contains(out, "left: "+want) {
					t.Errorf("%s is not named", want)
				}
			}
			_, list, listed := strings.Cut(out, "Not removed:")
			for _, l := range tc.left {
				listed = listed && strings.Contains(list, "left: "+l)
			}
			removed := contains(calls, "delete", "namespace altershieldoperator-system")
			if ok || !listed || strings.Contains(out, "run this again") != tc.stops || removed == tc.stops {
				t.Errorf("ended without an error: %t, what is left is listed: %t, the namespace is deleted: %t", ok, listed, removed)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// A write of its status between the deletions of its objects stops the deletion of a CRD until the CRD changes.
func TestUninstallChangesACRDWhoseDeletionDoesNotEnd(t *testing.T) {
	out, calls, ok := removeWith(t, `crd=changepods.app.ops.cloud.alipay.com
case "$*" in
"delete "*" crd $crd"*) [ -e $bin/annotated ] || exit 1; touch $bin/deleted ;;
"annotate crd $crd "*) touch $bin/annotated ;;
"get crd $crd -o"*) echo 2026-01-01T00:00:00Z ;;
"get crd "*) exit 1 ;;
"get crds "*) [ -e $bin/deleted ] || printf '%s\tapp.ops.cloud.alipay.com\t\n' $crd ;;
esac
`)
	if !ok || !contains(calls, "annotate crd", "deletion-continued") {
		t.Errorf("ok %t\n%s", ok, out)
	}
}

// kubectl passes on what a plugin for credentials writes to stderr.
func TestUninstallIgnoresWarnings(t *testing.T) {
	out, _, ok := removeWith(t, `echo a warning of a plugin >&2
case "$*" in
"get crd changeworkloads."*) ;;
"get crd "*) exit 1 ;;
"get changeworkloads."*) echo '{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}' ;;
esac
`)
	if !ok || strings.Contains(out, "Not removed") {
		t.Error(out)
	}
}

func TestUninstallSaysWhyTheNamespaceStays(t *testing.T) {
	const message = "Discovery failed for some groups"
	out, _, ok := removeWith(t, `case "$*" in
"get namespace "*status.conditions*) echo '`+message+`' ;;
"get namespace "*) echo namespace/altershieldoperator-system ;;
"get crd "*) exit 1 ;;
esac
`)
	if ok || !strings.Contains(out, message) {
		t.Error(out)
	}
}

func TestUninstallIsNotDoneWhenItCannotListWhatIsLeft(t *testing.T) {
	const message = "Unable to connect to the server"
	for _, list := range []string{"get validatingwebhookconfigurations,", "get rolebindings,roles ", "get poddisruptionbudgets.policy -A -l ", "get namespace "} {
		out, _, ok := removeWith(t, `case "$*" in
"`+list+`"*) echo '`+message+`' >&2; exit 1 ;;
"get crd "*) exit 1 ;;
esac
`)
		if ok || !strings.Contains(out, message) || strings.Contains(out, "is removed") {
			t.Errorf("%s: ended without an error: %t\n%s", list, ok, out)
		}
	}
}
