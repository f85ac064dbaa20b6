package altershield

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxMessage bounds Callback.Message, in bytes.
	maxMessage = 1024
	// maxWord bounds Callback.Verdict, in bytes, as the object's field is.
	maxWord = 63
)

// CheckType says what was checked.
type CheckType string

// The check types of the server.
const (
	CheckOrder  CheckType = "CHANGE_ORDER"
	CheckBatch  CheckType = "CHANGE_BATCH"
	CheckAction CheckType = "CHANGE_ACTION"
)

// Callback is a verdict as the server calls it back.
type Callback struct {
	BizExecOrderID string
	NodeID         string
	Stage          v1alpha1.Stage
	// CheckType is as it came; a later server may have more.
	CheckType CheckType
	// Verdict is the word as it came, cut to 63 bytes; empty when there was
	// none. v1alpha1.ParseVerdict says what it counts as.
	Verdict string
	// CheckPass is the server's flag. It decides only where there is no word:
	// then Verdict is pass or fail after it.
	CheckPass bool
	// Emergency says that the server let it pass because it is an emergency.
	Emergency bool
	// Rules are what was checked.
	Rules []Rule
	// Message tells a person which rules failed; at most 1024 bytes.
	Message string
	// Unjudged says that the verdict is a pass without any rule. The server
	// says this of a check that timed out or threw, too: ask Retrieve, and
	// believe only its pass.
	Unjudged bool
}

// Rule is one rule's result.
type Rule struct {
	ExternalRuleID string
	ControlKey     string
	Status         string
	// Verdict is NONE, PASS, INCONC or FAIL.
	Verdict     string
	Msg         string
	URL         string
	Stage       string
	RiskLevel   string
	Name        string
	Owner       string
	AllowIgnore bool
	Ignored     bool
}

// The body. Every field may be missing or null.
type callbackBody struct {
	CallbackRequest *struct {
		BizExecOrderID *string          `json:"bizExecOrderId"`
		DefenseStage   *string          `json:"defenseStageEnum"`
		NodeID         *string          `json:"nodeId"`
		Verdict        *callbackVerdict `json:"verdict"`
	} `json:"callbackRequest"`
	ChangeCheckType *string `json:"changeCheckType"`
}

type callbackVerdict struct {
	CheckPass *bool           `json:"checkPass"`
	Emergency *bool           `json:"emergency"`
	Rules     []*callbackRule `json:"rules"`
	Verdict   *string         `json:"verdict"`
}

type callbackRule struct {
	ExternalRuleID loose `json:"externalRuleId"`
	ControlKey     loose `json:"controlKey"`
	Status         loose `json:"status"`
	Verdict        loose `json:"verdict"`
	Msg            loose `json:"msg"`
	URL            loose `json:"url"`
	Stage          loose `json:"stage"`
	RiskLevel      loose `json:"riskLevel"`
	Name           loose `json:"name"`
	Owner          loose `json:"owner"`
	AllowIgnore    loose `json:"allowIgnore"`
	Ignored        loose `json:"ignored"`
}

// loose is a value that is only shown to people: a string as it is, null and
// structures as nothing, anything else as it is written. A rule that a later
// server describes otherwise must not cost us the verdict.
type loose string

func (l *loose) UnmarshalJSON(raw []byte) error {
	*l = ""
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(l))
	case 'n', '{', '[':
		return nil
	default:
		*l = loose(raw)
		return nil
	}
}

// ParseCallback reads the body of a callback. Unknown fields, nulls and a
// missing verdict are tolerated; what is an error is a body that is not JSON,
// or that does not say which stage of which node of which order it is about.
// The caller has verified the signature and bounded the body.
func ParseCallback(body []byte) (Callback, error) {
	var in callbackBody
	if err := json.Unmarshal(body, &in); err != nil {
		return Callback{}, fmt.Errorf("parse callback: %w", err)
	}
	request := in.CallbackRequest
	if request == nil {
		return Callback{}, errors.New("parse callback: callbackRequest is missing")
	}
	out := Callback{
		BizExecOrderID: trimmed(request.BizExecOrderID),
		NodeID:         trimmed(request.NodeID),
		Stage:          v1alpha1.Stage(strings.ToUpper(trimmed(request.DefenseStage))),
		CheckType:      CheckType(trimmed(in.ChangeCheckType)),
	}
	switch {
	case out.BizExecOrderID == "":
		return Callback{}, errors.New("parse callback: bizExecOrderId is missing")
	case out.NodeID == "":
		return Callback{}, errors.New("parse callback: nodeId is missing")
	case out.Stage != v1alpha1.StagePre && out.Stage != v1alpha1.StagePost:
		return Callback{}, fmt.Errorf("parse callback: defenseStageEnum is %q, not PRE or POST", text.Truncate(string(out.Stage), maxWord))
	}
	if request.Verdict != nil {
		out.judge(request.Verdict)
	}
	return out, nil
}

func (c *Callback) judge(in *callbackVerdict) {
	c.Verdict = text.Truncate(trimmed(in.Verdict), maxWord)
	c.CheckPass = in.CheckPass != nil && *in.CheckPass
	c.Emergency = in.Emergency != nil && *in.Emergency
	for _, rule := range in.Rules {
		if rule != nil {
			c.Rules = append(c.Rules, rule.rule())
		}
	}
	if c.Verdict == "" && in.CheckPass != nil {
		c.Verdict = "fail"
		if c.CheckPass {
			c.Verdict = "pass"
		}
	}
	outcome := v1alpha1.ParseVerdict(c.Verdict)
	c.Unjudged = outcome == v1alpha1.OutcomePass && len(c.Rules) == 0
	c.Message = compose(outcome, c.Rules)
}

func (r *callbackRule) rule() Rule {
	return Rule{
		ExternalRuleID: string(r.ExternalRuleID), ControlKey: string(r.ControlKey), Status: string(r.Status),
		Verdict: string(r.Verdict), Msg: string(r.Msg), URL: string(r.URL), Stage: string(r.Stage),
		RiskLevel: string(r.RiskLevel), Name: string(r.Name), Owner: string(r.Owner),
		AllowIgnore: r.AllowIgnore == "true", Ignored: r.Ignored == "true",
	}
}

func trimmed(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}
