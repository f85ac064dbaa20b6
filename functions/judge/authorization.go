package judge

import (
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The credentials in Secret SecretName.
const (
	tokenKey    = "token"
	usernameKey = corev1.BasicAuthUsernameKey
	passwordKey = corev1.BasicAuthPasswordKey
)

// authorization returns the value of header Authorization, empty without credentials. Its error contains no secret.
func authorization(secret map[string][]byte) (string, error) {
	value := func(key string) string { return strings.TrimSpace(string(secret[key])) }
	token, username, password := value(tokenKey), value(usernameKey), value(passwordKey)
	switch {
	case (username == "") != (password == ""):
		return "", fmt.Errorf("the Secret %s has only one of %s and %s: write both", SecretName, usernameKey, passwordKey)
	case token != "" && username != "":
		return "", fmt.Errorf("the Secret %s has a %s, and a %s with a %s: remove one of them", SecretName, tokenKey, usernameKey, passwordKey)
	case token != "":
		return "Bearer " + token, nil
	case username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)), nil
	}
	return "", nil
}
