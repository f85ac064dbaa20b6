package altershield

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Script says how the double behaves. The zero value passes every check at
// once and has no faults. See the package doc for examples.
type Script struct {
	// CallbackURL replaces Options.CallbackURL, unless empty.
	CallbackURL string `json:"callbackUrl,omitempty"`
	// CheckTimeout replaces Options.CheckTimeout, unless zero.
	CheckTimeout metav1.Duration `json:"checkTimeout,omitzero"`
	// Default is the behaviour of a check that no rule matches.
	Default Behaviour `json:"default,omitzero"`
	// Checks are tried in order; the first that matches and applies decides.
	Checks []CheckRule `json:"checks,omitempty"`
	// Faults are tried in order on each call, likewise.
	Faults []FaultRule `json:"faults,omitempty"`
}

// CheckRule gives checks a behaviour.
type CheckRule struct {
	Match Match `json:"match,omitzero"`
	// Nth applies the rule from the nth matching check on, counted from 1
	// since the script was set. 0 is from the first on.
	Nth int `json:"nth,omitempty"`
	// Times is how many matching checks it applies to. 0 is 1 where Nth is
	// set, else all.
	Times int       `json:"times,omitempty"`
	Then  Behaviour `json:"then,omitzero"`
}

// Match says which checks are meant; an empty field matches all.
type Match struct {
	Stage Stage `json:"stage,omitempty"`
	// Step is ORDER, BATCH or RELEASE, the synchronous check. That one is meant
	// only where the step says so.
	Step string `json:"step,omitempty"`
	// BatchNo is the batch's number, from 0.
	BatchNo *int64 `json:"batchNo,omitempty"`
	// Pod is the name of one of the batch's pods; * and ? are wildcards.
	Pod string `json:"pod,omitempty"`
	// Order is a part of the bizExecOrderId.
	Order string `json:"order,omitempty"`
	// Namespace and Workload are those of extInfo.
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload,omitempty"`
}

// Behaviour is what becomes of one check, and how it is called back.
type Behaviour struct {
	// Verdict is the word: pass (the default), fail, or any other: none,
	// inconc, one that nobody knows. Only pass passes at retrieve.
	Verdict string `json:"verdict,omitempty"`
	// Ending is judged (the default), timeout or exception. The latter two
	// are called back as pass without rules, and retrieve says fail.
	Ending Ending `json:"ending,omitempty"`
	// Never: the check does not end; not even the check timeout ends it.
	Never bool `json:"never,omitempty"`
	// Lost: the check ends, but nothing is called back. Retrieve knows.
	Lost bool `json:"lost,omitempty"`
	// SkipCheck: a start answers skipCheck true and calls nothing back.
	SkipCheck bool `json:"skipCheck,omitempty"`

	// Delay is how long the check takes. Longer than the check timeout: it
	// times out.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Lag is how long the callback comes after the end of the check.
	Lag metav1.Duration `json:"lag,omitzero"`
	// Early: the callback is delivered before the call is answered. Delay and
	// Lag do not count.
	Early bool `json:"early,omitempty"`
	// Copies is how often the callback is sent. Default 1.
	Copies int `json:"copies,omitempty"`
	// CopyEvery is the pause between copies: a late copy is an old callback
	// out of order.
	CopyEvery metav1.Duration `json:"copyEvery,omitzero"`

	// Rules are called back. Without them a pass has one rule that passed and
	// a fail one that failed.
	Rules []Rule `json:"rules,omitempty"`
	// NoRules calls back no rules, although the check was judged.
	NoRules bool `json:"noRules,omitempty"`
	// Emergency sets the flag in the verdict.
	Emergency bool `json:"emergency,omitempty"`
	// CheckType replaces CHANGE_ORDER or CHANGE_BATCH.
	CheckType string `json:"checkType,omitempty"`
	// UnknownNode calls back a node id that no call has answered.
	UnknownNode bool `json:"unknownNode,omitempty"`
	// BadSignature calls back with a signature that does not fit.
	BadSignature bool `json:"badSignature,omitempty"`
	// Skew moves the timestamp; the signature fits it.
	Skew metav1.Duration `json:"skew,omitzero"`
	// BadBody calls back this body, signed, instead of the verdict.
	BadBody string `json:"badBody,omitempty"`

	// As is json (the default), or the CloudEvent modes binary, structured
	// and batched.
	As string `json:"as,omitempty"`
	// Message and PodResults are said in CloudEvents only. Without PodResults
	// every pod of the batch gets the verdict.
	Message    string      `json:"message,omitempty"`
	PodResults []PodResult `json:"podResults,omitempty"`
}

// PodResult is the verdict on one pod.
type PodResult struct {
	Pod     string `json:"pod"`
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
}

// Rule is one rule of a verdict.
type Rule struct {
	ExternalRuleID string `json:"externalRuleId"`
	ControlKey     string `json:"controlKey"`
	Status         string `json:"status"`
	// Verdict is NONE, PASS, INCONC or FAIL.
	Verdict     string `json:"verdict"`
	Msg         string `json:"msg"`
	URL         string `json:"url"`
	Stage       Stage  `json:"stage"`
	RiskLevel   string `json:"riskLevel"`
	Name        string `json:"name"`
	Owner       string `json:"owner"`
	AllowIgnore bool   `json:"allowIgnore"`
	Ignored     bool   `json:"ignored"`
}

// modes are the values of Behaviour.As.
func modes() []string { return []string{"", asJSON, asBinary, asStructured, asBatched} }

const (
	asJSON       = "json"
	asBinary     = "binary"
	asStructured = "structured"
	asBatched    = "batched"
)
