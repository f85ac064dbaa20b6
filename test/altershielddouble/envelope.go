package altershielddouble

import (
	"encoding/json"
	"time"
)

// Result codes of the server.
const (
	codeOK        = "000"
	codeArgument  = "101"
	codeSignature = "102"
	codeState     = "103"
	codeExists    = "106"
	codeInternal  = "901"
)

// result is a server answer: HTTP 200 with explicit nulls.
type result struct {
	Success    bool    `json:"success"`
	ResultCode *string `json:"resultCode"`
	Msg        *string `json:"msg"`
	Domain     any     `json:"domain"`

	// after is the duration of the call.
	after time.Duration
}

func done(msg string, domain any) result {
	code := codeOK
	return result{Success: true, ResultCode: &code, Msg: optional(msg), Domain: domain}
}

// doneWithoutCode is the only success without a code.
func doneWithoutCode(domain any) result {
	return result{Success: true, Msg: optional("success"), Domain: domain}
}

func rejected(code, msg string) result {
	return result{ResultCode: &code, Msg: optional(msg)}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (r result) code() string {
	if r.ResultCode == nil {
		return ""
	}
	return *r.ResultCode
}

func (r result) bytes() []byte {
	raw, err := json.Marshal(r)
	if err != nil { // cannot fail: strings, bools and maps of them
		panic(err)
	}
	return raw
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

type syncDomain struct {
	OrderID string      `json:"orderId"`
	NodeID  string      `json:"nodeId"`
	URL     string      `json:"url"`
	Verdict syncVerdict `json:"verdict"`
}

// syncVerdict is a verdict with the additional fields of a synchronous answer.
type syncVerdict struct {
	verdict
	Msg string `json:"msg"`
}

type progressDomain struct {
	Finished bool    `json:"finished"`
	Verdict  verdict `json:"verdict"`
	URL      string  `json:"url"`
}

// verdict is a verdict in an answer or a callback.
type verdict struct {
	AllFinish bool   `json:"allFinish"`
	CheckPass bool   `json:"checkPass"`
	Emergency bool   `json:"emergency"`
	Rollback  bool   `json:"rollback"`
	Rules     []Rule `json:"rules"`
	Verdict   string `json:"verdict"`
}
