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
	// maxMessage is the maximum length of Callback.Message, in bytes.
	maxMessage = 1024
	// maxWord is the maximum length of Callback.Verdict, in bytes. The field of the
	// ChangePod has the same limit.
	maxWord = 63
)

// CheckType is the type of a check.
type CheckType string

// The check types of the server.
const (
	CheckOrder CheckType = "CHANGE_ORDER"
	CheckBatch CheckType = "CHANGE_BATCH"
)

// Callback is a verdict that the server sends.
type Callback struct {
	BizExecOrderID string
	NodeID         string
	Stage          v1alpha1.Stage
	// CheckType is the server's value; later servers may have further types.
	CheckType CheckType
	// Verdict is the server's value, truncated to 63 bytes. If the server sent no value,
	// it is pass or fail according to checkPass, or empty if that is missing too.
	// Interpret it with v1alpha1.ParseVerdict.
	Verdict string
	// CheckPass is the server's flag; it is used only if the server sent no value of
	// Verdict.
	CheckPass bool
	// Emergency means that the check passed because of an emergency.
	Emergency bool
	// Rules are the results of the checked rules.
	Rules []Rule
	// Message lists the failed rules for people; at most 1024 bytes.
	Message string
	// Unconfirmed means that the verdict is a pass without rules. The server also
	// sends it after a timeout or an exception of a check: call Retrieve, and rely
	// only on RetrieveAnswer.Passed.
	Unconfirmed bool
}

// Rule is the result of a rule.
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

// callbackBody is the body of a callback. Every field may be missing or null.
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
	ExternalRuleID displayText `json:"externalRuleId"`
	ControlKey     displayText `json:"controlKey"`
	Status         displayText `json:"status"`
	Verdict        displayText `json:"verdict"`
	Msg            displayText `json:"msg"`
	URL            displayText `json:"url"`
	Stage          displayText `json:"stage"`
	RiskLevel      displayText `json:"riskLevel"`
	Name           displayText `json:"name"`
	Owner          displayText `json:"owner"`
	AllowIgnore    displayText `json:"allowIgnore"`
	Ignored        displayText `json:"ignored"`
}

// displayText is a value for people: a string, the text of another scalar, or empty for
// null, objects and arrays. A verdict must not be lost because a later server
// changes the type of a rule's field.
type displayText string

func (l *displayText) UnmarshalJSON(raw []byte) error {
	*l = ""
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, (*string)(l))
	case 'n', '{', '[':
		return nil
	default:
		*l = displayText(raw)
		return nil
	}
}

// ParseCallback parses the body of a callback. It accepts unknown fields, nulls
// and a missing verdict. It returns an error if the body is not JSON or lacks the
// order, the node or the stage. The caller verifies the signature (see Verify)
// and limits the size of the body.
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
		out.setVerdict(request.Verdict)
	}
	return out, nil
}

// setVerdict sets the fields of the verdict.
func (c *Callback) setVerdict(in *callbackVerdict) {
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
	c.Unconfirmed = outcome == v1alpha1.OutcomePass && len(c.Rules) == 0
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
