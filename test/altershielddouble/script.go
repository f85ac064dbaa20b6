package altershielddouble

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Script defines the behavior of the double. The zero value passes every check
// at once and has no faults. See the package doc for examples.
type Script struct {
	// CallbackURL replaces Options.CallbackURL, unless empty.
	CallbackURL string `json:"callbackUrl,omitempty"`
	// CheckTimeout replaces Options.CheckTimeout and the timeout of a call for a synchronous check,
	// unless zero.
	CheckTimeout metav1.Duration `json:"checkTimeout,omitzero"`
	// Seed determines which checks the rates select. Default 0.
	Seed uint64 `json:"seed,omitempty"`
	// SecondFinish is the rate, from 0 to 1, of second finishes that are called
	// back again, with the verdict of the first. Default 0.
	SecondFinish float64 `json:"secondFinish,omitempty"`
	// Default is the behavior of a check that no rule matches.
	Default Behaviour `json:"default,omitzero"`
	// Checks are the rules of checks; the first that matches and applies
	// decides.
	Checks []CheckRule `json:"checks,omitempty"`
	// Faults are the rules of calls; the first that matches and applies
	// decides.
	Faults []FaultRule `json:"faults,omitempty"`
}

// CheckRule defines the behavior of matching checks.
type CheckRule struct {
	Match Match `json:"match,omitzero"`
	// Nth is the number of the first matching check to which the rule applies,
	// counted from 1 since the script was set. 0 is the first.
	Nth int `json:"nth,omitempty"`
	// Times is the number of matching checks to which the rule applies. 0 means
	// 1 if Nth is set, otherwise all.
	Times int `json:"times,omitempty"`
	// Rate is the fraction of these checks to which the rule applies, from 0 to
	// 1; Script.Seed determines which ones. 0 means all.
	Rate float64   `json:"rate,omitempty"`
	Then Behaviour `json:"then,omitzero"`
}

// Match selects checks; an empty field matches all.
type Match struct {
	Stage Stage `json:"stage,omitempty"`
	// Step is ORDER, BATCH or RELEASE, the synchronous check. An empty step
	// does not match RELEASE.
	Step string `json:"step,omitempty"`
	// BatchNo is the batch's number, from 0.
	BatchNo *int64 `json:"batchNo,omitempty"`
	// Pod is the name of one of the batch's pods; * and ? are wildcards.
	Pod string `json:"pod,omitempty"`
	// Order is a text that the bizExecOrderId must contain.
	Order string `json:"order,omitempty"`
	// Namespace and Workload are those of extInfo.
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload,omitempty"`
}

// Behaviour is the behavior of one check and of its callback.
type Behaviour struct {
	// Verdict is pass (the default), fail, none, inconc, or any unknown value.
	// Retrieve returns pass only for pass.
	Verdict string `json:"verdict,omitempty"`
	// Ending is judged (the default), timeout or exception. The latter two are
	// called back as pass without rules, and retrieve returns fail.
	Ending Ending `json:"ending,omitempty"`
	// Never: the check does not end; not even the check timeout ends it.
	Never bool `json:"never,omitempty"`
	// Forgotten: the server loses the event of the call. The check never begins,
	// and the node stays in state PRE_AOP_SUBMIT or POST_AOP_SUBMIT.
	Forgotten bool `json:"forgotten,omitempty"`
	// Lost: the check ends without a callback. Retrieve returns the verdict.
	Lost bool `json:"lost,omitempty"`
	// Premature: the callback is a pass without rules, sent when the check begins.
	// There is no callback of its end.
	Premature bool `json:"premature,omitempty"`
	// SkipCheck: a start is answered with skipCheck true and has no callback.
	SkipCheck bool `json:"skipCheck,omitempty"`

	// Delay is the duration of the check. It times out after the check timeout.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Lag is the time between the end of the check and the callback.
	Lag metav1.Duration `json:"lag,omitzero"`
	// Early: the callback is delivered before the call is answered. Delay and
	// Lag are ignored.
	Early bool `json:"early,omitempty"`
	// Copies is the number of times that the callback is sent. Default 1.
	Copies int `json:"copies,omitempty"`
	// CopyEvery is the pause between copies. A late copy arrives out of order.
	CopyEvery metav1.Duration `json:"copyEvery,omitzero"`

	// Rules are the rules of the callback. By default a pass has one passed
	// rule and a fail one failed rule.
	Rules []Rule `json:"rules,omitempty"`
	// NoRules sends a callback without rules, although the check was judged.
	NoRules bool `json:"noRules,omitempty"`
	// Emergency sets the flag in the verdict.
	Emergency bool `json:"emergency,omitempty"`
	// CheckType replaces CHANGE_ORDER or CHANGE_BATCH.
	CheckType string `json:"checkType,omitempty"`
	// UnknownNode sends a callback with an unknown node id.
	UnknownNode bool `json:"unknownNode,omitempty"`
	// BadSignature sends a callback with a wrong signature.
	BadSignature bool `json:"badSignature,omitempty"`
	// Skew is added to the timestamp; the signature is valid.
	Skew metav1.Duration `json:"skew,omitzero"`
	// BadBody is the signed body of the callback instead of the verdict.
	BadBody string `json:"badBody,omitempty"`

	// As is json (the default), or the CloudEvent modes binary, structured
	// and batched.
	As string `json:"as,omitempty"`
	// Message and PodResults are used only in CloudEvents. Without PodResults
	// every pod of the batch gets the verdict.
	Message    string      `json:"message,omitempty"`
	PodResults []PodResult `json:"podResults,omitempty"`
}

// PodResult is the verdict for one pod.
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
