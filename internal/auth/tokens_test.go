package auth

import (
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviewer returns a client that counts reviews. It answers tokens by their name.
func reviewer(reviews *int) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		*reviews++
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		r.Status.User.Username = "system:serviceaccount:shop:web"
		switch r.Spec.Token {
		case "good":
			r.Status.Authenticated, r.Status.Audiences = true, r.Spec.Audiences
		case "unchecked audience":
			r.Status.Authenticated = true
		case "other audience":
			r.Status.Authenticated, r.Status.Audiences = true, []string{"vault"}
		case "no user":
			r.Status.Authenticated, r.Status.Audiences = true, r.Spec.Audiences
			r.Status.User.Username = ""
		case "error":
			return true, nil, errors.New("the API server is unreachable")
		}
		return true, r, nil
	})
	return client
}

func TestATokenIsAcceptedForItsAudienceOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		audience, token    string
		accepted, rejected bool
	}{
		"a token for the audience":              {"centre", "good", true, false},
		"an invalid token":                      {"centre", "bad", false, true},
		"a token whose audience is not checked": {"centre", "unchecked audience", false, true},
		"a token for another audience":          {"centre", "other audience", false, true},
		"a token without a user":                {"centre", "no user", false, true},
		"no answer":                             {"centre", "error", false, false},
		"a token for the API server":            {"", "unchecked audience", true, false},
		"an invalid token for the API server":   {"", "bad", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			reviews := 0
			tokens := NewTokens(reviewer(&reviews).AuthenticationV1(), TokensOptions{Audience: tc.audience, Clock: clocktesting.NewFakePassiveClock(time.Now())})
			user, err := tokens.User(t.Context(), tc.token)
			if accepted := err == nil; accepted != tc.accepted || errors.Is(err, ErrTokenRejected) != tc.rejected || (user.Username != "") != tc.accepted {
				t.Errorf("%+v, %v", user, err)
			}
		})
	}
}

func TestResultsOfReviewsAreCachedForTheirTTL(t *testing.T) {
	for name, tc := range map[string]struct {
		token              string
		accepted, rejected time.Duration
		after              time.Duration
		want               int
	}{
		"an accepted token":                      {"good", time.Minute, 0, 59 * time.Second, 1},
		"an accepted token after its TTL":        {"good", time.Minute, 0, 61 * time.Second, 2},
		"an accepted token without a cache":      {"good", 0, time.Minute, time.Second, 2},
		"a rejected token":                       {"bad", 0, 5 * time.Second, 4 * time.Second, 1},
		"a rejected token after its TTL":         {"bad", 0, 5 * time.Second, 6 * time.Second, 2},
		"a rejected token without a cache":       {"bad", time.Minute, 0, time.Second, 2},
		"a token without an answer is not known": {"error", time.Minute, time.Minute, time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			reviews, clock := 0, clocktesting.NewFakePassiveClock(time.Now())
			tokens := NewTokens(reviewer(&reviews).AuthenticationV1(), TokensOptions{AcceptedTTL: tc.accepted, RejectedTTL: tc.rejected, Clock: clock})
			_, first := tokens.User(t.Context(), tc.token)
			clock.SetTime(clock.Now().Add(tc.after))
			_, second := tokens.User(t.Context(), tc.token)
			if reviews != tc.want || (first == nil) != (second == nil) || errors.Is(first, ErrTokenRejected) != errors.Is(second, ErrTokenRejected) {
				t.Errorf("%d reviews, want %d; results %v, %v", reviews, tc.want, first, second)
			}
		})
	}
}
