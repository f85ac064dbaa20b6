package altershield

import (
	"bytes"
	"encoding/json"
)

// The actions, which are the last part of the path.
const (
	actionOpenOrder    = "submitChangeExecOrder"
	actionStartOrder   = "submitChangeExecOrderStartNotify"
	actionStartBatch   = "submitChangeExecBatchStartNotify"
	actionFinish       = "submitChangeFinishNotify"
	actionResubmit     = "resubmitChangeStartNotifyAction"
	actionRetrieve     = "retrieveChangeCheck"
	actionCloseOrder   = "finishChangeExecOrderAction"
	actionEvent        = "submitChangeEventAction"
	actionCheckRelease = "submitAndStartChangeExecOrder"

	actionPath = "/openapi/v1/exe/"
)

// Byte limits of the server's fields (UTF-8).
const (
	maxTitle   = 256
	maxURL     = 512
	maxMsg     = 16384
	maxOrderID = 128
)

// identity is in every request.
type identity struct {
	TenantCode     string `json:"tenantCode"`
	ChangeSceneKey string `json:"changeSceneKey"`
	BizExecOrderID string `json:"bizExecOrderId"`
	Platform       string `json:"platform"`
}

// order has the common fields of opening an order, recording an event and checking a release.
type order struct {
	identity
	ChangeTitle        string          `json:"changeTitle"`
	ChangeURL          string          `json:"changeUrl,omitempty"`
	Creator            string          `json:"creator"`
	ChangeScenarioCode string          `json:"changeScenarioCode"`
	ChangePhases       []string        `json:"changePhases"`
	ChangeContents     []changeContent `json:"changeContents"`
	ChangeParamJSON    string          `json:"changeParamJson"`
	ChangeApps         []string        `json:"changeApps,omitempty"`
}

type changeContent struct {
	ContentType  contentType `json:"contentType"`
	InstanceName string      `json:"instanceName"`
}

type contentType struct {
	TypeName string `json:"typeName"`
}

type event struct {
	order
	Executor      string              `json:"executor"`
	StartTime     int64               `json:"startTime"`
	FinishTime    int64               `json:"finishTime"`
	ExtensionInfo map[string][]string `json:"extensionInfo,omitempty"`
}

type releaseCheck struct {
	order
	Executor  string `json:"executor"`
	StartTime int64  `json:"startTime"`
	// CheckTimeout is in milliseconds.
	CheckTimeout int64 `json:"checkTimeout"`
}

// start omits emergency if it is false, so that the scenario of the order
// applies. It always omits the optional trace: the server creates one with the
// order and builds node ids from it, and another format would break them.
type start struct {
	identity
	Executor      string              `json:"executor"`
	StartTime     int64               `json:"startTime"`
	Emergency     bool                `json:"emergency,omitempty"`
	ExtensionInfo map[string][]string `json:"extensionInfo,omitempty"`
}

type batchStart struct {
	start
	BatchNo                    int32     `json:"batchNo"`
	TotalBatchNum              int32     `json:"totalBatchNum"`
	TotalBatchNumInChangePhase int32     `json:"totalBatchNumInChangePhase"`
	IsLastBatchTag             string    `json:"isLastBatchTag"`
	IsLastBatchInPhaseTag      string    `json:"isLastBatchInChangePhaseTag"`
	ChangePhase                string    `json:"changePhase"`
	EffectiveTargetType        string    `json:"effectiveTargetType"`
	EffectiveTargetLocations   []string  `json:"effectiveTargetLocations"`
	ExtInfo                    BatchInfo `json:"extInfo"`
}

type finish struct {
	identity
	NodeID                   string   `json:"nodeId"`
	Success                  bool     `json:"success"`
	Msg                      string   `json:"msg,omitempty"`
	ServiceResult            string   `json:"serviceResult,omitempty"`
	ChangeResultJSON         string   `json:"changeResultJsn,omitempty"`
	FinishTime               int64    `json:"finishTime"`
	EffectiveTargetLocations []string `json:"effectiveTargetLocations,omitempty"`
}

type resubmit struct {
	identity
	NodeID string `json:"nodeId"`
}

type retrieve struct {
	identity
	NodeID       string `json:"nodeId"`
	DefenseStage string `json:"defenseStage"`
}

type closeOrder struct {
	identity
	FinishState string `json:"finishState"`
	Msg         string `json:"msg,omitempty"`
	FinishTime  int64  `json:"finishTime"`
}

// envelope is the format of every answer. Success is a pointer, because JSON that is
// not from the server, such as the error of a proxy, has no such field.
type envelope struct {
	Success    *bool           `json:"success"`
	ResultCode *string         `json:"resultCode"`
	Msg        *string         `json:"msg"`
	Domain     json.RawMessage `json:"domain"`
}

type orderDomain struct {
	OrderID string `json:"orderId"`
	URL     string `json:"url"`
}

type nodeDomain struct {
	NodeID    string `json:"nodeId"`
	SkipCheck bool   `json:"skipCheck"`
	URL       string `json:"url"`
}

type progressDomain struct {
	Complete bool        `json:"finished"`
	Verdict  verdictText `json:"verdict"`
	URL      string      `json:"url"`
}

// verdictText is a verdict: a string, or an object with the string in field verdict, as
// in a callback.
type verdictText string

func (w *verdictText) UnmarshalJSON(raw []byte) error {
	*w = ""
	if bytes.HasPrefix(raw, []byte("{")) {
		var object struct {
			Verdict *string `json:"verdict"`
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		if object.Verdict != nil {
			*w = verdictText(*object.Verdict)
		}
		return nil
	}
	return json.Unmarshal(raw, (*string)(w))
}
