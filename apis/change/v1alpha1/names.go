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

// separator separates the parts of object names.
const separator = "--x--"

// TimeLayout is the time format of the fields of the AlterShield Operator, in UTC. The
// field with the suffix Unix has the same time in seconds.
const TimeLayout = "2006-01-02 15:04:05"

// FormatTime formats a time with TimeLayout.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// ChangeWorkloadName returns `<workload>--x--<version>`. A name that is too long is
// shortened with a hash of the whole name.
func ChangeWorkloadName(workload, version string) string {
	// Reserve space for the suffix of the ChangePods: the separator and ten digits.
	return shorten(workload+separator+version, validation.DNS1123SubdomainMaxLength-len(separator)-10)
}

// ChangePodName returns `<changeworkload>--x--<n>`, n from 1.
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

// LabelValue returns a valid label value (63 characters), shortened with a hash if
// necessary.
func LabelValue(value string) string {
	return shorten(value, validation.LabelValueMaxLength)
}

// OrderID returns the bizExecOrderId of a release: unique by cluster, namespace,
// workload, version and attempt, and at most 128 bytes (the server's limit), shortened
// with a hash if necessary. The prefix of the workload's UID distinguishes a workload
// that was deleted and created again, because its attempts restart.
func OrderID(cluster, namespace string, ref WorkloadRef, version string, attempt int64) string {
	uid := string(ref.UID)
	return shorten(fmt.Sprintf("%s/%s/%s/%s/%s/%s/%d",
		cluster, namespace, ref.Kind, ref.Name, uid[:min(8, len(uid))], version, attempt), 128)
}

// OrderHash returns the value of OrderLabel for an order id.
func OrderHash(orderID string) string {
	sum := sha256.Sum256([]byte(orderID))
	return hex.EncodeToString(sum[:16])
}

// shorten returns s if it has at most limit bytes, else its prefix, a dash and 16
// hexadecimal characters of its hash.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	head := strings.TrimRight(s[:limit-17], "-._/")
	return head + "-" + hex.EncodeToString(sum[:8])
}
