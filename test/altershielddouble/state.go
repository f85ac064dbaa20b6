package altershielddouble

// Stage is a stage of a node's check.
type Stage string

// The stages.
const (
	Pre  Stage = "PRE"
	Post Stage = "POST"
)

// State is a node's state, with the names from the server's messages.
type State string

// The states of a node. A check is submitted by the call, and runs when the
// server takes up the event of the call, which it may lose.
const (
	PreSubmit   State = "PRE_AOP_SUBMIT"
	PreRuns     State = "PRE_AOP"
	PreFinish   State = "PRE_AOP_FINISH"
	PreFail     State = "PRE_AOP_FAIL"
	PreTimeout  State = "PRE_AOP_TIMEOUT"
	PostSubmit  State = "POST_AOP_SUBMIT"
	PostRuns    State = "POST_AOP"
	PostFinish  State = "POST_AOP_FINISH"
	PostFail    State = "POST_AOP_FAIL"
	PostTimeout State = "POST_AOP_TIMEOUT"
)

// Ending is the way in which a check ends.
type Ending string

// The endings.
const (
	// Judged: the rules completed, with any verdict.
	Judged Ending = "judged"
	// TimedOut: the scene's check timeout passed. Called back as a pass.
	TimedOut Ending = "timeout"
	// Threw: the check threw. Called back as a pass.
	Threw Ending = "exception"
)

// finishing is the effect of a finish on a node.
type finishing struct {
	// Accepted: the answer is a success.
	Accepted bool
	// Runs: a POST check starts and will be called back.
	Runs bool
	// Next is the state afterwards, if accepted.
	Next State
}

// finishIn returns the effect of a finish in a state. Before the PRE verdict
// and during a POST check it is rejected. After a POST check it is accepted but
// starts no check: it is called back only at the rate Script.SecondFinish.
func finishIn(s State) finishing {
	switch s {
	case PreFinish, PreFail, PreTimeout:
		return finishing{Accepted: true, Runs: true, Next: PostSubmit}
	case PostFinish, PostFail, PostTimeout:
		return finishing{Accepted: true, Next: PostSubmit}
	default:
		return finishing{Next: s}
	}
}

// resubmits reports whether a resubmit in a state runs the PRE check again. In
// all other states it is rejected.
func resubmits(s State) bool {
	return s == PreFinish || s == PreFail || s == PreTimeout
}

// runningState returns the state of a node while its check runs.
func runningState(stage Stage) State {
	if stage == Post {
		return PostRuns
	}
	return PreRuns
}

// endOf returns the state of a node after the check of a stage.
func endOf(stage Stage, how Ending) State {
	states := map[Ending]State{Judged: PreFinish, TimedOut: PreTimeout, Threw: PreFail}
	if stage == Post {
		states = map[Ending]State{Judged: PostFinish, TimedOut: PostTimeout, Threw: PostFail}
	}
	return states[how]
}

// lateEndOf returns the state of a node whose check was judged after its
// timeout. POST adopts the result, PRE keeps its state. Neither sends a
// callback.
func lateEndOf(stage Stage, s State) State {
	if stage == Post && s == PostTimeout {
		return PostFinish
	}
	return s
}
