package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// Plan is the script of the double for one release.
type Plan struct {
	Rules []double.CheckRule
	// Paced: the rollout replaces one pod at a time, so that a fail can stop
	// it.
	Paced bool
	text  []string
}

func (p *Plan) String() string {
	if len(p.text) == 0 {
		return "all pass"
	}
	return strings.Join(p.text, ", ")
}

// maxDelay is the maximum duration of a check.
const maxDelay = 3 * time.Second

// NewPlan draws the verdicts of a release with the number of pods. About half
// of the releases have a failed batch; all have checks with unusual endings.
func NewPlan(r *rand.Rand, pods int) Plan {
	p := Plan{Paced: r.IntN(3) == 0}
	if r.IntN(2) == 0 {
		for range 1 + r.IntN(2) {
			p.add(r, pods, "fails", failing(r))
		}
	}
	for range r.IntN(3) {
		what, then := unusual(r)
		p.add(r, pods, what, then)
	}
	p.addPublished(r, pods)
	p.Rules = append(p.Rules, double.CheckRule{Then: delayed(r, double.Behaviour{})})
	return p
}

// published are the faults of the published server, with their rates: see
// docs/change/altershield.md.
var published = []struct {
	what  string
	stage double.Stage
	rate  float64
	then  double.Behaviour
}{
	{"is forgotten", double.Pre, 3.0 / 90, double.Behaviour{Forgotten: true}},
	{"passes and its callback is lost", double.Pre, 3.0 / 606, double.Behaviour{Lost: true}},
	{"passes and its callback is lost", double.Post, 3.0 / 606, double.Behaviour{Lost: true}},
	{"fails and is called back as a pass before", double.Post, 5.0 / 148, double.Behaviour{Premature: true, Verdict: "fail"}},
}

// secondFinish is the rate of second finishes that the published server calls back again. A
// finish is repeated if its answer is lost: see ServerFaults.
const secondFinish = 23.0 / 105

// addPublished draws the faults of the published server for each batch, and a forgotten
// start for the order.
func (p *Plan) addPublished(r *rand.Rand, pods int) {
	for number := range int64(pods) {
		for _, f := range published {
			if r.Float64() >= f.rate {
				continue
			}
			p.Rules = append(p.Rules, double.CheckRule{
				Match: double.Match{Step: "BATCH", BatchNo: &number, Stage: f.stage}, Nth: 1, Then: f.then,
			})
			p.text = append(p.text, fmt.Sprintf("%s of batch %d %s", f.stage, number, f.what))
		}
	}
	if forgotten := published[0]; r.Float64() < forgotten.rate {
		p.Rules = append(p.Rules, double.CheckRule{Match: double.Match{Step: "ORDER", Stage: double.Pre}, Nth: 1, Then: forgotten.then})
		p.text = append(p.text, "PRE of the order "+forgotten.what)
	}
}

// add sets the behavior of a check of a random batch. A release may have fewer
// batches. If several rules match a check, the first one counts.
func (p *Plan) add(r *rand.Rand, pods int, what string, then double.Behaviour) {
	stage := double.Post
	if r.IntN(4) == 0 {
		stage = double.Pre
	}
	number := int64(r.IntN(pods))
	p.Rules = append(p.Rules, double.CheckRule{
		Match: double.Match{Step: "BATCH", BatchNo: &number, Stage: stage}, Then: delayed(r, then),
	})
	p.text = append(p.text, fmt.Sprintf("%s of batch %d %s", stage, number, what))
}

func delayed(r *rand.Rand, b double.Behaviour) double.Behaviour {
	b.Delay.Duration = time.Duration(r.Int64N(int64(maxDelay)))
	return b
}

func failing(r *rand.Rand) double.Behaviour {
	b := double.Behaviour{Verdict: pick(r, "fail", "fail", "unpass"), As: pick(r, "", "", "binary", "structured", "batched")}
	b.Copies = 1 + r.IntN(2)
	b.CopyEvery.Duration = time.Second
	b.Early = r.IntN(8) == 0
	return b
}

// unusual draws an ending that is neither a normal pass nor a fail.
func unusual(r *rand.Rand) (string, double.Behaviour) {
	switch r.IntN(6) {
	case 0:
		verdict := pick(r, "none", "inconc", "a verdict of a later server")
		return "is " + verdict, double.Behaviour{Verdict: verdict}
	case 1:
		return "times out", double.Behaviour{Ending: double.TimedOut}
	case 2:
		return "throws", double.Behaviour{Ending: double.Threw}
	case 3:
		return "passes early", double.Behaviour{Early: true}
	case 4:
		b := double.Behaviour{Copies: 3}
		b.CopyEvery.Duration = 2 * time.Second
		return "passes three times", b
	default:
		return "passes and its callback is lost", double.Behaviour{Lost: true}
	}
}

func pick(r *rand.Rand, values ...string) string { return values[r.IntN(len(values))] }
