//go:build controlplane

package protection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// removedAnnotation is the annotation of a request that removed or weakened a protection.
const removedAnnotation = "breakwater-protection-removed/removed"

func TestTheAuditLogRecordsWhoRemovedAProtection(t *testing.T) {
	t.Parallel()
	always, cascading := deleteProtectionLabel+"=Always", deleteProtectionLabel+"=Cascading"
	for name, tc := range map[string]struct {
		label    string
		harmless []string // labels of a request that weakens nothing
		weaker   string
	}{
		"the label is removed":          {disableCascadingLabel + `: "true"`, []string{"team=a"}, disableCascadingLabel + "-"},
		"the label has another value":   {disableCascadingLabel + `: "true"`, []string{"team=a"}, disableCascadingLabel + "=false"},
		"a weaker protection is set":    {deleteProtectionLabel + ": Always", []string{disableCascadingLabel + "=true"}, cascading},
		"the other label is taken away": {deleteProtectionLabel + ": Cascading", []string{"team=a"}, deleteProtectionLabel + "-"},
		"after a stronger one was set":  {deleteProtectionLabel + ": Cascading", []string{always}, deleteProtectionLabel + "-"},
		"after labels were replaced":    {disableCascadingLabel + `: "true"`, []string{disableCascadingLabel + "-", cascading}, deleteProtectionLabel + "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.apply(t, strings.Replace(protectedDeployment, disableCascadingLabel+`: "true"`, tc.label, 1))
			as := []string{"label", "deployment", "web", "--as=alice", "--as-group=system:masters", "--overwrite"}
			n.run(t, append(as, tc.harmless...)...)
			n.run(t, append(as, tc.weaker)...)
			n.await(t, "the audit log has the request", func() error {
				removals, err := n.removals()
				if err != nil {
					return err
				}
				if len(removals) != 1 {
					return fmt.Errorf("%d requests", len(removals))
				}
				r := removals[0]
				if want := "alice removed or weakened the protection from deletion of deployments web"; r.Annotations[removedAnnotation] != want || r.User.Username != "alice" || r.Time.IsZero() {
					t.Errorf("got %+v, want %q", r, want)
				}
				return nil
			})
		})
	}
}

// auditEvent is a request in the audit log.
type auditEvent struct {
	// User is the user who is impersonated.
	User struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Namespace string `json:"namespace"`
	} `json:"objectRef"`
	Time        time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// removals returns the requests in the namespace that removed or weakened a protection.
func (n *namespace) removals() ([]auditEvent, error) {
	log, err := os.ReadFile(filepath.Join(plane.Logs(), "audit.log"))
	if err != nil {
		return nil, err
	}
	var found []auditEvent
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(n.name)) || !bytes.Contains(line, []byte(removedAnnotation)) || !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read %s: %w", line, err)
		}
		if e.Object.Namespace == n.name {
			found = append(found, e)
		}
	}
	return found, nil
}
