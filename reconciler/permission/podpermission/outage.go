package podpermission

import (
	"errors"
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centreclient"
)

// maxOutagePause bounds how long no pod calls the centre after a call without an answer.
const maxOutagePause = 5 * time.Second

// outage is the fact that the centre does not answer, which all pods share. Without it, each pod would
// wait for the timeout of its own call, and keep a worker of the queue.
type outage struct {
	mu    sync.Mutex
	state outageState
}

// outageState is the state of an outage.
type outageState struct {
	// err is the error of the last call without an answer, nil after an answer.
	err error
	// until is when the next pod may call.
	until time.Time
	// answered is the time of the last answer.
	answered time.Time
}

// begin returns nil if a pod may call now, otherwise the error of the last call. During an outage,
// one pod may call in each maxOutagePause.
func (s outageState) begin(now time.Time) (outageState, error) {
	if s.err == nil {
		return s, nil
	}
	if now.Before(s.until) {
		return s, s.err
	}
	s.until = now.Add(maxOutagePause)
	return s, nil
}

// ended records the result of a call. No pod calls for as long as a call without an answer took, so one
// that is refused at once delays no other. A call that began before the last answer says nothing new.
func (s outageState) ended(began, now time.Time, err error) outageState {
	switch {
	case err == nil || errors.As(err, new(*centreclient.StatusError)):
		return outageState{answered: now}
	case began.Before(s.answered):
		return s
	}
	s.err, s.until = err, now.Add(min(now.Sub(began), maxOutagePause))
	return s
}

func (o *outage) begin(now time.Time) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state, err = o.state.begin(now)
	return err
}

func (o *outage) ended(began, now time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = o.state.ended(began, now, err)
}
