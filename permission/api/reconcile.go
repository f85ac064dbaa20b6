package api

import "time"

// PodReport names pods of a cluster that live: the body of
// POST /v1/clusters/{cluster}/pods/reconcile, answered 200 by a
// PodReportResult. The centre cannot see clusters, so the one who can reports
// once an hour; grants of pods that are not named are revoked.
//
// A report comes in pages, each complete in itself: pods ordered by UID, and a
// page speaks for all UIDs above After and up to Through. The first page has
// no After, the last no Through, and the next page's After is this one's
// Through; one page with neither speaks for the whole cluster. At most 5000
// pods a page. Only pods that asked for a permission set need be named.
//
// A pod is named as long as its object exists and it is not finished: its
// applications for other addresses than IPs are revoked, those for exactly
// IPs are kept. A pod without IPs keeps all.
type PodReport struct {
	// Observed is when the pods were listed. An application whose attempt began
	// after Observed - 2 min is left alone; a report whose Observed is older
	// than 1 h, or in the future, is refused (400).
	Observed time.Time `json:"observed"`
	After    string    `json:"after,omitempty"`
	Through  string    `json:"through,omitempty"`
	// Empty must be true when Pods is empty: that no pod of the range lives is
	// said, not left out (400 otherwise).
	Empty bool      `json:"empty,omitempty"`
	Pods  []LivePod `json:"pods"`
}

// LivePod is a pod that exists and has not finished.
type LivePod struct {
	UID string   `json:"uid"`
	IPs []string `json:"ips"`
}

// PodReportResult says what a page led to.
type PodReportResult struct {
	// Checked counts the range's applications that are neither Revoked nor
	// Leaked, Revoked those that are Revoking now because of this page.
	Checked int `json:"checked"`
	Revoked int `json:"revoked"`
	// Applications are the ids of the revoked ones, at most 100.
	Applications []string `json:"applications,omitempty"`
}
