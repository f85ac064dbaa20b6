package altershielddouble

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FaultRule injects a fault into calls.
type FaultRule struct {
	// Action is the call, such as submitChangeFinishNotify. Empty: all calls.
	Action string `json:"action,omitempty"`
	// Order is a text that the body of a call must contain, such as the
	// bizExecOrderId. Empty: all calls.
	Order string `json:"order,omitempty"`
	// Nth and Times are as in CheckRule, over matching calls.
	Nth   int `json:"nth,omitempty"`
	Times int `json:"times,omitempty"`
	// Fault is the injected fault.
	Fault Fault `json:"fault"`
	// After: the call is executed and only the answer is lost. By default the
	// call is not executed.
	After bool `json:"after,omitempty"`
	// Delay is the duration of FaultSlow.
	Delay metav1.Duration `json:"delay,omitzero"`
}

// Fault is a kind of fault.
type Fault string

// The faults.
const (
	// Fault901 answers HTTP 200 with result code 901.
	Fault901 Fault = "901"
	// Fault404 and Fault500 answer that status with the server's JSON.
	Fault404 Fault = "404"
	Fault500 Fault = "500"
	// Fault502 answers as a proxy does: HTML.
	Fault502 Fault = "502"
	// FaultGarbage answers HTTP 200 with HTML.
	FaultGarbage Fault = "garbage"
	// FaultReset closes the connection without an answer.
	FaultReset Fault = "reset"
	// FaultSlow waits for Delay and then executes the call.
	FaultSlow Fault = "slow"
)

func faults() []Fault {
	return []Fault{Fault901, Fault404, Fault500, Fault502, FaultGarbage, FaultReset, FaultSlow}
}

// statusOf is the HTTP status of a fault that has one.
func (f Fault) statusOf() int {
	switch f {
	case Fault404:
		return http.StatusNotFound
	case Fault500:
		return http.StatusInternalServerError
	case Fault502:
		return http.StatusBadGateway
	default:
		return http.StatusOK
	}
}
