package v1alpha1

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names of judges. Other judges have names of their own, which are DNS labels.
const (
	// JudgeServer is the AlterShield server.
	JudgeServer = "server"
	// JudgeMetrics is function judge, which compares metrics of new pods with those of
	// old ones.
	JudgeMetrics = "metrics"
)

// AnalysisGrace is the time after the end of its analysis within which judge metrics may
// answer.
const AnalysisGrace = 2 * time.Minute

// MaxJudges is the maximum number of judges of a batch.
const MaxJudges = 10

// Judge is a judge of a batch. The judges are chosen when the batch is created, so that a
// later change of the configuration changes neither the judges of the batch nor the outcome
// if a judge gives no verdict.
type Judge struct {
	// Name is `server`, `metrics`, or the name of another judge.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Optional is true if the batch does not wait for the judge. Its fail counts
	// nevertheless.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// TimeoutSeconds is how long the batch waits for the judge, in seconds from its
	// creation. 0 means the setting `post-timeout`. The server has timeouts of its own.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// NoVerdict is the outcome of the batch if the judge gives no verdict. Empty means the
	// setting `no-verdict-post`, or `no-verdict`.
	// +optional
	// +kubebuilder:validation:Enum="";Pass;Hold;Fail
	NoVerdict NoVerdictPolicy `json:"noVerdict,omitempty"`
	// Check is the MetricCheck by which judge `metrics` judges, as `namespace/name`.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Check string `json:"check,omitempty"`
	// ProbationSeconds is how long judge `metrics` still looks at the release after its
	// success, in seconds. 0 means no probation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=259200
	ProbationSeconds int32 `json:"probationSeconds,omitempty"`
	// FailedVersions are the versions of the workload that had failed, or that Breakwater had rolled back, when the
	// batch was created; at most 50, the latest first. Judge `metrics` does not compare with their pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	FailedVersions []string `json:"failedVersions,omitempty"`
}

// JudgeVerdict is the verdict of a judge other than the server.
type JudgeVerdict struct {
	// Judge is the name of the judge.
	// +kubebuilder:validation:MaxLength=63
	Judge string `json:"judge"`
	// Stage is always POST: judges other than the server have no stage PRE.
	Stage Stage `json:"stage"`
	// Verdict is the verdict as received; ParseVerdict interprets it.
	// +kubebuilder:validation:MaxLength=63
	Verdict string `json:"verdict"`
	// Reason is a short word for programs, such as InsufficientData.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`
	// Message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Time is the time when the judge decided.
	Time metav1.MicroTime `json:"time"`
}

// Outcome returns the outcome of the verdict; nil is pending.
func (v *JudgeVerdict) Outcome() Outcome {
	if v == nil {
		return OutcomePending
	}
	return ParseVerdict(v.Verdict)
}

// Precedence returns the precedence of a stored verdict; nil is a missing one.
func (v *JudgeVerdict) Precedence() Precedence {
	if v == nil {
		return PrecedenceMissing
	}
	return PrecedenceOf(v.Verdict, false)
}

// Detail is the message with the name of the judge.
func (v *JudgeVerdict) Detail() string {
	if v.Message == "" {
		return "judge " + v.Judge + " gave no reason"
	}
	return v.Judge + ": " + v.Message
}

// JudgeVerdictOf returns the verdict of a judge other than the server, or nil.
func (s *ChangePodStatus) JudgeVerdictOf(judge string) *JudgeVerdict {
	for i := range s.Judges {
		if s.Judges[i].Judge == judge {
			return &s.Judges[i]
		}
	}
	return nil
}

// JudgeOf returns the judge with a name that judges the batch, or nil.
func (c *ChangePod) JudgeOf(judge string) *Judge {
	for i := range c.Spec.Judges {
		if c.Spec.Judges[i].Name == judge {
			return &c.Spec.Judges[i]
		}
	}
	return nil
}

