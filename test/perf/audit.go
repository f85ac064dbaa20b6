package perf

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// requests counts requests of Breakwater's ServiceAccounts in a namespace.
type requests struct {
	// Writes are successful writes, without Events.
	Writes int
	// Rejected are writes that the API server rejected, mostly conflicts.
	Rejected int
	// Events are Kubernetes Events.
	Events int
	// Reads are GETs and LISTs, but not watches.
	Reads int
	// Last is the time at which the last of them was answered.
	Last time.Time
}

func (r requests) plus(o requests) requests {
	last := r.Last
	if o.Last.After(last) {
		last = o.Last
	}
	return requests{r.Writes + o.Writes, r.Rejected + o.Rejected, r.Events + o.Events, r.Reads + o.Reads, last}
}

// call is one kind of request: its binary, verb and resource.
type call struct{ Binary, Verb, Resource string }

// entry has the used fields of a line of the API server's audit log.
type entry struct {
	Stage string
	Verb  string
	User  struct{ Username string }
	Ref   struct {
		Resource    string
		Subresource string
		Namespace   string
	} `json:"objectRef"`
	Status struct{ Code int } `json:"responseStatus"`
	// Answered is the time of the stage ResponseComplete.
	Answered time.Time `json:"stageTimestamp"`
}

// auditSize returns the current size of the audit log.
func auditSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return info.Size(), nil
}

// countRequests counts the requests of accounts with a prefix in a namespace ("" is everywhere) since
// an earlier size of the audit log. It returns an error if the log was rotated
// meanwhile.
func countRequests(path string, since int64, account, namespace string) (map[call]requests, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	if end < since {
		return nil, fmt.Errorf("the audit log %s was rotated during the measurement: measure again", path)
	}
	if _, err := f.Seek(since, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	out := map[call]requests{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Stage != "ResponseComplete" || namespace != "" && e.Ref.Namespace != namespace {
			continue // the first line may be incomplete
		}
		binary, ours := strings.CutPrefix(e.User.Username, account)
		if !ours {
			continue
		}
		resource := e.Ref.Resource
		if e.Ref.Subresource != "" {
			resource += "/" + e.Ref.Subresource
		}
		c := call{binary, e.Verb, resource}
		n := requests{Last: e.Answered}
		switch {
		case e.Verb == "watch":
			continue
		case e.Verb == "get" || e.Verb == "list":
			n.Reads++
		case e.Ref.Resource == "events":
			n.Events++
		case e.Status.Code >= 400:
			n.Rejected++
		default:
			n.Writes++
		}
		out[c] = out[c].plus(n)
	}
	return out, lines.Err()
}
