package altershield

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// What callers say and hear. The identity (platform, tenant, scene, creator,
// phase, ...) is not here: Client adds it from Config. A time that is zero is
// sent as now.

// OpenOrder opens the change order of a release. OrderID is unique at the
// server by platform; see v1alpha1.OrderID.
type OpenOrder struct {
	// OrderID is our id of the order (bizExecOrderId); at most 128 bytes.
	OrderID string
	// Title is for people; cut to 256 bytes. Default the OrderID.
	Title string
	// URL shows the release to people; left out when longer than 512 bytes.
	URL string
	// Apps are the applications that the change influences.
	Apps []string
	// Contents are what changes; the server wants at least one.
	Contents []Content
	// Params is sent as a JSON string; nil is {}.
	Params any
	// Emergency sends scenario 01 instead of the configured one.
	Emergency bool
}

// Content is one thing that changes, such as {Deployment, default/sleep}.
type Content struct {
	Type string
	Name string
}

// OrderAnswer is the server's order.
type OrderAnswer struct {
	// OrderID is the server's id; empty when Existed.
	OrderID string
	// URL shows the order to people; empty when Existed.
	URL string
	// Existed says that the server answered 106: an earlier call, whose answer
	// was lost, had opened the order.
	Existed bool
}

// StartOrder asks for the PRE check of a whole order.
type StartOrder struct {
	OrderID   string
	StartTime time.Time
	Emergency bool
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// StartBatch asks for the PRE check of a batch.
type StartBatch struct {
	OrderID string
	// BatchNo counts from 0.
	BatchNo int32
	// TotalBatches is how many batches the release has, as far as is known;
	// sent as at least BatchNo+1.
	TotalBatches int32
	// Last marks the last batch.
	Last      bool
	StartTime time.Time
	Emergency bool
	// Info is what the server's rules see of the batch; its pods are also sent
	// as effectiveTargetLocations, which the rules do not see.
	Info BatchInfo
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// BatchInfo is extInfo of a batch.
type BatchInfo struct {
	Namespace    string   `json:"namespace"`
	WorkloadType string   `json:"workloadType"`
	WorkloadName string   `json:"workloadName"`
	Pods         []string `json:"pods"`
	Revision     string   `json:"revision"`
}

// StartAnswer is the node that a start made. The verdict is called back.
type StartAnswer struct {
	// NodeID is the server's id of the node: a callback names it.
	NodeID string
	// SkipCheck says that the server will not check and not call back.
	SkipCheck bool
	// URL shows the node to people.
	URL string
}

// Finish says that the change of a node is done and asks for its POST check.
type Finish struct {
	OrderID string
	NodeID  string
	// Failed says that the change itself failed. The zero value is success.
	Failed bool
	// Message is for people; cut to 16384 bytes.
	Message string
	// Result is sent as a JSON string, unless nil.
	Result     any
	FinishTime time.Time
	// Pods replace the batch's effectiveTargetLocations, unless empty.
	Pods []string
}

// FinishAnswer is the answer to a finish. The verdict is called back. The
// server's skipCheck is true on every finish and means nothing here.
type FinishAnswer struct {
	NodeID string
	URL    string
}

// Retrieve asks for the verdict of a node's stage.
type Retrieve struct {
	OrderID string
	NodeID  string
	Stage   v1alpha1.Stage
}

// RetrieveAnswer is what the server knows of a stage.
type RetrieveAnswer struct {
	Finished bool
	// Verdict is the server's word. The server says fail also while a check is
	// running and after one timed out: see Passed.
	Verdict string
	URL     string
}

// Passed is the one thing of a retrieve that can be believed: a check that ran
// to its end and passed. Everything else is no verdict.
func (a RetrieveAnswer) Passed() bool {
	return a.Finished && v1alpha1.ParseVerdict(a.Verdict) == v1alpha1.OutcomePass
}

// FinishState is how an order ended.
type FinishState string

// The states.
const (
	FinishSuccess  FinishState = "SUCCESS"
	FinishRollback FinishState = "ROLLBACK"
	FinishCancel   FinishState = "CANCEL"
)

// FinishOrder closes an order; best effort, nothing depends on it.
type FinishOrder struct {
	OrderID string
	State   FinishState
	// Message is for people; cut to 16384 bytes.
	Message    string
	FinishTime time.Time
}

// SubmitEvent records something at the server, which checks nothing and calls
// nothing back.
type SubmitEvent struct {
	// OrderID is the id of the record; see EventOrderID. The server opens a
	// finished order under it, and does nothing when one exists: the id of a
	// release's own order would record nothing.
	OrderID string
	// Title, URL, Apps, Contents, Params and Emergency are as in OpenOrder.
	Title     string
	URL       string
	Apps      []string
	Contents  []Content
	Params    any
	Emergency bool
	// StartTime and FinishTime are when it began and ended.
	StartTime  time.Time
	FinishTime time.Time
	// ExtensionInfo is for the server's change analysis.
	ExtensionInfo map[string][]string
}

// EventAnswer is the record at the server; empty when it existed.
type EventAnswer struct {
	OrderID string
	URL     string
}
