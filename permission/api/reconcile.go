package api

import "time"

// PodReport lists the pods that exist in a cluster: the body of
// POST /v1/clusters/{cluster}/pods/reconcile, answered 200 by a
// PodReportResult. The centre cannot see clusters, so the permission controller
// reports once an hour; the centre revokes grants of unlisted pods.
//
// A report consists of pages of at most 5000 pods, ordered by UID. A page covers
// all UIDs above After and up to Through. The first page has no After, the last
// no Through; the After of a page is the Through of the page before. A single
// page with neither covers the whole cluster. Only pods that requested a
// permission set need to be listed.
//
// A pod is listed while its object exists and it has not finished. Its
// applications for exactly IPs are kept; those for other addresses are revoked.
// If IPs is empty, all are kept.
type PodReport struct {
	// Observed is when the pods were listed. Applications whose attempt began after
	// Observed - 2 min are ignored. A report is rejected (400) if Observed is more
	// than 1 h ago or in the future.
	Observed time.Time `json:"observed"`
	After    string    `json:"after,omitempty"`
	Through  string    `json:"through,omitempty"`
	// Empty must be true when Pods is empty (400 otherwise): it confirms that the
	// range has no pods.
	Empty bool      `json:"empty,omitempty"`
	Pods  []LivePod `json:"pods"`
}

// LivePod is a pod that exists and has not finished.
type LivePod struct {
	UID string   `json:"uid"`
	IPs []string `json:"ips"`
}

// PodReportResult is the result of one page of a report.
type PodReportResult struct {
	// Checked is the number of applications in the range that are neither Revoked
	// nor Leaked.
	Checked int `json:"checked"`
	// Revoked is the number of applications whose revocation this page started.
	Revoked int `json:"revoked"`
	// Applications are the ids of the revoked applications, at most 100.
	Applications []string `json:"applications,omitempty"`
}
