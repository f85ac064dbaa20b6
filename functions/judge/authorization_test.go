package judge

import (
	"strings"
	"testing"
)

func TestTheSecretHasATokenOrAPasswordWithItsUser(t *testing.T) {
	for name, tc := range map[string]struct {
		token, username, password string
		want, err                 string
	}{
		"no credentials":              {},
		"a token":                     {token: "hidden\n", want: "Bearer hidden"},
		"a user with a password":      {username: "123\n", password: "hidden\n", want: "Basic MTIzOmhpZGRlbg=="},
		"a user without a password":   {username: "hidden", err: "only one of username and password"},
		"a password without a user":   {password: "hidden", err: "only one of username and password"},
		"a token and a user":          {token: "hidden", username: "hidden", err: "only one of username and password"},
		"a token, a user, a password": {token: "hidden", username: "hidden", password: "hidden", err: "remove one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := map[string][]byte{tokenKey: []byte(tc.token), usernameKey: []byte(tc.username), passwordKey: []byte(tc.password)}
			got, err := authorization(secret)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tc.want, tc.err)
			}
		})
	}
}
