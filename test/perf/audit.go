package perf

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// writes counts the writes of one Breakwater binary, by what they were.
type writes struct {
	// Objects are writes that were made, Events apart.
	Objects int
	// Refused are writes that the API server refused: conflicts.
	Refused int
	// Events are Kubernetes Events.
	Events int
}

// entry is what matters of a line of the API server's audit log.
type entry struct {
	Stage string
	Verb  string
	User  struct{ Username string }
	Ref   struct {
		Resource  string
		Namespace string
	} `json:"objectRef"`
	Status struct{ Code int } `json:"responseStatus"`
}

// auditSize returns where the audit log ends now.
func auditSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return info.Size(), nil
}

// countWrites counts the writes of Breakwater's ServiceAccounts to a namespace
// since an earlier end of the audit log, by binary.
func countWrites(path string, since int64, account, namespace string) (map[string]writes, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if _, err := f.Seek(since, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	out := map[string]writes{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || e.Ref.Namespace != namespace {
			continue // the first line may be half of one
		}
		binary, ours := strings.CutPrefix(e.User.Username, account)
		if !ours {
			continue
		}
		n := out[binary]
		switch {
		case e.Ref.Resource == "events":
			n.Events++
		case e.Status.Code >= 400:
			n.Refused++
		default:
			n.Objects++
		}
		out[binary] = n
	}
	return out, lines.Err()
}
