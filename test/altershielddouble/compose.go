package altershielddouble

import (
	"encoding/json"
	"fmt"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// callbackBody is the body of a callback.
type callbackBody struct {
	CallbackRequest callbackRequest `json:"callbackRequest"`
	ChangeCheckType string          `json:"changeCheckType"`
}

type callbackRequest struct {
	BizExecOrderID   string  `json:"bizExecOrderId"`
	ChangeSceneKey   string  `json:"changeSceneKey"`
	DefenseStageEnum Stage   `json:"defenseStageEnum"`
	NodeID           string  `json:"nodeId"`
	Verdict          verdict `json:"verdict"`
}

// verdictType is the type of the CloudEvent that function callback accepts
// instead of JSON.
const verdictType = "dev.breakwater.changepod.verdict.v1"

// eventData is the data of verdictType.
type eventData struct {
	BizExecOrderID string      `json:"bizExecOrderId"`
	NodeID         string      `json:"nodeId"`
	Stage          Stage       `json:"stage"`
	Verdict        string      `json:"verdict"`
	Message        string      `json:"message,omitempty"`
	PodResults     []PodResult `json:"podResults,omitempty"`
}

// message is a verdict before encoding.
type message struct {
	body callbackBody
	data eventData
	// id is the CloudEvent id; all copies have the same.
	id string
}

// compose returns the message of a callback. A check that did not complete is a
// pass without rules.
func (d *Double) compose(c *check, how Ending) message {
	b, n := c.behaviour, c.node
	v := verdict{
		AllFinish: true, Emergency: b.Emergency || n.emergency,
		Verdict: b.Verdict, CheckPass: passes(b.Verdict), Rules: rulesOf(b, c.stage),
	}
	if how != Judged {
		v.Verdict, v.CheckPass, v.Rules = "pass", true, []Rule{}
	}
	m := message{body: callbackBody{ChangeCheckType: "CHANGE_" + n.step, CallbackRequest: callbackRequest{
		BizExecOrderID: n.order.biz, ChangeSceneKey: n.order.scene, DefenseStageEnum: c.stage, NodeID: n.id, Verdict: v,
	}}}
	if b.CheckType != "" {
		m.body.ChangeCheckType = b.CheckType
	}
	if b.UnknownNode {
		m.body.CallbackRequest.NodeID = "unknown-" + n.id
	}
	m.data = eventData{
		BizExecOrderID: n.order.biz, NodeID: m.body.CallbackRequest.NodeID, Stage: c.stage,
		Verdict: v.Verdict, Message: messageOf(b.Message, v), PodResults: b.PodResults,
	}
	if m.data.PodResults == nil {
		for _, pod := range c.pods {
			m.data.PodResults = append(m.data.PodResults, PodResult{Pod: pod, Verdict: v.Verdict, Message: m.data.Message})
		}
	}
	m.id = fmt.Sprintf("%s/%s/%s", m.data.NodeID, c.stage, v.Verdict)
	return m
}

func rulesOf(b Behaviour, stage Stage) []Rule {
	switch {
	case b.NoRules:
		return []Rule{}
	case len(b.Rules) > 0:
		return b.Rules
	}
	rule := Rule{
		ExternalRuleID: "double-1", ControlKey: "double", Status: "SUCCESS",
		Stage: stage, RiskLevel: "HIGH", Name: "double", Owner: "double", Msg: "as scripted",
	}
	rule.Verdict = strings.ToUpper(b.Verdict)
	return []Rule{rule}
}

// messageOf returns the message of the script, or else the message of the first
// rule that did not pass.
func messageOf(scripted string, v verdict) string {
	if scripted != "" || passes(v.Verdict) {
		return scripted
	}
	for _, r := range v.Rules {
		if !passes(r.Verdict) {
			return r.Name + ": " + r.Msg
		}
	}
	return ""
}

func (m message) json() []byte {
	raw, err := json.Marshal(m.body)
	if err != nil { // cannot fail: strings and bools only
		panic(err)
	}
	return raw
}

func (m message) event() (cloudevents.Event, error) {
	e := cloudevents.NewEvent()
	e.SetType(verdictType)
	e.SetSource("/altershield/double")
	e.SetSubject(m.data.NodeID)
	e.SetID(m.id)
	err := e.SetData(cloudevents.ApplicationJSON, m.data)
	return e, err
}