// LateFailUnsent reports whether function judge has recorded a fail during probation that is not
// stored as its verdict.
func (c *ChangePod) LateFailUnsent() bool {
	return c.Status.Probation != nil && ParseVerdict(string(c.Status.Probation.Verdict)) == OutcomeFail &&
		c.Status.JudgeVerdictOf(JudgeMetrics).Outcome() != OutcomeFail
}

// FailOfJudge returns the fail of a judge other than the server, or nil. The fail of any
// judge counts, also of an optional one.
func (s *ChangePodStatus) FailOfJudge() *JudgeVerdict {
	for i := range s.Judges {
		if s.Judges[i].Outcome() == OutcomeFail {
			return &s.Judges[i]
		}
	}
	return nil
}

// ServerMustAnswer reports whether the batch waits for the server. Without other judges it
// does, even if no server is configured: then the batch is unjudged.
func (c *ChangePod) ServerMustAnswer() bool {
	others := false
	for _, j := range c.Spec.Judges {
		if j.Name == JudgeServer {
			return !j.Optional || len(c.OtherJudges(true)) == 0
		}
		others = others || !j.Optional
	}
	return !others
}

// OtherJudges returns the judges other than the server, or only those that must answer.
func (c *ChangePod) OtherJudges(mustAnswer bool) []Judge {
	var out []Judge
	for _, j := range c.Spec.Judges {
		if j.Name != JudgeServer && (!mustAnswer || !j.Optional) {
			out = append(out, j)
		}
	}
	return out
}

// UnjudgedBy returns the judges other than the server that must answer and gave no pass
// or fail.
func (c *ChangePod) UnjudgedBy() []Judge {
	var out []Judge
	for _, j := range c.OtherJudges(true) {
		switch c.Status.JudgeVerdictOf(j.Name).Outcome() {
		case OutcomePass, OutcomeFail:
		default:
			out = append(out, j)
		}
	}
	return out
}

// answered reports whether verdicts ended the batch: a judge failed it, or each judge that
// must answer has answered. Without other judges any POST verdict counts, also an unconfirmed pass.
func (c *ChangePod) answered() bool {
	post := c.Status.VerdictOf(StagePost)
	if len(c.Spec.Judges) == 0 {
		return post != nil
	}
	if c.Status.FailOfJudge() != nil || post.Outcome() == OutcomeFail {
		return true
	}
	for _, j := range c.OtherJudges(true) {
		if c.Status.JudgeVerdictOf(j.Name) == nil {
			return false
		}
	}
	return !c.ServerMustAnswer() || post.EndsStage()
}

// passDetail returns the messages of the verdicts of a batch that every judge passed;
// server is that of the server.
func (c *ChangePod) passDetail(server string) string {
	var details []string
	if c.ServerMustAnswer() && server != "" {
		details = append(details, server)
	}
	for _, j := range c.OtherJudges(true) {
		if v := c.Status.JudgeVerdictOf(j.Name); v.Message != "" {
			details = append(details, v.Detail())
		}
	}
	return strings.Join(details, "; ")
}

// OwnJudges returns the names of judges that are not part of Breakwater.
func OwnJudges(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == JudgeServer || name == JudgeMetrics })
}

// OwnJudgesWarning says which of the judges need a key; it is empty if none does.
func OwnJudgesWarning(names []string) string {
	own := OwnJudges(names)
	if len(own) == 0 {
		return ""
	}
	return fmt.Sprintf("judges of your own: %s; each needs its key in Secret external-judge-keys, or batches that wait for it stay unjudged", strings.Join(own, ", "))
}

// ParseJudges reads the names of judges, separated by commas.
func ParseJudges(s string) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name := strings.TrimSpace(part)
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			return nil, fmt.Errorf("%q is not the name of a judge: use lower-case letters, digits and '-' in names, separated by commas, for example \"server, metrics\"", name)
		}
		if seen[name] {
			return nil, fmt.Errorf("judge %q is named twice: write each name once", name)
		}
		seen[name] = true
		names = append(names, name)
	}
	if len(names) > MaxJudges {
		return nil, fmt.Errorf("%d judges are named: write at most %d", len(names), MaxJudges)
	}
	return names, nil
}
