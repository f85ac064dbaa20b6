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
// A pod is listed while its object exists and it is not completed (phase Succeeded
// or Failed). Its applications for exactly IPs are kept; those for other addresses
// are revoked, unless it has hostNetwork. If IPs is empty, all are kept.
//
// The name of a cluster belongs to the cluster that reports or requests first. A report
// of another one is rejected (403). A page that would revoke more than 10 applications and more than
// 20 % of those that it checks revokes none of them, unless an admin has confirmed it with
// POST /v1/clusters/{cluster}/pods/confirm.
type PodReport struct {
	// ClusterUID is the UID of namespace kube-system of the cluster.
	ClusterUID string `json:"clusterUID"`
	// Observed is when the pods were listed. Applications whose attempt began after
	// Observed - 2 min are ignored. A report is rejected (400) if Observed is more
	// than 1 h ago, or more than 1 min in the future.
	Observed time.Time `json:"observed"`
	After    string    `json:"after,omitempty"`
	Through  string    `json:"through,omitempty"`
	// Empty must be true when Pods is empty (400 otherwise): it confirms that the
	// range has no pods.
	Empty bool      `json:"empty,omitempty"`
	Pods  []LivePod `json:"pods"`
}

// LivePod is a pod that exists and is not completed (phase Succeeded or Failed).
type LivePod struct {
	UID string   `json:"uid"`
	IPs []string `json:"ips"`
}

// PodReportResult is the result of one page of a report.
type PodReportResult struct {
	// Checked is the number of applications in the range whose revocation was not
	// requested: those that are Requested, Applying, Granted, Denied or Failed.
	Checked int `json:"checked"`
	// Revoked is the number of applications whose revocation this page started.
	Revoked int `json:"revoked"`
	// Held is the number of applications that the page does not revoke, although their
	// pods are not listed, because that needs a confirmation.
	Held int `json:"held,omitempty"`
	// Applications are the ids of the applications that Revoked or Held counts, at most 100.
	Applications []string `json:"applications,omitempty"`
}

// Cluster is the state of the reports of a cluster: the answer of
// GET /v1/clusters/{cluster} and of a confirmation.
type Cluster struct {
	Name string `json:"name"`
	// UID is the cluster that has the name: the UID of its namespace kube-system.
	UID string `json:"uid"`
	// Reported is when the last report was complete.
	Reported *time.Time `json:"reported,omitempty"`
	// Held is the number of applications that the last report did not revoke, because that
	// needs a confirmation.
	Held int `json:"held"`
	// Confirmed is how many applications the next reports may revoke, until
	// ConfirmedUntil.
	Confirmed      int        `json:"confirmed"`
	ConfirmedUntil *time.Time `json:"confirmedUntil,omitempty"`
}

// ReportConfirmation is the body of POST /v1/clusters/{cluster}/pods/confirm: an admin
// states how many applications a report may revoke, or that another cluster has the name
// now. The answer is a Cluster. It takes effect with the next report, and lasts for 24 h or until that
// number of applications was revoked.
type ReportConfirmation struct {
	// Revoke is how many applications reports may revoke within 24 h: the value of held.
	Revoke int `json:"revoke,omitempty"`
	// ClusterUID is the UID of the cluster that has the name now, for instance because
	// the cluster was installed again; empty keeps it.
	ClusterUID string `json:"clusterUID,omitempty"`
}
