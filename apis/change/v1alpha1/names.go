package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// separator stands between the parts of our objects' names.
const separator = "--x--"

// TimeLayout is how the original's fields write a time. It has no zone, so it
// is always UTC; the field beside it has the seconds.
const TimeLayout = "2006-01-02 15:04:05"

// FormatTime returns a time for one of the original's fields.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// ChangeWorkloadName is `<workload>--x--<version>`; a name that would be too
// long is shortened with a hash of the whole.
func ChangeWorkloadName(workload, version string) string {
	// Room is left for the suffix of its ChangePods: the separator and ten digits.
	return shorten(workload+separator+version, validation.DNS1123SubdomainMaxLength-len(separator)-10)
}

// ChangePodName is `<changeworkload>--x--<n>`, n from 1.
func ChangePodName(changeWorkload string, n int) string {
	return changeWorkload + separator + strconv.Itoa(n)
}

// ChangePodIndex returns the n of a ChangePod's name, or 0.
func ChangePodIndex(name string) int {
	at := strings.LastIndex(name, separator)
	if at < 0 {
		return 0
	}
	n, err := strconv.Atoi(name[at+len(separator):])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// LabelValue returns a value that fits a label (63 characters), shortened with
// a hash where it is too long.
func LabelValue(value string) string {
	return shorten(value, validation.LabelValueMaxLength)
}

// OrderID is the bizExecOrderId of a release: unique by cluster, namespace,
// workload, version and attempt, and at most 128 bytes (the server's limit),
// shortened with a hash where it is longer. The beginning of the workload's
// UID tells one that was deleted and created again, whose attempts count anew.
func OrderID(cluster, namespace string, ref WorkloadRef, version string, attempt int64) string {
	uid := string(ref.UID)
	return shorten(fmt.Sprintf("%s/%s/%s/%s/%s/%s/%d",
		cluster, namespace, ref.Kind, ref.Name, uid[:min(8, len(uid))], version, attempt), 128)
}

// OrderHash is the value of OrderLabel for an order id.
func OrderHash(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return hex.EncodeToString(sum[:16])
}

// shorten returns s if it has at most limit bytes, else its beginning, a dash
// and 16 hexadecimal characters of its hash.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	head := strings.TrimRight(s[:limit-17], "-._/")
	return head + "-" + hex.EncodeToString(sum[:8])
}
