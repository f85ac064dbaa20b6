package altershield

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The arguments and answers of calls. Client adds the identity (platform, tenant,
// scene, creator, phase, ...) from Config. A zero time is sent as now.

// OpenOrder has the arguments of Client.OpenOrder.
type OpenOrder struct {
	// OrderID is the client's id of the order (bizExecOrderId), at most 128 bytes.
	// It is unique per platform; see v1alpha1.OrderID.
	OrderID string
	// Title is for people; it is truncated to 256 bytes. Default: the OrderID.
	Title string
	// URL links to the release; it is omitted if longer than 512 bytes.
	URL string
	// Apps are the affected applications.
	Apps []string
	// Contents are the changed objects. The server requires at least one.
	Contents []Content
	// Params is sent as a JSON string; nil is {}.
	Params any
	// Emergency sends scenario code 01 instead of the configured one.
	Emergency bool
}

// Content is a changed object, such as {Deployment, default/sleep}.
type Content struct {
	Type string
	Name string
}

// OrderAnswer is the answer to OpenOrder.
type OrderAnswer struct {
	// OrderID is the server's id of the order; empty if Existed.
	OrderID string
	// URL is the order's page at the server; empty if Existed.
	URL string
	// Existed means that the server answered 106: an earlier call, whose answer
	// was lost, had opened the order.
	Existed bool
}

// StartOrder has the arguments of Client.StartOrder.
type StartOrder struct {
	OrderID   string
	StartTime time.Time
	Emergency bool
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// StartBatch has the arguments of Client.StartBatch.
type StartBatch struct {
	OrderID string
	// BatchNo is the number of the batch, from 0.
	BatchNo int32
	// TotalBatches is the known number of batches of the release. It is sent as
	// BatchNo+1 if it is smaller.
	TotalBatches int32
	// Last marks the last batch.
	Last      bool
	StartTime time.Time
	Emergency bool
	// Info is passed to the server's rules. Its pods are also sent as
	// effectiveTargetLocations, which the rules do not receive.
	Info BatchInfo
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// BatchInfo is the extInfo of a batch.
type BatchInfo struct {
	Namespace    string   `json:"namespace"`
	WorkloadType string   `json:"workloadType"`
	WorkloadName string   `json:"workloadName"`
	Pods         []string `json:"pods"`
	Revision     string   `json:"revision"`
}

// StartAnswer has the node that a start created. The verdict follows in a
// callback.
type StartAnswer struct {
	// NodeID is the server's id of the node; callbacks contain it.
	NodeID string
	// SkipCheck means that there will be no check and no callback.
	SkipCheck bool
	// URL is the node's page at the server.
	URL string
}

// Finish has the arguments of Client.Finish.
type Finish struct {
	OrderID string
	NodeID  string
	// Failed means that the change itself failed.
	Failed bool
	// Message is for people; it is truncated to 16384 bytes.
	Message string
	// Result is sent as a JSON string, unless nil.
	Result     any
	FinishTime time.Time
	// Pods replace the batch's effectiveTargetLocations, unless empty.
	Pods []string
}

// FinishAnswer is the answer to a finish. The verdict follows in a callback. The
// server's skipCheck is true for every finish and is therefore ignored.
type FinishAnswer struct {
	NodeID string
	URL    string
}

// Resubmit has the arguments of Client.Resubmit.
type Resubmit struct {
	OrderID string
	NodeID  string
}

// Retrieve has the arguments of Client.Retrieve.
type Retrieve struct {
	OrderID string
	NodeID  string
	Stage   v1alpha1.Stage
}

// RetrieveAnswer is the state of a stage at the server.
type RetrieveAnswer struct {
	// Complete is `finished` of the server: the check is complete.
	Complete bool
	// Verdict is the server's value. It is fail also while a check runs and after
	// a timeout: see Passed.
	Verdict string
	URL     string
}

// Passed reports whether the check is complete and passed. Every other answer
// is no verdict.
func (a RetrieveAnswer) Passed() bool {
	return a.Complete && v1alpha1.ParseVerdict(a.Verdict) == v1alpha1.OutcomePass
}

// CloseState is the final state of an order.
type CloseState string

// The final states.
const (
	CloseSuccess  CloseState = "SUCCESS"
	CloseRollback CloseState = "ROLLBACK"
	CloseCancel   CloseState = "CANCEL"
)

// CloseOrder has the arguments of Client.CloseOrder. No verdict depends on the
// call.
type CloseOrder struct {
	OrderID string
	State   CloseState
	// Message is for people; it is truncated to 16384 bytes.
	Message    string
	FinishTime time.Time
}

// SubmitEvent has the arguments of Client.SubmitEvent. The server records the
// event without a check or a callback.
type SubmitEvent struct {
	// OrderID is the id of the event's order; see EventOrderID. The server creates a
	// closed order with this id, unless one exists. Therefore the id must not
	// be that of the release's order.
	OrderID string
	// Title, URL, Apps, Contents, Params and Emergency are as in OpenOrder.
	Title     string
	URL       string
	Apps      []string
	Contents  []Content
	Params    any
	Emergency bool
	// StartTime and FinishTime are the start and the end of the event.
	StartTime  time.Time
	FinishTime time.Time
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// EventAnswer is the order of the event at the server; empty if it existed.
type EventAnswer struct {
	OrderID string
	URL     string
}
