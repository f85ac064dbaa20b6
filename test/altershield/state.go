package altershield

// Stage is a stage of a node's check.
type Stage string

// The stages.
const (
	Pre  Stage = "PRE"
	Post Stage = "POST"
)

// State is a node's state, with the names from the server's messages.
type State string

// The states of a node. During a check the server changes from ..._SUBMIT to
// PRE_AOP or POST_AOP. Clients cannot distinguish the two, so the double has
// only the first.
const (
	PreSubmit   State = "PRE_AOP_SUBMIT"
	PreFinish   State = "PRE_AOP_FINISH"
	PreFail     State = "PRE_AOP_FAIL"
	PreTimeout  State = "PRE_AOP_TIMEOUT"
	PostSubmit  State = "POST_AOP_SUBMIT"
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
// starts no check, so the node waits forever.
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
